/* stream_free.c - frees what a stream holds, and streams that were abandoned. */
#include "decode/decoder.h"
#include "decode/stream.h"

void wf__stream_free(wf_stream *stream) {
  if (stream->channel != NULL) stream->backend->close(stream->decoder->search, stream->channel);
  wf__endpointer_close(&stream->endpointer);
  wf_graph_free(stream->graph);
  wf_result_free(stream->result);
  wf__account_free(&stream->account);
  wf__path_free(&stream->part);
  wf__vec_free(&stream->words);
  free(stream);
}

void wf__streams_sweep(wf_decoder *decoder) {
  for (wf_stream *stream = atomic_exchange(&decoder->abandoned, NULL), *next; stream != NULL;
       stream = next) {
    next = stream->next;
    wf__stream_free(stream);
  }
}
