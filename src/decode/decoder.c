/* decoder.c - the public decoder: checks each utterance, hands the batch to a backend. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/option_tables.h"
#include "decode/backend.h"

struct wf_decoder {
  wf_graph *graph;
  wf_decoder_options options;
  const wf__backend *backend;
  void *search;
};

wf_status wf_decoder_create(const wf_graph *graph, const wf_decoder_options *options, wf_decoder **out, wf_error *err) {
  *out = NULL;
  wf_decoder *decoder = wf__calloc(1, sizeof *decoder);
  if (decoder == NULL) return wf__fail_memory(err, sizeof *decoder, "a decoder");
  decoder->graph = wf_graph_ref(graph);
  decoder->backend = &wf__cpu_backend;
  wf_status status = wf__options_take(wf__decoder_table(), options, &decoder->options, err);
  if (status == WF_OK) status = decoder->backend->open(decoder->graph, &decoder->options, &decoder->search, err);
  if (status != WF_OK) {
    wf_decoder_free(decoder);
    return status;
  }
  *out = decoder;
  return WF_OK;
}

void wf_decoder_free(wf_decoder *decoder) {
  if (decoder == NULL) return;
  if (decoder->search != NULL) decoder->backend->close(decoder->search);
  wf_graph_free(decoder->graph);
  free(decoder);
}

/* What makes an utterance undecodable, said in its own result. Returns false then. */
static bool check_scores(const wf_graph *graph, const wf_scores *scores, wf_result *result) {
  result->num_frames = scores->num_frames;
  int32_t needed = graph->min_columns;
  if (scores->num_frames < 0 || scores->num_frames > INT32_MAX || scores->num_columns < 0 || scores->stride < scores->num_columns ||
      (scores->data == NULL && scores->num_frames > 0)) {
    result->status = WF_ERR_ARGUMENT;
    snprintf(result->message, sizeof result->message, "scores of %lld frames, %d columns, stride %lld make no matrix", (long long)scores->num_frames,
             scores->num_columns, (long long)scores->stride);
    return false;
  }
  if (scores->num_frames > 0 && scores->num_columns < needed) {
    result->status = WF_ERR_ARGUMENT;
    snprintf(result->message, sizeof result->message, "scores have %d columns, the graph reads column %d (input labels up to %d)", scores->num_columns,
             needed - 1, graph->num_labels - 1);
    return false;
  }
  for (int64_t t = 0; t < scores->num_frames; t++) {
    const float *row = scores->data + t * scores->stride;
    for (int32_t c = 0; c < scores->num_columns; c++) {
      if (row[c] <= 1e20f && (row[c] >= -1e20f || row[c] == -INFINITY)) continue; /* false for NaN too */
      result->status = WF_ERR_ARGUMENT;
      snprintf(result->message, sizeof result->message, "score of frame %lld, column %d is %g", (long long)t, c, (double)row[c]);
      return false;
    }
  }
  return true;
}

wf_status wf_decode(wf_decoder *decoder, const wf_scores *scores, size_t count, const wf_progress *progress, wf_result **results, wf_error *err) {
  bool *skip = wf__calloc(count, sizeof *skip);
  wf_status status = skip != NULL ? WF_OK : wf__fail_memory(err, count, "a batch");
  memset(results, 0, count * sizeof *results);
  for (size_t i = 0; i < count && status == WF_OK; i++) {
    results[i] = wf__calloc(1, sizeof **results);
    if (results[i] == NULL) status = wf__fail_memory(err, sizeof **results, "a result");
    else skip[i] = !check_scores(decoder->graph, &scores[i], results[i]);
  }
  wf__batch batch = {.scores = scores, .skip = skip, .count = count, .results = results, .progress = progress};
  if (status == WF_OK) status = decoder->backend->decode(decoder->search, &batch, err);
  if (status != WF_OK) {
    for (size_t i = 0; i < count; i++) {
      wf_result_free(results[i]);
      results[i] = NULL;
    }
  }
  free(skip);
  return status;
}
