/* graph_steps.h - runs the steps of a graph pipeline, and the operations that the steps of CTC and
 * HMM graphs share. A pipeline is a table of steps. Each step makes one fst, whose size and time
 * are reported to the caller.
 *
 * A slot is a variable that owns an fst. */
#ifndef WF_GRAPH_GRAPH_STEPS_H
#define WF_GRAPH_GRAPH_STEPS_H

#include "base/error.h"

typedef struct wf__step {
  const char *name, *file; /* as in wf_graph_step */
  const char *stage;       /* for progress and messages */
  wf_status (*run)(void *build, wf_error *err);
} wf__step;

typedef struct wf__step_runner {
  wf_graph_step_fn step_fn; /* may be NULL */
  void *step_user;
  const wf_progress *progress;
  const wf_fst *made; /* the fst that the last step made */
} wf__step_runner;

/* Runs step `i` of `count`. */
wf_status wf__step_run(wf__step_runner *runner, const wf__step *step, size_t i, size_t count,
                       void *build, wf_error *err);

/* Stores an fst in a slot as the result of a step. Frees the previous one. */
void wf__slot_set(wf__step_runner *runner, wf_fst **slot, wf_fst *fst);
void wf__slot_clear(wf_fst **slot);

/* These replace the fst in a slot by the result of an operation on it. */
wf_status wf__slot_sort_olabels(wf__step_runner *runner, wf_fst **slot, wf_error *err);
wf_status wf__slot_determinize(wf__step_runner *runner, wf_fst **slot, bool allow_nonfunctional,
                               int64_t max_states, wf_error *err);
wf_status wf__slot_minimize(wf__step_runner *runner, wf_fst **slot, bool push_weights,
                            wf_error *err);
wf_status wf__slot_push(wf__step_runner *runner, wf_fst **slot, wf_error *err);
/* *out = a o b. Fails if the result is empty. */
wf_status wf__step_compose(const wf_fst *a, const wf_fst *b, int32_t phi_label, int64_t max_states,
                           wf_fst **out, wf_error *err);

#endif
