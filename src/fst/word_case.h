/* word_case.h - finds words that a list has only in another case, for helpful messages: the list
 * has "mark", the text has "MARK". */
#ifndef WF_FST_WORD_CASE_H
#define WF_FST_WORD_CASE_H

#include "base/input.h"

/* A zero-initialised wf__word_case is empty. */
typedef struct wf__word_case {
  wf_symbols *lower;  /* the list's words in lower case; NULL if there are none */
  uint64_t num_found; /* missing words that the list has in another case */
  char first[64];     /* the first of them, cut at a character boundary if it is too long */
} wf__word_case;

/* Adds a word of the list. */
wf_status wf__word_case_add(wf__word_case *cases, wf__span word, wf_error *err);
/* Looks up a word that the list does not have as it is written, and counts it if the list has it in
 * another case. */
wf_status wf__word_case_missing(wf__word_case *cases, wf__span word, wf_error *err);
void wf__word_case_free(wf__word_case *cases);

#endif
