/* host_backend.h - the backend on the CPU, for searches of any kind: a decoder's threads and their
 * searches, which its batches and its streams share.
 *
 *   host_backend.c   a batch: an utterance a thread
 *   whole_utterances.c  utterances of a batch whose search is wholly on a device
 *   whole_chunks.c      the same of chunks of streams
 *   lanes.c          a batch, or chunks of streams, whose searches get scores together
 *   rounds.c         the loop over lanes
 *   utterance.c      one utterance of a batch
 *   host_streams.c   streams */
#ifndef WF_DECODE_HOST_BACKEND_H
#define WF_DECODE_HOST_BACKEND_H

#include "base/threads.h"
#include "decode/backend.h"
#include "search/searcher.h"

typedef struct wf__host {
  wf__search_setup setup;
  wf__pool *pool;
  wf__searcher **searchers; /* [num_searchers] of threads, or of lanes; from first_follower on, of
                               threads that follow a device's searches. Made on first use. Between
                               calls, graph and scorer are those of the last use, and the graph may
                               have been freed */
  size_t num_searchers, first_follower;
} wf__host;

enum { WF__OWN_LANES = 64 }; /* of searches that answer their own requests to a model */
/* Most lanes of a batch. */
static inline size_t wf__host_most_lanes(const wf__host *self) {
  const wf__answer_ops *answers = self->setup.answers;
  return answers != NULL ? answers->most_lanes(self->setup.shared) : WF__OWN_LANES;
}

/* --- utterance.c ------------------------------------------------------------------------- */

/* Returns search i, made on first use. `many`: it is a lane's. */
wf_status wf__host_searcher(wf__host *self, size_t i, bool many, wf__searcher **out, wf_error *err);
/* Can all scores be used? In host memory. */
bool wf__values_usable(const wf_scores *scores, int32_t num_columns);
/* Fails the result if one of these scores is bad, unless it has failed before. `first`: number of
 * their first frame in the utterance. */
bool wf__check_values(const wf_scores *scores, int32_t num_columns, int64_t first,
                      wf_result *result);
/* The same with the setup's columns. Scores in a device's memory are checked there; fails if the
 * decoder has none. */
wf_status wf__host_check_scores(const wf__host *self, const wf_scores *scores, int64_t first,
                                wf_result *result, bool *good, wf_error *err);
/* Sets what utterance i of a batch is searched with, and begins it. */
wf_status wf__utterance_restart(const wf__host *self, wf__searcher *searcher,
                                const wf__batch *batch, uint32_t i, wf_error *err);
/* The same, after a look at its scores. Not `good`: its scores are bad, and its result has failed. */
wf_status wf__utterance_begin(const wf__host *self, wf__searcher *searcher, const wf__batch *batch,
                              uint32_t i, bool *good, wf_error *err);
/* Fills the utterance's result, after all frames. */
wf_status wf__utterance_end(const wf__host *self, wf__searcher *searcher, const wf__batch *batch,
                            uint32_t i, wf_error *err);
/* Records an utterance's own error in its result. Returns the status of the batch: WF_OK,
 * WF_ERR_MEMORY or WF_ERR_CANCELLED. */
wf_status wf__record_error(const wf__host *self, const wf__batch *batch, uint32_t i,
                           wf_status status, const wf_error *err);

/* --- whole_utterances.c ------------------------------------------------------------------ */

/* Decodes those utterances of a batch that a device searches without lanes, and drops them from
 * `order`, which has the longest first. */
wf_status wf__whole_decode(wf__host *self, const wf__batch *batch, uint32_t *order, uint32_t *count,
                           wf_error *err);

/* --- whole_chunks.c ---------------------------------------------------------------------- */

/* Checks the scores of a chunk and enters its stream. Not `good`: the stream has failed, now or
 * before, and was not entered. */
wf_status wf__chunk_begin(const wf__host *self, const wf__batch *batch, void *const *channels,
                          uint32_t item, wf__searcher **out, bool *good, wf_error *err);
/* Advances those streams of a batch that a device searches without lanes, and drops them from
 * `order`, which has the longest chunks first. */
wf_status wf__whole_advance(wf__host *self, const wf__batch *batch, void *const *channels,
                            uint32_t *order, uint32_t *count, wf_error *err);

/* --- lanes.c ----------------------------------------------------------------------------- */

/* Do all utterances have one scorer, which scores the requests of many searches at once? `order`:
 * the utterances. */
bool wf__scores_jointly(const wf__batch *batch, const uint32_t *order, uint32_t count);
/* Decodes a batch in lanes. `order`: the utterances, longest first. */
wf_status wf__lanes_decode(wf__host *self, const wf__batch *batch, const uint32_t *order,
                           uint32_t count, wf_error *err);
/* Advances streams in lanes, whose requests to the model are answered together. */
wf_status wf__lanes_advance(wf__host *self, const wf__batch *batch, void *const *channels,
                            wf_error *err);

extern const wf__stream_backend wf__host_streams; /* host_streams.c */

#endif
