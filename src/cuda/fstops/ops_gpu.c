/* ops_gpu.c - the host side of operations on batches of fsts in device memory (ops_batch.c):
 * memory, order of launches, results. Every operation waits for its end, so that an error is
 * reported by the operation that caused it. */
#include <string.h>

#include "cuda/device/gpu_profile.h"
#include "cuda/device/host_copies.h"
#include "cuda/fstops/ops_batch.h"
#include "decode/backend.h"
#include "fst/properties.h"

/* --- from host memory, from a composer --------------------------------------------------- */

/* Uploads the arcs of one fst of a batch, with next states numbered over the whole batch. */
static wf_status upload_arcs(wf__gpu_batch *batch, const wf_fst_view *view, uint64_t state_base,
                             wf_arc *to, wf_error *err) {
  if (state_base == 0)
    return wf__ops_to_device(batch->context, to, view->arcs, view->num_arcs * sizeof *to, err);
  wf_arc *arcs = wf__alloc(view->num_arcs, sizeof *arcs);
  if (arcs == NULL) return wf__fail_memory(err, view->num_arcs * sizeof *arcs, "arcs");
  for (uint64_t i = 0; i < view->num_arcs; i++) {
    arcs[i] = view->arcs[i];
    arcs[i].nextstate += (uint32_t)state_base;
  }
  wf_status status = wf__ops_to_device(batch->context, to, arcs, view->num_arcs * sizeof *to, err);
  if (status == WF_OK) status = wf__ops_finish(batch->context, "fsts to the GPU", err);
  free(arcs);
  return status;
}

static wf_status upload_fsts(wf__gpu_batch *batch, const wf_fst *const *fsts, uint64_t *off,
                             wf_error *err) {
  wf__gpu_arrays a;
  wf__gpu_context *c = batch->context;
  uint64_t count = batch->f.num_fsts;
  WF__TRY(wf__gpu_batch_reserve(batch, batch->state_base[count], batch->arc_base[count], &a, err));
  WF__TRY(wf__ops_to_device(c, a.state_base, batch->state_base, (count + 1) * 8, err));
  WF__TRY(wf__ops_to_device(c, a.start, batch->start, count * 8, err));
  for (size_t i = 0; i < count; i++) {
    wf_fst_view view = wf_fst_get_view(fsts[i]);
    for (uint64_t s = 0; s < view.num_states; s++)
      off[batch->state_base[i] + s] = batch->arc_base[i] + view.arc_off[s];
    WF__TRY(wf__ops_to_device(c, a.final_cost + batch->state_base[i], view.final_cost,
                              view.num_states * 4, err));
    WF__TRY(upload_arcs(batch, &view, batch->state_base[i], a.arcs + batch->arc_base[i], err));
  }
  off[batch->state_base[count]] = batch->arc_base[count];
  WF__TRY(wf__ops_to_device(c, a.off, off, (batch->state_base[count] + 1) * 8, err));
  return wf__ops_finish(c, "fsts to the GPU", err);
}

static wf_status make_upload(wf__gpu_batch *batch, const void *from, wf__gpu_blocks *scratch,
                             int how, wf_error *err) {
  const wf_fst *const *fsts = from;
  uint64_t count = batch->f.num_fsts;
  (void)scratch, (void)how;
  for (size_t i = 0; i < count; i++) {
    wf_fst_view view = wf_fst_get_view(fsts[i]);
    batch->start[i] = view.start < 0 ? -1 : (int64_t)batch->state_base[i] + view.start;
    batch->state_base[i + 1] = batch->state_base[i] + view.num_states;
    batch->arc_base[i + 1] = batch->arc_base[i] + view.num_arcs;
  }
  batch->trimmed = true;
  for (size_t i = 0; i < count; i++)
    batch->trimmed = batch->trimmed && (batch->start[i] < 0 || wf__fst_known_trimmed(fsts[i]));
  uint64_t *off = wf__alloc(batch->state_base[count] + 1, sizeof *off);
  if (off == NULL)
    return wf__fail_memory(err, (batch->state_base[count] + 1) * sizeof *off, "states");
  wf_status status = upload_fsts(batch, fsts, off, err);
  free(off);
  return status;
}

