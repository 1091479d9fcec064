/* random_tensors.h - writes safetensors files with random weights. */
#ifndef TESTS_RANDOM_TENSORS_H
#define TESTS_RANDOM_TENSORS_H

#include <math.h>

#include "testing.h"

/* Begin with .header = "{", .header_size = 1. */
typedef struct tensors {
  char header[4096];
  size_t header_size, num_floats;
  float *floats;
} tensors;

/* Weights are smaller in wider layers, so that rounding errors of states stay small. */
static inline void add_tensor(tensors *all, test_rng *rng, const char *name, size_t rows,
                              size_t cols) {
  const float scale = 2 / sqrtf((float)(cols > 4 ? cols : 4));
  const size_t count = rows * (cols > 0 ? cols : 1);
  char shape[64];
  snprintf(shape, sizeof shape, cols > 0 ? "%zu,%zu" : "%zu", rows, cols);
  all->header_size +=
      (size_t)snprintf(all->header + all->header_size, sizeof all->header - all->header_size,
                       "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                       all->header_size > 1 ? "," : "", name, shape, all->num_floats * 4,
                       (all->num_floats + count) * 4);
  all->floats = realloc(all->floats, (all->num_floats + count) * sizeof *all->floats);
  for (size_t i = 0; i < count; i++)
    all->floats[all->num_floats++] = (test_unit(rng) - 0.5f) * scale;
}

/* Writes the file, and frees the weights. */
static inline void write_tensors(tensors *all, const char *path) {
  all->header[all->header_size++] = '}';
  FILE *file = fopen(path, "wb");
  const uint64_t size = all->header_size;
  assert_true(file != NULL && fwrite(&size, 8, 1, file) == 1 &&
              fwrite(all->header, 1, size, file) == size);
  assert_true(fwrite(all->floats, 4, all->num_floats, file) == all->num_floats &&
              fclose(file) == 0);
  free(all->floats);
}

#endif
