/* bias_words.c - an n-gram model of words for a generator of tokens.
 *
 *   nodes   the trie of the words' spellings, by bytes; node 0: between words. The children of a
 *           node follow each other. Node num_nodes: no word of the model begins like this
 *   ahead   [node] the least cost of a word below it after no history
 *
 *   cost of a token  =  sum over its bytes:  letter: ahead(next node) - ahead(node)
 *                                            space:  cost(word | history) - ahead(node)
 *
 * so that a word has paid its own cost when it ends. Most tokens cost the same after any state: they
 * begin with a space, or are outside of the trie. Those of a row that do not are found by walking
 * through the trie below the node and the sorted texts of the tokens together. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fst/symbols.h"
#include "generation/bias.h"
#include "lm/lm.h"

/* --- the trie ---------------------------------------------------------------------------- */

/* A word of the model. */
struct spelled {
  const char *text;
  uint32_t word;
};
struct span {
  uint64_t begin, end, depth; /* of the words below a node */
};
typedef WF__VEC(struct spelled) spelled_vec;
typedef WF__VEC(struct span) span_vec;

static int by_text(const void *a, const void *b) {
  return strcmp(((const struct spelled *)a)->text, ((const struct spelled *)b)->text);
}

static wf_status list_words(const wf__bias_words *words, spelled_vec *out, wf_error *err) {
  const wf__wlm_view *view = &words->lm->view;
  const wf_symbols *symbols = words->lm->words;
  const char *text;
  int64_t key;
  for (size_t i = 0; (text = wf_symbols_at(symbols, i, &key)) != NULL; i++) {
    if (key < 0 || key > UINT32_MAX || text[0] == '\0' || !wf__wlm_knows(view, (uint32_t)key))
      continue;
    if (key == view->bos || key == view->eos || key == view->unk) continue;
    const struct spelled word = {text, (uint32_t)key};
    WF__TRY(wf__vec_push(out, word, "words of a model", err));
  }
  if (out->size > 0) qsort(out->data, out->size, sizeof *out->data, by_text);
  return WF_OK;
}

/* Adds the children of a node. Spans are those of the nodes. */
static wf_status add_children(wf__bias_words *words, const spelled_vec *spelled, span_vec *spans,
                              uint32_t at, wf_error *err) {
  struct span span = spans->data[at];
  words->nodes.data[at].first_child = (uint32_t)words->nodes.size;
  while (span.begin < span.end && spelled->data[span.begin].text[span.depth] == '\0')
    words->nodes.data[at].word = spelled->data[span.begin++].word;
  while (span.begin < span.end) {
    const unsigned char byte = (unsigned char)spelled->data[span.begin].text[span.depth];
    struct span below = {span.begin, span.begin, span.depth + 1};
    while (below.end < span.end && (unsigned char)spelled->data[below.end].text[span.depth] == byte)
      below.end++;
    const wf__word_node node = {.word = WF__WLM_NONE, .ahead = INFINITY, .byte = byte};
    if (words->nodes.size >= UINT32_MAX - 1)
      return wf__fail(err, WF_ERR_LIMIT, "words of a model: more than 2^32 letters");
    WF__TRY(wf__vec_push(&words->nodes, node, "words of a model", err));
    WF__TRY(wf__vec_push(spans, below, "words of a model", err));
    words->nodes.data[at].num_children++;
    span.begin = below.end;
  }
  return WF_OK;
}

/* Children come after their node. */
static void look_ahead(wf__bias_words *words) {
  for (uint64_t i = words->nodes.size; i-- > 0;) {
    wf__word_node *node = &words->nodes.data[i];
    if (node->word != WF__WLM_NONE)
      node->ahead = wf__flat_sound(words->view.scale * words->lm->view.unigrams[node->word].cost);
    for (uint32_t c = 0; c < node->num_children; c++)
      node->ahead = fminf(node->ahead, words->nodes.data[node->first_child + c].ahead);
  }
  words->nodes.data[0].ahead = 0;
}

static wf_status make_trie(wf__bias_words *words, wf_error *err) {
  spelled_vec spelled = {0};
  span_vec spans = {0};
  wf_status status = list_words(words, &spelled, err);
  const struct span all = {0, spelled.size, 0};
  if (status == WF_OK)
    status = wf__vec_push(&words->nodes, ((wf__word_node){.word = WF__WLM_NONE, .ahead = INFINITY}),
                          "words of a model", err);
  if (status == WF_OK) status = wf__vec_push(&spans, all, "words of a model", err);
  for (uint32_t i = 0; status == WF_OK && i < words->nodes.size; i++)
    status = add_children(words, &spelled, &spans, i, err);
  if (status == WF_OK) look_ahead(words);
  words->view.nodes = words->nodes.data;
  words->view.num_nodes = (uint32_t)words->nodes.size;
  wf__vec_free(&spelled);
  wf__vec_free(&spans);
  return status;
}

/* --- rows -------------------------------------------------------------------------------- */

static int class_of(const unsigned char *text, uint64_t size) {
  uint64_t spaces = 0;
  while (spaces < size && text[spaces] == ' ') spaces++;
  if (size == 0 || memchr(text + spaces, ' ', size - spaces) != NULL) return WF__TOKEN_DEPENDS;
  return spaces > 0 ? WF__TOKEN_BEGINS : WF__TOKEN_GOES_ON;
}

