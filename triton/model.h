/* model.h - a model of the repository: its graph and settings, which all instances share, and its
 * instances, each with a decoder and the sequences that the server has sent to it. */
#ifndef WARPFST_TRITON_MODEL_H
#define WARPFST_TRITON_MODEL_H

#include "settings.h"
#include "warpfst_all.h"

typedef struct tw_model {
  tw_settings settings; /* options keep pointers into it */
  wf_decoder_options decoder;
  wf_stream_options stream;
  int64_t max_sequences;
  wf_graph *graph;
  wf_symbols *words; /* NULL: words are given by number */
} tw_model;

/* Takes the settings over, also on failure. Parameters are `graph` (required), `words`, `am`, whose
 * paths are relative to `folder`; `max_sequences`; and the options of tables decoder and stream by
 * their names. */
wf_status model_open(tw_settings *settings, const char *folder, tw_model **out, wf_error *err);
void model_close(tw_model *model);

/* A conversation: correlation id, stream. */
typedef struct tw_sequence {
  char *id;
  wf_stream *stream;
  uint64_t last_used; /* count of executions */
  bool in_batch;
  struct tw_sequence *next; /* of the same bucket */
} tw_sequence;

enum { NUM_BUCKETS = 4096 };

typedef struct tw_instance {
  const tw_model *model;
  wf_decoder *decoder;
  tw_sequence *buckets[NUM_BUCKETS]; /* by hash of the id */
  size_t num_sequences;
  uint64_t num_executions;
} tw_instance;

wf_status instance_open(const tw_model *model, tw_instance **out, wf_error *err);
void instance_close(tw_instance *instance);

/* The sequence of that id: with `starts` anew, else the one that was started. The server never
 * tells of sequences that it has dropped for being idle, so when there are max_sequences, the one
 * that was idle longest makes room. Errors: WF_ERR_STATE for one that was not started, or has been
 * dropped. */
wf_status instance_find(tw_instance *instance, const char *id, bool starts, tw_sequence **out,
                        wf_error *err);
void instance_drop(tw_instance *instance, tw_sequence *sequence);

/* Boosts as BYTES tensors hold them: elements of a length (4 bytes, little-endian) and a text `word
 * word ... boost`. Phrases with words that are unknown are ignored. */
wf_status model_read_boosts(const tw_model *model, const char *data, uint64_t size, wf_scorer **out,
                            wf_error *err);

#endif
