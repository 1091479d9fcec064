/* ready_l.c - relabels an L made by another toolkit. See ready_l.h. */
#include "graph/ready_l.h"

#include "base/map64.h"

struct taking {
  const wf_hmm *hmm;
  wf_fst_view view;
  float scale;
  wf__map64 disambig; /* label -> k */
  wf__csr csr;
};

static wf_status new_label(const struct taking *taking, int32_t label, int32_t *out,
                           wf_error *err) {
  uint32_t k = wf__map64_find(&taking->disambig, (uint64_t)label);
  *out = k != WF__MAP64_NONE ? taking->hmm->num_phones + 1 + (int32_t)k : label;
  if (k != WF__MAP64_NONE || label <= taking->hmm->num_phones) return WF_OK;
  return wf__fail(err, WF_ERR_ARGUMENT,
                  "L has the input label %d, which is neither a phone (1 to %d) nor a "
                  "disambiguation symbol of %s",
                  (int)label, (int)taking->hmm->num_phones, taking->hmm->name);
}

static wf_status copy_all(struct taking *taking, wf_error *err) {
  const wf_fst_view *view = &taking->view;
  uint32_t stands;
  for (uint64_t k = 0; k < taking->hmm->ready_disambig.size; k++)
    WF__TRY(wf__map64_insert(&taking->disambig, (uint64_t)taking->hmm->ready_disambig.data[k],
                             (uint32_t)k, &stands, NULL, "disambiguation symbols", err));
  for (uint64_t s = 0; s < view->num_states; s++) {
    WF__TRY(wf__csr_add_state(
        &taking->csr,
        view->final_cost[s] != INFINITY ? taking->scale * view->final_cost[s] : INFINITY, err));
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      wf_arc arc = view->arcs[i];
      WF__TRY(new_label(taking, arc.ilabel, &arc.ilabel, err));
      arc.weight *= taking->scale;
      WF__TRY(wf__csr_push(&taking->csr, arc, err));
    }
  }
  return WF_OK;
}

wf_status wf__ready_l(const wf_hmm *hmm, const wf_fst *fst, float scale, wf_fst **out,
                      wf_error *err) {
  struct taking taking = {.hmm = hmm, .view = wf_fst_get_view(fst), .scale = scale};
  *out = NULL;
  wf_status status = copy_all(&taking, err);
  wf__map64_free(&taking.disambig);
  if (status == WF_OK)
    return wf__fst_from_csr(&taking.csr, taking.view.start, WF_TROPICAL, NULL, wf_fst_osymbols(fst),
                            out, err);
  wf__csr_free(&taking.csr);
  return status;
}
