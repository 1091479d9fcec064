/* transducer_utterance.c - one utterance and its transducer search: checks its scores, fills its
 * result. */
#include "cpu/cpu_backend.h"

wf_status wf__cpu_decode_transducer(struct wf__cpu_backend *self, const wf__batch *batch,
                                    uint32_t i, int worker, wf_error *err) {
  const wf_scores *scores = &batch->scores[i];
  wf__transducer_search **at = &self->transducer_searches[worker], *search;
  if (scores->on_device)
    return wf__fail(err, WF_ERR_ARGUMENT, "scores in device memory need a decoder on that device");
  if (!wf__cpu_check_values(scores, self->transducer->encoder_size, 0, batch->results[i]))
    return WF_OK;
  if (*at == NULL)
    WF__TRY(wf__transducer_search_create(self->graph, self->transducer, &self->options, at, err));
  search = *at;
  WF__TRY(wf__transducer_search_set_scorer(search,
                                           batch->scorers != NULL ? batch->scorers[i] : NULL, err));
  WF__TRY(wf__transducer_search_begin(search, err));
  WF__TRY(wf__transducer_search_advance(search, scores, err));
  WF__TRY(wf__transducer_search_finish(search, err));
  WF__TRY(wf__result_fill(batch->results[i], self->graph, &self->options, &search->path, err));
  if (self->options.lattice_beam <= 0) return WF_OK;
  WF__TRY(wf__transducer_lattice_make(search, &batch->results[i]->lattice, err));
  return wf__result_determinize(batch, self->graph, batch->results[i], err);
}
