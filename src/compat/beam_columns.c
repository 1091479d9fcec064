/* beam_columns.c - which columns of a frame the hypotheses look at.
 *
 * A column can be passed over if what it gives has no effect, whatever the language model says:
 *
 * - it is below the floor. The floor only rises within a frame, so it would be dropped at once.
 * - of sums: even together with all that is merged with it, it is below the bar, and with that it
 *   is dropped at the end of the frame; and it is below the best, so it does not raise the floor.
 *   What has another history after the token, or another token, is not merged with it. So what
 *   counts are the hypotheses with the same history, and those that have the history after the
 *   token already (a meeting), which are looked for.
 *
 * A hypothesis without a lexicon that has few n-grams has a closer bound, see lm_columns.c.
 * Columns keep their order. So scores, and the order of equal ones, are as if all were looked at. */
#include <string.h>

#include "compat/beam.h"
#include "math/cost.h"

enum { BLOCK = WF__ROW_BLOCK, LARGE = WF__BEAM_LARGE };

wf_status wf__beam_columns_resize(wf__beam_columns *c, int32_t num_columns, wf_error *err) {
  if (c->row.num_columns == num_columns) return WF_OK;
  WF__TRY(wf__score_row_resize(&c->row, num_columns, err));
  free(c->list);
  free(c->meets);
  c->meeting.size = 0;
  const uint64_t size = (uint64_t)c->row.num_blocks * BLOCK;
  c->list = wf__alloc(size, sizeof *c->list);
  c->meets = wf__calloc(size + (uint64_t)c->row.num_blocks, sizeof *c->meets);
  if (c->list != NULL && c->meets != NULL) {
    c->block_meets = c->meets + size;
    return WF_OK;
  }
  wf__score_row_free(&c->row);
  return wf__fail_memory(err, size * (sizeof *c->list + sizeof *c->meets), "a frame");
}

void wf__beam_columns_free(wf__beam_columns *c) {
  wf__score_row_free(&c->row);
  wf__score_row_free(&c->lm_row);
  wf__vec_free(&c->marks);
  wf__vec_free(&c->bounds);
  wf__map64_free(&c->sums);
  wf__vec_free(&c->together);
  wf__map64_free(&c->meetings);
  wf__vec_free(&c->meeting);
  wf__vec_free(&c->children);
  free(c->meets);
  free(c->list);
}

/* --- beam_size_token ------------------------------------------------------------------------- */

static uint64_t key_of(float score) { return wf__descending_score((double)score); }

bool wf__beam_is_chosen(const wf_beam_search *s, int32_t column) {
  const wf__beam_columns *c = &s->columns;
  const uint64_t key = key_of(c->row.values[column]);
  return key < c->last_key || (key == c->last_key && column <= c->last_column);
}

/* Of tokens with the same score as the last one chosen, the first are chosen. */
static void choose(wf_beam_search *s) {
  wf__beam_columns *c = &s->columns;
  const int32_t most = s->options.beam_size_token;
  c->last_key = UINT64_MAX;
  c->least_chosen = -INFINITY;
  if (most == 0 || most >= c->row.num_columns) return;
  c->least_chosen = wf__score_row_highest(&c->row, most);
  c->last_key = key_of(c->least_chosen);
  const int32_t num = wf__score_row_list(&c->row, (double)c->least_chosen, c->list);
  int32_t ties = most;
  for (int32_t i = 0; i < num; i++) ties -= key_of(c->row.values[c->list[i]]) < c->last_key;
  for (int32_t i = 0; i < num && ties > 0; i++) {
    c->last_column = c->list[i];
    ties -= key_of(c->row.values[c->list[i]]) == c->last_key;
  }
}

/* --- bounds ---------------------------------------------------------------------------------- */

/* For comparisons with sums that were rounded. */
static double lowered(double score) { return score - 1e-9 * (1 + fabs(score)); }

/* What a column's score must reach to have an effect. */
static wf__beam_bound reached(const wf_beam_search *s, const wf__beam_bound *bound) {
  wf__beam_bound least = {lowered(s->floor) - bound->alone, -INFINITY};
  if (s->options.sum_alignments) least.together = lowered(fmin(s->bar, s->best)) - bound->together;
  least.together = fmax(least.together, least.alone);
  return least;
}

