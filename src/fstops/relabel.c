/* relabel.c - replaces labels by a list of pairs {old, new}, with a hash map. The symbol table of a
 * relabelled side is dropped, because it does not describe the new labels. The blank of a token
 * graph is an input label, and gets its new number. */
#include "base/map64.h"
#include "fstops/csr_copy.h"

static wf_status take_pairs(wf__map64 *map, const int32_t (*pairs)[2], size_t num, const char *side,
                            wf_error *err) {
  if (num != 0) WF__TRY(wf__map64_reserve(map, num, "label pairs", err));
  for (size_t i = 0; i < num; i++) {
    uint32_t stands;
    bool fresh;
    if (pairs[i][0] < 0 || pairs[i][1] < 0)
      return wf__fail(err, WF_ERR_ARGUMENT, "%s pair %zu: negative label %d -> %d", side, i + 1,
                      pairs[i][0], pairs[i][1]);
    WF__TRY(wf__map64_insert(map, (uint64_t)pairs[i][0], (uint32_t)pairs[i][1], &stands, &fresh,
                             "label pairs", err));
    if (!fresh)
      return wf__fail(err, WF_ERR_ARGUMENT, "%s pair %zu: label %d is listed twice", side, i + 1,
                      pairs[i][0]);
  }
  return WF_OK;
}

static inline int32_t replaced(const wf__map64 *map, int32_t label) {
  uint32_t found = wf__map64_find(map, (uint64_t)label);
  return found == WF__MAP64_NONE ? label : (int32_t)found;
}

wf_status wf_relabel(const wf_fst *fst, const int32_t (*ipairs)[2], size_t inum,
                     const int32_t (*opairs)[2], size_t onum, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_fst_view view = wf_fst_get_view(fst);
  wf__map64 imap = {0}, omap = {0};
  wf__csr csr = {0};
  wf_status status;
  WF__TRY_GOTO(status, take_pairs(&imap, ipairs, inum, "input", err), done);
  WF__TRY_GOTO(status, take_pairs(&omap, opairs, onum, "output", err), done);
  WF__TRY_GOTO(status, wf__csr_append(&csr, &view, err), done);
  for (uint64_t i = 0; i < csr.arcs.size; i++) {
    wf_arc *arc = &csr.arcs.data[i];
    arc->ilabel = replaced(&imap, arc->ilabel);
    arc->olabel = replaced(&omap, arc->olabel);
  }
  const wf_symbols *isymbols = inum == 0 ? wf_fst_isymbols(fst) : NULL,
                   *osymbols = onum == 0 ? wf_fst_osymbols(fst) : NULL;
  status = wf__fst_from_csr(&csr, view.start, view.semiring, isymbols, osymbols, out, err);
  const int32_t blank = wf__fst_ctc_blank(fst);
  if (status == WF_OK && blank != 0) wf__fst_set_ctc_blank(*out, replaced(&imap, blank));
done:
  wf__csr_free(&csr);
  wf__map64_free(&imap);
  wf__map64_free(&omap);
  return status;
}
