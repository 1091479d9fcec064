/* trie_search.c - hypotheses frame by frame. */
#include "decode/trie_search.h"

#include <math.h>

#include "base/interrupt.h"
#include "base/select.h"
#include "decode/host_scores.h"
#include "math/cost.h"

/* --- candidates ----------------------------------------------------------------------------- */

/* What tells hypotheses apart: history, node, last token. Within a word the node has the token. */
static uint64_t key_of(const wf_trie_searcher *s, const wf__trie_hypothesis *h) {
  uint32_t place = h->node != 0 ? h->node : s->num_nodes + (uint32_t)h->token;
  return (uint64_t)h->history << 32 | place << 1 | h->after_blank;
}

static bool too_low(const wf_trie_search *s, double score) {
  return !(score > -INFINITY) || score < s->floor;
}

static void raise_floor(wf_trie_search *s, double floor) {
  if (floor > s->floor) s->floor = floor;
}

static void raise_best(wf_trie_search *s, double score) {
  if (score <= s->best) return;
  s->best = score;
  raise_floor(s, score - (double)s->searcher->options.beam);
  wf__trie_columns_raise(s);
}

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

/* If there are more than beam_size hypotheses, those that come later must be as good as the last of
 * the best ones. Sums still grow: what comes later may be lower if it adds to one. */
static wf_status check_size(wf_trie_search *s, wf_error *err) {
  const wf_trie_options *o = &s->searcher->options;
  uint64_t num = s->next.size;
  if (num < s->next_check) return WF_OK;
  s->next_check = 2 * num;
  s->keys.size = 0;
  WF__TRY(wf__vec_grow(&s->keys, num, "a frame", err));
  for (uint64_t k = 0; k < num; k++) s->keys.data[k] = wf__descending_score(s->next.data[k].score);
  const double last =
      wf__score_of_descending(wf__select_smallest(s->keys.data, num, (uint64_t)o->beam_size));
  if (o->sum_alignments)
    s->bar = fmax(s->bar, last);
  else
    raise_floor(s, last);
  wf__trie_columns_raise(s);
  return WF_OK;
}

/* Adds a hypothesis to the frame, or merges it with one that is the same. */
static wf_status add(wf_trie_search *s, const wf__trie_hypothesis *h, wf_error *err) {
  if (too_low(s, h->score)) return WF_OK;
  raise_best(s, h->score);
  uint32_t at = 0;
  bool fresh = false;
  WF__TRY(wf__map64_insert(&s->merged, key_of(s->searcher, h), (uint32_t)s->next.size, &at, &fresh,
                           "a frame", err));
  if (fresh) {
    WF__TRY(wf__vec_push(&s->next, *h, "a frame", err));
    s->next.data[at].highest = h->score;
    return check_size(s, err);
  }
  wf__trie_hypothesis *other = &s->next.data[at];
  double sum = s->searcher->options.sum_alignments ? -wf__log_add(-other->score, -h->score)
                                                   : fmax(other->score, h->score);
  if (h->score > other->highest) {
    *other = *h;
    other->highest = h->score;
  }
  other->score = sum;
  return WF_OK;
}

/* What a frame with this token adds to the score of the tokens, and to the score beside that. */
static double emission(const wf_trie_search *s, const wf__trie_hypothesis *from, int32_t token) {
  const wf_trie_searcher *parts = s->searcher;
  double score = (double)s->columns.row.values[token];
  if (parts->transitions != NULL && s->num_frames > 0)
    score += (double)parts->transitions[token * parts->num_transition_tokens + from->token];
  return score;
}
static double silence_bonus(const wf_trie_search *s, int32_t token) {
  return token == s->searcher->silence ? (double)s->searcher->options.silence_score : 0;
}

/* The hypothesis after one more frame with this token, in the same place of the trie. */
static wf__trie_hypothesis step(const wf_trie_search *s, const wf__trie_hypothesis *from,
                                uint32_t parent, int32_t token) {
  wf__trie_hypothesis h = *from;
  double score = emission(s, from, token);
  h.parent = parent;
  h.token = token;
  h.word = -1;
  h.after_blank = false;
  h.token_score += score;
  h.score += score + silence_bonus(s, token);
  return h;
}

/* Too low even if the language model says probability 1. Then it need not be asked. */
static bool hopeless(const wf_trie_search *s, double score) {
  return s->searcher->lm_fn == NULL && s->searcher->options.lm_weight >= 0 && too_low(s, score);
}

static void add_lm(const wf_trie_search *s, wf__trie_hypothesis *h, double score) {
  h->lm_score += score;
  h->score += (double)s->searcher->options.lm_weight * score;
}

