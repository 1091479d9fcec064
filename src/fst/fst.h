/* fst.h - the immutable transducer container from the inside.
 *
 *   arc_off   [0 .. num_states]     arcs of s: [arc_off[s], arc_off[s+1])
 *   arcs      16 bytes each         {nextstate, weight, ilabel, olabel}
 *   final     one float a state     +infinity: not final
 *
 * The arrays live in a wf__fst_storage shared by every fst made over them (with other symbols or
 * another semiring): malloc'ed, or inside a mapped native file. */
#ifndef WF_FST_FST_H
#define WF_FST_FST_H

#include <math.h>

#include "base/error.h"
#include "base/memory.h"

#define WF__MAX_STATES ((uint64_t)INT32_MAX) /* state ids and labels fit 31 bits */
#define WF__MAX_LABEL INT32_MAX

/* Arrays under construction, in the order of states: what operations fill. Zero-initialised is
 * empty.
 *     wf__csr_add_state, then wf__csr_push for each of its arcs, then the next state.
 * arc_off[s] is written by wf__csr_add_state; finish writes the last. */
typedef struct wf__csr {
  WF__VEC(uint64_t) arc_off;
  WF__VEC(float) final_cost;
  WF__VEC(wf_arc) arcs;
} wf__csr;

wf_status wf__csr_add_state(wf__csr *csr, float final_cost, wf_error *err);
static inline wf_status wf__csr_push(wf__csr *csr, wf_arc arc, wf_error *err) {
  WF__TRY(wf__vec_grow(&csr->arcs, 1, "arcs", err));
  csr->arcs.data[csr->arcs.size++] = arc;
  return WF_OK;
}
void wf__csr_free(wf__csr *csr);

/* Takes the arrays over (csr is empty after, also on failure). start -1: no start state, then all
 * states are dropped. Checks nothing but array sizes: nextstates and start must be in range. */
wf_status wf__fst_from_csr(wf__csr *csr, int64_t start, wf_semiring semiring,
                           const wf_symbols *isymbols, const wf_symbols *osymbols, wf_fst **out,
                           wf_error *err);
/* An fst over arrays that `release(keeper)` frees, for mapped files. */
wf_status wf__fst_from_arrays(const wf_fst_view *view, void (*release)(void *), void *keeper,
                              wf_fst **out, wf_error *err);
/* Full check of states, labels, weights in range: for data that comes from outside. Message says
 * what and where. */
wf_status wf__fst_check(const wf_fst_view *view, const char *name, wf_error *err);

/* How words are found in alignments, as bytes that graph/word_aligner.h makes and reads: what a
 * decoding graph carries so that words come with their times. Shared by fsts made over the same
 * arrays, kept in native files. `set` is for an fst that nobody else has yet; size 0: none. */
wf_status wf__fst_set_boundaries(wf_fst *fst, const void *bytes, uint64_t size, wf_error *err);
/* For an operation that keeps paths, labels and words as they are. */
void wf__fst_copy_boundaries(wf_fst *fst, const wf_fst *from);
/* NULL and 0: none. */
const void *wf__fst_boundaries(const wf_fst *fst, uint64_t *size);

/* Common first line of binary operations. */
wf_status wf__same_semiring(const wf_fst *a, const wf_fst *b, wf_error *err);
/* The fst without states. */
wf_status wf__fst_empty(wf_semiring semiring, wf_fst **out, wf_error *err);

static inline bool wf__is_final(const wf_fst_view *view, uint64_t state) {
  return view->final_cost[state] != INFINITY;
}

#endif