/* The same, and to be chosen. */
static wf__beam_bound needed(const wf_beam_search *s, const wf__beam_bound *bound) {
  wf__beam_bound least = reached(s, bound);
  least.together = fmax(least.together, (double)s->columns.least_chosen);
  return least;
}

void wf__beam_columns_raise(wf_beam_search *s) {
  wf__beam_columns *c = &s->columns;
  c->least = needed(s, &c->bound);
  c->low = nextafterf((float)c->least.together, -INFINITY);
  if (c->by_lm) c->lm_low = nextafterf((float)reached(s, &c->lm_bound).together, -INFINITY);
}

static double bound_alone(const wf_beam_search *s, const wf__hypothesis *from) {
  const wf_beam_searcher *parts = s->searcher;
  if (s->all_columns) return INFINITY;
  double score = from->score;
  if (from->node != 0 && !s->options.token_lm)
    score -= (double)s->options.lm_weight * (double)parts->nodes[from->node].score;
  const double size = fabs(from->score) + fabs(score) + fabs(s->most_gain);
  return score + s->most_gain + 1e-9 * (1 + size);
}

static wf_status set_bounds(wf_beam_search *s, const wf__hypothesis *all, uint64_t num,
                            wf_error *err) {
  wf__beam_columns *c = &s->columns;
  c->bounds.size = 0;
  WF__TRY(wf__vec_grow(&c->bounds, num, "a frame", err));
  c->bounds.size = num;
  for (uint64_t k = 0; k < num; k++) {
    const double alone = bound_alone(s, &all[k]);
    c->bounds.data[k] = (wf__beam_bound){alone, alone};
  }
  return WF_OK;
}

static wf_status add_together(wf_beam_search *s, const wf__hypothesis *all, uint64_t num,
                              wf_error *err) {
  wf__beam_columns *c = &s->columns;
  c->together.size = 0;
  wf__map64_clear(&c->sums);
  WF__TRY(wf__vec_grow(&c->together, num, "a frame", err));
  for (uint64_t k = 0; k < num; k++) {
    const double alone = c->bounds.data[k].alone;
    uint32_t at = 0;
    bool fresh = false;
    WF__TRY(wf__map64_insert(&c->sums, all[k].history, (uint32_t)c->together.size, &at, &fresh,
                             "a frame", err));
    if (fresh)
      c->together.data[c->together.size++] = alone;
    else
      c->together.data[at] = -wf__log_add(-c->together.data[at], -alone);
  }
  for (uint64_t k = 0; k < num; k++) {
    const double sum =
        c->together.data[wf__map64_find(&c->sums, all[k].history)] + log((double)s->most_repeats);
    c->bounds.data[k].together = sum + 1e-9 * (1 + fabs(sum));
  }
  return WF_OK;
}

/* --- meetings --------------------------------------------------------------------------------- */

static void set_meets(wf__beam_columns *c, int32_t column, bool meets) {
  c->meets[column] = c->block_meets[column / BLOCK] = meets;
}

static wf_status add_meeting(wf__beam_columns *c, uint32_t history, int32_t column, wf_error *err) {
  uint32_t at = 0;
  if (history == UINT32_MAX || column >= c->row.num_columns)
    return WF_OK; /* rows may get shorter */
  WF__TRY(wf__vec_push(&c->meeting, column, "a frame", err));
  set_meets(c, column, true);
  return wf__map64_insert(&c->meetings, (uint64_t)history << 32 | (uint32_t)column, 0, &at, NULL,
                          "a frame", err);
}

static wf_status add_meetings(wf_beam_search *s, const wf__hypothesis *all, uint64_t num,
                              wf_error *err) {
  for (uint64_t k = 0; k < num; k++) {
    if (all[k].after_blank) continue;
    WF__TRY(add_meeting(&s->columns, all[k].history, all[k].token, err));
    WF__TRY(
        add_meeting(&s->columns, s->histories.all.data[all[k].history].before, all[k].token, err));
  }
  return WF_OK;
}

