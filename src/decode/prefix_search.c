/* prefix_search.c - hypotheses frame by frame. prefix_texts.c has texts, prefixes and their scores.
 */
#include "decode/prefix_search.h"

#include <math.h>

#include "base/interrupt.h"
#include "base/select.h"
#include "decode/prefix_texts.h"
#include "decode/score_row.h"
#include "math/cost.h"

/* Of the alignments that a hypothesis sums over, the best gives the frames. */
typedef struct hypothesis {
  uint32_t prefix, spans; /* spans: of the complete words, newest first; NO_SPAN: none. At the end
                `prefix` is a text, and `begun` says whether a word has begun after it */
  bool begun;
  int32_t last;          /* token of the last frame; -1: none yet */
  int32_t start, end;    /* frames of the part of a word */
  double log_prob, best; /* the sum over alignments, and the best of the sums that went into it */
  double total;          /* with the score of the prefix */
  uint64_t place;        /* tells equal ones apart */
} hypothesis;
typedef WF__VEC(hypothesis) hypothesis_vec;

typedef struct span {
  uint32_t before;
  int32_t start, end;
} span;
#define NO_SPAN UINT32_MAX

typedef struct search {
  wf__prefix_texts texts;
  const wf_prefix_searcher *searcher;
  const wf_prefix_options *options;
  const wf_scores *scores;
  hypothesis_vec now, next;
  WF__VEC(span) spans;
  wf__map64 moves;  /* prefix << 32 | token -> prefix */
  wf__map64 merged; /* prefix << 32 | token + 1 -> place in `next` */
  wf__map64 seen;   /* for merge_histories and for equal texts */
  wf__score_row row;
  int32_t *chosen;        /* [num_tokens] tokens of the frame */
  uint8_t *in_hotword;    /* [num_tokens] is the token a part of a hotword? */
  WF__VEC(uint64_t) keys; /* scores, for selection */
  bool all_columns;
} search;
enum { NOT_ASKED, NO, YES };

/* --- a frame -------------------------------------------------------------------------------- */

static wf_status add_span(search *s, hypothesis *h, int32_t start, int32_t end, wf_error *err) {
  WF__TRY(wf__vec_push(&s->spans, ((span){h->spans, start, end}), "frames of words", err));
  h->spans = (uint32_t)(s->spans.size - 1);
  return WF_OK;
}

/* The hypothesis takes a token that is neither the blank nor the last one. */
static wf_status take_token(search *s, hypothesis *h, int32_t token, int32_t frame, wf_error *err) {
  const wf_prefix_token *t = &s->searcher->tokens[token];
  bool has_text = t->text[0] != 0, in_word = wf__prefix_has_part(&s->texts, h->prefix);
  if (t->starts_word && in_word) {
    WF__TRY(add_span(s, h, h->start, h->end, err));
    in_word = false;
  }
  if (has_text && !in_word) h->start = frame;
  if (has_text) h->end = frame + 1;
  if (t->ends_word && (has_text || in_word)) WF__TRY(add_span(s, h, h->start, h->end, err));
  uint64_t key = (uint64_t)h->prefix << 32 | (uint32_t)token;
  uint32_t to = wf__map64_find(&s->moves, key);
  if (to == WF__MAP64_NONE) {
    WF__TRY(wf__prefix_move(&s->texts, h->prefix, t, &to, err));
    WF__TRY(wf__map64_insert(&s->moves, key, to, &to, NULL, "prefixes", err));
  }
  h->prefix = to;
  return WF_OK;
}

/* Appends a hypothesis, or adds it to the one with the same key. */
static wf_status merge(wf__map64 *places, uint64_t key, const hypothesis *h, hypothesis_vec *to,
                       wf_error *err) {
  uint32_t at = 0;
  bool fresh = false;
  WF__TRY(wf__map64_insert(places, key, (uint32_t)to->size, &at, &fresh, "hypotheses", err));
  if (fresh) return wf__vec_push(to, *h, "hypotheses", err);
  hypothesis *other = &to->data[at];
  double sum = -wf__log_add(-other->log_prob, -h->log_prob);
  if (h->best > other->best) *other = *h;
  other->log_prob = sum;
  return WF_OK;
}

