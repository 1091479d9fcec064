/* team.h - the threads of a pool for many short jobs in a row.
 *
 * A job with a GPU can be shorter than it takes to wake a thread. So the members of a team look for
 * the next job for a while before they sleep. Each begins with its own share of the items, those
 * that it had in the jobs before, so that these are in its caches; then it helps the others. */
#ifndef WF_BASE_TEAM_H
#define WF_BASE_TEAM_H

#include <pthread.h>

#include "base/threads.h"

enum { WF__CACHE_LINE = 64 };

/* A member's share of the items of a job: the next one, and in the upper half the end. */
struct wf__team_share {
  atomic_uint_fast64_t items;
  char unused[WF__CACHE_LINE - sizeof(atomic_uint_fast64_t)];
};

typedef struct wf__team {
  wf__pool *pool;
  wf__task_fn fn;
  void *user;
  wf__job members;               /* all but the calling thread */
  struct wf__team_share *shares; /* [size] */
  uint64_t size;
  uint64_t target; /* of num_done, when the job is done */
  pthread_mutex_t mutex;
  pthread_cond_t wake;
  _Alignas(WF__CACHE_LINE) atomic_uint_fast64_t job; /* number of the current one */
  atomic_bool over;
  atomic_int num_asleep;
  _Alignas(WF__CACHE_LINE) atomic_uint_fast64_t num_done; /* items of all jobs */
} wf__team;

/* Takes the pool's threads until wf__team_close. `fn` gets the number of an item, and as `worker`
 * that of the member; the calling thread is member 0. The caller owns the memory, which must not
 * move. */
wf_status wf__team_open(wf__team *team, wf__pool *pool, wf__task_fn fn, void *user, wf_error *err);
/* Begins to run fn for items [0, num_items), at most 2^32 - 1. The calling thread may do something
 * else meanwhile. */
void wf__team_begin(wf__team *team, uint64_t num_items);
/* Helps, and returns when all items are done. */
void wf__team_end(wf__team *team);
void wf__team_close(wf__team *team);

#endif
