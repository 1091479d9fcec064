/* estimate_output.h - where the n-grams of an estimated model go. */
#ifndef WF_LM_ESTIMATE_OUTPUT_H
#define WF_LM_ESTIMATE_OUTPUT_H

#include "lm/estimate/lm_estimate.h"

/* Receives all n-grams of order 1, then those of order 2, and so on, each order sorted by labels
 * from the first word on. */
typedef struct wf__estimate_sink {
  /* words[k]: labels; costs in nats. `backoff`: NULL if the n-gram is no context of another. */
  wf_status (*put)(void *user, int k, const uint32_t *words, float cost, const float *backoff,
                   wf_error *err);
  wf_status (*begin_order)(void *user, int k, wf_error *err);
  wf_status (*end_order)(void *user, int k, wf_error *err);
  void *user;
} wf__estimate_sink;

/* Passes the n-grams of order k to the sink and frees them. */
wf_status wf__estimate_put(wf__estimate *e, int k, const wf__estimate_sink *sink, wf_error *err);

#endif
