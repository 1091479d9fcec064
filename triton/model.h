/* model.h - a model of the server's model repository. Its instances share its graph and settings.
 * Each instance has a decoder, and the streams of the sequences that the server sends to it. */
#ifndef WARPFST_TRITON_MODEL_H
#define WARPFST_TRITON_MODEL_H

#include "metrics.h"
#include "settings.h"
#include "warpfst_all.h"

typedef struct tw_model {
  tw_settings settings; /* `decoder` and `stream` point to strings in it */
  wf_decoder_options decoder;
  wf_stream_options stream;
  int64_t max_sequences;
  wf_graph *graph;
  wf_transducer *transducer; /* NULL: none; else requests have its encoder outputs */
  wf_symbols *words;         /* NULL: words are output as numbers */
  tw_metrics *metrics;       /* owned; NULL: none */
} tw_model;

/* Creates a model. Takes ownership of the settings, also on failure. Parameters: the files `graph`
 * (required), `words`, `am` and `transducer`, with paths relative to `folder`; `max_sequences`; the
 * options of the tables decoder and stream. */
wf_status model_open(tw_settings *settings, const char *folder, tw_model **out, wf_error *err);
void model_close(tw_model *model);

/* A sequence: requests with the same correlation id, which are the chunks of one stream. */
typedef struct tw_sequence {
  char *id;
  wf_stream *stream;
  uint64_t last_used_ns;
  bool in_batch;
  struct tw_sequence *next;          /* in the same bucket */
  struct tw_sequence *older, *newer; /* by the time of last use */
} tw_sequence;

enum { NUM_BUCKETS = 4096 };

typedef struct tw_instance {
  const tw_model *model;
  wf_decoder *decoder;
  tw_sequence *buckets[NUM_BUCKETS]; /* by hash of the id */
  tw_sequence *oldest, *newest;
  size_t num_sequences;
} tw_instance;

wf_status instance_open(const tw_model *model, tw_instance **out, wf_error *err);
void instance_close(tw_instance *instance);

/* Finds the sequence with this id; with `starts`, creates or resets it. If there are already
 * max_sequences, a new one replaces the one that has been idle for longest. Errors: WF_ERR_STATE if
 * the sequence was not started or has been dropped, or if the batch has a request of it already. */
wf_status instance_find(tw_instance *instance, const char *id, bool starts, uint64_t now_ns,
                        tw_sequence **out, wf_error *err);
/* Drops sequences that have been idle for twice the server's max_sequence_idle_microseconds: the
 * server does not report that it has dropped a sequence. Twice, because requests may wait in the
 * server's queue. Does nothing if the model has no sequence batching. */
void instance_drop_idle(tw_instance *instance, uint64_t now_ns);
void instance_drop(tw_instance *instance, tw_sequence *sequence);

/* Makes a scorer from phrases `word word ... [boost]`: the lines of a text, or the elements of a
 * BYTES tensor, each of which is a length (4 bytes, little-endian) and a text. Phrases with unknown
 * words are ignored, with a warning in the log. */
wf_status model_read_boosts(const tw_model *model, const char *data, uint64_t size, bool are_lines,
                            wf_scorer **out, wf_error *err);

#endif
