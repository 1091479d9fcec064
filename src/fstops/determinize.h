/* determinize.h - the parts of determinization: subsets, expansion, residual outputs, epsilon
 * closure, witnesses.
 *
 * A state of the result is a subset: elements (state of the input, residual output, residual cost)
 * sorted by state. The residuals are the part of the output and of the cost of the paths to that
 * state which the arcs of the result have not emitted yet. A residual output is a string of
 * string_pool.h that lists its labels from the last to the first. */
#ifndef WF_FSTOPS_DETERMINIZE_H
#define WF_FSTOPS_DETERMINIZE_H

#include "fstops/scc.h"
#include "fstops/shortest_distance.h"
#include "fstops/string_pool.h"

/* det_type=nonfunctional: a state may be in a subset several times, with different strings. */
#define WF__DET_ALL_OUTPUTS 1

typedef struct wf__det_element {
  uint32_t state;
  uint32_t string;
  float cost;
} wf__det_element;

/* --- subsets, numbered in order of discovery (determinize_subsets.c) ---------------------
 *
 *   where[id]   SINGLE | state   the subset {(state, empty, 0)}, by far the most frequent kind; an
 *                                array finds it by state
 *               k                elements [off[k], off[k + 1]); a hash table finds it
 */
typedef struct wf__det_subsets {
  WF__VEC(uint32_t) where;
  WF__VEC(uint64_t) off; /* [number of hashed subsets + 1] */
  WF__VEC(wf__det_element) elements;
  uint32_t *single; /* [number of input states] id, or WF__MAP64_NONE */
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
/* Finds a subset or adds it, and sets `*out` to its id. The elements must be sorted by state;
 * `hash` is their wf__det_hash. Returns WF_ERR_NOT_DETERMINIZABLE, without a message, if there
 * would be more than max_states. */
wf_status wf__det_subsets_add(wf__det_subsets *subsets, const wf__det_element *elements,
                              uint32_t size, uint32_t hash, uint32_t *out, wf_error *err);
/* The same for the subset {(state, empty, 0)}. */
wf_status wf__det_subsets_add_single(wf__det_subsets *subsets, uint32_t state, uint32_t *out,
                                     wf_error *err);
/* Returns the elements of a subset. They are valid until the next add. `*single` is storage that
 * the result may use. */
const wf__det_element *wf__det_subsets_get(const wf__det_subsets *subsets, uint32_t id,
                                           wf__det_element *single, uint32_t *size);

/* --- the determinizer's state that its parts share --------------------------------------- */

/* The reason for a failure, from which the error message is made. */
typedef struct wf__det_conflict {
  /* state of the input that is reached with two outputs; WF__MAP64_NONE if the two outputs are
   * those of complete paths */
  uint32_t state;
  int32_t ilabel; /* the label read after reaching the subset; 0: none */
  uint32_t strings[2];
} wf__det_conflict;

typedef struct wf__det_closure wf__det_closure;
typedef struct wf__det_closure_scratch wf__det_closure_scratch;

typedef struct wf__determinizer {
  const wf_fst *fst;
  wf_fst_view view;
  wf_determinize_options o;
  wf__strings strings;
  wf__det_subsets subsets;
  /* the result; until the end, nextstates are subset ids and olabels are strings */
  wf__csr csr;
  uint32_t current_id; /* the subset that is being expanded or interned, for error messages */
  bool uses_sink;
  wf__det_closure *closure;       /* NULL unless arcs with input epsilon are followed */
  struct wf__det_worker *workers; /* one per thread */
} wf__determinizer;

/* --- expansion: the arcs out of subsets (determinize_expand.c) --------------------------- */

/* Stands for the added final state that arcs with final output strings lead to. It gets the last
 * number. */
#define WF__DET_SINK (UINT32_MAX - 1)
/* Flag in nextstate: the other bits are an index in `targets`. Without it, the target is the subset
 * {(nextstate, empty, 0)}. */
#define WF__DET_SEVERAL 0x80000000u

typedef struct wf__det_target {
  uint64_t off; /* of its first element in wf__det_chunk.elements */
  uint32_t size, hash;
} wf__det_target;

typedef struct wf__det_expanded {
  uint64_t arc_off;
  uint32_t num_arcs;
  float final_cost;
} wf__det_expanded;

/* A chunk of the pipeline: a range of subsets, and the result of expanding them. */
typedef struct wf__det_chunk {
  WF__VEC(wf__det_element) input; /* elements of the subsets */
  WF__VEC(uint32_t) input_size;   /* [number of subsets] */
  WF__VEC(wf__det_expanded) states;
  /* indices of subsets whose expansion would write to the string pool */
  WF__VEC(uint32_t) postponed;
  WF__VEC(wf_arc) arcs;
  WF__VEC(wf__det_target) targets;
  WF__VEC(wf__det_element) elements;
} wf__det_chunk;

typedef struct wf__det_candidate {
  uint64_t key; /* ilabel << 32 | next state */
  double cost;
  uint32_t string;
} wf__det_candidate;

/* The state of one thread. */
typedef struct wf__det_worker {
  wf__determinizer *det;
  /* Arcs or final costs of infinite cost were omitted, so the result may not be trimmed. */
  bool dropped;
  /* Other threads are running, so the string pool is read-only and no error message can be made. An
   * expansion that fails is repeated when no other thread runs. */
  bool shared;
  wf__det_chunk *out;
  WF__VEC(wf__det_element) current;
  WF__VEC(wf__det_candidate) found;
  WF__VEC(wf__det_candidate) spare;
  WF__VEC(uint64_t) runs;
  WF__VEC(uint32_t) labels;
  wf__map64 outputs; /* det_type=nonfunctional: string -> place among the ways to one state */
  wf__det_closure_scratch *scratch; /* NULL until it is needed */
} wf__det_worker;

/* Expands the subset of the given elements into `*state` and the arcs, targets and elements of the
 * worker's chunk. If the worker is `shared`, any failure means: try again alone. */
wf_status wf__det_expand(wf__det_worker *worker, const wf__det_element *elements, uint32_t size,
                         wf__det_expanded *state, wf_error *err);
void wf__det_chunk_free(wf__det_chunk *chunk);
void wf__det_worker_free(wf__det_worker *worker);

/* --- residual outputs (determinize_residual.c) ------------------------------------------- */
/* Appends an output label to a residual. Fails if the residual becomes so long that it must be
 * growing without limit. */
wf_status wf__residual_append(wf__det_worker *worker, uint32_t string, int32_t olabel,
                              uint32_t *out, wf_error *err);
/* Returns the longest common prefix of two residuals. */
uint32_t wf__residual_common_prefix(const wf__strings *strings, uint32_t a, uint32_t b);
/* Removes the first prefix_size labels of a residual. */
wf_status wf__residual_without_prefix(wf__det_worker *worker, uint32_t string, uint32_t prefix_size,
                                      uint32_t *out, wf_error *err);

/* --- epsilon closure (determinize_closure.c) --------------------------------------------- */
wf_status wf__det_closure_create(const wf_fst_view *view, wf__det_closure **out, wf_error *err);
void wf__det_closure_free(wf__det_closure *closure);
/* Adds the states reached by arcs with input epsilon to worker->current, which is no longer sorted
 * by state afterwards. If the worker is `shared`, any failure means: try again alone. */
wf_status wf__det_closure_apply(wf__det_worker *worker, wf_error *err);
void wf__det_scratch_free(wf__det_closure_scratch *scratch);

/* --- error messages with an input string as evidence (determinize_witness.c) ------------- */
wf_status wf__fail_nonfunctional(const wf__determinizer *det, const wf__det_conflict *conflict,
                                 wf_error *err);
wf_status wf__fail_growth(const wf__determinizer *det, int32_t ilabel, const char *what,
                          wf_error *err);

#endif
