/* cpu_rounds.c - see cpu_rounds.h.
 *
 * A round with a GPU can be shorter than it takes to wake a thread. There the threads of the pool
 * are a team for the whole batch. The calling thread is member 0, and opens the rounds. The others
 * look for the next round for a while before they sleep. Each member begins with its own share of
 * the lanes, which it searched in the rounds before, so that these are in its caches; then it helps
 * the others. */
#include "decode/cpu_rounds.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/callbacks.h"
#include "decode/cpu_backend.h"

#define NONE UINT32_MAX
enum {
  SPINS = 4000, /* looks for the next round before a thread sleeps: about 100 us */
  CACHE_LINE = 64
};

struct lane {
  uint32_t utterance; /* NONE: idle */
  bool begins;
  wf_status status; /* WF_OK, or WF_ERR_MEMORY or WF_ERR_CANCELLED: the batch fails */
  wf_error err;
};

/* A member's share of the items of a round: the next one, and in the upper half the end. */
struct share {
  atomic_uint_fast64_t items;
  char unused[CACHE_LINE - sizeof(atomic_uint_fast64_t)];
};

struct running {
  wf__rounds *rounds;
  struct lane *lanes;
  bool *waits;  /* [num_lanes] */
  bool *scored; /* [num_groups] `wait` is due */
  bool *idle;   /* [num_groups] no lane has an utterance */
  size_t group;
  size_t unscored;      /* group whose lanes wait, but `score` is due; num_groups: none */
  struct share *shares; /* [num_members] of the team */
  uint64_t num_members; /* 0: no team */
  uint64_t target;      /* of num_run, when the round is done */
  _Alignas(CACHE_LINE) atomic_uint_fast64_t round; /* number of the current one */
  atomic_bool over;                                /* the batch is */
  atomic_int num_asleep;
  pthread_mutex_t mutex;
  pthread_cond_t wake;
  _Alignas(CACHE_LINE) atomic_uint_fast64_t num_run;   /* items of all rounds */
  _Alignas(CACHE_LINE) atomic_uint_fast64_t num_ended; /* lanes of this round */
};

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void pause_a_little(void) {
#if defined __x86_64__
  __builtin_ia32_pause();
#elif defined __aarch64__
  __asm__ volatile("yield");
#endif
}

/* --- the team ---------------------------------------------------------------------------- */

static void run_item(struct running *r, uint64_t item) {
  const wf__rounds *rounds = r->rounds;
  const size_t i = item * rounds->num_groups + r->group;
  struct lane *lane = &r->lanes[i];
  r->waits[i] = false;
  if (lane->utterance == NONE) return;
  wf_status status =
      rounds->run(rounds->user, i, lane->utterance, lane->begins, &r->waits[i], &lane->err);
  if (status != WF_OK) r->waits[i] = false;
  lane->begins = false;
  lane->status = wf__cpu_record_error(rounds->batch, lane->utterance, status, &lane->err);
  if (!r->waits[i]) atomic_fetch_add(&r->num_ended, 1);
}

/* Takes an item that nobody has taken; the round cannot end before it is run. */
static bool take_item(struct share *share, uint64_t *item) {
  uint_fast64_t items = atomic_load(&share->items);
  do {
    *item = items & UINT32_MAX;
    if (*item >= items >> 32) return false;
  } while (!atomic_compare_exchange_weak(&share->items, &items, items + 1));
  return true;
}

/* Runs items until none is left. */
static void run_items(struct running *r, uint64_t member) {
  for (uint64_t k = 0; k < r->num_members; k++) {
    struct share *share = &r->shares[(member + k) % r->num_members];
    uint64_t count = 0, item;
    for (; take_item(share, &item); count++) run_item(r, item);
    if (count > 0) atomic_fetch_add(&r->num_run, count);
  }
}

