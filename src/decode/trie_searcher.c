/* trie_searcher.c - what a beam search over a trie is made of: checks and copies. */
#include <math.h>
#include <string.h>

#include "base/config.h"
#include "base/option_tables.h"
#include "decode/trie_search.h"
#include "lm/lm.h"

static bool within(uint32_t first, uint32_t num, size_t size) {
  return num == 0 || (first < size && num <= size - first);
}

/* Columns, and the numbers made of them, fit 32 bits. */
static bool is_column(int32_t number) { return number >= 0 && number < INT32_MAX / 2; }

static wf_status check_nodes(const wf_trie_parts *p, wf_error *err) {
  if (p->num_nodes >= INT32_MAX / 2 || p->num_words >= INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "%zu nodes, %zu words", p->num_nodes, p->num_words);
  for (size_t i = 0; i < p->num_nodes; i++) {
    const wf_trie_node *n = &p->nodes[i];
    bool children_after = n->num_children == 0 || n->first_child > i;
    if ((i > 0 ? !is_column(n->token) : n->token >= INT32_MAX / 2) || !isfinite(n->score) ||
        !children_after || !within(n->first_child, n->num_children, p->num_nodes) ||
        !within(n->first_word, n->num_words, p->num_words))
      return wf__fail(
          err, WF_ERR_ARGUMENT,
          "node %zu: token %d, score %g, children %u + %u, words %u + %u; there are %zu "
          "nodes and %zu words",
          i, n->token, (double)n->score, n->first_child, n->num_children, n->first_word,
          n->num_words, p->num_nodes, p->num_words);
  }
  for (size_t i = 0; i < p->num_words; i++)
    if (p->words[i] < 0) return wf__fail(err, WF_ERR_ARGUMENT, "word %d", p->words[i]);
  return WF_OK;
}

static wf_status check_parts(const wf_trie_parts *p, const wf_trie_options *o, wf_error *err) {
  WF__TRY(check_nodes(p, err));
  size_t side = (size_t)sqrt((double)p->num_transitions);
  if (side * side != p->num_transitions || (p->num_transitions > 0 && !o->asg))
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "%zu transitions, expected the square of the number of tokens with asg, else "
                    "none",
                    p->num_transitions);
  if (p->lm != NULL && p->lm_fn != NULL)
    return wf__fail(err, WF_ERR_ARGUMENT, "there are two language models");
  if (!is_column(p->silence) || (!o->asg && !is_column(p->blank)) ||
      (o->unknown_words && p->unknown_word < 0) || p->first_history < 0)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "silence %d, blank %d (columns from 0 to 2^30), unknown word %d, history %lld",
                    p->silence, p->blank, p->unknown_word, (long long)p->first_history);
  return WF_OK;
}

/* A copy of an array. */
static wf_status copy(void *out, const void *from, size_t num, size_t size, wf_error *err) {
  void *made = wf__alloc(num, size);
  if (made == NULL) return wf__fail_memory(err, num * size, "a trie");
  if (num > 0) memcpy(made, from, num * size);
  memcpy(out, &made, sizeof made);
  return WF_OK;
}

/* --- what a token may add -------------------------------------------------------------------- */

/* The language model's part of the score of a word. Infinity: not known. */
static double most_of_lm(const wf_trie_searcher *s) {
  if (s->lm_fn != NULL || (s->lm != NULL && s->options.lm_weight < 0)) return INFINITY;
  if (s->lm == NULL) return 0;
  return (double)s->options.lm_weight * fmax(0, -(double)wf__lm_least_cost(s->lm) / M_LN10);
}

/* A hypothesis within a word has the score of its node, in place of which comes that of the next
 * node or the word's. So this is what is added to the score without it. */
static double most_of_words(const wf_trie_searcher *s) {
  const wf_trie_options *o = &s->options;
  double most = s->num_nodes > 0 ? (double)o->word_score : 0;
  if (s->num_nodes > 0 && o->unknown_words) most = fmax(most, (double)o->unknown_score);
  if (o->token_lm) return most_of_lm(s) + fmax(0, most);
  most += most_of_lm(s);
  for (uint32_t i = 1; i < s->num_nodes; i++)
    most = fmax(most, (double)o->lm_weight * (double)s->nodes[i].score);
  return most;
}

static double most_gain(const wf_trie_searcher *s) {
  double most = 0;
  const size_t num = (size_t)s->num_transition_tokens;
  for (size_t i = 0; i < num * num; i++) most = fmax(most, (double)s->transitions[i]);
  return most + most_of_words(s);
}

/* --- children --------------------------------------------------------------------------------- */

typedef struct child {
  int32_t token;
  uint32_t to; /* a node, or a word */
} child;
typedef WF__VEC(child) children;

static int compare(const void *a, const void *b) {
  const child *x = a, *y = b;
  if (x->token != y->token) return x->token < y->token ? -1 : 1;
  return (x->to > y->to) - (x->to < y->to);
}

static void sort(children *all) {
  if (all->size > 1) qsort(all->data, all->size, sizeof *all->data, compare);
}

