/* rounds.c - see rounds.h. */
#include "decode/rounds.h"

#include <stdlib.h>

#include "base/callbacks.h"
#include "base/clock.h"
#include "base/team.h"
#include "decode/host_backend.h"

#define NONE UINT32_MAX

struct lane {
  uint32_t utterance; /* NONE: idle */
  bool begins;
  wf_status status; /* WF_OK, or WF_ERR_MEMORY or WF_ERR_CANCELLED: the batch fails */
  wf_error err;
};

struct running {
  wf__rounds *rounds;
  struct lane *lanes;
  bool *waits;  /* [num_lanes] */
  bool *scored; /* [num_groups] `wait` is due */
  bool *idle;   /* [num_groups] no lane has an utterance */
  size_t group;
  size_t unscored; /* group whose lanes wait, but `score` is due; num_groups: none */
  bool has_team;
  wf__team team;
  _Alignas(WF__CACHE_LINE) atomic_uint_fast64_t num_ended; /* lanes of this round */
};

static void run_item(void *user, uint64_t item, int worker) {
  struct running *r = user;
  const wf__rounds *rounds = r->rounds;
  const size_t i = item * rounds->num_groups + r->group;
  struct lane *lane = &r->lanes[i];
  r->waits[i] = false;
  if (lane->utterance == NONE) return;
  wf_status status =
      rounds->run(rounds->user, i, lane->utterance, lane->begins, &r->waits[i], &lane->err);
  if (status != WF_OK) r->waits[i] = false;
  lane->begins = false;
  lane->status = wf__record_error(rounds->host, rounds->batch, lane->utterance, status, &lane->err);
  if (!r->waits[i]) atomic_fetch_add(&r->num_ended, 1);
}

/* Begins to run all lanes of the group; without a team, runs them. */
static void open_round(struct running *r) {
  const wf__rounds *rounds = r->rounds;
  const uint64_t count =
      (rounds->num_lanes - r->group + rounds->num_groups - 1) / rounds->num_groups;
  atomic_store(&r->num_ended, 0);
  if (r->has_team)
    wf__team_begin(&r->team, count);
  else
    wf__pool_run(rounds->host->pool, count, run_item, r);
}

/* --- rounds ------------------------------------------------------------------------------ */

/* After the group's lanes have run: handles errors, counts results. */
static wf_status end_run(struct running *r, uint32_t *num_done, wf_error *err) {
  const wf__rounds *rounds = r->rounds;
  if (atomic_load(&r->num_ended) == 0) return WF_OK;
  for (size_t i = r->group; i < rounds->num_lanes; i += rounds->num_groups) {
    struct lane *lane = &r->lanes[i];
    if (lane->utterance == NONE || r->waits[i]) continue;
    if (lane->status != WF_OK) {
      if (err != NULL) *err = lane->err;
      return lane->status;
    }
    lane->utterance = NONE;
    ++*num_done;
  }
  return WF_OK;
}

static bool is_idle(const struct running *r) {
  for (size_t i = r->group; i < r->rounds->num_lanes; i += r->rounds->num_groups)
    if (r->lanes[i].utterance != NONE) return false;
  return true;
}

/* Scores what lanes of the last group wait for. */
static wf_status score(struct running *r, wf_error *err) {
  wf__rounds *rounds = r->rounds;
  const size_t group = r->unscored;
  const double began = wf__now_s();
  if (group == rounds->num_groups) return WF_OK;
  r->unscored = rounds->num_groups;
  rounds->counts.num_rounds++;
  WF__TRY(rounds->score(rounds->user, group, r->waits, err));
  r->scored[group] = rounds->wait != NULL;
  rounds->counts.score_s += wf__now_s() - began;
  return WF_OK;
}

