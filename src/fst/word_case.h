/* word_case.h - words that are missing in a list, but would not be in another case: MARK where the
 * list has mark. */
#ifndef WF_FST_WORD_CASE_H
#define WF_FST_WORD_CASE_H

#include "base/input.h"

/* Zero-initialised is empty. */
typedef struct wf__word_case {
  wf_symbols *lower;  /* words of the list in lower case; NULL: none yet */
  uint64_t num_found; /* missing words that are there in another case */
  char first[64];     /* of these, cut at a character */
} wf__word_case;

/* A word of the list. */
wf_status wf__word_case_add(wf__word_case *cases, wf__span word, wf_error *err);
/* A word that is missing in it. */
wf_status wf__word_case_missing(wf__word_case *cases, wf__span word, wf_error *err);
void wf__word_case_free(wf__word_case *cases);

#endif
