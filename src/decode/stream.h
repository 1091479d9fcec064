/* stream.h - a stream from the inside. */
#ifndef WF_DECODE_STREAM_H
#define WF_DECODE_STREAM_H

#include "decode/backend.h"
#include "decode/endpoint.h"

struct wf_stream {
  wf_decoder *decoder;
  wf_graph *graph;         /* the decoder's, or one with words added */
  const wf_scorer *scorer; /* borrowed: the channel holds the reference */
  const wf__stream_backend *backend;
  void *channel;
  wf_stream_options options;
  wf__endpointer endpointer;
  wf_result
      *result; /* the next result, with the stream's own error if it has failed; NULL: finished */
  wf__account account;
  size_t num_shown; /* words that the last partial result reported as stable. All but the last may
                       be dropped */
  int64_t start_frame;
  wf__path part;          /* scratch */
  WF__VEC(wf_word) words; /* of the last partial */
  bool in_batch;
  wf_stream *next; /* next abandoned stream of the decoder */
};

/* stream_free.c: frees a stream and what it holds, all but its reference to the decoder. */
void wf__stream_free(wf_stream *stream);
/* Closes abandoned streams. Called by the thread that uses the decoder. */
void wf__streams_sweep(wf_decoder *decoder);

#endif
