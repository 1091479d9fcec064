/* reweight.c - moves costs along paths by given potentials. */
#include "base/option_tables.h"
#include "fstops/csr_copy.h"
#include "fstops/parallel.h"
#include "fstops/push.h"

static wf_status widen(const float *potentials, uint64_t count, double **out, wf_error *err) {
  double *wide = wf__alloc(count, sizeof *wide);
  if (wide == NULL) return wf__fail_memory(err, count * sizeof *wide, "potentials");
  for (uint64_t s = 0; s < count; s++) {
    wide[s] = (double)potentials[s];
    if (potentials[s] > -INFINITY) continue;
    free(wide);
    return wf__fail(err, WF_ERR_ARGUMENT, "the potential of state %llu is NaN or -infinity",
                    (unsigned long long)s);
  }
  *out = wide;
  return WF_OK;
}

static wf_status reweight(const wf_fst_view *view, const double *potentials, bool to_final,
                          wf__csr *csr, int64_t *start, wf_error *err) {
  wf__pool *pool;
  wf__strings none = {0};
  WF__TRY(wf__csr_append(csr, view, err));
  WF__TRY(wf__pool_for_fst(1, view, &pool, err));
  wf__reweight_costs(view, potentials, to_final, 0, false, pool, csr);
  wf__pool_free(pool);
  double total = view->start >= 0 ? potentials[view->start] : 0;
  if (total == INFINITY) return WF_OK;
  return wf__prepend(&none, 0, to_final ? -total : total, csr, start, err);
}

wf_status wf_reweight(const wf_fst *fst, const float *potentials, uint64_t count,
                      const wf_reweight_options *options, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_reweight_options o;
  WF__TRY(wf__options_take(wf__reweight_table(), options, &o, err));
  wf_fst_view view = wf_fst_get_view(fst);
  if (count != view.num_states)
    return wf__fail(err, WF_ERR_ARGUMENT, "%llu potentials for %llu states",
                    (unsigned long long)count, (unsigned long long)view.num_states);
  double *wide;
  wf__csr csr = {0};
  int64_t start = view.start;
  WF__TRY(widen(potentials, count, &wide, err));
  wf_status status = reweight(&view, wide, o.to_final, &csr, &start, err);
  free(wide);
  if (status == WF_OK) status = wf__fst_like(&csr, start, fst, out, err);
  wf__csr_free(&csr);
  return status;
}

wf_status wf_fst_with_weights(const wf_fst *fst, const float *weights, uint64_t count, wf_fst **out,
                              wf_error *err) {
  *out = NULL;
  const wf_fst_view view = wf_fst_get_view(fst);
  if (count != view.num_arcs)
    return wf__fail(err, WF_ERR_ARGUMENT, "%llu weights for %llu arcs", (unsigned long long)count,
                    (unsigned long long)view.num_arcs);
  wf__csr csr = {0};
  wf_status status = wf__csr_append(&csr, &view, err);
  for (uint64_t i = 0; status == WF_OK && i < count; i++) {
    csr.arcs.data[i].weight = weights[i];
    if (!(weights[i] > -INFINITY))
      status = wf__fail(err, WF_ERR_ARGUMENT, "the weight of arc %llu is NaN or -infinity",
                        (unsigned long long)i);
  }
  if (status == WF_OK) status = wf__fst_like(&csr, view.start, fst, out, err);
  if (status == WF_OK) wf__fst_copy_boundaries(*out, fst);
  wf__csr_free(&csr);
  return status;
}
