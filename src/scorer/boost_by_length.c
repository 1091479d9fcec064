/* boost_by_length.c - a boost for phrases that were listed without one. */
#include <math.h>
#include <string.h>

#include "graph/token_marks.h"
#include "warpfst.h"

enum { MAX_LETTERS = 12 }; /* of a word */

/* Whether two words or more are in the text. In names of tokens, "▁m ar k" or "m ##ar ##k", words
 * are what the marks say. */
static bool is_phrase(const char *text) {
  int num_words = 0;
  const bool starts = strstr(text, wf__token_start) != NULL;
  for (; *text != '\0'; text += strcspn(text, " \t")) {
    text += strspn(text, " \t");
    if (*text == '\0') break;
    const bool begins = starts ? strncmp(text, wf__token_start, strlen(wf__token_start)) == 0
                               : strncmp(text, wf__token_rest, strlen(wf__token_rest)) != 0;
    num_words += num_words == 0 || begins;
  }
  return num_words > 1;
}

float wf_boost_by_length(const char *phrase, float per_letter) {
  unsigned total = 0, letters = 0;
  if (isnan(per_letter))
    per_letter = is_phrase(phrase) ? WF_BOOST_PER_LETTER_OF_PHRASES : WF_BOOST_PER_LETTER;
  for (const char *at = phrase; *at != '\0'; at++) {
    if (*at == ' ' || *at == '\t')
      letters = 0;
    else if (((unsigned char)*at & 0xC0) != 0x80 &&
             ++letters <= MAX_LETTERS) /* not the rest of a letter */
      total++;
  }
  return per_letter * (float)total;
}
