/* fuzz_far.c - reads arbitrary bytes as an archive of fsts. Each accepted fst must be valid, and
 * the end must stay the end. */
#include <stdint.h>
#include <stdlib.h>

#include "fst/fst_formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  wf__input input;
  wf_far *far;
  wf_fst *fst = NULL;
  const char *key;
  if (wf__input_from_memory(data, size, "input", &input, NULL) != WF_OK) return 0;
  if (wf__far_open_input(&input, &far, NULL) != WF_OK) return 0;
  for (int count = 0; count < 100; count++) {
    if (wf_far_next(far, &key, &fst, NULL) != WF_OK) break;
    if (fst == NULL) {
      if (wf_far_next(far, &key, &fst, NULL) == WF_OK && fst != NULL) abort();
      break;
    }
    wf_fst_view view = wf_fst_get_view(fst);
    if (wf__fst_check(&view, "accepted", NULL) != WF_OK) abort();
    wf_fst_free(fst);
  }
  if (wf_far_find(far, "a", &fst, NULL) == WF_OK) wf_fst_free(fst);
  wf_far_free(far);
  return 0;
}