wf_status wf__gpu_batch_create(const wf_fst *const *fsts, size_t count, wf_semiring semiring,
                               const char *device, wf__gpu_batch **out, wf_error *err) {
  wf__devices devices;
  wf__gpu_context *context;
  wf__gpu_profile profile;
  *out = NULL;
  WF__TRY(wf__devices_parse(device, &devices, err));
  if (!devices.cuda || devices.count != 1)
    return wf__fail(err, WF_ERR_ARGUMENT, "device %s: a batch is on one GPU, cuda or cuda:N",
                    device);
  const int caller = wf__callers_device();
  wf_status status = wf__gpu_profile_read(devices.numbers[0], &profile, err);
  wf__restore_device(caller);
  if (status != WF_OK) return status;
  WF__TRY(wf__gpu_context_create(devices.numbers[0], &context, err));
  status = wf__gpu_batch_make_on(context, count, semiring == WF_LOG, make_upload, fsts, 0,
                                 "fsts to the GPU", out, err);
  wf__gpu_context_release(context);
  return status;
}

wf_status wf__gpu_batch_create_beside(const wf__gpu_batch *beside, const wf_fst *const *fsts,
                                      wf__gpu_batch **out, wf_error *err) {
  return wf__gpu_batch_make_on(beside->context, beside->f.num_fsts, beside->log_semiring,
                               make_upload, fsts, 0, "fsts to the GPU", out, err);
}

static wf_status make_join(wf__gpu_batch *batch, const void *user, wf__gpu_blocks *scratch, int how,
                           wf_error *err) {
  const wf__composed *from = user;
  wf__gpu_context *c = batch->context;
  wf__gpu_arrays a;
  uint64_t count = batch->f.num_fsts, *arc_base;
  (void)how;
  batch->trimmed = from->trimmed;
  WF__TRY(wf__gpu_batch_reserve(batch, from->state_base[count], from->arc_base[count], &a, err));
  for (size_t i = 0; i < count; i++)
    batch->start[i] = from->start[i] < 0 ? -1 : (int64_t)from->state_base[i] + from->start[i];
  TAKE(c, scratch, arc_base, count + 1, "a batch");
  WF__TRY(wf__ops_to_device(c, arc_base, from->arc_base, (count + 1) * 8, err));
  WF__TRY(wf__ops_to_device(c, a.state_base, from->state_base, (count + 1) * 8, err));
  WF__TRY(wf__ops_to_device(c, a.start, batch->start, count * 8, err));
  WF__CUDA_TRY(
      wf__ops_join(&batch->f, arc_base, from->arc_off, from->arcs, a.off, a.arcs, c->stream),
      "a composition's results");
  WF__CUDA_TRY(cudaMemcpyAsync(a.final_cost, from->final_cost, batch->f.num_states * 4,
                               cudaMemcpyDeviceToDevice, c->stream),
               "a composition's results");
  if (from->origins == NULL) return WF_OK;
  TAKE(c, &batch->owned, batch->origins, batch->f.num_arcs, "origins of arcs");
  WF__CUDA_TRY(
      cudaMemcpyAsync(batch->origins, from->origins, batch->f.num_arcs * sizeof *batch->origins,
                      cudaMemcpyDeviceToDevice, c->stream),
      "origins of arcs");
  return wf__gpu_batch_input_bases(batch, from->input_base, err);
}

wf_status wf__gpu_batch_of_composed(const wf__composed *from, wf_semiring semiring,
                                    wf__gpu_batch **out, wf_error *err) {
  wf__gpu_context *context;
  *out = NULL;
  WF__TRY(wf__gpu_context_create(from->device, &context, err));
  wf_status status = wf__gpu_batch_make_on(context, from->count, semiring == WF_LOG, make_join,
                                           from, 0, "a composition's results", out, err);
  wf__gpu_context_release(context);
  return status;
}

/* --- labels, sorting --------------------------------------------------------------------- */

static wf_status keep_origins(wf__gpu_batch *batch, const wf__gpu_batch *from, wf_error *err) {
  if (from->origins == NULL) return WF_OK;
  TAKE(batch->context, &batch->owned, batch->origins, batch->f.num_arcs, "origins of arcs");
  return wf__gpu_batch_input_bases(
      batch, (const uint64_t *const[2]){from->input_base[0], from->input_base[1]}, err);
}

/* The same, and room for the arcs' origins if they are known. */
static wf_status begin_with_origins(wf__gpu_batch *batch, const wf__gpu_batch *from,
                                    wf__gpu_arrays *a, wf_error *err) {
  WF__TRY(wf__gpu_batch_begin_alike(batch, from, a, err));
  return keep_origins(batch, from, err);
}

