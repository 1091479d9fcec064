/* lanes.c - searches in lanes, which get scores together: utterances of a batch, or chunks of
 * streams. The requests to a model are answered for all lanes by a GPU or by the caller's functions
 * (wf__answer_ops); those to a scorer with batch operations, if all utterances have the same one.
 * What is not answered for all together, a lane answers itself. */
#include <stdlib.h>

#include "decode/host_backend.h"
#include "decode/rounds.h"

#define NONE UINT32_MAX

struct lanes {
  wf__host *host;
  const wf__batch *batch;
  void *const *channels;         /* of streams; NULL: utterances */
  const wf__answer_ops *answers; /* NULL: lanes answer their own requests to the model */
  bool joint_scorer;             /* requests to the scorer are answered together */
  size_t num_lanes, num_groups;
  wf__searcher **searchers; /* [num_lanes] */
};

bool wf__scores_jointly(const wf__batch *batch, const uint32_t *order, uint32_t count) {
  if (batch->scorers == NULL || batch->graphs != NULL || count == 0) return false;
  const wf_scorer *scorer = batch->scorers[order[0]];
  for (uint32_t i = 1; i < count; i++)
    if (batch->scorers[order[i]] != scorer) return false;
  return scorer != NULL && scorer->ops->batch != NULL;
}

/* --- one lane ---------------------------------------------------------------------------- */

static wf__stream_state *state_of(const struct lanes *l, uint32_t item) {
  return l->channels[item];
}

static wf_status begin(const struct lanes *l, size_t i, uint32_t item, bool *good, wf_error *err) {
  const wf_scores *scores = &l->batch->scores[item];
  *good = l->channels == NULL;
  l->searchers[i] = l->channels != NULL ? NULL : l->host->searchers[i];
  if (l->answers != NULL) WF__TRY(l->answers->take(l->host->setup.shared, i, scores, err));
  WF__TRY(l->channels != NULL
              ? wf__chunk_begin(l->host, l->batch, l->channels, item, &l->searchers[i], good, err)
              : wf__utterance_begin(l->host, l->searchers[i], l->batch, item, good, err));
  return *good ? l->searchers[i]->ops->feed(l->searchers[i], scores, err) : WF_OK;
}

/* Answers what the lane answers itself. */
static wf_status answer_own(const struct lanes *l, wf__searcher *searcher, wf_error *err) {
  const unsigned together = (l->answers != NULL ? WF__WAITS_MODEL : 0u) |
                            (l->joint_scorer ? WF__WAITS_SCORER : 0u),
                 all = searcher->waits;
  searcher->waits = all & ~together;
  WF__TRY(wf__searcher_answer(searcher, err));
  searcher->waits = all & together;
  return WF_OK;
}

/* Goes on until requests have to be answered for all lanes together, or to the end: of a stream,
 * that of the chunk. */
static wf_status go_on(const struct lanes *l, wf__searcher *searcher, wf_error *err) {
  for (;;) {
    searcher->waits = 0;
    if (!searcher->ended) WF__TRY(searcher->ops->go_on(searcher, err));
    if (!searcher->waits && l->channels == NULL) WF__TRY(searcher->ops->go_to_end(searcher, err));
    if (!searcher->waits) return WF_OK;
    WF__TRY(answer_own(l, searcher, err));
    if (searcher->waits) return WF_OK;
  }
}

static wf_status go_on_or_end(const struct lanes *l, size_t i, uint32_t item, wf_error *err) {
  wf__searcher *searcher = l->searchers[i];
  WF__TRY(go_on(l, searcher, err));
  if (searcher->waits & WF__WAITS_MODEL) l->answers->ask(l->host->setup.shared, i, searcher);
  if (searcher->waits) return WF_OK;
  return l->channels != NULL ? searcher->ops->collect(searcher, false, err)
                             : wf__utterance_end(l->host, searcher, l->batch, item, err);
}

