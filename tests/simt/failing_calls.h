/* failing_calls.h - makes CUDA calls fail on the imitated GPU, and checks what the library says. */
#ifndef SIMT_FAILING_CALLS_H
#define SIMT_FAILING_CALLS_H

#include <cuda_runtime_api.h>
#include <unistd.h>

#include "testing.h"

/* Of the CUDA calls of a piece of work, each STEP-th fails once. ./run test-more tries them all. */
#ifdef SIMT_MORE
enum { STEP = 1 };
#else
enum { STEP = 5 };
#endif

/* After CUDA call `n` failed: the status is the right one, and the message names what failed.
 * `lost`: all later calls failed, too. */
static inline void check_cuda_error(const char *name, long n, bool lost, wf_status status,
                                    const wf_error *err) {
  const wf_status want = !lost && fake_gpus.failed_to_allocate ? WF_ERR_MEMORY : WF_ERR_DEVICE;
  if (status != want)
    fail_msg("%s, call %ld: status %d, not %d: %s", name, n, status, want, err->message);
  if (strstr(err->message, "CUDA") == NULL && strstr(err->message, "GPU") == NULL)
    fail_msg("%s, call %ld: '%s' does not say what failed", name, n, err->message);
  if (strstr(err->message, "CUDA: :") != NULL)
    fail_msg("%s, call %ld: '%s' names nothing", name, n, err->message);
}

/* Fails the test if allocations, streams or events were leaked. */
static inline void check_num_objects(const char *name, long n, long want) {
  if (fake_gpus.num_objects != want)
    fail_msg("%s, call %ld: %ld objects more than before", name, n, fake_gpus.num_objects - want);
}

/* Work that creates its objects on the GPU and frees them all. It asserts that a result is right.
 */
typedef wf_status gpu_work(const void *input, wf_error *err);

/* Runs `work` until each STEP-th of its CUDA calls has failed: first the call alone, then the call
 * and all later ones. If a run returns an error, it has to be the right one. No run may leak
 * anything. At least `min_errors` / STEP runs have to return an error: fewer than all, because work
 * may succeed although memory could not be freed. */
static inline void fail_each_call(const char *name, gpu_work *work, const void *input,
                                  long min_errors) {
  wf_error err = {0};
  assert_ok(work(input, &err)); /* creates what a process creates once */
  const long num_objects = fake_gpus.num_objects;
  long num_errors = 0, n = 1;
  for (bool reached = true; reached; n += STEP) {
    for (int lost = 0; lost < 2; lost++) {
      alarm(60); /* a run that takes longer hangs */
      err = (wf_error){0};
      fake_gpus.num_calls = 0;
      fake_gpus.failed_to_allocate = false;
      *(lost != 0 ? &fake_gpus.lost_at : &fake_gpus.fail_at) = n;
      const wf_status status = work(input, &err);
      reached = fake_gpus.num_calls >= n;
      fake_gpus.fail_at = fake_gpus.lost_at = 0;
      if (status != WF_OK) check_cuda_error(name, n, lost != 0, status, &err);
      num_errors += status != WF_OK;
      check_num_objects(name, n, num_objects);
    }
  }
  alarm(0);
  print_message("%s: %ld runs, %ld errors\n", name, 2 * n / STEP, num_errors);
  assert_true(num_errors >= min_errors / STEP);
}

#endif
