/* test_simt.c - tests the imitated GPU itself: warp-level exchanges, barriers, clusters, random
 * schedules, and that it detects errors in kernels. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_runtime_api.h"
#include "simt.h"
#include "test_simt_kernels.h"
#include "testing.h"

enum { SEEDS = 60 };

/* Runs a kernel on new memory, which the caller frees with `done`. */
static uint32_t *run(uint64_t seed, enum try_what what, int which, const uint32_t *filled) {
  uint32_t *out;
  simt.seed = seed;
  assert_int_equal(cudaMalloc((void **)&out, TRY_WORDS * sizeof *out), cudaSuccess);
  memset(out, 0, TRY_WORDS * sizeof *out);
  if (filled != NULL) memcpy(out, filled, 64 * sizeof *out);
  assert_int_equal(try_kernel(what, out, which), cudaSuccess);
  assert_int_equal(cudaStreamSynchronize(NULL), cudaSuccess);
  return out;
}

static void done(uint32_t *out) { assert_int_equal(cudaFree(out), cudaSuccess); }

static void test_warp_exchanges(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    uint32_t *out = run(seed, TRY_EXCHANGE, 0, NULL);
    for (uint32_t i = 0; i < 64; i++) {
      const uint32_t lane = i & 31, first = i & ~31u, *got = out + i * TRY_EXCHANGES;
      uint32_t want[TRY_EXCHANGES] = {(first + 5) * 7 + 3,
                                      (lane < 3 ? i : i - 3) * 7 + 3,
                                      (lane > 28 ? i : i + 3) * 7 + 3,
                                      (i ^ 9) * 7 + 3,
                                      0,
                                      2};
      want[8] = UINT32_MAX;
      want[11] = (first + (lane < 10 ? 9 : 31)) * 7 + 3;
      want[12] = 1;
      for (uint32_t k = 0; k < 32; k++) {
        const uint32_t value = (first + k) * 7 + 3;
        want[4] |= (uint32_t)(value % 3 == 0) << k;
        want[6] |= (uint32_t)(k % 5 == lane % 5) << k;
        want[7] += value;
        if ((value ^ 8) < want[8]) want[8] = value ^ 8;
        want[9] |= 1u << (k % 7);
        if (lane >= 10 && k >= 10) want[10] += value;
        if (lane < 10 && k < 10) want[10] = value;
      }
      assert_memory_equal(got, want, sizeof want);
    }
    done(out);
  }
}

static void test_block_barriers(void **state) {
  (void)state;
  int early = 0;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    for (int barrier = 0; barrier < 2; barrier++) {
      uint32_t *out = run(seed, TRY_BARRIER, barrier, NULL);
      for (uint32_t i = 0; i < 4 * 256; i++) {
        const uint32_t block = i / 256, want = block * 1000 + (i + 1) % 256,
                       got = out[block * 512 + i % 256];
        assert_int_equal(out[block * 512 + 256 + i % 256],
                         0xa5a5a5a5u); /* the initial contents of shared memory */
        if (barrier) assert_int_equal(got, want);
        early += got != want;
      }
      done(out);
    }
  }
  assert_true(early > SEEDS);
}

static void test_clusters_and_grids(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    uint32_t *out = run(seed, TRY_CLUSTER, 0, NULL);
    for (uint32_t i = 0; i < 12 * 64; i++) {
      const uint32_t block = i / 64, from = block % 4 == 0 ? block + 3 : block - 1;
      assert_int_equal(out[i], from * 100 + i % 64);
      assert_int_equal(out[12 * 64 + block], 4 * 64 * 2);
    }
    done(out);
    out = run(seed, TRY_GRID, 0, NULL);
    for (uint32_t round = 0; round < 5; round++) {
      assert_int_equal(out[round], 6 * 40);
      if (round > 0) assert_int_equal(out[8 + round], 6 * 40);
    }
    done(out);
  }
}

static void test_asynchronous_copies(void **state) {
  (void)state;
  uint32_t values[64];
  for (uint32_t i = 0; i < 64; i++) values[i] = i + 7;
  uint32_t *out = run(1, TRY_COPY, 0, values);
  for (uint32_t i = 0; i < 64; i++) {
    assert_int_equal(out[64 + i], values[i]);
    assert_int_equal(out[128 + i], 0xa5a5a5a5u); /* read before the wait */
  }
  done(out);
}

/* Seeds give different schedules, so that a race changes results; without a race they never change.
 */
static void test_schedules_show_races(void **state) {
  (void)state;
  int lost = 0;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    uint32_t *out = run(seed, TRY_COUNT, 1, NULL);
    assert_int_equal(out[0], 3 * 64 * 20);
    done(out);
    out = run(seed, TRY_COUNT, 0, NULL);
    lost += out[0] < 3 * 64 * 20;
    done(out);
  }
  assert_true(lost > 5 && lost < SEEDS);
}

/* Runs a wrong kernel in a child process. It must abort, with `text` in its output. */
static void assert_found(int which, const char *text) {
  int ends[2];
  char said[20000];
  size_t size = 0;
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    dup2(ends[1], 2);
    signal(SIGSEGV, SIG_DFL);
    done(run(1, TRY_WRONG, which, NULL));
    _exit(0);
  }
  close(ends[1]);
  for (ssize_t got = 1; got > 0 && size + 1 < sizeof said; size += (size_t)got) {
    got = read(ends[0], said + size, sizeof said - 1 - size);
    if (got < 0) break;
  }
  said[size] = 0;
  close(ends[0]);
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    fail_msg("wrong kernel %d ran to its end", which);
  if (text != NULL && strstr(said, text) == NULL)
    fail_msg("wrong kernel %d: '%s' is not in '%s'", which, text, said);
}

static void test_errors_in_kernels_are_detected(void **state) {
  (void)state;
  static const char *const texts[NUM_WRONG] = {
      [WRONG_BARRIER] = "deadlock",
      [WRONG_CLUSTER] = "a cluster's sync, ",
      [WRONG_MASK] = "lanes 000000f7: wait at __syncwarp",
      [WRONG_MASK_OF_OTHERS] = "by lane",
      [WRONG_KIND] = "of mask ffffffff is at __",
      [WRONG_LANE] = "reads lane 20",
      [WRONG_ADDRESS] = "4 bytes of shared memory at address",
      [WRONG_RANK] = "4 bytes of shared memory at address",
      [WRONG_BEYOND] = NULL, /* crashes on an inaccessible page */
      [WRONG_MINIMUM] = "not atomic on real GPUs",
      [WRONG_GONE] = "which has ended",
      [WRONG_COPY] = "asynchronous copies under way",
      [WRONG_GLOBAL] = "write beyond an allocation",
  };
  for (int which = 0; which < NUM_WRONG; which++) assert_found(which, texts[which]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_warp_exchanges),
                                     cmocka_unit_test(test_block_barriers),
                                     cmocka_unit_test(test_clusters_and_grids),
                                     cmocka_unit_test(test_asynchronous_copies),
                                     cmocka_unit_test(test_schedules_show_races),
                                     cmocka_unit_test(test_errors_in_kernels_are_detected)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
