/* parts.c - finds the part of a subcommand that is asked for. */
#include "parts.h"

#include <string.h>

int cli_run_part(const cli_part *parts, size_t num_parts, const char *usage, const char *about, int argc, char **argv) {
  const char *command = argv[0];
  if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
    FILE *out = argc < 2 ? stderr : stdout;
    fprintf(out, "usage: warpfst %s %s\n\n%s\n\n", command, usage, about);
    for (size_t i = 0; i < num_parts; i++) fprintf(out, "  %-*s%s\n", (int)strlen(command) + 15, parts[i].full_name, parts[i].summary);
    fprintf(out, "\n'warpfst %s PART --help' tells the flags.\n", command);
    return argc < 2 ? CLI_USAGE : CLI_OK;
  }
  for (size_t i = 0; i < num_parts; i++) {
    if (strcmp(parts[i].full_name + strlen(command) + 1, argv[1]) != 0) continue;
    static char name[32]; /* the parser wants argv[0], and messages start with it */
    snprintf(name, sizeof name, "%s", parts[i].full_name);
    argv[1] = name;
    return parts[i].run(argc - 1, argv + 1);
  }
  fprintf(stderr, "warpfst %s: no part '%s' ('warpfst %s --help' lists them)\n", command, argv[1], command);
  return CLI_USAGE;
}
