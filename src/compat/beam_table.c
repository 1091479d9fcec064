/* beam_table.c - hypotheses of a frame: those that are the same become one, and the best stay. */
#include "base/select.h"
#include "compat/beam.h"
#include "math/cost.h"

void wf__beam_begin(wf_beam_search *s) {
  s->next.size = 0;
  s->best = s->floor = s->bar = -INFINITY;
  s->next_check = 2 * (uint64_t)s->options.beam_size;
  wf__map64_clear(&s->merged);
  wf__histories_begin_frame(&s->histories);
}

/* --- recombination --------------------------------------------------------------------------- */

/* What tells hypotheses apart: history, node, last token. Within a word the node has the token. */
static uint64_t key_of(const wf_beam_searcher *s, const wf__hypothesis *h) {
  uint32_t place = h->node != 0 ? h->node : s->num_nodes + (uint32_t)h->token;
  return (uint64_t)h->history << 32 | place << 1 | h->after_blank;
}

static double combined(const wf_beam_search *s, double a, double b) {
  return s->options.sum_alignments ? -wf__log_add(-a, -b) : fmax(a, b);
}

static inline wf_status merge(wf_beam_search *s, const wf__hypothesis *h, bool spelled, bool *fresh,
                              wf_error *err) {
  uint32_t at = 0;
  WF__TRY(wf__map64_insert(&s->merged, key_of(s->searcher, h), (uint32_t)s->next.size, &at, fresh,
                           "a frame", err));
  if (*fresh) return wf__vec_push(&s->next, *h, "a frame", err);
  wf__hypothesis *other = &s->next.data[at];
  const double sum = spelled ? combined(s, other->token_score, h->token_score)
                             : combined(s, other->score, h->score);
  if (h->highest > other->highest) *other = *h;
  *(spelled ? &other->token_score : &other->score) = sum;
  return WF_OK;
}

wf_status wf__beam_add_spelled(wf_beam_search *s, const wf__hypothesis *h, wf_error *err) {
  bool fresh;
  return merge(s, h, true, &fresh, err);
}

static void raise_floor(wf_beam_search *s, double floor) {
  if (floor > s->floor) s->floor = floor;
}

static void raise_best(wf_beam_search *s, double score) {
  if (score <= s->best) return;
  s->best = score;
  raise_floor(s, score - (double)s->options.beam);
  wf__beam_columns_raise(s);
}

wf_status wf__beam_nth_best(wf_beam_search *s, uint64_t count, double *out, wf_error *err) {
  const uint64_t num = s->next.size;
  s->keys.size = 0;
  WF__TRY(wf__vec_grow(&s->keys, num, "a frame", err));
  for (uint64_t k = 0; k < num; k++) s->keys.data[k] = wf__descending_score(s->next.data[k].score);
  *out = wf__score_of_descending(wf__select_smallest(s->keys.data, num, count));
  return WF_OK;
}

/* If there are more than beam_size hypotheses, those that come later must be as good as the last of
 * the best ones. Sums still grow: what comes later may be lower if it adds to one. */
static wf_status check_size(wf_beam_search *s, wf_error *err) {
  double last = 0;
  if (s->next.size < s->next_check) return WF_OK;
  s->next_check = 2 * s->next.size;
  WF__TRY(wf__beam_nth_best(s, (uint64_t)s->options.beam_size, &last, err));
  if (s->options.sum_alignments)
    s->bar = fmax(s->bar, last);
  else
    raise_floor(s, last);
  wf__beam_columns_raise(s);
  return WF_OK;
}

wf_status wf__beam_add(wf_beam_search *s, wf__hypothesis *h, wf_error *err) {
  bool fresh = false;
  if (wf__beam_too_low(s, h->score)) return WF_OK;
  raise_best(s, h->score);
  h->highest = h->score;
  WF__TRY(merge(s, h, false, &fresh, err));
  return fresh ? check_size(s, err) : WF_OK;
}

/* --- the best -------------------------------------------------------------------------------- */

/* The most best ones of keys: all below `last`, and the first `ties` of those equal to it. */
struct cut {
  uint64_t last, ties;
};

