/* compose_results.c - gives access to the results of a composition on a GPU: views of device
 * memory, copies in host memory, a batch of results. */
#include <string.h>

#include "cuda/compose/gpu_composer.h"
#include "cuda/device/host_copies.h"
#include "fst/properties.h"
#include "fstops/composer.h"
#include "fstops/device_batch.h"

/* --- results ----------------------------------------------------------------------------- */

static wf_status check_result(const wf__gpu_composer *composer, size_t i, wf_error *err) {
  if (!composer->has_run)
    return wf__fail(err, WF_ERR_STATE, "no result: wf__gpu_composer_run comes first");
  if (i >= composer->count)
    return wf__fail(err, WF_ERR_ARGUMENT, "pair %zu of %zu", i, composer->count);
  return WF_OK;
}

static wf_fst_view device_view(const wf__gpu_composer *self, size_t i) {
  const wf__gpu_place *place = &self->readback->places[i];
  const wf__gpu_batch *made = self->made[i];
  wf_fst_view view = {.start = made != NULL ? made->start[0] : place->start,
                      .semiring = wf_fst_get_view(self->a[i]).semiring};
  if (view.start < 0) return view;
  if (made != NULL) {
    view.num_states = made->f.num_states;
    view.num_arcs = made->f.num_arcs;
    view.arc_off = made->f.off;
    view.final_cost = made->f.final_cost;
    view.arcs = made->f.arcs;
    return view;
  }
  view.num_states = place[1].state_base - place[0].state_base;
  view.num_arcs = place[1].arc_base - place[0].arc_base;
  view.arc_off = self->c.arc_off + place->state_base + i;
  view.final_cost = self->c.final_cost + place->state_base;
  view.arcs = self->c.arcs + place->arc_base;
  return view;
}

static const wf_arc_origin *device_origins(const wf__gpu_composer *self, size_t i) {
  if (!self->with_origins) return NULL;
  return self->made[i] != NULL ? self->made[i]->origins
                               : self->c.origins + self->readback->places[i].arc_base;
}

wf_status wf__gpu_composer_view(const wf__gpu_composer *composer, size_t i, wf_fst_view *view,
                                const wf_arc_origin **origins, wf_error *err) {
  *view = (wf_fst_view){.start = -1};
  if (origins != NULL) *origins = NULL;
  WF__TRY(check_result(composer, i, err));
  *view = device_view(composer, i);
  if (origins != NULL && view->start >= 0) *origins = device_origins(composer, i);
  return WF_OK;
}

/* Copies the arrays of a result to host memory. */
static wf_status copy_back(const wf__gpu_composer *self, const wf_fst_view *view,
                           const wf_arc_origin *from_origins, wf__csr *csr, wf_arc_origin *origins,
                           wf_error *err) {
  WF__TRY(wf__vec_grow(&csr->arc_off, view->num_states + 1, "states", err));
  WF__TRY(wf__vec_grow(&csr->final_cost, view->num_states + 1, "states", err));
  WF__TRY(wf__vec_grow(&csr->arcs, view->num_arcs + 1, "arcs", err));
  if (view->num_states == 0) return WF_OK;
  WF__CUDA_TRY(cudaSetDevice(self->device), "choosing the GPU");
  const wf__host_copy copies[] = {
      {csr->arc_off.data, view->arc_off, view->num_states * 8},
      {csr->final_cost.data, view->final_cost, view->num_states * 4},
      {csr->arcs.data, view->arcs, view->num_arcs * sizeof(wf_arc)},
      {origins, from_origins, origins != NULL ? view->num_arcs * sizeof *origins : 0}};
  WF__TRY(wf__copy_to_host(copies, 4, self->stream, "results of a composition", err));
  csr->arc_off.size = csr->final_cost.size = view->num_states;
  csr->arcs.size = view->num_arcs;
  return WF_OK;
}

