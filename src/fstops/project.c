/* project.c - makes an acceptor of the input or the output labels. */
#include "base/option_tables.h"
#include "fstops/csr_copy.h"

wf_status wf_project(const wf_fst *fst, const wf_project_options *options, wf_fst **out,
                     wf_error *err) {
  *out = NULL;
  wf_project_options o;
  WF__TRY(wf__options_take(wf__project_table(), options, &o, err));
  wf_fst_view view = wf_fst_get_view(fst);
  const wf_symbols *symbols = o.project_type == 0 ? wf_fst_isymbols(fst) : wf_fst_osymbols(fst);
  wf__csr csr = {0};
  wf_status status = wf__csr_append(&csr, &view, err);
  if (status == WF_OK) {
    for (uint64_t i = 0; i < csr.arcs.size; i++) {
      wf_arc *arc = &csr.arcs.data[i];
      if (o.project_type == 0)
        arc->olabel = arc->ilabel;
      else
        arc->ilabel = arc->olabel;
    }
    status = wf__fst_from_csr(&csr, view.start, view.semiring, symbols, symbols, out, err);
    if (status == WF_OK && o.project_type == 0) wf__fst_keep_ctc_blank(*out, fst);
  }
  wf__csr_free(&csr);
  return status;
}
