/* fuzz_kenlm.c - reads arbitrary bytes as a KenLM binary trie. */
#include "binary_lm_checks.h"
#include "lm/kenlm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  wf__input input = {.data = data, .size = size, .path = "input"};
  if (wf__lm_is_kenlm(&input)) check_reader(&input, wf__lm_read_kenlm);
  return 0;
}
