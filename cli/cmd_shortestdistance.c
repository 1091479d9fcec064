/* cmd_shortestdistance.c - `warpfst shortestdistance`: prints a line "state cost" for each state,
 * as OpenFst's fstshortestdistance does. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "fst_output.h"

static bool print_distances(FILE *file, const float *distance, uint64_t num_states) {
  for (uint64_t s = 0; s < num_states; s++) {
    if (distance[s] == INFINITY)
      fprintf(file, "%llu\tInfinity\n", (unsigned long long)s);
    else
      fprintf(file, "%llu\t%.9g\n", (unsigned long long)s, (double)distance[s]);
  }
  return ferror(file) == 0 && fflush(file) == 0;
}

/* Writes to a temporary file and renames it, so that the output is never incomplete. */
static int write_distances(const char *output, const float *distance, uint64_t num_states) {
  bool standard = output == NULL || strcmp(output, "-") == 0, fine;
  char temporary[4096];
  if (standard) {
    fine = print_distances(stdout, distance, num_states);
  } else {
    int size = snprintf(temporary, sizeof temporary, "%s.tmp.%ld", output, (long)getpid());
    FILE *file = size > 0 && (size_t)size < sizeof temporary ? fopen(temporary, "w") : NULL;
    fine = file != NULL && print_distances(file, distance, num_states);
    if (file != NULL) {
      fine = fclose(file) == 0 && fine && rename(temporary, output) == 0;
      if (!fine) remove(temporary);
    }
  }
  if (!fine) cli_note("%s: cannot write", standard ? "standard output" : output);
  return fine ? CLI_OK : CLI_INPUT;
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
