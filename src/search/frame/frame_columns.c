/* frame_columns.c - costs of labels, their minima by block, and the list of the cheapest labels. */
#include "search/frame/frame_columns.h"

#include <float.h>

#include "base/select.h"
#include "math/cost.h"

enum { BLOCK = WF__COLUMN_BLOCK };

/* Labels whose columns follow one another, as they do unless a table says otherwise. Apart, so that
 * the compiler makes vectors of it. -infinity becomes +infinity, also with scale 0. */
static void read_floats(const float *row, float scale, int32_t count, float *restrict costs) {
  for (int32_t i = 0; i < count; i++) costs[i] = row[i] == -INFINITY ? INFINITY : -(scale * row[i]);
}

static float least_of_block(const float *costs) {
  float least[8];
  for (int k = 0; k < 8; k++) least[k] = costs[k];
  for (int i = 8; i < BLOCK; i += 8)
    for (int k = 0; k < 8; k++) least[k] = costs[i + k] < least[k] ? costs[i + k] : least[k];
  float all = least[0];
  for (int k = 1; k < 8; k++) all = least[k] < all ? least[k] : all;
  return all;
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
  if (scores->dtype == WF_FLOAT32 && graph->columns_follow) {
    read_floats((const float *)scores->data + t * scores->stride, options->acoustic_scale,
                graph->num_labels - 1, costs + 1);
    if (options->blank_penalty != 0) read_label(search, scores, t, options->blank + 1);
  } else {
    for (int32_t label = 1; label < graph->num_labels; label++)
      read_label(search, scores, t, label);
  }
  columns->labels.size = 0;
  columns->covered = -INFINITY;
  columns->least = INFINITY;
  for (uint64_t b = 0; b < columns->num_blocks; b++) {
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

/* Only blocks up to the count-th least of their minima can have one of the `count` least costs. */
wf_status wf__columns_bound(wf__search *search, uint64_t count, float *out, wf_error *err) {
  wf__columns *columns = &search->step.columns;
  const float *costs = search->step.label_costs;
  float most = FLT_MAX;
  columns->keys.size = 0;
  WF__TRY(wf__vec_grow(&columns->keys, columns->num_blocks * BLOCK, "a search", err));
  uint64_t *keys = columns->keys.data, size = 0;
  for (uint64_t b = 0; b < columns->num_blocks; b++)
    keys[b] = wf__ordered_cost(columns->block_least[b]);
  if (count <= columns->num_blocks)
    most = wf__cost_of_ordered((uint32_t)wf__select_smallest(keys, columns->num_blocks, count));
  for (uint64_t b = 0; b < columns->num_blocks; b++)
    for (uint64_t i = b * BLOCK; i < (b + 1) * BLOCK && columns->block_least[b] <= most; i++)
      if (costs[i] <= most) keys[size++] = wf__ordered_cost(costs[i]);
  *out = size < count ? INFINITY
                      : wf__cost_of_ordered((uint32_t)wf__select_smallest(keys, size, count));
  return WF_OK;
}
