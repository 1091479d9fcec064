/* fuzz_safetensors.c - reads arbitrary bytes as a recurrent model in a safetensors file, with a
 * symbol table of four words. An accepted model must score a sentence without NaN. */
#include <math.h>
#include <stdlib.h>

#include "lm/rnnlm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
  if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  wf__input input = {.data = data, .size = size, .path = "input"};
  wf_error err;
  wf_symbols *words;
  static const char *const names[] = {"</s>", "a", "b", "c"};
  if (wf_symbols_create("words", &words, &err) != WF_OK) return 0;
  for (int i = 0; i < 4; i++) check(wf_symbols_add(words, names[i], i, NULL, &err) == WF_OK);
  wf_rnnlm *rnnlm;
  wf_status status = wf__rnnlm_read_safetensors(&input, words, &rnnlm, &err);
  check((status == WF_OK) == (rnnlm != NULL));
  if (rnnlm != NULL) {
    float costs[5];
    check(wf_rnnlm_score(rnnlm, (int32_t[]){1, 2, 3, 1}, (uint64_t[]){0, 4}, 1, 1, costs, &err) ==
          WF_OK);
    for (int i = 0; i < 5; i++) check(!isnan(costs[i]));
  }
  wf_rnnlm_free(rnnlm);
  wf_symbols_free(words);
  return 0;
}
