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
  WF__TRY(wf__transducer_search_run(search, scores, err));
  int64_t num_frames = search->path.num_decoded;
  search->path.num_decoded = (int64_t)search->frames.size;
  WF__TRY(wf__result_fill(batch->results[i], self->graph, &self->options, &search->path, err));
  search->path.num_decoded = num_frames;
  WF__TRY(count_frames(search, self->graph, num_frames, batch->results[i], err));
  if (self->options.lattice_beam <= 0) return WF_OK;
  WF__TRY(wf__transducer_lattice_make(search, &batch->results[i]->lattice, err));
  return wf__result_determinize(batch, self->graph, batch->results[i], err);
}
