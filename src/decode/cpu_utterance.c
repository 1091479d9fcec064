/* cpu_utterance.c - one utterance and its search: checks its scores, fills its result, records
 * its own error. */
#include "base/interrupt.h"
#include "decode/cpu_backend.h"
#include "math/score.h"

void wf__cpu_run(struct wf__cpu_backend *self, uint64_t count, wf__task_fn fn, void *user) {
  if (self->transducer == NULL || self->transducer->network != NULL) {
    wf__pool_run(self->pool, count, fn, user);
    return;
  }
  for (uint64_t i = 0; i < count; i++) fn(user, i, 0);
}

bool wf__cpu_check_values(const wf_scores *scores, int32_t num_columns, int64_t first,
                          wf_result *result) {
  for (int64_t t = 0; t < scores->num_frames; t++) {
    if (t % 64 == 0 && wf__stopped()) return true; /* the search reports it */
    for (int32_t c = 0; c < num_columns; c++) {
      float value = wf__score_at(scores, t, c);
      if (wf__score_usable(value)) continue;
      wf__result_bad_score(result, first + t, c, value);
      return false;
    }
  }
  return true;
}

wf_status wf__cpu_search(struct wf__cpu_backend *self, int worker, wf__search **out,
                         wf_error *err) {
  if (self->searches[worker] == NULL)
    WF__TRY(wf__search_create(self->graph, &self->options, &self->searches[worker], err));
  *out = self->searches[worker];
  return WF_OK;
}

wf_status wf__cpu_begin(struct wf__cpu_backend *self, wf__search *search, const wf__batch *batch,
                        uint32_t i, bool *good, wf_error *err) {
  const wf_scores *scores = &batch->scores[i];
  if (scores->on_device)
    return wf__fail(err, WF_ERR_ARGUMENT, "scores in device memory need a decoder on that device");
  *good = wf__cpu_check_values(scores, self->graph->min_columns, 0, batch->results[i]);
  return *good ? wf__search_begin(search, err) : WF_OK;
}

wf_status wf__cpu_end(struct wf__cpu_backend *self, wf__search *search, const wf__batch *batch,
                      uint32_t i, wf_error *err) {
  const wf_scores *scores = &batch->scores[i];
  WF__TRY(wf__search_finish(search, scores, err));
  const wf_graph *graph = wf__batch_graph(batch, i, self->graph);
  WF__TRY(wf__result_fill(batch->results[i], graph, &self->options, &search->path, err));
  if (self->options.lattice_beam <= 0) return WF_OK;
  WF__TRY(wf__search_lattice(search, scores, &batch->results[i]->lattice, err));
  return wf__result_determinize(batch, graph, batch->results[i], err);
}

wf_status wf__cpu_record_error(const wf__batch *batch, uint32_t i, wf_status status,
                               const wf_error *err) {
  if (status == WF_OK || status == WF_ERR_MEMORY || status == WF_ERR_CANCELLED) return status;
  wf__result_fail(batch->results[i], status, err);
  return WF_OK;
}
