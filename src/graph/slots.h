/* slots.h - where the fsts of a recipe (recipe.h) are, and operations on them.
 *
 * A slot is a variable that owns an fst. With a GPU, the operations keep it in the GPU's memory:
 * each takes its input from there and leaves its result there. The CPU does what the GPU does not,
 * or has no room for; then the fst is copied to host memory, and back for the next operation. The
 * results are the same. */
#ifndef WF_GRAPH_SLOTS_H
#define WF_GRAPH_SLOTS_H

#include "base/error.h"
#include "fstops/device_batch.h"

typedef struct wf__slot {
  wf_fst *fst;            /* in host memory; NULL: not there */
  wf__gpu_batch *gpu;     /* the same fst in a GPU's memory; NULL: not there */
  wf_symbols *symbols[2]; /* those of an fst that is only on a GPU; NULL: none */
} wf__slot;

typedef struct wf__step_runner {
  wf_graph_step_fn step_fn; /* may be NULL */
  void *step_user;
  const wf_progress *progress;
  bool copy_steps;     /* step_fn gets the results that are on a GPU, too */
  bool keep_on_device; /* the finished graph stays in the GPU's memory */
  wf__gpu_batch *gpu;  /* an empty batch on the GPU that runs the steps; NULL: the CPU does */
  const char *stage;   /* of the step that runs */
  wf__slot *made;      /* what the last step made */
} wf__step_runner;

/* Prepares the GPU that `device` names. NULL, "" and "cpu": no GPU. End with wf__step_runner_end,
 * also on failure. */
wf_status wf__step_runner_begin(wf__step_runner *runner, const char *device, wf_error *err);
void wf__step_runner_end(wf__step_runner *runner);

/* Stores an fst in a slot as the result of a step. Frees the previous one. */
void wf__slot_set(wf__step_runner *runner, wf__slot *slot, wf_fst *fst);
void wf__slot_clear(wf__slot *slot);
/* The fst of a slot in host memory, which the slot keeps. Copies it from the GPU if need be. */
wf_status wf__slot_fst(wf__slot *slot, wf_fst **out, wf_error *err);

/* The finished graph: like wf__slot_fst, but with keep_on_device in unified memory and without
 * symbols, if the GPU made it and the system has such memory. */
wf_status wf__slot_finished(const wf__step_runner *runner, wf__slot *slot, wf_fst **out,
                            wf_error *err);

bool wf__slot_is_empty(const wf__slot *slot); /* whether the fst has no states */

/* An operation that replaces the fst in a slot. */
typedef struct wf__slot_operation {
  wf_status (*on_gpu)(const wf__gpu_batch *in, const void *user, wf__gpu_batch **out,
                      wf_error *err); /* NULL: there is none */
  wf_status (*on_cpu)(const wf_fst *in, const void *user, wf_fst **out, wf_error *err);
  bool new_ilabels; /* the symbols of the input labels no longer apply */
} wf__slot_operation;
wf_status wf__slot_apply(wf__step_runner *runner, wf__slot *slot,
                         const wf__slot_operation *operation, const void *user, wf_error *err);

/* Sorts the arcs of an fst in host memory by output label. */
wf_status wf__slot_sort_olabels(wf__step_runner *runner, wf__slot *slot, wf_error *err);

/* out = a o b, with the states in OpenFst's order if `ordered`; otherwise their order depends on
 * the device. Clears a and b; out may be b. Fails if the result is empty. */
typedef struct wf__step_composition {
  int32_t phi_label;
  int64_t max_states;
  bool ordered;
} wf__step_composition;
wf_status wf__step_compose(wf__step_runner *runner, wf__slot *a, wf__slot *b,
                           const wf__step_composition *how, wf__slot *out, wf_error *err);

#endif
