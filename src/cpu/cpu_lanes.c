/* cpu_lanes.c - utterances of a batch that are searched together, because their scorer scores the
 * requests of all of them in one batch.
 *
 *   round:  every lane, in parallel:  begin its utterance | continue with the scores, frame after
 *   frame --> requests, or the result
 *           the scorer, on the same threads:    scores for the requests of all lanes
 *           lanes that are done take the next utterances
 *
 * A lane submits requests once or a few times a frame and does not wait for others to reach the
 * same frame. Results do not depend on which lanes share a round. */
#include <stdlib.h>

#include "base/callbacks.h"
#include "cpu/cpu_backend.h"

enum { MAX_LANES = 64, NONE = UINT32_MAX };

enum phase { IDLE, BEGINS, GOES_ON, ENDS };

struct lane {
  wf__search *search;
  uint32_t utterance; /* NONE: idle */
  enum phase phase;
  bool waits;
  wf_status status; /* WF_OK, or WF_ERR_MEMORY or WF_ERR_CANCELLED: the batch fails */
  wf_error err;
};

struct together {
  struct wf__cpu_backend *self;
  const wf__batch *batch;
  struct lane *lanes;
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

/* Runs the lane until it waits or its result is complete. */
static wf_status run_lane(const struct together *t, struct lane *lane) {
  const wf__batch *batch = t->batch;
  lane->waits = false;
  if (lane->phase == BEGINS) {
    bool good;
    WF__TRY(wf__cpu_begin(t->self, lane->search, batch, lane->utterance, &good, &lane->err));
    if (good) wf__search_feed(lane->search, &batch->scores[lane->utterance]);
    lane->phase = good ? GOES_ON : IDLE;
  }
  if (lane->phase == GOES_ON) {
    WF__TRY(wf__search_go_on(lane->search, &lane->waits, &lane->err));
    if (lane->waits) return WF_OK;
    lane->phase = ENDS;
    WF__TRY(wf__search_request_endings(lane->search, &lane->waits, &lane->err));
    if (lane->waits) return WF_OK;
  }
  if (lane->phase == IDLE) return WF_OK;
  lane->phase = IDLE;
  return wf__cpu_end(t->self, lane->search, batch, lane->utterance, &lane->err);
}

static void run_item(void *user, uint64_t item, int worker) {
  const struct together *t = user;
  struct lane *lane = &t->lanes[item];
  if (lane->utterance == NONE) return;
  wf_status status = run_lane(t, lane);
  if (status != WF_OK) lane->phase = IDLE, lane->waits = false;
  lane->status = wf__cpu_record_error(t->batch, lane->utterance, status, &lane->err);
}

/* After a round: handles errors, counts results, and scores the requests. */
static wf_status end_round(struct together *t, size_t num_lanes, wf__search *const *searches,
                           uint32_t *num_done, wf_error *err) {
  bool waits = false;
  for (size_t i = 0; i < num_lanes; i++) {
    struct lane *lane = &t->lanes[i];
    if (lane->utterance == NONE) continue;
    if (lane->status != WF_OK) {
      if (err != NULL) *err = lane->err;
      return lane->status;
    }
    waits = waits || lane->waits;
    if (lane->phase != IDLE) continue;
    lane->utterance = NONE;
    ++*num_done;
  }
  return waits ? wf__search_score_requests(searches, num_lanes, t->self->pool, err) : WF_OK;
}

static wf_status run_rounds(struct together *t, size_t num_lanes, wf__search *const *searches,
                            const uint32_t *order, uint32_t count, wf_error *err) {
  uint32_t next = 0, num_done = 0, told = 0;
  while (num_done < count) {
    for (size_t i = 0; i < num_lanes && next < count; i++)
      if (t->lanes[i].utterance == NONE) {
        t->lanes[i].utterance = order[next++];
        t->lanes[i].phase = BEGINS;
      }
    wf__pool_run(t->self->pool, num_lanes, run_item, t);
    WF__TRY(end_round(t, num_lanes, searches, &num_done, err));
    if (num_done > told)
      WF__TRY(wf__progress(t->batch->progress, "decoding",
                           (double)(told = num_done) / (double)t->batch->count, err));
  }
  return WF_OK;
}

wf_status wf__cpu_decode_batch(struct wf__cpu_backend *self, const wf__batch *batch,
                               const uint32_t *order, uint32_t count, wf_error *err) {
  size_t num_lanes = count < MAX_LANES ? count : MAX_LANES;
  WF__TRY(open_lanes(self, num_lanes, batch->scorers[order[0]], err));
  struct together t = {self, batch, wf__calloc(num_lanes, sizeof *t.lanes)};
  if (t.lanes == NULL) return wf__fail_memory(err, num_lanes * sizeof *t.lanes, "a batch");
  for (size_t i = 0; i < num_lanes; i++)
    t.lanes[i] = (struct lane){.search = self->lanes[i], .utterance = NONE};
  wf_status status = run_rounds(&t, num_lanes, self->lanes, order, count, err);
  free(t.lanes);
  return status;
}
