/* bias_view.h - a bias as plain numbers and arrays, on the CPU and on a GPU, and what a single token
 * costs after a hypothesis. Both sides add in the same order, so they give the same bits. */
#ifndef WF_GENERATION_BIAS_VIEW_H
#define WF_GENERATION_BIAS_VIEW_H

#include "scorer/flat_scorer.h"
#include "warpfst_generation.h"

#define WF__NO_TEXT UINT32_MAX /* as state of a grammar: the text is not in it */

/* How a token's text stands to words. */
enum {
  WF__TOKEN_BEGINS,  /* a word with a space, or nothing but spaces */
  WF__TOKEN_GOES_ON, /* with the word before */
  WF__TOKEN_DEPENDS  /* on the state in another way */
};

/* A node of the trie of a model's words. Its children follow each other. */
typedef struct wf__word_node {
  uint32_t first_child, num_children;
  uint32_t word; /* of the model, which ends here; WF__WLM_NONE: none */
  float ahead;   /* the least cost of a word below it after no history */
  uint32_t byte; /* that leads here */
} wf__word_node;

/* An n-gram model of words (bias_words.c). */
typedef struct wf__words_view {
  const wf__word_node *nodes;
  const uint8_t *bytes;    /* of the tokens' texts, as the model writes words */
  const uint64_t *offsets; /* [num_tokens + 1] */
  wf__wlm_view lm;
  uint32_t num_nodes; /* 0: there is no model. As a node: no word begins like this */
  float scale;
  uint32_t unk;  /* WF__WLM_NONE: none */
  float unknown; /* ahead of the node of no word; +infinity without unk */
  uint32_t ends; /* does the model know </s>? */
} wf__words_view;

typedef struct wf__bias_view {
  const uint8_t *kinds; /* [num_tokens] */
  wf__flat_scorer flat; /* no parts without a scorer */
  wf__words_view words;
  wf_fst_view grammar; /* without states: none */
  uint32_t num_tokens;
  uint32_t start[WF__FLAT_PARTS]; /* of phrases: the node after label num_tokens + 1; 0: none */
} wf__bias_view;

static inline WF__HD bool wf__bias_is_special(const wf__bias_view *bias, uint32_t token) {
  return bias->kinds[token] & (WF_TOKEN_SILENT | WF_TOKEN_ENDS);
}
static inline WF__HD bool wf__bias_has_words(const wf__bias_view *bias) {
  return bias->words.num_nodes > 0;
}
static inline WF__HD bool wf__bias_has_grammar(const wf__bias_view *bias) {
  return bias->grammar.num_states > 0;
}

/* --- phrases ----------------------------------------------------------------------------- */

/* Nothing is pending where a word may begin. */
static inline WF__HD float wf__phrase_pending(const wf__bias_view *bias, int i, uint32_t node) {
  return node == bias->start[i] ? 0 : bias->flat.parts[i].nodes[node].pending;
}
/* What a token that continues a word pays back after a node: the boosts of phrases that ended
 * before it, and so were no whole words. */
static inline WF__HD float wf__phrase_refund(const wf__bias_view *bias, int i, uint32_t node) {
  const wf__phrase_node *at = &bias->flat.parts[i].nodes[node];
  const uint32_t last = (uint32_t)at->word - 1;
  const bool breaks = last < bias->num_tokens && (bias->kinds[last] & WF_TOKEN_BREAKS);
  return breaks ? 0 : at->earned;
}
/* Cost of a token that leads from a node to another, and pays back `refund`. */
static inline WF__HD float wf__phrase_cost(const wf__bias_view *bias, int i, uint32_t from,
                                           uint32_t to, float refund) {
  return wf__phrase_pending(bias, i, from) - wf__phrase_pending(bias, i, to) -
         bias->flat.parts[i].nodes[to].earned + refund;
}
static inline WF__HD float wf__phrase_step(const wf__bias_view *bias, int i, uint32_t from,
                                           uint32_t token, uint32_t *next) {
  const uint8_t kinds = bias->kinds[token];
  *next = wf__flat_follow(&bias->flat.parts[i], from, token + 1);
  if (*next == 0 && (kinds & WF_TOKEN_BREAKS)) *next = bias->start[i];
  const bool continues = kinds & WF_TOKEN_CONTINUES;
  return wf__phrase_cost(bias, i, from, *next, continues ? wf__phrase_refund(bias, i, from) : 0);
}

static inline WF__HD float wf__bias_scorer_step(const wf__bias_view *bias, wf_bias_state *state,
                                                uint32_t token) {
  float sum = 0;
  uint64_t to = 0;
  for (int i = 0; i < bias->flat.num_parts; i++) {
    const wf__flat_part *part = &bias->flat.parts[i];
    const uint32_t from = wf__flat_context(part, state->context);
    uint32_t next;
    sum += part->kind == WF__FLAT_PHRASES ? wf__phrase_step(bias, i, from, token, &next)
                                          : wf__flat_part_step(part, from, token + 1, &next);
    to |= (uint64_t)next << part->shift;
  }
  state->context = to;
  return sum;
}

/* --- words ------------------------------------------------------------------------------- */

