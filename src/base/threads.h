/* threads.h - a fixed pool of workers and one way to use it: parallel for.
 *
 * Work items are handed out by a shared counter, so uneven items balance; results must not depend on which worker ran an item.
 * One wf__pool_run at a time per pool; the calling thread works too, so a pool of 1 starts no thread. */
#ifndef WF_BASE_THREADS_H
#define WF_BASE_THREADS_H

#include "base/error.h"

typedef struct wf__pool wf__pool;
typedef void (*wf__task_fn)(void *user, uint64_t item, int worker);

/* Processors this process may run on. */
int wf__num_cpus(void);
/* num_threads <= 0: one per processor. */
wf_status wf__pool_create(int num_threads, wf__pool **out, wf_error *err);
int wf__pool_size(const wf__pool *pool);
/* Calls fn(user, item, worker) for every item in [0, num_items), worker in [0, size). Returns when all are done. */
void wf__pool_run(wf__pool *pool, uint64_t num_items, wf__task_fn fn, void *user);
void wf__pool_free(wf__pool *pool);

#endif
