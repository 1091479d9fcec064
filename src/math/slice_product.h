/* slice_product.h - exact products of rows of integers (slices.h) on the CPU.
 *
 * An integer is two digits of 12 bits, q = h 2^12 + l, of which instructions for pairs of 16-bit
 * numbers make sums of products. The result does not depend on the instructions: AVX-512 VNNI,
 * AVX2, or those that every processor has. */
#ifndef WF_MATH_SLICE_PRODUCT_H
#define WF_MATH_SLICE_PRODUCT_H

#include <stddef.h>
#include <stdint.h>

#include <stdbool.h>

#include "base/error.h"

/* A matrix of weights. */
typedef struct wf__slice_matrix {
  int16_t *digits; /* [block of 16 rows][pair of columns][h, l][16 rows][2] */
  float *scales;   /* [rows], up to a whole block */
  size_t rows, cols;
} wf__slice_matrix;

/* From rows of float32, `stride` apart. `what` names it in an error; one with more than
 * WF__SLICE_COLUMNS columns is unsupported. */
wf_status wf__slice_matrix_make(const float *data, size_t rows, size_t cols, size_t stride,
                                const char *what, wf__slice_matrix *out, wf_error *err);
void wf__slice_matrix_free(wf__slice_matrix *m);
uint64_t wf__slice_matrix_bytes(const wf__slice_matrix *m);

/* int32_t that a product with a matrix of so many columns takes as scratch memory. */
size_t wf__slice_scratch(size_t cols);
/* y[b y_stride + i] = row i . x[b], with x[b] at x + b x_stride, b < count. */
void wf__slice_multiply(const wf__slice_matrix *m, const float *x, size_t x_stride, size_t count,
                        float *y, size_t y_stride, int32_t *scratch);

/* Tests alone: the best instructions that may be used from now on, in all threads; false if the
 * processor lacks them. */
typedef enum wf__slice_level { WF__SLICE_ANY, WF__SLICE_AVX2, WF__SLICE_VNNI } wf__slice_level;
bool wf__slice_use(wf__slice_level level);

#endif
