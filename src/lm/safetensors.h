/* safetensors.h - the tensors of a safetensors file: u64 size of the header | header, JSON {"NAME":
 * {"dtype", "shape", "data_offsets"}, ...} | data.
 *
 * Every tensor is checked against the file's length before it is returned; nothing is copied. */
#ifndef WF_LM_SAFETENSORS_H
#define WF_LM_SAFETENSORS_H

#include "base/input.h"
#include "base/memory.h"

enum { WF__TENSOR_MAX_DIMS = 8 };

typedef struct wf__tensor {
  wf__span name;
  char dtype[8];
  size_t num_dims;
  uint64_t dims[WF__TENSOR_MAX_DIMS];
  const uint8_t *data; /* of any alignment */
  bool used;           /* by whoever reads the model */
} wf__tensor;

typedef WF__VEC(wf__tensor) wf__tensors;

/* Names point into the file. Metadata is skipped. Errors name the byte. */
wf_status wf__safetensors_read(const wf__input *file, wf__tensors *out, wf_error *err);
wf__tensor *wf__tensor_find(const wf__tensors *tensors, const char *name);
/* Number i of a tensor of dtype F32, F16 or BF16. */
float wf__tensor_at(const wf__tensor *tensor, uint64_t i);

#endif
