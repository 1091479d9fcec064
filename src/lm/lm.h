/* lm.h - a language model in one of two forms, or in both.
 *
 *   automaton   in memory (automaton.h): read from ARPA, KenLM's or Sphinx's file, or made here
 *   mapped      a .wlm file (wlm_read.h)
 *
 * Queries use the form in which the model was opened; `words` has its labels. The other form is made
 * when a call needs it, and kept. Both forms have the same n-grams and states. The numbers of the
 * states differ. */
#ifndef WF_LM_LM_H
#define WF_LM_LM_H

#include <pthread.h>

#include "lm/automaton.h"
#include "lm/wlm_read.h"

struct wf_lm {
  atomic_int refs;
  bool is_mapped; /* queries use `mapped` */
  int32_t order;
  uint64_t num_states;
  wf_symbols *words;
  int32_t *word_of; /* [num_labels] word of the mapped form for each label of `words`, or -1. NULL:
                       labels are words */
  int64_t num_labels;
  char *path; /* of the file, for messages */
  pthread_mutex_t making;
  wf__automaton *_Atomic automaton; /* NULL: not made yet */
  wf__wlm *_Atomic mapped;
};

/* Makes a model of one form. Takes ownership of it, also on failure. */
wf_status wf__lm_of_automaton(wf__automaton *automaton, const char *path, wf_lm **out,
                              wf_error *err);
/* The forms, made if need be; borrowed from the model. The automaton has the labels of lm->words;
 * that of a difference is refused. */
wf_status wf__lm_automaton(const wf_lm *lm, const wf__automaton **out, wf_error *err);
wf_status wf__lm_mapped(const wf_lm *lm, wf__wlm **out, wf_error *err);
/* As wf__lm_automaton, also of a difference. */
wf_status wf__lm_signed_automaton(const wf_lm *lm, const wf__automaton **out, wf_error *err);

/* No word costs less after any history; -infinity is possible. Reads all n-grams. */
float wf__lm_least_cost(const wf_lm *lm);

#endif
