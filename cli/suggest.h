/* suggest.h - finds the known name closest to a mistyped one. */
#ifndef WARPFST_CLI_SUGGEST_H
#define WARPFST_CLI_SUGGEST_H

#include <stddef.h>

typedef struct cli_suggestion {
  const char *best; /* NULL: no close name */
  size_t distance;
} cli_suggestion;

/* Stores `name` if it is closer to `text` (`size` letters) than the names tried before. '-' and '_'
 * are the same. */
void cli_suggest(cli_suggestion *suggestion, const char *text, size_t size, const char *name);

#endif
