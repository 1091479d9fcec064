/* frame_columns.c - costs of labels, their minima by block, and the list of the cheapest labels. */
#include "search/frame/frame_columns.h"

#include <float.h>

#include "base/select.h"
#include "math/cost.h"

enum { BLOCK = WF__COLUMN_BLOCK };

/* Labels whose columns follow one another, as they do unless a table says otherwise. Apart, so that
 * the compiler makes vectors of it; the scale is not 0, which would make -infinity NaN. */
static inline void read_floats(const float *restrict row, float scale, int32_t count,
                               float *restrict costs) {
  const float minus = -scale;
  for (int32_t i = 0; i < count; i++) costs[i] = minus * row[i];
}

static __attribute__((noinline)) void read_row(const float *row, float scale, int32_t count,
                                               float *costs) {
  read_floats(row, scale, count, costs);
}

static inline float least_of_block(const float *costs) {
  float least[4];
  for (int k = 0; k < 4; k++) least[k] = costs[k];
  for (int i = 4; i < BLOCK; i += 4)
    for (int k = 0; k < 4; k++) least[k] = costs[i + k] < least[k] ? costs[i + k] : least[k];
  const float a = least[0] < least[1] ? least[0] : least[1],
              b = least[2] < least[3] ? least[2] : least[3];
  return a < b ? a : b;
}

/* Block by block, while it is near. The first label is 1, with column 0. */
static __attribute__((noinline)) void read_blocks(const float *row, float scale, int32_t num_labels,
                                                  float *costs, float *block_least) {
  read_floats(row, scale, (num_labels < BLOCK ? num_labels : BLOCK) - 1, costs + 1);
  block_least[0] = least_of_block(costs);
  int32_t first = BLOCK;
  for (; first + BLOCK <= num_labels; first += BLOCK) {
    read_floats(row + first - 1, scale, BLOCK, costs + first);
    block_least[first / BLOCK] = least_of_block(costs + first);
  }
  if (first >= num_labels) return;
  read_floats(row + first - 1, scale, num_labels - first, costs + first);
  block_least[first / BLOCK] = least_of_block(costs + first);
}

static void read_label(wf__search *search, const wf_scores *scores, int64_t t, int32_t label) {
  const wf_decoder_options *options = &search->base.options;
  const float loglike = wf__loglike(options, scores, t, search->base.graph->columns[label]);
  search->step.label_costs[label] =
      loglike == -INFINITY ? INFINITY : -(options->acoustic_scale * loglike);
}

void wf__columns_read(wf__search *search, const wf_scores *scores, int64_t t) {
  const wf_graph *graph = search->base.graph;
  const wf_decoder_options *options = &search->base.options;
  float *costs = search->step.label_costs;
  wf__columns *columns = &search->step.columns;
  const bool is_row =
      scores->dtype == WF_FLOAT32 && graph->columns_follow && options->acoustic_scale > 0;
  const float *row = is_row ? (const float *)scores->data + t * scores->stride : NULL;
  const int32_t num_labels = graph->num_labels, blank = options->blank + 1;
  columns->labels.size = columns->arcs.size = 0;
  columns->covered = -INFINITY;
  columns->least = columns->bound = INFINITY;
  columns->bound_count = 0;
  if (!is_row)
    for (int32_t label = 1; label < num_labels; label++) read_label(search, scores, t, label);
  else if (columns->num_blocks == 0)
    read_row(row, options->acoustic_scale, num_labels - 1, costs + 1);
  else
    read_blocks(row, options->acoustic_scale, num_labels, costs, columns->block_least);
  if (is_row && options->blank_penalty != 0) read_label(search, scores, t, blank);
  for (uint64_t b = 0; b < columns->num_blocks; b++) {
    if (!is_row || b == (uint64_t)blank / BLOCK)
      columns->block_least[b] = least_of_block(costs + b * BLOCK);
    if (columns->block_least[b] < columns->least) columns->least = columns->block_least[b];
  }
}

wf_status wf__columns_cover(wf__search *search, float bound, wf_error *err) {
  wf__columns *columns = &search->step.columns;
  const float *costs = search->step.label_costs, covered = columns->covered;
  if (!(bound > covered)) return WF_OK;
  for (uint64_t b = 0; b < columns->num_blocks; b++) {
    if (!(columns->block_least[b] <= bound)) continue;
    WF__TRY(wf__vec_grow(&columns->labels, BLOCK, "a search", err));
    int32_t *to = columns->labels.data + columns->labels.size;
    for (int32_t i = (int32_t)b * BLOCK, end = i + BLOCK; i < end; i++) {
      *to = i; /* without a branch */
      to += costs[i] <= bound && costs[i] > covered;
    }
    columns->labels.size = (uint64_t)(to - columns->labels.data);
  }
  columns->covered = bound;
  return WF_OK;
}

/* The minima of `count` blocks are costs of as many labels. With fewer blocks than that, all labels
 * are looked at. */
wf_status wf__columns_bound(wf__search *search, uint64_t count, float *out, wf_error *err) {
  wf__columns *columns = &search->step.columns;
  const bool by_block = count <= columns->num_blocks;
  const float *costs = by_block ? columns->block_least : search->step.label_costs;
  const uint64_t size = by_block ? columns->num_blocks : (uint64_t)search->base.graph->num_labels;
  if (columns->bound_count != count) {
    columns->keys.size = 0;
    WF__TRY(wf__vec_grow(&columns->keys, size, "a search", err));
    uint64_t *keys = columns->keys.data;
    for (uint64_t i = 0; i < size; i++) keys[i] = wf__ordered_cost(costs[i]);
    columns->bound = size < count
                         ? INFINITY
                         : wf__cost_of_ordered((uint32_t)wf__select_smallest(keys, size, count));
    columns->bound_count = count;
  }
  *out = columns->bound;
  return WF_OK;
}
