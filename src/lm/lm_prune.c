/* lm_prune.c - selects the words and n-grams to keep. Each n-gram has its own worth (lm_score.c).
 * The context of a kept n-gram must be kept, so from the highest order down
 *     value = max(own worth, values of the n-grams that it is the context of)
 * for kept n-grams, -infinity for the others. best[state] is the maximum value of the n-grams after
 * a history. A limit on one order then selects the largest values of that order, contexts first. A
 * limit on all orders selects the largest of all values, because no context has a smaller value
 * than an n-gram that needs it. */
#include "lm/lm_prune.h"

#include <string.h>

#include "base/callbacks.h"
#include "base/config.h"
#include "base/input.h"
#include "base/memory.h"
#include "base/option_tables.h"
#include "lm/lm.h"

typedef struct pruning {
  const wf__automaton *lm;
  wf_lm_prune_options options;
  uint64_t limit[WF_LM_MAX_ORDER + 1]; /* by order; UINT64_MAX: none */
  wf__lm_values values;
  float *best; /* [num_states] -infinity: no n-gram after it is kept */
  float *keys; /* values for wf__cut */
} pruning;

/* --- words ------------------------------------------------------------------------------- */

static bool is_special(const wf__automaton *lm, uint32_t word) {
  return word == lm->bos || word == lm->eos || word == lm->unk;
}

static bool is_candidate(const wf__automaton *lm, const wf_symbols *vocabulary, uint32_t word) {
  if (!wf__lm_knows(lm, word) || is_special(lm, word)) return false;
  return vocabulary == NULL || wf_symbols_find(vocabulary, wf_symbols_text(lm->words, word)) >= 0;
}

/* Sets kept[num_labels], the sum of the kept words' unigram probabilities, and their number. */
static wf_status choose_words(const wf__automaton *lm, const wf_symbols *vocabulary,
                              uint64_t max_words, bool *kept, double *mass, uint64_t *num_kept,
                              wf_error *err) {
  float *likely = wf__alloc(lm->num_labels, sizeof *likely);
  if (likely == NULL)
    return wf__fail_memory(err, lm->num_labels * sizeof *likely, "words of a language model");
  uint64_t num = 0;
  for (uint32_t w = 0; w < lm->num_labels; w++) {
    kept[w] = is_candidate(lm, vocabulary, w);
    if (kept[w]) likely[num++] = -lm->unigrams[w].cost;
  }
  wf__cut cut = wf__cut_at(likely, num, max_words > 0 ? max_words : num);
  free(likely);
  double all = lm->final_order[0] == 1 ? exp(-(double)lm->final_cost[0]) : 0, left = all;
  *num_kept = 0;
  for (uint32_t w = 0; w < lm->num_labels; w++) {
    if (!wf__lm_knows(lm, w)) continue;
    double p = exp(-(double)lm->unigrams[w].cost);
    kept[w] = kept[w] && wf__cut_keeps(&cut, -lm->unigrams[w].cost);
    *num_kept += kept[w];
    all += p;
    if (kept[w] || is_special(lm, w)) left += p;
  }
  *mass = all > 0 ? left / all : 1;
  return *num_kept > 0 ? WF_OK
                       : wf__fail(err, WF_ERR_ARGUMENT, "no word of the language model is left");
}

/* Makes the model of the kept words. It is normalised, so that worths refer to this model. */
static wf_status restrict_words(const wf__automaton *lm, const bool *kept, wf__pool *pool,
                                wf__automaton **out, wf_error *err) {
  wf__lm_values all;
  uint64_t num_scaled;
  wf_status status = wf__lm_values_alloc(lm, &all, err); /* zeros: keeps every n-gram */
  if (status == WF_OK) status = wf__lm_rebuild(lm, kept, &all, out, err);
  if (status == WF_OK) status = wf__lm_normalize(*out, pool, &num_scaled, err);
  wf__lm_values_free(&all);
  return status;
}

static wf_status take_words(const wf__automaton *lm, const wf_symbols *vocabulary,
                            uint64_t max_words, wf__pool *pool, wf__automaton **out, double *mass,
                            wf_error *err) {
  bool *kept = wf__alloc(lm->num_labels, sizeof *kept);
  if (kept == NULL) return wf__fail_memory(err, lm->num_labels, "words of a language model");
  uint64_t num_kept;
  wf_status status = choose_words(lm, vocabulary, max_words, kept, mass, &num_kept, err);
  if (status == WF_OK) status = restrict_words(lm, kept, pool, out, err);
  free(kept);
  return status;
}

/* --- n-grams ----------------------------------------------------------------------------- */