static wf_status take(search *s, const hypothesis *from, int32_t token, int32_t frame,
                      wf_error *err) {
  hypothesis h = *from;
  h.log_prob += (double)s->row.values[token];
  h.best += (double)s->row.values[token];
  if (token == h.last && token != s->searcher->blank) {
    if (wf__prefix_has_part(&s->texts, h.prefix)) h.end = frame + 1;
  } else if (token != s->searcher->blank) {
    WF__TRY(take_token(s, &h, token, frame, err));
  }
  h.last = token;
  uint64_t key = (uint64_t)h.prefix << 32 | (uint32_t)(h.last + 1);
  return merge(&s->merged, key, &h, &s->next, err);
}

/* All hypotheses take each of the chosen tokens. What a token adds to `next` is complete then,
 * since no other token gives the same hypotheses. Equal ones are in the order of tokens, those of
 * the first round first. */
static wf_status expand(search *s, int32_t frame, int32_t num_chosen, bool is_first,
                        wf_error *err) {
  const uint64_t first = s->next.size, later = is_first ? 0 : (uint64_t)1 << 63;
  for (int32_t i = 0; i < num_chosen; i++)
    for (uint64_t k = 0; k < s->now.size; k++)
      WF__TRY(take(s, &s->now.data[k], s->chosen[i], frame, err));
  for (uint64_t k = first; k < s->next.size; k++) {
    hypothesis *h = &s->next.data[k];
    h->total = h->log_prob + wf__prefix_score(&s->texts, h->prefix);
    h->place = later | (uint64_t)h->last << 32 | (uint32_t)k;
  }
  return WF_OK;
}

/* --- columns that can survive ---------------------------------------------------------------- */

/* What is lower than this is not kept: of `next`, which may still grow. */
static wf_status find_cutoff(search *s, double *out, wf_error *err) {
  const uint64_t num = s->next.size, width = (uint64_t)s->options->beam_width;
  *out = -INFINITY;
  for (uint64_t k = 0; k < num; k++) *out = fmax(*out, s->next.data[k].total);
  *out -= (double)s->options->beam;
  if (num < width) return WF_OK;
  s->keys.size = 0;
  WF__TRY(wf__vec_grow(&s->keys, num, "a frame", err));
  for (uint64_t k = 0; k < num; k++) s->keys.data[k] = wf__descending_score(s->next.data[k].total);
  *out = fmax(*out, wf__score_of_descending(wf__select_smallest(s->keys.data, num, width)));
  return WF_OK;
}

/* A token with a lower score gives no hypothesis that reaches the cutoff, not even if all
 * hypotheses give the same one. -infinity: not known. */
static double least_score(const search *s, double cutoff) {
  double cost = INFINITY;
  for (uint64_t k = 0; k < s->now.size; k++) {
    const hypothesis *h = &s->now.data[k];
    cost = wf__log_add(cost, -(h->log_prob + wf__prefix_most(&s->texts, h->prefix)));
  }
  const double rounding = 1e-9 * (1 + fabs(cost) + fabs(cutoff)), least = cutoff + cost - rounding;
  return isfinite(cost) && isfinite(cutoff) ? least : -INFINITY;
}

static bool in_hotword(search *s, int32_t token) {
  if (s->in_hotword[token] == NOT_ASKED) {
    const char *text = s->searcher->tokens[token].text;
    s->in_hotword[token] = *text != 0 && wf__hotwords_have(&s->texts.hotwords, text) ? YES : NO;
  }
  return s->in_hotword[token] == YES;
}

/* Chooses the tokens below `done` that can survive. */
static wf_status choose_others(search *s, float done, int32_t *num_chosen, wf_error *err) {
  const double allowed = (double)s->options->min_token_log_prob;
  double cutoff, least = -INFINITY;
  WF__TRY(find_cutoff(s, &cutoff, err));
  if (!s->all_columns) least = least_score(s, cutoff);
  const double hot = s->texts.hotword_most;
  int32_t listed = wf__score_row_list(&s->row, fmax(least - hot, allowed), s->chosen);
  *num_chosen = 0;
  for (int32_t i = 0; i < listed; i++) {
    const int32_t token = s->chosen[i];
    const float score = s->row.values[token];
    if (score < done && ((double)score >= least || in_hotword(s, token)))
      s->chosen[(*num_chosen)++] = token;
  }
  return WF_OK;
}

/* Of the chosen tokens, keeps those of at least this score. */
static int32_t keep_high(search *s, int32_t num_chosen, float least) {
  int32_t kept = 0;
  for (int32_t i = 0; i < num_chosen; i++)
    if (s->row.values[s->chosen[i]] >= least) s->chosen[kept++] = s->chosen[i];
  return kept;
}