/* Without a lexicon, a language model or transitions, the best hypothesis alone gives beam_size ones
 * that are as good as this. */
static double first_bar(wf_beam_search *s, const wf__hypothesis *best) {
  const wf_beam_searcher *parts = s->searcher;
  const wf_beam_options *o = &s->options;
  const bool is_plain = parts->num_nodes == 0 && parts->lm == NULL && parts->transitions == NULL;
  const int32_t most = o->beam_size, chosen = o->beam_size_token;
  if (!is_plain || most > s->columns.row.num_columns || (chosen > 0 && most > chosen))
    return -INFINITY;
  const double column = (double)wf__score_row_highest(&s->columns.row, most);
  return lowered(best->score + column + fmin(0, (double)o->silence_score));
}

wf_status wf__beam_columns_begin(wf_beam_search *s, wf_error *err) {
  wf__beam_columns *c = &s->columns;
  const uint64_t frame = wf__beam_newest(s), num = wf__beam_frame_size(s, frame);
  const wf__hypothesis *all = wf__beam_frame(s, frame);
  choose(s);
  for (uint64_t i = 0; i < c->meeting.size; i++) set_meets(c, c->meeting.data[i], false);
  c->meeting.size = 0;
  wf__map64_clear(&c->meetings);
  set_meets(c, s->silence, true);
  c->listed = WF__COLUMNS_ALL;
  WF__TRY(set_bounds(s, all, num, err));
  if (s->options.sum_alignments && isfinite(s->most_gain) && !s->all_columns) {
    if (num > 0) s->bar = first_bar(s, all);
    WF__TRY(add_together(s, all, num, err));
    WF__TRY(add_meetings(s, all, num, err));
  }
  return wf__lm_columns_begin(s, err);
}

/* --- the list -------------------------------------------------------------------------------- */

static bool looks_at_many(const wf_beam_search *s, const wf__hypothesis *from) {
  return s->searcher->num_nodes == 0 || s->searcher->nodes[from->node].num_children > LARGE;
}

static void make_list(wf_beam_search *s, uint32_t place) {
  wf__beam_columns *c = &s->columns;
  const wf__hypothesis *all = wf__beam_frame(s, wf__beam_newest(s));
  c->highest = c->bounds.data[place];
  for (uint64_t k = place; k < c->bounds.size; k++) {
    if (!looks_at_many(s, &all[k])) continue;
    c->highest.alone = fmax(c->highest.alone, c->bounds.data[k].alone);
    c->highest.together = fmax(c->highest.together, c->bounds.data[k].together);
  }
  c->list_least = needed(s, &c->highest).together;
  c->list_size = 0;
  for (int32_t b = 0; b < c->row.num_blocks; b++) {
    if ((double)c->row.most[b] < c->list_least && !c->block_meets[b]) continue;
    for (int32_t i = b * BLOCK; i < (b + 1) * BLOCK && i < c->row.num_columns; i++)
      if (((double)c->row.values[i] >= c->list_least || c->meets[i]) && wf__beam_is_chosen(s, i))
        c->list[c->list_size++] = i;
  }
  c->listed = WF__COLUMNS_LISTED;
  c->children_of = UINT32_MAX;
}

static void shorten_list(wf_beam_search *s) {
  wf__beam_columns *c = &s->columns;
  const double least = needed(s, &c->highest).together;
  if (!(least > c->list_least)) return;
  int32_t kept = 0;
  for (int32_t i = 0; i < c->list_size; i++)
    if ((double)c->row.values[c->list[i]] >= least || c->meets[c->list[i]])
      c->list[kept++] = c->list[i];
  c->list_size = kept;
  c->list_least = least;
}

