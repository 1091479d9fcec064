/* unary.c - the runner of subcommands with one fst in and one out. */
#include "unary.h"

#include "fst_output.h"

int cli_run_unary(cli_parser *parser, int argc, char **argv, cli_operation op, void *options, void (*adjust)(void *options)) {
  const char *output = NULL, *format = NULL;
  parser->usage = "[IN [OUT]]";
  parser->max_args = 2;
  cli_flag_output(parser, &output, &format);
  int code = cli_parse(parser, argc, argv);
  if (code >= 0) return code;
  if (adjust != NULL) adjust(options);
  if (parser->num_args == 2) output = parser->args[1];
  wf_error err = {0};
  wf_fst *in = NULL, *out = NULL;
  code = cli_read_fst(parser->num_args > 0 ? parser->args[0] : "-", &in);
  if (code == CLI_OK && op(in, options, &out, &err) != WF_OK) code = cli_fail(&err);
  wf_fst_free(in);
  if (code == CLI_OK) code = cli_write_fst(out, output, format);
  wf_fst_free(out);
  return code;
}