/* Waits for a round after number `seen`; false if there will be none. */
static bool next_round(struct running *r, uint64_t *seen) {
  for (int i = 0; i < SPINS && atomic_load(&r->round) == *seen && !atomic_load(&r->over); i++)
    pause_a_little();
  if (atomic_load(&r->round) == *seen && !atomic_load(&r->over)) {
    pthread_mutex_lock(&r->mutex);
    atomic_fetch_add(&r->num_asleep, 1);
    while (atomic_load(&r->round) == *seen && !atomic_load(&r->over))
      pthread_cond_wait(&r->wake, &r->mutex);
    atomic_fetch_add(&r->num_asleep, -1);
    pthread_mutex_unlock(&r->mutex);
  }
  *seen = atomic_load(&r->round);
  return !atomic_load(&r->over);
}

static void be_member(void *user, uint64_t member, int worker) {
  struct running *r = user;
  uint64_t seen = 0;
  (void)worker;
  while (next_round(r, &seen)) run_items(r, member + 1);
}

static void wake_all(struct running *r) {
  if (atomic_load(&r->num_asleep) == 0) return;
  pthread_mutex_lock(&r->mutex);
  pthread_cond_broadcast(&r->wake);
  pthread_mutex_unlock(&r->mutex);
}

static void run_pool_item(void *user, uint64_t item, int worker) {
  (void)worker;
  run_item(user, item);
}

/* Begins to run all lanes of the group; without a team, runs them. */
static void open_round(struct running *r) {
  const wf__rounds *rounds = r->rounds;
  const uint64_t count =
                     (rounds->num_lanes - r->group + rounds->num_groups - 1) / rounds->num_groups,
                 members = r->num_members;
  r->target = atomic_load(&r->num_run) + count;
  atomic_store(&r->num_ended, 0);
  if (members == 0) {
    wf__pool_run(rounds->pool, count, run_pool_item, r);
    return;
  }
  for (uint64_t m = 0; m < members; m++)
    atomic_store(&r->shares[m].items, (m + 1) * count / members << 32 | m * count / members);
  atomic_fetch_add(&r->round, 1);
  wake_all(r);
}

static void close_round(struct running *r) {
  if (r->num_members == 0) return;
  run_items(r, 0);
  while (atomic_load(&r->num_run) < r->target) pause_a_little();
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
  const double began = now_s();
  if (group == rounds->num_groups) return WF_OK;
  r->unscored = rounds->num_groups;
  rounds->num_rounds++;
  WF__TRY(rounds->score(rounds->user, group, r->waits, err));
  r->scored[group] = rounds->wait != NULL;
  rounds->score_s += now_s() - began;
  return WF_OK;
}

/* One round of the group. While the team runs it, this thread scores for the group before. */
static wf_status do_round(struct running *r, uint32_t *num_done, wf_error *err) {
  wf__rounds *rounds = r->rounds;
  const size_t group = r->group;
  if (r->unscored == group || r->num_members == 0) WF__TRY(score(r, err));
  double began = now_s(), ended;
  if (r->scored[group]) WF__TRY(rounds->wait(rounds->user, group, err));
  r->scored[group] = false;
  rounds->wait_s += (ended = now_s()) - began;
  began = ended;
  open_round(r);
  wf_status status = score(r, err);
  close_round(r);
  rounds->run_s += now_s() - began;
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
  wf__pool *pool = r->rounds->pool;
  const uint64_t size = (uint64_t)wf__pool_size(pool);
  wf__job job = {0};
  if (r->rounds->wait == NULL || r->rounds->score_uses_pool || size == 1)
    return run(r, order, count, err);
  r->shares = wf__calloc(size, sizeof *r->shares);
  if (r->shares == NULL) return wf__fail_memory(err, size * sizeof *r->shares, "a batch");
  r->num_members = size;
  pthread_mutex_init(&r->mutex, NULL);
  pthread_cond_init(&r->wake, NULL);
  wf__pool_start(pool, &job, size - 1, be_member, r);
  wf_status status = run(r, order, count, err);
  atomic_store(&r->over, true);
  wake_all(r);
  wf__pool_wait(pool, &job);
  pthread_cond_destroy(&r->wake);
  pthread_mutex_destroy(&r->mutex);
  free(r->shares);
  return status;
}

wf_status wf__cpu_rounds(wf__rounds *rounds, const uint32_t *order, uint32_t count, wf_error *err) {
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
