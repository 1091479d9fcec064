/* score_row.c - reads a frame's scores, and finds the high ones. */
#include "compat/score_row.h"

#include "base/error.h"
#include "base/select.h"
#include "math/cost.h"
#include "math/score.h"

enum { BLOCK = WF__ROW_BLOCK, LANES = 16 };

wf_status wf__score_row_resize(wf__score_row *row, int32_t num_columns, wf_error *err) {
  if (row->num_columns == num_columns) return WF_OK;
  wf__score_row_free(row);
  const int32_t num_blocks = (num_columns + BLOCK - 1) / BLOCK;
  const size_t size = (size_t)num_blocks * BLOCK;
  row->values = wf__alloc(size, sizeof *row->values);
  row->most = wf__alloc((size_t)num_blocks, sizeof *row->most);
  row->keys = wf__alloc(size, sizeof *row->keys);
  if (row->values == NULL || row->most == NULL || row->keys == NULL)
    return wf__fail_memory(err, size * (sizeof *row->values + sizeof *row->keys), "a frame");
  row->num_columns = num_columns;
  row->num_blocks = num_blocks;
  for (size_t i = (size_t)num_columns; i < size; i++) row->values[i] = -INFINITY;
  return WF_OK;
}

void wf__score_row_free(wf__score_row *row) {
  free(row->values);
  free(row->most);
  free(row->keys);
  *row = (wf__score_row){0};
}

static float most_of_block(const float *values) {
  float most[LANES];
  for (int k = 0; k < LANES; k++) most[k] = values[k];
  for (int i = LANES; i < BLOCK; i += LANES)
    for (int k = 0; k < LANES; k++) most[k] = values[i + k] > most[k] ? values[i + k] : most[k];
  float all = most[0];
  for (int k = 1; k < LANES; k++) all = most[k] > all ? most[k] : all;
  return all;
}

void wf__score_row_find_most(wf__score_row *row) {
  for (int32_t b = 0; b < row->num_blocks; b++)
    row->most[b] = most_of_block(row->values + (size_t)b * BLOCK);
}

wf_status wf__score_row_read(wf__score_row *row, const wf_scores *scores, int64_t frame,
                             wf_error *err) {
  if (scores->dtype == WF_FLOAT32)
    memcpy(row->values, (const float *)scores->data + frame * scores->stride,
           (size_t)row->num_columns * sizeof *row->values);
  else
    for (int32_t c = 0; c < row->num_columns; c++) row->values[c] = wf__score_at(scores, frame, c);
  int32_t best = 0;
  for (int32_t b = 0; b < row->num_blocks; b++) {
    const float *values = row->values + (size_t)b * BLOCK;
    if (wf__unlikely(!wf__scores_usable(values, BLOCK))) {
      int32_t c = 0;
      while (wf__score_usable(values[c])) c++;
      return wf__fail(err, WF_ERR_ARGUMENT, "frame %lld, column %d: the score is %g",
                      (long long)frame, b * BLOCK + c, (double)values[c]);
    }
    row->most[b] = most_of_block(values);
    if (row->most[b] > row->most[best]) best = b;
  }
  const float highest = row->most[best];
  for (best *= BLOCK; row->values[best] != highest;) best++;
  row->best = best;
  return WF_OK;
}

/* Sorts as the score does, from high to low. */
static uint64_t key_of(float value) { return wf__ordered_cost(-value); }

/* A score that probably more than `count` columns reach: of every 16th column. */
static float guess_least(wf__score_row *row, int32_t count) {
  enum { STEP = 16, SPARE = 8 };
  uint64_t num = 0, rank = (uint64_t)count / STEP;
  rank += rank / 2 + SPARE;
  for (int32_t c = 0; c < row->num_columns; c += STEP) row->keys[num++] = key_of(row->values[c]);
  if (rank >= num) return -INFINITY;
  return -wf__cost_of_ordered((uint32_t)wf__select_smallest(row->keys, num, rank));
}

/* The keys of the columns that reach a score; returns their number. */
static uint64_t list_keys(wf__score_row *row, float least) {
  uint64_t size = 0;
  for (int32_t b = 0; b < row->num_blocks; b++) {
    if (row->most[b] < least) continue;
    for (int32_t c = b * BLOCK; c < (b + 1) * BLOCK && c < row->num_columns; c++)
      if (row->values[c] >= least) row->keys[size++] = key_of(row->values[c]);
  }
  return size;
}

/* Only blocks whose highest score is up to the count-th of these can have one of the `count`. */
float wf__score_row_highest(wf__score_row *row, int32_t count) {
  float least;
  if (count <= row->num_blocks) {
    for (int32_t b = 0; b < row->num_blocks; b++) row->keys[b] = key_of(row->most[b]);
    least = -wf__cost_of_ordered(
        (uint32_t)wf__select_smallest(row->keys, (uint64_t)row->num_blocks, (uint64_t)count));
  } else {
    least = guess_least(row, count);
  }
  uint64_t size = list_keys(row, least);
  if (size < (uint64_t)count) size = list_keys(row, -INFINITY);
  return -wf__cost_of_ordered((uint32_t)wf__select_smallest(row->keys, size, (uint64_t)count));
}

int32_t wf__score_row_list(const wf__score_row *row, double least, int32_t *out) {
  int32_t *to = out;
  for (int32_t b = 0; b < row->num_blocks; b++) {
    if ((double)row->most[b] < least && b != row->best / BLOCK) continue;
    for (int32_t c = b * BLOCK; c < (b + 1) * BLOCK && c < row->num_columns; c++)
      if ((double)row->values[c] >= least || c == row->best) *to++ = c;
  }
  return (int32_t)(to - out);
}
