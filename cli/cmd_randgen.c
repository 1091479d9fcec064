/* cmd_randgen.c - `warpfst randgen`: draws random paths. */
#include "fst_output.h"

int cmd_randgen(int argc, char **argv) {
  const char *output = NULL, *format = NULL;
  wf_randgen_options options;
  cli_parser parser = {.usage = "[IN [OUT]]",
                       .about =
                           "Draws random successful paths. The result has one chain of states for "
                           "each path; all chains start at "
                           "state 0.",
                       .max_args = 2};
  cli_flag_output(&parser, &output, &format);
  cli_table(&parser, "randgen", &options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (parser.num_args == 2) output = parser.args[1];
  wf_fst *fst = NULL, *paths = NULL;
  wf_error err;
  code = cli_read_fst(parser.num_args > 0 ? parser.args[0] : "-", &fst);
  if (code == CLI_OK && wf_randgen(fst, &options, &paths, &err) != WF_OK) code = cli_fail(&err);
  if (code == CLI_OK) code = cli_write_fst(paths, output, format);
  wf_fst_free(paths);
  wf_fst_free(fst);
  return code;
}