static wf_status sort_children(wf_trie_searcher *s, children *all, wf_error *err) {
  s->by_token = wf__alloc(s->num_nodes, sizeof *s->by_token);
  if (s->by_token == NULL) return wf__fail_memory(err, s->num_nodes * sizeof(uint32_t), "a trie");
  for (uint32_t i = 0; i < s->num_nodes; i++) {
    const uint32_t first = s->nodes[i].first_child, num = s->nodes[i].num_children;
    if (num <= WF__TRIE_LARGE) continue;
    all->size = 0;
    for (uint32_t k = first; k < first + num; k++)
      WF__TRY(wf__vec_push(all, ((child){s->nodes[k].token, k}), "a trie", err));
    sort(all);
    for (uint32_t k = 0; k < num; k++) s->by_token[first + k] = all->data[k].to;
  }
  return WF_OK;
}

/* The words that may end with the next token after a node. With a language model of tokens they are
 * not told apart. */
static wf_status list_words(const wf_trie_searcher *s, const wf_trie_node *from, children *all,
                            wf_error *err) {
  const bool same = s->options.token_lm;
  all->size = 0;
  for (uint32_t k = from->first_child; k < from->first_child + from->num_children; k++) {
    const wf_trie_node *to = &s->nodes[k];
    child word = {to->token, same ? 0 : (uint32_t)s->unknown_word};
    if (to->num_words == 0 && s->options.unknown_words)
      WF__TRY(wf__vec_push(all, word, "a trie", err));
    for (uint32_t i = 0; i < to->num_words; i++) {
      if (!same) word.to = (uint32_t)s->words[to->first_word + i];
      WF__TRY(wf__vec_push(all, word, "a trie", err));
    }
  }
  return WF_OK;
}

/* Words may be listed more than once. */
static wf_status count_repeats(wf_trie_searcher *s, children *all, wf_error *err) {
  s->most_repeats = 1;
  for (uint32_t i = 0; i < s->num_nodes && s->options.sum_alignments; i++) {
    WF__TRY(list_words(s, &s->nodes[i], all, err));
    sort(all);
    int64_t run = 1;
    for (uint64_t k = 1; k < all->size; k++) {
      run = compare(&all->data[k - 1], &all->data[k]) == 0 ? run + 1 : 1;
      if (run > s->most_repeats) s->most_repeats = run;
    }
  }
  return WF_OK;
}

static wf_status prepare_nodes(wf_trie_searcher *s, wf_error *err) {
  children all = {0};
  wf_status status = sort_children(s, &all, err);
  if (status == WF_OK) status = count_repeats(s, &all, err);
  wf__vec_free(&all);
  return status;
}

static wf_status fill(wf_trie_searcher *s, const wf_trie_parts *p, wf_error *err) {
  WF__TRY(copy(&s->nodes, p->nodes, p->num_nodes, sizeof *s->nodes, err));
  WF__TRY(copy(&s->words, p->words, p->num_words, sizeof *s->words, err));
  WF__TRY(copy(&s->lm_labels, p->lm_labels, p->num_lm_labels, sizeof *s->lm_labels, err));
  if (p->num_transitions > 0)
    WF__TRY(copy(&s->transitions, p->transitions, p->num_transitions, sizeof *s->transitions, err));
  s->num_nodes = (uint32_t)p->num_nodes;
  s->num_lm_labels = p->num_lm_labels;
  s->lm_fn = p->lm_fn;
  s->user = p->user;
  s->first_history = p->first_history;
  s->silence = p->silence;
  s->blank = s->options.asg ? -1 : p->blank;
  s->unknown_word = p->unknown_word;
  s->num_transition_tokens = (int32_t)sqrt((double)p->num_transitions);
  int32_t most = s->silence > s->blank ? s->silence : s->blank;
  for (uint32_t i = 1; i < s->num_nodes; i++)
    if (s->nodes[i].token > most) most = s->nodes[i].token;
  s->min_columns = most + 1;
  if (p->lm != NULL) s->lm = wf_lm_ref(p->lm);
  s->most_gain = most_gain(s);
  return prepare_nodes(s, err);
}

wf_status wf_trie_searcher_create(const wf_trie_parts *parts, const wf_trie_options *options,
                                  wf_trie_searcher **out, wf_error *err) {
  wf__error_clear(err);
  *out = NULL;
  wf_trie_options o;
  WF__TRY(wf__options_take(wf__trie_table(), options, &o, err));
  WF__TRY(check_parts(parts, &o, err));
  wf_trie_searcher *s = wf__calloc(1, sizeof *s);
  if (s == NULL) return wf__fail_memory(err, sizeof *s, "a trie");
  s->options = o;
  wf_status status = fill(s, parts, err);
  if (status == WF_OK)
    *out = s;
  else
    wf_trie_searcher_free(s);
  return status;
}

void wf_trie_searcher_free(wf_trie_searcher *searcher) {
  if (searcher == NULL) return;
  free(searcher->nodes);
  free(searcher->words);
  free(searcher->lm_labels);
  free(searcher->transitions);
  free(searcher->by_token);
  wf_lm_free(searcher->lm);
  free(searcher);
}
