/* compose_order.h - brings the states of a composition into canonical order. */
#ifndef WF_FSTOPS_COMPOSE_ORDER_H
#define WF_FSTOPS_COMPOSE_ORDER_H

#include "fstops/compose_job.h"

/* Renumbers the states in the order of (state of a, filter state, state of b). triples[s] is the
 * triple of state s (compose_states.h). */
wf_status wf__compose_renumber(wf__compose_output *out, const uint64_t *triples, uint64_t num_a,
                               uint64_t num_b, uint32_t num_filters, wf_error *err);

#endif
