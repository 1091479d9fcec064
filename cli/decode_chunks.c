/* decode_chunks.c - decodes whole utterances as streams, chunk by chunk, to simulate live audio. */
#include "decode_chunks.h"

#include <stdlib.h>
#include <string.h>

struct turn {
  wf_stream **streams; /* [count] */
  wf_stream **ready;   /* those with frames left */
  wf_scores *chunks;
  size_t num_ready;
};

static void take_chunks(struct turn *turn, const wf_utterance *utterances, size_t count,
                        int64_t from, int64_t num_frames) {
  turn->num_ready = 0;
  for (size_t i = 0; i < count; i++) {
    const wf_scores *scores = &utterances[i].scores;
    if (scores->num_frames <= from) continue;
    wf_scores chunk = *scores;
    chunk.data = (const float *)scores->data + from * scores->stride;
    chunk.num_frames =
        scores->num_frames - from < num_frames ? scores->num_frames - from : num_frames;
    turn->ready[turn->num_ready] = turn->streams[i];
    turn->chunks[turn->num_ready++] = chunk;
  }
}

static wf_status run(wf_decoder *decoder, struct turn *turn, const wf_utterance *utterances,
                     size_t count, int64_t num_frames, wf_result **results, wf_error *err) {
  wf_status status = WF_OK;
  for (size_t i = 0; i < count && status == WF_OK; i++) {
    status = wf_stream_open(decoder, NULL, &turn->streams[i], err);
    if (status == WF_OK && utterances[i].scorer != NULL)
      status = wf_stream_set_scorer(turn->streams[i], utterances[i].scorer, err);
    if (status == WF_OK && utterances[i].graph != NULL)
      status = wf_stream_set_graph(turn->streams[i], utterances[i].graph, err);
  }
  for (int64_t from = 0; status == WF_OK; from += num_frames) {
    take_chunks(turn, utterances, count, from, num_frames);
    if (turn->num_ready == 0) break;
    status = wf_streams_advance(decoder, turn->ready, turn->chunks, turn->num_ready, NULL, err);
  }
  for (size_t i = 0; i < count && status == WF_OK; i++)
    status = wf_stream_finish(turn->streams[i], &results[i], err);
  return status;
}

wf_status decode_in_chunks(wf_decoder *decoder, const wf_utterance *utterances, size_t count,
                           int64_t num_frames, wf_result **results, wf_error *err) {
  struct turn turn = {calloc(count + 1, sizeof *turn.streams),
                      malloc((count + 1) * sizeof *turn.ready),
                      malloc((count + 1) * sizeof *turn.chunks), 0};
  wf_status status = WF_ERR_MEMORY;
  memset(results, 0, count * sizeof *results);
  if (turn.streams != NULL && turn.ready != NULL && turn.chunks != NULL)
    status = run(decoder, &turn, utterances, count, num_frames, results, err);
  else
    snprintf(err->message, sizeof err->message, "out of memory for streams");
  for (size_t i = 0; i < count && turn.streams != NULL; i++) wf_stream_close(turn.streams[i]);
  for (size_t i = 0; i < count && status != WF_OK; i++) {
    wf_result_free(results[i]);
    results[i] = NULL;
  }
  free(turn.streams);
  free(turn.ready);
  free(turn.chunks);
  return status;
}
