/* no_gpu_batch.c - whether there is a GPU for batches of fsts. */
#include "testing.h"

bool test_no_gpu_for_batches(void) {
  wf_error err = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 0 1 1 1;0");
  wf_fst_batch *batch;
  wf_status status = wf_fst_batch_create((const wf_fst *const *)&fst, 1, "cuda", &batch, &err);
  wf_fst_free(fst);
  wf_fst_batch_free(batch);
  bool none = status == WF_ERR_DEVICE && strstr(err.message, "no GPU") != NULL;
  if (none) printf("skipped: %s\n", err.message);
  return none;
}
