/* factor_weight.c - weights that have strings of output labels become arcs with one label each. */
#include "base/option_tables.h"
#include "fstops/csr_copy.h"
#include "fstops/string_pool.h"

/* Checks the offsets and labels of `count` strings. */
static wf_status check_strings(const wf_label_strings *strings, uint64_t count, const char *owners,
                               wf_error *err) {
  for (uint64_t k = 0; k < count; k++)
    if (strings->offsets[k + 1] < strings->offsets[k])
      return wf__fail(err, WF_ERR_ARGUMENT, "the string of %s %llu ends before it begins", owners,
                      (unsigned long long)k);
  for (uint64_t i = strings->offsets[0]; i < strings->offsets[count]; i++)
    if (strings->labels[i] <= 0)
      return wf__fail(err, WF_ERR_ARGUMENT, "label %d in a string of %s, expected 1 or more",
                      strings->labels[i], owners);
  return WF_OK;
}

/* The string `label` (0: none) followed by string `index`. */
static wf_status pool_string(wf__strings *pool, const wf_label_strings *strings, uint64_t index,
                             int32_t label, uint32_t *out, wf_error *err) {
  *out = 0;
  for (uint64_t i = strings->offsets[index + 1]; i-- > strings->offsets[index];)
    WF__TRY(wf__string_put(pool, (uint32_t)strings->labels[i], *out, out, err));
  return label == 0 ? WF_OK : wf__string_put(pool, (uint32_t)label, *out, out, err);
}

/* Copies the states. Their arcs get strings as olabels. A final cost with a string becomes an arc
 * to the state `sink`, which is numbered after the others. */
static wf_status copy_states(const wf_fst_view *view, const wf_label_strings *arcs,
                             const wf_label_strings *finals, int32_t final_ilabel,
                             wf__strings *pool, uint32_t sink, wf__csr *csr, wf_error *err) {
  for (uint64_t s = 0; s < view->num_states; s++) {
    const bool writes =
        finals != NULL && wf__is_final(view, s) && finals->offsets[s + 1] > finals->offsets[s];
    uint32_t string;
    WF__TRY(wf__csr_add_state(csr, writes ? INFINITY : view->final_cost[s], err));
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      wf_arc arc = view->arcs[i];
      string = wf__string_of(arc.olabel);
      if (arcs != NULL) WF__TRY(pool_string(pool, arcs, i, arc.olabel, &string, err));
      arc.olabel = (int32_t)string;
      WF__TRY(wf__csr_push(csr, arc, err));
    }
    if (!writes) continue;
    WF__TRY(pool_string(pool, finals, s, 0, &string, err));
    WF__TRY(
        wf__csr_push(csr, (wf_arc){sink, view->final_cost[s], final_ilabel, (int32_t)string}, err));
  }
  return WF_OK;
}

static wf_status factor(const wf_fst_view *view, const wf_label_strings *arcs,
                        const wf_label_strings *finals, int32_t final_ilabel, wf__csr *csr,
                        wf_error *err) {
  const uint32_t sink = (uint32_t)view->num_states;
  wf__strings pool = {0};
  if (view->num_states == 0) return WF_OK;
  wf_status status = wf__strings_init(&pool, err);
  if (status == WF_OK)
    status = copy_states(view, arcs, finals, final_ilabel, &pool, sink, csr, err);
  bool has_sink = false;
  for (uint64_t i = 0; i < csr->arcs.size && !has_sink; i++)
    has_sink = csr->arcs.data[i].nextstate == sink;
  if (status == WF_OK && has_sink) status = wf__csr_add_state(csr, 0, err);
  if (status == WF_OK) status = wf__strings_expand(&pool, false, sink, UINT64_MAX, csr, err);
  wf__strings_free(&pool);
  return status;
}

wf_status wf_factor_weight(const wf_fst *fst, const wf_label_strings *arcs,
                           const wf_label_strings *finals, const wf_factor_weight_options *options,
                           wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_factor_weight_options o;
  WF__TRY(wf__options_take(wf__factor_weight_table(), options, &o, err));
  const wf_fst_view view = wf_fst_get_view(fst);
  if (arcs != NULL) WF__TRY(check_strings(arcs, view.num_arcs, "arc", err));
  if (finals != NULL) WF__TRY(check_strings(finals, view.num_states, "state", err));
  wf__csr csr = {0};
  wf_status status = factor(&view, arcs, finals, o.final_ilabel, &csr, err);
  if (status == WF_OK) status = wf__fst_like(&csr, view.start, fst, out, err);
  wf__csr_free(&csr);
  return status;
}
