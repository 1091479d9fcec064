/* determinize_residual.c - residual outputs: appending a label, finding and removing a common
 * prefix. */
#include "fstops/determinize.h"

/* No fst that can be determinized has residual outputs this long in practice. */
enum { MAX_RESIDUAL = 10000 };

/* wf__string_put, which fails if the pool is read-only for the worker and would be written. */
static wf_status put(wf__det_worker *worker, uint32_t label, uint32_t rest, uint32_t *out,
                     wf_error *err) {
  if (worker->shared && rest != 0) return WF_ERR_STATE;
  return wf__string_put(&worker->det->strings, label, rest, out, err);
}

wf_status wf__residual_append(wf__det_worker *worker, uint32_t string, int32_t olabel,
                              uint32_t *out, wf_error *err) {
  wf__determinizer *det = worker->det;
  *out = string;
  if (olabel == 0) return WF_OK;
  if (!worker->shared && wf__string_size(&det->strings, string) >= MAX_RESIDUAL)
    return wf__fail_growth(det, 0, "gave up (outputs are 10000 labels behind inputs)", err);
  return put(worker, (uint32_t)olabel, string, out, err);
}

/* Strings are lists that begin with the last label, so a common prefix is a common tail. */
uint32_t wf__residual_common_prefix(const wf__strings *strings, uint32_t a, uint32_t b) {
  uint32_t size_a = wf__string_size(strings, a), size_b = wf__string_size(strings, b);
  if (size_a > size_b)
    a = wf__string_drop(strings, a, size_a - size_b);
  else
    b = wf__string_drop(strings, b, size_b - size_a);
  while (a != b) {
    a = wf__string_rest(strings, a);
    b = wf__string_rest(strings, b);
  }
  return a;
}

wf_status wf__residual_without_prefix(wf__det_worker *worker, uint32_t string, uint32_t prefix_size,
                                      uint32_t *out, wf_error *err) {
  const wf__determinizer *det = worker->det;
  *out = string;
  if (prefix_size == 0) return WF_OK;
  uint32_t keep = wf__string_size(&det->strings, string) - prefix_size;
  worker->labels.size = 0;
  WF__TRY(wf__vec_grow(&worker->labels, keep + 1, "output strings", err));
  for (; keep > 0; keep--, string = wf__string_rest(&det->strings, string))
    worker->labels.data[worker->labels.size++] = wf__string_label(&det->strings, string);
  *out = 0;
  while (worker->labels.size > 0)
    WF__TRY(put(worker, worker->labels.data[--worker->labels.size], *out, out, err));
  return WF_OK;
}
