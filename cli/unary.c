/* unary.c - runs subcommands that read one fst and write one fst. */
#include "unary.h"

#include "fst_output.h"

int cli_run_unary(cli_parser *parser, int argc, char **argv, cli_operation op, void *options,
                  void (*adjust)(void *options)) {
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

wf_status cli_on_device(const wf_fst *in, const char *device, cli_batch_operation operate,
                        const void *options, wf_fst **out, wf_error *err) {
  wf_fst_batch *batch, *made = NULL;
  wf_status status = wf_fst_batch_create(&in, 1, device, &batch, err);
  if (status == WF_OK) status = operate(batch, options, &made, err);
  if (status == WF_OK) status = wf_fst_batch_to_fst(made, 0, out, err);
  wf_fst_batch_free(made);
  wf_fst_batch_free(batch);
  return status;
}

void cli_flag_device(cli_parser *parser, const char **device) {
  cli_flag_str(parser, "device", 0, device, "DEVICE",
               "device: cpu, cuda or cuda:N (default: cpu); same result");
}
