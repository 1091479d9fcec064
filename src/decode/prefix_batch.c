/* prefix_batch.c - the public calls of the CTC prefix beam search: the searcher, a batch. */
#include <string.h>

#include "base/config.h"
#include "base/option_tables.h"
#include "base/threads.h"
#include "decode/host_scores.h"
#include "decode/prefix_search.h"
#include "lm/lm.h"

/* --- the searcher -------------------------------------------------------------------------- */

static wf_status add_tokens(wf_prefix_searcher *s, const wf_prefix_parts *parts, wf_error *err) {
  if (parts->num_tokens == 0 || parts->num_tokens >= INT32_MAX)
    return wf__fail(err, WF_ERR_ARGUMENT, "%zu tokens", parts->num_tokens);
  if (parts->blank < 0 || (size_t)parts->blank >= parts->num_tokens)
    return wf__fail(err, WF_ERR_ARGUMENT, "the blank is column %d, there are %zu tokens",
                    parts->blank, parts->num_tokens);
  s->tokens = wf__calloc(parts->num_tokens, sizeof *s->tokens);
  if (s->tokens == NULL)
    return wf__fail_memory(err, parts->num_tokens * sizeof *s->tokens, "tokens");
  s->num_tokens = (int32_t)parts->num_tokens;
  s->blank = parts->blank;
  for (size_t i = 0; i < parts->num_tokens; i++) {
    s->tokens[i] = parts->tokens[i];
    if (s->tokens[i].ends_word && s->tokens[i].text[0] != 0) s->texts_end = true;
    s->tokens[i].text = wf__strndup(parts->tokens[i].text, strlen(parts->tokens[i].text));
    if (s->tokens[i].text == NULL) return wf__fail_memory(err, 64, "a token");
  }
  return WF_OK;
}

static wf_status add_words(wf_prefix_searcher *s, const wf_prefix_parts *parts, wf_error *err) {
  WF__TRY(wf__word_trie_init(&s->words, NULL, err));
  for (size_t i = 0; i < parts->num_words; i++) {
    uint32_t part = 0;
    WF__TRY(wf__word_trie_append(&s->words, 0, parts->words[i], &part, err));
    if (part == 0) return wf__fail(err, WF_ERR_ARGUMENT, "word %zu is empty", i);
    wf__word_trie_mark(&s->words, part);
  }
  return WF_OK;
}

wf_status wf_prefix_searcher_create(const wf_prefix_parts *parts, wf_prefix_searcher **out,
                                    wf_error *err) {
  wf__error_clear(err);
  *out = NULL;
  wf_prefix_searcher *s = wf__calloc(1, sizeof *s);
  if (s == NULL) return wf__fail_memory(err, sizeof *s, "a prefix search");
  wf_status status = add_tokens(s, parts, err);
  if (status == WF_OK) status = add_words(s, parts, err);
  if (status != WF_OK) {
    wf_prefix_searcher_free(s);
    return status;
  }
  if (parts->lm != NULL) {
    s->lm = wf_lm_ref(parts->lm);
    s->lm_least = (double)wf__lm_least_cost(parts->lm);
  }
  *out = s;
  return WF_OK;
}

void wf_prefix_searcher_free(wf_prefix_searcher *searcher) {
  if (searcher == NULL) return;
  for (int32_t i = 0; i < searcher->num_tokens; i++)
    free((char *)(uintptr_t)searcher->tokens[i].text);
  free(searcher->tokens);
  wf__word_trie_free(&searcher->words);
  wf_lm_free(searcher->lm);
  free(searcher);
}

/* --- a batch ------------------------------------------------------------------------------- */

static wf_status check_input(const wf_prefix_searcher *searcher, const wf_prefix_input *input,
                             wf_error *err) {
  const wf_scores *s = &input->scores;
  if (s->num_frames > 0 && s->num_columns != searcher->num_tokens)
    return wf__fail(err, WF_ERR_ARGUMENT, "the scores have %d columns, there are %d tokens",
                    s->num_columns, searcher->num_tokens);
  return WF_OK;
}

typedef struct batch {
  const wf_prefix_searcher *searcher;
  const wf_prefix_input *inputs;
  const wf_prefix_options *options;
  wf_prefix_result **results;
} batch;

static void free_texts(wf_prefix_result *result) {
  free(result->texts);
  if (result->memory != NULL) wf__arena_free(result->memory);
  free(result->memory);
  result->texts = NULL;
  result->memory = NULL;
  result->num_texts = 0;
}

static void search_item(void *user, uint64_t item, int worker) {
  (void)worker;
  const batch *b = user;
  wf_prefix_result *out = b->results[item];
  wf_error err = {0};
  wf_prefix_input input = b->inputs[item];
  void *copy;
  out->status = wf__host_scores(&b->inputs[item].scores, &input.scores, &copy, &err);
  if (out->status == WF_OK) out->status = check_input(b->searcher, &input, &err);
  if (out->status == WF_OK)
    out->status = wf__prefix_search(b->searcher, b->options, &input, false, out, &err);
  free(copy);
  if (out->status == WF_OK) return;
  free_texts(out);
  wf__utterance_message(out->message, sizeof out->message, NULL, item, err.message);
}

wf_status wf_prefix_search(const wf_prefix_searcher *searcher, const wf_prefix_input *inputs,
                           size_t count, const wf_prefix_options *options,
                           wf_prefix_result **results, wf_error *err) {
  wf__error_clear(err);
  if (count > 0) memset(results, 0, count * sizeof *results);
  wf_prefix_options o;
  WF__TRY(wf__options_take(wf__prefix_table(), options, &o, err));
  batch b = {searcher, inputs, &o, results};
  wf_status status = WF_OK;
  for (size_t i = 0; i < count && status == WF_OK; i++) {
    results[i] = wf__calloc(1, sizeof **results);
    if (results[i] == NULL) status = wf__fail_memory(err, sizeof **results, "a result");
  }
  if (status == WF_OK) status = wf__pool_once(o.num_threads, count, search_item, &b, err);
  for (size_t i = 0; i < count && status != WF_OK; i++) {
    wf_prefix_result_free(results[i]);
    results[i] = NULL;
  }
  return status;
}

void wf_prefix_result_free(wf_prefix_result *result) {
  if (result != NULL) free_texts(result);
  free(result);
}
