/* team.c - see team.h. */
#include "base/team.h"

#include <stdlib.h>

#include "base/memory.h"

enum {
  SPINS = 4000 /* looks for the next job before a thread sleeps: about 100 us */
};

static void pause_a_little(void) {
#if defined __x86_64__
  __builtin_ia32_pause();
#elif defined __aarch64__
  __asm__ volatile("yield");
#endif
}

/* Takes an item that nobody has taken; the job cannot end before it is run. */
static bool take_item(struct wf__team_share *share, uint64_t *item) {
  uint_fast64_t items = atomic_load(&share->items);
  do {
    *item = items & UINT32_MAX;
    if (*item >= items >> 32) return false;
  } while (!atomic_compare_exchange_weak(&share->items, &items, items + 1));
  return true;
}

/* Runs items until none is left. */
static void run_items(wf__team *team, uint64_t member) {
  for (uint64_t k = 0; k < team->size; k++) {
    struct wf__team_share *share = &team->shares[(member + k) % team->size];
    uint64_t count = 0, item;
    for (; take_item(share, &item); count++) team->fn(team->user, item, (int)member);
    if (count > 0) atomic_fetch_add(&team->num_done, count);
  }
}

/* Waits for a job after number `seen`; false if there will be none. */
static bool next_job(wf__team *team, uint64_t *seen) {
  for (int i = 0; i < SPINS && atomic_load(&team->job) == *seen && !atomic_load(&team->over); i++)
    pause_a_little();
  if (atomic_load(&team->job) == *seen && !atomic_load(&team->over)) {
    pthread_mutex_lock(&team->mutex);
    atomic_fetch_add(&team->num_asleep, 1);
    while (atomic_load(&team->job) == *seen && !atomic_load(&team->over))
      pthread_cond_wait(&team->wake, &team->mutex);
    atomic_fetch_add(&team->num_asleep, -1);
    pthread_mutex_unlock(&team->mutex);
  }
  *seen = atomic_load(&team->job);
  return !atomic_load(&team->over);
}

static void be_member(void *user, uint64_t member, int worker) {
  wf__team *team = user;
  uint64_t seen = 0;
  while (next_job(team, &seen)) run_items(team, member + 1);
}

static void wake_all(wf__team *team) {
  if (atomic_load(&team->num_asleep) == 0) return;
  pthread_mutex_lock(&team->mutex);
  pthread_cond_broadcast(&team->wake);
  pthread_mutex_unlock(&team->mutex);
}

wf_status wf__team_open(wf__team *team, wf__pool *pool, wf__task_fn fn, void *user, wf_error *err) {
  const uint64_t size = (uint64_t)wf__pool_size(pool);
  *team = (wf__team){.pool = pool, .fn = fn, .user = user, .size = size};
  team->shares = wf__calloc(size, sizeof *team->shares);
  if (team->shares == NULL)
    return wf__fail_memory(err, size * sizeof *team->shares, "a team of threads");
  pthread_mutex_init(&team->mutex, NULL);
  pthread_cond_init(&team->wake, NULL);
  wf__pool_start(pool, &team->members, size - 1, be_member, team);
  return WF_OK;
}

void wf__team_begin(wf__team *team, uint64_t num_items) {
  team->target = atomic_load(&team->num_done) + num_items;
  for (uint64_t m = 0; m < team->size; m++)
    atomic_store(&team->shares[m].items,
                 (m + 1) * num_items / team->size << 32 | m * num_items / team->size);
  atomic_fetch_add(&team->job, 1);
  wake_all(team);
}

void wf__team_end(wf__team *team) {
  run_items(team, 0);
  while (atomic_load(&team->num_done) < team->target) pause_a_little();
}

void wf__team_close(wf__team *team) {
  atomic_store(&team->over, true);
  wake_all(team);
  wf__pool_wait(team->pool, &team->members);
  pthread_cond_destroy(&team->wake);
  pthread_mutex_destroy(&team->mutex);
  free(team->shares);
}
