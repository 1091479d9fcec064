/* arcsort.h - sorting of arcs for the operations that need it. */
#ifndef WF_FSTOPS_ARCSORT_H
#define WF_FSTOPS_ARCSORT_H

#include "fst/fst.h"
#include "fstops/csr_copy.h"

bool wf__is_arcsorted(const wf_fst_view *view, bool by_olabel);
/* The fst with the arcs of each state sorted by input or output label, stable; the same fst,
 * shared, if they are already. */
wf_status wf__arcsort(const wf_fst *fst, bool by_olabel, wf_fst **out, wf_error *err);

/* Where the arcs of wf__arcsort's result were: places[i] in `fst` of arc i (an array for free). At
 * most 2^32 - 2 arcs. */
wf_status wf__arcsort_places(const wf_fst *fst, bool by_olabel, uint32_t **out_places,
                             wf_error *err);

#endif