static int compare(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* The children of a node with tokens of the list, in their order. */
static wf_status find_children(wf_beam_search *s, uint32_t node, wf_error *err) {
  const wf_beam_node *at = &s->searcher->nodes[node], *nodes = s->searcher->nodes;
  const uint32_t *sorted = s->searcher->by_token + at->first_child;
  wf__beam_columns *c = &s->columns;
  c->children.size = 0;
  c->children_of = UINT32_MAX;
  uint32_t low = 0;
  for (int32_t i = 0; i < c->list_size; i++) {
    uint32_t high = at->num_children;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (nodes[sorted[middle]].token < c->list[i])
        low = middle + 1;
      else
        high = middle;
    }
    for (; low < at->num_children && nodes[sorted[low]].token == c->list[i]; low++)
      WF__TRY(wf__vec_push(&c->children, sorted[low], "a frame", err));
  }
  if (c->children.size > 1)
    qsort(c->children.data, c->children.size, sizeof *c->children.data, compare);
  c->children_of = node;
  return WF_OK;
}

wf_status wf__beam_columns_turn(wf_beam_search *s, const wf__hypothesis *from, uint32_t place,
                                wf_error *err) {
  wf__beam_columns *c = &s->columns;
  c->bound = c->bounds.data[place];
  c->by_list = false;
  WF__TRY(wf__lm_columns_turn(s, from, place, err));
  wf__beam_columns_raise(s);
  if (s->all_columns || c->by_lm || !looks_at_many(s, from)) return WF_OK;
  if (c->listed == WF__COLUMNS_LISTED)
    shorten_list(s);
  else if (c->listed == WF__COLUMNS_SEEN || c->least_chosen > -INFINITY)
    make_list(s, place);
  else
    c->listed = WF__COLUMNS_SEEN;
  if (c->listed != WF__COLUMNS_LISTED) return WF_OK;
  if (s->searcher->num_nodes > 0) {
    if ((uint32_t)c->list_size > s->searcher->nodes[from->node].num_children / 4) return WF_OK;
    if (c->children_of != from->node) WF__TRY(find_children(s, from->node, err));
  }
  c->by_list = true;
  return WF_OK;
}

/* --- steps ----------------------------------------------------------------------------------- */

static bool wants(const wf_beam_search *s, const wf__hypothesis *from, int32_t column) {
  const wf__beam_columns *c = &s->columns;
  const double score = (double)c->row.values[column];
  if (wf__likely(score < c->least.together && !c->meets[column])) return false;
  if (!wf__beam_is_chosen(s, column)) return false;
  if (score >= c->least.together || column == s->silence) return true;
  const uint64_t key = (uint64_t)from->history << 32 | (uint32_t)column;
  return score >= c->least.alone && wf__map64_find(&c->meetings, key) != WF__MAP64_NONE;
}

/* The first column that is not low, or `end`. */
static int32_t skip_low(const wf__score_row *row, float low, int32_t from, int32_t end) {
  while (from < end && row->values[from] < low) from++;
  return from;
}

int32_t wf__beam_next_column(const wf_beam_search *s, const wf__hypothesis *from, int32_t *at) {
  const wf__beam_columns *c = &s->columns;
  if (c->by_list) {
    while (*at < c->list_size) {
      const int32_t column = c->list[(*at)++];
      if (wants(s, from, column)) return column;
    }
    return -1;
  }
  const wf__score_row *row = c->by_lm ? &c->lm_row : &c->row;
  while (*at < row->num_columns) {
    const int32_t b = *at / BLOCK, end = (b + 1) * BLOCK;
    const float low = c->by_lm ? c->lm_low : c->low;
    if (c->by_lm || !c->block_meets[b])
      *at = row->most[b] < low ? end : skip_low(row, low, *at, end);
    if (*at == end || *at >= row->num_columns) continue;
    if (wants(s, from, (*at)++)) return *at - 1;
  }
  return -1;
}

uint32_t wf__beam_next_child(const wf_beam_search *s, const wf__hypothesis *from, uint32_t *at) {
  const wf__beam_columns *c = &s->columns;
  const wf_beam_node *nodes = s->searcher->nodes, *node = &nodes[from->node];
  const uint64_t num = c->by_list ? c->children.size : node->num_children;
  while (*at < num) {
    const uint32_t child = c->by_list ? c->children.data[*at] : node->first_child + *at;
    ++*at;
    if (wants(s, from, nodes[child].token)) return child;
  }
  return 0;
}
