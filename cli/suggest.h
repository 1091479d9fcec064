/* suggest.h - the known name that a mistyped one probably means. */
#ifndef WARPFST_CLI_SUGGEST_H
#define WARPFST_CLI_SUGGEST_H

#include <stddef.h>

typedef struct cli_suggestion {
  const char *best; /* NULL: no name is near */
  size_t distance;
} cli_suggestion;

/* Keeps `name` if fewer edits lead to it from `text` (`size` letters) than to the names before. '-'
 * and '_' are the same. */
void cli_suggest(cli_suggestion *suggestion, const char *text, size_t size, const char *name);

#endif
