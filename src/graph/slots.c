/* slots.c - see slots.h. */
#include "graph/slots.h"

#include <stddef.h>

#include "base/callbacks.h"

/* --- slots ------------------------------------------------------------------------------- */

void wf__slot_clear(wf__slot *slot) {
  wf_fst_free(slot->fst);
  if (slot->gpu != NULL) wf__gpu_fstops()->free(slot->gpu);
  wf_symbols_free(slot->symbols[0]);
  wf_symbols_free(slot->symbols[1]);
  *slot = (wf__slot){.fst = NULL};
}

void wf__slot_set(wf__step_runner *runner, wf__slot *slot, wf_fst *fst) {
  wf__slot_clear(slot);
  slot->fst = fst;
  runner->made = slot;
}

static const wf_symbols *symbols_of(const wf__slot *slot, int side) {
  if (slot->fst == NULL) return slot->symbols[side];
  return side == 0 ? wf_fst_isymbols(slot->fst) : wf_fst_osymbols(slot->fst);
}

static wf_symbols *ref_symbols(const wf__slot *slot, int side) {
  const wf_symbols *symbols = symbols_of(slot, side);
  return symbols != NULL ? wf_symbols_ref(symbols) : NULL;
}

/* Stores an fst that is on the GPU as the result of a step, with the input symbols of one slot (or
 * NULL) and the output symbols of another. */
static void set_gpu(wf__step_runner *runner, wf__slot *slot, wf__gpu_batch *gpu, const wf__slot *in,
                    const wf__slot *out) {
  wf__slot made = {.gpu = gpu,
                   .symbols = {in != NULL ? ref_symbols(in, 0) : NULL, ref_symbols(out, 1)}};
  wf__slot_clear(slot);
  *slot = made;
  runner->made = slot;
}

wf_status wf__slot_fst(wf__slot *slot, wf_fst **out, wf_error *err) {
  wf__csr csr = {0};
  int64_t start;
  *out = slot->fst;
  if (slot->fst != NULL) return WF_OK;
  wf_status status = wf__gpu_fstops()->get(slot->gpu, 0, &csr, &start, err);
  if (status == WF_OK)
    status = wf__fst_from_csr(&csr, start, WF_TROPICAL, slot->symbols[0], slot->symbols[1],
                              &slot->fst, err);
  wf__csr_free(&csr);
  *out = slot->fst;
  return status;
}

bool wf__slot_is_empty(const wf__slot *slot) {
  wf_fst_batch_view view;
  if (slot->fst != NULL) return wf_fst_get_view(slot->fst).num_states == 0;
  wf__gpu_fstops()->view(slot->gpu, &view);
  return view.num_states == 0;
}

static wf_status to_gpu(const wf__step_runner *runner, wf__slot *slot, wf_error *err) {
  if (slot->gpu != NULL) return WF_OK;
  return wf__gpu_fstops()->create_beside(runner->gpu, (const wf_fst *const *)&slot->fst, &slot->gpu,
                                         err);
}

/* --- the device ----------------------------------------------------------------------------- */

wf_status wf__step_runner_begin(wf__step_runner *runner, const char *device, wf_error *err) {
  wf__csr csr = {0};
  wf_fst *nothing;
  if (!wf__names_gpu(device)) return WF_OK;
  const wf__device *gpu = wf__device_find(device, err);
  if (gpu == NULL) return WF_ERR_DEVICE;
  WF__TRY(wf__fst_from_csr(&csr, -1, WF_TROPICAL, NULL, NULL, &nothing, err));
  wf_status status = gpu->fstops->create((const wf_fst *const *)&nothing, 1, WF_TROPICAL, device,
                                         &runner->gpu, err);
  wf_fst_free(nothing);
  return status;
}

void wf__step_runner_end(wf__step_runner *runner) {
  if (runner->gpu != NULL) wf__gpu_fstops()->free(runner->gpu);
  runner->gpu = NULL;
}

/* --- operations -------------------------------------------------------------------------- */

/* Whether the CPU may be able to do what the GPU could not. If an fst cannot be determinized, the
 * CPU's message has an example. */
static bool is_for_cpu(wf_status status) {
  return status == WF_ERR_UNSUPPORTED || status == WF_ERR_LIMIT || status == WF_ERR_MEMORY ||
         status == WF_ERR_NOT_DETERMINIZABLE;
}

/* If there is no room, the user may want to know why it takes longer. */
static void log_cpu(const wf__step_runner *runner, wf_status status, const char *why) {
  const bool no_room = status == WF_ERR_MEMORY || status == WF_ERR_LIMIT;
  wf__log(no_room ? WF_LOG_WARNING : WF_LOG_INFO, "%s: on the CPU: %s", runner->stage, why);
}

