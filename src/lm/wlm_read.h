/* wlm_read.h - the mapped form of a language model: an open .wlm file. */
#ifndef WF_LM_WLM_READ_H
#define WF_LM_WLM_READ_H

#include <stdatomic.h>

#include "base/input.h"
#include "lm/automaton.h"
#include "lm/wlm_file.h"
#include "lm/wlm_table.h"

typedef struct wf__wlm {
  atomic_uint_fast32_t refs;
  atomic_uint_fast32_t num_copies; /* number of references that copies on GPUs hold */
  wf__input input;
  const wf__wlm_header *header; /* in the mapped file */
  wf_symbols *words;
  wf__wlm_view view;
  wf__wlm_arc_table *_Atomic table; /* NULL: none */
} wf__wlm;

/* As wf__wlm_step; uses the table if there is one. */
static inline float wf__wlm_cost(const wf__wlm *lm, uint32_t state, uint32_t word, uint32_t *next,
                                 uint32_t *at) {
  const wf__wlm_arc_table *table = atomic_load_explicit(
      &((wf__wlm *)(uintptr_t)lm)->table, memory_order_acquire); /* costs nothing on x86 */
  if (table != NULL) return wf__wlm_table_step(&lm->view, table, state, word, next, at);
  return wf__wlm_step(&lm->view, state, word, next, at);
}

wf__wlm *wf__wlm_ref(const wf__wlm *lm);
void wf__wlm_free(wf__wlm *lm);
bool wf__wlm_is(const wf__input *input);
/* Opens a model from an input that holds one. Takes ownership of the input, also on failure. */
wf_status wf__wlm_open_input(wf__input *input, wf__wlm **out, wf_error *err);
/* Calls `make` to write a model at a path in the folder, opens it and removes the file's
 * name. */
wf_status wf__wlm_open_made(const char *folder,
                            wf_status (*make)(void *user, const char *path, wf_error *err),
                            void *user, wf__wlm **out, wf_error *err);
/* Opens a file of any format: wf_lm_open_mapped. */
wf_status wf__wlm_open(const char *path, wf__wlm **out, wf_error *err);

/* As wf_lm_knows, wf_lm_step, wf_lm_final, wf__lm_least_cost, wf_lm_verify and wf_lm_make_table. */
bool wf__wlm_has_word(const wf__wlm *lm, int32_t word);
float wf__wlm_query(const wf__wlm *lm, uint32_t state, int32_t word, uint32_t *next,
                    int32_t *order);
float wf__wlm_final(const wf__wlm *lm, uint32_t state, int32_t *order);
float wf__wlm_least_cost(const wf__wlm *lm);
wf_status wf__wlm_verify(const wf__wlm *lm, const wf_progress *progress, wf_error *err);
wf_status wf__wlm_make_table(wf__wlm *lm, const wf_progress *progress, wf_error *err);
/* Sets what a mapped model has to say, but labels. */
void wf__wlm_info(const wf__wlm *lm, wf_lm_info *info);
/* Size of the table; 0: none. */
uint64_t wf__wlm_table_bytes(const wf__wlm *lm);
/* Sets least[w] to the least cost of word w after any history, or less; `negated`: of costs times
 * -1. [num_words of the view] */
wf_status wf__wlm_least_costs(const wf__wlm *lm, bool negated, float *least, wf_error *err);

/* wlm_ngrams.c: the same model in memory, with labels of `words`. */
wf_status wf__automaton_of_wlm(const wf__wlm *lm, const wf_symbols *words, int oov,
                               wf__automaton **out, wf_arpa_stats *stats,
                               const wf_progress *progress, wf_error *err);

#endif
