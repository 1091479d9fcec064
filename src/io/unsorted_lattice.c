/* unsorted_lattice.c - makes a topologically sorted lattice from a lattice as read from a file. */
#include "io/unsorted_lattice.h"

#include <inttypes.h>
#include <math.h>

#include "fstops/topsort.h"
#include "lattice/compact_lattice.h"
#include "lattice/lattice.h"

enum { DROPPED = UINT32_MAX };
#define MAX_COST 1e30

void wf__unsorted_free(wf__unsorted_lattice *unsorted) {
  wf__vec_free(&unsorted->arc_off);
  wf__vec_free(&unsorted->arcs);
  wf__vec_free(&unsorted->finals);
  wf__vec_free(&unsorted->labels);
}

bool wf__unsorted_weight_is_good(double graph_cost, double acoustic_cost) {
  if (graph_cost == (double)INFINITY || acoustic_cost == (double)INFINITY)
    return graph_cost == acoustic_cost;
  return fabs(graph_cost) <= MAX_COST && fabs(acoustic_cost) <= MAX_COST; /* false for NaN */
}

static uint64_t arcs_end(const wf__unsorted_lattice *unsorted, uint64_t s) {
  return s + 1 < unsorted->arc_off.size ? unsorted->arc_off.data[s + 1] : unsorted->arcs.size;
}

/* Arcs of weight Zero are ignored. */
static bool is_zero(const wf_compact_weight *weight) { return weight->graph_cost == INFINITY; }

static wf_status check_targets(const wf__unsorted_lattice *unsorted, wf_error *err) {
  uint64_t num_states = unsorted->arc_off.size;
  if (num_states > INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT,
                    "the lattice has %" PRIu64 " states, at most 2^31-1 are supported", num_states);
  if (unsorted->start >= (int64_t)num_states || unsorted->start < -1)
    return wf__fail(err, WF_ERR_FORMAT,
                    "the start state is %" PRId64 ", but the lattice has %" PRIu64 " states",
                    unsorted->start, num_states);
  for (uint64_t s = 0; s < num_states; s++)
    for (uint64_t a = unsorted->arc_off.data[s]; a < arcs_end(unsorted, s); a++)
      if (unsorted->arcs.data[a].target >= num_states)
        return wf__fail(err, WF_ERR_FORMAT,
                        "an arc of state %" PRIu64 " leads to state %" PRIu32
                        ", but there are %" PRIu64 " states",
                        s, unsorted->arcs.data[a].target, num_states);
  return WF_OK;
}

/* True if the start is state 0, every arc leads to a higher state, and every state is reachable.
 * `seen` is [num_states], zeroed. */
static bool is_in_order(const wf__unsorted_lattice *unsorted, bool *seen) {
  if (unsorted->start != 0) return false;
  seen[0] = true;
  for (uint64_t s = 0; s < unsorted->arc_off.size; s++) {
    if (!seen[s]) return false;
    for (uint64_t a = unsorted->arc_off.data[s]; a < arcs_end(unsorted, s); a++) {
      if (is_zero(&unsorted->arcs.data[a].weight)) continue;
      if (unsorted->arcs.data[a].target <= s) return false;
      seen[unsorted->arcs.data[a].target] = true;
    }
  }
  return true;
}

/* Makes the graph of the lattice, without weights and labels, for wf__topological_order. */
static wf_status bare_graph(const wf__unsorted_lattice *unsorted, uint64_t **arc_off, wf_arc **arcs,
                            wf_error *err) {
  uint64_t num_states = unsorted->arc_off.size, count = 0;
  *arc_off = wf__alloc(num_states + 1, sizeof **arc_off);
  *arcs = wf__alloc(unsorted->arcs.size, sizeof **arcs);
  if (*arc_off == NULL || *arcs == NULL)
    return wf__fail_memory(err, unsorted->arcs.size * sizeof **arcs, "sorting a lattice");
  for (uint64_t s = 0; s < num_states; s++) {
    (*arc_off)[s] = count;
    for (uint64_t a = unsorted->arc_off.data[s]; a < arcs_end(unsorted, s); a++)
      if (!is_zero(&unsorted->arcs.data[a].weight))
        (*arcs)[count++] = (wf_arc){.nextstate = unsorted->arcs.data[a].target};
  }
  (*arc_off)[num_states] = count;
  return WF_OK;
}

/* Sorts the states topologically. wf__topological_order puts states that the start does not reach
 * before the start; they are removed, so the order is the first `*count` elements of `order`. */
static wf_status sort_states(const wf__unsorted_lattice *unsorted, uint32_t **order,
                             uint64_t *count, wf_error *err) {
  uint64_t num_states = unsorted->arc_off.size, *arc_off = NULL, skip = 0;
  wf_arc *arcs = NULL;
  *order = NULL;
  wf_status status = bare_graph(unsorted, &arc_off, &arcs, err);
  if (status == WF_OK) {
    wf_fst_view view = {.start = unsorted->start,
                        .num_states = num_states,
                        .num_arcs = arc_off[num_states],
                        .arc_off = arc_off,
                        .arcs = arcs};
    status = wf__topological_order(&view, order, err);
    if (status == WF_ERR_ARGUMENT) status = wf__fail_prefix(err, WF_ERR_FORMAT, "not a lattice");
  }
  free(arc_off);
  free(arcs);
  WF__TRY(status);
  while ((*order)[skip] != unsorted->start) skip++;
  *count = num_states - skip;
  for (uint64_t i = 0; i < *count; i++) (*order)[i] = (*order)[i + skip];
  return WF_OK;
}

