/* soak_alignments.c - forced alignment. Scores in the GPU's memory, aligned by several threads,
 * must give what scores in host memory give with one. */
#include <cuda_runtime_api.h>

#include "soak.h"

enum { MOST = SOAK_SMALL ? 3 : 40, ROUNDS = SOAK_SMALL ? 2 : 12, COLUMNS = 9 };

struct inputs {
  wf_align_input host[MOST], gpu[MOST];
  size_t count, bytes; /* of the scores of one utterance */
  char *data, *on_device;
  int32_t *tokens;
};

static void make_inputs(test_rng *rng, int64_t most_frames, struct inputs *in) {
  const size_t most_tokens = (size_t)most_frames / 4 + 1;
  in->count = 1 + test_below(rng, MOST);
  in->bytes = (size_t)most_frames * COLUMNS * sizeof(float);
  in->data = malloc(in->count * in->bytes);
  in->tokens = malloc(in->count * most_tokens * sizeof *in->tokens);
  assert_true(in->data != NULL && in->tokens != NULL);
  assert_int_equal(cudaMalloc((void **)&in->on_device, in->count * in->bytes), cudaSuccess);
  for (size_t i = 0; i < in->count; i++) {
    float *scores = (float *)(in->data + i * in->bytes);
    int32_t *tokens = in->tokens + i * most_tokens;
    const int64_t num_frames = 1 + (int64_t)test_below(rng, (uint32_t)most_frames);
    const size_t num_tokens = test_below(rng, (uint32_t)most_tokens);
    for (int64_t k = 0; k < num_frames * COLUMNS; k++) scores[k] = -8 * test_unit(rng);
    for (size_t k = 0; k < num_tokens; k++) tokens[k] = 1 + (int32_t)test_below(rng, COLUMNS - 1);
    in->host[i] =
        (wf_align_input){.scores = {scores, num_frames, COLUMNS, COLUMNS, WF_FLOAT32, false, {0}},
                         .tokens = tokens,
                         .num_tokens = num_tokens};
    in->gpu[i] = in->host[i];
    in->gpu[i].scores.data = in->on_device + i * in->bytes;
    in->gpu[i].scores.on_device = true;
  }
  assert_int_equal(
      cudaMemcpy(in->on_device, in->data, in->count * in->bytes, cudaMemcpyHostToDevice),
      cudaSuccess);
}

static void free_inputs(struct inputs *in) {
  assert_int_equal(cudaFree(in->on_device), cudaSuccess);
  free(in->data);
  free(in->tokens);
}

static void compare(const wf_alignment *got, const wf_alignment *want) {
  assert_int_equal(got->status, want->status);
  if (want->status != WF_OK) {
    assert_string_equal(got->message, want->message);
    return;
  }
  assert_true(got->num_tokens == want->num_tokens && got->num_garbage == want->num_garbage &&
              got->log_prob == want->log_prob);
  if (want->num_tokens > 0)
    assert_memory_equal(got->tokens, want->tokens, want->num_tokens * sizeof *want->tokens);
  if (want->num_garbage > 0)
    assert_memory_equal(got->garbage, want->garbage, want->num_garbage * sizeof *want->garbage);
}

void soak_alignments(test_rng *rng, struct soak_counts *counts) {
  for (int round = 0; round < ROUNDS; round++) {
    wf_error err = {0};
    struct inputs in;
    wf_align_options options;
    wf_alignment *want[MOST], *got[MOST];
    make_inputs(rng, SOAK_SMALL ? 20 : 400, &in);
    wf_align_options_init(&options);
    if (test_below(rng, 2)) options.garbage = (float)test_below(rng, 6);
    if (test_below(rng, 3) == 0) options.skip_words = (float)test_below(rng, 20);
    soak_note("round %d: %zu alignments", round, in.count);
    options.num_threads = 1;
    assert_ok(wf_align(in.host, in.count, &options, want, &err));
    options.num_threads = 1 + (int32_t)test_below(rng, 4);
    assert_ok(wf_align(in.gpu, in.count, &options, got, &err));
    if (soak_plant()) got[0]->num_tokens++;
    for (size_t i = 0; i < in.count; i++) {
      compare(got[i], want[i]);
      wf_alignment_free(got[i]);
      wf_alignment_free(want[i]);
    }
    counts->utterances += in.count;
    free_inputs(&in);
  }
}
