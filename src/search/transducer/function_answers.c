/* function_answers.c - a model behind functions of the caller: one call answers the requests of all
 * lanes that wait. */
#include "search/transducer/transducer_shared.h"

enum { LANES = 64 };

static size_t most_lanes(const void *shared) { return LANES; }

static size_t most_groups(const void *shared) { return 1; }

static wf_status begin(void *shared, bool streams, const int64_t *num_frames, size_t num_lanes,
                       size_t num_groups, wf_error *err) {
  return wf__asking_lanes_make(shared, num_lanes, num_groups, err);
}

static wf_status take(void *opaque, size_t lane, const wf_scores *scores, wf_error *err) {
  wf__transducer_shared *shared = opaque;
  shared->lanes[lane].asks = NULL;
  return WF_OK;
}

static void ask(void *opaque, size_t lane, wf__searcher *searcher) {
  wf__transducer_shared *shared = opaque;
  shared->lanes[lane].asks = &((wf__transducer_search *)searcher)->predictions;
}

static wf_status submit(void *opaque, size_t group, wf_error *err) {
  wf__transducer_shared *shared = opaque;
  shared->asked.size = 0;
  for (size_t i = 0; i < shared->num_lanes; i++) {
    wf__predictions *asks = shared->lanes[i].asks;
    shared->lanes[i].asks = NULL;
    if (asks == NULL) continue;
    shared->stats.num_rows += asks->count;
    shared->stats.num_contexts += asks->pending.size;
    WF__TRY(wf__vec_push(&shared->asked, asks, "a batch", err));
  }
  return wf__predictions_answer(shared->asked.data, shared->asked.size, &shared->work, err);
}

static void end(void *shared, wf_status status, const wf__round_counts *counts) {
  wf__asking_lanes_end(shared, counts);
}

const wf__answer_ops wf__function_answers = {.most_lanes = most_lanes,
                                             .most_groups = most_groups,
                                             .begin = begin,
                                             .take = take,
                                             .ask = ask,
                                             .submit = submit,
                                             .end = end};
