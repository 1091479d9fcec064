/* threads.h - a fixed pool of workers. A job calls a function once for each of its items. Workers
 * take items from a shared counter, so that items of uneven size are balanced. Results must not
 * depend on which worker ran an item. Only one thread may use a pool. It runs items too, as worker
 * 0, so a pool of size 1 starts no thread. wf__pool_run waits for its job. wf__pool_start leaves
 * its job to the other workers. While it runs, wf__pool_run may be called; its job has priority. */
#ifndef WF_BASE_THREADS_H
#define WF_BASE_THREADS_H

#include <stdatomic.h>

#include "base/error.h"

typedef struct wf__pool wf__pool;
typedef void (*wf__task_fn)(void *user, uint64_t item, int worker);

/* Number of processors that this process may run on. */
int wf__num_cpus(void);
/* num_threads <= 0: one per processor. */
wf_status wf__pool_create(int num_threads, wf__pool **out, wf_error *err);
int wf__pool_size(const wf__pool *pool);
/* Calls fn(user, item, worker) for every item in [0, num_items), with worker in [0, size). Returns
 * when all items are done. */
void wf__pool_run(wf__pool *pool, uint64_t num_items, wf__task_fn fn, void *user);
/* As wf__pool_run, but skips the remaining items if the call is cancelled (base/interrupt.h). Then
 * returns WF_ERR_CANCELLED, also if no item was skipped. */
wf_status wf__pool_try(wf__pool *pool, uint64_t num_items, wf__task_fn fn, void *user,
                       wf_error *err);
/* The same with a pool for this job alone, of num_threads threads (0: one per processor), but no
 * more than items. */
wf_status wf__pool_once(int num_threads, uint64_t num_items, wf__task_fn fn, void *user,
                        wf_error *err);
/* A job that runs in the background. The caller owns the memory, which must not move before
 * wf__pool_is_done. */
typedef struct wf__job {
  wf__task_fn fn;
  void *user;
  uint64_t num_items;
  struct wf__interrupt *interrupt; /* of the call that the job belongs to */
  bool may_stop;
  atomic_uint_fast64_t next_item;
  int busy; /* number of workers running its items */
  bool queued;
  struct wf__job *next;
} wf__job;
void wf__pool_start(wf__pool *pool, wf__job *job, uint64_t num_items, wf__task_fn fn, void *user);
bool wf__pool_is_done(wf__pool *pool, const wf__job *job);
/* Runs one item of a started job in the calling thread; false if none is left. */
bool wf__pool_help(wf__pool *pool);
/* Runs items of the job in the calling thread, and returns when the job is done. */
void wf__pool_wait(wf__pool *pool, wf__job *job);
void wf__pool_free(wf__pool *pool);

#endif
