/* posteriors.c - posterior probabilities of the arcs of a compact lattice. */
#include <math.h>

#include "lattice/in_arcs.h"

wf_status wf_compact_lattice_posteriors(const wf_compact_lattice *lattice, double *arc_posteriors,
                                        double *final_posteriors, double *out_total,
                                        wf_error *err) {
  wf_compact_lattice_view view = wf_compact_lattice_get_view(lattice);
  wf__in_arcs in = {0};
  WF__TRY(wf__in_arcs_make(&view, 1, &in, err));
  wf__in_arcs_sum_backward(&in);
  for (uint64_t s = 0; s < view.num_states && final_posteriors != NULL; s++)
    final_posteriors[s] = 0;
  for (uint64_t n = 0; n < in.num_states; n++)
    for (uint64_t a = in.in_off[n]; a < in.in_off[n + 1]; a++) {
      const wf__in_arc *arc = &in.arcs[a];
      double posterior = wf__in_arcs_posterior(&in, arc, n);
      if (arc->arc == UINT64_MAX) {
        if (final_posteriors != NULL) final_posteriors[arc->source] = posterior;
      } else if (arc_posteriors != NULL) {
        arc_posteriors[arc->arc] = posterior;
      }
    }
  if (out_total != NULL) *out_total = in.total;
  wf__in_arcs_free(&in);
  return WF_OK;
}