static wf_status make_labels(wf__gpu_batch *batch, const void *user, wf__gpu_blocks *scratch,
                             int how, wf_error *err) {
  const wf__gpu_batch *from = user;
  wf__gpu_arrays a;
  (void)scratch;
  WF__TRY(begin_with_origins(batch, from, &a, err));
  cudaStream_t stream = batch->context->stream;
  if (from->origins != NULL)
    WF__CUDA_TRY(
        cudaMemcpyAsync(batch->origins, from->origins, from->f.num_arcs * sizeof *from->origins,
                        cudaMemcpyDeviceToDevice, stream),
        "origins of arcs");
  WF__CUDA_TRY(wf__ops_labels(from->f.arcs, a.arcs, from->f.num_arcs, how, stream), "labels");
  return WF_OK;
}

wf_status wf__gpu_batch_labels(const wf__gpu_batch *batch, enum wf__label_change change,
                               wf__gpu_batch **out, wf_error *err) {
  static const int how[] = {[WF__INVERT] = WF__OPS_INVERT,
                            [WF__PROJECT_INPUT] = WF__OPS_PROJECT_INPUT,
                            [WF__PROJECT_OUTPUT] = WF__OPS_PROJECT_OUTPUT};
  return wf__gpu_batch_make(batch, make_labels, how[change], "labels", out, err);
}

static int bits_for(uint64_t count) {
  int bits = 1;
  while (bits < 32 && count >> bits != 0) bits++;
  return bits;
}

static wf_status sort(wf__gpu_context *c, wf__gpu_blocks *scratch, const uint32_t *keys,
                      uint32_t *keys_out, const uint32_t *index, uint32_t *index_out,
                      uint64_t count, int bits, wf_error *err) {
  size_t bytes = 0;
  char *room;
  if (count == 0) return WF_OK;
  WF__CUDA_TRY(wf__ops_sort(keys, keys_out, index, index_out, count, bits, NULL, &bytes, c->stream),
               "sorting");
  TAKE(c, scratch, room, bytes, "sorting");
  WF__CUDA_TRY(wf__ops_sort(keys, keys_out, index, index_out, count, bits, room, &bytes, c->stream),
               "sorting");
  return WF_OK;
}

/* Sorts by label, then by source. Both sorts are stable. */
static wf_status make_arcsort(wf__gpu_batch *batch, const void *user, wf__gpu_blocks *scratch,
                              int by_olabel, wf_error *err) {
  const wf__gpu_batch *from = user;
  wf__gpu_context *c = batch->context;
  wf__gpu_arrays a;
  uint64_t m = from->f.num_arcs;
  uint32_t *keys, *keys_out, *index, *index_out, *source;
  WF__TRY(begin_with_origins(batch, from, &a, err));
  TAKE(c, scratch, keys, m, "sorting");
  TAKE(c, scratch, keys_out, m, "sorting");
  TAKE(c, scratch, index, m, "sorting");
  TAKE(c, scratch, index_out, m, "sorting");
  TAKE(c, scratch, source, m, "sorting");
  WF__CUDA_TRY(wf__ops_label_keys(&from->f, by_olabel, keys, index, c->stream), "sorting");
  WF__TRY(sort(c, scratch, keys, keys_out, index, index_out, m, 31, err));
  WF__CUDA_TRY(wf__ops_source(&from->f, source, c->stream), "sorting");
  WF__CUDA_TRY(wf__ops_source_keys(source, index_out, keys, m, c->stream), "sorting");
  WF__TRY(sort(c, scratch, keys, keys_out, index_out, index, m, bits_for(from->f.num_states), err));
  WF__CUDA_TRY(
      wf__ops_gather(from->f.arcs, from->origins, index, m, a.arcs, batch->origins, c->stream),
      "sorting");
  return WF_OK;
}

wf_status wf__gpu_batch_arcsort(const wf__gpu_batch *batch, bool by_olabel, wf__gpu_batch **out,
                                wf_error *err) {
  return wf__gpu_batch_make(batch, make_arcsort, by_olabel, "sorting", out, err);
}

/* --- trimming, reversal ------------------------------------------------------------------ */

