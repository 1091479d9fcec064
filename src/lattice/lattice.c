/* lattice.c - making, sharing and freeing raw lattices. */
#include "lattice/lattice.h"

#include <math.h>
#include <stdatomic.h>

#include "base/interrupt.h"

struct wf_lattice {
  atomic_size_t refs;
  wf__lattice_arrays arrays;
  float beam;
};

wf_status wf__lattice_reserve(wf__lattice_arrays *arrays, uint64_t num_states, uint64_t num_arcs,
                              wf_error *err) {
  WF__TRY(wf__vec_grow(&arrays->arc_off, num_states + 2, "lattice states", err));
  WF__TRY(wf__vec_grow(&arrays->final_graph_cost, num_states, "lattice states", err));
  WF__TRY(wf__vec_grow(&arrays->final_acoustic_cost, num_states, "lattice states", err));
  WF__TRY(wf__vec_grow(&arrays->final_scorer_cost, num_states, "lattice states", err));
  WF__TRY(wf__vec_grow(&arrays->frames, num_states, "lattice states", err));
  return wf__vec_grow(&arrays->arcs, num_arcs, "lattice arcs", err);
}

wf_status wf__lattice_add_state(wf__lattice_arrays *arrays, float final_graph_cost,
                                float final_acoustic_cost, int32_t frame, wf_error *err) {
  WF__TRY(wf__interrupted_at(arrays->arc_off.size, err));
  WF__TRY(wf__vec_grow(&arrays->arc_off, 2, "lattice states", err)); /* one more for the end */
  WF__TRY(wf__vec_grow(&arrays->final_graph_cost, 1, "lattice states", err));
  WF__TRY(wf__vec_grow(&arrays->final_acoustic_cost, 1, "lattice states", err));
  WF__TRY(wf__vec_grow(&arrays->final_scorer_cost, 1, "lattice states", err));
  WF__TRY(wf__vec_grow(&arrays->frames, 1, "lattice states", err));
  arrays->arc_off.data[arrays->arc_off.size++] = arrays->arcs.size;
  arrays->final_graph_cost.data[arrays->final_graph_cost.size++] = final_graph_cost;
  arrays->final_acoustic_cost.data[arrays->final_acoustic_cost.size++] = final_acoustic_cost;
  arrays->final_scorer_cost.data[arrays->final_scorer_cost.size++] = 0;
  arrays->frames.data[arrays->frames.size++] = frame;
  return WF_OK;
}

void wf__lattice_find_frames(wf__lattice_arrays *arrays) {
  int32_t *frames = arrays->frames.data;
  uint64_t num_states = arrays->arc_off.size;
  for (uint64_t s = 0; s < num_states; s++) frames[s] = s == 0 ? 0 : WF__FRAMES_UNKNOWN;
  for (uint64_t s = 0; s < num_states; s++) {
    if (frames[s] == WF__FRAMES_UNKNOWN) frames[s] = WF__FRAMES_DIFFER; /* no arc leads here */
    uint64_t end = s + 1 < num_states ? arrays->arc_off.data[s + 1] : arrays->arcs.size;
    for (uint64_t a = arrays->arc_off.data[s]; a < end; a++) {
      const wf_lattice_arc *arc = &arrays->arcs.data[a];
      int32_t there = frames[s] < 0 ? WF__FRAMES_DIFFER : frames[s] + (arc->ilabel != 0),
              *next = &frames[arc->nextstate];
      *next = *next == WF__FRAMES_UNKNOWN || *next == there ? there : WF__FRAMES_DIFFER;
    }
  }
}

void wf__lattice_arrays_free(wf__lattice_arrays *arrays) {
  wf__vec_free(&arrays->arc_off);
  wf__vec_free(&arrays->arcs);
  wf__vec_free(&arrays->final_graph_cost);
  wf__vec_free(&arrays->final_acoustic_cost);
  wf__vec_free(&arrays->final_scorer_cost);
  wf__vec_free(&arrays->frames);
}

wf_status wf__lattice_from_arrays(wf__lattice_arrays *arrays, wf_lattice **out, wf_error *err) {
  *out = NULL;
  wf_lattice *lattice = NULL;
  wf_status status = wf__vec_grow(&arrays->arc_off, 1, "lattice states", err);
  if (status == WF_OK && (lattice = wf__calloc(1, sizeof *lattice)) == NULL)
    status = wf__fail_memory(err, sizeof *lattice, "a lattice");
  if (status != WF_OK) {
    wf__lattice_arrays_free(arrays);
    return status;
  }
  arrays->arc_off.data[arrays->arc_off.size] =
      arrays->arcs.size; /* not counted: arc_off.size is the number of states */
  atomic_init(&lattice->refs, 1);
  lattice->arrays = *arrays;
  lattice->beam = INFINITY;
  *arrays = (wf__lattice_arrays){0};
  *out = lattice;
  return WF_OK;
}

float wf__lattice_beam(const wf_lattice *lattice) { return lattice->beam; }

void wf__lattice_limit(wf_lattice *lattice, float beam) {
  if (lattice != NULL && beam < lattice->beam) lattice->beam = beam;
}

wf__lattice_arrays wf__lattice_take_arrays(wf_lattice *lattice) {
  wf__lattice_arrays arrays = lattice->arrays;
  arrays.arc_off.size = arrays.arcs.size = arrays.final_graph_cost.size =
      arrays.final_acoustic_cost.size = arrays.final_scorer_cost.size = arrays.frames.size = 0;
  free(lattice);
  return arrays;
}

wf_lattice_view wf_lattice_get_view(const wf_lattice *lattice) {
  const wf__lattice_arrays *a = &lattice->arrays;
  return (wf_lattice_view){.num_states = a->arc_off.size,
                           .num_arcs = a->arcs.size,
                           .arc_off = a->arc_off.data,
                           .arcs = a->arcs.data,
                           .final_graph_cost = a->final_graph_cost.data,
                           .final_acoustic_cost = a->final_acoustic_cost.data,
                           .frames = a->frames.data,
                           .final_scorer_cost = a->final_scorer_cost.data};
}

wf_lattice *wf_lattice_ref(const wf_lattice *lattice) {
  wf_lattice *mutable_lattice = (wf_lattice *)(uintptr_t)lattice;
  atomic_fetch_add_explicit(&mutable_lattice->refs, 1, memory_order_relaxed);
  return mutable_lattice;
}

void wf_lattice_free(wf_lattice *lattice) {
  if (lattice == NULL || atomic_fetch_sub_explicit(&lattice->refs, 1, memory_order_acq_rel) != 1)
    return;
  wf__lattice_arrays_free(&lattice->arrays);
  free(lattice);
}
