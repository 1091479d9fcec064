/* arcsort.h - sorting arcs by label, for the operations that need it. */
#ifndef WF_FSTOPS_ARCSORT_H
#define WF_FSTOPS_ARCSORT_H

#include "fst/fst.h"
#include "fstops/csr_copy.h"

bool wf__is_arcsorted(const wf_fst_view *view, bool by_olabel);
/* Sorts the arcs of each state by input or output label (stable). If they are sorted already,
 * `*out` is another reference to `fst`. */
wf_status wf__arcsort(const wf_fst *fst, bool by_olabel, wf_fst **out, wf_error *err);

/* The permutation of wf__arcsort: arc i of its result is arc places[i] of `fst`. The caller frees
 * the array with free(). Returns WF_ERR_LIMIT if there are more than 2^32 - 2 arcs. */
wf_status wf__arcsort_places(const wf_fst *fst, bool by_olabel, uint32_t **out_places,
                             wf_error *err);

#endif