/* Adds a hypothesis whose history goes on with a word. */
static wf_status add_after(wf_trie_search *s, wf__trie_hypothesis *h, int32_t word, wf_error *err) {
  if (too_low(s, h->score)) return WF_OK;
  WF__TRY(wf__trie_append(&s->histories, h->history, word, &h->history, err));
  return add(s, h, err);
}

static wf_status take_blank(wf_trie_search *s, const wf__trie_hypothesis *from, uint32_t parent,
                            wf_error *err) {
  wf__trie_hypothesis h = step(s, from, parent, s->searcher->blank);
  h.after_blank = true;
  return add(s, &h, err);
}

/* --- with a lexicon ------------------------------------------------------------------------- */

/* A word ends. expected: what stood for its score so far. */
static wf_status end_word(wf_trie_search *s, const wf__trie_hypothesis *at, int32_t word,
                          double word_score, double expected, wf_error *err) {
  const wf_trie_options *o = &s->searcher->options;
  wf__trie_hypothesis h = *at;
  if (!o->token_lm && hopeless(s, h.score + word_score - fmin(expected, 0) * (double)o->lm_weight))
    return WF_OK;
  if (!o->token_lm) {
    double score = 0;
    WF__TRY(wf__trie_score(&s->histories, h.history, word, &score, err));
    add_lm(s, &h, score - expected);
  }
  h.node = 0;
  h.word = word;
  h.score += word_score;
  return o->token_lm ? add(s, &h, err) : add_after(s, &h, word, err);
}

/* The next token of a word. */
static wf_status enter(wf_trie_search *s, const wf__trie_hypothesis *from, uint32_t parent,
                       uint32_t node, wf_error *err) {
  const wf_trie_searcher *parts = s->searcher;
  const wf_trie_options *o = &parts->options;
  const wf_trie_node *to = &parts->nodes[node];
  /* In CTC, a token again needs a blank in between. */
  bool same = to->token == from->token, again = same && !o->asg && !from->after_blank;
  if (again && o->hold_word_ends) return WF_OK;
  double expected = from->node != 0 ? (double)parts->nodes[from->node].score : 0;
  wf__trie_hypothesis h = step(s, from, parent, to->token);
  if (o->token_lm) {
    double score = 0;
    WF__TRY(wf__trie_score(&s->histories, h.history, to->token, &score, err));
    WF__TRY(wf__trie_append(&s->histories, h.history, to->token, &h.history, err));
    add_lm(s, &h, score);
  }
  if (to->num_children > 0 && !again) {
    wf__trie_hypothesis within = h;
    within.node = node;
    if (!o->token_lm) add_lm(s, &within, (double)to->score - expected);
    WF__TRY(add(s, &within, err));
  }
  bool may_end = !same || from->node != 0 || o->hold_word_ends;
  for (uint32_t i = 0; i < to->num_words && may_end; i++)
    WF__TRY(
        end_word(s, &h, parts->words[to->first_word + i], (double)o->word_score, expected, err));
  if (to->num_words == 0 && o->unknown_words)
    WF__TRY(end_word(s, &h, parts->unknown_word, (double)o->unknown_score, expected, err));
  return WF_OK;
}

static wf_status expand_in_trie(wf_trie_search *s, const wf__trie_hypothesis *from, uint32_t parent,
                                wf_error *err) {
  const wf_trie_searcher *parts = s->searcher;
  bool asg = parts->options.asg;
  for (uint32_t at = 0, node; (node = wf__trie_next_child(s, from, &at)) != 0;)
    WF__TRY(enter(s, from, parent, node, err));
  wf__trie_hypothesis h;
  if (from->node == 0) { /* silence */
    h = step(s, from, parent, parts->silence);
    WF__TRY(add(s, &h, err));
  }
  bool may_hold =
      from->node != 0 || (parts->options.hold_word_ends && from->token != parts->silence);
  if (may_hold && from->token != parts->blank) {
    h = step(s, from, parent, from->token);
    WF__TRY(add(s, &h, err));
  }
  return asg ? WF_OK : take_blank(s, from, parent, err);
}

/* --- without ------------------------------------------------------------------------------- */

