/* threads.c - the thread pool, on POSIX threads. */
#include "base/threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/platform.h"

enum { WAIT_NS = 10 * 1000 * 1000 };

struct wf__pool {
  int size;
  int num_started; /* helper threads, size - 1 once created */
  pthread_t *threads;
  pthread_mutex_t mutex;
  pthread_cond_t wake, done;
  wf__job *jobs; /* queue of jobs that may have items not yet started, next first */
  int num_idle;  /* helper threads waiting for a job */
  bool stop;
};

struct start {
  wf__pool *pool;
  int worker;
};

int wf__num_cpus(void) { return wf__num_processors(); }

static bool work_once(wf__job *job, int worker) {
  if (job->may_stop && wf__stopped())
    atomic_store_explicit(&job->next_item, job->num_items, memory_order_relaxed);
  if (atomic_load_explicit(&job->next_item, memory_order_relaxed) >= job->num_items) return false;
  const uint64_t item = atomic_fetch_add_explicit(&job->next_item, 1, memory_order_relaxed);
  if (item >= job->num_items) return false;
  job->fn(job->user, item, worker);
  return true;
}

/* Needs the mutex. */
static void unqueue(wf__pool *pool, wf__job *job) {
  if (!job->queued) return;
  wf__job **place = &pool->jobs;
  while (*place != job) place = &(*place)->next;
  *place = job->next;
  job->queued = false;
}

/* Runs one item of the job, with `all` all remaining items. False if no item was left. Needs the
 * mutex, which is released while items run. */
static bool work(wf__pool *pool, wf__job *job, bool all, int worker) {
  job->busy++;
  pthread_mutex_unlock(&pool->mutex);
  wf__interrupt *own = wf__interrupt_exchange(job->interrupt);
  bool some = work_once(job, worker), more = some && all;
  while (more) more = work_once(job, worker);
  wf__interrupt_exchange(own);
  pthread_mutex_lock(&pool->mutex);
  if (all || !some) unqueue(pool, job);
  if (--job->busy == 0 && !job->queued) pthread_cond_broadcast(&pool->done);
  return some;
}

static void *thread_main(void *argument) {
  struct start start = *(struct start *)argument;
  free(argument);
  wf__pool *pool = start.pool;
  pthread_mutex_lock(&pool->mutex);
  while (!pool->stop) {
    if (pool->jobs != NULL) {
      work(pool, pool->jobs, true, start.worker);
      continue;
    }
    pool->num_idle++;
    pthread_cond_wait(&pool->wake, &pool->mutex);
    pool->num_idle--;
  }
  pthread_mutex_unlock(&pool->mutex);
  return NULL;
}

wf_status wf__pool_create(int num_threads, wf__pool **out, wf_error *err) {
  *out = NULL;
  if (num_threads <= 0) num_threads = wf__num_cpus();
  if (num_threads > 4096)
    return wf__fail(err, WF_ERR_ARGUMENT, "%d threads requested, at most 4096 are possible",
                    num_threads);
  wf__pool *pool = wf__calloc(1, sizeof *pool);
  if (pool == NULL) return wf__fail_memory(err, sizeof *pool, "a thread pool");
  pool->size = num_threads;
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->wake, NULL);
  wf__timed_init(&pool->done);
  pool->threads = wf__calloc((uint64_t)num_threads, sizeof *pool->threads);
  int code = pool->threads != NULL ? 0 : ENOMEM;
  for (int i = 0; code == 0 && i + 1 < num_threads; i++) {
    struct start *start = wf__alloc(1, sizeof *start);
    code = ENOMEM;
    if (start == NULL) break;
    *start = (struct start){pool, i + 1};
    code = pthread_create(&pool->threads[i], NULL, thread_main, start);
    if (code != 0) free(start);
    pool->num_started += code == 0;
  }
  if (code != 0) {
    wf__pool_free(pool);
    return wf__fail(err, WF_ERR_MEMORY, "out of memory: cannot start %d threads: %s",
                    num_threads - 1, strerror(code));
  }
  *out = pool;
  return WF_OK;
}

int wf__pool_size(const wf__pool *pool) { return pool->size; }

