/* bias.c - making a bias, and following tokens one by one. */
#include "generation/bias.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void free_parts(wf_bias *bias) {
  for (int i = 0; i < WF__FLAT_PARTS; i++) {
    wf__phrase_rows_free(&bias->phrases[i]);
    wf__ngram_rows_free(bias->ngrams[i]);
  }
  wf__bias_words_free(bias->words);
  wf_fst_free(bias->grammar);
  wf_scorer_free(bias->scorer);
  wf_token_texts_free(bias->tokens);
  free(bias);
}

void wf_bias_free(wf_bias *bias) {
  if (bias != NULL) free_parts(bias);
}

/* The tables of the same model in `base`, or new ones. */
static wf_status take_ngrams(wf_bias *bias, int i, const wf_bias *base, wf_error *err) {
  const wf__flat_part *part = &bias->view.flat.parts[i];
  for (int k = 0; base != NULL && k < base->view.flat.num_parts; k++) {
    if (base->view.flat.parts[k].owner != part->owner) continue;
    bias->ngrams[i] = wf__ngram_rows_ref(base->ngrams[k]);
    return WF_OK;
  }
  return wf__ngram_rows_create(part, bias->tokens, &bias->ngrams[i], err);
}

static wf_status take_scorer(wf_bias *bias, const wf_bias_parts *parts, wf_error *err) {
  if (parts->scorer == NULL) return WF_OK;
  bias->scorer = wf_scorer_ref(parts->scorer);
  const char *why_not = wf__scorer_flatten(parts->scorer, &bias->view.flat);
  for (int i = 0; why_not == NULL && i < bias->view.flat.num_parts; i++) {
    const int kind = bias->view.flat.parts[i].kind;
    if (kind == WF__FLAT_WORDS) why_not = "boost of single words";
    if (kind == WF__FLAT_RECURRENT) why_not = "recurrent";
  }
  if (why_not != NULL)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "bias: expected a scorer of phrases or n-grams, or a chain of up to three, "
                    "found: %s",
                    why_not);
  for (int i = 0; i < bias->view.flat.num_parts; i++) {
    const wf__flat_part *part = &bias->view.flat.parts[i];
    if (part->kind == WF__FLAT_PHRASES)
      WF__TRY(
          wf__phrase_rows_create(part, bias->tokens, &bias->phrases[i], &bias->view.start[i], err));
    else
      WF__TRY(take_ngrams(bias, i, parts->base, err));
  }
  return WF_OK;
}

static wf_status check_grammar(const wf_bias *bias, wf_error *err) {
  const wf_fst_view *view = &bias->view.grammar;
  const uint64_t needed = WF_PROP_ACCEPTOR | WF_PROP_NO_IEPSILONS | WF_PROP_IDETERMINISTIC;
  if (view->start < 0) return wf__fail(err, WF_ERR_ARGUMENT, "bias: the grammar accepts no text");
  if ((wf_fst_properties(bias->grammar) & needed) != needed)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "bias: the grammar must be a deterministic acceptor without epsilons");
  for (uint64_t a = 0; a < view->num_arcs; a++)
    if ((uint32_t)view->arcs[a].ilabel > bias->tokens->num_tokens)
      return wf__fail(err, WF_ERR_ARGUMENT,
                      "bias: the grammar has label %d, but there are %u tokens",
                      view->arcs[a].ilabel, bias->tokens->num_tokens);
  return WF_OK;
}

static wf_status take_grammar(wf_bias *bias, const wf_bias_parts *parts, wf_error *err) {
  const wf_bias *base = parts->base;
  if (parts->grammar != NULL)
    WF__TRY(wf_arcsort(parts->grammar, NULL, &bias->grammar, err));
  else if (base != NULL && base->grammar != NULL)
    bias->grammar = wf_fst_ref(base->grammar);
  if (bias->grammar == NULL) return WF_OK;
  bias->view.grammar = wf_fst_get_view(bias->grammar);
  return parts->grammar != NULL ? check_grammar(bias, err) : WF_OK;
}

static wf_status take_words(wf_bias *bias, const wf_bias_parts *parts, wf_error *err) {
  if (parts->lm == NULL) {
    if (parts->base != NULL) bias->words = wf__bias_words_ref(parts->base->words);
    if (bias->words != NULL) bias->view.words = bias->words->view;
    return WF_OK;
  }
  const wf_token_texts *texts = parts->lm_texts != NULL ? parts->lm_texts : parts->tokens;
  if (!(parts->lm_scale > 0 && parts->lm_scale <= 1e6f))
    return wf__fail(err, WF_ERR_ARGUMENT, "bias: lm_scale is %g, expected above 0, at most 1e6",
                    (double)parts->lm_scale);
  if (texts->num_tokens != parts->tokens->num_tokens)
    return wf__fail(err, WF_ERR_ARGUMENT, "bias: lm_texts has %u tokens, expected %u",
                    texts->num_tokens, parts->tokens->num_tokens);
  WF__TRY(
      wf__bias_words_create(parts->lm, texts, parts->tokens, parts->lm_scale, &bias->words, err));
  bias->view.words = bias->words->view;
  return WF_OK;
}

wf_status wf_bias_create(const wf_bias_parts *given, wf_bias **out, wf_error *err) {
  *out = NULL;
  wf_bias_parts parts = {0};
  memcpy(&parts, given, given->struct_size < sizeof parts ? given->struct_size : sizeof parts);
  if (parts.tokens == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "bias: no table of tokens");
  if (parts.base != NULL && parts.base->tokens != parts.tokens)
    return wf__fail(err, WF_ERR_ARGUMENT, "bias: the base has another table of tokens");
  wf_bias *bias = wf__calloc(1, sizeof *bias);
  if (bias == NULL) return wf__fail_memory(err, sizeof *bias, "a bias");
  bias->tokens = wf__token_texts_ref(parts.tokens);
  bias->view.kinds = bias->tokens->kinds;
  bias->view.num_tokens = bias->tokens->num_tokens;
  wf_status status = take_scorer(bias, &parts, err);
  if (status == WF_OK) status = take_words(bias, &parts, err);
  if (status == WF_OK) status = take_grammar(bias, &parts, err);
  if (status != WF_OK) {
    free_parts(bias);
    return status;
  }
  *out = bias;
  return WF_OK;
}

/* --- one token at a time ----------------------------------------------------------------- */

wf_bias_state wf_bias_start(const wf_bias *bias) {
  const wf__bias_view *view = &bias->view;
  wf_bias_state state = {.grammar = 0};
  for (int i = 0; i < view->flat.num_parts; i++) {
    const wf__flat_part *part = &view->flat.parts[i];
    const uint32_t start = part->kind == WF__FLAT_PHRASES ? view->start[i] : part->start;
    state.context |= (uint64_t)start << part->shift;
  }
  if (wf__bias_has_words(view)) state.history = view->words.lm.start;
  if (wf__bias_has_grammar(view)) state.grammar = (uint32_t)view->grammar.start;
  return state;
}

wf_status wf_bias_advance(const wf_bias *const *biases, wf_bias_state *states,
                          const int32_t *tokens, size_t count, float *costs, wf_error *err) {
  for (size_t i = 0; i < count; i++)
    if (tokens[i] < 0)
      return wf__fail(err, WF_ERR_ARGUMENT, "bias: hypothesis %zu: token %d", i, tokens[i]);
  for (size_t i = 0; i < count; i++) {
    const float cost = wf__bias_step(&biases[i]->view, &states[i], (uint32_t)tokens[i]);
    if (costs != NULL) costs[i] = cost;
  }
  return WF_OK;
}
