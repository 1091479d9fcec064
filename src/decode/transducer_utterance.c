/* transducer_utterance.c - one utterance and its transducer search: checks its scores, fills its
 * result. */
#include "decode/cpu_backend.h"

wf_status wf__cpu_transducer_search(struct wf__cpu_backend *self, size_t i,
                                    wf__transducer_search **out, wf_error *err) {
  if (self->transducer_searches[i] == NULL)
    WF__TRY(wf__transducer_search_create(self->graph, self->transducer, &self->options,
                                         &self->transducer_arcs, self->num_gpus > 0,
                                         &self->transducer_searches[i], err));
  *out = self->transducer_searches[i];
  return WF_OK;
}

wf_status wf__cpu_transducer_begin(struct wf__cpu_backend *self, wf__transducer_search *search,
                                   const wf__batch *batch, uint32_t i, bool *good, wf_error *err) {
  const wf_scores *scores = &batch->scores[i];
  *good = true;
  if (scores->on_device && self->num_gpus == 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "scores in device memory need a decoder on that device");
  if (!scores->on_device) /* on a GPU, bad outputs make bad logits */
    *good = wf__cpu_check_values(scores, self->transducer->encoder_size, 0, batch->results[i]);
  if (!*good) return WF_OK;
  wf__transducer_search_set_graph(search, wf__batch_graph(batch, i, self->graph));
  const wf_scorer *scorer = batch->scorers != NULL ? batch->scorers[i] : NULL;
  WF__TRY(wf__transducer_search_set_scorer(search, wf__scorer_for_transducer(scorer), err));
  return wf__transducer_search_begin(search, err);
}

wf_status wf__cpu_transducer_end(struct wf__cpu_backend *self, wf__transducer_search *search,
                                 const wf__batch *batch, uint32_t i, wf_error *err) {
  WF__TRY(wf__transducer_search_finish(search, err));
  WF__TRY(wf__result_fill(batch->results[i], search->graph, &self->options, &search->path, err));
  if (self->options.lattice_beam <= 0) return WF_OK;
  WF__TRY(wf__transducer_lattice_make(search, &batch->results[i]->lattice, err));
  return wf__result_determinize(batch, search->graph, batch->results[i], err);
}

wf_status wf__cpu_decode_transducer(struct wf__cpu_backend *self, const wf__batch *batch,
                                    uint32_t i, int worker, wf_error *err) {
  wf__transducer_search *search;
  bool good;
  WF__TRY(wf__cpu_transducer_search(self, (size_t)worker, &search, err));
  if (search->joined) /* other threads would use its memory, too */
    WF__TRY(wf__transducer_search_set_scorer(search, NULL, err));
  WF__TRY(wf__cpu_transducer_begin(self, search, batch, i, &good, err));
  if (!good) return WF_OK;
  WF__TRY(wf__transducer_search_advance(search, &batch->scores[i], err));
  return wf__cpu_transducer_end(self, search, batch, i, err);
}