static wf_status run_lane(void *user, size_t i, uint32_t item, bool begins, bool *waits,
                          wf_error *err) {
  const struct lanes *l = user;
  bool good = true;
  wf_status status = begins ? begin(l, i, item, &good, err) : WF_OK;
  if (!good) return status;
  if (status == WF_OK) status = go_on_or_end(l, i, item, err);
  *waits = status == WF_OK && l->searchers[i]->waits != 0;
  if (*waits || l->channels == NULL) return status;
  return state_of(l, item)->ops->leave(state_of(l, item), l->searchers[i], status, err);
}

/* --- answers ----------------------------------------------------------------------------- */

/* Other groups have no requests to the scorer now. */
static wf_status score_words(const struct lanes *l, const bool *lanes_wait, wf_error *err) {
  bool any = false;
  for (size_t i = 0; i < l->num_lanes && l->joint_scorer; i++)
    any = any || (lanes_wait[i] && (l->searchers[i]->waits & WF__WAITS_SCORER));
  return any ? wf__searcher_score(l->searchers, l->num_lanes, l->host->pool, err) : WF_OK;
}

/* A GPU begins first: it works while the scorer does. */
static wf_status score(void *user, size_t group, const bool *lanes_wait, wf_error *err) {
  const struct lanes *l = user;
  if (l->answers != NULL) WF__TRY(l->answers->submit(l->host->setup.shared, group, err));
  return score_words(l, lanes_wait, err);
}

static wf_status wait_for_answers(void *user, size_t group, wf_error *err) {
  const struct lanes *l = user;
  return l->answers->wait(l->host->setup.shared, group, err);
}

static wf_status begin_answers(const struct lanes *l, const uint32_t *order, wf_error *err) {
  int64_t *num_frames = wf__calloc(l->num_lanes, sizeof *num_frames);
  if (num_frames == NULL) return wf__fail_memory(err, l->num_lanes * 8, "a batch");
  for (size_t i = 0; i < l->num_lanes; i++) /* a lane's later utterances are shorter */
    if (order[i] != NONE) num_frames[i] = l->batch->scores[order[i]].num_frames;
  const wf_status status = l->answers->begin(l->host->setup.shared, l->channels != NULL, num_frames,
                                             l->num_lanes, l->num_groups, err);
  free(num_frames);
  return status;
}

static wf_status run_rounds(struct lanes *l, const uint32_t *order, uint32_t count, wf_error *err) {
  const wf__answer_ops *answers = l->answers;
  wf__rounds rounds = {.host = l->host,
                       .batch = l->batch,
                       .num_lanes = l->num_lanes,
                       .num_groups = l->num_groups,
                       .user = l,
                       .run = run_lane,
                       .score = score,
                       .score_uses_pool = l->joint_scorer,
                       .wait = answers != NULL && answers->wait != NULL ? wait_for_answers : NULL};
  wf_status status = answers != NULL ? begin_answers(l, order, err) : WF_OK;
  if (status == WF_OK) status = wf__rounds_run(&rounds, order, count, err);
  if (answers != NULL) answers->end(l->host->setup.shared, status, &rounds.counts);
  return status;
}

/* --- a batch ----------------------------------------------------------------------------- */

/* Gives the lanes the scorer, with memories that are joined. Those of the last batch stay, if it
 * had this scorer, too. */
static wf_status join_scorer(const struct lanes *l, const wf_scorer *given, wf_error *err) {
  wf__host *host = l->host;
  wf__searcher *const *all = host->searchers;
  const wf_scorer *scorer = wf__searcher_scorer(host->setup.ops, given);
  const bool same = all[0]->scoring.joined && all[0]->scoring.scorer == scorer;
  for (size_t i = 0; i < host->num_searchers && !same; i++)
    if (all[i] != NULL) WF__TRY(wf__scoring_set(&all[i]->scoring, NULL, err));
  WF__TRY(wf__scoring_set(&all[0]->scoring, scorer, err));
  all[0]->scoring.joined = true;
  for (size_t i = 1; i < l->num_lanes; i++)
    WF__TRY(wf__scoring_join(&all[i]->scoring, &all[0]->scoring, err));
  return WF_OK;
}

