/* estimate_output.c - joins the words, the probabilities and the back-off weights of the n-grams of
 * one order, which are all sorted by words. */
#include "lm/estimate/estimate_output.h"

#include <math.h>

#include "base/interrupt.h"
#include "math/score.h"

/* Cost of a probability that rounding may have made larger than 1. */
static float cost_of(uint32_t bits) {
  const float cost = -logf(wf__float_of_bits(bits));
  return cost > 0 ? cost : 0;
}

static wf_status put_all(wf__estimate *e, int k, const wf__estimate_sink *sink, wf_error *err) {
  wf__estimate_order *order = &e->by_order[k];
  const uint32_t *gram, *cost, *context = NULL;
  const size_t bytes = (size_t)k * sizeof *gram;
  WF__TRY(wf__sort_rewind(order->grams, err));
  if (order->backoffs != NULL) WF__TRY(wf__sort_next(order->backoffs, &context, err));
  for (uint64_t step = 0;; step++) {
    WF__TRY(wf__interrupted_at(step, err));
    WF__TRY(wf__sort_next(order->grams, &gram, err));
    if (gram == NULL) return WF_OK;
    if (gram[k] == WF__ESTIMATE_PRUNED) continue;
    WF__TRY(wf__sort_next(order->costs, &cost, err));
    const bool is_bos = k == 1 && gram[0] == WF__LM_BOS,
               is_context = context != NULL && memcmp(context, gram, bytes) == 0;
    const float backoff = is_context ? cost_of(context[k]) : 0;
    WF__TRY(sink->put(sink->user, k, gram, is_bos ? INFINITY : cost_of(cost[1]),
                      is_context ? &backoff : NULL, err));
    if (is_context) WF__TRY(wf__sort_next(order->backoffs, &context, err));
  }
}

wf_status wf__estimate_put(wf__estimate *e, int k, const wf__estimate_sink *sink, wf_error *err) {
  wf__estimate_order *order = &e->by_order[k];
  WF__TRY(sink->begin_order(sink->user, k, err));
  WF__TRY(put_all(e, k, sink, err));
  wf__sort_free(order->grams);
  wf__sort_free(order->costs);
  wf__sort_free(order->backoffs);
  order->grams = order->costs = order->backoffs = NULL;
  return sink->end_order(sink->user, k, err);
}