static wf_status expand_freely(wf_trie_search *s, const wf__trie_hypothesis *from, uint32_t parent,
                               wf_error *err) {
  const wf_trie_searcher *parts = s->searcher;
  bool asg = parts->options.asg;
  if (!asg && wf__trie_is_chosen(s, parts->blank)) WF__TRY(take_blank(s, from, parent, err));
  for (int32_t at = 0, token; (token = wf__trie_next_column(s, from, &at)) >= 0;) {
    if (!asg && token == parts->blank) continue;
    if (hopeless(s, from->score + (emission(s, from, token) + silence_bonus(s, token)))) continue;
    wf__trie_hypothesis h = step(s, from, parent, token);
    if (token != from->token || (!asg && from->after_blank)) {
      double score = 0;
      WF__TRY(wf__trie_score(&s->histories, h.history, token, &score, err));
      add_lm(s, &h, score);
      WF__TRY(add_after(s, &h, token, err));
    } else {
      WF__TRY(add(s, &h, err));
    }
  }
  return WF_OK;
}

/* --- a frame -------------------------------------------------------------------------------- */

/* Moves the frame's best hypotheses to `kept`, the best one first. */
static wf_status keep_best(wf_trie_search *s, wf_error *err) {
  uint64_t num = 0, most = (uint64_t)s->searcher->options.beam_size;
  for (uint64_t k = 0; k < s->next.size; k++) raise_best(s, s->next.data[k].score); /* of a sum */
  s->keys.size = 0;
  WF__TRY(wf__vec_grow(&s->keys, s->next.size, "a frame", err));
  for (uint64_t k = 0; k < s->next.size; k++) {
    if (too_low(s, s->next.data[k].score)) continue;
    s->keys.data[num] = wf__descending_score(s->next.data[k].score);
    s->next.data[num++] = s->next.data[k];
  }
  struct cut cut = {UINT64_MAX, num};
  if (num > most) cut = cut_at(s->keys.data, num, most);
  uint64_t begin = s->kept.size;
  WF__TRY(wf__vec_push(&s->begins, begin, "frames", err));
  WF__TRY(wf__vec_grow(&s->kept, num < most ? num : most, "hypotheses", err));
  for (uint64_t k = 0; k < num; k++) {
    if (!within(&cut, wf__descending_score(s->next.data[k].score))) continue;
    WF__TRY(wf__trie_number(&s->histories, &s->next.data[k].history, err));
    s->kept.data[s->kept.size++] = s->next.data[k];
    wf__trie_hypothesis *first = &s->kept.data[begin], *added = &s->kept.data[s->kept.size - 1];
    if (added->score > first->score) {
      wf__trie_hypothesis swap = *first;
      *first = *added;
      *added = swap;
    }
  }
  s->num_frames++;
  return WF_OK;
}

static void begin_frame(wf_trie_search *s) {
  s->next.size = 0;
  s->best = s->floor = s->bar = -INFINITY;
  s->next_check = 2 * (uint64_t)s->searcher->options.beam_size;
  wf__map64_clear(&s->merged);
  wf__trie_begin_frame(&s->histories);
}

/* Does the blank alone count in this frame? */
static bool skips(const wf_trie_search *s) {
  const wf_trie_options *o = &s->searcher->options;
  return o->blank_skip > 0 && !o->asg &&
         (double)s->columns.row.values[s->searcher->blank] >= log((double)o->blank_skip);
}

static wf_status do_frame(wf_trie_search *s, wf_error *err) {
  const bool blank_alone = skips(s);
  begin_frame(s);
  if (!blank_alone) WF__TRY(wf__trie_columns_begin(s, err));
  uint64_t frame = s->begins.size - 1, num = wf__trie_frame_size(s, frame);
  for (uint64_t k = 0; k < num; k++) {
    const wf__trie_hypothesis *from = wf__trie_frame(s, frame) + k;
    if (!blank_alone) WF__TRY(wf__trie_columns_turn(s, from, (uint32_t)k, err));
    WF__TRY(blank_alone                  ? take_blank(s, from, (uint32_t)k, err)
            : s->searcher->num_nodes > 0 ? expand_in_trie(s, from, (uint32_t)k, err)
                                         : expand_freely(s, from, (uint32_t)k, err));
  }
  return keep_best(s, err);
}

/* --- calls ---------------------------------------------------------------------------------- */

static wf_status check_scores(const wf_trie_search *s, const wf_scores *scores, wf_error *err) {
  const wf_trie_searcher *parts = s->searcher;
  if (scores->num_frames > 0 && scores->num_columns < parts->min_columns)
    return wf__fail(err, WF_ERR_ARGUMENT, "the scores have %d columns, the tokens need %d",
                    scores->num_columns, parts->min_columns);
  if (scores->num_frames > 0 && parts->transitions != NULL &&
      scores->num_columns != parts->num_transition_tokens)
    return wf__fail(err, WF_ERR_ARGUMENT, "the scores have %d columns, the transitions %d tokens",
                    scores->num_columns, parts->num_transition_tokens);
  return WF_OK;
}

