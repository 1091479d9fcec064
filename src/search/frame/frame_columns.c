/* frame_columns.c - a frame's row of scores by label, its maxima, and the list of the cheapest
 * labels. */
#include "search/frame/frame_columns.h"

#include <string.h>

#include "math/score.h"

enum { LANES = 8, ROWS = 8, GROUP = LANES * ROWS };
/* A processor's own prefetching ends at a page's end. */
enum { AHEAD = 24 /* groups */, IN_LINE = 16 };

/* --- the row ----------------------------------------------------------------------------- */

static wf_status fail_at_bad_score(const wf_scores *scores, int64_t t, wf_error *err) {
  int32_t c = 0;
  while (wf__score_usable(wf__score_at(scores, t, c))) c++;
  return wf__fail_bad_score(t, c, wf__score_at(scores, t, c), err);
}

static void convert(const wf_scores *scores, int64_t t, int32_t count, float *restrict to) {
  const uint16_t *restrict row = (const uint16_t *)scores->data + t * scores->stride;
  if (scores->dtype == WF_FLOAT16)
    for (int32_t c = 0; c < count; c++) to[c] = wf__float_of_half(row[c]);
  else
    for (int32_t c = 0; c < count; c++) to[c] = wf__float_of_bits((uint32_t)row[c] << 16);
}

/* The frame's scores as float32, by column. */
static wf_status take_floats(wf__search *search, const wf_scores *scores, int64_t t,
                             const float **out, wf_error *err) {
  wf__columns *columns = &search->step.columns;
  const int32_t count = search->base.graph->min_columns;
  if (scores->dtype == WF_FLOAT32) {
    *out = (const float *)scores->data + t * scores->stride;
    return WF_OK;
  }
  WF__TRY(wf__vec_grow(&columns->floats, (uint64_t)count, "a search", err));
  convert(scores, t, count, columns->floats.data);
  *out = columns->floats.data;
  return WF_OK;
}

/* Scores are what a label's cost is computed from with one product. */
static bool is_by_label(const wf__search *search) {
  const wf_decoder_options *options = &search->base.options;
  return search->base.graph->columns_follow && options->acoustic_scale > 0 &&
         options->blank_penalty == 0;
}

/* Sorts scores by label, with the blank's penalty. With the scale 0 it is applied here, since the
 * product of 0 and -infinity is NaN. */
static wf_status sort_by_label(wf__search *search, const float **row, wf_error *err) {
  const wf_graph *graph = search->base.graph;
  const wf_decoder_options *options = &search->base.options;
  const uint64_t count = (uint64_t)graph->num_labels - 1;
  const bool has_scale = options->acoustic_scale > 0;
  WF__TRY(wf__vec_grow(&search->step.columns.by_label, count, "a search", err));
  float *to = search->step.columns.by_label.data;
  for (uint64_t i = 0; i < count; i++) {
    const int32_t column = graph->columns[i + 1];
    const float score = (*row)[column],
                loglike = column == options->blank ? score - options->blank_penalty : score;
    to[i] = has_scale || loglike == -INFINITY ? loglike : options->acoustic_scale * loglike;
  }
  *row = to;
  return WF_OK;
}

/* --- maxima ------------------------------------------------------------------------------ */

/* NaN gives NaN in a sum, and may be lost in a maximum. */
static inline void take_group(const float *restrict values, float *restrict highest,
                              float *restrict sums) {
  for (int j = 0; j < LANES; j++) {
    float most = values[j], sum = values[j];
    for (int i = 1; i < ROWS; i++) {
      const float value = values[i * LANES + j];
      most = value > most ? value : most;
      sum += value;
    }
    highest[j] = most;
    sums[j] = sum;
  }
}

/* Cells whose values are surely usable: none is NaN, and none of 8 values up to 1e18 is as low as
 * -1e20 if their sum is -1e19. */
static inline bool are_plain(const float *cells, const float *sums, uint64_t count) {
  int odd = 0;
  for (uint64_t i = 0; i < count; i++) odd |= (!(cells[i] <= 1e18f)) | (!(sums[i] >= -1e19f));
  return odd == 0;
}

static __attribute__((noinline)) bool take_groups(const float *row, uint64_t num_groups,
                                                  float *cells, float *sums) {
  for (uint64_t g = 0; g < num_groups; g++) {
    for (int i = 0; i < GROUP; i += IN_LINE) __builtin_prefetch(row + (g + AHEAD) * GROUP + i);
    take_group(row + g * GROUP, cells + g * LANES, sums + g * LANES);
  }
  return are_plain(cells, sums, num_groups * LANES);
}

