/* test_pool.c - the thread pool. Every item of every job runs once, in a valid worker. No thread
 * touches a finished job. */
#include <sched.h>

#include "base/threads.h"
#include "testing.h"

enum { NUM_JOBS = 5, MOST_ITEMS = 300 };

struct work {
  int size; /* of the pool */
  atomic_int done[MOST_ITEMS], busy[16];
  atomic_int wrong;
};

static void work_item(void *user, uint64_t item, int worker) {
  struct work *work = user;
  if (worker < 0 || worker >= work->size || atomic_fetch_add(&work->busy[worker], 1) != 0)
    atomic_fetch_add(&work->wrong, 1); /* a worker does one item at a time */
  for (uint64_t i = 0; i < item % 7; i++) sched_yield();
  atomic_fetch_add(&work->done[item], 1);
  atomic_fetch_sub(&work->busy[worker], 1);
}

static void assert_done(struct work *work, uint64_t num_items) {
  assert_int_equal(work->wrong, 0);
  for (uint64_t i = 0; i < MOST_ITEMS; i++) assert_int_equal(work->done[i], i < num_items);
  memset(work, 0, sizeof *work); /* a late access shows up in the next round */
}

/* Jobs are started, one is run between them, and the caller helps or waits, in random combinations.
 */
static void test_jobs_in_random_combinations(void **state) {
  (void)state;
  static struct work works[NUM_JOBS + 1];
  wf_error err = {0};
  for (int size = 1; size <= 9; size += 4) {
    wf__pool *pool;
    assert_ok(wf__pool_create(size, &pool, &err));
    assert_int_equal(wf__pool_size(pool), size);
    for (uint64_t seed = 1; seed <= test_seeds(300); seed++) {
      wf__job jobs[NUM_JOBS];
      uint64_t counts[NUM_JOBS + 1];
      test_rng rng = {seed};
      const uint32_t num_jobs = 1 + test_below(&rng, NUM_JOBS),
                     run_after = test_below(&rng, num_jobs + 1);
      for (uint32_t k = 0; k <= NUM_JOBS; k++) {
        works[k].size = size;
        counts[k] =
            test_below(&rng, 4) == 0 ? test_below(&rng, 3) : test_below(&rng, MOST_ITEMS + 1);
      }
      for (uint32_t k = 0; k <= num_jobs; k++) {
        if (k == run_after) {
          wf__pool_run(pool, counts[NUM_JOBS], work_item, &works[NUM_JOBS]);
          assert_done(&works[NUM_JOBS], counts[NUM_JOBS]);
        }
        if (k < num_jobs) wf__pool_start(pool, &jobs[k], counts[k], work_item, &works[k]);
      }
      for (uint32_t helps = test_below(&rng, 50); helps > 0 && wf__pool_help(pool);) helps--;
      for (uint32_t k = 0; k < num_jobs; k++) {
        if (test_below(&rng, 2) == 0) wf__pool_wait(pool, &jobs[k]);
        while (!wf__pool_is_done(pool, &jobs[k]))
          if (!wf__pool_help(pool)) sched_yield();
        assert_done(&works[k], counts[k]);
      }
    }
    wf__pool_free(pool);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_jobs_in_random_combinations)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
