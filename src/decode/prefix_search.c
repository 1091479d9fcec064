/* prefix_search.c - hypotheses frame by frame. prefix_texts.c has texts, prefixes and their scores.
 */
#include "decode/prefix_search.h"

#include <math.h>

#include "base/interrupt.h"
#include "decode/prefix_texts.h"
#include "math/cost.h"
#include "math/score.h"

/* Of the alignments that a hypothesis sums over, the best gives the frames. */
typedef struct hypothesis {
  uint32_t prefix, spans; /* spans: of the complete words, newest first; NO_SPAN: none. At the end
                `prefix` is a text, and `begun` says whether a word has begun after it */
  bool begun;
  int32_t last;          /* token of the last frame; -1: none yet */
  int32_t start, end;    /* frames of the part of a word */
  double log_prob, best; /* the sum over alignments, and the best of the sums that went into it */
  double total;          /* with the score of the prefix */
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
  int32_t *chosen;  /* [num_tokens] tokens of the frame */
  float *row;       /* [num_tokens] */
} search;

/* --- a frame -------------------------------------------------------------------------------- */

/* Reads the frame's scores and chooses its tokens. */
static wf_status choose_tokens(search *s, int64_t frame, int32_t *num_chosen, wf_error *err) {
  int32_t best = 0, count = 0;
  for (int32_t c = 0; c < s->searcher->num_tokens; c++) {
    s->row[c] = wf__score_at(s->scores, frame, c);
    if (!wf__score_usable(s->row[c]))
      return wf__fail(err, WF_ERR_ARGUMENT, "frame %lld, column %d: the score is %g",
                      (long long)frame, c, (double)s->row[c]);
    if (s->row[c] > s->row[best]) best = c;
  }
  for (int32_t c = 0; c < s->searcher->num_tokens; c++)
    if (c == best || s->row[c] >= s->options->min_token_log_prob) s->chosen[count++] = c;
  *num_chosen = count;
  return WF_OK;
}

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

static wf_status expand(search *s, int32_t frame, int32_t num_chosen, wf_error *err) {
  s->next.size = 0;
  wf__map64_clear(&s->merged);
  for (int32_t i = 0; i < num_chosen; i++) {
    int32_t token = s->chosen[i];
    for (uint64_t k = 0; k < s->now.size; k++) {
      hypothesis h = s->now.data[k];
      h.log_prob += (double)s->row[token];
      h.best += (double)s->row[token];
      if (token == h.last && token != s->searcher->blank) {
        if (wf__prefix_has_part(&s->texts, h.prefix)) h.end = frame + 1;
      } else if (token != s->searcher->blank) {
        WF__TRY(take_token(s, &h, token, frame, err));
      }
      h.last = token;
      WF__TRY(
          merge(&s->merged, (uint64_t)h.prefix << 32 | (uint32_t)(h.last + 1), &h, &s->next, err));
    }
  }
  return WF_OK;
}

/* Best first; equal ones in a fixed order. */
static int compare(const void *a, const void *b) {
  const hypothesis *x = a, *y = b;
  if (x->total != y->total) return x->total < y->total ? 1 : -1;
  if (x->prefix != y->prefix) return x->prefix < y->prefix ? -1 : 1;
  return (x->last > y->last) - (x->last < y->last);
}

/* Keeps the best hypotheses of `next`, best first. */
static void keep_best(const wf_prefix_options *options, hypothesis_vec *next) {
  double best = -INFINITY;
  for (uint64_t k = 0; k < next->size; k++)
    if (next->data[k].total > best) best = next->data[k].total;
  uint64_t kept = 0;
  for (uint64_t k = 0; k < next->size; k++)
    if (next->data[k].total >= best - (double)options->beam) next->data[kept++] = next->data[k];
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
  int32_t num_chosen = 0;
  WF__TRY(choose_tokens(s, frame, &num_chosen, err));
  WF__TRY(expand(s, frame, num_chosen, err));
  for (uint64_t k = 0; k < s->next.size; k++)
    s->next.data[k].total =
        s->next.data[k].log_prob + wf__prefix_score(&s->texts, s->next.data[k].prefix);
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
  s->row = wf__alloc(columns, sizeof *s->row);
  if (s->chosen == NULL || s->row == NULL)
    return wf__fail_memory(err, columns * sizeof *s->row, "a frame");
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
                            const wf_prefix_input *input, wf_prefix_result *out, wf_error *err) {
  search s = {.searcher = searcher, .options = options, .scores = &input->scores};
  wf_status status = wf__prefix_texts_init(&s.texts, searcher, options, input, err);
  if (status == WF_OK) status = run(&s, out, err);
  wf__prefix_texts_free(&s.texts);
  wf__vec_free(&s.now);
  wf__vec_free(&s.next);
  wf__vec_free(&s.spans);
  wf__map64_free(&s.moves);
  wf__map64_free(&s.merged);
  wf__map64_free(&s.seen);
  free(s.chosen);
  free(s.row);
  return status;
}
