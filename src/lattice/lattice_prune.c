/* lattice_prune.c - removes states and arcs on no path within a beam of the best; costs and
 * order stay the same. */
#include <math.h>
#include <string.h>

#include "lattice/exact_lattice.h"

/* The states and arcs that stay. The exact lattice lacks the lattice's arcs of cost +infinity. */
struct pruning {
  wf__exact_lattice exact;
  int64_t *forward, *backward;
  int64_t cutoff;
  uint32_t *number; /* [states] in the result; UINT32_MAX: dropped */
};

static void free_pruning(struct pruning *p) {
  wf__exact_free(&p->exact);
  free(p->forward);
  free(p->backward);
  free(p->number);
}

/* Takes ownership of p->exact. */
static wf_status begin(struct pruning *p, float beam, wf_error *err) {
  uint64_t n = wf__exact_num_states(&p->exact);
  uint32_t count = 0;
  if (!(beam >= 0))
    return wf__fail(err, WF_ERR_ARGUMENT, "beam is %g; it must be at least 0", (double)beam);
  WF__TRY(wf__exact_forward(&p->exact, &p->forward, err));
  WF__TRY(wf__exact_backward(&p->exact, &p->backward, err));
  p->number = wf__alloc(n, sizeof *p->number);
  if (p->number == NULL) return wf__fail_memory(err, n * sizeof *p->number, "a lattice");
  if (n > 0 && p->backward[0] != WF__NEVER)
    p->cutoff = p->backward[0] + wf__exact_width(&p->exact, (double)beam);
  for (uint64_t s = 0; s < n; s++) {
    bool kept = p->forward[s] != WF__NEVER && p->backward[s] != WF__NEVER &&
                p->forward[s] + p->backward[s] <= p->cutoff;
    p->number[s] = kept ? count++ : UINT32_MAX;
  }
  return WF_OK;
}

static bool keeps_end(const struct pruning *p, uint64_t s) {
  return wf__exact_is_final(&p->exact, s) &&
         p->forward[s] + wf__exact_total(p->exact.ends.data[s].cost) <= p->cutoff;
}

static bool keeps_arc(const struct pruning *p, uint64_t s, const wf__exact_arc *arc) {
  return p->number[arc->nextstate] != UINT32_MAX &&
         p->forward[s] + wf__exact_total(arc->cost) + p->backward[arc->nextstate] <= p->cutoff;
}

static wf_status write_raw(const struct pruning *p, const wf_lattice_view *view,
                           wf__lattice_arrays *arrays, wf_error *err) {
  for (uint64_t s = 0; s < view->num_states; s++) {
    const wf__exact_arc *exact = p->exact.arcs.data + p->exact.arc_off.data[s];
    if (p->number[s] == UINT32_MAX) continue;
    bool final = keeps_end(p, s);
    WF__TRY(wf__lattice_add_state(arrays, final ? view->final_graph_cost[s] : INFINITY,
                                  final ? view->final_acoustic_cost[s] : 0, view->frames[s], err));
    if (final) wf__lattice_set_final_scorer_cost(arrays, view->final_scorer_cost[s]);
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      wf_lattice_arc arc = view->arcs[i];
      if (arc.graph_cost == INFINITY || arc.acoustic_cost == INFINITY ||
          arc.scorer_cost == INFINITY || !keeps_arc(p, s, exact++))
        continue;
      arc.nextstate = (int32_t)p->number[arc.nextstate];
      WF__TRY(wf__lattice_push(arrays, arc, err));
    }
  }
  return WF_OK;
}

wf_status wf_lattice_prune(const wf_lattice *lattice, float beam, wf_lattice **out, wf_error *err) {
  wf_lattice_view view = wf_lattice_get_view(lattice);
  struct pruning p = {0};
  wf__lattice_arrays arrays = {0};
  *out = NULL;
  WF__TRY(wf__exact_from_lattice(lattice, &p.exact, err));
  wf_status status = begin(&p, beam, err);
  if (status == WF_OK) status = write_raw(&p, &view, &arrays, err);
  if (status == WF_OK)
    status = wf__lattice_from_arrays(&arrays, out, err);
  else
    wf__lattice_arrays_free(&arrays);
  if (status == WF_OK) wf__lattice_limit(*out, fminf(beam, wf__lattice_beam(lattice)));
  free_pruning(&p);
  return status;
}

static wf_status move_labels(const wf_compact_lattice_view *view, wf_compact_weight *weight,
                             wf__compact_arrays *arrays, wf_error *err) {
  WF__TRY(wf__vec_grow(&arrays->labels, weight->num_labels, "alignments", err));
  if (weight->num_labels > 0)
    memcpy(arrays->labels.data + arrays->labels.size, view->labels + weight->first_label,
           weight->num_labels * sizeof *view->labels);
  weight->first_label = arrays->labels.size;
  arrays->labels.size += weight->num_labels;
  return WF_OK;
}

static wf_status write_compact(const struct pruning *p, const wf_compact_lattice_view *view,
                               wf__compact_arrays *arrays, wf_error *err) {
  for (uint64_t s = 0; s < view->num_states; s++) {
    const wf__exact_arc *exact = p->exact.arcs.data + p->exact.arc_off.data[s];
    if (p->number[s] == UINT32_MAX) continue;
    wf_compact_weight end =
        keeps_end(p, s) ? view->finals[s] : (wf_compact_weight){.graph_cost = INFINITY};
    WF__TRY(move_labels(view, &end, arrays, err));
    WF__TRY(wf__compact_add_state(arrays, end, err));
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      wf_compact_arc arc = view->arcs[i];
      if (arc.weight.graph_cost == INFINITY || arc.weight.acoustic_cost == INFINITY ||
          !keeps_arc(p, s, exact++))
        continue;
      arc.nextstate = (int32_t)p->number[arc.nextstate];
      WF__TRY(move_labels(view, &arc.weight, arrays, err));
      WF__TRY(wf__compact_push(arrays, arc, err));
    }
  }
  return WF_OK;
}

wf_status wf_compact_lattice_prune(const wf_compact_lattice *lattice, float beam,
                                   wf_compact_lattice **out, wf_error *err) {
  wf_compact_lattice_view view = wf_compact_lattice_get_view(lattice);
  struct pruning p = {0};
  wf__compact_arrays arrays = {0};
  *out = NULL;
  WF__TRY(wf__exact_from_compact(lattice, &p.exact, err));
  wf_status status = begin(&p, beam, err);
  if (status == WF_OK) status = write_compact(&p, &view, &arrays, err);
  status = wf__compact_finish(status, &arrays, out, err);
  free_pruning(&p);
  return status;
}
