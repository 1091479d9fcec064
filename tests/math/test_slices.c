/* test_slices.c - exact products of rows: the bits of a plain loop over 64-bit integers, with all
 * instructions of this processor and for any number of vectors; errors against float64 no larger
 * than those of float32 sums; rows that are zero, huge, tiny or not finite. And the functions of
 * activations. */
#include "lm/rnnlm_math.h"
#include "math/slice_product.h"
#include "math/slices.h"
#include "testing.h"

static wf_error err;

enum { MOST_VECTORS = 20 };

static float normal(test_rng *rng) {
  float sum = -6;
  for (int i = 0; i < 12; i++) sum += test_unit(rng);
  return sum;
}

static void fill_row(test_rng *rng, uint32_t kind, float *row, size_t size) {
  const size_t at = test_below(rng, (uint32_t)size);
  for (size_t k = 0; k < size; k++) {
    row[k] = kind == 0 ? 0 : normal(rng);
    if (kind == 1) row[k] *= 1e-42f;
    if (kind == 2) row[k] = test_below(rng, 2) == 0 ? 1.0f : -1.0f;
    if (kind == 3) row[k] = test_below(rng, 2) == 0 ? -0x1.fffffep9f : 0x1.fffffep9f;
    if (kind == 4) row[k] = -0.0f;
  }
  if (kind == 5) row[at] = 3e38f;
  if (kind == 6) row[at] = NAN;
  if (kind == 7) row[at] = test_below(rng, 2) == 0 ? INFINITY : -INFINITY;
  if (kind == 8) row[at] = 1e20f;
}

/* The nearest integers to the row times 2^22 / scale, in a way of its own. */
static double integers_of(const float *row, size_t size, int64_t *to) {
  double most = 0, scale = ldexp(1, -61);
  for (size_t k = 0; k < size; k++) {
    if (!isfinite(row[k])) scale = NAN;
    most = fmax(most, fabs((double)row[k]));
  }
  if (isnan(scale)) return scale;
  while (2 * scale <= most) scale *= 2;
  for (size_t k = 0; k < size; k++) {
    const double q = nearbyint((double)row[k] / scale * 4194304);
    to[k] = q > 8388607 ? 8388607 : (int64_t)q;
  }
  return scale;
}

static float product_of(const int64_t *q, double x_scale, const int64_t *r, double w_scale,
                        size_t size) {
  int64_t sum = 0;
  if (isnan(x_scale) || isnan(w_scale)) return NAN;
  for (size_t k = 0; k < size; k++) sum += q[k] * r[k];
  return (float)ldexp((double)(float)sum * x_scale * w_scale, -44);
}

static void check_product(test_rng *rng, size_t rows, size_t cols, size_t count, bool edges) {
  const size_t stride = wf__padded(cols), y_stride = rows + 3;
  float *w = calloc(rows * stride, sizeof *w), *x = calloc(count * stride, sizeof *x),
        *y = malloc(count * y_stride * sizeof *y);
  int64_t *q = malloc(cols * sizeof *q), *r = malloc(cols * sizeof *r);
  int32_t *scratch = malloc(wf__slice_scratch(cols) * sizeof *scratch);
  assert_true(w != NULL && x != NULL && y != NULL && q != NULL && r != NULL && scratch != NULL);
  for (size_t i = 0; i < rows; i++)
    fill_row(rng, edges ? test_below(rng, 14) : 9, w + i * stride, cols);
  for (size_t b = 0; b < count; b++)
    fill_row(rng, edges ? test_below(rng, 14) : 9, x + b * stride, cols);
  wf__slice_matrix m;
  assert_ok(wf__slice_matrix_make(w, rows, cols, stride, "a matrix", &m, &err));
  for (int level = WF__SLICE_ANY; level <= WF__SLICE_VNNI; level++) {
    if (!wf__slice_use((wf__slice_level)level)) continue;
    for (size_t i = 0; i < count * y_stride; i++) y[i] = 77;
    wf__slice_multiply(&m, x, stride, count, y, y_stride, scratch);
    for (size_t b = 0; b < count; b++) {
      const double x_scale = integers_of(x + b * stride, cols, q);
      for (size_t i = 0; i < y_stride; i++) {
        const float want = i < rows ? product_of(q, x_scale, r,
                                                 integers_of(w + i * stride, cols, r), cols)
                                    : 77,
                    got = y[b * y_stride + i];
        if (got != want && !(isnan(got) && isnan(want)))
          fail_msg("level %d, %zu x %zu x %zu: [%zu][%zu] is %.9g, not %.9g", level, count, rows,
                   cols, b, i, (double)got, (double)want);
      }
    }
  }
  wf__slice_use(WF__SLICE_VNNI);
  wf__slice_matrix_free(&m);
  free(w);
  free(x);
  free(y);
  free(q);
  free(r);
  free(scratch);
}

static void test_products(void **unused) {
  (void)unused;
  for (uint64_t seed = 1; seed <= test_seeds(200); seed++) {
    test_rng rng = {seed};
    check_product(&rng, 1 + test_below(&rng, 50), 1 + test_below(&rng, 600),
                  1 + test_below(&rng, MOST_VECTORS), seed % 2 == 0);
  }
}

