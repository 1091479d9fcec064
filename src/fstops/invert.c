/* invert.c - exchanges input and output labels. */
#include "fstops/csr_copy.h"

wf_status wf_invert(const wf_fst *fst, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_fst_view view = wf_fst_get_view(fst);
  wf__csr csr = {0};
  wf_status status = wf__csr_append(&csr, &view, err);
  if (status == WF_OK) {
    for (uint64_t i = 0; i < csr.arcs.size; i++) {
      wf_arc *arc = &csr.arcs.data[i];
      int32_t ilabel = arc->ilabel;
      arc->ilabel = arc->olabel;
      arc->olabel = ilabel;
    }
    status = wf__fst_from_csr(&csr, view.start, view.semiring, wf_fst_osymbols(fst),
                              wf_fst_isymbols(fst), out, err);
  }
  wf__csr_free(&csr);
  return status;
}
