/* cmd_isomorphic.c - `warpfst isomorphic`: compares two fsts up to the numbers of states. */
#include "compare_fsts.h"

static wf_status compare(const wf_fst *a, const wf_fst *b, const void *user, bool *out_same,
                         wf_error *err) {
  return wf_isomorphic(a, b, (float)*(const double *)user, out_same, err);
}

int cmd_isomorphic(int argc, char **argv) {
  double delta = 1.0 / 1024;
  bool quiet = false;
  cli_parser parser = {
      .usage = "FIRST SECOND",
      .about =
          "Compares two fsts up to the numbers of states and the order of arcs. Exit code 0: they "
          "are the same. Exit code 1: they differ; the first difference is printed on standard "
          "error.",
      .min_args = 2,
      .max_args = 2};
  cli_flag_f64(&parser, "delta", 0, &delta, "N",
               "weights that differ by less than this are the same (default: 0.0009765625 nats)");
  cli_flag_bool(&parser, "quiet", 'q', &quiet, "do not print the difference");
  int code = cli_parse(&parser, argc, argv);
  return code >= 0 ? code
                   : cli_compare_fsts(parser.args[0], parser.args[1], compare, &delta, quiet);
}