wf_status wf__gpu_incoming_find(wf__gpu_context *c, wf__gpu_blocks *scratch, const wf__gpu_fsts *f,
                                wf__gpu_incoming *in, wf_error *err) {
  wf__gpu_blocks room = {.count = 0};
  uint32_t *keys, *keys_out, *index;
  TAKE(c, scratch, in->source, f->num_arcs, "incoming arcs");
  TAKE(c, scratch, in->arc, f->num_arcs, "incoming arcs");
  TAKE(c, scratch, in->off, f->num_states + 1, "incoming arcs");
  TAKE(c, scratch, keys, f->num_arcs, "incoming arcs");
  TAKE(c, scratch, keys_out, f->num_arcs, "incoming arcs");
  TAKE(c, scratch, index, f->num_arcs, "incoming arcs");
  WF__CUDA_TRY(wf__ops_source(f, in->source, c->stream), "incoming arcs");
  WF__CUDA_TRY(wf__ops_next_keys(f, keys, index, c->stream), "incoming arcs");
  wf_status status =
      sort(c, &room, keys, keys_out, index, in->arc, f->num_arcs, bits_for(f->num_states), err);
  wf__ops_release(c, &room);
  WF__TRY(status);
  WF__CUDA_TRY(wf__ops_incoming_off(keys_out, f->num_arcs, in->off, f->num_states, c->stream),
               "incoming arcs");
  return WF_OK;
}

static wf_status zeroed(wf__gpu_context *c, wf__gpu_blocks *scratch, uint64_t count, uint32_t **out,
                        wf_error *err) {
  TAKE(c, scratch, *out, count, "marks");
  WF__CUDA_TRY(cudaMemsetAsync(*out, 0, count * sizeof **out, c->stream), "marks");
  return WF_OK;
}

struct trimming {
  const wf__gpu_batch *from;
  const uint32_t *some; /* [num_fsts] in host memory: the fsts to trim; NULL: all */
};

static wf_status make_connect(wf__gpu_batch *batch, const void *user, wf__gpu_blocks *scratch,
                              int with_origins, wf_error *err) {
  const struct trimming *trimming = user;
  const wf__gpu_batch *from = trimming->from;
  const wf__gpu_fsts *f = &from->f;
  wf__gpu_context *c = batch->context;
  wf__gpu_incoming in;
  wf__gpu_arrays a;
  uint64_t n = f->num_states, m = f->num_arcs;
  uint32_t *marks[2], *list, *counts, *keep, *keep_arcs, *number, *place, *some = NULL, sizes[2];
  batch->trimmed = trimming->some == NULL;
  WF__TRY(wf__gpu_incoming_find(c, scratch, f, &in, err));
  if (trimming->some != NULL) {
    TAKE(c, scratch, some, f->num_fsts, "a batch");
    WF__TRY(wf__ops_to_device(c, some, trimming->some, f->num_fsts * sizeof *some, err));
  }
  TAKE(c, scratch, list, 2 * n, "a search");
  TAKE(c, scratch, counts, 3, "a search");
  TAKE(c, scratch, keep, n + 1, "states to keep");
  TAKE(c, scratch, keep_arcs, m + 1, "arcs to keep");
  TAKE(c, scratch, number, n + 1, "states to keep");
  TAKE(c, scratch, place, m + 1, "arcs to keep");
  for (int backward = 0; backward < 2; backward++) {
    WF__TRY(zeroed(c, scratch, n, &marks[backward], err));
    WF__CUDA_TRY(wf__ops_reach(f, &in, backward, marks[backward], list, counts, c->stream),
                 "a search");
  }
  WF__CUDA_TRY(wf__ops_keep(f, &in, marks[0], marks[1], some, keep, keep_arcs, c->stream),
               "trimming");
  WF__TRY(wf__gpu_scan(c, scratch, keep, number, n + 1, err));
  WF__TRY(wf__gpu_scan(c, scratch, keep_arcs, place, m + 1, err));
  READ(c, "trimming", VALUE(sizes[0], number + n), VALUE(sizes[1], place + m));
  WF__TRY(wf__gpu_batch_reserve(batch, sizes[0], sizes[1], &a, err));
  if (with_origins) WF__TRY(keep_origins(batch, from, err));
  WF__CUDA_TRY(
      wf__ops_compact(f, keep, keep_arcs, number, place, with_origins ? from->origins : NULL, a.off,
                      a.arcs, a.final_cost, batch->origins, c->stream),
      "trimming");
  WF__CUDA_TRY(wf__ops_compact_bases(f, keep, number, a.state_base, a.start, c->stream),
               "trimming");
  return WF_OK;
}

