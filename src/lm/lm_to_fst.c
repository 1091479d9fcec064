/* lm_to_fst.c - the grammar acceptor of a language model (G of TLG and HCLG; as Kaldi's arpa2fst,
 * Povey et al.).
 *
 * LM states keep their order. States that are not reachable from the start are left out, and so are
 * "useless" states, which can only back off:
 *     target(s) = s; if s is useless, the first state on its back-off chain that is not, with the
 *                 sum of the back-off costs
 *     id_of[s]  = state of the fst, or WF__LM_NONE
 * A first pass numbers the reachable states, a second pass writes their arcs. */
#include <string.h>

#include "base/config.h"
#include "base/memory.h"
#include "base/option_tables.h"
#include "fst/fst.h"
#include "lm/lm.h"

typedef struct grammar {
  const wf__automaton *lm;
  wf_lm_fst_options options;
  uint32_t *id_of;
  wf__csr csr;
} grammar;

enum { FAILURE = 1 };

static bool has_arc(const grammar *g, uint32_t word, float cost) {
  if (word >= g->lm->num_public || (g->options.drop_unk && word == g->lm->unk)) return false;
  /* With failure arcs, even an arc of infinite cost keeps its word from backing off. */
  return cost != INFINITY || g->options.backoff == FAILURE;
}

/* True if the state can only back off. */
static bool is_useless(const grammar *g, uint32_t state) {
  const wf__automaton *lm = g->lm;
  if (!g->options.remove_useless || state == 0 || state == lm->start ||
      wf__lm_has_own_final(lm, state))
    return false;
  for (uint64_t a = lm->states[state].first_arc; a < lm->states[state + 1].first_arc; a++)
    if (has_arc(g, lm->arcs[a].word, lm->arcs[a].cost)) return false;
  return true;
}

static uint32_t target(const grammar *g, uint32_t state, float *cost) {
  while (is_useless(g, state)) {
    *cost += g->lm->states[state].backoff_cost;
    state = g->lm->states[state].backoff;
  }
  return state;
}

/* --- reachable states -------------------------------------------------------------------- */

typedef WF__VEC(uint32_t) state_vec;

static wf_status visit(grammar *g, uint32_t state, state_vec *queue, wf_error *err) {
  float cost = 0;
  state = target(g, state, &cost);
  if (g->id_of[state] != WF__LM_NONE) return WF_OK;
  g->id_of[state] = 0;
  return wf__vec_push(queue, state, "states of a grammar", err);
}

static wf_status reach(grammar *g, state_vec *queue, wf_error *err) {
  const wf__automaton *lm = g->lm;
  WF__TRY(visit(g, lm->start, queue, err));
  while (queue->size > 0) {
    uint32_t state = queue->data[--queue->size];
    if (state == 0) {
      for (uint32_t w = 0; w < lm->num_public; w++)
        if (wf__lm_knows(lm, w) && has_arc(g, w, lm->unigrams[w].cost))
          WF__TRY(visit(g, lm->unigrams[w].next, queue, err));
      continue;
    }
    for (uint64_t a = lm->states[state].first_arc; a < lm->states[state + 1].first_arc; a++)
      if (has_arc(g, lm->arcs[a].word, lm->arcs[a].cost))
        WF__TRY(visit(g, lm->arcs[a].next, queue, err));
    if (lm->states[state].backoff_cost != INFINITY)
      WF__TRY(visit(g, lm->states[state].backoff, queue, err));
  }
  uint32_t id = 0;
  for (uint64_t s = 0; s < lm->num_states; s++)
    if (g->id_of[s] != WF__LM_NONE) g->id_of[s] = id++;
  return WF_OK;
}

/* --- arcs -------------------------------------------------------------------------------- */

static wf_status push(grammar *g, uint32_t ilabel, uint32_t olabel, float cost, uint32_t next,
                      wf_error *err) {
  next = target(g, next, &cost);
  return wf__csr_push(&g->csr,
                      (wf_arc){.nextstate = g->id_of[next],
                               .weight = cost,
                               .ilabel = (int32_t)ilabel,
                               .olabel = (int32_t)olabel},
                      err);
}

static wf_status add_state(grammar *g, uint32_t state, wf_error *err) {
  const wf__automaton *lm = g->lm;
  bool final = g->options.backoff == FAILURE || wf__lm_has_own_final(lm, state);
  WF__TRY(wf__csr_add_state(&g->csr, final ? lm->final_cost[state] : INFINITY, err));
  if (state == 0) {
    for (uint32_t w = 0; w < lm->num_public; w++)
      if (wf__lm_knows(lm, w) && has_arc(g, w, lm->unigrams[w].cost))
        WF__TRY(push(g, w, w, lm->unigrams[w].cost, lm->unigrams[w].next, err));
    return WF_OK;
  }
  uint32_t backoff_label = (uint32_t)g->options.backoff_label;
  uint64_t a = lm->states[state].first_arc, end = lm->states[state + 1].first_arc;
  for (bool pending = true; a < end || pending;) {
    if (pending &&
        (a == end || lm->arcs[a].word > backoff_label)) { /* keeps the arcs sorted by label */
      const wf__lm_state *from = &lm->states[state];
      if (from->backoff_cost != INFINITY)
        WF__TRY(push(g, backoff_label, 0, from->backoff_cost, from->backoff, err));
      pending = false;
      continue;
    }
    const wf__lm_arc *arc = &lm->arcs[a++];
    if (has_arc(g, arc->word, arc->cost))
      WF__TRY(push(g, arc->word, arc->word, arc->cost, arc->next, err));
  }
  return WF_OK;
}

static wf_status make(grammar *g, wf_fst **out, wf_error *err) {
  const wf__automaton *lm = g->lm;
  g->id_of = wf__alloc(lm->num_states, sizeof *g->id_of);
  if (g->id_of == NULL)
    return wf__fail_memory(err, lm->num_states * sizeof *g->id_of, "states of a grammar");
  memset(g->id_of, 0xff, lm->num_states * sizeof *g->id_of);
  state_vec queue = {0};
  wf_status status = reach(g, &queue, err);
  wf__vec_free(&queue);
  WF__TRY(status);
  for (uint64_t s = 0; s < lm->num_states; s++)
    if (g->id_of[s] != WF__LM_NONE) WF__TRY(add_state(g, (uint32_t)s, err));
  return wf__fst_from_csr(&g->csr, g->id_of[lm->start], WF_TROPICAL, lm->words, lm->words, out,
                          err);
}

wf_status wf_lm_to_fst(const wf_lm *lm, const wf_lm_fst_options *options, wf_fst **out,
                       wf_error *err) {
  *out = NULL;
  grammar g = {0};
  WF__TRY(wf__options_take(wf__lm_fst_table(), options, &g.options, err));
  WF__TRY(g.options.backoff == FAILURE ? wf__lm_signed_automaton(lm, &g.lm, err)
                                       : wf__lm_automaton(lm, &g.lm, err));
  uint32_t backoff_label = (uint32_t)g.options.backoff_label;
  if (backoff_label == 0 && g.options.backoff == FAILURE)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "backoff=failure needs a backoff_label other than 0 (epsilon)");
  if (backoff_label < g.lm->num_public && wf__lm_knows(g.lm, backoff_label))
    return wf__fail(err, WF_ERR_ARGUMENT, "backoff_label %u is the word '%s' of the language model",
                    backoff_label, wf_symbols_text(lm->words, (int64_t)backoff_label));
  wf_status status = make(&g, out, err);
  free(g.id_of);
  wf__csr_free(&g.csr);
  return status;
}
