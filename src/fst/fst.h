/* fst.h - the library's internal interface to fsts: how arrays become an immutable fst.
 *
 *   arc_off     [0 .. num_states]     the arcs of s are [arc_off[s], arc_off[s+1])
 *   arcs        16 bytes each         {nextstate, weight, ilabel, olabel}
 *   final_cost  one float per state   +infinity: not final
 *
 * The arrays belong to a reference-counted wf__fst_storage. Fsts that differ only in symbols or
 * semiring share one storage. The arrays are allocated with malloc, or they lie inside a
 * memory-mapped native file, or in a GPU's unified memory, which the host reads as well. */
#ifndef WF_FST_FST_H
#define WF_FST_FST_H

#include <math.h>

#include "base/error.h"
#include "base/memory.h"

#define WF__MAX_STATES ((uint64_t)INT32_MAX) /* state ids and labels fit 31 bits */
#define WF__MAX_LABEL INT32_MAX

/* The arrays of an fst under construction. A zero-initialised wf__csr is empty.
 * Operations fill it state by state: wf__csr_add_state, then wf__csr_push for each arc of that
 * state. wf__csr_add_state writes arc_off[s]; wf__fst_from_csr appends the last offset. */
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

/* Makes an fst of the arrays and takes ownership of them: `csr` is empty afterwards, also on
 * failure. If `start` is -1, all states are dropped. Only the sizes of the arrays are checked; the
 * caller guarantees that `start` and every nextstate are in range. */
wf_status wf__fst_from_csr(wf__csr *csr, int64_t start, wf_semiring semiring,
                           const wf_symbols *isymbols, const wf_symbols *osymbols, wf_fst **out,
                           wf_error *err);
/* The same for an operation whose result reads and writes labels of the same kinds as `from`: with
 * the semiring and symbols of `from`, and the blank if `from` is a token graph. */
wf_status wf__fst_like(wf__csr *csr, int64_t start, const wf_fst *from, wf_fst **out,
                       wf_error *err);
/* Makes an fst over existing arrays, such as those of a mapped file. `release(keeper)` frees them
 * together with the last fst that uses them, or at once if the call fails. */
wf_status wf__fst_from_arrays(const wf_fst_view *view, void (*release)(void *), void *keeper,
                              wf_fst **out, wf_error *err);
/* The GPU that has the arrays in its unified memory; -1: they are in host memory. Set it only
 * before the fst is shared. */
int wf__fst_device(const wf_fst *fst);
void wf__fst_set_device(wf_fst *fst, int device);
/* Checks that the start, offsets, states, labels and weights are in range. For data from outside
 * the library. `name` begins the error message. */
wf_status wf__fst_check(const wf_fst_view *view, const char *name, wf_error *err);

/* Word boundaries: how words are found in alignments, encoded as bytes by graph/word_aligner.h. A
 * decoding graph carries them so that results have word times. Native files store them, and fsts
 * over the same arrays share them. Call `set` only before the fst is shared; size 0 removes them.
 */
wf_status wf__fst_set_boundaries(wf_fst *fst, const void *bytes, uint64_t size, wf_error *err);
/* For operations that keep paths, labels and words unchanged. Copies the blank of a token graph,
 * too. */
void wf__fst_copy_boundaries(wf_fst *fst, const wf_fst *from);
/* Returns NULL and sets `*size` to 0 if there are none. */
const void *wf__fst_boundaries(const wf_fst *fst, uint64_t *size);

/* The label of the blank, if the fst is the token graph of a CTC graph (ctc_states.h); else 0. A
 * decoding graph that is made of it reads frames. Native files store it, and fsts over the same
 * arrays share it. Set it only before the fst is shared. */
int32_t wf__fst_ctc_blank(const wf_fst *fst);
void wf__fst_set_ctc_blank(wf_fst *fst, int32_t blank);
/* For operations whose result reads labels of `from`, but writes labels of another kind. */
void wf__fst_keep_ctc_blank(wf_fst *fst, const wf_fst *from);
/* For operations whose result reads labels of all `fsts`: the blank of the token graphs among them;
 * 0: there is none. An fst without the mark is taken to read tokens. Errors (WF_ERR_ARGUMENT): two
 * token graphs have different blanks; an fst beside a token graph reads the blank, so it reads
 * frames. */
wf_status wf__fst_common_blank(const wf_fst *const *fsts, size_t count, int32_t *out,
                               wf_error *err);

/* The weights of a log64 file in double precision: of arcs [num_arcs] and final [num_states].
 * Operations use the rounded ones; files of log64 arcs get these. `set` takes ownership; call it
 * only before the fst is shared. NULL: there are none. */
void wf__fst_set_wide(wf_fst *fst, double *arcs, double *finals);
const double *wf__fst_wide_arcs(const wf_fst *fst);
const double *wf__fst_wide_finals(const wf_fst *fst);

/* Fails if the semirings differ. Binary operations call it first. */
wf_status wf__same_semiring(const wf_fst *a, const wf_fst *b, wf_error *err);
/* Fails if the fsts have different input symbol tables, or different output symbol tables. Tables
 * are the same if they have the same keys and symbols. An fst without a table agrees with all. */
wf_status wf__same_symbols(const wf_fst *const *fsts, size_t count, wf_error *err);
/* The same for the output symbols of each fst and the input symbols of the next one. */
wf_status wf__joined_symbols(const wf_fst *const *fsts, size_t count, wf_error *err);
/* For comparisons, which do not fail on a difference but report it: returns false and leaves the
 * message of wf__same_symbols in `err`, with code WF_OK. */
bool wf__alike_symbols(const wf_fst *a, const wf_fst *b, wf_error *err);
/* Makes an fst without states. */
wf_status wf__fst_empty(wf_semiring semiring, wf_fst **out, wf_error *err);

static inline bool wf__is_final(const wf_fst_view *view, uint64_t state) {
  return view->final_cost[state] != INFINITY;
}

#endif
