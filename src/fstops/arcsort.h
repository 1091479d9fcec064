/* arcsort.h - sorting arcs by label, for the operations that need it. */
#ifndef WF_FSTOPS_ARCSORT_H
#define WF_FSTOPS_ARCSORT_H

#include "fst/fst.h"
#include "fstops/csr_copy.h"

/* Scratch memory for sorting states, zero at first. Free `keys` with wf__vec_free. */
typedef struct wf__arc_sorter {
  WF__VEC(uint64_t) keys; /* two halves, between which each radix pass moves the keys */
} wf__arc_sorter;

bool wf__is_arcsorted(const wf_fst_view *view, bool by_olabel);
/* Sorts the arcs of each state by input or output label (stable). If they are sorted already,
 * `*out` is another reference to `fst`. */
wf_status wf__arcsort(const wf_fst *fst, bool by_olabel, wf_fst **out, wf_error *err);

/* Sorts the `count` arcs of one state into `out` (stable). */
wf_status wf__arcsort_state(wf__arc_sorter *sorter, const wf_arc *in, wf_arc *out, uint64_t count,
                            bool by_olabel, wf_error *err);

/* The permutation of wf__arcsort: arc i of its result is arc places[i] of `fst`. The caller frees
 * the array with free(). Returns WF_ERR_LIMIT if there are more than 2^32 - 2 arcs. */
wf_status wf__arcsort_places(const wf_fst *fst, bool by_olabel, uint32_t **out_places,
                             wf_error *err);

#endif