/* The values of groups that are not plain are looked at one by one, as those with -infinity. */
static bool are_usable(const wf__columns *columns, const float *row, uint64_t num_groups) {
  for (uint64_t g = 0; g < num_groups; g++)
    if (!are_plain(columns->cells + g * LANES, columns->sums + g * LANES, LANES) &&
        !wf__scores_usable(row + g * GROUP, GROUP))
      return false;
  return true;
}

/* Finds the maxima of a row; false: it has a score that is not usable. */
static bool find_maxima(wf__columns *columns, const float *row, uint64_t count) {
  const uint64_t num_groups = count / GROUP, rest = count % GROUP;
  float last[GROUP], unused[LANES];
  if (!take_groups(row, num_groups, columns->cells, columns->sums) &&
      !are_usable(columns, row, num_groups))
    return false;
  if (rest > 0) {
    memcpy(last, row + num_groups * GROUP, rest * sizeof *last);
    if (!wf__scores_usable(last, (int32_t)rest)) return false;
    for (uint64_t i = rest; i < GROUP; i++) last[i] = -INFINITY;
    take_group(last, columns->cells + num_groups * LANES, unused);
  }
  for (uint64_t g = 0; g < columns->num_blocks; g += LANES)
    take_group(columns->cells + g * ROWS, columns->blocks + g, unused);
  return true;
}

wf_status wf__columns_check(const wf__search *search, const wf_scores *scores, int64_t t,
                            wf_error *err) {
  const int32_t count = search->base.graph->min_columns;
  if (scores->dtype == WF_FLOAT32) {
    if (wf__scores_usable((const float *)scores->data + t * scores->stride, count)) return WF_OK;
    return fail_at_bad_score(scores, t, err);
  }
  for (int32_t c = 0; c < count; c++)
    if (!wf__score_usable(wf__score_at(scores, t, c))) return fail_at_bad_score(scores, t, err);
  return WF_OK;
}

wf_status wf__columns_read(wf__search *search, const wf_scores *scores, int64_t t, wf_error *err) {
  const wf_graph *graph = search->base.graph;
  wf__columns *columns = &search->step.columns;
  const float *row;
  const bool by_label = is_by_label(search);
  WF__TRY(take_floats(search, scores, t, &row, err));
  if ((!by_label || columns->num_blocks == 0) && !wf__scores_usable(row, graph->min_columns))
    return fail_at_bad_score(scores, t, err);
  if (!by_label) WF__TRY(sort_by_label(search, &row, err));
  search->step.row = row;
  search->step.factor =
      search->base.options.acoustic_scale > 0 ? -search->base.options.acoustic_scale : -1;
  if (columns->num_blocks == 0) return WF_OK;
  if (!find_maxima(columns, row, (uint64_t)graph->num_labels - 1))
    return fail_at_bad_score(scores, t, err);
  columns->labels.size = columns->arcs.size = 0;
  columns->num_layers = 0;
  columns->covered = -INFINITY;
  columns->least = columns->bound = INFINITY;
  columns->bound_count = 0;
  for (uint64_t b = 0; b < columns->num_blocks; b++) {
    const float cost = search->step.factor * columns->blocks[b];
    if (cost < columns->least) columns->least = cost;
  }
  return WF_OK;
}

/* --- labels ------------------------------------------------------------------------------ */

/* Lists blocks, then cells, then labels of cost up to `bound`, without branches: nobody could predict
 * them. */
