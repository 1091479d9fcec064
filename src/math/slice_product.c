/* slice_product.c - exact products on the CPU (slice_product.h).
 *
 * A tile is some rows of a block by up to four vectors: a lane has the sums of a row. At most 256
 * columns are added in 32 bits, then the sums go to 64 bits. */
#include "math/slice_product.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/platform.h"
#include "math/slices.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Rows of a block; vectors of a tile; vectors whose digits are made at a time; pairs of columns. */
enum { BLOCK = 16, TOGETHER = 4, GROUP = 16, PAIRS_AT_ONCE = 128, PAIR_PAD = 8 };

#define INLINE static inline __attribute__((always_inline))

/* Pairs of columns, with zeros up to a whole number of steps. */
static size_t pairs_of(size_t cols) {
  return ((cols + 1) / 2 + PAIR_PAD - 1) / PAIR_PAD * PAIR_PAD;
}

INLINE uint32_t pair_of(int32_t even, int32_t odd) {
  return ((uint32_t)even & 0xffff) | (uint32_t)odd << 16;
}
INLINE int32_t low_digit(int32_t q) { return ((q + 2048) & 4095) - 2048; }
INLINE int32_t high_digit(int32_t q) { return (q - low_digit(q)) >> 12; }

INLINE float scale_of(const float *x, size_t cols) {
  uint32_t most = 0;
  for (size_t k = 0; k < cols; k++) {
    const uint32_t bits = wf__slice_bits(x[k]) & INT32_MAX;
    most = bits > most ? bits : most;
  }
  return wf__slice_scale(most);
}

/* The digits of a vector, [pair][h, l]. Returns its scale. */
INLINE float slice_vector(const float *x, size_t cols, int32_t *to) {
  const float scale = scale_of(x, cols), factor = wf__slice_factor(scale);
  for (size_t p = 0; p < cols / 2; p++) {
    const int32_t even = wf__slice_integer(x[2 * p], factor),
                  odd = wf__slice_integer(x[2 * p + 1], factor);
    to[2 * p] = (int32_t)pair_of(high_digit(even), high_digit(odd));
    to[2 * p + 1] = (int32_t)pair_of(low_digit(even), low_digit(odd));
  }
  for (size_t p = cols / 2; p < pairs_of(cols); p++) {
    const int32_t last = 2 * p < cols ? wf__slice_integer(x[2 * p], factor) : 0;
    to[2 * p] = (int32_t)pair_of(high_digit(last), 0);
    to[2 * p + 1] = (int32_t)pair_of(low_digit(last), 0);
  }
  return scale;
}

/* --- tiles ------------------------------------------------------------------------------- */

/* Sums of a tile: totals[v][row] += row . vector v, for LANES rows of a block at a time. With
 * several `chains` of the same sum an addition need not wait for the one before.
 * multiply_add(sum, w, x) adds the products of the pair x and of pairs w, in each lane. */
