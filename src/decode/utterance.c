/* utterance.c - one utterance and its search: checks its scores, fills its result, records its own
 * error. */
#include "base/interrupt.h"
#include "decode/host_backend.h"
#include "math/score.h"

wf_status wf__host_searcher(wf__host *self, size_t i, bool many, wf__searcher **out,
                            wf_error *err) {
  if (self->searchers[i] == NULL)
    WF__TRY(self->setup.ops->create(&self->setup, many, &self->searchers[i], err));
  *out = self->searchers[i];
  return WF_OK;
}

static bool is_row_usable(const wf_scores *scores, int64_t t, int32_t num_columns) {
  if (scores->dtype == WF_FLOAT32)
    return wf__scores_usable((const float *)scores->data + t * scores->stride, num_columns);
  for (int32_t c = 0; c < num_columns; c++)
    if (!wf__score_usable(wf__score_at(scores, t, c))) return false;
  return true;
}

bool wf__values_usable(const wf_scores *scores, int32_t num_columns) {
  for (int64_t t = 0; t < scores->num_frames; t++)
    if (!is_row_usable(scores, t, num_columns)) return false;
  return true;
}

bool wf__check_values(const wf_scores *scores, int32_t num_columns, int64_t first,
                      wf_result *result) {
  for (int64_t t = 0; t < scores->num_frames; t++) {
    if (t % 64 == 0 && wf__stopped()) return true; /* the search reports it */
    if (is_row_usable(scores, t, num_columns)) continue;
    for (int32_t c = 0; c < num_columns; c++) {
      float value = wf__score_at(scores, t, c);
      if (wf__score_usable(value)) continue;
      wf__result_bad_score(result, first + t, c, value);
      return false;
    }
  }
  return true;
}

static wf_status check_place(const wf__host *self, const wf_scores *scores, wf_error *err) {
  return scores->on_device && !self->setup.on_device
             ? wf__fail(err, WF_ERR_ARGUMENT,
                        "scores in device memory need a decoder on that device")
             : WF_OK;
}

wf_status wf__host_check_scores(const wf__host *self, const wf_scores *scores, int64_t first,
                                wf_result *result, bool *good, wf_error *err) {
  *good = true;
  WF__TRY(check_place(self, scores, err));
  if (!scores->on_device) *good = wf__check_values(scores, self->setup.num_columns, first, result);
  return WF_OK;
}

wf_status wf__utterance_restart(const wf__host *self, wf__searcher *searcher,
                                const wf__batch *batch, uint32_t i, wf_error *err) {
  wf__searcher_set_graph(searcher, wf__batch_graph(batch, i, self->setup.graph));
  WF__TRY(
      wf__searcher_set_scorer(searcher, batch->scorers != NULL ? batch->scorers[i] : NULL, err));
  return searcher->ops->begin(searcher, err);
}

wf_status wf__utterance_begin(const wf__host *self, wf__searcher *searcher, const wf__batch *batch,
                              uint32_t i, bool *good, wf_error *err) {
  const wf_scores *scores = &batch->scores[i];
  *good = true;
  WF__TRY(self->setup.ops->checks_scores
              ? check_place(self, scores, err)
              : wf__host_check_scores(self, scores, 0, batch->results[i], good, err));
  return *good ? wf__utterance_restart(self, searcher, batch, i, err) : WF_OK;
}

wf_status wf__utterance_end(const wf__host *self, wf__searcher *searcher, const wf__batch *batch,
                            uint32_t i, wf_error *err) {
  const wf_scores *scores = &batch->scores[i];
  wf_result *result = batch->results[i];
  WF__TRY(wf__searcher_finish(searcher, scores, err));
  WF__TRY(wf__result_fill(result, searcher->graph, &self->setup.options, &searcher->path, err));
  if (!searcher->keeps_lattice) return WF_OK;
  WF__TRY(searcher->ops->lattice(searcher, scores, &result->lattice, err));
  return wf__result_determinize(batch, searcher->graph, result, err);
}

wf_status wf__record_error(const wf__host *self, const wf__batch *batch, uint32_t i,
                           wf_status status, const wf_error *err) {
  if (status == WF_OK || status == WF_ERR_MEMORY || status == WF_ERR_CANCELLED) return status;
  /* A bad score in a frame that the search did not reach comes first, as on a GPU. */
  if (self->setup.ops->checks_scores && !batch->scores[i].on_device &&
      !wf__check_values(&batch->scores[i], self->setup.num_columns, 0, batch->results[i]))
    return WF_OK;
  wf__result_fail(batch->results[i], status, err);
  return WF_OK;
}
