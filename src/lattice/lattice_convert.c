/* lattice_convert.c - a raw lattice as a compact one and back, path by path: nothing is
 * determinized, and the set of paths stays the same.
 *
 *     raw       s --label:word / g, a--> t                    an arc for every frame
 *     compact   s --word / g, a, (label label ...)--> t       an arc for any number of frames */
#include <inttypes.h>
#include <math.h>

#include "lattice/compact_lattice.h"
#include "lattice/lattice.h"

wf_status wf_compact_lattice_from_raw(const wf_lattice *lattice, wf_compact_lattice **out,
                                      wf_error *err) {
  *out = NULL;
  wf_lattice_view raw = wf_lattice_get_view(lattice);
  wf__compact_arrays arrays = {0};
  wf_status status = wf__vec_grow(&arrays.labels, raw.num_arcs, "a lattice", err);
  for (uint64_t s = 0; s < raw.num_states && status == WF_OK; s++) {
    bool final = raw.final_graph_cost[s] < INFINITY;
    status =
        wf__compact_add_state(&arrays,
                              (wf_compact_weight){wf__lattice_final_cost(&raw, s),
                                                  final ? raw.final_acoustic_cost[s] : 0, 0, 0},
                              err);
    for (uint64_t a = raw.arc_off[s]; a < raw.arc_off[s + 1] && status == WF_OK; a++) {
      const wf_lattice_arc *arc = &raw.arcs[a];
      wf_compact_weight weight = {wf__lattice_arc_cost(arc), arc->acoustic_cost, arc->ilabel != 0,
                                  arrays.labels.size};
      if (arc->ilabel != 0) arrays.labels.data[arrays.labels.size++] = arc->ilabel;
      status =
          wf__compact_push(&arrays, (wf_compact_arc){arc->olabel, arc->nextstate, weight}, err);
    }
  }
  return wf__compact_finish(status, &arrays, out, err);
}

/* Number of states between the ends of an arc of this weight. */
static uint64_t states_within(const wf_compact_weight *weight) {
  return weight->num_labels > 1 ? weight->num_labels - 1 : 0;
}

/* Computes the number of states and arcs of the raw lattice. number[s] becomes the raw state of s.
 * After it come the states within its arcs, then, if the final weight has an alignment, the states
 * along that, the last of them final. */
static wf_status number_states(const wf_compact_lattice_view *compact, int32_t *number,
                               uint64_t *num_states, uint64_t *num_arcs, wf_error *err) {
  *num_states = *num_arcs = 0;
  for (uint64_t s = 0; s < compact->num_states; s++) {
    number[s] = (int32_t)*num_states;
    *num_states += 1;
    for (uint64_t a = compact->arc_off[s]; a < compact->arc_off[s + 1]; a++) {
      uint64_t within = states_within(&compact->arcs[a].weight);
      *num_states += within;
      *num_arcs += within + 1;
    }
    if (compact->finals[s].graph_cost < INFINITY) {
      *num_states += compact->finals[s].num_labels;
      *num_arcs += compact->finals[s].num_labels;
    }
    if (*num_states > INT32_MAX)
      return wf__fail(err, WF_ERR_LIMIT, "the raw lattice would have more than 2^31-1 states");
  }
  return WF_OK;
}

/* For one state: the first arc of each compact arc and of the final alignment, then the states
 * along them in the same order. */
struct expansion {
  const wf_compact_lattice_view *compact;
  const int32_t *number;
  wf__lattice_arrays arrays;
};

/* Adds the chain after the first arc of an alignment: states `first`, first + 1, ... with one arc
 * each. The last arc leads to `target`, or to one more state that is final at cost 0. */
static wf_status add_chain(struct expansion *e, const wf_compact_weight *weight, int32_t first,
                           int32_t target, int32_t frame, wf_error *err) {
  const int32_t *labels = e->compact->labels + weight->first_label;
  bool ends = target < 0; /* the chain of a final weight */
  for (uint32_t i = 1; i < weight->num_labels; i++) {
    int32_t next = i + 1 < weight->num_labels || ends ? first + (int32_t)i : target;
    WF__TRY(wf__lattice_add_state(&e->arrays, INFINITY, 0, frame >= 0 ? frame + (int32_t)i : frame,
                                  err));
    WF__TRY(wf__lattice_push(&e->arrays, (wf_lattice_arc){labels[i], 0, 0, 0, next, 0}, err));
  }
  return ends ? wf__lattice_add_state(&e->arrays, 0, 0,
                                      frame >= 0 ? frame + (int32_t)weight->num_labels : frame, err)
              : WF_OK;
}

static wf_status expand_state(struct expansion *e, uint64_t s, wf_error *err) {
  const wf_compact_lattice_view *compact = e->compact;
  const wf_compact_weight *final = &compact->finals[s];
  bool chain = final->graph_cost < INFINITY && final->num_labels > 0;
  int32_t frame = compact->frames[s], next = e->number[s] + 1;
  bool ends = final->graph_cost < INFINITY && !chain;
  WF__TRY(wf__lattice_add_state(&e->arrays, ends ? final->graph_cost : INFINITY,
                                ends ? final->acoustic_cost : 0, frame, err));
  for (uint64_t a = compact->arc_off[s]; a < compact->arc_off[s + 1]; a++) {
    const wf_compact_arc *arc = &compact->arcs[a];
    int32_t label = arc->weight.num_labels > 0 ? compact->labels[arc->weight.first_label] : 0;
    uint64_t within = states_within(&arc->weight);
    int32_t target = within > 0 ? next : e->number[arc->nextstate];
    WF__TRY(wf__lattice_push(&e->arrays,
                             (wf_lattice_arc){label, arc->word, arc->weight.graph_cost,
                                              arc->weight.acoustic_cost, target},
                             err));
    next += (int32_t)within;
  }
  if (chain)
    WF__TRY(wf__lattice_push(&e->arrays,
                             (wf_lattice_arc){compact->labels[final->first_label], 0,
                                              final->graph_cost, final->acoustic_cost, next},
                             err));
  next = e->number[s] + 1;
  for (uint64_t a = compact->arc_off[s]; a < compact->arc_off[s + 1]; a++) {
    const wf_compact_arc *arc = &compact->arcs[a];
    WF__TRY(add_chain(e, &arc->weight, next, e->number[arc->nextstate], frame, err));
    next += (int32_t)states_within(&arc->weight);
  }
  return chain ? add_chain(e, final, next, -1, frame, err) : WF_OK;
}

wf_status wf_lattice_from_compact(const wf_compact_lattice *lattice, wf_lattice **out,
                                  wf_error *err) {
  *out = NULL;
  wf_compact_lattice_view compact = wf_compact_lattice_get_view(lattice);
  uint64_t num_states, num_arcs;
  int32_t *number = wf__alloc(compact.num_states, sizeof *number);
  if (number == NULL) return wf__fail_memory(err, compact.num_states * sizeof *number, "a lattice");
  struct expansion e = {.compact = &compact, .number = number};
  wf_status status = number_states(&compact, number, &num_states, &num_arcs, err);
  if (status == WF_OK) status = wf__lattice_reserve(&e.arrays, num_states, num_arcs, err);
  for (uint64_t s = 0; s < compact.num_states && status == WF_OK; s++)
    status = expand_state(&e, s, err);
  free(number);
  if (status == WF_OK) return wf__lattice_from_arrays(&e.arrays, out, err);
  wf__lattice_arrays_free(&e.arrays);
  return status;
}
