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
    test_assert_same_with_lattice(got[u], want[u]);
    *num_words += got[u]->num_words;
  }
}

static int num_in_kernels; /* decoders whose streams were searched in kernels */

/* All utterances as streams of random chunks, some of them on the GPU. Streams end at different
 * times, and others begin in their place. `scorers`, `graphs`: [UTTERANCES]; NULL: the decoder's. */
static inline void stream_on(const struct task *task, const char *device, wf_scorer *const *scorers,
                             wf_graph *const *graphs, wf_result *const *want, uint64_t seed) {
  wf_error err;
  enum { OPEN = 7 };
  test_rng rng = {seed + 99};
  wf_decoder *decoder = decoder_on(task, device);
  wf_stream *streams[OPEN];
  int utterances[OPEN], next = 0;
  int64_t done[OPEN] = {0};
  for (int s = 0; s < OPEN; s++) {
    assert_ok(wf_stream_create(decoder, NULL, &streams[s], &err));
    utterances[s] = next++;
    if (scorers != NULL) assert_ok(wf_stream_set_scorer(streams[s], scorers[utterances[s]], &err));
    if (graphs != NULL) assert_ok(wf_stream_set_graph(streams[s], graphs[utterances[s]], &err));
  }
  for (int num_done = 0; num_done < UTTERANCES;) {
    wf_stream *some[OPEN];
    wf_scores chunks[OPEN];
    wf_stream_event events[OPEN];
    void *there[OPEN] = {NULL};
    size_t count = 0;
    for (int s = 0; s < OPEN; s++) {
      if (utterances[s] < 0) continue;
      const wf_scores *all = &task->scores[utterances[s]];
      const int64_t left = all->num_frames - done[s];
      if (left == 0) {
        wf_result *result;
        assert_ok(wf_stream_finish(streams[s], &result, &err));
        test_assert_same_with_lattice(result, want[utterances[s]]);
        wf_result_free(result);
        assert_ok(wf_stream_reset(streams[s], &err));
        utterances[s] = next < UTTERANCES ? next++ : -1;
        if (scorers != NULL && utterances[s] >= 0)
          assert_ok(wf_stream_set_scorer(streams[s], scorers[utterances[s]], &err));
        if (graphs != NULL && utterances[s] >= 0)
          assert_ok(wf_stream_set_graph(streams[s], graphs[utterances[s]], &err));
        done[s] = 0;
        num_done++;
        continue;
      }
      if (test_below(&rng, 4) == 0) continue;
      const int64_t size = 1 + (int64_t)test_below(&rng, (uint32_t)left);
      chunks[count] = *all;
      chunks[count].data =
          (const char *)all->data + (size_t)(done[s] * all->stride) * test_score_size(all->dtype);
      chunks[count].num_frames = size;
      if (test_below(&rng, 3) == 0) {
        chunks[count] = on_gpu(&chunks[count]);
        there[count] = (void *)(uintptr_t)chunks[count].data;
      }
      some[count++] = streams[s];
      done[s] += size;
    }
    if (count > 0) assert_ok(wf_streams_advance(decoder, some, chunks, count, events, &err));
    for (size_t i = 0; i < count; i++)
      if (there[i] != NULL) assert_int_equal(cudaFree(there[i]), cudaSuccess);
  }
  for (int s = 0; s < OPEN; s++) wf_stream_free(streams[s]);
  const wf__transducer_shared *shared = ((const wf__host *)decoder->search)->setup.shared;
  num_in_kernels += shared->of_streams.are_open;
  wf_decoder_free(decoder);
}

#endif