/* Reorders the keys. 0 < most <= count. */
static struct cut cut_at(uint64_t *keys, uint64_t count, uint64_t most) {
  struct cut cut = {wf__select_smallest(keys, count, most), most};
  for (uint64_t k = 0; k < most; k++) cut.ties -= keys[k] < cut.last;
  return cut;
}

static bool within(struct cut *cut, uint64_t key) {
  if (key != cut->last) return key < cut->last;
  if (cut->ties == 0) return false;
  cut->ties--;
  return true;
}

static wf_status open_frame(wf_beam_search *s, uint64_t size, wf_error *err) {
  WF__TRY(wf__vec_push(&s->begins, s->kept.size, "frames", err));
  return wf__vec_grow(&s->kept, size, "hypotheses", err);
}

static wf_status push(wf_beam_search *s, wf__hypothesis *h, wf_error *err) {
  WF__TRY(wf__history_number(&s->histories, &h->history, err));
  s->kept.data[s->kept.size++] = *h;
  return WF_OK;
}

wf_status wf__beam_keep(wf_beam_search *s, wf_error *err) {
  uint64_t num = 0, most = (uint64_t)s->options.beam_size;
  for (uint64_t k = 0; k < s->next.size; k++) raise_best(s, s->next.data[k].score); /* of a sum */
  s->keys.size = 0;
  WF__TRY(wf__vec_grow(&s->keys, s->next.size, "a frame", err));
  for (uint64_t k = 0; k < s->next.size; k++) {
    if (wf__beam_too_low(s, s->next.data[k].score)) continue;
    s->keys.data[num] = wf__descending_score(s->next.data[k].score);
    s->next.data[num++] = s->next.data[k];
  }
  struct cut cut = {UINT64_MAX, num};
  if (num > most) cut = cut_at(s->keys.data, num, most);
  const uint64_t begin = s->kept.size;
  WF__TRY(open_frame(s, num < most ? num : most, err));
  for (uint64_t k = 0; k < num; k++) {
    if (!within(&cut, wf__descending_score(s->next.data[k].score))) continue;
    WF__TRY(push(s, &s->next.data[k], err));
    wf__hypothesis *first = &s->kept.data[begin], *added = &s->kept.data[s->kept.size - 1];
    if (added->score > first->score) {
      wf__hypothesis swap = *first;
      *first = *added;
      *added = swap;
    }
  }
  s->num_frames++;
  return WF_OK;
}

static int compare(const void *a, const void *b) {
  const wf__rank *x = a, *y = b;
  if (x->score != y->score) return x->score < y->score ? 1 : -1;
  return (x->order > y->order) - (x->order < y->order);
}

void wf__beam_sort(wf__rank *ranks, uint64_t num) {
  if (num > 1) qsort(ranks, num, sizeof *ranks, compare);
}

/* Keeps the ranks of at least this score. */
static void keep_ranks(wf_beam_search *s, double least) {
  uint64_t num = 0;
  for (uint64_t k = 0; k < s->ranks.size; k++)
    if (s->ranks.data[k].score >= least) s->ranks.data[num++] = s->ranks.data[k];
  s->ranks.size = num;
}

wf_status wf__beam_keep_sorted(wf_beam_search *s, wf_error *err) {
  const uint64_t most = (uint64_t)s->options.beam_size;
  double best = -INFINITY, last = 0;
  for (uint64_t k = 0; k < s->next.size; k++) best = fmax(best, s->next.data[k].score);
  keep_ranks(s, best - (double)s->options.beam);
  if (s->next.size > most) {
    WF__TRY(wf__beam_nth_best(s, most, &last, err));
    keep_ranks(s, last);
  }
  wf__beam_sort(s->ranks.data, s->ranks.size);
  if (s->ranks.size > most) s->ranks.size = most;
  WF__TRY(open_frame(s, s->ranks.size, err));
  for (uint64_t k = 0; k < s->ranks.size; k++)
    WF__TRY(push(s, &s->next.data[s->ranks.data[k].place], err));
  s->num_frames++;
  return WF_OK;
}