wf_status wf__columns_cover(wf__search *search, float bound, wf_error *err) {
  wf__columns *columns = &search->step.columns;
  const float *row = search->step.row, factor = search->step.factor, covered = columns->covered;
  const uint64_t count = (uint64_t)search->base.graph->num_labels - 1;
  uint32_t *const cells = columns->found, *const blocks = cells + columns->num_cells, *cell = cells,
                  *block = blocks;
  if (!(bound > covered)) return WF_OK;
  for (uint32_t b = 0; b < columns->num_blocks; b++) {
    *block = b / LANES * GROUP + b % LANES;
    block += factor * columns->blocks[b] <= bound;
  }
  for (const uint32_t *at = blocks; at < block; at++)
    for (uint32_t c = *at; c < *at + GROUP; c += LANES) {
      *cell = c / LANES * GROUP + c % LANES;
      cell += factor * columns->cells[c] <= bound;
    }
  const uint64_t num_cells = (uint64_t)(cell - cells);
  WF__TRY(wf__vec_grow(&columns->labels, num_cells * ROWS, "a search", err));
  int32_t *to = columns->labels.data + columns->labels.size;
  for (uint64_t k = 0; k < num_cells; k++) {
    const uint64_t first = cells[k], end = first + GROUP;
    for (uint64_t i = first; i < (end < count ? end : count); i += LANES) {
      const float cost = factor * row[i];
      *to = (int32_t)i + 1;
      to += cost <= bound && cost > covered;
    }
  }
  columns->labels.size = (uint64_t)(to - columns->labels.data);
  columns->covered = bound;
  if (columns->num_layers < WF__COLUMN_LAYERS) columns->num_layers++;
  columns->layers[columns->num_layers - 1] = (wf__column_layer){bound, columns->labels.size};
  return WF_OK;
}

/* The upper end of the range of costs that has the count-th smallest, 32 ranges for each power of 2 of
 * the distance from the least; +infinity: it is beyond all ranges. */
static float bound_of(float least, const float *scores, uint64_t size, float factor,
                      uint64_t count) {
  enum { SHIFT = 18, RANGES = 512 };
  const uint32_t first = wf__bits_of_float(0.125f) >> SHIFT;
  uint32_t num_in[RANGES] = {0};
  for (uint64_t i = 0; i < size; i++) {
    const uint32_t place = wf__bits_of_float(factor * scores[i] - least) >> SHIFT,
                   range = place > first ? place - first : 0;
    if (range < RANGES) num_in[range]++;
  }
  for (uint32_t r = 0; r < RANGES; r++) {
    if (num_in[r] >= count) return least + wf__float_of_bits((first + r + 1) << SHIFT);
    count -= num_in[r];
  }
  return INFINITY;
}

/* The highest scores of `count` blocks are those of as many labels; so are those of cells. */
float wf__columns_bound(wf__search *search, uint64_t count) {
  enum { SPARE = 4 }; /* with fewer blocks a block would often have two of the highest */
  wf__columns *columns = &search->step.columns;
  const bool by_block = count * SPARE <= columns->num_blocks,
             by_cell = count * SPARE <= columns->num_cells;
  const float *scores = by_block ? columns->blocks : by_cell ? columns->cells : search->step.row;
  const uint64_t size = by_block  ? columns->num_blocks
                        : by_cell ? columns->num_cells
                                  : (uint64_t)search->base.graph->num_labels - 1;
  if (columns->bound_count != count) {
    columns->bound = bound_of(columns->least, scores, size, search->step.factor, count);
    columns->bound_count = count;
  }
  return columns->bound;
}

/* --- memory ------------------------------------------------------------------------------ */

wf_status wf__columns_create(wf__search *search, const wf_graph *graph, wf_error *err) {
  enum { IN_BLOCKS = GROUP * ROWS };
  wf__columns *columns = &search->step.columns;
  if (graph->num_wide == 0) return WF_OK;
  const uint64_t num_labels = (uint64_t)graph->num_labels,
                 num_blocks = (num_labels + IN_BLOCKS - 1) / IN_BLOCKS * LANES,
                 num_cells = num_blocks * ROWS, count = num_blocks + 2 * num_cells;
  columns->blocks = wf__alloc(count, sizeof(float));
  columns->found = wf__alloc(num_blocks + num_cells, sizeof(uint32_t));
  if (columns->blocks == NULL || columns->found == NULL)
    return wf__fail_memory(err, count * sizeof(float), "a search");
  columns->num_blocks = num_blocks;
  columns->num_cells = num_cells;
  columns->cells = columns->blocks + num_blocks;
  columns->sums = columns->cells + num_cells;
  for (uint64_t i = 0; i < num_cells; i++) columns->cells[i] = -INFINITY; /* without columns */
  return WF_OK;
}

void wf__columns_free(wf__search *search) {
  wf__columns *columns = &search->step.columns;
  free(columns->blocks);
  free(columns->found);
  wf__vec_free(&columns->floats);
  wf__vec_free(&columns->by_label);
  wf__vec_free(&columns->labels);
  wf__vec_free(&columns->arcs);
}
