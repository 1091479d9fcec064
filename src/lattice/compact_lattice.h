/* compact_lattice.h - the compact lattice from the inside: the arrays of wf_compact_lattice_view
 * in one object, filled once. */
#ifndef WF_LATTICE_COMPACT_LATTICE_H
#define WF_LATTICE_COMPACT_LATTICE_H

#include "base/error.h"
#include "base/memory.h"

typedef WF__VEC(int32_t) wf__label_vec;

/* Arrays under construction: wf__compact_add_state, then pushes of its arcs, then the next state;
 * labels whenever they are known. Zero-initialised is empty. */
typedef struct wf__compact_arrays {
  WF__VEC(uint64_t) arc_off;
  WF__VEC(wf_compact_arc) arcs;
  WF__VEC(wf_compact_weight) finals;
  wf__label_vec labels;
} wf__compact_arrays;

/* `final.graph_cost` +infinity: not final. */
wf_status wf__compact_add_state(wf__compact_arrays *arrays, wf_compact_weight final, wf_error *err);
static inline wf_status wf__compact_push(wf__compact_arrays *arrays, wf_compact_arc arc,
                                         wf_error *err) {
  WF__TRY(wf__vec_grow(&arrays->arcs, 1, "lattice arcs", err));
  arrays->arcs.data[arrays->arcs.size++] = arc;
  return WF_OK;
}
void wf__compact_arrays_free(wf__compact_arrays *arrays);
/* Frames of the states [arc_off.size], as in wf_compact_lattice_view. WF_ERR_FORMAT if an arc does
 * not lead to a later state. */
wf_status wf__compact_find_frames(const wf__compact_arrays *arrays, int32_t *frames, wf_error *err);
/* Finishes the construction, which ended with `status`: makes the lattice, which takes over the
 * arrays, or nothing; the arrays are empty afterwards. Computes the states' frames.
 * WF_ERR_FORMAT if an arc does not lead to a later state or an alignment lies outside of the
 * labels. */
wf_status wf__compact_finish(wf_status status, wf__compact_arrays *arrays, wf_compact_lattice **out,
                             wf_error *err);
/* The same with labels that were gathered elsewhere, and are taken from there. */
wf_status wf__compact_finish_with(wf_status status, wf__compact_arrays *arrays,
                                  wf__label_vec *labels, wf_compact_lattice **out, wf_error *err);

#endif