wf_status wf__gpu_composer_get(const wf__gpu_composer *composer, size_t i, wf_fst **out,
                               wf_arc_origin **out_origins, wf_error *err) {
  wf__csr csr = {0};
  *out = NULL;
  if (out_origins != NULL) *out_origins = NULL;
  WF__TRY(check_result(composer, i, err));
  const wf_fst *a = composer->a[i], *b = composer->b[i];
  if (out_origins != NULL && !composer->with_origins)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "origins were not requested");
  wf_fst_view view = device_view(composer, i);
  wf_arc_origin *origins = out_origins != NULL ? wf__alloc(view.num_arcs, sizeof *origins) : NULL;
  wf_status status = out_origins != NULL && origins == NULL
                         ? wf__fail_memory(err, view.num_arcs * sizeof *origins, "origins of arcs")
                         : WF_OK;
  const int caller = wf__callers_device();
  if (status == WF_OK)
    status = copy_back(composer, &view, device_origins(composer, i), &csr, origins, err);
  wf__restore_device(caller);
  if (status == WF_OK)
    status = wf__fst_from_csr(&csr, view.start, view.semiring, wf_fst_isymbols(a),
                              wf_fst_osymbols(b), out, err);
  if (status == WF_OK && composer->options.connect) wf__fst_set_trimmed(*out);
  wf__csr_free(&csr);
  if (status == WF_OK && out_origins != NULL)
    *out_origins = origins;
  else
    free(origins);
  return status;
}

void wf__gpu_composer_levels(const wf__gpu_composer *composer, uint32_t out[2]) {
  bool table = composer->c.num_rows != 0;
  for (int back = 0; back < 2; back++) out[back] = table ? composer->readback->levels[back] : 0;
}

/* Makes a batch of the results. The positions of results and of the inputs' arcs are prefix sums
 * over the pairs. */
static wf_status join_results(const wf__gpu_composer *self, uint64_t *bases, int64_t *start,
                              wf_semiring semiring, wf__gpu_batch **out, wf_error *err) {
  size_t n = self->count + 1;
  uint64_t *state_base = bases, *arc_base = bases + n, *a_base = bases + 2 * n,
           *b_base = bases + 3 * n;
  for (size_t i = 0; i < self->count; i++) {
    wf_fst_view view = device_view(self, i);
    start[i] = view.start;
    state_base[i + 1] = state_base[i] + view.num_states;
    arc_base[i + 1] = arc_base[i] + view.num_arcs;
    a_base[i + 1] = a_base[i] + wf_fst_get_view(self->a[i]).num_arcs;
    b_base[i + 1] = b_base[i] + wf_fst_get_view(self->b[i]).num_arcs;
  }
  wf__composed composed = {.device = self->device,
                           .count = self->count,
                           .state_base = state_base,
                           .arc_base = arc_base,
                           .start = start,
                           .arc_off = self->c.arc_off,
                           .arcs = self->c.arcs,
                           .final_cost = self->c.final_cost,
                           .origins = self->with_origins ? self->c.origins : NULL,
                           .trimmed = self->options.connect,
                           .input_base = {a_base, b_base}};
  if (self->made[0] != NULL) { /* the only pair */
    composed.arc_off = self->made[0]->f.off;
    composed.arcs = self->made[0]->f.arcs;
    composed.final_cost = self->made[0]->f.final_cost;
    composed.origins = self->made[0]->origins;
  }
  return wf__gpu_batch_of_composed(&composed, semiring, out, err);
}

wf_status wf__gpu_batch_of_composer(const wf__gpu_composer *composer, wf_semiring semiring,
                                    wf__gpu_batch **out, wf_error *err) {
  *out = NULL;
  for (size_t i = 0; i < composer->count; i++) {
    WF__TRY(check_result(composer, i, err));
    if (composer->made[i] != NULL && composer->count > 1)
      return wf__fail(err, WF_ERR_UNSUPPORTED,
                      "pair %zu of %zu is too large for a batch: compose it alone, or use "
                      "wf__gpu_composer_view",
                      i, composer->count);
  }
  uint64_t *bases = wf__calloc(composer->count + 1, 4 * sizeof *bases);
  int64_t *start = wf__calloc(composer->count, sizeof *start);
  wf_status status = bases != NULL && start != NULL
                         ? join_results(composer, bases, start, semiring, out, err)
                         : wf__fail_memory(err, composer->count * 40, "a batch");
  free(bases);
  free(start);
  return status;
}
