/* grammar_words.h - the words of a grammar that is written as text, and their labels. */
#ifndef WF_GRAPH_GRAMMAR_WORDS_H
#define WF_GRAPH_GRAMMAR_WORDS_H

#include "base/input.h"

/* Zero-initialised, with `given`, is empty. */
typedef struct wf__grammar_words {
  const wf_symbols *given; /* borrowed; NULL: a table is made of the words */
  wf_symbols *found;       /* without `given`: the words in the order of their first use */
  /* set by wf__grammar_words_close */
  wf_symbols *table; /* `given`, or <eps> 0 and the words in byte order */
  int32_t *labels;   /* the label of each number; NULL: numbers are labels */
} wf__grammar_words;

/* Sets *out to the number of a word. Errors, without the place: a reserved word; with `given`, a
 * word that it lacks. */
wf_status wf__grammar_words_add(wf__grammar_words *words, wf__span text, uint32_t *out,
                                wf_error *err);
wf_status wf__grammar_words_close(wf__grammar_words *words, wf_error *err);
void wf__grammar_words_free(wf__grammar_words *words);
/* After wf__grammar_words_close. */
static inline int32_t wf__grammar_words_label(const wf__grammar_words *words, uint32_t number) {
  return words->labels != NULL ? words->labels[number] : (int32_t)number;
}

#endif
