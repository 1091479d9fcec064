/* gpu_pipeline.c - the steps of gpu_pipeline.h. */
#include "cuda/decoder/gpu_pipeline.h"

#include <sched.h>
#include <string.h>

#include "base/interrupt.h"
#include "base/memory.h"
#include "math/score.h"
#include "search/trace.h"

/* --- where scores are -------------------------------------------------------------------- */

wf_status wf__gpu_find_scores(const wf_scores *scores, wf_result *result, int *out, wf_error *err) {
  struct cudaPointerAttributes attributes = {0};
  *out = WF__SCORES_ON_HOST;
  if (!scores->on_device || scores->num_frames == 0) return WF_OK;
  WF__CUDA_TRY(cudaPointerGetAttributes(&attributes, scores->data), "where scores lie");
  *out = attributes.type == cudaMemoryTypeManaged ? WF__SCORES_EVERYWHERE : attributes.device;
  if (attributes.type == cudaMemoryTypeManaged || attributes.type == cudaMemoryTypeDevice)
    return WF_OK;
  wf_error own;
  wf__result_fail(
      result, wf__fail(&own, WF_ERR_ARGUMENT, "scores said to be in device memory are not"), &own);
  *out = WF__SCORES_NOWHERE;
  return WF_OK;
}

/* --- launching, waiting and reading back ------------------------------------------------- */

wf_status wf__gpu_launch(wf__search_kind kind, const wf__lane_params *params, cudaStream_t stream,
                         cudaEvent_t begun, wf_error *err) {
  WF__CUDA_TRY(wf__search_kernels_of[kind].launch(params, stream, begun), "the search kernel");
  return WF_OK;
}

wf_status wf__gpu_is_done(cudaStream_t stream, bool *out, wf_error *err) {
  const cudaError_t code = cudaStreamQuery(stream);
  *out = code == cudaSuccess;
  if (code != cudaErrorNotReady)
    WF__CUDA_TRY(code, "results from the GPU");
  else
    (void)cudaGetLastError(); /* not an error, but the next launch would report it as its own */
  return WF_OK;
}

wf_status wf__gpu_wait(cudaStream_t stream, const char *what, wf_error *err) {
  bool done = false;
  while (!done && wf__interrupt_current() != NULL) {
    WF__TRY(wf__interrupted(err));
    WF__TRY(wf__gpu_is_done(stream, &done, err));
    if (!done) sched_yield();
  }
  WF__CUDA_TRY(cudaStreamSynchronize(stream), what);
  return WF_OK;
}

wf_status wf__gpu_read_back(cudaStream_t stream, void *to, const void *from, uint64_t bytes,
                            const char *what, wf_error *err) {
  WF__CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), what);
  WF__CUDA_TRY(cudaStreamSynchronize(stream), what);
  return WF_OK;
}

/* --- scores for the CPU, errors ---------------------------------------------------------- */

wf_status wf__gpu_scores_to_host(const wf_scores *scores, int64_t from, cudaStream_t stream,
                                 wf_scores *host, void **copy, wf_error *err) {
  const uint64_t element = wf__dtype_bytes(scores->dtype);
  *host = *scores;
  *copy = NULL;
  host->num_frames = scores->num_frames - from;
  host->data = scores->data != NULL
                   ? (const char *)scores->data + (uint64_t)(from * scores->stride) * element
                   : NULL;
  if (!scores->on_device || host->num_frames == 0) return WF_OK;
  const uint64_t bytes = ((uint64_t)(host->num_frames - 1) * (uint64_t)scores->stride +
                          (uint64_t)scores->num_columns) *
                         element; /* the last row may lack the padding */
  *copy = wf__alloc(bytes, 1);
  if (*copy == NULL) return wf__fail_memory(err, bytes, "scores");
  WF__TRY(wf__gpu_read_back(stream, *copy, host->data, bytes, "scores from the GPU", err));
  host->data = *copy;
  host->on_device = false;
  return WF_OK;
}

wf_status wf__gpu_fetch_scores(const wf_scores *scores, wf_scores *host, void **copy,
                               wf_error *err) {
  struct cudaPointerAttributes attributes = {0};
  const int caller = wf__callers_device();
  *copy = NULL;
  WF__CUDA_TRY(cudaPointerGetAttributes(&attributes, scores->data), "where scores lie");
  if (attributes.type != cudaMemoryTypeDevice && attributes.type != cudaMemoryTypeManaged)
    return wf__fail(err, WF_ERR_ARGUMENT, "scores said to be in device memory are not");
  WF__CUDA_TRY(cudaSetDevice(attributes.device), "choosing the GPU");
  const wf_status status = wf__gpu_scores_to_host(scores, 0, NULL, host, copy, err);
  wf__restore_device(caller);
  return status;
}

wf_status wf__gpu_report_bad_score(const wf_scores *scores, uint64_t place, int64_t first,
                                   cudaStream_t stream, wf_result *result, wf_error *err) {
  const int64_t frame = (int64_t)(place >> 32);
  const int32_t column = (int32_t)(uint32_t)place;
  wf_scores one = {.num_frames = 1, .num_columns = 1, .stride = 1, .dtype = scores->dtype};
  const uint64_t element = wf__dtype_bytes(scores->dtype);
  const char *at =
      (const char *)scores->data + (uint64_t)(frame * scores->stride + column) * element;
  uint32_t bits = 0;
  if (scores->on_device)
    WF__TRY(wf__gpu_read_back(stream, &bits, at, element, "a score from the GPU", err));
  else
    memcpy(&bits, at, element);
  one.data = &bits;
  wf__result_bad_score(result, first + frame, column, wf__score_at(&one, 0, 0));
  return WF_OK;
}

wf_status wf__gpu_outcome_error(int32_t outcome, const wf_decoder_options *options, wf_error *err) {
  if (outcome == WF__LANE_CLOSURE)
    return wf__fail(err, WF_ERR_LIMIT,
                    "max_tokens (%d) is less than the epsilon closure of one state",
                    options->max_tokens);
  return wf__fail_cycle(err);
}

/* --- estimates for the next plan --------------------------------------------------------- */

enum { OFTEN = 8 }; /* lanes count as too small if one in this many utterances needs a larger one */

void wf__search_tally_add(wf__search_tally *tally, int32_t outcome, uint64_t tokens,
                          uint64_t frames) {
  tally->num_utterances++;
  tally->num_full += outcome == WF__LANE_TABLE_FULL;
  if (outcome != WF__LANE_OK) return;
  tally->tokens += tokens;
  tally->frames += frames;
}

uint32_t wf__search_tally_usual(const wf__search_tally *tally, uint32_t before) {
  if (tally->frames == 0) return before;
  const uint64_t now = tally->tokens / tally->frames;
  return (uint32_t)(before > 0 ? (before * 3ull + now) / 4 : now) + 1;
}

bool wf__search_tally_too_small(const wf__search_tally *tally) {
  return tally->num_full * OFTEN > tally->num_utterances;
}
