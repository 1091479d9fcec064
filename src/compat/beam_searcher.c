/* beam_searcher.c - what a beam search is made of: checks and copies. */
#include <string.h>

#include "compat/beam.h"
#include "lm/lm.h"

static bool within(uint32_t first, uint32_t num, size_t size) {
  return num == 0 || (first < size && num <= size - first);
}

/* Columns, and the numbers made of them, fit 32 bits. */
static bool is_column(int32_t number) { return number >= 0 && number < INT32_MAX / 2; }

static wf_status check_nodes(const wf_beam_parts *p, wf_error *err) {
  if (p->num_nodes >= INT32_MAX / 2 || p->num_words >= INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "%zu nodes, %zu words", p->num_nodes, p->num_words);
  for (size_t i = 0; i < p->num_nodes; i++) {
    const wf_beam_node *n = &p->nodes[i];
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

/* The column of the blank may be missing, as in ASG: searches check it. */
static wf_status check_parts(const wf_beam_parts *p, wf_error *err) {
  WF__TRY(check_nodes(p, err));
  size_t side = (size_t)sqrt((double)p->num_transitions);
  if (side * side != p->num_transitions)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "%zu transitions, expected the square of the number of tokens",
                    p->num_transitions);
  if (p->lm != NULL && p->lm_fn != NULL)
    return wf__fail(err, WF_ERR_ARGUMENT, "there are two language models");
  if (p->num_texts > 0 && (p->num_nodes > 0 || p->num_transitions > 0 || p->lm_fn != NULL))
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "tokens with texts have no trie, no transitions and no function");
  if (p->num_texts >= INT32_MAX / 2 ||
      (p->num_texts > 0 && (p->blank < 0 || (size_t)p->blank >= p->num_texts)))
    return wf__fail(err, WF_ERR_ARGUMENT, "the blank is column %d, there are %zu tokens", p->blank,
                    p->num_texts);
  if (p->num_texts == 0 && (!is_column(p->silence) || p->blank >= INT32_MAX / 2))
    return wf__fail(err, WF_ERR_ARGUMENT, "silence %d, blank %d (columns from 0 to 2^30)",
                    p->silence, p->blank);
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

static wf_status sort_children(wf_beam_searcher *s, children *all, wf_error *err) {
  s->by_token = wf__alloc(s->num_nodes, sizeof *s->by_token);
  if (s->by_token == NULL) return wf__fail_memory(err, s->num_nodes * sizeof(uint32_t), "a trie");
  for (uint32_t i = 0; i < s->num_nodes; i++) {
    const uint32_t first = s->nodes[i].first_child, num = s->nodes[i].num_children;
    if (num <= WF__BEAM_LARGE) continue;
    all->size = 0;
    for (uint32_t k = first; k < first + num; k++)
      WF__TRY(wf__vec_push(all, ((child){s->nodes[k].token, k}), "a trie", err));
    sort(all);
    for (uint64_t k = 0; k < all->size; k++) s->by_token[first + k] = all->data[k].to;
  }
  return WF_OK;
}

/* The words that may end with the next token after a node. `same`: they are not told apart. */
static wf_status list_words(const wf_beam_searcher *s, const wf_beam_node *from, bool same,
                            children *all, wf_error *err) {
  all->size = 0;
  for (uint32_t k = from->first_child; k < from->first_child + from->num_children; k++) {
    const wf_beam_node *to = &s->nodes[k];
    child word = {to->token, same ? 0 : (uint32_t)s->unknown_word};
    if (to->num_words == 0) WF__TRY(wf__vec_push(all, word, "a trie", err));
    for (uint32_t i = 0; i < to->num_words; i++) {
      if (!same) word.to = (uint32_t)s->words[to->first_word + i];
      WF__TRY(wf__vec_push(all, word, "a trie", err));
    }
  }
  return WF_OK;
}

/* May a word come twice? Else there is one for each token. */
static bool may_repeat(const wf_beam_searcher *s, const wf_beam_node *from) {
  int32_t last = -1;
  for (uint32_t k = from->first_child; k < from->first_child + from->num_children; k++) {
    if (s->nodes[k].num_words > 1 || s->nodes[k].token <= last) return true;
    last = s->nodes[k].token;
  }
  return false;
}

/* Words may be listed more than once. Unknown ones are counted, too. */
static wf_status count_repeats(const wf_beam_searcher *s, bool same, children *all, int64_t *most,
                               wf_error *err) {
  *most = 1;
  for (uint32_t i = 0; i < s->num_nodes; i++) {
    if (!may_repeat(s, &s->nodes[i])) continue;
    WF__TRY(list_words(s, &s->nodes[i], same, all, err));
    sort(all);
    int64_t run = 1;
    for (uint64_t k = 1; k < all->size; k++) {
      run = compare(&all->data[k - 1], &all->data[k]) == 0 ? run + 1 : 1;
      if (run > *most) *most = run;
    }
  }
  return WF_OK;
}

static wf_status prepare_nodes(wf_beam_searcher *s, wf_error *err) {
  children all = {0};
  wf_status status = sort_children(s, &all, err);
  if (status == WF_OK) status = count_repeats(s, false, &all, &s->most_repeats.words, err);
  if (status == WF_OK) status = count_repeats(s, true, &all, &s->most_repeats.tokens, err);
  wf__vec_free(&all);
  return status;
}

/* --- texts ------------------------------------------------------------------------------------ */

static wf_status add_texts(wf_beam_searcher *s, const wf_beam_parts *p, wf_error *err) {
  s->texts = wf__calloc(p->num_texts, sizeof *s->texts);
  if (s->texts == NULL) return wf__fail_memory(err, p->num_texts * sizeof *s->texts, "tokens");
  s->num_texts = (int32_t)p->num_texts;
  for (size_t i = 0; i < p->num_texts; i++) {
    s->texts[i] = p->texts[i];
    if (s->texts[i].ends_word && s->texts[i].text[0] != 0) s->texts_end = true;
    s->texts[i].text = wf__strndup(p->texts[i].text, strlen(p->texts[i].text));
    if (s->texts[i].text == NULL) return wf__fail_memory(err, 64, "a token");
  }
  return WF_OK;
}

static wf_status add_known_words(wf_beam_searcher *s, const wf_beam_parts *p, wf_error *err) {
  WF__TRY(wf__word_trie_init(&s->known_words, NULL, err));
  for (size_t i = 0; i < p->num_known_words; i++) {
    uint32_t part = 0;
    WF__TRY(wf__word_trie_append(&s->known_words, 0, p->known_words[i], &part, err));
    if (part == 0) return wf__fail(err, WF_ERR_ARGUMENT, "word %zu is empty", i);
    wf__word_trie_mark(&s->known_words, part);
  }
  return WF_OK;
}

/* --- a searcher ------------------------------------------------------------------------------- */

/* What bounds are made of. */
static void find_extremes(wf_beam_searcher *s, size_t num_transitions) {
  s->least_score = INFINITY;
  s->most_score = -INFINITY;
  for (uint32_t i = 1; i < s->num_nodes; i++) {
    s->least_score = fminf(s->least_score, s->nodes[i].score);
    s->most_score = fmaxf(s->most_score, s->nodes[i].score);
  }
  for (size_t i = 0; i < num_transitions; i++)
    s->most_transition = fmaxf(s->most_transition, s->transitions[i]);
  if (s->lm != NULL) s->lm_least = (double)wf__lm_least_cost(s->lm);
}

static wf_status fill(wf_beam_searcher *s, const wf_beam_parts *p, wf_error *err) {
  WF__TRY(copy(&s->nodes, p->nodes, p->num_nodes, sizeof *s->nodes, err));
  WF__TRY(copy(&s->words, p->words, p->num_words, sizeof *s->words, err));
  WF__TRY(copy(&s->lm_labels, p->lm_labels, p->num_lm_labels, sizeof *s->lm_labels, err));
  if (p->num_transitions > 0)
    WF__TRY(copy(&s->transitions, p->transitions, p->num_transitions, sizeof *s->transitions, err));
  s->num_nodes = (uint32_t)p->num_nodes;
  s->num_lm_labels = p->num_lm_labels;
  s->lm_fn = p->lm_fn;
  s->user = p->user;
  s->silence = p->num_texts > 0 ? -1 : p->silence;
  s->blank = p->blank;
  s->unknown_word = p->unknown_word;
  s->num_transition_tokens = (int32_t)sqrt((double)p->num_transitions);
  int32_t most = s->silence;
  for (uint32_t i = 1; i < s->num_nodes; i++)
    if (s->nodes[i].token > most) most = s->nodes[i].token;
  s->min_columns = most + 1;
  if (p->lm != NULL) s->lm = wf_lm_ref(p->lm);
  find_extremes(s, p->num_transitions);
  WF__TRY(add_texts(s, p, err));
  WF__TRY(add_known_words(s, p, err));
  WF__TRY(wf__lm_columns_init(s, err));
  return prepare_nodes(s, err);
}

wf_status wf_beam_searcher_create(const wf_beam_parts *parts, wf_beam_searcher **out,
                                  wf_error *err) {
  wf__error_clear(err);
  *out = NULL;
  WF__TRY(check_parts(parts, err));
  wf_beam_searcher *s = wf__calloc(1, sizeof *s);
  if (s == NULL) return wf__fail_memory(err, sizeof *s, "a searcher");
  wf_status status = fill(s, parts, err);
  if (status == WF_OK)
    *out = s;
  else
    wf_beam_searcher_free(s);
  return status;
}

void wf_beam_searcher_free(wf_beam_searcher *searcher) {
  if (searcher == NULL) return;
  free(searcher->nodes);
  free(searcher->words);
  free(searcher->lm_labels);
  free(searcher->transitions);
  free(searcher->by_token);
  for (int32_t i = 0; i < searcher->num_texts; i++)
    free((char *)(uintptr_t)searcher->texts[i].text);
  free(searcher->texts);
  wf__lm_columns_free(&searcher->lm_columns);
  wf__word_trie_free(&searcher->known_words);
  wf_lm_free(searcher->lm);
  free(searcher);
}
