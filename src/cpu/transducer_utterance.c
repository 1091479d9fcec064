/* transducer_utterance.c - one utterance and its transducer search: checks its scores, fills its
 * result. */
#include <string.h>

#include "cpu/cpu_backend.h"

/* Words and alignment of the result count the consuming arcs of the path, of which a frame may have
 * several. Makes them count frames. */
static wf_status count_frames(const wf__transducer_search *search, const wf_graph *graph,
                              int64_t num_frames, wf_result *result, wf_error *err) {
  const int32_t *frames = search->frames.data;
  size_t size = search->frames.size;
  int32_t *alignment = wf__calloc((uint64_t)num_frames, sizeof *alignment);
  if (alignment == NULL) return wf__fail_memory(err, (uint64_t)num_frames * 4, "a result");
  for (size_t i = 0; i < size; i++) {
    int32_t label = result->alignment[i], *at = &alignment[frames[i]];
    if (graph->columns[label] != search->model->blank || *at == 0) *at = label;
  }
  free(result->alignment);
  result->alignment = alignment;
  result->num_decoded = num_frames;
  for (size_t w = 0; w < result->num_words; w++) {
    wf_word *word = &result->words[w];
    size_t begin = (size_t)word->start_frame, end = (size_t)word->end_frame;
    int32_t last = (int32_t)num_frames;
    word->start_frame = begin < size ? frames[begin] : last;
    word->end_frame = end < size ? frames[end] : last;
    if (end > begin && word->end_frame <= frames[end - 1]) word->end_frame = frames[end - 1] + 1;
  }
  return WF_OK;
}

wf_status wf__cpu_transducer_search(struct wf__cpu_backend *self, size_t i,
                                    wf__transducer_search **out, wf_error *err) {
  if (self->transducer_searches[i] == NULL)
    WF__TRY(wf__transducer_search_create(self->graph, self->transducer, &self->options,
                                         self->transducer_weights != NULL,
                                         &self->transducer_searches[i], err));
  *out = self->transducer_searches[i];
  return WF_OK;
}

wf_status wf__cpu_transducer_begin(struct wf__cpu_backend *self, wf__transducer_search *search,
                                   const wf__batch *batch, uint32_t i, bool *good, wf_error *err) {
  const wf_scores *scores = &batch->scores[i];
  *good = true;
  if (self->transducer_weights != NULL)
    WF__TRY(wf__transducer_weights_can_read(self->transducer_weights, scores, err));
  else if (scores->on_device)
    return wf__fail(err, WF_ERR_ARGUMENT, "scores in device memory need a decoder on that device");
  if (!scores->on_device) /* on a GPU, bad outputs make bad logits */
    *good = wf__cpu_check_values(scores, self->transducer->encoder_size, 0, batch->results[i]);
  if (!*good) return WF_OK;
  WF__TRY(wf__transducer_search_set_scorer(search,
                                           batch->scorers != NULL ? batch->scorers[i] : NULL, err));
  return wf__transducer_search_begin(search, scores, err);
}

wf_status wf__cpu_transducer_end(struct wf__cpu_backend *self, wf__transducer_search *search,
                                 const wf__batch *batch, uint32_t i, wf_error *err) {
  WF__TRY(wf__transducer_search_end(search, err));
  int64_t num_frames = search->path.num_decoded;
  search->path.num_decoded = (int64_t)search->frames.size;
  WF__TRY(wf__result_fill(batch->results[i], self->graph, &self->options, &search->path, err));
  search->path.num_decoded = num_frames;
  WF__TRY(count_frames(search, self->graph, num_frames, batch->results[i], err));
  if (self->options.lattice_beam <= 0) return WF_OK;
  WF__TRY(wf__transducer_lattice_make(search, &batch->results[i]->lattice, err));
  return wf__result_determinize(batch, self->graph, batch->results[i], err);
}

wf_status wf__cpu_decode_transducer(struct wf__cpu_backend *self, const wf__batch *batch,
                                    uint32_t i, int worker, wf_error *err) {
  wf__transducer_search *search;
  bool waits;
  WF__TRY(wf__cpu_transducer_search(self, (size_t)worker, &search, err));
  WF__TRY(wf__cpu_transducer_begin(self, search, batch, i, &waits, err));
  if (!waits) return WF_OK; /* bad scores */
  wf__predictions *predictions = &search->predictions;
  for (;;) {
    WF__TRY(wf__transducer_search_go_on(search, &waits, err));
    if (!waits) return wf__cpu_transducer_end(self, search, batch, i, err);
    WF__TRY(wf__predictions_answer(&predictions, 1, &search->work, err));
  }
}
