/* cmd_equivalent.c - `warpfst equivalent`: do two deterministic acceptors accept the same strings
 * at the same costs? */
#include "compare_fsts.h"
#include "fst_output.h"

static wf_status compare(const wf_fst *a, const wf_fst *b, const void *user, bool *out_same,
                         wf_error *err) {
  return wf_equivalent(a, b, (float)*(const double *)user, out_same, err);
}

int cmd_equivalent(int argc, char **argv) {
  double delta = 1.0 / 1024;
  bool quiet = false, check_symbols;
  cli_parser parser = {
      .usage = "FIRST SECOND",
      .about =
          "Compares the strings and costs of two deterministic acceptors without epsilons. Exit "
          "code 0: they are equivalent. Exit code 1: they are not; a string for which they differ "
          "is printed on standard error. For other fsts, see randequivalent.",
      .min_args = 2,
      .max_args = 2};
  cli_flag_f64(&parser, "delta", 0, &delta, "N",
               "costs that differ by less than this are the same (default: 0.0009765625 nats)");
  cli_flag_bool(&parser, "quiet", 'q', &quiet, "do not print the difference");
  cli_flag_check_symbols(&parser, &check_symbols);
  int code = cli_parse(&parser, argc, argv);
  return code >= 0 ? code
                   : cli_compare_fsts(parser.args[0], parser.args[1], compare, &delta,
                                      check_symbols, quiet);
}
