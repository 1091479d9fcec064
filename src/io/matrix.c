/* matrix.c - the score matrix: shape, memory, checks. */
#include <math.h>
#include <stdlib.h>

#include "io/kaldi_archive.h"

void wf_matrix_clear(wf_matrix *matrix) {
  if (matrix == NULL) return;
  free(matrix->key);
  free(matrix->data);
  *matrix = (wf_matrix){0};
}

wf_status wf__matrix_shape(wf_matrix *matrix, int64_t num_frames, int64_t num_columns,
                           uint64_t *elements, const char *name, wf_error *err) {
  if (num_frames < 0 || num_columns < 0)
    return wf__fail(err, WF_ERR_FORMAT, "%s: the size of a matrix is %lld x %lld", name,
                    (long long)num_frames, (long long)num_columns);
  if (num_columns > INT32_MAX ||
      (num_columns > 0 && (uint64_t)num_frames > SIZE_MAX / 16 / (uint64_t)num_columns))
    return wf__fail(err, WF_ERR_LIMIT, "%s: a matrix of %lld x %lld is too large", name,
                    (long long)num_frames, (long long)num_columns);
  /* Frames without columns take no bytes, so a small file could claim billions of them. */
  if (num_columns == 0 && num_frames > 0)
    return wf__fail(err, WF_ERR_FORMAT, "%s: a matrix of %lld frames without columns", name,
                    (long long)num_frames);
  matrix->num_frames = num_frames;
  matrix->num_columns = (int32_t)num_columns;
  *elements = (uint64_t)num_frames * (uint64_t)num_columns;
  return WF_OK;
}

wf_status wf__matrix_allocate(wf_matrix *matrix, int64_t num_frames, int64_t num_columns,
                              const char *name, wf_error *err) {
  uint64_t elements;
  WF__TRY(wf__matrix_shape(matrix, num_frames, num_columns, &elements, name, err));
  matrix->data = wf__alloc(elements, sizeof(float));
  return matrix->data != NULL ? WF_OK : wf__fail_memory(err, elements * sizeof(float), "scores");
}

void wf__matrix_scale(wf_matrix *matrix, float scale) {
  if (scale == 1) return;
  uint64_t elements = (uint64_t)matrix->num_frames * (uint64_t)matrix->num_columns;
  for (uint64_t i = 0; i < elements; i++) matrix->data[i] *= scale;
}

wf_status wf_matrix_check(const wf_matrix *matrix, wf_error *err) {
  for (int64_t t = 0; t < matrix->num_frames; t++) {
    const float *row = matrix->data + (size_t)t * (size_t)matrix->num_columns;
    bool good = true;
    for (int32_t c = 0; c < matrix->num_columns; c++)
      good &= row[c] < INFINITY; /* false for NaN too; branch-free, so it is vectorised */
    if (good) continue;
    for (int32_t c = 0; c < matrix->num_columns; c++)
      if (!(row[c] < INFINITY))
        return wf__fail(err, WF_ERR_FORMAT, "%s: frame %lld, column %d: score is %s",
                        matrix->key != NULL ? matrix->key : "scores", (long long)t, c,
                        isnan(row[c]) ? "NaN" : "+infinity");
  }
  return WF_OK;
}
