/* slice_kernels.h - products of rows of integers (math/slices.h) on a GPU. Plain C.
 *
 * All functions return a cudaError_t; `stream` is a cudaStream_t. */
#ifndef WF_CUDA_RNN_SLICE_KERNELS_H
#define WF_CUDA_RNN_SLICE_KERNELS_H

#include <stdint.h>

#include "lm/rnn_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bytes of the integers of some rows, [row][digit][stride]: digit 0 is the highest, which has
 * the sign. */
typedef struct wf__sliced {
  uint8_t *digits;
  float *scales;   /* [row] */
  uint32_t stride; /* a multiple of WF__SLICE_PAD */
} wf__sliced;
enum { WF__SLICE_DIGITS = 3, WF__SLICE_PAD = 128 };

static inline uint32_t wf__slice_stride(uint64_t columns) {
  return (uint32_t)((columns + WF__SLICE_PAD - 1) / WF__SLICE_PAD * WF__SLICE_PAD);
}
/* What the digits of so many rows take, then their scales. */
static inline uint64_t wf__sliced_digit_bytes(uint64_t rows, uint32_t stride) {
  return rows * WF__SLICE_DIGITS * stride;
}
static inline uint64_t wf__sliced_bytes(uint64_t rows, uint32_t stride) {
  return wf__sliced_digit_bytes(rows, stride) + (rows + 31) / 32 * 32 * sizeof(float);
}
/* In memory of that size, aligned to 16 bytes. */
static inline wf__sliced wf__sliced_in(void *memory, uint64_t rows, uint32_t stride) {
  const wf__sliced sliced = {
      (uint8_t *)memory, (float *)(void *)((char *)memory + wf__sliced_digit_bytes(rows, stride)),
      stride};
  return sliced;
}

/* Makes the integers of rows of `columns` floats, x_stride apart. */
int wf__slice_rows(const float *x, uint32_t columns, uint32_t x_stride, wf__row_count count,
                   wf__sliced to, void *stream);

/* Row number of[b * step] * times + plus for vector b; `of` NULL: row b. */
typedef struct wf__row_choice {
  const uint32_t *of;
  uint32_t step, times, plus;
} wf__row_choice;
static inline wf__row_choice wf__choose_rows(const uint32_t *of) {
  const wf__row_choice choice = {of, 1, 1, 0};
  return choice;
}

/* y[to b][i] = w[i] . x[from b] + bias[i], i < num_rows, b < count, and zeros from num_rows to
 * width - 1, which is less than 32 columns further. The strides of w and x must be equal, and at
 * most WF__SLICE_COLUMNS. */
typedef struct wf__slice_product {
  wf__sliced w, x;
  uint32_t num_rows, width; /* width 0: num_rows */
  wf__row_count count;
  wf__row_choice from, to;
  const float *bias; /* NULL: none is added */
  float *y;
  uint32_t y_stride;
} wf__slice_product;
int wf__gpu_slice_product(const wf__slice_product *product, void *stream);
/* The same by tiles of a shape, or by the next that the GPU can run; for measurements. 0: of GPUs
 * of compute capability 9.0; 1 to 3: from large to small. */
enum { WF__SLICE_SHAPES = 4 };
int wf__gpu_slice_product_by(uint32_t shape, const wf__slice_product *product, void *stream);

#ifdef __cplusplus
}
#endif
#endif
