/* decode_chunks.c - decodes whole utterances as streams, chunk by chunk, to simulate live audio. */
#include "decode_chunks.h"

#include <stdlib.h>
#include <string.h>

/* All streams, and the chunks of the current round. */
struct round {
  wf_stream **streams; /* [count] */
  wf_stream **ready;   /* [num_ready] streams with frames left */
  wf_scores *chunks;   /* [num_ready] the next frames of each */
  size_t num_ready;
};

static void take_chunks(struct round *round, const wf_utterance *utterances, size_t count,
                        int64_t from, int64_t num_frames) {
  round->num_ready = 0;
  for (size_t i = 0; i < count; i++) {
    const wf_scores *scores = &utterances[i].scores;
    if (scores->num_frames <= from) continue;
    wf_scores chunk = *scores;
    chunk.data = (const float *)scores->data + from * scores->stride;
    chunk.num_frames =
        scores->num_frames - from < num_frames ? scores->num_frames - from : num_frames;
    round->ready[round->num_ready] = round->streams[i];
    round->chunks[round->num_ready++] = chunk;
  }
}

static wf_status run(wf_decoder *decoder, struct round *round, const wf_utterance *utterances,
                     size_t count, int64_t num_frames, wf_result **results, wf_error *err) {
  wf_status status = WF_OK;
  for (size_t i = 0; i < count && status == WF_OK; i++) {
    status = wf_stream_create(decoder, NULL, &round->streams[i], err);
    if (status == WF_OK && utterances[i].scorer != NULL)
      status = wf_stream_set_scorer(round->streams[i], utterances[i].scorer, err);
    if (status == WF_OK && utterances[i].graph != NULL)
      status = wf_stream_set_graph(round->streams[i], utterances[i].graph, err);
  }
  for (int64_t from = 0; status == WF_OK; from += num_frames) {
    take_chunks(round, utterances, count, from, num_frames);
    if (round->num_ready == 0) break;
    status = wf_streams_advance(decoder, round->ready, round->chunks, round->num_ready, NULL, err);
  }
  for (size_t i = 0; i < count && status == WF_OK; i++)
    status = wf_stream_finish(round->streams[i], &results[i], err);
  return status;
}

wf_status decode_in_chunks(wf_decoder *decoder, const wf_utterance *utterances, size_t count,
                           int64_t num_frames, wf_result **results, wf_error *err) {
  struct round round = {calloc(count + 1, sizeof *round.streams),
                        malloc((count + 1) * sizeof *round.ready),
                        malloc((count + 1) * sizeof *round.chunks), 0};
  wf_status status = WF_ERR_MEMORY;
  memset(results, 0, count * sizeof *results);
  if (round.streams != NULL && round.ready != NULL && round.chunks != NULL)
    status = run(decoder, &round, utterances, count, num_frames, results, err);
  else
    snprintf(err->message, sizeof err->message, "out of memory for streams");
  for (size_t i = 0; i < count && round.streams != NULL; i++) wf_stream_free(round.streams[i]);
  for (size_t i = 0; i < count && status != WF_OK; i++) {
    wf_result_free(results[i]);
    results[i] = NULL;
  }
  free(round.streams);
  free(round.ready);
  free(round.chunks);
  return status;
}