/* The few best tokens come first. They give a cutoff, with which four times as many come, until the
 * rest is few. */
static wf_status expand_all(search *s, int32_t frame, wf_error *err) {
  enum { FEW = 8 };
  const float allowed = s->options->min_token_log_prob;
  s->next.size = 0;
  wf__map64_clear(&s->merged);
  WF__TRY(wf__score_row_read(&s->row, s->scores, frame, err));
  const int32_t num = s->searcher->num_tokens;
  float done = allowed;
  if (num > FEW) done = fmaxf(done, wf__score_row_highest(&s->row, FEW));
  int32_t num_chosen = wf__score_row_list(&s->row, (double)done, s->chosen);
  WF__TRY(expand(s, frame, num_chosen, true, err));
  for (int64_t most = 4 * FEW; done > allowed; most *= 4) {
    float least = allowed;
    WF__TRY(choose_others(s, done, &num_chosen, err));
    if (num_chosen > most && !s->all_columns) {
      least = wf__score_row_highest(&s->row, (int32_t)most);
      num_chosen = keep_high(s, num_chosen, least);
    }
    WF__TRY(expand(s, frame, num_chosen, false, err));
    done = least;
  }
  return WF_OK;
}

/* --- the best -------------------------------------------------------------------------------- */

/* Best first; equal ones in the order in which they were found. Numbers of prefixes would depend on
 * columns that were looked at in vain. */
static int compare(const void *a, const void *b) {
  const hypothesis *x = a, *y = b;
  if (x->total != y->total) return x->total < y->total ? 1 : -1;
  return (x->place > y->place) - (x->place < y->place);
}

/* Keeps the best hypotheses of `next`, best first. */
static void keep_best(const wf_prefix_options *options, hypothesis_vec *next) {
  double best = -INFINITY;
  for (uint64_t k = 0; k < next->size; k++)
    if (next->data[k].total > best) best = next->data[k].total;
  uint64_t kept = 0;
  for (uint64_t k = 0; k < next->size; k++) {
    if (!(next->data[k].total >= best - (double)options->beam)) continue;
    next->data[kept++] = next->data[k];
  }
  if (kept > 1) qsort(next->data, kept, sizeof *next->data, compare);
  next->size = kept < (uint64_t)options->beam_width ? kept : (uint64_t)options->beam_width;
}

/* Drops hypotheses that differ from a better one only in words that no score depends on any more.
 */
static wf_status merge_histories(search *s, wf_error *err) {
  uint64_t kept = 0;
  wf__map64_clear(&s->seen);
  for (uint64_t k = 0; k < s->next.size; k++) {
    const hypothesis *h = &s->next.data[k];
    uint64_t key = wf__hash_combine(wf__prefix_history(&s->texts, h->prefix), (uint32_t)h->last);
    uint32_t at = 0;
    bool fresh = false;
    WF__TRY(wf__map64_insert(&s->seen, key & INT64_MAX, 0, &at, &fresh, "a frame", err));
    if (fresh) s->next.data[kept++] = *h;
  }
  s->next.size = kept;
  return WF_OK;
}

static wf_status do_frame(search *s, int32_t frame, wf_error *err) {
  WF__TRY(expand_all(s, frame, err));
  keep_best(s->options, &s->next);
  if (s->options->merge_histories) WF__TRY(merge_histories(s, err));
  wf__vec_swap(&s->now, &s->next);
  return WF_OK;
}

/* --- the end -------------------------------------------------------------------------------- */

/* A text may have two hypotheses: a word has begun after it, or not. Keeps the better one. */
static wf_status drop_equal_texts(search *s, wf_error *err) {
  uint64_t kept = 0;
  wf__map64_clear(&s->seen);
  for (uint64_t k = 0; k < s->next.size; k++) {
    uint32_t at = 0;
    bool fresh = false;
    WF__TRY(wf__map64_insert(&s->seen, s->next.data[k].prefix, 0, &at, &fresh, "texts", err));
    if (fresh) s->next.data[kept++] = s->next.data[k];
  }
  s->next.size = kept;
  return WF_OK;
}

