/* print_strings.h - prints the strings of an fst's successful paths. */
#ifndef WARPFST_CLI_PRINT_STRINGS_H
#define WARPFST_CLI_PRINT_STRINGS_H

#include "cli.h"

/* How labels become text: symbols of tables (numbers without a table), bytes, or Unicode. */
typedef enum cli_token_type { CLI_SYMBOLS, CLI_BYTES, CLI_UTF8 } cli_token_type;

/* Finds the type by its name: "symbol", "byte" or "utf8". Returns CLI_OK or CLI_USAGE. */
int cli_token_type_of(const char *name, cli_token_type *out);
/* Prints a line for each path, in the order of arcs: `key` and a tab, unless it is NULL; the input string; a tab and the output string
 * unless the fst is an acceptor; a tab and the cost. Stops with CLI_LIMIT after `limit` paths.
 * Returns CLI_OK, or the exit code of an error, which it prints. */
int cli_print_strings(const wf_fst *fst, const wf_symbols *const tables[2], cli_token_type type,
                      int64_t limit, const char *key, const char *output);

#endif
