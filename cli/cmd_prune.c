/* cmd_prune.c - `warpfst prune`: removes paths that are far from the best. */
#include "fst_output.h"

int cmd_prune(int argc, char **argv) {
  const char *output = NULL, *format = NULL;
  wf_prune_options options;
  cli_parser parser = {.usage = "[IN [OUT]]",
                       .about =
                           "Removes the arcs and states of an fst in the tropical semiring that "
                           "are on no path whose cost is within "
                           "--weight of the best.",
                       .max_args = 2};
  cli_flag_output(&parser, &output, &format);
  cli_table(&parser, "prune", &options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (parser.num_args == 2) output = parser.args[1];
  wf_fst *fst = NULL, *pruned = NULL;
  wf_error err;
  code = cli_read_fst(parser.num_args > 0 ? parser.args[0] : "-", &fst);
  if (code == CLI_OK && wf_prune(fst, &options, &pruned, &err) != WF_OK) code = cli_fail(&err);
  if (code == CLI_OK) code = cli_write_fst(pruned, output, format);
  wf_fst_free(pruned);
  wf_fst_free(fst);
  return code;
}