/* Ends words. Hypotheses with the same text become one. */
static wf_status finish(search *s, wf_error *err) {
  s->next.size = 0;
  wf__map64_clear(&s->seen);
  for (uint64_t k = 0; k < s->now.size; k++) {
    hypothesis h = s->now.data[k];
    if (wf__prefix_has_part(&s->texts, h.prefix)) WF__TRY(add_span(s, &h, h.start, h.end, err));
    h.begun = wf__prefix_has_begun(&s->texts, h.prefix) && s->searcher->lm != NULL;
    WF__TRY(wf__prefix_finish(&s->texts, h.prefix, &h.prefix, err));
    WF__TRY(merge(&s->seen, (uint64_t)h.prefix << 1 | h.begun, &h, &s->next, err));
  }
  for (uint64_t k = 0; k < s->next.size; k++) {
    hypothesis *h = &s->next.data[k];
    h->total = h->log_prob + wf__text_score(&s->texts, h->prefix, h->begun);
    h->place = k;
  }
  keep_best(s->options, &s->next);
  return drop_equal_texts(s, err);
}

/* Words from the last to the first. */
static wf_status write_text(search *s, const hypothesis *h, wf__arena *memory, wf_prefix_text *out,
                            wf_error *err) {
  *out = (wf_prefix_text){.log_prob = h->log_prob,
                          .score = h->total,
                          .lm_state = wf__text_state(&s->texts, h->prefix),
                          .num_words = wf__text_num_words(&s->texts, h->prefix)};
  out->words = wf__arena_alloc(memory, (out->num_words + 1) * sizeof *out->words);
  if (out->words == NULL)
    return wf__fail_memory(err, out->num_words * sizeof *out->words, "a text");
  uint32_t text = h->prefix, at = h->spans;
  for (size_t w = out->num_words; w-- > 0; text = wf__text_before(&s->texts, text)) {
    const span *frames = &s->spans.data[at];
    const char *word = wf__text_word(&s->texts, text, memory);
    if (word == NULL) return wf__fail_memory(err, 64, "a word");
    out->words[w] = (wf_prefix_word){word, frames->start, frames->end};
    at = frames->before;
  }
  return WF_OK;
}

static wf_status write_result(search *s, wf_prefix_result *out, wf_error *err) {
  uint64_t count = s->next.size;
  if (s->options->nbest > 0 && count > (uint64_t)s->options->nbest)
    count = (uint64_t)s->options->nbest;
  out->texts = wf__calloc(count, sizeof *out->texts);
  out->memory = wf__calloc(1, sizeof(wf__arena));
  if (out->texts == NULL || out->memory == NULL)
    return wf__fail_memory(err, count * sizeof *out->texts, "texts");
  for (; out->num_texts < count; out->num_texts++)
    WF__TRY(write_text(s, &s->next.data[out->num_texts], out->memory, &out->texts[out->num_texts],
                       err));
  return WF_OK;
}

static wf_status run(search *s, wf_prefix_result *out, wf_error *err) {
  size_t columns = (size_t)s->searcher->num_tokens;
  s->chosen = wf__alloc(columns, sizeof *s->chosen);
  s->in_hotword = wf__calloc(columns, sizeof *s->in_hotword);
  if (s->chosen == NULL || s->in_hotword == NULL)
    return wf__fail_memory(err, columns * sizeof *s->chosen, "a frame");
  WF__TRY(wf__score_row_resize(&s->row, s->searcher->num_tokens, err));
  hypothesis first = {.spans = NO_SPAN, .last = -1, .start = -1, .end = -1};
  WF__TRY(wf__vec_push(&s->now, first, "a frame", err));
  for (int64_t frame = 0; frame < s->scores->num_frames; frame++) {
    WF__TRY(wf__interrupted_at((uint64_t)frame * 64, err)); /* every 16th frame */
    WF__TRY(do_frame(s, (int32_t)frame, err));
  }
  WF__TRY(finish(s, err));
  return write_result(s, out, err);
}

wf_status wf__prefix_search(const wf_prefix_searcher *searcher, const wf_prefix_options *options,
                            const wf_prefix_input *input, bool all_columns, wf_prefix_result *out,
                            wf_error *err) {
  search s = {.searcher = searcher,
              .options = options,
              .scores = &input->scores,
              .all_columns = all_columns};
  wf_status status = wf__prefix_texts_init(&s.texts, searcher, options, input, err);
  if (status == WF_OK) status = run(&s, out, err);
  wf__prefix_texts_free(&s.texts);
  wf__vec_free(&s.now);
  wf__vec_free(&s.next);
  wf__vec_free(&s.spans);
  wf__map64_free(&s.moves);
  wf__map64_free(&s.merged);
  wf__map64_free(&s.seen);
  wf__vec_free(&s.keys);
  wf__score_row_free(&s.row);
  free(s.chosen);
  free(s.in_hotword);
  return status;
}
