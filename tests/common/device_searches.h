/* device_searches.h - decoders whose transducer search is in kernels on a GPU, or on the CPU, and their
 * results. Included by tests, after gpu_transducers.h. */
#ifndef TESTS_DEVICE_SEARCHES_H
#define TESTS_DEVICE_SEARCHES_H

#include "decode/decoder.h"
#include "decode/host_backend.h"
#include "gpu_transducers.h"
#include "search/transducer/transducer_shared.h"

static inline wf_decoder *decoder_that_searches(const struct task *task, const char *device,
                                                bool on_host) {
  if (on_host) assert_int_equal(setenv("WARPFST_TRANSDUCER_SEARCH", "host", 1), 0);
  wf_decoder *decoder = decoder_on(task, device);
  assert_int_equal(unsetenv("WARPFST_TRANSDUCER_SEARCH"), 0);
  const wf__transducer_shared *shared = ((const wf__host *)decoder->search)->setup.shared;
  assert_true((shared->device_graph != NULL) == !on_host);
  return decoder;
}

static inline void check_same(uint64_t seed, wf_result *const *got, wf_result *const *want,
                              uint64_t *num_words) {
  for (int u = 0; u < UTTERANCES; u++) {
    if (got[u]->status != want[u]->status || got[u]->cost != want[u]->cost ||
        got[u]->num_tokens != want[u]->num_tokens)
      print_message(
          "seed %llu, utterance %d of %lld frames: cost %.9g, not %.9g; %llu tokens, not "
          "%llu; status %d, not %d\n",
          (unsigned long long)seed, u, (long long)want[u]->num_frames, got[u]->cost, want[u]->cost,
          (unsigned long long)got[u]->num_tokens, (unsigned long long)want[u]->num_tokens,
          got[u]->status, want[u]->status);
    test_assert_same_result(got[u], want[u]);
    *num_words += got[u]->num_words;
  }
}

#endif