static wf_status find_order(const wf__unsorted_lattice *unsorted, uint32_t **order, uint64_t *count,
                            wf_error *err) {
  uint64_t num_states = unsorted->arc_off.size;
  bool *seen = wf__calloc(num_states, sizeof *seen);
  *order = NULL;
  if (seen == NULL) return wf__fail_memory(err, num_states, "sorting a lattice");
  bool sorted = is_in_order(unsorted, seen);
  free(seen);
  if (!sorted) return sort_states(unsorted, order, count, err);
  *count = num_states;
  *order = wf__alloc(num_states, sizeof **order);
  if (*order == NULL) return wf__fail_memory(err, num_states * sizeof **order, "sorting a lattice");
  for (uint64_t s = 0; s < num_states; s++) (*order)[s] = (uint32_t)s;
  return WF_OK;
}

static wf_compact_weight scaled(const wf_compact_weight *weight,
                                const wf__lattice_conversion *conversion) {
  wf_compact_weight w = *weight;
  if (is_zero(&w)) return (wf_compact_weight){.graph_cost = INFINITY, .acoustic_cost = 0};
  w.graph_cost *= conversion->lm_scale;
  w.acoustic_cost *= conversion->acoustic_scale;
  return w;
}

static wf_status to_compact(wf__unsorted_lattice *unsorted, const uint32_t *order, uint64_t count,
                            const uint32_t *number, const wf__lattice_conversion *conversion,
                            wf_compact_lattice **out, wf_error *err) {
  wf__compact_arrays arrays = {0};
  wf_status status = WF_OK;
  for (uint64_t i = 0; i < count && status == WF_OK; i++) {
    status =
        wf__compact_add_state(&arrays, scaled(&unsorted->finals.data[order[i]], conversion), err);
    for (uint64_t a = unsorted->arc_off.data[order[i]];
         a < arcs_end(unsorted, order[i]) && status == WF_OK; a++) {
      const wf__unsorted_arc *arc = &unsorted->arcs.data[a];
      if (!is_zero(&arc->weight))
        status = wf__compact_push(&arrays,
                                  (wf_compact_arc){arc->olabel, (int32_t)number[arc->target],
                                                   scaled(&arc->weight, conversion)},
                                  err);
    }
  }
  return wf__compact_finish_with(status, &arrays, &unsorted->labels, out, err);
}

static wf_status to_raw(const wf__unsorted_lattice *unsorted, const uint32_t *order, uint64_t count,
                        const uint32_t *number, const wf__lattice_conversion *conversion,
                        wf_lattice **out, wf_error *err) {
  wf__lattice_arrays arrays = {0};
  wf_status status = wf__lattice_reserve(&arrays, count, unsorted->arcs.size, err);
  for (uint64_t i = 0; i < count && status == WF_OK; i++) {
    wf_compact_weight final = scaled(&unsorted->finals.data[order[i]], conversion);
    status = wf__lattice_add_state(&arrays, final.graph_cost, final.acoustic_cost,
                                   WF__FRAMES_UNKNOWN, err);
    for (uint64_t a = unsorted->arc_off.data[order[i]];
         a < arcs_end(unsorted, order[i]) && status == WF_OK; a++) {
      const wf__unsorted_arc *arc = &unsorted->arcs.data[a];
      wf_compact_weight weight = scaled(&arc->weight, conversion);
      if (is_zero(&weight)) continue;
      status =
          wf__lattice_push(&arrays,
                           (wf_lattice_arc){arc->ilabel, arc->olabel, weight.graph_cost,
                                            weight.acoustic_cost, (int32_t)number[arc->target], 0},
                           err);
    }
  }
  if (status == WF_OK) wf__lattice_find_frames(&arrays);
  if (status == WF_OK) return wf__lattice_from_arrays(&arrays, out, err);
  wf__lattice_arrays_free(&arrays);
  return status;
}

/* Converts the lattice if the other kind is requested. */
static wf_status convert(wf_lattice_entry *entry, int32_t kind, wf_error *err) {
  if (kind == 1 && entry->compact != NULL) {
    WF__TRY(wf_lattice_from_compact(entry->compact, &entry->raw, err));
    wf_compact_lattice_free(entry->compact);
    entry->compact = NULL;
  } else if (kind == 2 && entry->raw != NULL) {
    WF__TRY(wf_compact_lattice_from_raw(entry->raw, &entry->compact, err));
    wf_lattice_free(entry->raw);
    entry->raw = NULL;
  }
  return WF_OK;
}

wf_status wf__unsorted_finish(wf__unsorted_lattice *unsorted,
                              const wf__lattice_conversion *conversion, wf_lattice_entry *out,
                              wf_error *err) {
  uint32_t *order = NULL, *number = NULL;
  uint64_t count = 0;
  wf_status status;
  WF__TRY_GOTO(status, check_targets(unsorted, err), done);
  if (unsorted->start >= 0) WF__TRY_GOTO(status, find_order(unsorted, &order, &count, err), done);
  number = wf__alloc(unsorted->arc_off.size, sizeof *number);
  if (number == NULL)
    WF__TRY_GOTO(status, wf__fail_memory(err, unsorted->arc_off.size * sizeof *number, "a lattice"),
                 done);
  for (uint64_t s = 0; s < unsorted->arc_off.size; s++) number[s] = DROPPED;
  for (uint64_t i = 0; i < count; i++) number[order[i]] = (uint32_t)i;
  status = unsorted->compact
               ? to_compact(unsorted, order, count, number, conversion, &out->compact, err)
               : to_raw(unsorted, order, count, number, conversion, &out->raw, err);
  if (status == WF_OK) status = convert(out, conversion->kind, err);
done:
  free(order);
  free(number);
  wf__unsorted_free(unsorted);
  return status;
}
