/* wlm_read.h - an open large language model. */
#ifndef WF_LM_WLM_READ_H
#define WF_LM_WLM_READ_H

#include <stdatomic.h>

#include "base/input.h"
#include "lm/wlm_file.h"
#include "lm/wlm_table.h"

struct wf_wlm {
  atomic_uint_fast32_t refs;
  atomic_uint_fast32_t num_copies; /* number of references that copies on GPUs hold */
  wf__input input;
  const wf__wlm_header *header; /* in the mapped file */
  wf_symbols *words;
  wf__wlm_view view;
  wf__wlm_arc_table table; /* table.memory NULL: none */
};

/* As wf__wlm_step; uses the table if there is one. */
static inline float wf__wlm_cost(const wf_wlm *lm, uint32_t state, uint32_t word, uint32_t *next,
                                 uint32_t *at) {
  if (lm->table.memory != NULL)
    return wf__wlm_table_step(&lm->view, &lm->table, state, word, next, at);
  return wf__wlm_step(&lm->view, state, word, next, at);
}

/* Sets least[w] to the least cost of word w after any history, or less; `negated`: of costs times
 * -1. [num_words of the view] */
wf_status wf__wlm_least_costs(const wf_wlm *lm, bool negated, float *least, wf_error *err);
bool wf__wlm_is(const wf__input *input);
/* Opens a model from an input that holds one. Takes ownership of the input, also on failure. */
wf_status wf__wlm_open_input(wf__input *input, wf_wlm **out, wf_error *err);
/* The same from a file. */
wf_status wf__wlm_open_file(const char *path, wf_wlm **out, wf_error *err);
/* Calls `make` to write a model at a path in the folder, opens it and removes the file's
 * name. */
wf_status wf__wlm_open_made(const char *folder,
                            wf_status (*make)(void *user, const char *path, wf_error *err),
                            void *user, wf_wlm **out, wf_error *err);

#endif