/* Puts the job first or last in the queue. Needs the mutex. */
static void enqueue(wf__pool *pool, wf__job *job, bool first) {
  const uint64_t num_items = job->num_items;
  wf__job **place = &pool->jobs;
  while (!first && *place != NULL) place = &(*place)->next;
  job->interrupt = wf__interrupt_current();
  job->queued = true;
  job->next = *place;
  *place = job;
  if (num_items > (uint64_t)pool->num_idle)
    pthread_cond_broadcast(&pool->wake);
  else
    for (uint64_t i = 0; i < num_items; i++) pthread_cond_signal(&pool->wake);
}

/* Waits until a job finishes, or until it is time to call the caller's interrupt function, which
 * only this thread may do. Needs the mutex, which is released meanwhile. */
static void wait_done(wf__pool *pool) {
  if (!wf__interrupt_polls()) {
    pthread_cond_wait(&pool->done, &pool->mutex);
    return;
  }
  if (!wf__timed_wait(&pool->done, &pool->mutex, WAIT_NS)) return;
  pthread_mutex_unlock(&pool->mutex);
  (void)wf__stopped();
  pthread_mutex_lock(&pool->mutex);
}

/* Needs the mutex. */
static void wait_for(wf__pool *pool, wf__job *job) {
  work(pool, job, true, 0);
  while (job->busy > 0) wait_done(pool);
}

static void run_job(wf__pool *pool, wf__job *job) {
  if (job->num_items <= 1 || pool->num_started == 0) {
    while (work_once(job, 0)) {
    }
    return;
  }
  wf__interrupt_renew();
  pthread_mutex_lock(&pool->mutex);
  enqueue(pool, job, true);
  wait_for(pool, job);
  pthread_mutex_unlock(&pool->mutex);
}

void wf__pool_run(wf__pool *pool, uint64_t num_items, wf__task_fn fn, void *user) {
  wf__job job = {.fn = fn, .user = user, .num_items = num_items};
  run_job(pool, &job);
}

wf_status wf__pool_try(wf__pool *pool, uint64_t num_items, wf__task_fn fn, void *user,
                       wf_error *err) {
  wf__job job = {.fn = fn, .user = user, .num_items = num_items, .may_stop = true};
  WF__TRY(wf__interrupted(err));
  run_job(pool, &job);
  return wf__interrupted(err);
}

wf_status wf__pool_once(int num_threads, uint64_t num_items, wf__task_fn fn, void *user,
                        wf_error *err) {
  wf__pool *pool = NULL;
  if (num_threads <= 0) num_threads = wf__num_cpus();
  if ((uint64_t)num_threads > num_items) num_threads = num_items > 0 ? (int)num_items : 1;
  WF__TRY(wf__pool_create(num_threads, &pool, err));
  const wf_status status = wf__pool_try(pool, num_items, fn, user, err);
  wf__pool_free(pool);
  return status;
}

void wf__pool_start(wf__pool *pool, wf__job *job, uint64_t num_items, wf__task_fn fn, void *user) {
  *job = (wf__job){.fn = fn, .user = user, .num_items = num_items};
  wf__interrupt_renew();
  pthread_mutex_lock(&pool->mutex);
  enqueue(pool, job, false);
  pthread_mutex_unlock(&pool->mutex);
}

bool wf__pool_is_done(wf__pool *pool, const wf__job *job) {
  pthread_mutex_lock(&pool->mutex);
  const bool done = !job->queued && job->busy == 0;
  pthread_mutex_unlock(&pool->mutex);
  return done;
}

bool wf__pool_help(wf__pool *pool) {
  pthread_mutex_lock(&pool->mutex);
  bool helped = false;
  while (!helped && pool->jobs != NULL) helped = work(pool, pool->jobs, false, 0);
  pthread_mutex_unlock(&pool->mutex);
  return helped;
}

void wf__pool_wait(wf__pool *pool, wf__job *job) {
  pthread_mutex_lock(&pool->mutex);
  wait_for(pool, job);
  pthread_mutex_unlock(&pool->mutex);
}

void wf__pool_free(wf__pool *pool) {
  if (pool == NULL) return;
  pthread_mutex_lock(&pool->mutex);
  pool->stop = true;
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->mutex);
  for (int i = 0; i < pool->num_started; i++) pthread_join(pool->threads[i], NULL);
  pthread_cond_destroy(&pool->wake);
  pthread_cond_destroy(&pool->done);
  pthread_mutex_destroy(&pool->mutex);
  free(pool->threads);
  free(pool);
}