static wf_status open_lanes(const struct lanes *l, const uint32_t *order, wf_error *err) {
  for (size_t i = 0; i < l->num_lanes; i++) {
    WF__TRY(wf__host_searcher(l->host, i, true, &l->searchers[i], err));
    if (l->searchers[i]->scoring.joined && !l->joint_scorer)
      WF__TRY(wf__scoring_set(&l->searchers[i]->scoring, NULL, err));
  }
  return l->joint_scorer ? join_scorer(l, l->batch->scorers[order[0]], err) : WF_OK;
}

/* After an error, answers may be under way or lost, and requests are left in a joint scorer. */
static void drop_searchers(wf__host *host) {
  for (size_t i = 0; i < host->num_searchers; i++) {
    host->setup.ops->free(host->searchers[i]);
    host->searchers[i] = NULL;
  }
}

wf_status wf__lanes_decode(wf__host *self, const wf__batch *batch, const uint32_t *order,
                           uint32_t count, wf_error *err) {
  const wf__answer_ops *answers = self->setup.answers;
  const size_t most = wf__host_most_lanes(self),
               groups = answers != NULL ? answers->most_groups(self->setup.shared) : 1;
  struct lanes l = {.host = self,
                    .batch = batch,
                    .answers = answers,
                    .joint_scorer = wf__scores_jointly(batch, order, count),
                    .num_lanes = count < most ? count : most};
  if (count == 0) return WF_OK;
  l.num_groups = l.num_lanes < groups ? l.num_lanes : groups;
  l.searchers = wf__calloc(l.num_lanes, sizeof *l.searchers);
  if (l.searchers == NULL)
    return wf__fail_memory(err, l.num_lanes * sizeof *l.searchers, "a batch");
  wf_status status = open_lanes(&l, order, err);
  if (status == WF_OK) {
    status = run_rounds(&l, order, count, err);
    if (status != WF_OK) drop_searchers(self);
  }
  free(l.searchers);
  return status;
}

/* --- streams ----------------------------------------------------------------------------- */

/* Takes streams from `left`, which become NONE there, as lanes of their places, at most `most` in
 * each; false: none is left. */
static bool fill_lanes(struct lanes *l, uint32_t *left, uint32_t count, size_t *used, size_t most,
                       uint32_t *order) {
  const size_t places = l->num_groups;
  bool any = false;
  l->num_lanes = 0;
  for (size_t i = 0; i < most * places; i++) order[i] = NONE;
  for (size_t p = 0; p < places; p++) used[p] = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (left[i] == NONE) continue;
    const size_t place = state_of(l, left[i])->place;
    if (used[place] == most) continue;
    order[used[place]++ * places + place] = left[i];
    if (used[place] * places > l->num_lanes) l->num_lanes = used[place] * places;
    left[i] = NONE;
    any = true;
  }
  return any;
}

wf_status wf__lanes_advance(wf__host *self, const wf__batch *batch, void *const *channels,
                            wf_error *err) {
  const wf__answer_ops *answers = self->setup.answers;
  const size_t places = answers->num_places(self->setup.shared),
               most = wf__host_most_lanes(self) / places, size = most * places;
  struct lanes l = {.host = self,
                    .batch = batch,
                    .channels = channels,
                    .answers = answers,
                    .num_groups = places,
                    .searchers = wf__calloc(size, sizeof *l.searchers)};
  uint32_t *left = wf__alloc(batch->count, sizeof *left), *order = wf__alloc(size, sizeof *order),
           count = 0;
  size_t *used = wf__alloc(places, sizeof *used);
  wf_status status = l.searchers != NULL && left != NULL && order != NULL && used != NULL
                         ? wf__longest_first(batch, left, &count, err)
                         : wf__fail_memory(err, batch->count * 4, "a batch");
  if (status == WF_OK) status = wf__whole_advance(self, batch, channels, left, &count, err);
  while (status == WF_OK && fill_lanes(&l, left, count, used, most, order))
    status = run_rounds(&l, order, (uint32_t)l.num_lanes, err);
  free(l.searchers);
  free(left);
  free(order);
  free(used);
  return status;
}
