/* summary.h - the summary at the end of a command that writes results: a line, or JSON. */
#ifndef WARPFST_CLI_SUMMARY_H
#define WARPFST_CLI_SUMMARY_H

#include "cli.h"

typedef struct cli_summary {
  bool json, quiet;
} cli_summary;
/* Adds --json and --quiet, which exclude each other (CLI_SUMMARY_RULE). */
void cli_summary_flags(cli_parser *parser, cli_summary *summary);
#define CLI_SUMMARY_RULE \
  { "quiet", CLI_EXCLUDES, "json" }

typedef struct cli_figure {
  const char *name; /* NULL: left out */
  double value;
} cli_figure;
/* Prints one line, an object with these figures. */
void cli_figures_json(FILE *out, const cli_figure *figures, size_t count);

#endif
