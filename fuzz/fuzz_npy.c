/* fuzz_npy.c - reads arbitrary bytes as a NumPy array file. */
#include "io/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  wf_error err;
  wf_matrix matrix = {0};
  if (wf__npy_read(data, size, "fuzz.npy", 0.5f, &matrix, &err) == WF_OK)
    wf_matrix_check(&matrix, &err);
  wf_matrix_clear(&matrix);
  return 0;
}