/* One round of the group. While the team runs it, this thread scores for the group before. */
static wf_status do_round(struct running *r, uint32_t *num_done, wf_error *err) {
  wf__rounds *rounds = r->rounds;
  const size_t group = r->group;
  if (r->unscored == group || !r->has_team) WF__TRY(score(r, err));
  double began = wf__now_s(), ended;
  if (r->scored[group]) WF__TRY(rounds->wait(rounds->user, group, err));
  r->scored[group] = false;
  rounds->counts.wait_s += (ended = wf__now_s()) - began;
  began = ended;
  open_round(r);
  wf_status status = score(r, err);
  if (r->has_team) wf__team_end(&r->team);
  rounds->counts.run_s += wf__now_s() - began;
  if (status == WF_OK) status = end_run(r, num_done, err);
  r->idle[group] = atomic_load(&r->num_ended) > 0 && is_idle(r);
  if (status == WF_OK && !r->idle[group]) r->unscored = group;
  return status;
}

/* Gives the group's idle lanes the next utterances. */
static void refill(struct running *r, const uint32_t *order, uint32_t count, uint32_t *next) {
  const wf__rounds *rounds = r->rounds;
  for (size_t i = r->group; i < rounds->num_lanes && *next < count; i += rounds->num_groups)
    if (r->lanes[i].utterance == NONE) {
      r->lanes[i] = (struct lane){.utterance = order[(*next)++], .begins = true};
      r->idle[r->group] = false;
    }
}

static wf_status run(struct running *r, const uint32_t *order, uint32_t count, wf_error *err) {
  const wf__rounds *rounds = r->rounds;
  uint32_t next = 0, num_done = 0, told = 0;
  for (size_t i = 0; i < rounds->num_lanes; i++) {
    r->lanes[i] = (struct lane){.utterance = order[next++], .begins = true};
    num_done += r->lanes[i].utterance == NONE;
  }
  for (r->group = rounds->num_groups; r->group-- > 0;) r->idle[r->group] = is_idle(r);
  r->group = 0;
  for (; num_done < count; r->group = (r->group + 1) % rounds->num_groups) {
    if (r->idle[r->group]) continue; /* the last utterances are in the other groups */
    WF__TRY(do_round(r, &num_done, err));
    if (num_done == told) continue;
    refill(r, order, count, &next);
    WF__TRY(wf__progress(rounds->batch->progress, "decoding",
                         (double)(told = num_done) / (double)rounds->batch->count, err));
  }
  return WF_OK;
}

/* Runs the batch with a team, if there is a GPU and the pool's threads are free for it. */
static wf_status run_with_team(struct running *r, const uint32_t *order, uint32_t count,
                               wf_error *err) {
  wf__pool *pool = r->rounds->host->pool;
  if (r->rounds->wait == NULL || r->rounds->score_uses_pool || wf__pool_size(pool) == 1)
    return run(r, order, count, err);
  WF__TRY(wf__team_open(&r->team, pool, run_item, r, err));
  r->has_team = true;
  wf_status status = run(r, order, count, err);
  wf__team_close(&r->team);
  return status;
}

wf_status wf__rounds_run(wf__rounds *rounds, const uint32_t *order, uint32_t count, wf_error *err) {
  const size_t num_lanes = rounds->num_lanes;
  struct running r = {.rounds = rounds,
                      .unscored = rounds->num_groups,
                      .lanes = wf__calloc(num_lanes, sizeof *r.lanes),
                      .waits = wf__calloc(num_lanes, sizeof *r.waits),
                      .scored = wf__calloc(rounds->num_groups, sizeof *r.scored),
                      .idle = wf__calloc(rounds->num_groups, sizeof *r.idle)};
  wf_status status = r.lanes != NULL && r.waits != NULL && r.scored != NULL && r.idle != NULL
                         ? run_with_team(&r, order, count, err)
                         : wf__fail_memory(err, num_lanes * sizeof *r.lanes, "a batch");
  free(r.lanes);
  free(r.waits);
  free(r.scored);
  free(r.idle);
  return status;
}
