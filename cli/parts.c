/* parts.c - finds and runs the subcommand of a command, such as `query` of `warpfst lm`. */
#include "parts.h"

#include <string.h>

#include "help.h"
#include "suggest.h"

int cli_run_part(const cli_part *parts, size_t num_parts, const char *usage, const char *about,
                 int argc, char **argv) {
  const char *command = argv[0];
  if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
      strcmp(argv[1], "help") == 0) {
    FILE *out = argc < 2 ? stderr : stdout;
    cli_help_usage(out, command, usage);
    fprintf(out, "\n");
    cli_help_text(out, about);
    fprintf(out, "\n");
    for (size_t i = 0; i < num_parts; i++) {
      char left[48];
      snprintf(left, sizeof left, "  %s", parts[i].full_name);
      cli_help_row(out, strlen(command) + 17, left, parts[i].summary);
    }
    fprintf(out, "\n");
    char pointer[96];
    snprintf(pointer, sizeof pointer, "'warpfst help %s PART' lists the flags.", command);
    cli_help_text(out, pointer);
    return argc < 2 ? CLI_USAGE : CLI_OK;
  }
  for (size_t i = 0; i < num_parts; i++) {
    if (strcmp(parts[i].full_name + strlen(command) + 1, argv[1]) != 0) continue;
    static char name[32]; /* argv[0] of the part; messages start with it */
    snprintf(name, sizeof name, "%s", parts[i].full_name);
    argv[1] = name;
    return parts[i].run(argc - 1, argv + 1);
  }
  cli_suggestion near = {0};
  char list[256] = "";
  for (size_t i = 0; i < num_parts; i++) {
    const char *name = parts[i].full_name + strlen(command) + 1;
    cli_suggest(&near, argv[1], strlen(argv[1]), name);
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i > 0 ? ", " : "", name);
  }
  cli_set_command(command);
  if (near.best != NULL)
    return cli_usage("unknown subcommand '%s': did you mean '%s'? Subcommands: %s", argv[1],
                     near.best, list);
  return cli_usage("unknown subcommand '%s', expected one of %s", argv[1], list);
}
