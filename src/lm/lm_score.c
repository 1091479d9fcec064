/* lm_score.c - the worth of each n-gram of a model. The n-gram `h w` has the explicit p = p(w|h),
 * and p' = p(w|h') after the shorter history h'. a = N / D is the back-off weight of h, where N =
 * 1 - sum p and D = 1 - sum p' over the explicit words of h. Without the n-gram the weight is b =
 * (N + p) / (D + p') and
 *     relative entropy of the two models = -p(h) { p [ln p' + ln b - ln p] + N [ln b - ln a] }
 * (Stolcke 1998, "Entropy-based pruning of backoff language models", equation 5: the sum over all
 * words, in closed form). exp(relative entropy) - 1 is the relative increase of the perplexity.
 * p(h) is the product of the model's own probabilities along h; <s> has the probability of </s>. A
 * worth does not depend on the pruning of other n-grams, so the states are independent. The pool
 * works on chunks of states. */
#include <string.h>

#include "base/interrupt.h"
#include "base/memory.h"
#include "lm/lm_prune.h"

enum { CHUNK = 1024 };
static const double smallest_rest =
    1e-6; /* N and D below this are rounding errors of float32 probabilities */

typedef struct scoring {
  const wf__automaton *lm;
  bool entropy;
  double *marginal; /* [num_states] p(h) */
  wf__lm_values *values;
} scoring;

wf_status wf__lm_values_alloc(const wf__automaton *lm, wf__lm_values *out, wf_error *err) {
  *out = (wf__lm_values){wf__calloc(lm->num_arcs, sizeof *out->arc),
                         wf__calloc(lm->num_states, sizeof *out->final)};
  return out->arc != NULL && out->final != NULL
             ? WF_OK
             : wf__fail_memory(err, (lm->num_arcs + lm->num_states) * sizeof *out->arc,
                               "scores of n-grams");
}

void wf__lm_values_free(wf__lm_values *values) {
  free(values->arc);
  free(values->final);
  *values = (wf__lm_values){0};
}

/* Computes p(h) of every state. The arc of the n-gram of a state comes from the state of all its
 * words but the last. */
static void find_marginals(scoring *s) {
  const wf__automaton *lm = s->lm;
  s->marginal[0] = 1;
  for (uint32_t w = 0; w < lm->num_labels; w++)
    if (wf__lm_knows(lm, w) && lm->unigrams[w].next != 0)
      s->marginal[lm->unigrams[w].next] = exp(-(double)lm->unigrams[w].cost);
  if (lm->start != 0)
    s->marginal[lm->start] = lm->final_order[0] > 0 ? exp(-(double)lm->final_cost[0]) : 1;
  for (int level = 1; level + 1 < lm->order; level++) { /* n-grams of level + 1 words */
    for (uint64_t state = lm->level_begin[level]; state < lm->level_begin[level + 1]; state++) {
      for (uint64_t a = lm->states[state].first_arc; a < lm->states[state + 1].first_arc; a++) {
        const wf__lm_arc *arc = &lm->arcs[a];
        if (wf__lm_is_own_state(lm, level + 1, arc->next))
          s->marginal[arc->next] = s->marginal[state] * exp(-(double)arc->cost);
      }
    }
  }
}

/* The quantities of one history, named as above. */
typedef struct history {
  double marginal, rest, lower_rest, log_backoff; /* p(h), N, D, ln a */
} history;

static float entropy_of(const history *h, double cost, double lower) {
  double p = exp(-cost), log_new = log((h->rest + p) / (h->lower_rest + lower)), change = 0;
  if (h->marginal == 0) return 0;
  if (p > 0 && lower == 0) return INFINITY; /* the word would become impossible */
  if (p > 0) change += p * (log(lower) + log_new + cost);
  if (h->rest > 0) change += h->rest * (log_new - h->log_backoff);
  return (float)expm1(-h->marginal * change);
}

static float difference_of(const history *h, double cost, double lower, double backoff_cost) {
  double p = exp(-cost);
  if (h->marginal == 0 || p == 0) return 0;
  if (lower == 0 || isinf(backoff_cost)) return INFINITY;
  return (float)(h->marginal * p * (backoff_cost - log(lower) - cost));
}

static float value_of(const scoring *s, const history *h, double cost, double lower,
                      double backoff_cost) {
  float value =
      s->entropy ? entropy_of(h, cost, lower) : difference_of(h, cost, lower, backoff_cost);
  return isnan(value) ? 0 : value;
}

static void score_state(scoring *s, uint32_t state) {
  const wf__automaton *lm = s->lm;
  const wf__lm_state *from = &lm->states[state];
  bool own_final = wf__lm_has_own_final(lm, state);
  double final_lower = exp(-(double)lm->final_cost[from->backoff]);
  history h = {.marginal = s->marginal[state], .rest = 1, .lower_rest = 1};
  if (own_final) {
    h.rest -= exp(-(double)lm->final_cost[state]);
    h.lower_rest -= final_lower;
  }
  for (uint64_t a = from->first_arc; a < from[1].first_arc; a++) {
    uint32_t next, at;
    float lower = expf(-wf__lm_step_known(lm, from->backoff, lm->arcs[a].word, &next, &at));
    s->values->arc[a] = lower; /* replaced below, when the sums are known */
    h.rest -= exp(-(double)lm->arcs[a].cost);
    h.lower_rest -= (double)lower;
  }
  double backoff_cost = (double)from->backoff_cost;
  if (h.rest < smallest_rest || h.lower_rest < smallest_rest) { /* use the model's back-off */
    if (h.lower_rest < smallest_rest) h.lower_rest = smallest_rest;
    h.rest = exp(-backoff_cost) * h.lower_rest;
  }
  h.log_backoff = log(h.rest / h.lower_rest);
  if (own_final)
    s->values->final[state] =
        value_of(s, &h, (double)lm->final_cost[state], final_lower, backoff_cost);
  for (uint64_t a = from->first_arc; a < from[1].first_arc; a++)
    s->values->arc[a] =
        value_of(s, &h, (double)lm->arcs[a].cost, (double)s->values->arc[a], backoff_cost);
}

static void score_chunk(void *user, uint64_t item, int worker) {
  (void)worker;
  scoring *s = user;
  uint64_t first = 1 + item * CHUNK,
           end = first + CHUNK < s->lm->num_states ? first + CHUNK : s->lm->num_states;
  for (uint64_t state = first; state < end; state++) score_state(s, (uint32_t)state);
}

wf_status wf__lm_score(const wf__automaton *lm, bool entropy, wf__pool *pool, wf__lm_values *values,
                       wf_error *err) {
  scoring s = {lm, entropy, wf__calloc(lm->num_states, sizeof *s.marginal), values};
  if (s.marginal == NULL)
    return wf__fail_memory(err, lm->num_states * sizeof *s.marginal, "probabilities of histories");
  find_marginals(&s);
  const wf_status status =
      wf__pool_try(pool, (lm->num_states - 1 + CHUNK - 1) / CHUNK, score_chunk, &s, err);
  free(s.marginal);
  return status;
}
