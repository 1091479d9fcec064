/* cpu_lanes.c - utterances of a batch that are searched together, because their scorer scores the
 * requests of all of them in one batch. */
#include <stdlib.h>

#include "decode/cpu_backend.h"
#include "decode/cpu_rounds.h"

enum { MAX_LANES = 64 };

struct together {
  struct wf__cpu_backend *self;
  const wf__batch *batch;
  size_t num_lanes;
  bool ends[MAX_LANES]; /* by lane: all frames are done */
};

bool wf__cpu_can_batch(const wf__batch *batch, const uint32_t *order, uint32_t count) {
  if (batch->scorers == NULL || batch->graphs != NULL || count == 0)
    return false; /* lanes have the decoder's graph */
  const wf_scorer *scorer = batch->scorers[order[0]];
  for (uint32_t i = 1; i < count; i++)
    if (batch->scorers[order[i]] != scorer) return false;
  return scorer != NULL && scorer->ops->batch != NULL;
}

void wf__cpu_free_lanes(struct wf__cpu_backend *self) {
  for (size_t i = 0; i < self->num_lanes; i++) wf__search_free(self->lanes[i]);
  free(self->lanes);
}

/* Opens searches with the scorer, whose memories are joined. */
static wf_status open_lanes(struct wf__cpu_backend *self, size_t count, const wf_scorer *scorer,
                            wf_error *err) {
  if (self->lanes == NULL) self->lanes = wf__calloc(MAX_LANES, sizeof *self->lanes);
  if (self->lanes == NULL)
    return wf__fail_memory(err, MAX_LANES * sizeof *self->lanes, "a decoder");
  for (; self->num_lanes < count; self->num_lanes++)
    WF__TRY(wf__search_create(self->graph, &self->options, &self->lanes[self->num_lanes], err));
  bool same = self->lanes[0]->scoring.scorer == scorer; /* the scorer of the last batch */
  for (size_t i = 0; i < self->num_lanes && !same; i++)
    WF__TRY(wf__search_set_scorer(self->lanes[i], NULL, err));
  WF__TRY(wf__search_set_scorer(self->lanes[0], scorer, err));
  for (size_t i = 1; i < count; i++)
    WF__TRY(wf__search_join_scorer(self->lanes[i], self->lanes[0], err));
  return WF_OK;
}

static wf_status run_lane(void *user, size_t i, uint32_t utterance, bool begins, bool *waits,
                          wf_error *err) {
  struct together *t = user;
  wf__search *search = t->self->lanes[i];
  if (begins) {
    bool good;
    t->ends[i] = false;
    WF__TRY(wf__cpu_begin(t->self, search, t->batch, utterance, &good, err));
    if (!good) return WF_OK;
    wf__search_feed(search, &t->batch->scores[utterance]);
  }
  if (!t->ends[i]) {
    WF__TRY(wf__search_go_on(search, waits, err));
    if (*waits) return WF_OK;
    t->ends[i] = true;
    WF__TRY(wf__search_request_endings(search, waits, err));
    if (*waits) return WF_OK;
  }
  return wf__cpu_end(t->self, search, t->batch, utterance, err);
}

static wf_status score(void *user, size_t group, const bool *lanes_wait, wf_error *err) {
  struct together *t = user;
  (void)group;
  (void)lanes_wait; /* others have no requests */
  return wf__search_score_requests(t->self->lanes, t->num_lanes, t->self->pool, err);
}

wf_status wf__cpu_decode_batch(struct wf__cpu_backend *self, const wf__batch *batch,
                               const uint32_t *order, uint32_t count, wf_error *err) {
  size_t num_lanes = count < MAX_LANES ? count : MAX_LANES;
  WF__TRY(open_lanes(self, num_lanes, batch->scorers[order[0]], err));
  struct together t = {.self = self, .batch = batch, .num_lanes = num_lanes};
  wf__rounds rounds = {.pool = self->pool,
                       .batch = batch,
                       .num_lanes = num_lanes,
                       .num_groups = 1,
                       .user = &t,
                       .run = run_lane,
                       .score = score};
  return wf__cpu_rounds(&rounds, order, count, err);
}
