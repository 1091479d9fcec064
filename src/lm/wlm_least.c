/* wlm_least.c - the least cost of each word after any history, or the greatest: then all costs are
 * negated.
 *
 * A word that state t has costs the back-off costs on the way from the history's state to t, and
 * the cost of t's arc. The least sum of back-off costs to each state is found first, summed in
 * float32 as a look-up does, so that the bounds hold for the rounded costs as well. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "lm/wlm_read.h"

/* Sets way[t] to the least sum of back-off costs from any state to t. Returns false if there are
 * more back-offs in a row than the order allows: the file is damaged. */
static bool find_ways(const wf__wlm *lm, float sign, float *way) {
  for (uint64_t s = 0; s < lm->view.num_states; s++) {
    float cost = 0;
    uint32_t hops = 0;
    for (uint32_t state = (uint32_t)s; state != 0; hops++) {
      const wf__wlm_state record = lm->view.states[state];
      if (hops == lm->header->order) return false;
      state = record.backoff < state ? record.backoff : 0;
      cost += sign * record.backoff_cost;
      if (!(way[state] <= cost)) way[state] = cost;
    }
  }
  return true;
}

static void take_arcs(const wf__wlm_view *view, const uint8_t *arcs, uint64_t first, uint64_t count,
                      uint64_t size, float sign, float way, float *least) {
  for (uint64_t i = first; i < first + count && i < size; i++) {
    const wf__wlm_arc arc = wf__wlm_arc_at(view, arcs, i);
    const float cost = way + sign * arc.cost;
    if (arc.word < view->num_words && !(least[arc.word] <= cost)) least[arc.word] = cost;
  }
}

static void take_state(const wf__wlm_view *view, uint32_t state, float sign, float way,
                       float *least) {
  const uint64_t where = view->states[state].where, first = where & (WF__WLM_LARGE - 1),
                 count = where >> (WF__WLM_FIRST_BITS + 1);
  if (!(where & WF__WLM_LARGE)) {
    take_arcs(view, view->small, first, count, view->num_small, sign, way, least);
    return;
  }
  for (uint64_t b = first; b < first + count && b < view->num_buckets; b++) {
    const uint64_t head = wf__wlm_head(&view->buckets[b]);
    take_arcs(view, view->large, head & (((uint64_t)1 << WF__WLM_BASE_BITS) - 1),
              head >> WF__WLM_BASE_BITS & 15, view->num_large, sign, way, least);
  }
}

wf_status wf__wlm_least_costs(const wf__wlm *lm, bool negated, float *least, wf_error *err) {
  const float sign = negated ? -1 : 1;
  const wf__wlm_view *view = &lm->view;
  float *way = wf__calloc(view->num_states, sizeof *way);
  if (way == NULL) return wf__fail_memory(err, view->num_states * sizeof *way, "least costs");
  const bool sound = find_ways(lm, sign, way);
  for (uint32_t w = 0; w < view->num_words; w++)
    least[w] = sound ? way[0] + sign * view->unigrams[w].cost : -INFINITY;
  for (uint64_t s = 1; s < view->num_states && sound; s++)
    take_state(view, (uint32_t)s, sign, way[s], least);
  free(way);
  return WF_OK;
}

float wf__wlm_least_cost(const wf__wlm *lm) {
  enum { MOST_NGRAMS = 8000000 }; /* which takes 3.5 ns for each */
  static const float unknown = -1e30f;
  wf_error err;
  float *least = NULL, all = INFINITY;
  if (lm->view.num_small + lm->view.num_large <= MOST_NGRAMS)
    least = wf__alloc(lm->view.num_words, sizeof *least);
  if (least == NULL || wf__wlm_least_costs(lm, false, least, &err) != WF_OK) all = unknown;
  for (uint32_t w = 0; w < lm->view.num_words && all > unknown; w++)
    if (wf__wlm_has_word(lm, (int32_t)w) || w == lm->view.unk) all = fminf(all, least[w]);
  free(least);
  return all > unknown ? all : unknown;
}
