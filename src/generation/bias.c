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
  const wf__flat_part *part = &bias->flat.parts[i];
  for (int k = 0; base != NULL && k < base->flat.num_parts; k++) {
    if (base->flat.parts[k].owner != part->owner) continue;
    bias->ngrams[i] = base->ngrams[k];
    atomic_fetch_add(&bias->ngrams[i]->refs, 1);
    return WF_OK;
  }
  return wf__ngram_rows_create(part, bias->tokens, &bias->ngrams[i], err);
}

static wf_status take_scorer(wf_bias *bias, const wf_bias_parts *parts, wf_error *err) {
  if (parts->scorer == NULL) return WF_OK;
  bias->scorer = wf_scorer_ref(parts->scorer);
  const char *why_not = wf__scorer_flatten(parts->scorer, &bias->flat);
  for (int i = 0; why_not == NULL && i < bias->flat.num_parts; i++) {
    const int kind = bias->flat.parts[i].kind;
    if (kind == WF__FLAT_WORDS) why_not = "boost of single words";
    if (kind == WF__FLAT_RECURRENT) why_not = "recurrent";
  }
  if (why_not != NULL)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "bias: expected a scorer of phrases or n-grams, or a chain of up to three, "
                    "found: %s",
                    why_not);
  for (int i = 0; i < bias->flat.num_parts; i++) {
    const wf__flat_part *part = &bias->flat.parts[i];
    if (part->kind == WF__FLAT_PHRASES)
      WF__TRY(wf__phrase_rows_create(part, bias->tokens, &bias->phrases[i], err));
    else
      WF__TRY(take_ngrams(bias, i, parts->base, err));
  }
  return WF_OK;
}

static wf_status check_grammar(const wf_bias *bias, wf_error *err) {
  const wf_fst_view *view = &bias->allowed;
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
  bias->allowed = wf_fst_get_view(bias->grammar);
  return parts->grammar != NULL ? check_grammar(bias, err) : WF_OK;
}

static wf_status take_words(wf_bias *bias, const wf_bias_parts *parts, wf_error *err) {
  if (parts->lm == NULL) {
    if (parts->base != NULL) bias->words = wf__bias_words_ref(parts->base->words);
    return WF_OK;
  }
  const wf_token_texts *texts = parts->lm_texts != NULL ? parts->lm_texts : parts->tokens;
  if (!(parts->lm_scale > 0 && parts->lm_scale <= 1e6f))
    return wf__fail(err, WF_ERR_ARGUMENT, "bias: lm_scale is %g, expected above 0, at most 1e6",
                    (double)parts->lm_scale);
  if (texts->num_tokens != parts->tokens->num_tokens)
    return wf__fail(err, WF_ERR_ARGUMENT, "bias: lm_texts has %u tokens, expected %u",
                    texts->num_tokens, parts->tokens->num_tokens);
  return wf__bias_words_create(parts->lm, texts, parts->tokens, parts->lm_scale, &bias->words, err);
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
  wf_bias_state state = {.grammar = 0};
  for (int i = 0; i < bias->flat.num_parts; i++) {
    const wf__flat_part *part = &bias->flat.parts[i];
    const uint32_t start = part->kind == WF__FLAT_PHRASES ? bias->phrases[i].start : part->start;
    state.context |= (uint64_t)start << part->shift;
  }
  if (bias->words != NULL) wf__bias_words_start(bias->words, &state);
  if (bias->grammar != NULL) state.grammar = (uint32_t)bias->allowed.start;
  return state;
}

static float step_phrases(const wf_bias *bias, int i, uint32_t from, uint32_t token,
                          uint32_t *next) {
  const wf__flat_part *part = &bias->flat.parts[i];
  const wf__phrase_rows *rows = &bias->phrases[i];
  const uint8_t kinds = bias->tokens->kinds[token];
  *next = wf__flat_follow(part, from, token + 1);
  if (*next == 0 && (kinds & WF_TOKEN_BREAKS)) *next = rows->start;
  const bool continues = kinds & WF_TOKEN_CONTINUES;
  return wf__phrase_cost(part, rows, from, *next,
                         continues ? wf__phrase_refund(part, bias->tokens, from) : 0);
}

