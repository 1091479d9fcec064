/* threads.c - the thread pool, on POSIX threads. */
#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"

struct wf__pool {
  int size;
  int num_started; /* helper threads, size - 1 once created */
  pthread_t *threads;
  pthread_mutex_t mutex;
  pthread_cond_t wake, done;
  uint64_t round; /* counts wf__pool_run calls; workers wait for it to move */
  int busy;
  bool stop;
  wf__task_fn fn;
  void *user;
  uint64_t num_items;
  atomic_uint_fast64_t next_item;
};

struct start {
  wf__pool *pool;
  int worker;
};

int wf__num_cpus(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    int count = CPU_COUNT(&set);
    if (count > 0) return count;
  }
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (int)online : 1;
}

static void work(wf__pool *pool, int worker) {
  for (;;) {
    uint64_t item = atomic_fetch_add_explicit(&pool->next_item, 1, memory_order_relaxed);
    if (item >= pool->num_items) return;
    pool->fn(pool->user, item, worker);
  }
}

static void *thread_main(void *argument) {
  struct start start = *(struct start *)argument;
  free(argument);
  wf__pool *pool = start.pool;
  uint64_t seen = 0;
  pthread_mutex_lock(&pool->mutex);
  for (;;) {
    while (!pool->stop && pool->round == seen) pthread_cond_wait(&pool->wake, &pool->mutex);
    if (pool->stop) break;
    seen = pool->round;
    pthread_mutex_unlock(&pool->mutex);
    work(pool, start.worker);
    pthread_mutex_lock(&pool->mutex);
    if (--pool->busy == 0) pthread_cond_signal(&pool->done);
  }
  pthread_mutex_unlock(&pool->mutex);
  return NULL;
}

wf_status wf__pool_create(int num_threads, wf__pool **out, wf_error *err) {
  *out = NULL;
  if (num_threads <= 0) num_threads = wf__num_cpus();
  if (num_threads > 4096) return wf__fail(err, WF_ERR_ARGUMENT, "%d threads asked for, at most 4096", num_threads);
  wf__pool *pool = wf__calloc(1, sizeof *pool);
  if (pool == NULL) return wf__fail_memory(err, sizeof *pool, "a thread pool");
  pool->size = num_threads;
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->wake, NULL);
  pthread_cond_init(&pool->done, NULL);
  pool->threads = wf__calloc((uint64_t)num_threads, sizeof *pool->threads);
  for (int i = 0; pool->threads != NULL && i + 1 < num_threads; i++) {
    struct start *start = wf__alloc(1, sizeof *start);
    if (start == NULL) break;
    *start = (struct start){pool, i + 1};
    if (pthread_create(&pool->threads[i], NULL, thread_main, start) != 0) {
      free(start);
      break;
    }
    pool->num_started++;
  }
  if (pool->num_started != num_threads - 1 || pool->threads == NULL) {
    wf__pool_free(pool);
    return wf__fail(err, WF_ERR_MEMORY, "cannot start %d threads", num_threads - 1);
  }
  *out = pool;
  return WF_OK;
}

int wf__pool_size(const wf__pool *pool) { return pool->size; }

void wf__pool_run(wf__pool *pool, uint64_t num_items, wf__task_fn fn, void *user) {
  pthread_mutex_lock(&pool->mutex);
  pool->fn = fn;
  pool->user = user;
  pool->num_items = num_items;
  atomic_store(&pool->next_item, 0);
  bool alone = num_items <= 1 || pool->num_started == 0;
  if (!alone) {
    pool->busy = pool->num_started;
    pool->round++;
    pthread_cond_broadcast(&pool->wake);
  }
  pthread_mutex_unlock(&pool->mutex);
  work(pool, 0);
  if (alone) return;
  pthread_mutex_lock(&pool->mutex);
  while (pool->busy > 0) pthread_cond_wait(&pool->done, &pool->mutex);
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
