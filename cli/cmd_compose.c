/* cmd_compose.c - `warpfst compose`: composition of two fsts. */
#include <string.h>

#include "fst_output.h"

int cmd_compose(int argc, char **argv) {
  const char *output = NULL, *format = NULL, *filter = NULL;
  wf_compose_options options;
  cli_parser parser = {.usage = "A B [OUT]",
                       .about = "Composes two fsts: x:z where A has x:y and B has y:z, costs added. Inputs need not be sorted. States and arcs are those of\n"
                                "OpenFst's fstcompose on sorted inputs, in the same order.",
                       .min_args = 2,
                       .max_args = 3};
  cli_flag_output(&parser, &output, &format);
  cli_flag_str(&parser, "compose_filter", 0, &filter, "FILTER", "the same as --filter");
  cli_table(&parser, "compose", &options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  wf_error err = {0};
  if (filter != NULL && wf_config_set(wf_option_table_find("compose"), &options, "filter", filter, &err) != WF_OK) return cli_usage("%s", err.message);
  if (parser.num_args == 3) output = parser.args[2];
  wf_fst *a = NULL, *b = NULL, *out = NULL;
  code = cli_read_fst(parser.args[0], &a);
  if (code == CLI_OK) code = cli_read_fst(parser.args[1], &b);
  if (code == CLI_OK && wf_compose(a, b, &options, &out, &err) != WF_OK) code = cli_fail(&err);
  wf_fst_free(a);
  wf_fst_free(b);
  if (code == CLI_OK) code = cli_write_fst(out, output, format);
  wf_fst_free(out);
  return code;
}
