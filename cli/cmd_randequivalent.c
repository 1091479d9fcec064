/* cmd_randequivalent.c - `warpfst randequivalent`: do random paths of each of two fsts cost the
 * same in both? */
#include "compare_fsts.h"

static wf_status compare(const wf_fst *a, const wf_fst *b, const void *user, bool *out_same,
                         wf_error *err) {
  return wf_randequivalent(a, b, user, out_same, err);
}

int cmd_randequivalent(int argc, char **argv) {
  bool quiet = false;
  wf_randequivalent_options options;
  cli_parser parser = {.usage = "FIRST SECOND",
                       .about =
                           "Draws random paths from two fsts and compares what their pairs of "
                           "strings cost in both. Exit code 0 if nothing differs, 1 "
                           "(with the pair) if something does.",
                       .min_args = 2,
                       .max_args = 2};
  cli_flag_bool(&parser, "quiet", 'q', &quiet, "do not report the difference");
  cli_table(&parser, "randequivalent", &options);
  int code = cli_parse(&parser, argc, argv);
  return code >= 0 ? code
                   : cli_compare_fsts(parser.args[0], parser.args[1], compare, &options, quiet);
}