static inline WF__HD uint32_t wf__word_child(const wf__words_view *words, uint32_t node,
                                             uint32_t byte) {
  if (node >= words->num_nodes) return node;
  uint32_t begin = words->nodes[node].first_child, end = begin + words->nodes[node].num_children;
  const uint32_t last = end;
  while (begin < end) {
    const uint32_t middle = begin + (end - begin) / 2;
    if (words->nodes[middle].byte < byte)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin < last && words->nodes[begin].byte == byte ? begin : words->num_nodes;
}
static inline WF__HD float wf__word_ahead(const wf__words_view *words, uint32_t node) {
  return node < words->num_nodes ? words->nodes[node].ahead : words->unknown;
}
/* Taken back when the word goes on or ends. */
static inline WF__HD float wf__word_paid(const wf__words_view *words, uint32_t node) {
  const float ahead = wf__word_ahead(words, node);
  return isinf(ahead) ? 0 : ahead;
}

/* Ends the word that has begun, if one has. */
static inline WF__HD float wf__word_end(const wf__words_view *words, wf_bias_state *state) {
  if (state->word == 0) return 0;
  const float paid = wf__word_paid(words, state->word);
  uint32_t word = state->word < words->num_nodes ? words->nodes[state->word].word : WF__WLM_NONE,
           next = 0, at;
  if (word == WF__WLM_NONE) word = words->unk;
  state->word = 0;
  if (word == WF__WLM_NONE) {
    state->history = 0;
    return INFINITY;
  }
  const float cost =
      wf__flat_sound(words->scale * wf__wlm_step(&words->lm, state->history, word, &next, &at));
  state->history = next;
  return cost - paid;
}

static inline WF__HD float wf__words_step(const wf__words_view *words, wf_bias_state *state,
                                          uint32_t token) {
  const uint64_t end = words->offsets[token + 1];
  float sum = 0;
  for (uint64_t i = words->offsets[token]; i < end;) {
    if (words->bytes[i] == ' ') {
      sum += wf__word_end(words, state);
      i++;
      continue;
    }
    const float paid = wf__word_paid(words, state->word);
    while (i < end && words->bytes[i] != ' ')
      state->word = wf__word_child(words, state->word, words->bytes[i++]);
    sum += wf__word_ahead(words, state->word) - paid;
  }
  return sum;
}

static inline WF__HD float wf__words_final(const wf__words_view *words,
                                           const wf_bias_state *state) {
  wf_bias_state end = *state;
  uint32_t next, at;
  const float cost = wf__word_end(words, &end),
              last = words->ends && end.history < words->lm.num_states
                         ? wf__wlm_step(&words->lm, end.history, words->lm.eos, &next, &at)
                         : INFINITY;
  return cost + wf__flat_sound(words->scale * last);
}

/* --- grammars, and all together ---------------------------------------------------------- */

/* The first arc of a state, among [begin, end), whose label is `label` or more. */
static inline WF__HD uint64_t wf__grammar_find(const wf_fst_view *grammar, uint64_t begin,
                                               uint64_t end, uint32_t label) {
  while (begin < end) {
    const uint64_t middle = begin + (end - begin) / 2;
    if ((uint32_t)grammar->arcs[middle].ilabel < label)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

static inline WF__HD float wf__grammar_step(const wf_fst_view *grammar, wf_bias_state *state,
                                            uint32_t token) {
  if (state->grammar == WF__NO_TEXT) return INFINITY;
  const uint64_t last = grammar->arc_off[state->grammar + 1],
                 at = wf__grammar_find(grammar, grammar->arc_off[state->grammar], last, token + 1);
  const bool found = at < last && (uint32_t)grammar->arcs[at].ilabel == token + 1;
  state->grammar = found ? grammar->arcs[at].nextstate : WF__NO_TEXT;
  return found ? grammar->arcs[at].weight : INFINITY;
}

/* Cost of ending the text, in the order in which the parts are added. */
static inline WF__HD float wf__bias_final(const wf__bias_view *bias, const wf_bias_state *state) {
  float sum = 0;
  for (int i = 0; i < bias->flat.num_parts; i++) {
    const wf__flat_part *part = &bias->flat.parts[i];
    const uint32_t at = wf__flat_context(part, state->context);
    sum += part->kind == WF__FLAT_PHRASES ? wf__phrase_pending(bias, i, at)
                                          : wf__flat_part_final(part, at);
  }
  if (wf__bias_has_words(bias)) sum += wf__words_final(&bias->words, state);
  if (wf__bias_has_grammar(bias) && state->grammar != WF__NO_TEXT)
    sum += bias->grammar.final_cost[state->grammar];
  return sum;
}

/* Follows a token from a state in place; returns its cost. Tokens outside of the table are
 * silent. */
static inline WF__HD float wf__bias_step(const wf__bias_view *bias, wf_bias_state *state,
                                         uint32_t token) {
  if (state->ended || token >= bias->num_tokens) return 0;
  const uint8_t kinds = bias->kinds[token];
  if (kinds & WF_TOKEN_ENDS) {
    const float cost = wf__bias_final(bias, state);
    state->ended = 1;
    return cost;
  }
  if (kinds & WF_TOKEN_SILENT) {
    if (!wf__bias_has_grammar(bias)) return 0;
    state->grammar = WF__NO_TEXT;
    return INFINITY;
  }
  float sum = wf__bias_scorer_step(bias, state, token);
  if (wf__bias_has_words(bias)) sum += wf__words_step(&bias->words, state, token);
  if (wf__bias_has_grammar(bias)) sum += wf__grammar_step(&bias->grammar, state, token);
  return sum;
}

#endif
