/* align_ctc.c - forced alignment: the best CTC path of given tokens.
 *
 * With L tokens there are L + 1 places. Place i has two states: the blank before token i, and token
 * i itself (place L only has the blank). In a frame, token i follows itself, its blank, or token i
 * - 1 if that is another token; blank i follows itself or token i - 1 (Graves et al. 2006).
 *
 * The frames are cut into segments. A first pass stores the sums of all states at the start of each
 * segment. Then, from the last segment to the first, the sums are computed again with back-pointers
 * and the path is traced through the segment. A path moves on by at most one place per frame, so
 * the segment's frames bound how many places are computed again.
 *
 * If there are many places, the first pass keeps only those that the best path may use. A beam
 * search finds some path and its score. No continuation scores more than the sum of the best score
 * of each remaining frame. So a place whose sum with that bound is below the score of the path
 * found is not on the best path, nor on one as good, and is dropped. */
#include "base/interrupt.h"
#include "decode/aligner.h"
#include "math/score.h"

/* Frames with gaps take longer, so the check comes more often. */
static wf_status check_interrupt(const wf__aligner *a, int64_t frame, wf_error *err) {
  return wf__interrupted_at((uint64_t)frame * (a->gaps.count > 0 ? 32 : 1), err);
}

/* --- scores ------------------------------------------------------------------------------ */

/* The scores of a frame. Only the used columns are valid. */
static const float *read_row(wf__aligner *a, int64_t frame) {
  const wf_scores *s = &a->input->scores;
  if (s->dtype == WF_FLOAT32) return (const float *)s->data + frame * s->stride;
  for (size_t c = 0; c < a->num_used; c++) a->row[a->used[c]] = wf__score_at(s, frame, a->used[c]);
  return a->row;
}

/* The best of the used scores of a frame. Sets `*any_large` if the size of one is not below 1e20.
 */
static float best_score(const wf__aligner *a, const float *row, bool *any_large) {
  float best[WF__ALIGN_USED_STEP];
  int num_large = 0;
  for (int k = 0; k < WF__ALIGN_USED_STEP; k++) best[k] = -INFINITY;
  for (size_t c = 0; c < a->num_used; c += WF__ALIGN_USED_STEP) {
    for (int k = 0; k < WF__ALIGN_USED_STEP; k++) {
      float score = row[a->used[c + (size_t)k]];
      best[k] = score > best[k] ? score : best[k];
      num_large += !(fabsf(score) < 1e20f);
    }
  }
  for (int k = 1; k < WF__ALIGN_USED_STEP; k++) best[0] = best[k] > best[0] ? best[k] : best[0];
  *any_large = num_large > 0;
  return best[0];
}

/* Checks all scores that are used, and finds the best of each frame. */
static wf_status scan_scores(wf__aligner *a, wf_error *err) {
  for (int64_t t = 0; t < a->out->num_frames; t++) {
    const float *row = read_row(a, t);
    bool any_large;
    WF__TRY(check_interrupt(a, t, err));
    a->best[t] = best_score(a, row, &any_large);
    for (size_t c = 0; c < a->num_used && any_large; c++)
      if (!wf__score_usable(row[a->used[c]]))
        return wf__fail(err, WF_ERR_FORMAT, "score %g in frame %lld, column %d",
                        (double)row[a->used[c]], (long long)t, a->used[c]);
  }
  a->bound[a->out->num_frames] = 0;
  for (int64_t t = a->out->num_frames; t-- > 0;) a->bound[t] = a->bound[t + 1] + (double)a->best[t];
  return WF_OK;
}

/* --- the sums of a frame ----------------------------------------------------------------- */

/* Computes the places of `to`. `back`: back-pointers of its first place, or NULL. */
static void advance(wf__aligner *a, int64_t frame, wf__align_window to, uint8_t *back,
                    uint8_t *gap_back) {
  wf__align_frame f = {.scores = read_row(a, frame),
                       .num_columns = a->input->scores.num_columns,
                       .blank = a->options->blank,
                       .column = a->column,
                       .skip = a->skip,
                       .now = a->now,
                       .next = a->next,
                       .before = to.first > a->valid.first ? a->now.token[to.first - 1] : -INFINITY,
                       .back = back};
  for (; a->valid.end < to.end; a->valid.end++)
    a->now.token[a->valid.end] = a->now.blank[a->valid.end] = -INFINITY;
  a->advance(&f, to.first, to.end);
  if (a->gaps.count > 0)
    wf__align_gaps_advance(
        &a->gaps, &f, wf__align_has_garbage(a) ? a->best[frame] - a->options->garbage : -INFINITY,
        gap_back);
}