static wf_status connect(const wf__gpu_batch *batch, const uint32_t *some, bool with_origins,
                         wf__gpu_batch **out, wf_error *err) {
  struct trimming trimming = {batch, some};
  return wf__gpu_batch_make_on(batch->context, batch->f.num_fsts, batch->log_semiring, make_connect,
                               &trimming, with_origins, "trimming", out, err);
}

wf_status wf__gpu_batch_connect(const wf__gpu_batch *batch, wf__gpu_batch **out, wf_error *err) {
  return connect(batch, NULL, false, out, err);
}
wf_status wf__gpu_batch_trim(const wf__gpu_batch *batch, wf__gpu_batch **out, wf_error *err) {
  return connect(batch, NULL, true, out, err);
}
wf_status wf__gpu_batch_connect_some(const wf__gpu_batch *batch, const uint32_t *some,
                                     wf__gpu_batch **out, wf_error *err) {
  return connect(batch, some, false, out, err);
}

static wf_status reversed_bases(wf__gpu_batch *batch, const wf__gpu_batch *from, uint64_t *shift) {
  uint64_t count = from->f.num_fsts, new_starts = 0;
  for (size_t i = 0; i < count; i++) {
    shift[i] = new_starts;
    batch->state_base[i] = from->state_base[i] + new_starts;
    batch->start[i] = from->start[i] < 0 ? -1 : (int64_t)batch->state_base[i];
    new_starts += from->start[i] >= 0;
  }
  batch->state_base[count] = from->state_base[count] + new_starts;
  return WF_OK;
}

static wf_status make_reverse(wf__gpu_batch *batch, const void *user, wf__gpu_blocks *scratch,
                              int how, wf_error *err) {
  const wf__gpu_batch *from = user;
  const wf__gpu_fsts *f = &from->f;
  wf__gpu_context *c = batch->context;
  wf__gpu_incoming in;
  wf__gpu_arrays a;
  uint64_t count = f->num_fsts, *shift;
  uint32_t *is_final, *rank, num_finals;
  (void)how;
  WF__TRY(wf__gpu_incoming_find(c, scratch, f, &in, err));
  TAKE(c, scratch, is_final, f->num_states + 1, "final states");
  TAKE(c, scratch, rank, f->num_states + 1, "final states");
  TAKE(c, scratch, shift, count + 1, "a batch");
  WF__CUDA_TRY(wf__ops_finals(f, is_final, c->stream), "final states");
  WF__TRY(wf__gpu_scan(c, scratch, is_final, rank, f->num_states + 1, err));
  WF__TRY(wf__ops_to_host(c, &num_finals, rank + f->num_states, 4, err));
  uint64_t *host_shift = wf__calloc(count + 1, sizeof *host_shift);
  if (host_shift == NULL) return wf__fail_memory(err, count * sizeof *host_shift, "a batch");
  wf_status status = reversed_bases(batch, from, host_shift);
  if (status == WF_OK) status = wf__ops_to_device(c, shift, host_shift, count * 8, err);
  if (status == WF_OK) status = wf__ops_finish(c, "the mirror image", err);
  free(host_shift);
  WF__TRY(status);
  WF__TRY(
      wf__gpu_batch_reserve(batch, batch->state_base[count], f->num_arcs + num_finals, &a, err));
  WF__TRY(wf__ops_to_device(c, a.state_base, batch->state_base, (count + 1) * 8, err));
  WF__TRY(wf__ops_to_device(c, a.start, batch->start, count * 8, err));
  WF__CUDA_TRY(cudaMemsetAsync(a.off, 0, (batch->f.num_states + 1) * 8, c->stream),
               "the mirror image");
  WF__CUDA_TRY(wf__ops_reverse(f, &in, rank, shift, a.off, a.arcs, a.final_cost, c->stream),
               "the mirror image");
  return WF_OK;
}

wf_status wf__gpu_batch_reverse(const wf__gpu_batch *batch, wf__gpu_batch **out, wf_error *err) {
  return wf__gpu_batch_make(batch, make_reverse, 0, "the mirror image", out, err);
}

/* --- results ----------------------------------------------------------------------------- */

