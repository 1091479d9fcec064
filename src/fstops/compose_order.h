/* compose_order.h - brings the states of a composition into canonical order. */
#ifndef WF_FSTOPS_COMPOSE_ORDER_H
#define WF_FSTOPS_COMPOSE_ORDER_H

#include "fstops/compose_job.h"

/* Renumbers the states of a composition that has been searched, in the order of (state of a, filter
 * state, state of b). If job->left makes the states of a, these are compared by their triples, and
 * so on. triples[s] is the triple of state s (compose_states.h); the array is changed. */
wf_status wf__compose_renumber(const wf__compose_job *job, uint64_t *triples,
                               wf__compose_output *out, wf_error *err);

#endif