static float step_scorer(const wf_bias *bias, wf_bias_state *state, uint32_t token) {
  float sum = 0;
  uint64_t to = 0;
  for (int i = 0; i < bias->flat.num_parts; i++) {
    const wf__flat_part *part = &bias->flat.parts[i];
    const uint32_t from = wf__flat_context(part, state->context);
    uint32_t next;
    sum += part->kind == WF__FLAT_PHRASES ? step_phrases(bias, i, from, token, &next)
                                          : wf__flat_part_step(part, from, token + 1, &next);
    to |= (uint64_t)next << part->shift;
  }
  state->context = to;
  return sum;
}

static float step_grammar(const wf_bias *bias, wf_bias_state *state, uint32_t token) {
  if (state->grammar == WF__NO_TEXT) return INFINITY;
  const wf_fst_view *view = &bias->allowed;
  uint64_t begin = view->arc_off[state->grammar];
  const uint64_t last = view->arc_off[state->grammar + 1];
  for (uint64_t end = last; begin < end;) {
    const uint64_t middle = begin + (end - begin) / 2;
    if ((uint32_t)view->arcs[middle].ilabel < token + 1)
      begin = middle + 1;
    else
      end = middle;
  }
  const bool found = begin < last && (uint32_t)view->arcs[begin].ilabel == token + 1;
  state->grammar = found ? view->arcs[begin].nextstate : WF__NO_TEXT;
  return found ? view->arcs[begin].weight : INFINITY;
}

float wf__bias_final(const wf_bias *bias, const wf_bias_state *state) {
  float sum = 0;
  for (int i = 0; i < bias->flat.num_parts; i++) {
    const wf__flat_part *part = &bias->flat.parts[i];
    const uint32_t at = wf__flat_context(part, state->context);
    sum += part->kind == WF__FLAT_PHRASES ? wf__phrase_pending(part, &bias->phrases[i], at)
                                          : wf__flat_part_final(part, at);
  }
  if (bias->words != NULL) sum += wf__bias_words_final(bias->words, state);
  if (bias->grammar != NULL && state->grammar != WF__NO_TEXT)
    sum += bias->allowed.final_cost[state->grammar];
  return sum;
}

static float advance(const wf_bias *bias, wf_bias_state *state, uint32_t token) {
  if (state->ended || token >= bias->tokens->num_tokens) return 0;
  const uint8_t kinds = bias->tokens->kinds[token];
  if (kinds & WF_TOKEN_ENDS) {
    const float cost = wf__bias_final(bias, state);
    state->ended = 1;
    return cost;
  }
  if (kinds & WF_TOKEN_SILENT) {
    if (bias->grammar == NULL) return 0;
    state->grammar = WF__NO_TEXT;
    return INFINITY;
  }
  float sum = step_scorer(bias, state, token);
  if (bias->words != NULL) sum += wf__bias_words_step(bias->words, state, token);
  if (bias->grammar != NULL) sum += step_grammar(bias, state, token);
  return sum;
}

wf_status wf_bias_advance(const wf_bias *const *biases, wf_bias_state *states,
                          const int32_t *tokens, size_t count, float *costs, wf_error *err) {
  for (size_t i = 0; i < count; i++)
    if (tokens[i] < 0)
      return wf__fail(err, WF_ERR_ARGUMENT, "bias: hypothesis %zu: token %d", i, tokens[i]);
  for (size_t i = 0; i < count; i++) {
    const float cost = advance(biases[i], &states[i], (uint32_t)tokens[i]);
    if (costs != NULL) costs[i] = cost;
  }
  return WF_OK;
}
