/* compose_chain.h - a composition that is not written: the left side of another. A state's arcs are
 * made when the other composition first visits it, sorted by output label, and kept. So memory is
 * for the states that are visited, and not for all states that the composition has. The left side
 * can be such a composition, too. */
#ifndef WF_FSTOPS_COMPOSE_CHAIN_H
#define WF_FSTOPS_COMPOSE_CHAIN_H

#include "fstops/arcsort.h"
#include "fstops/compose_expand.h"
#include "fstops/compose_states.h"

struct wf__compose_chain {
  wf__compose_job job; /* this composition; job.left is owned */
  int32_t phi_label;
  wf__compose_states states;   /* those known; some are not made yet */
  wf__compose_side side;       /* for the other composition */
  WF__VEC(uint64_t) arc_begin; /* [states]; UINT64_MAX: not made */
  WF__VEC(uint64_t) arc_end;
  WF__VEC(float) final_cost;
  WF__VEC(wf_arc) arcs;     /* of the states made, in the order in which they were */
  wf__expanded made;        /* scratch, as are the next two */
  WF__VEC(uint32_t) wanted; /* states to be made */
  WF__VEC(uint64_t) wanted_triples;
  wf__arc_sorter sorter;
};

/* `phi_label`: as in wf_compose_options. On success job->left belongs to the chain. */
wf_status wf__compose_chain_create(const wf__compose_job *job, int32_t phi_label,
                                   wf__compose_chain **out, wf_error *err);
/* Makes the states that are a's in these triples of the other composition, if they were not made
 * before. This moves the arrays of `side`. */
wf_status wf__compose_chain_make(wf__compose_chain *chain, const uint64_t *triples, uint64_t count,
                                 wf_error *err);
/* Memory of the chain. Accepts NULL. */
uint64_t wf__compose_chain_bytes(const wf__compose_chain *chain);
/* Frees the chain and those on its left. Accepts NULL. */
void wf__compose_chain_free(wf__compose_chain *chain);

#endif