#define DEFINE_TILES(name, attributes, vector, wide, LANES, multiply_add, spread)               \
  attributes INLINE void name##_part(const int32_t *w, const int32_t *x, size_t x_stride,       \
                                     size_t num_pairs, int num_vectors, int chains,             \
                                     int64_t(*totals)[BLOCK]) {                                 \
    for (size_t first = 0; first < num_pairs; first += PAIRS_AT_ONCE) {                         \
      const size_t end = num_pairs - first < PAIRS_AT_ONCE ? num_pairs : first + PAIRS_AT_ONCE; \
      vector sum[TOGETHER][4] = {0};                                                            \
      for (size_t p = first; p < end; p += (size_t)chains)                                      \
        for (int c = 0; c < chains; c++) {                                                      \
          const int32_t *row = w + (p + (size_t)c) * 2 * BLOCK;                                 \
          const vector high = *(const vector *)row, low = *(const vector *)(row + BLOCK);       \
          for (int v = 0; v < num_vectors; v++) {                                               \
            const int32_t *pair = x + (size_t)v * x_stride + 2 * (p + (size_t)c);               \
            const vector x_high = spread(pair[0]), x_low = spread(pair[1]);                     \
            vector *own = sum[v + c];                                                           \
            own[0] = multiply_add(own[0], high, x_high);                                        \
            own[1] = multiply_add(own[1], high, x_low);                                         \
            own[2] = multiply_add(own[2], low, x_high);                                         \
            own[3] = multiply_add(own[3], low, x_low);                                          \
          }                                                                                     \
        }                                                                                       \
      for (int v = 0; v < num_vectors; v++)                                                     \
        for (int c = 0; c < chains; c++)                                                        \
          *(wide *)totals[v] += (__builtin_convertvector(sum[v + c][0], wide) << 24) +          \
                                ((__builtin_convertvector(sum[v + c][1], wide) +                \
                                  __builtin_convertvector(sum[v + c][2], wide))                 \
                                 << 12) +                                                       \
                                __builtin_convertvector(sum[v + c][3], wide);                   \
    }                                                                                           \
  }                                                                                             \
  /* Up to TOGETHER vectors by a block of rows. */                                              \
  attributes INLINE void name##_tile(const int32_t *w, const int32_t *x, size_t stride,         \
                                     size_t count, int64_t(*totals)[BLOCK]) {                   \
    const size_t num_pairs = stride / 2;                                                        \
    for (int lane = 0; lane < BLOCK; lane += LANES) {                                           \
      int64_t(*own)[BLOCK] = (int64_t(*)[BLOCK])(void *)(totals[0] + lane);                     \
      if (count == 1)                                                                           \
        name##_part(w + lane, x, stride, num_pairs, 1, 2, own);                                 \
      else if (count == 2 || LANES < BLOCK)                                                     \
        name##_part(w + lane, x, stride, num_pairs, 2, 1, own);                                 \
      else if (count == 3)                                                                      \
        name##_part(w + lane, x, stride, num_pairs, 3, 1, own);                                 \
      else                                                                                      \
        name##_part(w + lane, x, stride, num_pairs, 4, 1, own);                                 \
      if (LANES < BLOCK && count == 3)                                                          \
        name##_part(w + lane, x + 2 * stride, stride, num_pairs, 1, 2, own + 2);                \
      else if (LANES < BLOCK && count == 4)                                                     \
        name##_part(w + lane, x + 2 * stride, stride, num_pairs, 2, 1, own + 2);                \
    }                                                                                           \
  }                                                                                             \
  attributes static void name(const wf__slice_matrix *m, const float *x, size_t x_stride,       \
                              size_t count, float *y, size_t y_stride, int32_t *digits) {       \
    const size_t stride = 2 * pairs_of(m->cols);                                                \
    float scales[GROUP];                                                                        \
    for (size_t v = 0; v < count; v++)                                                          \
      scales[v] = slice_vector(x + v * x_stride, m->cols, digits + v * stride);                 \
    for (size_t first = 0; first < m->rows; first += BLOCK) {                                   \
      const int32_t *w = (const int32_t *)(const void *)m->digits + first * stride;             \
      const size_t rows = m->rows - first < BLOCK ? m->rows - first : BLOCK;                    \
      for (size_t b = 0; b < count; b += TOGETHER) {                                            \
        const size_t some = count - b < TOGETHER ? count - b : TOGETHER;                        \
        int64_t totals[TOGETHER][BLOCK] __attribute__((aligned(64))) = {{0}};                   \
        name##_tile(w, digits + b * stride, stride, some, totals);                              \
        for (size_t v = 0; v < some; v++)                                                       \
          for (size_t i = 0; i < rows; i++)                                                     \
            y[(b + v) * y_stride + first + i] =                                                 \
                wf__slice_value(totals[v][i], scales[b + v], m->scales[first + i]);             \
      }                                                                                         \
    }                                                                                           \
  }

typedef int32_t v4 __attribute__((vector_size(16), may_alias));
typedef int64_t w4 __attribute__((vector_size(32), may_alias, aligned(16)));

#if defined(__x86_64__)
INLINE v4 multiply_add_4(v4 sum, v4 w, v4 x) {
  return sum + (v4)_mm_madd_epi16((__m128i)w, (__m128i)x);
}
INLINE v4 spread_4(int32_t x) { return (v4)_mm_set1_epi32(x); }
#else
/* The odd numbers of pairs, and the even ones with their signs. */
INLINE v4 multiply_add_4(v4 sum, v4 w, v4 x) {
  return sum + (w >> 16) * (x >> 16) + (w << 16 >> 16) * (x << 16 >> 16);
}
INLINE v4 spread_4(int32_t x) { return (v4){x, x, x, x}; }
#endif
DEFINE_TILES(multiply_any, , v4, w4, 4, multiply_add_4, spread_4)

#if defined(__x86_64__)
typedef int32_t v8 __attribute__((vector_size(32), may_alias));
typedef int64_t w8 __attribute__((vector_size(64), may_alias, aligned(32)));
typedef int32_t v16 __attribute__((vector_size(64), may_alias));
typedef int64_t w16 __attribute__((vector_size(128), may_alias, aligned(64)));
#define AVX2 __attribute__((target("avx2")))
#define VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

