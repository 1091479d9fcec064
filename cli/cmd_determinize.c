/* cmd_determinize.c - `warpfst determinize`. */
#include "fst_output.h"

int cmd_determinize(int argc, char **argv) {
  const char *output = NULL, *format = NULL;
  wf_determinize_options options;
  cli_parser parser = {.usage = "[IN [OUT]] [-o OUT]",
                       .about = "Weighted determinization on the input side, of functional transducers. When the input is not functional, or the result grows beyond "
                                "--max-states, the message shows an input string that tells why.",
                       .max_args = 2};
  cli_flag_output(&parser, &output, &format);
  cli_table(&parser, "determinize", &options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (parser.num_args == 2) output = parser.args[1];
  wf_fst *fst = NULL, *result = NULL;
  wf_error err;
  code = cli_read_fst(parser.num_args > 0 ? parser.args[0] : "-", &fst);
  if (code == CLI_OK) code = wf_determinize(fst, &options, &result, &err) == WF_OK ? cli_write_fst(result, output, format) : cli_fail(&err);
  wf_fst_free(fst);
  wf_fst_free(result);
  return code;
}
