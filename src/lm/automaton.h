/* automaton.h - the form of a model in memory: the arrays of the back-off automaton, and its step
 * function.
 *
 *   ARPA text --arpa.c--> n-grams by order --ngram_levels.c (sort)--> lm_build.c --> wf__automaton
 *     --> lm.c (queries), lm_to_fst.c
 *
 *   unigrams [num_labels]    {cost, next} by label: the arcs of state 0; next is WF__LM_NONE if the
 *                            label is not a word of the model
 *   states [num_states + 1]  {first_arc, back-off state, back-off cost}; the arcs of state s are
 *                            [states[s].first_arc, states[s + 1].first_arc)
 *   arcs [num_arcs]          {word, cost, next}, sorted by word within a state; neither those of
 *                            state 0 nor those for </s>
 *   final_cost, final_order  [num_states] cost of </s>, resolved through back-off, and the order of
 *                            the n-gram that it comes from
 *
 * States are numbered by length of history: those of k words are [level_begin[k], level_begin[k +
 * 1]), so a back-off always leads to a smaller number. A history `h w` is a state only if `h` is a
 * state with an arc for w.
 *
 * Labels of the word table are below num_public. <s>, </s> and <unk> get labels from num_public on
 * if the table lacks them. */
#ifndef WF_LM_AUTOMATON_H
#define WF_LM_AUTOMATON_H

#include <math.h>
#include <stdatomic.h>

#include "base/input.h"
#include "lm/lm_types.h"
#include "warpfst_lm.h"

typedef struct wf__automaton {
  atomic_int refs;
  wf_symbols *words;
  int32_t order;
  uint32_t bos, eos, unk; /* labels; unk is WF__LM_NONE if the model has no <unk> */
  uint32_t start;
  uint32_t num_public, num_labels;
  uint64_t num_outside;    /* words of the file that the given word table lacks */
  uint64_t num_other_case; /* those of them that the table has in another case */
  char other_case[64];     /* the first of these */
  uint64_t num_states, num_arcs;
  uint64_t level_begin[WF_LM_MAX_ORDER + 1];
  uint64_t num_ngrams[WF_LM_MAX_ORDER + 1];
  wf__lm_unigram *unigrams;
  wf__lm_state *states;
  wf__lm_arc *arcs;
  float *final_cost;
  uint8_t *final_order;
} wf__automaton;

wf__automaton *wf__automaton_ref(const wf__automaton *lm);
void wf__automaton_free(wf__automaton *lm);
/* Reads a file of any format but .wlm. */
wf_status wf__automaton_read(wf__input *input, const wf_symbols *words,
                             const wf_arpa_options *options, wf__automaton **out,
                             wf_arpa_stats *stats, const wf_progress *progress, wf_error *err);
/* As wf_lm_knows, wf_lm_step, wf_lm_final and wf__lm_least_cost. */
bool wf__automaton_has_word(const wf__automaton *lm, int32_t word);
float wf__automaton_step(const wf__automaton *lm, uint32_t state, int32_t word, uint32_t *next,
                         int32_t *order);
float wf__automaton_final(const wf__automaton *lm, uint32_t state, int32_t *order);
float wf__automaton_least_cost(const wf__automaton *lm);
/* Sets what a model in memory has to say: sizes and labels. */
void wf__automaton_info(const wf__automaton *lm, wf_lm_info *info);

/* The n-grams of a model (automaton_ngrams.c). */
typedef struct wf__ngram_walk {
  const wf__automaton *lm;
  uint32_t *parent, *last; /* [num_states] state of the history without its last word; that word */
} wf__ngram_walk;
typedef struct wf__walked_ngram {
  int k;
  uint32_t words[WF_LM_MAX_ORDER]; /* [k] labels */
  float cost, backoff;             /* backoff: 0 without a state */
  bool is_state;
} wf__walked_ngram;
typedef wf_status (*wf__ngram_put)(void *user, const wf__walked_ngram *ngram, wf_error *err);
wf_status wf__ngram_walk_begin(const wf__automaton *lm, wf__ngram_walk *out, wf_error *err);
/* Passes each n-gram of order k to `put`, in the order of the states and labels; the first error
 * ends it. <s> has the cost +infinity. */
wf_status wf__ngram_walk_order(const wf__ngram_walk *walk, int k, wf__ngram_put put, void *user,
                               wf_error *err);
void wf__ngram_walk_end(wf__ngram_walk *walk);
/* Text of a label; the model's own name of <s>, </s> and <unk> if the word table lacks them. */
const char *wf__automaton_text(const wf__automaton *lm, uint32_t label);

static inline bool wf__lm_knows(const wf__automaton *lm, uint32_t word) {
  return word < lm->num_labels && lm->unigrams[word].next != WF__LM_NONE;
}

/* First arc of [first, first + num) with a word >= `word`; first + num if there is none. */
static inline const wf__lm_arc *wf__lm_lower_bound(const wf__lm_arc *first, uint64_t num,
                                                   uint32_t word) {
  while (num > 0) {
    uint64_t half = num / 2;
    bool right = first[half].word < word;
    first = right ? first + half + 1 : first;
    num = right ? num - half - 1 : half;
  }
  return first;
}

/* The explicit arc of a state other than 0, or NULL. */
static inline const wf__lm_arc *wf__lm_find(const wf__automaton *lm, uint32_t state,
                                            uint32_t word) {
  const wf__lm_arc *end = lm->arcs + lm->states[state + 1].first_arc,
                   *first = lm->arcs + lm->states[state].first_arc;
  const wf__lm_arc *arc = wf__lm_lower_bound(first, (uint64_t)(end - first), word);
  return arc != end && arc->word == word ? arc : NULL;
}

/* Cost of a word that has a unigram. Sets `*at` to the state that has the arc taken. */
static inline float wf__lm_step_known(const wf__automaton *lm, uint32_t state, uint32_t word,
                                      uint32_t *next, uint32_t *at) {
  float cost = 0;
  for (; state != 0; state = lm->states[state].backoff) {
    const wf__lm_arc *arc = wf__lm_find(lm, state, word);
    if (arc != NULL) {
      *next = arc->next;
      *at = state;
      return cost + arc->cost;
    }
    cost += lm->states[state].backoff_cost;
  }
  *next = lm->unigrams[word].next;
  *at = 0;
  return cost + lm->unigrams[word].cost;
}

/* Words in the history of a state. */
static inline int32_t wf__lm_level(const wf__automaton *lm, uint32_t state) {
  int32_t level = 0;
  while (level + 1 < lm->order && state >= lm->level_begin[level + 1]) level++;
  return level;
}

/* `next` is the target of the arc of an n-gram of k words. True if it is the state of exactly these
 * words, false if it is the state of a suffix. Every state but 0 and that of <s> is the own state
 * of exactly one arc. */
static inline bool wf__lm_is_own_state(const wf__automaton *lm, int k, uint32_t next) {
  return k < lm->order && next >= lm->level_begin[k];
}

/* True if the state has an explicit n-gram for </s>. */
static inline bool wf__lm_has_own_final(const wf__automaton *lm, uint32_t state) {
  return lm->final_order[state] == wf__lm_level(lm, state) + 1;
}

#endif
