/* parts.h - subcommands of subcommands: `warpfst lm query` and the like. */
#ifndef WARPFST_CLI_PARTS_H
#define WARPFST_CLI_PARTS_H

#include "cli.h"

typedef struct cli_part {
  const char *full_name; /* "lm query" */
  const char *summary;
  int (*run)(int argc, char **argv); /* argv[0] is the full name */
} cli_part;

/* Runs the part that argv[1] names; prints the list if it names none. `usage`: "PART LM [ARGUMENTS]
 * [FLAGS]"; `about`: a sentence or two. */
int cli_run_part(const cli_part *parts, size_t num_parts, const char *usage, const char *about,
                 int argc, char **argv);

#endif
