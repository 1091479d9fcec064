/* endpoint.h - endpoint detection: Kaldi's five rules, applied to a stream after a chunk. */
#ifndef WF_DECODE_ENDPOINT_H
#define WF_DECODE_ENDPOINT_H

#include "base/memory.h"
#include "decode/backend.h"

typedef struct wf__endpoint_rule {
  bool must_contain_nonsilence;
  float min_trailing_silence, max_relative_cost, min_utterance_length;
} wf__endpoint_rule;

typedef struct wf__endpointer {
  double frame_shift;
  wf__endpoint_rule rules[5];
  bool *silent;       /* [num_labels] by input label of the graph; 0: skipped frames */
  bool hears_silence; /* some label is silent */
} wf__endpointer;

/* `blank`: column of the decoder's blank; -1: it has none. */
wf_status wf__endpointer_open(wf__endpointer *endpointer, const wf_graph *graph, int32_t blank,
                              const wf_stream_options *options, wf_error *err);
void wf__endpointer_close(wf__endpointer *endpointer);
/* Number of silent frames at the end of an alignment. */
int64_t wf__trailing_silence(const wf__endpointer *endpointer, const int32_t *alignment,
                             int64_t num_frames);
/* Is an utterance of so many frames long enough for a rule that waits for silence? */
bool wf__endpoint_waits(const wf__endpointer *endpointer, int64_t num_frames);
/* The first rule that holds, 1 to 5; 0: none. */
int32_t wf__endpoint(const wf__endpointer *endpointer, int64_t num_frames, int64_t num_silent,
                     double relative_cost);

#endif
