/* cmd_shortestdistance.c - `warpfst shortestdistance`: prints a line "state cost" for each state,
 * as OpenFst's fstshortestdistance does. */
#include <math.h>

#include "fst_output.h"
#include "output_file.h"

static int write_distances(const char *path, const float *distance, uint64_t num_states) {
  cli_output out;
  wf_error err;
  if (cli_output_open(&out, path, &err) != WF_OK) return cli_fail(&err);
  for (uint64_t s = 0; s < num_states; s++) {
    if (distance[s] == INFINITY)
      fprintf(out.file, "%llu\tInfinity\n", (unsigned long long)s);
    else
      fprintf(out.file, "%llu\t%.9g\n", (unsigned long long)s, (double)distance[s]);
  }
  return cli_output_close(&out, WF_OK, &err) == WF_OK ? CLI_OK : cli_fail(&err);
}

int cmd_shortestdistance(int argc, char **argv) {
  const char *output = NULL;
  wf_shortest_distance_options options;
  cli_parser parser = {.usage = "[IN [OUT]] [-o OUT]",
                       .about =
                           "Prints a line 'state distance' for each state. The distance is the "
                           "semiring's sum of the costs of all paths from the start "
                           "to the state, or with --reverse from the state to the final states.",
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
  if (code == CLI_OK && wf_shortest_distance(fst, &options, &distance, &err) != WF_OK)
    code = cli_fail(&err);
  if (code == CLI_OK) code = write_distances(output, distance, wf_fst_get_view(fst).num_states);
  wf_free(distance);
  wf_fst_free(fst);
  return code;
}