/* The computed sums, of places `w`, become the current ones. */
static void finish_frame(wf__aligner *a, wf__align_window w) {
  wf__align_sums now = a->now;
  float *garbage = a->gaps.now;
  a->now = a->next;
  a->next = now;
  a->gaps.now = a->gaps.next;
  a->gaps.next = garbage;
  a->valid = w;
}

typedef float float4 __attribute__((vector_size(16), may_alias));
typedef int32_t int4 __attribute__((vector_size(16)));

/* --- first pass -------------------------------------------------------------------------- */

/* The first place from which the tokens left fit into the frames left. */
static uint32_t first_in_time(const wf__aligner *a, int64_t frame) {
  int64_t most = a->out->num_frames - frame + 1, num_tokens = (int64_t)a->input->num_tokens;
  return a->gaps.count == 0 && num_tokens > most
             ? wf__align_whole_blocks((uint64_t)(num_tokens - most))
             : 0;
}

/* Windows of all places that can be reached in time. */
static void set_whole_windows(wf__aligner *a) {
  for (int64_t t = 0; t <= a->out->num_frames; t++) {
    uint64_t end = (uint64_t)t + WF__ALIGN_BLOCK;
    a->windows[t] = (wf__align_window){first_in_time(a, t), a->gaps.count > 0 || end > a->padded
                                                                ? (uint32_t)a->padded
                                                                : wf__align_whole_blocks(end)};
  }
}

static bool any_above(wf__align_sums sums, uint32_t block, float least) {
  const float4 *token = (const float4 *)(const void *)(sums.token + block),
               *blank = (const float4 *)(const void *)(sums.blank + block),
               all_least = {least, least, least, least};
  int4 above = {0};
  for (int i = 0; i < WF__ALIGN_BLOCK / 4; i++)
    above |= (token[i] >= all_least) | (blank[i] >= all_least);
  return (above[0] | above[1] | above[2] | above[3]) != 0;
}

/* Drops blocks at both ends of a window if all their sums are below `least`. */
static void shrink(wf__align_sums sums, wf__align_window *w, float least) {
  while (w->first < w->end && !any_above(sums, w->end - WF__ALIGN_BLOCK, least))
    w->end -= WF__ALIGN_BLOCK;
  while (w->first < w->end && !any_above(sums, w->first, least)) w->first += WF__ALIGN_BLOCK;
}

static void store_start(wf__aligner *a, int64_t frame, wf__align_window w) {
  float *start = a->starts + (size_t)(frame / WF__ALIGN_SEGMENT) * a->start_size;
  size_t size = w.end - w.first;
  memcpy(start + w.first, a->now.token + w.first, size * sizeof *start);
  memcpy(start + a->padded + w.first, a->now.blank + w.first, size * sizeof *start);
  if (a->gaps.count > 0) memcpy(start + 2 * a->padded, a->gaps.now, a->gaps.count * sizeof *start);
}

static void load_start(wf__aligner *a, int64_t frame, wf__align_window w) {
  const float *start = a->starts + (size_t)(frame / WF__ALIGN_SEGMENT) * a->start_size;
  size_t size = w.end - w.first;
  memcpy(a->now.token + w.first, start + w.first, size * sizeof *start);
  memcpy(a->now.blank + w.first, start + a->padded + w.first, size * sizeof *start);
  if (a->gaps.count > 0) memcpy(a->gaps.now, start + 2 * a->padded, a->gaps.count * sizeof *start);
  a->valid = w;
}

/* The state before the first frame: the first blank. */
static void begin_pass(wf__aligner *a) {
  a->valid = (wf__align_window){0, a->gaps.count > 0 ? (uint32_t)a->padded : WF__ALIGN_BLOCK};
  for (uint32_t i = 0; i < a->valid.end; i++) a->now.token[i] = a->now.blank[i] = -INFINITY;
  for (size_t w = 0; w < a->gaps.count; w++) a->gaps.now[w] = -INFINITY;
  a->now.blank[0] = 0;
}

/* Computes the sums before frame `end`. */
static wf_status pass_whole(wf__aligner *a, int64_t end, wf_error *err) {
  begin_pass(a);
  set_whole_windows(a);
  for (int64_t t = 0; t < end; t++) {
    WF__TRY(check_interrupt(a, t, err));
    if (t % WF__ALIGN_SEGMENT == 0) store_start(a, t, a->windows[t]);
    advance(a, t, a->windows[t + 1], NULL, NULL);
    finish_frame(a, a->windows[t + 1]);
  }
  store_start(a, end, a->windows[end]);
  return WF_OK;
}

static float sum_at(const float *sums, wf__align_window valid, size_t place) {
  return place >= valid.first && place < valid.end ? sums[place] : -INFINITY;
}

