/* test_gpu_slices.c - exact products on a GPU: the same bits as a plain loop over 64-bit integers,
 * for every shape of tiles and any size, and rows that are zero, huge, tiny or not
 * finite. Exits with 77 if there is no GPU. Also built for the imitated GPU of tests/simt. */
#include <cuda_runtime_api.h>

#include "cuda/rnn/slice_kernels.h"
#include "decode_tasks.h"
#include "math/slices.h"

static float normal(test_rng *rng) {
  float sum = -6;
  for (int i = 0; i < 12; i++) sum += test_unit(rng);
  return sum;
}

/* A row of one of several kinds. */
static void fill_row(test_rng *rng, float *row, uint32_t size) {
  const uint32_t kind = test_below(rng, 12);
  for (uint32_t k = 0; k < size; k++) row[k] = kind == 0 ? 0 : normal(rng);
  const uint32_t at = test_below(rng, size);
  for (uint32_t k = 0; k < size && kind == 1; k++) row[k] *= 1e-42f;
  for (uint32_t k = 0; k < size && kind == 2; k++) row[k] = test_below(rng, 2) == 0 ? 1.0f : -1.0f;
  for (uint32_t k = 0; k < size && kind == 3; k++)
    row[k] = test_below(rng, 2) == 0 ? -0x1.fffffep9f : 0x1.fffffep9f;
  if (kind == 4) row[at] = 3e38f;
  if (kind == 5) row[at] = NAN;
  if (kind == 6) row[at] = test_below(rng, 2) == 0 ? INFINITY : -INFINITY;
  if (kind == 7) row[at] = 1e20f;
}

/* Integers of a row, and its scale. */
static float integers_of(const float *row, uint32_t size, int32_t *to) {
  uint32_t most = 0;
  for (uint32_t k = 0; k < size; k++) {
    const uint32_t bits = wf__slice_bits(row[k]) & INT32_MAX;
    most = bits > most ? bits : most;
  }
  const float scale = wf__slice_scale(most);
  for (uint32_t k = 0; k < size; k++) to[k] = wf__slice_integer(row[k], wf__slice_factor(scale));
  return scale;
}

struct sizes {
  uint32_t vectors, rows, columns;
};

static void *gpu_memory(uint64_t bytes) {
  void *at;
  assert_int_equal(cudaMalloc(&at, bytes), cudaSuccess);
  assert_int_equal(cudaMemsetAsync(at, 0x77, bytes, NULL), cudaSuccess);
  return at;
}