static wf_status get(const wf__gpu_batch *batch, size_t i, wf__csr *csr, int64_t *out_start,
                     wf_error *err) {
  wf__gpu_context *c = batch->context;
  uint64_t state = batch->state_base[i], arc = batch->arc_base[i],
           n = batch->state_base[i + 1] - state, m = batch->arc_base[i + 1] - arc;
  *out_start = batch->start[i] < 0 ? -1 : batch->start[i] - (int64_t)state;
  WF__TRY(wf__vec_grow(&csr->arc_off, n + 1, "states", err));
  WF__TRY(wf__vec_grow(&csr->final_cost, n + 1, "states", err));
  WF__TRY(wf__vec_grow(&csr->arcs, m + 1, "arcs", err));
  const wf__host_copy copies[] = {{csr->arc_off.data, batch->f.off + state, n * 8},
                                  {csr->final_cost.data, batch->f.final_cost + state, n * 4},
                                  {csr->arcs.data, batch->f.arcs + arc, m * sizeof(wf_arc)}};
  WF__TRY(wf__copy_to_host(copies, 3, c->stream, "results from the GPU", err));
  for (uint64_t s = 0; s < n; s++) csr->arc_off.data[s] -= arc;
  for (uint64_t k = 0; k < m; k++) csr->arcs.data[k].nextstate -= (uint32_t)state;
  csr->arc_off.size = csr->final_cost.size = n;
  csr->arcs.size = m;
  return WF_OK;
}

wf_status wf__gpu_batch_get(const wf__gpu_batch *batch, size_t i, wf__csr *csr, int64_t *out_start,
                            wf_error *err) {
  wf__gpu_operation getting;
  WF__TRY(wf__gpu_begin(batch->context, &getting, err));
  const wf_status status = get(batch, i, csr, out_start, err);
  wf__gpu_end(&getting);
  return status;
}

static wf_status copy_to(const wf__gpu_batch *batch, const void *from, uint64_t bytes, void *to,
                         wf_error *err) {
  WF__CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, batch->context->stream),
               "an fst in unified memory");
  return WF_OK;
}

static wf_status share(const wf__gpu_batch *batch, wf_fst **out, wf_error *err) {
  const wf__gpu_fsts *f = &batch->f;
  const uint64_t off_bytes = (f->num_states + 1) * sizeof *f->off,
                 arc_bytes = f->num_arcs * sizeof *f->arcs,
                 cost_bytes = f->num_states * sizeof *f->final_cost;
  char *memory;
  WF__TRY(wf__unified_alloc((void **)&memory, arc_bytes + off_bytes + cost_bytes, "an fst", err));
  char *off = memory + arc_bytes, *costs = off + off_bytes;
  wf_status status = copy_to(batch, f->arcs, arc_bytes, memory, err);
  if (status == WF_OK) status = copy_to(batch, f->off, off_bytes, off, err);
  if (status == WF_OK) status = copy_to(batch, f->final_cost, cost_bytes, costs, err);
  if (status == WF_OK) status = wf__ops_finish(batch->context, "an fst in unified memory", err);
  if (status != WF_OK) {
    wf__unified_free(memory);
    return status;
  }
  const wf_fst_view view = {.start = batch->start[0],
                            .num_states = f->num_states,
                            .num_arcs = f->num_arcs,
                            .arc_off = (const uint64_t *)(const void *)off,
                            .arcs = (const wf_arc *)(const void *)memory,
                            .final_cost = (const float *)(const void *)costs,
                            .semiring = batch->log_semiring ? WF_LOG : WF_TROPICAL};
  WF__TRY(wf__fst_from_arrays(&view, wf__unified_free, memory, out, err));
  wf__fst_set_device(*out, batch->context->device);
  return WF_OK;
}

wf_status wf__gpu_batch_share(const wf__gpu_batch *batch, wf_fst **out, wf_error *err) {
  wf__gpu_operation sharing;
  *out = NULL;
  WF__TRY(wf__gpu_begin(batch->context, &sharing, err));
  const wf_status status = share(batch, out, err);
  wf__gpu_end(&sharing);
  return status;
}

void wf__gpu_batch_view(const wf__gpu_batch *batch, wf_fst_batch_view *view) {
  const wf__gpu_fsts *f = &batch->f;
  *view = (wf_fst_batch_view){f->num_fsts,
                              f->num_states,
                              f->num_arcs,
                              batch->state_base,
                              batch->arc_base,
                              f->off,
                              f->arcs,
                              f->final_cost,
                              batch->origins,
                              batch->gradients,
                              {batch->input_gradients[0], batch->input_gradients[1]}};
}
