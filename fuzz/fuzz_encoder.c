/* fuzz_encoder.c - reads arbitrary bytes as a table of an encoder. An accepted table must be
 * written again. */
#include <stdint.h>
#include <stdlib.h>

#include "fstops/encoder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  wf__input input;
  wf_encoder *encoder;
  if (wf__input_from_memory(data, size, "input", &input, NULL) != WF_OK) return 0;
  wf_status status = wf__encoder_read_input(&input, &encoder, NULL);
  wf__input_close(&input);
  if (status != WF_OK) return 0;
  if (wf_encoder_write(encoder, "/dev/null", NULL) != WF_OK) abort();
  wf_encoder_free(encoder);
  return 0;
}
