/* safetensors.h - the tensors of a safetensors file:
 *
 *   u64 size of the header
 *   header, JSON: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 *   data
 *
 * Every tensor is checked against the length of the file. Data is not copied. */
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
  const uint8_t *data; /* unaligned */
  bool used;           /* for the caller, who marks the tensors that it has used */
} wf__tensor;

typedef WF__VEC(wf__tensor) wf__tensors;

/* Names point into the file, with escapes unresolved. Error messages have the byte offset. */
wf_status wf__safetensors_read(const wf__input *file, wf__tensors *out, wf_error *err);
/* The value of one key of the metadata, with escapes unresolved; data NULL: there is none. */
wf_status wf__safetensors_metadata(const wf__input *file, const char *name, wf__span *out,
                                   wf_error *err);
wf__tensor *wf__tensor_find(const wf__tensors *tensors, const char *name);
/* Element i of a tensor of dtype F32, F16 or BF16. */
float wf__tensor_at(const wf__tensor *tensor, uint64_t i);
/* Checks the type (F32, F16 or BF16) and the shape: [rows] if cols is 0, else [rows, cols]. */
wf_status wf__tensor_check(const wf__input *file, const wf__tensor *tensor, uint64_t rows,
                           uint64_t cols, wf_error *err);
/* Copies elements [first, first + count), which must be finite. */
wf_status wf__tensor_copy(const wf__input *file, const wf__tensor *tensor, uint64_t first,
                          uint64_t count, float *out, wf_error *err);

#endif
