/* lm_cover.h - the words of a graph in a language model: their names, and how many it knows. */
#ifndef WF_SCORER_LM_COVER_H
#define WF_SCORER_LM_COVER_H

#include "base/error.h"

/* The name of a word in a language model: a space is <space> there, since spaces separate the words
 * of the model's text. */
const char *wf__lm_name(const char *text);

/* Counts the words of a table. A zero-initialised wf__lm_cover is empty. */
typedef struct wf__lm_cover {
  uint64_t num_words, num_unknown;
  wf_tally unknown; /* the first ones */
} wf__lm_cover;

/* Counts a word, unless it is none that is said: <eps>, #0, <unk>, [PAD], ... */
wf_status wf__lm_cover_add(wf__lm_cover *cover, const char *text, bool is_known, wf_error *err);
/* Warns if the model lacks half of the words or more, or a tenth if it has no unknown word: it is
 * probably one of other words. */
void wf__lm_cover_warn(const wf__lm_cover *cover, bool has_unk);
void wf__lm_cover_free(wf__lm_cover *cover);

#endif
