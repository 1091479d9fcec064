/* rounds.h - utterances of a batch that are searched together, in lanes, because the scores
 * that they wait for are computed in one batch.
 *
 *   round of a group:  every lane, in parallel:  begin its utterance | go on with the scores
 *                                                --> waits for scores, or has its result
 *                      scores for all lanes that wait
 *                      lanes that are done take the next utterances
 *
 * A lane waits once or a few times a frame, and not for others to reach the same frame. Results do
 * not depend on which lanes share a round. With several groups, the scores of one can be computed
 * while threads search the others. */
#ifndef WF_DECODE_ROUNDS_H
#define WF_DECODE_ROUNDS_H

#include "decode/backend.h"
#include "search/searcher.h"

typedef struct wf__rounds {
  const struct wf__host *host;
  const wf__batch *batch;
  size_t num_lanes;  /* at most one for each utterance; lane i begins with order[i] */
  size_t num_groups; /* lane i is of group i % num_groups */
  void *user;
  /* Runs the lane until it waits or its result is complete; an error is the utterance's, unless it
   * is WF_ERR_MEMORY or WF_ERR_CANCELLED. Any thread, one for a lane. */
  wf_status (*run)(void *user, size_t lane, uint32_t utterance, bool begins, bool *waits,
                   wf_error *err);
  /* Scores what the group's lanes wait for, on the calling thread; or begins to, and `wait` ends
   * it. Other groups may run meanwhile. `lanes_wait`: [num_lanes]. */
  wf_status (*score)(void *user, size_t group, const bool *lanes_wait, wf_error *err);
  bool score_uses_pool;                                       /* then nothing runs meanwhile */
  wf_status (*wait)(void *user, size_t group, wf_error *err); /* NULL: `score` does all */
  wf__round_counts counts;                                    /* result */
} wf__rounds;

/* `order`: the utterances. UINT32_MAX for lane i: it is idle until there are more utterances than
 * lanes. After an error, `wait` may be due for any group. */
wf_status wf__rounds_run(wf__rounds *rounds, const uint32_t *order, uint32_t count, wf_error *err);

#endif
