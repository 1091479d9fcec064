/* lm_normalize.c - makes the probabilities after every history sum to 1. Let S be the sum of the
 * explicit probabilities after h, and D the probability of the other words after the shorter
 * history h'. The back-off weight is (1 - S) / D. D is a difference of sums. In float32 the sum
 * after h' is 1 only within 1e-7, which would dominate a small D. So mass[] keeps the actual sum
 * after each history in double, computed from the rounded costs. */
#include "base/interrupt.h"
#include "base/memory.h"
#include "lm/lm_prune.h"

enum { CHUNK = 1024 };
static const double smallest_rest =
    1e-6; /* 1 - S: smaller values are rounding errors of the given model */
static const double smallest_lower =
    1e-10; /* D: smaller values are rounding errors, and every word is explicit */

typedef struct normalizing {
  wf__automaton *lm;
  double *mass;        /* [num_states] */
  uint64_t first, end; /* states of one level */
  atomic_uint_fast64_t num_scaled;
} normalizing;

static double probability(float cost) { return exp(-(double)cost); }

/* Rounding may make a probability slightly larger than 1. */
static float add_cost(float cost, double more) {
  double sum = (double)cost + more;
  return sum > 0 ? (float)sum : 0;
}

static double sum_unigrams(const wf__automaton *lm) {
  double sum = lm->final_order[0] == 1 ? probability(lm->final_cost[0]) : 0;
  for (uint32_t w = 0; w < lm->num_labels; w++)
    if (wf__lm_knows(lm, w)) sum += probability(lm->unigrams[w].cost);
  return sum;
}

static void normalize_unigrams(normalizing *n) {
  wf__automaton *lm = n->lm;
  double sum = sum_unigrams(lm), more = sum > 0 ? log(sum) : 0; /* 0: cannot be scaled */
  if (lm->final_order[0] == 1) lm->final_cost[0] = add_cost(lm->final_cost[0], more);
  for (uint32_t w = 0; w < lm->num_labels; w++)
    if (wf__lm_knows(lm, w)) lm->unigrams[w].cost = add_cost(lm->unigrams[w].cost, more);
  n->mass[0] = sum_unigrams(lm);
}

/* p(word | state), the costs added up in double. */
static double lower_probability(const wf__automaton *lm, uint32_t state, uint32_t word) {
  double cost = 0;
  for (; state != 0; state = lm->states[state].backoff) {
    const wf__lm_arc *arc = wf__lm_find(lm, state, word);
    if (arc != NULL) return exp(-cost - (double)arc->cost);
    cost += (double)lm->states[state].backoff_cost;
  }
  return exp(-cost - (double)lm->unigrams[word].cost);
}

static double lower_final(const wf__automaton *lm, uint32_t state) {
  double cost = 0;
  for (; state != 0 && !wf__lm_has_own_final(lm, state); state = lm->states[state].backoff)
    cost += (double)lm->states[state].backoff_cost;
  return exp(-cost - (double)lm->final_cost[state]);
}

/* S and D of a state. */
static void sum_state(const normalizing *n, uint32_t state, double *sum, double *lower_rest) {
  const wf__automaton *lm = n->lm;
  const wf__lm_state *from = &lm->states[state];
  *sum = 0;
  *lower_rest = n->mass[from->backoff];
  if (wf__lm_has_own_final(lm, state)) {
    *sum += probability(lm->final_cost[state]);
    *lower_rest -= lower_final(lm, from->backoff);
  }
  for (uint64_t a = from->first_arc; a < from[1].first_arc; a++) {
    *sum += probability(lm->arcs[a].cost);
    *lower_rest -= lower_probability(lm, from->backoff, lm->arcs[a].word);
  }
}

/* Scales the explicit probabilities, and the back-off weight if there are words to back off to. */
static void scale_state(wf__automaton *lm, uint32_t state, double sum, double lower_rest) {
  wf__lm_state *from = &lm->states[state];
  double total = sum + (lower_rest > 0 ? probability(from->backoff_cost) * lower_rest : 0),
         more = log(total);
  for (uint64_t a = from->first_arc; a < from[1].first_arc; a++)
    lm->arcs[a].cost = add_cost(lm->arcs[a].cost, more);
  if (wf__lm_has_own_final(lm, state))
    lm->final_cost[state] = add_cost(lm->final_cost[state], more);
  from->backoff_cost = lower_rest > 0 ? (float)((double)from->backoff_cost + more) : 0;
}

static void normalize_state(normalizing *n, uint32_t state) {
  wf__automaton *lm = n->lm;
  wf__lm_state *from = &lm->states[state];
  double sum, lower_rest;
  sum_state(n, state, &sum, &lower_rest);
  if (lower_rest < smallest_lower) lower_rest = 0;
  if (lower_rest > 0 && 1 - sum >= smallest_rest) {
    from->backoff_cost = (float)-log((1 - sum) / lower_rest) + 0.0f;
  } else if (sum > 0) {
    scale_state(lm, state, sum, lower_rest);
    sum_state(n, state, &sum, &lower_rest);
    atomic_fetch_add(&n->num_scaled, 1);
  }
  n->mass[state] = sum + (lower_rest > 0 ? probability(from->backoff_cost) * lower_rest : 0);
  if (wf__lm_has_own_final(lm, state)) return;
  lm->final_cost[state] = from->backoff_cost + lm->final_cost[from->backoff]; /* resolved again */
  lm->final_order[state] = lm->final_order[from->backoff];
}

static void normalize_chunk(void *user, uint64_t item, int worker) {
  (void)worker;
  normalizing *n = user;
  uint64_t first = n->first + item * CHUNK, end = first + CHUNK < n->end ? first + CHUNK : n->end;
  for (uint64_t state = first; state < end; state++) normalize_state(n, (uint32_t)state);
}

wf_status wf__lm_normalize(wf__automaton *lm, wf__pool *pool, uint64_t *num_scaled, wf_error *err) {
  normalizing n = {.lm = lm, .mass = wf__alloc(lm->num_states, sizeof *n.mass)};
  if (n.mass == NULL)
    return wf__fail_memory(err, lm->num_states * sizeof *n.mass, "sums of probabilities");
  atomic_init(&n.num_scaled, 0);
  normalize_unigrams(&n);
  wf_status status = WF_OK;
  for (int level = 1; level < lm->order && status == WF_OK;
       level++) { /* the back-off state has a lower level and is complete */
    n.first = lm->level_begin[level];
    n.end = lm->level_begin[level + 1];
    status = wf__pool_try(pool, (n.end - n.first + CHUNK - 1) / CHUNK, normalize_chunk, &n, err);
  }
  *num_scaled = atomic_load(&n.num_scaled);
  free(n.mass);
  return status;
}
