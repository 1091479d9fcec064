/* fuzz_rnnlm.c - reads arbitrary bytes as a recurrent model in faster-rnnlm's format. The input is
 * the vocabulary's length (2 bytes), the vocabulary, then the network. An accepted model must score
 * sentences, and take single steps, without NaN. */
#include <math.h>
#include <stdlib.h>

#include "lm/rnnlm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
  if (!holds) abort();
}

static void use(const wf_rnnlm *rnnlm) {
  enum { WORDS = 6 };
  wf_error err;
  int32_t words[WORDS];
  float costs[WORDS + 1];
  for (int i = 0; i < WORDS; i++) words[i] = (int32_t)((size_t)(i * 7) % rnnlm->num_words);
  check(wf_rnnlm_score(rnnlm, words, (uint64_t[]){0, WORDS}, 1, 1, costs, &err) == WF_OK);
  for (int i = 0; i <= WORDS; i++) check(!isnan(costs[i]));
  wf_rnnlm_info info;
  wf_rnnlm_info_init(&info);
  check(wf_rnnlm_get_info(rnnlm, &info, &err) == WF_OK);
  char *state = malloc(2 * info.state_bytes);
  if (state == NULL) return;
  wf_rnnlm_start(rnnlm, state);
  check((wf_rnnlm_step(rnnlm, 1, state, words, costs, state + info.state_bytes, &err) == WF_OK) ==
        !rnnlm->reverse);
  free(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  size_t vocab_size = data[0] + ((size_t)data[1] << 8);
  if (vocab_size > size - 2) return 0;
  wf__input vocab = {.data = data + 2, .size = vocab_size, .path = "words"}, net;
  wf_error err;
  if (wf__input_from_memory(data + 2 + vocab_size, size - 2 - vocab_size, "network", &net, &err) !=
      WF_OK)
    return 0;
  wf_rnnlm *rnnlm;
  wf_status status = wf__rnnlm_read_inputs(&vocab, &net, &rnnlm, &err);
  check((status == WF_OK) == (rnnlm != NULL));
  if (rnnlm != NULL) use(rnnlm);
  wf_rnnlm_free(rnnlm);
  return 0;
}
