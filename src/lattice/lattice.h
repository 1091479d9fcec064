/* lattice.h - the raw lattice from the inside: the arrays of wf_lattice_view in one object,
 * filled once. */
#ifndef WF_LATTICE_LATTICE_H
#define WF_LATTICE_LATTICE_H

#include "base/error.h"
#include "base/memory.h"

enum { WF__FRAMES_UNKNOWN = -2, WF__FRAMES_DIFFER = -1 };

/* Arrays under construction, in the order of states: wf__lattice_add_state, then pushes of its
 * arcs, then the next state. Zero-initialised is empty. */
typedef struct wf__lattice_arrays {
  WF__VEC(uint64_t) arc_off;
  WF__VEC(wf_lattice_arc) arcs;
  WF__VEC(float) final_graph_cost;
  WF__VEC(float) final_acoustic_cost;
  WF__VEC(float) final_scorer_cost;
  WF__VEC(int32_t) frames;
} wf__lattice_arrays;

/* Makes room ahead of time; optional. */
wf_status wf__lattice_reserve(wf__lattice_arrays *arrays, uint64_t num_states, uint64_t num_arcs,
                              wf_error *err);
wf_status wf__lattice_add_state(wf__lattice_arrays *arrays, float final_graph_cost,
                                float final_acoustic_cost, int32_t frame, wf_error *err);
/* Sets the final scorer cost of the last added state; the default is 0. */
static inline void wf__lattice_set_final_scorer_cost(wf__lattice_arrays *arrays, float cost) {
  arrays->final_scorer_cost.data[arrays->final_scorer_cost.size - 1] = cost;
}
static inline wf_status wf__lattice_push(wf__lattice_arrays *arrays, wf_lattice_arc arc,
                                         wf_error *err) {
  WF__TRY(wf__vec_grow(&arrays->arcs, 1, "lattice arcs", err));
  arrays->arcs.data[arrays->arcs.size++] = arc;
  return WF_OK;
}
/* Fills the frames in from the arcs' labels: WF__FRAMES_DIFFER where paths differ. For lattices
 * from files. */
void wf__lattice_find_frames(wf__lattice_arrays *arrays);
/* The sum of graph and scorer cost, which Kaldi's formats and compact lattices have as one cost. */
static inline float wf__lattice_arc_cost(const wf_lattice_arc *arc) {
  return arc->graph_cost + arc->scorer_cost;
}
static inline float wf__lattice_final_cost(const wf_lattice_view *view, uint64_t state) {
  return view->final_graph_cost[state] + view->final_scorer_cost[state];
}
void wf__lattice_arrays_free(wf__lattice_arrays *arrays);
/* Makes the lattice, which takes over the arrays (empty afterwards, also on failure). Every arc
 * must lead to a later state. */
wf_status wf__lattice_from_arrays(wf__lattice_arrays *arrays, wf_lattice **out, wf_error *err);
/* The lattice has all paths within this cost of the best one; INFINITY: not known. */
float wf__lattice_beam(const wf_lattice *lattice);
/* It lacks paths beyond `beam`. Nobody else has the lattice (NULL: there is none) yet. */
void wf__lattice_limit(wf_lattice *lattice, float beam);
/* Frees the lattice, which nobody else has, and returns its arrays, emptied. */
wf__lattice_arrays wf__lattice_take_arrays(wf_lattice *lattice);

#endif
