/* bias_tables.c - tables for the rows of phrases and of n-gram models. */
#include <math.h>
#include <stdlib.h>

#include "generation/bias.h"

static int by_token(const void *a, const void *b) {
  const uint32_t first = ((const wf__phrase_child *)a)->token,
                 second = ((const wf__phrase_child *)b)->token;
  return first < second ? -1 : first > second;
}

wf_status wf__phrase_rows_create(const wf__flat_part *part, const wf_token_texts *tokens,
                                 wf__phrase_rows *out, uint32_t *at_start, wf_error *err) {
  const uint32_t start = tokens->num_tokens + 1;
  out->first = wf__calloc(part->num_nodes + 2, sizeof *out->first);
  out->children = wf__alloc(part->num_nodes, sizeof *out->children);
  if (out->first == NULL || out->children == NULL)
    return wf__fail_memory(err, part->num_nodes * 16, "phrases of tokens");
  *at_start = wf__flat_find(part, start); /* a child of node 0 */
  if (*at_start == UINT32_MAX) *at_start = 0;
  uint64_t *next = out->first + 1; /* [node]: first the count of the node before */
  for (uint64_t i = 1; i < part->num_nodes; i++) {
    const uint32_t label = (uint32_t)part->nodes[i].word;
    if (label > start || (label == start && i != *at_start))
      return wf__fail(err, WF_ERR_ARGUMENT, "bias: a phrase has label %u, but there are %u tokens",
                      label, tokens->num_tokens);
    if (label != start) next[part->nodes[i].parent + 1]++;
  }
  for (uint64_t i = 1; i < part->num_nodes + 1; i++) next[i] += next[i - 1];
  for (uint64_t i = 1; i < part->num_nodes; i++) {
    const uint32_t label = (uint32_t)part->nodes[i].word;
    if (label != start)
      out->children[next[part->nodes[i].parent]++] = (wf__phrase_child){label - 1, (uint32_t)i};
  }
  for (uint64_t i = 0; i < part->num_nodes; i++)
    if (out->first[i + 1] > out->first[i] + 1)
      qsort(out->children + out->first[i], out->first[i + 1] - out->first[i], sizeof *out->children,
            by_token);
  return WF_OK;
}

void wf__phrase_rows_free(wf__phrase_rows *rows) {
  free(rows->first);
  free(rows->children);
}

static uint32_t word_of(const wf__flat_part *part, uint32_t token) {
  const uint32_t word = token + 1 < part->num_labels ? part->word_of[token + 1] : WF__WLM_NONE;
  return word < part->lm.num_words ? word : WF__WLM_NONE;
}

wf_status wf__ngram_rows_create(const wf__flat_part *part, const wf_token_texts *tokens,
                                wf__ngram_rows **out, wf_error *err) {
  const uint32_t num_words = part->lm.num_words, count = tokens->num_tokens;
  wf__ngram_rows *rows = *out = wf__calloc(1, sizeof *rows);
  if (rows == NULL) return wf__fail_memory(err, sizeof *rows, "tokens of a model");
  atomic_init(&rows->refs, 1);
  rows->unigrams = wf__alloc(count, sizeof *rows->unigrams);
  rows->first = wf__calloc((uint64_t)num_words + 2, sizeof *rows->first);
  rows->tokens = wf__alloc(count, sizeof *rows->tokens);
  if (rows->unigrams == NULL || rows->first == NULL || rows->tokens == NULL)
    return wf__fail_memory(err, (uint64_t)num_words * 8 + (uint64_t)count * 8, "tokens of a model");
  uint64_t *next = rows->first + 1;
  const float impossible = part->lm_scale < 0 ? -INFINITY : INFINITY;
  rows->plain = part->lm_scale != 0;
  for (uint32_t t = 0; t < count; t++) {
    const uint32_t word = word_of(part, t);
    rows->unigrams[t] = word != WF__WLM_NONE ? part->lm.unigrams[word].cost : impossible;
    if (rows->unigrams[t] != impossible)
      rows->plain = rows->plain && fabsf(part->lm_scale * rows->unigrams[t]) < 1e18f;
    if (word != WF__WLM_NONE && !wf__is_special(tokens, t)) next[word + 1]++;
  }
  for (uint64_t w = 1; w <= num_words; w++) next[w] += next[w - 1];
  for (uint32_t t = 0; t < count; t++) {
    const uint32_t word = word_of(part, t);
    if (word != WF__WLM_NONE && !wf__is_special(tokens, t)) rows->tokens[next[word]++] = t;
  }
  return WF_OK;
}

wf__ngram_rows *wf__ngram_rows_ref(wf__ngram_rows *rows) {
  atomic_fetch_add(&rows->refs, 1);
  return rows;
}

void wf__ngram_rows_free(wf__ngram_rows *rows) {
  if (rows == NULL || atomic_fetch_sub(&rows->refs, 1) != 1) return;
  free(rows->unigrams);
  free(rows->first);
  free(rows->tokens);
  free(rows);
}
