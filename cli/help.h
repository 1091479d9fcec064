/* help.h - text for people: wrapped to the width of the terminal. */
#ifndef WARPFST_CLI_HELP_H
#define WARPFST_CLI_HELP_H

#include "cli.h"

/* Prints paragraphs. A line that does not end a sentence goes on in the next line. Lines that begin
 * with blanks are kept as they are; a command among them that is too long is continued with '\'. */
void cli_help_text(FILE *out, const char *text);
/* Prints `left`, and `right` beside it from `column` on. */
void cli_help_row(FILE *out, size_t column, const char *left, const char *right);
/* Prints "usage: warpfst COMMAND USAGE". */
void cli_help_usage(FILE *out, const char *command, const char *usage);
/* Prints the help of a command: usage, description, and a row for each flag and option. */
void cli_help(const cli_parser *parser);

#endif