/* The last token comes before the blank, and that before garbage. */
static float choose_end(const wf__aligner *a, wf__align_state *at) {
  size_t last = a->num_places - 1;
  float token = sum_at(a->now.token, a->valid, last - 1),
        blank = sum_at(a->now.blank, a->valid, last),
        garbage = a->gaps.count > 0 ? a->gaps.now[a->gaps.count - 1] : -INFINITY;
  if (last > 0 && token >= blank && token >= garbage) {
    *at = (wf__align_state){last - 1, WF__AT_TOKEN};
    return token;
  }
  *at = (wf__align_state){last, blank >= garbage ? WF__AT_BLANK : WF__AT_GARBAGE};
  return blank >= garbage ? blank : garbage;
}

static float best_sum(wf__align_sums sums, wf__align_window w) {
  float best = -INFINITY;
  for (uint32_t i = w.first; i < w.end; i++) {
    best = sums.token[i] > best ? sums.token[i] : best;
    best = sums.blank[i] > best ? sums.blank[i] : best;
  }
  return best;
}

/* Drops places that cannot be on a path with at least the score `least`. With `beam` > 0, `least`
 * is set every few frames, this far below what the best place can reach. Sets `*score` to that of
 * the best path found; -infinity: none. */
static wf_status pass_pruned(wf__aligner *a, double least, double beam, float *score,
                             wf_error *err) {
  enum { FEW_FRAMES = 8 };
  wf__align_state unused;
  int64_t end = a->out->num_frames;
  begin_pass(a);
  wf__align_window w = {0, WF__ALIGN_BLOCK};
  a->windows[0] = w;
  *score = -INFINITY;
  for (int64_t t = 0; t < end; t++) {
    uint32_t in_time = first_in_time(a, t + 1);
    WF__TRY(check_interrupt(a, t, err));
    if (t % WF__ALIGN_SEGMENT == 0) store_start(a, t, w);
    if (w.end < a->padded && (double)a->now.token[w.end - 1] >= least - a->bound[t])
      w.end += WF__ALIGN_BLOCK;
    if (w.first < in_time) w.first = in_time;
    if (w.first >= w.end) return WF_OK;
    advance(a, t, w, a->is_short ? a->back + (size_t)t * a->back_size + w.first : NULL, NULL);
    if (beam > 0 && t % FEW_FRAMES == 0)
      least = (double)best_sum(a->next, w) + a->bound[t + 1] - beam;
    shrink(a->next, &w, (float)(least - a->bound[t + 1]));
    if (w.first == w.end) return WF_OK;
    finish_frame(a, w);
    a->windows[t + 1] = w;
  }
  *score = choose_end(a, &unused);
  return WF_OK;
}

/* A bound of the error of a path's sum in float32, for paths up to `range` below the best. */
static double rounding(const wf__aligner *a, double range) {
  for (int64_t t = 0; t < a->out->num_frames; t++) range += fabs((double)a->best[t]);
  return range * (double)a->out->num_frames * 0x1p-22;
}

/* Finds any path with a beam, and then those that are as good or better. */
static wf_status pass_narrow(wf__aligner *a, wf_error *err) {
  float found = -INFINITY, score;
  for (double beam = 64; found == -INFINITY && beam < 5000; beam *= 4)
    WF__TRY(pass_pruned(a, 0, beam, &found, err));
  double least = (double)found;
  if (found > -INFINITY) least -= rounding(a, a->bound[0] - least);
  return pass_pruned(a, least, 0, &score, err);
}

/* --- the path ---------------------------------------------------------------------------- */

/* The windows of a segment, cut to the places from which a path can reach `at` in its last frame.
 * If `at` is the blank at the end, the path may also end in the token before. */
static wf__align_window cut_window(const wf__aligner *a, int64_t frame, int64_t end, size_t place) {
  wf__align_window w = a->windows[frame];
  uint64_t most = (uint64_t)(end - frame) + 1;
  uint32_t first = place > most && a->gaps.count == 0 ? wf__align_whole_blocks(place - most) : 0,
           last = wf__align_whole_blocks(place) + WF__ALIGN_BLOCK;
  return (wf__align_window){first > w.first ? first : w.first, last < w.end ? last : w.end};
}

/* Computes the sums of a segment with back-pointers. `low`: the place of their first column. */
static wf_status compute_segment(wf__aligner *a, int64_t start, int64_t end, size_t place,
                                 size_t low, wf_error *err) {
  load_start(a, start, cut_window(a, start, end, place));
  for (int64_t t = start; t < end; t++) {
    wf__align_window to = cut_window(a, t + 1, end, place);
    size_t row = (size_t)(t - start);
    WF__TRY(check_interrupt(a, t, err));
    advance(a, t, to, a->back + row * a->back_size + (to.first - low),
            a->gap_back + row * a->gaps.count);
    finish_frame(a, to);
  }
  return WF_OK;
}

