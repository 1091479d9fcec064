/* lm_exchange.h - replaces one language model by another, word by word, to rescore lattices and
 * lists. */
#ifndef WF_LATTICE_LM_EXCHANGE_H
#define WF_LATTICE_LM_EXCHANGE_H

#include <math.h>

#include "base/error.h"

typedef struct wf__lm_exchange {
  const wf_lm *old_lm; /* NULL: none */
  const wf_lm *new_lm;
  float old_scale, new_scale;
} wf__lm_exchange;

typedef struct wf__lm_histories {
  uint32_t old_state, new_state;
} wf__lm_histories;

typedef struct wf__lm_costs {
  float old_cost, new_cost; /* scaled; new_cost +infinity: impossible */
} wf__lm_costs;

static inline wf__lm_histories wf__lm_exchange_start(const wf__lm_exchange *exchange) {
  return (wf__lm_histories){exchange->old_lm != NULL ? wf_lm_start(exchange->old_lm) : 0,
                            wf_lm_start(exchange->new_lm)};
}

static inline wf__lm_costs wf__lm_exchange_scaled(const wf__lm_exchange *exchange, float old_cost,
                                                  float new_cost) {
  return (wf__lm_costs){old_cost == INFINITY ? 0 : old_cost * exchange->old_scale,
                        new_cost == INFINITY ? INFINITY : new_cost * exchange->new_scale};
}

static inline wf__lm_costs wf__lm_exchange_step(const wf__lm_exchange *exchange,
                                                wf__lm_histories *histories, int32_t word) {
  float old_cost = exchange->old_lm != NULL ? wf_lm_step(exchange->old_lm, histories->old_state,
                                                         word, &histories->old_state, NULL)
                                            : 0;
  return wf__lm_exchange_scaled(
      exchange, old_cost,
      wf_lm_step(exchange->new_lm, histories->new_state, word, &histories->new_state, NULL));
}

static inline wf__lm_costs wf__lm_exchange_final(const wf__lm_exchange *exchange,
                                                 wf__lm_histories histories) {
  float old_cost =
      exchange->old_lm != NULL ? wf_lm_final(exchange->old_lm, histories.old_state, NULL) : 0;
  return wf__lm_exchange_scaled(exchange, old_cost,
                                wf_lm_final(exchange->new_lm, histories.new_state, NULL));
}

#endif
