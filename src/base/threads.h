/* threads.h - a fixed pool of workers, and jobs for it: as many calls of a function as there are
 * items.
 *
 * Items are assigned by a counter, so uneven ones balance; results must not depend on which
 * worker ran an item. One thread uses a pool from outside; it works too, so a pool of 1 starts no
 * thread. wf__pool_run waits for its job; wf__pool_start leaves one to the others, with
 * wf__pool_run before, meanwhile, after: what is to be waited for goes first. */
#ifndef WF_BASE_THREADS_H
#define WF_BASE_THREADS_H

#include <stdatomic.h>

#include "base/error.h"

typedef struct wf__pool wf__pool;
typedef void (*wf__task_fn)(void *user, uint64_t item, int worker);

/* Processors this process may run on. */
int wf__num_cpus(void);
/* num_threads <= 0: one per processor. */
wf_status wf__pool_create(int num_threads, wf__pool **out, wf_error *err);
int wf__pool_size(const wf__pool *pool);
/* Calls fn(user, item, worker) for every item in [0, num_items), worker in [0, size). Returns when
 * all are done. */
void wf__pool_run(wf__pool *pool, uint64_t num_items, wf__task_fn fn, void *user);
/* The same, but items are left out once the call is to end (base/interrupt.h): WF_ERR_CANCELLED,
 * also if none was. */
wf_status wf__pool_try(wf__pool *pool, uint64_t num_items, wf__task_fn fn, void *user,
                       wf_error *err);
/* A job that goes on while the caller does something else. Memory is the caller's; it stays where
 * it is until wf__pool_is_done. */
typedef struct wf__job {
  wf__task_fn fn;
  void *user;
  uint64_t num_items;
  struct wf__interrupt *interrupt; /* of whom it is done for */
  bool may_stop;
  atomic_uint_fast64_t next_item;
  int busy; /* workers at it */
  bool queued;
  struct wf__job *next;
} wf__job;
void wf__pool_start(wf__pool *pool, wf__job *job, uint64_t num_items, wf__task_fn fn, void *user);
bool wf__pool_is_done(wf__pool *pool, const wf__job *job);
/* The caller does one item of what was started; false if there is none left. */
bool wf__pool_help(wf__pool *pool);
/* Returns when the job is done; the caller works at it. */
void wf__pool_wait(wf__pool *pool, wf__job *job);
void wf__pool_free(wf__pool *pool);

#endif