/* `N2,N3,..` */
static wf_status parse_limits(pruning *p, wf_error *err) {
  for (int k = 0; k <= WF_LM_MAX_ORDER; k++) p->limit[k] = UINT64_MAX;
  const char *at = p->options.max_ngrams;
  for (int k = 2; at != NULL; k++) {
    size_t size = strcspn(at, ",");
    int64_t limit;
    if (size > 0) {
      if (!wf__parse_i64((wf__span){at, size}, &limit) || limit < 0)
        return wf__fail(err, WF_ERR_ARGUMENT,
                        "max_ngrams: expected numbers such as 200000,100000, found '%.80s'",
                        p->options.max_ngrams);
      if (k > p->lm->order)
        return wf__fail(err, WF_ERR_ARGUMENT,
                        "max_ngrams has a limit for %d-grams (the first is that of bigrams), the "
                        "model ends at %d-grams",
                        k, p->lm->order);
      p->limit[k] = (uint64_t)limit;
    }
    at = at[size] == ',' ? at + size + 1 : NULL;
  }
  return WF_OK;
}

/* Visits the n-grams of one order: f(p, value of the n-gram, best value of its continuations or
 * -infinity). */
typedef void (*visit_fn)(void *user, float *value, float continuation);

static void visit_state(const pruning *p, int k, uint64_t state, visit_fn visit, void *user) {
  const wf__automaton *lm = p->lm;
  if (wf__lm_has_own_final(lm, (uint32_t)state)) visit(user, &p->values.final[state], -INFINITY);
  for (uint64_t a = lm->states[state].first_arc; a < lm->states[state + 1].first_arc; a++) {
    uint32_t next = lm->arcs[a].next;
    visit(user, &p->values.arc[a], wf__lm_is_own_state(lm, k, next) ? p->best[next] : -INFINITY);
  }
}

static void visit_order(const pruning *p, int k, visit_fn visit, void *user) {
  for (uint64_t state = p->lm->level_begin[k - 1]; state < p->lm->level_begin[k]; state++)
    visit_state(p, k, state, visit, user);
}

/* The choice within one order, in three passes: threshold and keys of the rest; cuts; values. Keys
 * of contexts fill `keys` from the front, the other keys from the back. */
typedef struct choice {
  float threshold;
  float *keys;
  uint64_t num_contexts, num_others; /* numbers of keys */
  uint64_t room_of_keys;
  wf__cut contexts, others;
  float best;
} choice;

static void collect(void *user, float *value, float continuation) {
  choice *c = user;
  if (continuation > -INFINITY)
    c->keys[c->num_contexts++] = continuation;
  else if (*value >= c->threshold)
    c->keys[c->room_of_keys - ++c->num_others] = *value;
  else
    *value = -INFINITY;
}

static void set_value(void *user, float *value, float continuation) {
  choice *c = user;
  bool kept = continuation > -INFINITY ? wf__cut_keeps(&c->contexts, continuation)
                                       : *value > -INFINITY && wf__cut_keeps(&c->others, *value);
  if (!kept) {
    *value = -INFINITY;
    return;
  }
  if (continuation > *value) *value = continuation;
  if (*value > c->best) c->best = *value;
}

static void choose_order(pruning *p, int k) {
  bool free_choice = k >= p->options.min_order;
  choice c = {
      .threshold = free_choice && p->options.threshold > 0 ? p->options.threshold : -INFINITY,
      .keys = p->keys};
  const wf__automaton *lm = p->lm;
  for (uint64_t state = lm->level_begin[k - 1]; state < lm->level_begin[k];
       state++) /* as many keys as n-grams */
    c.room_of_keys += lm->states[state + 1].first_arc - lm->states[state].first_arc +
                      wf__lm_has_own_final(lm, (uint32_t)state);
  visit_order(p, k, collect, &c);
  uint64_t limit = free_choice ? p->limit[k] : UINT64_MAX,
           contexts = limit < c.num_contexts ? limit : c.num_contexts;
  c.contexts = wf__cut_at(c.keys, c.num_contexts, contexts);
  c.others = wf__cut_at(c.keys + c.room_of_keys - c.num_others, c.num_others, limit - contexts);
  for (uint64_t state = lm->level_begin[k - 1]; state < lm->level_begin[k]; state++) {
    c.best = -INFINITY;
    visit_state(p, k, state, set_value, &c);
    p->best[state] = c.best;
  }
}

typedef struct total {
  float *keys;
  uint64_t num;
  wf__cut cut;
} total;

static void collect_all(void *user, float *value, float continuation) {
  (void)continuation;
  total *t = user;
  if (*value > -INFINITY) t->keys[t->num++] = *value;
}

static void cut_all(void *user, float *value, float continuation) {
  (void)continuation;
  total *t = user;
  if (*value > -INFINITY && !wf__cut_keeps(&t->cut, *value)) *value = -INFINITY;
}

