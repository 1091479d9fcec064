/* cmd_shortestpath.c - `warpfst shortestpath`: finds the best path, or the n best paths. */
#include "fst_output.h"

int cmd_shortestpath(int argc, char **argv) {
  const char *output = NULL, *format = NULL;
  wf_shortest_path_options options;
  cli_parser parser = {.usage = "[IN [OUT]]",
                       .about =
                           "Finds the best path of an fst in the tropical semiring, as a chain of "
                           "states. With --nshortest=N, finds the "
                           "N best paths: state 0 of the result has an epsilon arc to "
                           "each of them, the best first.",
                       .max_args = 2};
  cli_flag_output(&parser, &output, &format);
  cli_table(&parser, "shortest_path", &options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (parser.num_args == 2) output = parser.args[1];
  wf_fst *fst = NULL, *best = NULL;
  wf_error err;
  code = cli_read_fst(parser.num_args > 0 ? parser.args[0] : "-", &fst);
  if (code == CLI_OK && wf_shortest_path(fst, &options, &best, &err) != WF_OK)
    code = cli_fail(&err);
  if (code == CLI_OK) code = cli_write_fst(best, output, format);
  wf_fst_free(best);
  wf_fst_free(fst);
  return code;
}