static wf_status add_garbage(wf__aligner *a, int64_t frame, wf_error *err) {
  float score = a->best[frame] - a->options->garbage;
  wf_aligned_token *last = a->garbage.size > 0 ? &a->garbage.data[a->garbage.size - 1] : NULL;
  if (last != NULL && last->start_frame == frame + 1) {
    last->start_frame = (int32_t)frame;
    last->log_prob += score;
    return WF_OK;
  }
  wf_aligned_token span = {-1, (int32_t)frame, (int32_t)frame + 1, score};
  return wf__vec_push(&a->garbage, span, "an alignment", err);
}

/* Follows the back-pointers of a segment from the state in its last frame. Leaves in `*at` the
 * state in the frame before the segment. */
static wf_status trace_segment(wf__aligner *a, int64_t start, int64_t end, size_t low,
                               wf__align_state *at, wf_error *err) {
  for (int64_t t = end; t-- > start;) {
    size_t row = (size_t)(t - start);
    if (at->kind == WF__AT_GARBAGE) WF__TRY(add_garbage(a, t, err));
    if (at->kind == WF__AT_TOKEN) {
      wf_aligned_token *token = &a->out->tokens[at->place];
      if (token->end_frame == 0) token->end_frame = (int32_t)t + 1;
      token->start_frame = (int32_t)t;
    }
    if (a->gaps.count > 0 &&
        wf__align_gaps_trace(&a->gaps, a->gap_back + row * a->gaps.count, t, at, a->out->tokens))
      continue;
    int back = a->back[row * a->back_size + at->place - low];
    if (at->kind == WF__AT_BLANK) {
      if ((back & WF__BLANK_FROM_TOKEN) != 0) *at = (wf__align_state){at->place - 1, WF__AT_TOKEN};
    } else if ((back & 3) == WF__TOKEN_FROM_BLANK) {
      at->kind = WF__AT_BLANK;
    } else if ((back & 3) == WF__TOKEN_FROM_TOKEN) {
      at->place--;
    }
  }
  return WF_OK;
}

static wf_status find_path(wf__aligner *a, wf_error *err) {
  int64_t end = a->out->num_frames;
  wf__align_state at = {a->num_places - 1, WF__AT_BLANK};
  for (int64_t start = (end - 1) / WF__ALIGN_SEGMENT * WF__ALIGN_SEGMENT; start >= 0;
       start -= WF__ALIGN_SEGMENT) {
    size_t frames = (size_t)(end - start), low = at.place > frames + 1 && a->gaps.count == 0
                                                     ? wf__align_whole_blocks(at.place - frames - 1)
                                                     : 0;
    if (!a->is_short) WF__TRY(compute_segment(a, start, end, at.place, low, err));
    if (end == a->out->num_frames) a->out->log_prob = choose_end(a, &at);
    if (a->out->log_prob == -INFINITY)
      return wf__fail(err, WF_ERR_FORMAT,
                      "no alignment: each has a score of -infinity (probability 0) in some frame");
    WF__TRY(trace_segment(a, start, end, low, &at, err));
    end = start;
  }
  return WF_OK;
}

/* Sums the scores of tokens, and hands over the spans of garbage in the order of time. */
static void finish_path(wf__aligner *a) {
  wf_alignment *out = a->out;
  for (size_t i = 0; i < out->num_tokens; i++) {
    wf_aligned_token *token = &out->tokens[i];
    for (int64_t t = token->start_frame; t < token->end_frame; t++)
      token->log_prob += wf__score_at(&a->input->scores, t, token->column);
  }
  out->garbage = a->garbage.data;
  out->num_garbage = a->garbage.size;
  a->garbage.data = NULL;
  for (size_t i = 0; i < out->num_garbage / 2; i++) {
    wf_aligned_token one = out->garbage[i], *other = &out->garbage[out->num_garbage - 1 - i];
    out->garbage[i] = *other;
    *other = one;
  }
}

wf_status wf__align_path(wf__aligner *a, wf_error *err) {
  WF__TRY(scan_scores(a, err));
  if (a->num_places > WF__ALIGN_FEW_PLACES && a->gaps.count == 0 && a->bound[0] > -INFINITY) {
    a->is_short = a->out->num_frames <= WF__ALIGN_SEGMENT;
    WF__TRY(pass_narrow(a, err));
  } else {
    WF__TRY(pass_whole(a, (a->out->num_frames - 1) / WF__ALIGN_SEGMENT * WF__ALIGN_SEGMENT, err));
  }
  WF__TRY(find_path(a, err));
  finish_path(a);
  return WF_OK;
}
