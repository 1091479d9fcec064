/* cmd_randequivalent.c - `warpfst randequivalent`: draws random paths of two fsts and compares the
 * costs of their strings in both. */
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
                           "Draws random paths from two fsts and compares the costs of their pairs "
                           "of input and output "
                           "strings in both. Exit code 0: no cost differs. Exit code 1: a cost "
                           "differs; the pair of strings is printed on standard error.",
                       .min_args = 2,
                       .max_args = 2};
  cli_flag_bool(&parser, "quiet", 'q', &quiet, "do not print the difference");
  cli_table(&parser, "randequivalent", &options);
  int code = cli_parse(&parser, argc, argv);
  return code >= 0
             ? code
             : cli_compare_fsts(parser.args[0], parser.args[1], compare, &options, true, quiet);
}
