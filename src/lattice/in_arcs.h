/* in_arcs.h - the arcs of a compact lattice by target, with probabilities: used by posteriors,
 * minimum Bayes risk and counting.
 *
 * Final states get an arc without a word to one more state, the end, so that paths are all those
 * from state 0 to the end:
 *
 *     states    0 .. num_states - 1    in topological order; the last is the end
 *     in_off    [num_states + 1]       arcs into state n: [in_off[n], in_off[n + 1]), by source,
 *               then as they stand there
 *
 * Costs are multiplied by `scale` in probabilities, not in the best path.
 * Sums are in double, in this fixed order, so every machine and number of threads gives the same
 * bits. (Forward-backward: Rabiner 1989, section III.) */
#ifndef WF_LATTICE_IN_ARCS_H
#define WF_LATTICE_IN_ARCS_H

#include "base/error.h"
#include "base/memory.h"

typedef struct wf__in_arc {
  uint32_t source;
  int32_t word;
  uint64_t arc; /* its number in the lattice; UINT64_MAX: the final cost of the source */
  double cost;  /* graph + acoustic */
} wf__in_arc;

typedef struct wf__in_arcs {
  uint64_t num_states;
  double scale;
  uint64_t *in_off;
  wf__in_arc *arcs;
  double *forward; /* [num_states] -ln of the sum over paths from state 0; +infinity: not reached */
  double *backward;         /* [num_states] to the end, after wf__in_arcs_sum_backward */
  double *best;             /* [num_states] cost of the best path from state 0 */
  double total;             /* forward of the end; +infinity: the lattice has no path */
  WF__VEC(uint64_t) memory; /* of all arrays */
} wf__in_arcs;

/* Computes all but `backward`. Memory is reused between lattices; zero-initialise it at first. */
wf_status wf__in_arcs_make(const wf_compact_lattice_view *lattice, double scale, wf__in_arcs *out,
                           wf_error *err);
void wf__in_arcs_sum_backward(wf__in_arcs *in);
void wf__in_arcs_free(wf__in_arcs *in);

/* The arcs of the best path, from the start. Among equals, the first arc into each state is taken.
 * `arcs` [num_states] receives indices into in->arcs. Returns their number; 0 also for a lattice
 * without paths. */
uint64_t wf__in_arcs_best_path(const wf__in_arcs *in, uint64_t *arcs);
/* Posterior probability of the arc into `target`. Needs `backward`. */
double wf__in_arcs_posterior(const wf__in_arcs *in, const wf__in_arc *arc, uint64_t target);

#endif
