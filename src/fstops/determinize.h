/* determinize.h - the parts of determinization: subsets, epsilon closure, witnesses.
 *
 * A state of the result is a subset: elements (state of the input, residual output, residual cost) sorted by state. The residuals are what the
 * way there still owes compared with what the arcs of the result have already put out and charged. Residual outputs are strings of
 * string_pool.h read from their last label. */
#ifndef WF_FSTOPS_DETERMINIZE_H
#define WF_FSTOPS_DETERMINIZE_H

#include "fstops/scc.h"
#include "fstops/shortest_distance.h"
#include "fstops/string_pool.h"

typedef struct wf__det_element {
  uint32_t state;
  uint32_t string;
  float cost;
} wf__det_element;

/* --- subsets, numbered by discovery (determinize_subsets.c) ------------------------------------------------------
 *
 *   where[id]   SINGLE | state            the subset {(state, empty, 0)}, by far the most frequent kind: an array finds it
 *               offset into `elements`    sizes[id] elements from there; a hash table finds it
 */
typedef struct wf__det_subsets {
  WF__VEC(uint64_t) where;
  WF__VEC(uint32_t) sizes;
  WF__VEC(wf__det_element) elements;
  uint32_t *single;  /* [num input states] id, or WF__MAP64_NONE */
  uint64_t *slots;   /* hash << 32 | id; UINT64_MAX: free */
  uint64_t num_hashed;
  int bits;
  double inverse_delta; /* 0: costs are compared exactly */
  uint64_t max_states;
} wf__det_subsets;

wf_status wf__det_subsets_init(wf__det_subsets *subsets, uint64_t num_states, double delta, uint64_t max_states, wf_error *err);
void wf__det_subsets_free(wf__det_subsets *subsets);
/* Elements sorted by state. WF_ERR_NOT_DETERMINIZABLE without a message when it would be one too many. */
wf_status wf__det_subsets_add(wf__det_subsets *subsets, const wf__det_element *elements, uint32_t size, uint32_t *out, wf_error *err);
/* The subset {(state, empty, 0)}. */
wf_status wf__det_subsets_add_single(wf__det_subsets *subsets, uint32_t state, uint32_t *out, wf_error *err);
/* The elements of a subset; good until the next add. `*single` is room for the answer. */
const wf__det_element *wf__det_subsets_get(const wf__det_subsets *subsets, uint32_t id, wf__det_element *single, uint32_t *size);

/* --- the determinizer's state that its parts share -------------------------------------------------------------- */

/* Why it stopped: two outputs, or growth. For the witness. */
typedef struct wf__det_conflict {
  uint32_t state;   /* of the input, reached with two outputs; WF__MAP64_NONE: ended with two outputs, or growth */
  int32_t ilabel;   /* read last, after what leads to the subset; 0: none */
  uint32_t strings[2];
} wf__det_conflict;

typedef struct wf__det_closure wf__det_closure;

typedef struct wf__determinizer {
  const wf_fst *fst;
  wf_fst_view view;
  wf_determinize_options o;
  wf__strings strings;
  wf__det_subsets subsets;
  wf__csr csr; /* the result: nextstates are subset ids, olabels strings */
  WF__VEC(wf__det_element) current;
  uint32_t current_id;
  wf__det_closure *closure; /* NULL unless epsilon inputs are followed */
} wf__determinizer;

/* Appends an output label to a residual; refuses residuals that can only come from growth without end. */
wf_status wf__residual_append(wf__determinizer *det, uint32_t string, int32_t olabel, uint32_t *out, wf_error *err);

/* --- epsilon closure (determinize_closure.c) --------------------------------------------------------------------- */
wf_status wf__det_closure_create(const wf_fst_view *view, wf__det_closure **out, wf_error *err);
void wf__det_closure_free(wf__det_closure *closure);
/* Adds to det->current what is reached by arcs with epsilon input; the order is no longer by state. */
wf_status wf__det_closure_apply(wf__determinizer *det, wf_error *err);

/* --- witnesses (determinize_witness.c); both return the error --------------------------------------------------- */
wf_status wf__fail_nonfunctional(const wf__determinizer *det, const wf__det_conflict *conflict, wf_error *err);
wf_status wf__fail_growth(const wf__determinizer *det, int32_t ilabel, const char *what, wf_error *err);

#endif
