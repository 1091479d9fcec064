/* determinize.h - the parts of determinization: subsets, expansion, residual outputs, epsilon
 * closure, witnesses.
 *
 * A state of the result is a subset: elements (state of the input, residual output, residual cost)
 * sorted by state. The residuals are what the way there still owes compared with what the arcs of
 * the result have already put out and charged. Residual outputs are strings of string_pool.h read
 * from their last label. */
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

/* --- subsets, numbered by discovery (determinize_subsets.c)
 * ------------------------------------------------------
 *
 *   where[id]   SINGLE | state      the subset {(state, empty, 0)}, by far the most frequent kind:
 *               an array finds it k                   elements [off[k], off[k + 1]); a hash table
 *               finds it
 */
typedef struct wf__det_subsets {
  WF__VEC(uint32_t) where;
  WF__VEC(uint64_t) off; /* one more than there are subsets of that kind */
  WF__VEC(wf__det_element) elements;
  uint32_t *single; /* [num input states] id, or WF__MAP64_NONE */
  uint64_t *slots;  /* hash << 32 | id; UINT64_MAX: free */
  uint64_t num_hashed;
  int bits;
  double inverse_delta; /* 0: costs are compared exactly */
  uint64_t max_states;
} wf__det_subsets;

wf_status wf__det_subsets_init(wf__det_subsets *subsets, uint64_t num_states, double delta,
                               uint64_t max_states, wf_error *err);
void wf__det_subsets_free(wf__det_subsets *subsets);
static inline void wf__det_subsets_prefetch(const wf__det_subsets *subsets, uint32_t hash) {
  if (subsets->bits != 0)
    __builtin_prefetch(&subsets->slots[hash & (((uint64_t)1 << subsets->bits) - 1)]);
}
uint32_t wf__det_hash(double inverse_delta, const wf__det_element *elements, uint32_t size);
/* Adds a subset, or finds it. Elements sorted by state, and their hash. WF_ERR_NOT_DETERMINIZABLE
 * without a message when it would be one too many. */
wf_status wf__det_subsets_add(wf__det_subsets *subsets, const wf__det_element *elements,
                              uint32_t size, uint32_t hash, uint32_t *out, wf_error *err);
/* The subset {(state, empty, 0)}. */
wf_status wf__det_subsets_add_single(wf__det_subsets *subsets, uint32_t state, uint32_t *out,
                                     wf_error *err);
/* The elements of a subset; good until the next add. `*single` is room for the answer. */
const wf__det_element *wf__det_subsets_get(const wf__det_subsets *subsets, uint32_t id,
                                           wf__det_element *single, uint32_t *size);

/* --- the determinizer's state that its parts share --------------------------------------- */

/* Why it stopped: two outputs, or growth. For the witness. */
typedef struct wf__det_conflict {
  uint32_t state; /* of the input, reached with two outputs; WF__MAP64_NONE: ended with two outputs,
                     or growth */
  int32_t ilabel; /* read last, after what leads to the subset; 0: none */
  uint32_t strings[2];
} wf__det_conflict;

typedef struct wf__det_closure wf__det_closure;

typedef struct wf__determinizer {
  const wf_fst *fst;
  wf_fst_view view;
  wf_determinize_options o;
  wf__strings strings;
  wf__det_subsets subsets;
  wf__csr csr;         /* the result: nextstates are subset ids, olabels strings */
  uint32_t current_id; /* the subset being expanded or interned, for witnesses */
  bool uses_sink;
  wf__det_closure *closure;       /* NULL unless epsilon inputs are followed */
  struct wf__det_worker *workers; /* one a thread */
} wf__determinizer;

/* --- expansion: the arcs out of subsets (determinize_expand.c) --------------------------- */

#define WF__DET_SINK \
  (UINT32_MAX - 1) /* stands for the state that final output strings lead to, numbered last */
#define WF__DET_SEVERAL                                                                           \
  0x80000000u /* in nextstate: the subset is `targets` [the rest]; else it is {(nextstate, empty, \
                 0)} */

typedef struct wf__det_target {
  uint64_t off; /* of its elements */
  uint32_t size, hash;
} wf__det_target;

typedef struct wf__det_expanded {
  uint64_t arc_off;
  uint32_t num_arcs;
  float final_cost;
} wf__det_expanded;

/* A chunk of the pipeline: some subsets in a row, and what expanding them gave. */
typedef struct wf__det_chunk {
  WF__VEC(wf__det_element) input; /* elements of the subsets */
  WF__VEC(uint32_t) input_size;   /* [number of subsets] */
  WF__VEC(wf__det_expanded) states;
  WF__VEC(uint32_t) postponed; /* subsets that need the string pool to themselves, as indices */
  WF__VEC(wf_arc) arcs;
  WF__VEC(wf__det_target) targets;
  WF__VEC(wf__det_element) elements;
} wf__det_chunk;

typedef struct wf__det_candidate {
  uint64_t key; /* ilabel << 32 | next state */
  double cost;
  uint32_t string;
} wf__det_candidate;

/* What one thread works with. */
typedef struct wf__det_worker {
  wf__determinizer *det;
  bool dropped; /* arcs or final costs of infinite cost were left out: the result need not be
                   trimmed */
  bool shared;  /* others work too: the string pool is for reading only, and errors cannot be
                   explained. What fails is done again alone */
  wf__det_chunk *out;
  WF__VEC(wf__det_element) current;
  WF__VEC(wf__det_candidate) found;
  WF__VEC(wf__det_candidate) spare;
  WF__VEC(uint64_t) runs;
  WF__VEC(uint32_t) labels;
} wf__det_worker;

/* Expands subset `index` of a chunk, elements `elements`, into `*state` and the chunk's arcs,
 * targets and their elements. Any failure of a worker that is `shared` means: not now. */
wf_status wf__det_expand(wf__det_worker *worker, const wf__det_element *elements, uint32_t size,
                         wf__det_expanded *state, wf_error *err);
void wf__det_chunk_free(wf__det_chunk *chunk);
void wf__det_worker_free(wf__det_worker *worker);

/* --- residual outputs (determinize_residual.c) ------------------------------------------- */
/* Appends an output label to a residual; refuses residuals that can only come from growth without
 * end. */
wf_status wf__residual_append(wf__det_worker *worker, uint32_t string, int32_t olabel,
                              uint32_t *out, wf_error *err);
/* Longest common prefix of two residuals. */
uint32_t wf__residual_common_prefix(const wf__strings *strings, uint32_t a, uint32_t b);
/* Takes the first prefix_size labels off a residual. */
wf_status wf__residual_without_prefix(wf__det_worker *worker, uint32_t string, uint32_t prefix_size,
                                      uint32_t *out, wf_error *err);

/* --- epsilon closure (determinize_closure.c) --------------------------------------------- */
wf_status wf__det_closure_create(const wf_fst_view *view, wf__det_closure **out, wf_error *err);
void wf__det_closure_free(wf__det_closure *closure);
/* Adds to worker->current what is reached by arcs with epsilon input; the order is no longer by
 * state. One worker at a time. */
wf_status wf__det_closure_apply(wf__det_worker *worker, wf_error *err);

/* --- witnesses (determinize_witness.c); both return the error ---------------------------- */
wf_status wf__fail_nonfunctional(const wf__determinizer *det, const wf__det_conflict *conflict,
                                 wf_error *err);
wf_status wf__fail_growth(const wf__determinizer *det, int32_t ilabel, const char *what,
                          wf_error *err);

#endif
