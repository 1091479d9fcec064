/* cmd_compose.c - `warpfst compose`: composition of two or more fsts, from left to right. */
#include <string.h>

#include "fst_output.h"

struct request {
  wf_compose_options options;
  bool stats;
};

static void report(const wf_fst *fst, const char *what, double seconds) {
  wf_fst_view view = wf_fst_get_view(fst);
  fprintf(stderr, "%-32s %12llu %12llu %10.3f %10.0f\n", what, (unsigned long long)view.num_states,
          (unsigned long long)view.num_arcs, seconds, (double)cli_peak_bytes() / (1 << 20));
}

/* Replaces *left by its composition with the fst in a file. */
static int compose_with(const struct request *request, wf_fst **left, const char *path) {
  wf_error err = {0};
  wf_fst *right = NULL, *out = NULL;
  int code = cli_read_fst(path, &right);
  if (code == CLI_OK && request->stats) report(right, path, 0);
  double begin = cli_now_s();
  if (code == CLI_OK && wf_compose(*left, right, &request->options, &out, &err) != WF_OK)
    code = cli_fail(&err);
  wf_fst_free(right);
  if (code != CLI_OK) return code;
  if (request->stats) report(out, "composed", cli_now_s() - begin);
  wf_fst_free(*left);
  *left = out;
  return CLI_OK;
}

static const cli_rule rules[] = {
    {"compose_filter", CLI_EXCLUDES, "filter"},
    {"phi-final", CLI_USELESS_WITHOUT, "phi-label"},
    {NULL, 0, NULL},
};

int cmd_compose(int argc, char **argv) {
  const char *output = NULL, *format = NULL, *filter = NULL;
  struct request request = {.stats = false};
  cli_parser parser = {
      .usage = "A B [C ...] [OUT]",
      .about =
          "Composes A with B, the result with C, and so on. x:y in A and y:z in B give x:z; costs "
          "are added. Inputs need not be sorted.\n"
          "Without --output, the last of three or more names is the output. The "
          "result has the states and arcs of OpenFst's fstcompose\n"
          "on sorted inputs, in the same order. With --order=canonical the order "
          "differs from OpenFst's, but is the same on every device\nand for any "
          "number of threads.",
      .min_args = 2,
      .max_args = -1};
  cli_flag_output(&parser, &output, &format);
  cli_flag_str(&parser, "compose_filter", 0, &filter, "FILTER", "the same as --filter");
  cli_flag_bool(&parser, "stats", 0, &request.stats,
                "report sizes, seconds, and peak memory on standard error");
  cli_table(&parser, "compose", &request.options);
  cli_rules(&parser, rules);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  wf_error err = {0};
  if (filter != NULL && wf_config_set(wf_option_table_find("compose"), &request.options, "filter",
                                      filter, &err) != WF_OK)
    return cli_usage("%s", err.message);
  int num_inputs = parser.num_args;
  if (output == NULL && num_inputs > 2) output = parser.args[--num_inputs];
  wf_fst *result = NULL;
  code = cli_read_fst(parser.args[0], &result);
  if (request.stats)
    fprintf(stderr, "%-32s %12s %12s %10s %10s\n", "", "states", "arcs", "seconds", "peak MiB");
  if (code == CLI_OK && request.stats) report(result, parser.args[0], 0);
  for (int i = 1; i < num_inputs && code == CLI_OK; i++)
    code = compose_with(&request, &result, parser.args[i]);
  if (code == CLI_OK) code = cli_write_fst(result, output, format);
  wf_fst_free(result);
  return code;
}
