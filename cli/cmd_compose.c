/* cmd_compose.c - `warpfst compose`: composition of two or more fsts, from left to right. */
#include <stdlib.h>

#include "fst_output.h"
#include "summary.h"

struct request {
  wf_compose_options options;
  bool stats, pairwise;
};

static void report(const wf_fst *fst, const char *what, double seconds) {
  wf_fst_view view = wf_fst_get_view(fst);
  fprintf(stderr, "%-32s %12llu %12llu %10.3f %10.0f\n", what, (unsigned long long)view.num_states,
          (unsigned long long)view.num_arcs, seconds, (double)cli_peak_bytes() / (1 << 20));
}

static int read_fst(const struct request *request, const char *path, wf_fst **out) {
  int code = cli_read_fst(path, out);
  if (code == CLI_OK && request->stats) report(*out, path, 0);
  return code;
}

/* Reads fsts into fsts[1 .. count - 1] and composes them with fsts[0], which the result replaces.
 */
static int compose_with(const struct request *request, wf_fst **fsts, char **paths, size_t count) {
  wf_error err = {0};
  wf_fst *out = NULL;
  int code = CLI_OK;
  for (size_t i = 1; i < count && code == CLI_OK; i++) code = read_fst(request, paths[i], &fsts[i]);
  const double begin = cli_now_s();
  if (code == CLI_OK &&
      wf_compose_n((const wf_fst *const *)fsts, count, &request->options, &out, &err) != WF_OK)
    code = cli_fail(&err);
  if (code == CLI_OK && request->stats) report(out, "composed", cli_now_s() - begin);
  for (size_t i = 0; i < count; i++) {
    wf_fst_free(fsts[i]);
    fsts[i] = NULL;
  }
  fsts[0] = out;
  return code;
}

static int compose_files(const struct request *request, char **paths, size_t count, wf_fst **out) {
  const size_t rights = request->pairwise ? 1 : count - 1; /* fsts on the right of a call */
  wf_fst **fsts = calloc(rights + 1, sizeof *fsts);
  if (fsts == NULL) {
    return cli_out_of_memory();
  }
  int code = read_fst(request, paths[0], &fsts[0]);
  for (size_t i = 0; i + 1 < count && code == CLI_OK; i += rights)
    code = compose_with(request, fsts, paths + i, rights + 1);
  *out = fsts[0];
  free(fsts);
  return code;
}

static void print_json(const wf_fst *fst, double seconds) {
  const wf_fst_view view = wf_fst_get_view(fst);
  const cli_figure figures[] = {{"states", (double)view.num_states},
                                {"arcs", (double)view.num_arcs},
                                {"seconds", seconds},
                                {"peak_bytes", (double)cli_peak_bytes()}};
  cli_figures_json(stderr, figures, sizeof figures / sizeof *figures);
}

static const cli_rule rules[] = {
    {"compose_filter", CLI_EXCLUDES, "filter"},
    {"phi-final", CLI_USELESS_WITHOUT, "phi-label"},
    {"json", CLI_EXCLUDES, "stats"},
    {NULL, 0, NULL},
};

int cmd_compose(int argc, char **argv) {
  const char *output = NULL, *format = NULL, *filter = NULL;
  struct request request = {.stats = false};
  bool json = false;
  cli_parser parser = {
      .usage = "A B [C ...] [OUT]",
      .about =
          "Composes A with B, the result with C, and so on. x:y in A and y:z in B give x:z; costs "
          "are added. Inputs need not be sorted.\n"
          "The compositions before the last are not stored: only their states that the next one "
          "visits are made. With --pairwise each is\ncomposed and trimmed before the next; a GPU "
          "needs that for more than two inputs.\n"
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
  cli_flag_bool(&parser, "pairwise", 0, &request.pairwise,
                "compose two at a time, and trim each result before the next");
  cli_flag_bool(&parser, "json", 0, &json, "print size, seconds and peak memory as JSON");
  cli_table(&parser, "compose", &request.options);
  cli_rules(&parser, rules);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  wf_error err = {0};
  if (filter != NULL && wf_options_set(wf_option_table_find("compose"), &request.options, "filter",
                                       filter, &err) != WF_OK)
    return cli_usage("%s", err.message);
  int num_inputs = parser.num_args;
  if (output == NULL && num_inputs > 2) output = parser.args[--num_inputs];
  wf_fst *result = NULL;
  if (request.stats)
    fprintf(stderr, "%-32s %12s %12s %10s %10s\n", "", "states", "arcs", "seconds", "peak MiB");
  const double begin = cli_now_s();
  code = compose_files(&request, parser.args, (size_t)num_inputs, &result);
  const double seconds = cli_now_s() - begin;
  if (code == CLI_OK) code = cli_write_fst(result, output, format);
  if (code == CLI_OK && json) print_json(result, seconds);
  wf_fst_free(result);
  return code;
}
