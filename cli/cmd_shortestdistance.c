/* cmd_shortestdistance.c - `warpfst shortestdistance`: one line a state, "state cost", as OpenFst's tool prints it. */
#include <math.h>

#include "fst_output.h"

static int print_distances(const char *output, const float *distance, uint64_t num_states) {
  FILE *file = output == NULL || (output[0] == '-' && output[1] == '\0') ? stdout : fopen(output, "w");
  if (file == NULL) {
    cli_note("%s: cannot be written", output);
    return CLI_INPUT;
  }
  for (uint64_t s = 0; s < num_states; s++) {
    if (distance[s] == INFINITY) fprintf(file, "%llu\tInfinity\n", (unsigned long long)s);
    else fprintf(file, "%llu\t%.9g\n", (unsigned long long)s, (double)distance[s]);
  }
  bool failed = ferror(file) != 0;
  failed = (file == stdout ? fflush(file) : fclose(file)) != 0 || failed;
  if (failed) cli_note("%s: cannot be written", output != NULL ? output : "standard output");
  return failed ? CLI_INPUT : CLI_OK;
}

int cmd_shortestdistance(int argc, char **argv) {
  const char *output = NULL;
  wf_shortest_distance_options options;
  cli_parser parser = {.usage = "[IN [OUT]] [-o OUT]",
                       .about = "The sum of costs over all paths from the start to each state, or with --reverse from each state to the final ones: "
                                "lines of a state and its distance.",
                       .max_args = 2};
  cli_flag_str(&parser, "output", 'o', &output, "FILE", CLI_OUTPUT_HELP);
  cli_table(&parser, "shortest_distance", &options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (parser.num_args == 2) output = parser.args[1];
  wf_fst *fst = NULL;
  float *distance = NULL;
  wf_error err;
  code = cli_read_fst(parser.num_args > 0 ? parser.args[0] : "-", &fst);
  if (code == CLI_OK && wf_shortest_distance(fst, &options, &distance, &err) != WF_OK) code = cli_fail(&err);
  if (code == CLI_OK) code = print_distances(output, distance, wf_fst_get_view(fst).num_states);
  wf_free(distance);
  wf_fst_free(fst);
  return code;
}
