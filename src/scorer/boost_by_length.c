/* boost_by_length.c - a boost for phrases that were listed without one. */
#include "warpfst.h"

enum { MAX_LETTERS = 12 }; /* of a word */

float wf_boost_by_length(const char *phrase, float per_letter) {
  unsigned total = 0, letters = 0;
  for (const char *at = phrase; *at != '\0'; at++) {
    if (*at == ' ' || *at == '\t')
      letters = 0;
    else if (((unsigned char)*at & 0xC0) != 0x80 &&
             ++letters <= MAX_LETTERS) /* not the rest of a letter */
      total++;
  }
  return per_letter * (float)total;
}
