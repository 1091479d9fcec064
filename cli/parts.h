/* parts.h - commands with subcommands ("parts"), such as `warpfst lm query`. */
#ifndef WARPFST_CLI_PARTS_H
#define WARPFST_CLI_PARTS_H

#include "cli.h"

typedef struct cli_part {
  const char *full_name; /* "lm query" */
  const char *summary;
  int (*run)(int argc, char **argv); /* argv[0] is the full name */
} cli_part;

/* Runs the part named by argv[1], or prints the list of parts if there is no argument or --help.
 * `usage`: "PART LM [ARGUMENTS] [FLAGS]"; `about`: one or two sentences. */
int cli_run_part(const cli_part *parts, size_t num_parts, const char *usage, const char *about,
                 int argc, char **argv);

#endif
