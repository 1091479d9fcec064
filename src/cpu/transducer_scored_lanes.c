/* transducer_scored_lanes.c - utterances of a batch that are searched together, because their
 * scorer scores the requests of all of them in one batch. The model is built in, and each search
 * answers its own requests to it. */
#include "cpu/cpu_backend.h"
#include "cpu/cpu_rounds.h"

enum { MAX_LANES = 64, LANE_FLOATS = 1 << 19 }; /* of predictor contexts kept in a lane */

struct together {
  struct wf__cpu_backend *self;
  const wf__batch *batch;
  size_t num_lanes;
};

/* Makes searches with the scorer, whose memories are joined. */
static wf_status open_lanes(struct wf__cpu_backend *self, size_t count, const wf_scorer *scorer,
                            wf_error *err) {
  wf__transducer_search *const *lanes = self->transducer_searches;
  wf__transducer_search *search;
  for (size_t i = 0; i < count; i++) {
    WF__TRY(wf__cpu_transducer_search(self, i, &search, err));
    search->predictions.most_floats = LANE_FLOATS;
    search->defers = true;
  }
  /* Memories of the last batch stay, if it was searched together with this scorer. */
  const bool same = lanes[0]->scoring.scorer == scorer && lanes[0]->joined;
  for (size_t i = 0; i < self->num_transducer_searches && !same; i++)
    if (lanes[i] != NULL) WF__TRY(wf__transducer_search_set_scorer(lanes[i], NULL, err));
  WF__TRY(wf__transducer_search_set_scorer(lanes[0], scorer, err));
  lanes[0]->joined = true;
  for (size_t i = 1; i < count; i++)
    WF__TRY(wf__transducer_search_join_scorer(lanes[i], lanes[0], err));
  return WF_OK;
}

/* Goes on until the scorer has to score; or to the end. */
static wf_status go_on(wf__transducer_search *search, bool *waits, wf_error *err) {
  WF__TRY(wf__transducer_search_go_on(search, waits, err));
  while (*waits && !search->scorer_waits) {
    WF__TRY(wf__transducer_answer(search, err));
    WF__TRY(wf__transducer_search_go_on(search, waits, err));
  }
  if (!*waits) return wf__transducer_search_go_to_end(search, waits, err);
  return search->stage == WF__TRANSDUCER_STEP ? wf__transducer_answer_model(search, err) : WF_OK;
}

static wf_status run_lane(void *user, size_t i, uint32_t utterance, bool begins, bool *waits,
                          wf_error *err) {
  struct together *t = user;
  wf__transducer_search *search = t->self->transducer_searches[i];
  if (begins) {
    bool good;
    WF__TRY(wf__cpu_transducer_begin(t->self, search, t->batch, utterance, &good, err));
    if (!good) return WF_OK;
    WF__TRY(wf__transducer_search_feed(search, &t->batch->scores[utterance], err));
  }
  if (search->ended)
    WF__TRY(wf__transducer_search_go_to_end(search, waits, err));
  else
    WF__TRY(go_on(search, waits, err));
  return *waits ? WF_OK : wf__cpu_transducer_end(t->self, search, t->batch, utterance, err);
}

static wf_status score(void *user, size_t group, const bool *lanes_wait, wf_error *err) {
  struct together *t = user;
  (void)group;
  (void)lanes_wait; /* others have no requests */
  return wf__transducer_score_requests(t->self->transducer_searches, t->num_lanes, t->self->pool,
                                       err);
}

wf_status wf__cpu_decode_scored_transducers(struct wf__cpu_backend *self, const wf__batch *batch,
                                            const uint32_t *order, uint32_t count, wf_error *err) {
  struct together t = {
      .self = self, .batch = batch, .num_lanes = count < MAX_LANES ? count : MAX_LANES};
  WF__TRY(open_lanes(self, t.num_lanes, batch->scorers[order[0]], err));
  wf__rounds rounds = {.pool = self->pool,
                       .batch = batch,
                       .num_lanes = t.num_lanes,
                       .num_groups = 1,
                       .user = &t,
                       .run = run_lane,
                       .score = score};
  return wf__cpu_rounds(&rounds, order, count, err);
}
