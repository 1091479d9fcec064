/* suggest.c - edit distance between short names: insertions, deletions, substitutions and exchanges
 * of two adjacent letters. */
#include "suggest.h"

#include <stdbool.h>
#include <string.h>

enum { LONGEST = 48 };

static bool same(char a, char b) {
  return a == b || ((a == '-' || a == '_') && (b == '-' || b == '_'));
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static size_t edit_distance(const char *a, size_t a_size, const char *b, size_t b_size) {
  size_t rows[LONGEST + 1][LONGEST + 1];
  for (size_t i = 0; i <= a_size; i++) {
    for (size_t j = 0; j <= b_size; j++) {
      if (i == 0 || j == 0) {
        rows[i][j] = i + j;
        continue;
      }
      size_t replaced = rows[i - 1][j - 1] + !same(a[i - 1], b[j - 1]);
      rows[i][j] = least(replaced, least(rows[i - 1][j], rows[i][j - 1]) + 1);
      bool exchanged = i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]);
      if (exchanged) rows[i][j] = least(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a_size][b_size];
}

void cli_suggest(cli_suggestion *suggestion, const char *text, size_t size, const char *name) {
  size_t name_size = strlen(name);
  if (size < 2 || size > LONGEST || name_size > LONGEST) return;
  bool begins = size >= 3 && edit_distance(text, size, name, least(size, name_size)) ==
                                 0; /* `text` abbreviates `name` */
  size_t distance = begins ? 1 : edit_distance(text, size, name, name_size);
  if (distance > (size + 1) / 3 || (suggestion->best != NULL && distance >= suggestion->distance))
    return;
  suggestion->best = name;
  suggestion->distance = distance;
}