/* *out_done: the GPU has done it. */
static wf_status try_gpu(wf__step_runner *runner, wf__slot *slot,
                         const wf__slot_operation *operation, const void *user, bool *out_done,
                         wf_error *err) {
  wf__gpu_batch *made = NULL;
  *out_done = false;
  if (runner->gpu == NULL) return WF_OK;
  if (operation->on_gpu == NULL) {
    log_cpu(runner, WF_ERR_UNSUPPORTED, "no GPU does that");
    return WF_OK;
  }
  wf_error own = {0};
  wf_status status = to_gpu(runner, slot, &own);
  if (status == WF_OK) status = operation->on_gpu(slot->gpu, user, &made, &own);
  *out_done = status == WF_OK;
  if (status == WF_OK) {
    set_gpu(runner, slot, made, operation->new_ilabels ? NULL : slot, slot);
  } else if (is_for_cpu(status)) {
    log_cpu(runner, status, own.message);
    return WF_OK;
  } else if (err != NULL) {
    *err = own;
  }
  return status;
}

wf_status wf__slot_finished(const wf__step_runner *runner, wf__slot *slot, wf_fst **out,
                            wf_error *err) {
  wf_error own = {.message = "the CPU made its last step"};
  wf_status status = WF_ERR_UNSUPPORTED;
  if (!runner->keep_on_device) return wf__slot_fst(slot, out, err);
  if (slot->gpu != NULL && slot->fst == NULL)
    status = wf__gpu_fstops()->share(slot->gpu, &slot->fst, &own);
  if (status != WF_OK && !is_for_cpu(status)) {
    if (err != NULL) *err = own;
    return status;
  }
  if (status != WF_OK)
    wf__log(WF_LOG_WARNING, "the graph is in host memory, in spite of keep_on_device: %s",
            own.message);
  return wf__slot_fst(slot, out, err);
}

wf_status wf__slot_apply(wf__step_runner *runner, wf__slot *slot,
                         const wf__slot_operation *operation, const void *user, wf_error *err) {
  wf_fst *in, *out;
  bool done;
  WF__TRY(try_gpu(runner, slot, operation, user, &done, err));
  if (done) return WF_OK;
  WF__TRY(wf__slot_fst(slot, &in, err));
  WF__TRY(operation->on_cpu(in, user, &out, err));
  wf__slot_set(runner, slot, out);
  return WF_OK;
}

wf_status wf__slot_sort_olabels(wf__step_runner *runner, wf__slot *slot, wf_error *err) {
  wf_arcsort_options o;
  wf_fst *sorted;
  wf_arcsort_options_init(&o);
  o.sort_type = 1;
  WF__TRY(wf_arcsort(slot->fst, &o, &sorted, err));
  wf__slot_set(runner, slot, sorted);
  return WF_OK;
}

/* --- composition ------------------------------------------------------------------------- */

static wf_status compose_gpu(wf__step_runner *runner, const wf__slot *a, wf__slot *b,
                             const wf__step_composition *how, const wf_compose_options *o,
                             wf__gpu_batch **out, wf_error *err) {
  wf__gpu_batch *composed;
  wf_fst_batch_view view;
  *out = NULL;
  if (how->phi_label != 0) return wf__fail(err, WF_ERR_UNSUPPORTED, "no GPU follows failure arcs");
  WF__TRY(to_gpu(runner, b, err));
  WF__TRY(wf__gpu_fstops()->compose(a->fst, b->gpu, o, &composed, err));
  wf__gpu_fstops()->view(composed, &view);
  if (!how->ordered || view.num_states == 0) {
    *out = composed;
    return WF_OK;
  }
  wf_status status = wf__gpu_fstops()->by_discovery(composed, out, err);
  wf__gpu_fstops()->free(composed);
  return status;
}

static wf_status compose(wf__step_runner *runner, wf__slot *a, wf__slot *b,
                         const wf__step_composition *how, wf__slot *out, wf_error *err) {
  wf_compose_options o;
  wf_error own = {0};
  wf__gpu_batch *gpu;
  wf_fst *first, *second, *made;
  wf_compose_options_init(&o);
  o.phi_label = how->phi_label;
  o.max_states = how->max_states;
  o.check_symbols = false; /* tables grow on the way: L knows #0, G need not */
  WF__TRY(wf__slot_fst(a, &first, err));
  if (runner->gpu != NULL) {
    wf_status status = compose_gpu(runner, a, b, how, &o, &gpu, &own);
    if (status == WF_OK) {
      set_gpu(runner, out, gpu, a, b);
      return WF_OK;
    }
    if (!is_for_cpu(status)) {
      if (err != NULL) *err = own;
      return status;
    }
    log_cpu(runner, status, own.message);
  }
  WF__TRY(wf__slot_fst(b, &second, err));
  WF__TRY(wf_compose(first, second, &o, &made, err));
  wf__slot_set(runner, out, made);
  return WF_OK;
}

wf_status wf__step_compose(wf__step_runner *runner, wf__slot *a, wf__slot *b,
                           const wf__step_composition *how, wf__slot *out, wf_error *err) {
  WF__TRY(compose(runner, a, b, how, out, err));
  wf__slot_clear(a);
  if (b != out) wf__slot_clear(b);
  if (!wf__slot_is_empty(out)) return WF_OK;
  wf__slot_clear(out);
  return wf__fail(err, WF_ERR_ARGUMENT,
                  "the result is empty: the lexicon covers no sentence of the grammar");
}