static wf_status classify(wf__bias_words *words, const wf_token_texts *tokens, wf_error *err) {
  const wf_token_texts *texts = words->texts;
  const uint32_t count = texts->num_tokens;
  words->classes = wf__alloc(count, 1);
  words->marks = wf__alloc(count, sizeof *words->marks);
  words->begins = wf__alloc(count, sizeof *words->begins);
  words->sorted = wf__alloc(count, sizeof *words->sorted);
  words->depends = wf__alloc(count, sizeof *words->depends);
  if (words->classes == NULL || words->marks == NULL || words->begins == NULL ||
      words->sorted == NULL || words->depends == NULL)
    return wf__fail_memory(err, (uint64_t)count * 17, "words of a model");
  for (uint32_t t = 0; t < count; t++) {
    uint64_t size;
    const unsigned char *text = wf__token_text(texts, t, &size);
    wf_bias_state state = {.word = 0};
    words->classes[t] =
        (uint8_t)(wf__is_special(tokens, t) ? WF__TOKEN_BEGINS : class_of(text, size));
    words->marks[t] = words->classes[t] == WF__TOKEN_BEGINS ? UINT32_MAX : 0;
    words->begins[t] = 0;
    if (words->classes[t] == WF__TOKEN_DEPENDS)
      words->depends[words->num_depends++] = t;
    else if (!wf__is_special(tokens, t))
      words->begins[t] = wf__words_step(&words->view, &state, t);
  }
  for (uint32_t i = 0; i < texts->num_sorted; i++)
    if (words->classes[texts->order[i]] == WF__TOKEN_GOES_ON)
      words->sorted[words->num_sorted++] = texts->order[i];
  return WF_OK;
}

wf_status wf__bias_words_create(const wf_lm *lm, const wf_token_texts *texts,
                                const wf_token_texts *tokens, float scale, wf__bias_words **out,
                                wf_error *err) {
  *out = NULL;
  wf__wlm *mapped;
  WF__TRY(wf__lm_mapped(lm, &mapped, err));
  wf__bias_words *words = wf__calloc(1, sizeof *words);
  if (words == NULL) return wf__fail_memory(err, sizeof *words, "words of a model");
  const wf__wlm_view *view = &mapped->view;
  atomic_init(&words->refs, 1);
  words->texts = wf__token_texts_ref(texts);
  words->lm = wf__wlm_ref(mapped);
  const bool has_unk = view->unk != WF__WLM_NONE && wf__wlm_knows(view, view->unk);
  words->view = (wf__words_view){
      .bytes = (const uint8_t *)texts->bytes,
      .offsets = texts->offsets,
      .lm = *view,
      .scale = scale,
      .unk = has_unk ? view->unk : WF__WLM_NONE,
      .unknown = has_unk ? wf__flat_sound(scale * view->unigrams[view->unk].cost) : INFINITY,
      .ends = wf__wlm_knows(view, view->eos)};
  wf_status status = make_trie(words, err);
  if (status == WF_OK) status = classify(words, tokens, err);
  if (status != WF_OK) {
    wf__bias_words_free(words);
    return status;
  }
  *out = words;
  return WF_OK;
}

wf__bias_words *wf__bias_words_ref(wf__bias_words *words) {
  if (words != NULL) atomic_fetch_add(&words->refs, 1);
  return words;
}

void wf__bias_words_free(wf__bias_words *words) {
  if (words == NULL || atomic_fetch_sub(&words->refs, 1) != 1) return;
  wf_token_texts_free(words->texts);
  wf__wlm_free(words->lm);
  wf__vec_free(&words->nodes);
  free(words->classes);
  free(words->marks);
  free(words->begins);
  free(words->sorted);
  free(words->depends);
  free(words);
}

/* A row in work. */
struct row {
  const wf__bias_words *words;
  const float *values;
  float paid; /* at the node of the state */
  wf__row_work *work;
};

/* Notes the tokens that spell on from a node. */
static wf_status note_below(const struct row *row, uint32_t node, wf__token_range range,
                            wf_error *err) {
  const wf__bias_words *words = row->words;
  for (uint32_t i = wf__skip_ended(words->texts, &range); i < range.begin; i++)
    WF__TRY(wf__note_column(row->work, row->values, range.tokens[i],
                            wf__word_ahead(&words->view, node) - row->paid, err));
  const wf__word_node *at = &words->nodes.data[node];
  for (uint32_t c = at->first_child; c < at->first_child + at->num_children; c++) {
    if (range.begin == range.end) break;
    const wf__token_range below =
        wf__narrow_range(words->texts, &range, (unsigned char)words->nodes.data[c].byte);
    if (below.begin < below.end) WF__TRY(note_below(row, c, below, err));
  }
  return WF_OK;
}

wf_status wf__bias_words_add(const wf__bias_words *words, const wf_bias_state *state, float *row,
                             float sign, wf__row_work *work, wf_error *err) {
  const struct row to = {words, row, wf__word_paid(&words->view, state->word), work};
  wf_bias_state after = *state;
  const float end = wf__word_end(&words->view, &after), outside = words->view.unknown - to.paid;
  for (uint32_t i = 0; i < words->num_depends; i++) {
    wf_bias_state at = *state;
    const float cost = wf__words_step(&words->view, &at, words->depends[i]);
    WF__TRY(wf__note_column(work, row, words->depends[i], cost, err));
  }
  const uint32_t count = words->texts->num_tokens;
  const float *begins = words->begins;
  const uint32_t *marks = words->marks;
  if (state->word == 0) {
    for (uint32_t t = 0; t < count; t++) row[t] += sign * begins[t];
  } else {
    const wf__token_range all = {words->sorted, 0, words->num_sorted, 0};
    if (state->word < words->nodes.size) WF__TRY(note_below(&to, state->word, all, err));
    for (uint32_t t = 0; t < count; t++) {
      row[t] += sign * wf__either(marks[t], end + begins[t], outside);
    }
  }
  wf__write_columns(work, row, sign);
  return WF_OK;
}
