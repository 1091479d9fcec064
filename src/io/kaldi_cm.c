/* kaldi_cm.c - compresses a score matrix to 8 bits per value. Each column is quantised with a
 * piecewise linear curve through its minimum, first and third quartile, and maximum. */
#include "io/kaldi_cm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static int compare_floats(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static uint16_t quantize(float value, float min, float range) {
  float scaled = (value - min) / range * 65535.0f + 0.5f;
  return scaled <= 0 ? 0 : scaled >= 65535.0f ? 65535 : (uint16_t)scaled;
}

static uint16_t clamp_u16(int value, int low, int high) {
  return (uint16_t)(value < low ? low : value > high ? high : value);
}

/* Minimum, quartiles and maximum of the sorted column, made strictly ascending so that no piece of
 * the curve is flat. */
static void percentiles(const float *sorted, size_t size, float min, float range, uint16_t p[4]) {
  p[0] = clamp_u16(quantize(sorted[0], min, range), 0, 65532);
  p[1] = clamp_u16(quantize(sorted[size / 4], min, range), p[0] + 1, 65533);
  p[2] = clamp_u16(quantize(sorted[size * 3 / 4], min, range), p[1] + 1, 65534);
  p[3] = clamp_u16(quantize(sorted[size - 1], min, range), p[2] + 1, 65535);
}

static uint8_t encode(float value, const float p[4]) {
  static const float first[4] = {0, 64, 192, 255};
  int piece = (value >= p[1]) + (value >= p[2]);
  float at = first[piece] +
             (value - p[piece]) / (p[piece + 1] - p[piece]) * (first[piece + 1] - first[piece]) +
             0.5f;
  return at <= 0 ? 0 : at >= 255 ? 255 : (uint8_t)at;
}

static wf_status find_range(const wf_matrix *matrix, float *min, float *range, wf_error *err) {
  float low = INFINITY, high = -INFINITY;
  for (int64_t i = 0; i < matrix->num_frames * matrix->num_columns; i++) {
    float value = matrix->data[i];
    if (!isfinite(value))
      return wf__fail(
          err, WF_ERR_ARGUMENT,
          "%s: frame %lld, column %lld is not finite, which the compressed form cannot hold",
          matrix->key != NULL ? matrix->key : "scores", (long long)(i / matrix->num_columns),
          (long long)(i % matrix->num_columns));
    low = value < low ? value : low;
    high = value > high ? value : high;
  }
  *min = low < high || low == high ? low : 0;
  *range = high - low;
  if (*range > 0 && !isfinite(*range))
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the range of the scores overflows float32 in the compressed form");
  if (!(*range > 0)) *range = 1 + fabsf(*min); /* all scores are equal */
  return WF_OK;
}

wf_status wf__kaldi_compress(const wf_matrix *matrix, uint8_t **out, size_t *out_bytes,
                             wf_error *err) {
  size_t rows = (size_t)matrix->num_frames, columns = (size_t)matrix->num_columns;
  float min, range;
  WF__TRY(find_range(matrix, &min, &range, err));
  if (rows == 0) columns = 0;
  size_t size = 5 + 16 + columns * 8 + rows * columns;
  uint8_t *bytes = wf__alloc(size, 1);
  float *column = wf__alloc(2 * rows, sizeof(float));
  if (bytes == NULL || column == NULL) {
    free(bytes);
    free(column);
    return wf__fail_memory(err, size, "a compressed matrix");
  }
  int32_t shape[2] = {(int32_t)rows, (int32_t)columns};
  memcpy(bytes, "\0BCM ", 5);
  memcpy(bytes + 5, &min, 4);
  memcpy(bytes + 9, &range, 4);
  memcpy(bytes + 13, shape, 8);
  uint8_t *data = bytes + 21 + columns * 8;
  for (size_t c = 0; c < columns; c++) {
    float *sorted = column + rows, line[4];
    uint16_t p[4];
    for (size_t r = 0; r < rows; r++) sorted[r] = column[r] = matrix->data[r * columns + c];
    qsort(sorted, rows, sizeof *sorted, compare_floats);
    percentiles(sorted, rows, min, range, p);
    memcpy(bytes + 21 + c * 8, p, sizeof p);
    for (int i = 0; i < 4; i++) line[i] = min + range / 65535.0f * (float)p[i];
    for (size_t r = 0; r < rows; r++) data[c * rows + r] = encode(column[r], line);
  }
  free(column);
  *out = bytes;
  *out_bytes = size;
  return WF_OK;
}