wf_status wf__trie_check_whole(const wf_trie_search *s, wf_error *err) {
  return s->failed ? wf__fail(err, WF_ERR_STATE,
                              "an earlier call failed within a frame: begin the utterance again")
                   : WF_OK;
}

static wf_status check_alive(const wf_trie_search *s, wf_error *err) {
  WF__TRY(wf__trie_check_whole(s, err));
  return s->ended ? wf__fail(err, WF_ERR_STATE, "the utterance has ended") : WF_OK;
}

static wf_status step_all(wf_trie_search *search, const wf_scores *scores, wf_error *err) {
  if (scores->num_frames > 0)
    WF__TRY(wf__trie_columns_resize(&search->columns, scores->num_columns, err));
  for (int64_t frame = 0; frame < scores->num_frames; frame++) {
    WF__TRY(wf__interrupted_at((uint64_t)frame * 64, err)); /* every 16th frame */
    WF__TRY(wf__score_row_read(&search->columns.row, scores, frame, err));
    WF__TRY(do_frame(search, err));
  }
  return WF_OK;
}

wf_status wf_trie_search_step(wf_trie_search *search, const wf_scores *scores, wf_error *err) {
  wf__error_clear(err);
  wf_scores host;
  void *copy;
  wf_status status = wf__host_scores(scores, &host, &copy, err);
  if (status == WF_OK) status = check_alive(search, err);
  if (status == WF_OK) status = check_scores(search, &host, err);
  if (status == WF_OK) {
    status = step_all(search, &host, err);
    search->failed = status != WF_OK;
  }
  free(copy);
  return status;
}

/* Best first; equal ones in the order in which they were found. */
static int compare(const void *a, const void *b) {
  const wf__trie_hypothesis *x = a, *y = b;
  if (x->score != y->score) return x->score < y->score ? 1 : -1;
  return x->parent < y->parent ? -1 : x->parent > y->parent;
}

static wf_status end_utterance(wf_trie_search *s, wf_error *err) {
  uint64_t frame = s->begins.size - 1, num = wf__trie_frame_size(s, frame);
  bool complete = false;
  for (uint64_t k = 0; k < num; k++) complete = complete || wf__trie_frame(s, frame)[k].node == 0;
  begin_frame(s);
  for (uint64_t k = 0; k < num; k++) {
    wf__trie_hypothesis h = wf__trie_frame(s, frame)[k];
    if (complete && h.node != 0) continue;
    double score = 0;
    WF__TRY(wf__trie_finish(&s->histories, h.history, &score, err));
    add_lm(s, &h, score);
    h.parent = (uint32_t)k;
    h.token = s->searcher->silence;
    h.word = -1;
    h.after_blank = false;
    WF__TRY(add(s, &h, err));
  }
  WF__TRY(keep_best(s, err));
  uint64_t begin = s->begins.data[frame + 1];
  if (s->kept.size > begin + 1)
    qsort(s->kept.data + begin, s->kept.size - begin, sizeof *s->kept.data, compare);
  s->ended = true;
  return WF_OK;
}

wf_status wf_trie_search_end(wf_trie_search *search, wf_error *err) {
  wf__error_clear(err);
  WF__TRY(check_alive(search, err));
  const wf_status status = end_utterance(search, err);
  search->failed = status != WF_OK;
  return status;
}

wf_status wf_trie_search_create(const wf_trie_searcher *searcher, wf_trie_search **out,
                                wf_error *err) {
  wf__error_clear(err);
  *out = NULL;
  wf_trie_search *s = wf__calloc(1, sizeof *s);
  if (s == NULL) return wf__fail_memory(err, sizeof *s, "a search");
  s->searcher = searcher;
  const wf__trie_hypothesis first = {.token = searcher->silence, .word = -1};
  wf_status status = wf__trie_histories_init(&s->histories, searcher, err);
  if (status == WF_OK) status = wf__vec_push(&s->kept, first, "hypotheses", err);
  if (status == WF_OK) status = wf__vec_push(&s->begins, 0, "frames", err);
  if (status == WF_OK)
    *out = s;
  else
    wf_trie_search_free(s);
  return status;
}

void wf_trie_search_free(wf_trie_search *search) {
  if (search == NULL) return;
  wf__trie_histories_free(&search->histories);
  wf__vec_free(&search->kept);
  wf__vec_free(&search->begins);
  wf__vec_free(&search->next);
  wf__map64_free(&search->merged);
  wf__vec_free(&search->keys);
  wf__trie_columns_free(&search->columns);
  free(search);
}
