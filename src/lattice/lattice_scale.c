/* lattice_scale.c - scales a lattice's language model and acoustic costs, and adds a cost for each
 * word. */
#include <math.h>
#include <string.h>

#include "base/option_tables.h"
#include "lattice/compact_lattice.h"
#include "lattice/lattice.h"

/* +infinity means "absent" and is never scaled. */
static float scaled(float cost, float scale) { return cost == INFINITY ? INFINITY : cost * scale; }
static float scaled_graph(float cost, int32_t word, const wf_lattice_scale_options *o) {
  return scaled(cost, o->lm_scale) - (word != 0 ? o->word_score : 0);
}

wf_status wf_lattice_scale(const wf_lattice *lattice, const wf_lattice_scale_options *options,
                           wf_lattice **out, wf_error *err) {
  wf_lattice_view view = wf_lattice_get_view(lattice);
  wf_lattice_scale_options o;
  wf__lattice_arrays arrays = {0};
  *out = NULL;
  WF__TRY(wf__options_take(wf__lattice_scale_table(), options, &o, err));
  wf_status status = wf__lattice_reserve(&arrays, view.num_states, view.num_arcs, err);
  for (uint64_t s = 0; s < view.num_states && status == WF_OK; s++) {
    status = wf__lattice_add_state(&arrays, scaled(view.final_graph_cost[s], o.lm_scale),
                                   scaled(view.final_acoustic_cost[s], o.acoustic_scale),
                                   view.frames[s], err);
    if (status == WF_OK)
      wf__lattice_set_final_scorer_cost(&arrays, scaled(view.final_scorer_cost[s], o.lm_scale));
    for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1] && status == WF_OK; i++) {
      wf_lattice_arc arc = view.arcs[i];
      arc.graph_cost = scaled_graph(arc.graph_cost, arc.olabel, &o);
      arc.acoustic_cost = scaled(arc.acoustic_cost, o.acoustic_scale);
      arc.scorer_cost = scaled(arc.scorer_cost, o.lm_scale);
      status = wf__lattice_push(&arrays, arc, err);
    }
  }
  if (status == WF_OK) return wf__lattice_from_arrays(&arrays, out, err);
  wf__lattice_arrays_free(&arrays);
  return status;
}

wf_status wf_compact_lattice_scale(const wf_compact_lattice *lattice,
                                   const wf_lattice_scale_options *options,
                                   wf_compact_lattice **out, wf_error *err) {
  wf_compact_lattice_view view = wf_compact_lattice_get_view(lattice);
  wf_lattice_scale_options o;
  wf__compact_arrays arrays = {0};
  *out = NULL;
  WF__TRY(wf__options_take(wf__lattice_scale_table(), options, &o, err));
  wf_status status = wf__vec_grow(&arrays.labels, view.num_labels, "alignments", err);
  if (status == WF_OK && view.num_labels > 0)
    memcpy(arrays.labels.data, view.labels, view.num_labels * sizeof *view.labels);
  if (status == WF_OK) arrays.labels.size = view.num_labels;
  for (uint64_t s = 0; s < view.num_states && status == WF_OK; s++) {
    wf_compact_weight end = view.finals[s];
    end.graph_cost = scaled(end.graph_cost, o.lm_scale);
    end.acoustic_cost = scaled(end.acoustic_cost, o.acoustic_scale);
    status = wf__compact_add_state(&arrays, end, err);
    for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1] && status == WF_OK; i++) {
      wf_compact_arc arc = view.arcs[i];
      arc.weight.graph_cost = scaled_graph(arc.weight.graph_cost, arc.word, &o);
      arc.weight.acoustic_cost = scaled(arc.weight.acoustic_cost, o.acoustic_scale);
      status = wf__compact_push(&arrays, arc, err);
    }
  }
  return wf__compact_finish(status, &arrays, out, err);
}
