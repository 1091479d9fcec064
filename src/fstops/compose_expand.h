/* compose_expand.h - the arcs of one state of a composition, before their targets have numbers. For
 * compose_search.c, which writes all states, and compose_chain.c, which makes the states that the
 * next composition visits. */
#ifndef WF_FSTOPS_COMPOSE_EXPAND_H
#define WF_FSTOPS_COMPOSE_EXPAND_H

#include "fstops/compose_job.h"

/* The result of expanding states, one after the other. */
typedef struct wf__expanded {
  bool with_origins;
  WF__VEC(float) final_cost; /* [states] */
  WF__VEC(uint64_t) arc_end; /* [states] */
  WF__VEC(wf_arc) arcs;
  WF__VEC(uint64_t) triples;      /* targets of the arcs */
  WF__VEC(wf_arc_origin) origins; /* origins of the arcs, if requested */
} wf__expanded;

void wf__expanded_clear(wf__expanded *expanded);
void wf__expanded_free(wf__expanded *expanded);
/* Expands a state: adds its final cost, the candidates for its arcs, and their end. The arcs of
 * both sides' states must be there. */
wf_status wf__compose_expand(const wf__compose_job *job, uint64_t triple, wf__expanded *out,
                             wf_error *err);

#endif