#define MULTIPLY_ADD_8(sum, w, x) ((sum) + (v8)_mm256_madd_epi16((__m256i)(w), (__m256i)(x)))
#define SPREAD_8(x) ((v8)_mm256_set1_epi32(x))
#define MULTIPLY_ADD_16(sum, w, x) \
  ((v16)_mm512_dpwssd_epi32((__m512i)(sum), (__m512i)(w), (__m512i)(x)))
#define SPREAD_16(x) ((v16)_mm512_set1_epi32(x))
DEFINE_TILES(multiply_avx2, AVX2, v8, w8, 8, MULTIPLY_ADD_8, SPREAD_8)
DEFINE_TILES(multiply_vnni, VNNI, v16, w16, 16, MULTIPLY_ADD_16, SPREAD_16)
#endif

/* --- choosing ---------------------------------------------------------------------------- */

static int most_level = WF__SLICE_VNNI; /* a test changes it */

static wf__slice_level best_level(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512vnni"))
    return WF__SLICE_VNNI;
  if (__builtin_cpu_supports("avx2")) return WF__SLICE_AVX2;
#endif
  return WF__SLICE_ANY;
}

bool wf__slice_use(wf__slice_level level) {
  if (level > best_level()) return false;
  most_level = (int)level;
  return true;
}

size_t wf__slice_scratch(size_t cols) { return GROUP * 2 * pairs_of(cols); }

void wf__slice_multiply(const wf__slice_matrix *m, const float *x, size_t x_stride, size_t count,
                        float *y, size_t y_stride, int32_t *scratch) {
  int level = (int)best_level();
  if (level > most_level) level = most_level;
  for (size_t b = 0; b < count; b += GROUP) {
    const size_t some = count - b < GROUP ? count - b : GROUP;
    const float *from = x + b * x_stride;
    float *to = y + b * y_stride;
#if defined(__x86_64__)
    if (level == WF__SLICE_VNNI)
      multiply_vnni(m, from, x_stride, some, to, y_stride, scratch);
    else if (level == WF__SLICE_AVX2)
      multiply_avx2(m, from, x_stride, some, to, y_stride, scratch);
    else
#endif
      multiply_any(m, from, x_stride, some, to, y_stride, scratch);
  }
}

/* --- matrices ---------------------------------------------------------------------------- */

static void slice_row(const float *x, size_t cols, size_t row, wf__slice_matrix *m,
                      int32_t *scratch) {
  const size_t num_pairs = pairs_of(cols);
  int32_t *to = (int32_t *)(void *)m->digits + row / BLOCK * BLOCK * 2 * num_pairs + row % BLOCK;
  m->scales[row] = slice_vector(x, cols, scratch);
  for (size_t k = 0; k < 2 * num_pairs; k++) to[k * BLOCK] = scratch[k];
}

wf_status wf__slice_matrix_make(const float *data, size_t rows, size_t cols, size_t stride,
                                const char *what, wf__slice_matrix *out, wf_error *err) {
  const size_t blocks = (rows + BLOCK - 1) / BLOCK;
  *out = (wf__slice_matrix){.rows = rows, .cols = cols};
  if (cols > WF__SLICE_COLUMNS)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "%s has %zu columns; at most %d are supported", what,
                    cols, WF__SLICE_COLUMNS);
  const uint64_t bytes = (uint64_t)blocks * BLOCK * 4 * pairs_of(cols) * sizeof *out->digits;
  int32_t *scratch = wf__alloc(wf__slice_scratch(cols), sizeof *scratch);
  out->digits = wf__aligned_alloc(64, bytes > 0 ? bytes : 64);
  out->scales = wf__calloc(blocks * BLOCK, sizeof *out->scales);
  if (scratch == NULL || out->digits == NULL || out->scales == NULL) {
    free(scratch);
    wf__slice_matrix_free(out);
    return wf__fail_memory(err, bytes, what);
  }
  memset(out->digits, 0, bytes);
  for (size_t i = 0; i < rows; i++) slice_row(data + i * stride, cols, i, out, scratch);
  free(scratch);
  return WF_OK;
}

void wf__slice_matrix_free(wf__slice_matrix *m) {
  wf__aligned_free(m->digits);
  free(m->scales);
  *m = (wf__slice_matrix){0};
}

uint64_t wf__slice_matrix_bytes(const wf__slice_matrix *m) {
  const size_t blocks = (m->rows + BLOCK - 1) / BLOCK;
  return m->digits == NULL ? 0
                           : (uint64_t)blocks * BLOCK *
                                 (4 * pairs_of(m->cols) * sizeof *m->digits + sizeof *m->scales);
}
