/* fuzz_openfst.c - reads arbitrary bytes as an fst file. An accepted fst must be valid, and writing
 * it must succeed. */
#include <stdint.h>
#include <stdlib.h>

#include "fst/fst_formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  wf__input input;
  wf_fst *fst;
  wf_fst_format format;
  if (wf__input_from_memory(data, size, "input", &input, NULL) != WF_OK) return 0;
  if (wf__fst_read_input(&input, &fst, &format, NULL) != WF_OK) return 0;
  wf_fst_view view = wf_fst_get_view(fst);
  if (wf__fst_check(&view, "accepted", NULL) != WF_OK) abort();
  (void)wf_fst_properties(fst);
  if (format > WF_FORMAT_OPENFST_CONST_LOG64) format = WF_FORMAT_OPENFST_VECTOR; /* only read */
  if (wf_fst_write(fst, "/dev/null", format, NULL) != WF_OK) abort();
  wf_fst_info info;
  wf_fst_info_init(&info);
  if (wf_fst_get_info(fst, &info, NULL) != WF_OK || info.num_connected > view.num_states) abort();
  wf_fst_free(fst);
  return 0;
}