static void check_shape(const struct sizes *s, uint32_t shape, wf__sliced x, wf__sliced w,
                        wf__row_count count, const float *want) {
  const uint64_t bytes = (uint64_t)(s->vectors + 1) * s->rows * sizeof(float);
  float *y = gpu_memory(bytes), *got = malloc(bytes);
  const uint32_t untouched = 0x77777777;
  assert_true(got != NULL);
  const wf__slice_product product = {
      .w = w, .num_rows = s->rows, .x = x, .count = count, .y = y, .y_stride = s->rows};
  assert_int_equal(shape == WF__SLICE_SHAPES ? wf__gpu_slice_product(&product, NULL)
                                             : wf__gpu_slice_product_by(shape, &product, NULL),
                   cudaSuccess);
  assert_int_equal(cudaMemcpy(got, y, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
  for (uint64_t i = 0; i < (uint64_t)s->vectors * s->rows; i++)
    if (memcmp(&got[i], &want[i], sizeof *got) != 0 && !(isnan(got[i]) && isnan(want[i])))
      fail_msg("shape %u, %u x %u x %u: vector %llu, row %llu: %.9g, expected %.9g", shape,
               s->vectors, s->rows, s->columns, (unsigned long long)(i / s->rows),
               (unsigned long long)(i % s->rows), (double)got[i], (double)want[i]);
  for (uint32_t i = 0; i < s->rows; i++)
    assert_memory_equal(&got[(uint64_t)s->vectors * s->rows + i], &untouched, sizeof untouched);
  assert_int_equal(cudaFree(y), cudaSuccess);
  free(got);
}

static float *to_gpu(const void *from, uint64_t bytes) {
  void *to = gpu_memory(bytes);
  assert_int_equal(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), cudaSuccess);
  return to;
}

/* Vector b is row 2 of[b] + 1 modulo the number of rows, so rows may come twice; products have a
 * bias, go to chosen rows from the last on, and have zeros after them. */
static void check_chosen(const struct sizes *s, uint32_t shape, wf__sliced x, wf__sliced w,
                         const float *want) {
  const uint32_t count = s->vectors / 2 + 1, width = (s->rows + 7) / 8 * 8;
  uint32_t *rows = malloc(2 * (uint64_t)count * sizeof *rows); /* from, to */
  float *bias = malloc(s->rows * sizeof *bias),
        *got = malloc((uint64_t)count * width * sizeof *got);
  assert_true(rows != NULL && bias != NULL && got != NULL);
  for (uint32_t b = 0; b < count; b++) {
    rows[2 * b] = s->vectors < 2 ? 0 : b * 3 % (s->vectors / 2);
    rows[2 * b + 1] = count - 1 - b;
  }
  for (uint32_t i = 0; i < s->rows; i++) bias[i] = 0.25f * (float)i - 3;
  const uint32_t *there = (const void *)to_gpu(rows, 2 * (uint64_t)count * sizeof *rows);
  const uint32_t times = s->vectors < 2 ? 1 : 2, plus = s->vectors < 2 ? 0 : 1;
  float *y = gpu_memory((uint64_t)count * width * sizeof *y);
  const wf__slice_product product = {.w = w,
                                     .num_rows = s->rows,
                                     .width = width,
                                     .x = x,
                                     .count = wf__rows(count),
                                     .from = {there, 2, times, plus},
                                     .to = {there + 1, 2, 1, 0},
                                     .bias = to_gpu(bias, s->rows * sizeof *bias),
                                     .y = y,
                                     .y_stride = width};
  assert_int_equal(wf__gpu_slice_product_by(shape, &product, NULL), cudaSuccess);
  assert_int_equal(
      cudaMemcpy(got, y, (uint64_t)count * width * sizeof *got, cudaMemcpyDeviceToHost),
      cudaSuccess);
  for (uint32_t b = 0; b < count; b++)
    for (uint32_t i = 0; i < width; i++) {
      const float here = got[(uint64_t)rows[2 * b + 1] * width + i],
                  there_is =
                      i < s->rows
                          ? want[(uint64_t)(rows[2 * b] * times + plus) * s->rows + i] + bias[i]
                          : 0;
      if (memcmp(&here, &there_is, sizeof here) != 0 && !(isnan(here) && isnan(there_is)))
        fail_msg("shape %u, vector %u, row %u: %.9g, expected %.9g", shape, b, i, (double)here,
                 (double)there_is);
    }
  assert_int_equal(cudaFree((void *)(uintptr_t)product.bias), cudaSuccess);
  assert_int_equal(cudaFree((void *)(uintptr_t)there), cudaSuccess);
  assert_int_equal(cudaFree(y), cudaSuccess);
  free(rows), free(bias), free(got);
}

/* `x_there`, `w_there`: the floats in GPU memory, of `padded` columns. */
static void check_slices(const struct sizes *s, const float *x_there, const float *w_there,
                         uint32_t padded, const float *want) {
  const uint32_t stride = wf__slice_stride(s->columns), num = s->vectors + 5;
  uint32_t *num_there = gpu_memory(sizeof num);
  assert_int_equal(cudaMemcpy(num_there, &num, sizeof num, cudaMemcpyHostToDevice), cudaSuccess);
  const wf__sliced x = wf__sliced_in(gpu_memory(wf__sliced_bytes(s->vectors, stride)), s->vectors,
                                     stride),
                   w = wf__sliced_in(gpu_memory(wf__sliced_bytes(s->rows, stride)), s->rows,
                                     stride);
  const wf__row_count in_memory = {s->vectors + 40, 5, num_there};
  assert_int_equal(wf__slice_rows(x_there, s->columns, padded, in_memory, x, NULL), cudaSuccess);
  assert_int_equal(wf__slice_rows(w_there, s->columns, padded, wf__rows(s->rows), w, NULL),
                   cudaSuccess);
  for (uint32_t shape = 0; shape <= WF__SLICE_SHAPES; shape++)
    check_shape(s, shape, x, w, shape % 2 == 0 ? in_memory : wf__rows(s->vectors), want);
  for (uint32_t shape = 0; shape < WF__SLICE_SHAPES; shape++) check_chosen(s, shape, x, w, want);
  assert_int_equal(cudaFree(num_there), cudaSuccess);
  assert_int_equal(cudaFree(x.digits), cudaSuccess);
  assert_int_equal(cudaFree(w.digits), cudaSuccess);
}

/* `padding`: more columns of a row in memory. */
static void check_product(test_rng *rng, const struct sizes *s, uint32_t padding) {
  const uint32_t padded = s->columns + padding;
  const uint64_t num_x = (uint64_t)s->vectors * padded, num_w = (uint64_t)s->rows * padded;
  float *x = malloc(num_x * sizeof *x), *w = malloc(num_w * sizeof *w),
        *want = malloc((uint64_t)s->vectors * s->rows * sizeof *want);
  int32_t *q = malloc(s->columns * sizeof *q), *r = malloc(s->columns * sizeof *r);
  assert_true(x != NULL && w != NULL && want != NULL && q != NULL && r != NULL);
  for (uint32_t b = 0; b < s->vectors; b++) fill_row(rng, x + (uint64_t)b * padded, padded);
  for (uint32_t i = 0; i < s->rows; i++) fill_row(rng, w + (uint64_t)i * padded, padded);
  for (uint32_t b = 0; b < s->vectors; b++) {
    const float x_scale = integers_of(x + (uint64_t)b * padded, s->columns, q);
    for (uint32_t i = 0; i < s->rows; i++) {
      const float w_scale = integers_of(w + (uint64_t)i * padded, s->columns, r);
      int64_t sum = 0;
      for (uint32_t k = 0; k < s->columns; k++) sum += (int64_t)q[k] * r[k];
      want[(uint64_t)b * s->rows + i] = wf__slice_value(sum, x_scale, w_scale);
    }
  }
  float *x_there = to_gpu(x, num_x * sizeof *x), *w_there = to_gpu(w, num_w * sizeof *w);
  check_slices(s, x_there, w_there, padded, want);
  assert_int_equal(cudaFree(x_there), cudaSuccess);
  assert_int_equal(cudaFree(w_there), cudaSuccess);
  free(x), free(w), free(want), free(q), free(r);
}

static void test_small_slices(void **unused) {
  (void)unused;
  for (uint64_t seed = 1; seed <= test_seeds(4); seed++) {
    test_rng rng = {seed};
    const struct sizes sizes = {1 + test_below(&rng, 70), 1 + test_below(&rng, 140),
                                1 + test_below(&rng, 300)};
    check_product(&rng, &sizes, test_below(&rng, 5));
  }
}

/* The most columns, of the largest integers. */
static void test_small_longest_rows(void **unused) {
  (void)unused;
  test_rng rng = {7};
  const struct sizes sizes = {2, 3, WF__SLICE_COLUMNS};
  check_product(&rng, &sizes, 0);
}

int main(int argc, char **argv) {
  if (test_no_gpu()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_slices),
      cmocka_unit_test(test_small_longest_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
