/* cmd_equal.c - `warpfst equal` and `warpfst isomorphic`: compare two fsts state by state and arc
 * by arc, with the same numbers of states or with any. */
#include "compare_fsts.h"
#include "fst_output.h"

static wf_status compare_equal(const wf_fst *a, const wf_fst *b, const void *user, bool *out_same,
                               wf_error *err) {
  return wf_equal(a, b, (float)*(const double *)user, out_same, err);
}

static wf_status compare_isomorphic(const wf_fst *a, const wf_fst *b, const void *user,
                                    bool *out_same, wf_error *err) {
  return wf_isomorphic(a, b, (float)*(const double *)user, out_same, err);
}

static int run(const char *about, cli_compare_fn compare, int argc, char **argv) {
  double delta = 1.0 / 1024;
  bool quiet = false, check_symbols;
  cli_parser parser = {.usage = "FIRST SECOND", .about = about, .min_args = 2, .max_args = 2};
  cli_flag_f64(&parser, "delta", 0, &delta, "N",
               "weights that differ by less than this are the same (default: 0.0009765625 nats)");
  cli_flag_bool(&parser, "quiet", 'q', &quiet, "do not print the difference");
  cli_flag_check_symbols(&parser, &check_symbols);
  int code = cli_parse(&parser, argc, argv);
  return code >= 0 ? code
                   : cli_compare_fsts(parser.args[0], parser.args[1], compare, &delta,
                                      check_symbols, quiet);
}

int cmd_equal(int argc, char **argv) {
  return run(
      "Compares two fsts state by state and arc by arc. Exit code 0: they are the same. Exit "
      "code 1: they differ; the first difference is printed on standard error.",
      compare_equal, argc, argv);
}

int cmd_isomorphic(int argc, char **argv) {
  return run(
      "Compares two fsts up to the numbers of states and the order of arcs. Exit code 0: they "
      "are the same. Exit code 1: they differ; the first difference is printed on standard error.",
      compare_isomorphic, argc, argv);
}
