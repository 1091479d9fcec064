/* cpu_rounds.c - see cpu_rounds.h. */
#include "cpu/cpu_rounds.h"

#include <stdlib.h>
#include <time.h>

#include "base/callbacks.h"
#include "cpu/cpu_backend.h"

enum { NONE = UINT32_MAX };

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
  size_t group;
};

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void run_item(void *user, uint64_t item, int worker) {
  const struct running *r = user;
  const wf__rounds *rounds = r->rounds;
  const size_t i = item * rounds->num_groups + r->group;
  struct lane *lane = &r->lanes[i];
  (void)worker;
  r->waits[i] = false;
  if (lane->utterance == NONE) return;
  wf_status status =
      rounds->run(rounds->user, i, lane->utterance, lane->begins, &r->waits[i], &lane->err);
  if (status != WF_OK) r->waits[i] = false;
  lane->begins = false;
  lane->status = wf__cpu_record_error(rounds->batch, lane->utterance, status, &lane->err);
}

/* After the group's lanes have run: handles errors, counts results. */
static wf_status end_run(struct running *r, bool *any_waits, uint32_t *num_done, wf_error *err) {
  const wf__rounds *rounds = r->rounds;
  *any_waits = false;
  for (size_t i = r->group; i < rounds->num_lanes; i += rounds->num_groups) {
    struct lane *lane = &r->lanes[i];
    if (lane->utterance == NONE) continue;
    if (lane->status != WF_OK) {
      if (err != NULL) *err = lane->err;
      return lane->status;
    }
    *any_waits = *any_waits || r->waits[i];
    if (r->waits[i]) continue;
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

/* One round of the group. */
static wf_status do_round(struct running *r, uint32_t *num_done, wf_error *err) {
  wf__rounds *rounds = r->rounds;
  const size_t group = r->group;
  bool any_waits;
  double began = now_s(), ended;
  if (r->scored[group]) WF__TRY(rounds->wait(rounds->user, group, err));
  r->scored[group] = false;
  rounds->wait_s += (ended = now_s()) - began;
  began = ended;
  wf__pool_run(rounds->pool,
               (rounds->num_lanes - group + rounds->num_groups - 1) / rounds->num_groups, run_item,
               r);
  rounds->run_s += (ended = now_s()) - began;
  began = ended;
  WF__TRY(end_run(r, &any_waits, num_done, err));
  if (!any_waits) return WF_OK;
  rounds->num_rounds++;
  WF__TRY(rounds->score(rounds->user, group, r->waits, err));
  r->scored[group] = rounds->wait != NULL;
  rounds->score_s += now_s() - began;
  return WF_OK;
}

static wf_status run(struct running *r, const uint32_t *order, uint32_t count, wf_error *err) {
  const wf__rounds *rounds = r->rounds;
  uint32_t next = 0, num_done = 0, told = 0;
  for (size_t i = 0; i < rounds->num_lanes; i++)
    r->lanes[i] = (struct lane){.utterance = order[next++], .begins = true};
  for (; num_done < count; r->group = (r->group + 1) % rounds->num_groups) {
    for (size_t i = r->group; i < rounds->num_lanes && next < count; i += rounds->num_groups)
      if (r->lanes[i].utterance == NONE) {
        r->lanes[i].utterance = order[next++];
        r->lanes[i].begins = true;
      }
    if (is_idle(r)) continue; /* the last utterances are in the other groups */
    WF__TRY(do_round(r, &num_done, err));
    if (num_done > told)
      WF__TRY(wf__progress(rounds->batch->progress, "decoding",
                           (double)(told = num_done) / (double)rounds->batch->count, err));
  }
  return WF_OK;
}

wf_status wf__cpu_rounds(wf__rounds *rounds, const uint32_t *order, uint32_t count, wf_error *err) {
  const size_t num_lanes = rounds->num_lanes;
  struct running r = {.rounds = rounds,
                      .lanes = wf__calloc(num_lanes, sizeof *r.lanes),
                      .waits = wf__calloc(num_lanes, sizeof *r.waits),
                      .scored = wf__calloc(rounds->num_groups, sizeof *r.scored)};
  wf_status status = r.lanes != NULL && r.waits != NULL && r.scored != NULL
                         ? WF_OK
                         : wf__fail_memory(err, num_lanes * sizeof *r.lanes, "a batch");
  if (status == WF_OK) status = run(&r, order, count, err);
  free(r.lanes);
  free(r.waits);
  free(r.scored);
  return status;
}