/* Lower orders come first, so that among equal values a context precedes the n-grams that need it.
 * N-grams that lost their context to the limit of an order are still counted, so the result may be
 * smaller than the limit. */
static void choose_total(pruning *p) {
  uint64_t wanted = (uint64_t)p->options.max_total, fixed = p->lm->num_ngrams[1];
  for (int k = 2; k < p->options.min_order && k <= p->lm->order; k++) fixed += p->lm->num_ngrams[k];
  total t = {.keys = p->keys};
  for (int k = p->options.min_order; k <= p->lm->order; k++) visit_order(p, k, collect_all, &t);
  t.cut = wf__cut_at(t.keys, t.num, wanted > fixed ? wanted - fixed : 0);
  for (int k = p->options.min_order; k <= p->lm->order; k++) visit_order(p, k, cut_all, &t);
}

static void least(void *user, float *value, float continuation) {
  (void)continuation;
  float *smallest = user;
  if (*value > -INFINITY && *value < *smallest) *smallest = *value;
}

static wf_status choose_ngrams(pruning *p, wf__pool *pool, wf_lm_prune_stats *stats,
                               const wf_progress *progress, wf_error *err) {
  const wf__automaton *lm = p->lm;
  WF__TRY(wf__lm_values_alloc(lm, &p->values, err));
  p->best = wf__alloc(lm->num_states, sizeof *p->best);
  p->keys = wf__alloc(lm->num_arcs + lm->num_states, sizeof *p->keys);
  if (p->best == NULL || p->keys == NULL)
    return wf__fail_memory(err, (lm->num_arcs + 2 * lm->num_states) * sizeof *p->keys,
                           "scores of n-grams");
  WF__TRY(wf__progress(progress, "weighing n-grams", 0.2, err));
  WF__TRY(wf__lm_score(lm, p->options.criterion == WF_CRITERION_ENTROPY, pool, &p->values, err));
  WF__TRY(wf__progress(progress, "choosing n-grams", 0.5, err));
  for (int k = lm->order; k >= 2; k--) choose_order(p, k);
  if (p->options.max_total > 0) choose_total(p);
  for (int k = 2; k <= lm->order; k++) visit_order(p, k, least, &stats->least_worth[k]);
  return WF_OK;
}

static wf_status prune(pruning *p, wf__pool *pool, wf__automaton **out, wf_lm_prune_stats *stats,
                       const wf_progress *progress, wf_error *err) {
  WF__TRY(parse_limits(p, err));
  WF__TRY(choose_ngrams(p, pool, stats, progress, err));
  WF__TRY(wf__progress(progress, "writing n-grams", 0.7, err));
  WF__TRY(wf__lm_rebuild(p->lm, NULL, &p->values, out, err));
  return wf__lm_normalize(*out, pool, &stats->num_scaled, err);
}

wf_status wf_lm_prune(const wf_lm *whole, const wf_symbols *vocabulary,
                      const wf_lm_prune_options *options, wf_lm **out, wf_lm_prune_stats *stats,
                      const wf_progress *progress, wf_error *err) {
  *out = NULL;
  const wf__automaton *lm;
  wf__automaton *pruned = NULL;
  if (stats != NULL) WF__TRY(wf__struct_check("wf_lm_prune_stats", stats, sizeof *stats, err));
  pruning p = {0};
  WF__TRY(wf__options_take(wf__lm_prune_table(), options, &p.options, err));
  WF__TRY(wf__lm_automaton(whole, &lm, err));
  p.lm = lm;
  wf_lm_prune_stats s = {.word_mass = 1};
  for (int k = 0; k <= WF_LM_MAX_ORDER; k++) s.least_worth[k] = INFINITY;
  wf__pool *pool = NULL;
  wf__automaton *fewer = NULL;
  wf_status status = wf__pool_create(p.options.num_threads, &pool, err);
  if (status == WF_OK && (vocabulary != NULL || p.options.max_words > 0))
    status =
        take_words(lm, vocabulary, (uint64_t)p.options.max_words, pool, &fewer, &s.word_mass, err);
  if (fewer != NULL) p.lm = fewer;
  if (status == WF_OK) status = prune(&p, pool, &pruned, &s, progress, err);
  if (status == WF_OK)
    status = wf__lm_of_automaton(pruned, whole->path, out, err);
  else
    wf__automaton_free(pruned);
  if (status == WF_OK && stats != NULL) wf__struct_give(&s, sizeof s, stats);
  wf__automaton_free(fewer);
  wf__pool_free(pool);
  wf__lm_values_free(&p.values);
  free(p.best);
  free(p.keys);
  return status;
}