/* So many columns that 32 bits are not enough for any sum. */
static void test_longest_rows(void **unused) {
  (void)unused;
  test_rng rng = {3};
  float *row = calloc(WF__SLICE_COLUMNS + 8, sizeof *row);
  wf__slice_matrix m;
  assert_true(row != NULL);
  check_product(&rng, 5, WF__SLICE_COLUMNS, 6, false);
  for (int i = 0; i < 8; i++) check_product(&rng, 16, WF__SLICE_COLUMNS, 2, true);
  assert_int_equal(wf__slice_matrix_make(row, 1, WF__SLICE_COLUMNS + 1, WF__SLICE_COLUMNS + 8,
                                         "a matrix", &m, &err),
                   WF_ERR_UNSUPPORTED);
  assert_string_equal(err.message, "a matrix has 16385 columns; at most 16384 are supported");
  free(row);
}

/* Root mean square errors of the products of hidden vectors and weights against float64: exact
 * products, and multiply-adds of float32 in order. */
static void test_accuracy(void **unused) {
  static const size_t sizes[][2] = {{500, 512}, {1025, 640}, {640, 1024}, {512, 1280}};
  enum { VECTORS = 16 };
  (void)unused;
  for (size_t s = 0; s < 4; s++) {
    const size_t rows = sizes[s][0], cols = sizes[s][1];
    test_rng rng = {s + 5};
    float *w = malloc(rows * cols * sizeof *w), *x = malloc(VECTORS * cols * sizeof *x),
          *y = malloc(VECTORS * rows * sizeof *y);
    int32_t *scratch = malloc(wf__slice_scratch(cols) * sizeof *scratch);
    double errors[2] = {0, 0};
    wf__slice_matrix m;
    assert_true(w != NULL && x != NULL && y != NULL && scratch != NULL);
    for (size_t i = 0; i < rows * cols; i++) w[i] = normal(&rng) / sqrtf((float)cols);
    for (size_t i = 0; i < VECTORS * cols; i++) x[i] = tanhf(normal(&rng));
    assert_ok(wf__slice_matrix_make(w, rows, cols, cols, "a matrix", &m, &err));
    wf__slice_multiply(&m, x, cols, VECTORS, y, rows, scratch);
    for (size_t b = 0; b < VECTORS; b++)
      for (size_t i = 0; i < rows; i++) {
        double sum = 0;
        float plain = 0;
        for (size_t k = 0; k < cols; k++) {
          sum += (double)w[i * cols + k] * (double)x[b * cols + k];
          plain = fmaf(w[i * cols + k], x[b * cols + k], plain);
        }
        errors[0] += pow((double)y[b * rows + i] - sum, 2);
        errors[1] += pow((double)plain - sum, 2);
      }
    for (int i = 0; i < 2; i++) errors[i] = sqrt(errors[i] / (double)(VECTORS * rows));
    print_message("%zu rows of %zu: %.2e exact, %.2e float32\n", rows, cols, errors[0], errors[1]);
    assert_true(errors[0] < errors[1]);
    wf__slice_matrix_free(&m);
    free(w);
    free(x);
    free(y);
    free(scratch);
  }
}

/* The functions that GPUs share have the bits of those of vectors, and the logarithm is within a
 * unit of the last place. */
static void test_functions(void **unused) {
  (void)unused;
  test_rng rng = {9};
  for (int round = 0; round < 200000; round++) {
    float x[8], e[8], s[8], t[8];
    for (int i = 0; i < 8; i++) {
      const uint32_t bits = (uint32_t)test_next(&rng);
      memcpy(&x[i], &bits, sizeof bits);
      if (round % 2 == 0) x[i] = 20 * normal(&rng);
      e[i] = s[i] = t[i] = x[i];
    }
    wf__vec_exp(e, 8);
    wf__vec_sigmoid(s, 8);
    wf__vec_tanh(t, 8);
    for (int i = 0; i < 8; i++) {
      const float got[] = {wf__exp(x[i]), wf__sigmoid(x[i]), wf__tanh(x[i])},
                  want[] = {e[i], s[i], t[i]};
      for (int f = 0; f < 3; f++)
        if (memcmp(&got[f], &want[f], sizeof *got) != 0 && !(isnan(got[f]) && isnan(want[f])))
          fail_msg("function %d of %.9g: %.9g, not %.9g", f, (double)x[i], (double)got[f],
                   (double)want[f]);
      if (!(fabsf(x[i]) >= 1e-30f && fabsf(x[i]) <= 3e38f)) continue;
      const double ln = log(fabs((double)x[i])), error = fabs((double)wf__ln(fabsf(x[i])) - ln);
      if (error > fabs(ln) * 0x1p-23) fail_msg("ln %.9g: error %.3g", (double)fabsf(x[i]), error);
    }
  }
  assert_true(wf__ln(1) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_products),
      cmocka_unit_test(test_longest_rows),
      cmocka_unit_test(test_accuracy),
      cmocka_unit_test(test_functions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
