/* arc_map.c - changes each arc and final cost by itself: wf_map. */
#include "base/option_tables.h"
#include "fstops/csr_copy.h"
#include "fstops/shortest_distance.h"

/* The types, in the order of the option. */
enum map_type {
  IDENTITY,
  ARC_SUM,
  ARC_UNIQUE,
  INPUT_EPSILON,
  INVERT,
  OUTPUT_EPSILON,
  PLUS,
  POWER,
  QUANTIZE,
  RMWEIGHT,
  SUPERFINAL,
  TIMES,
  TO_LOG,
  TO_STD
};

static float map_cost(const wf_map_options *o, wf_semiring semiring, float cost) {
  if (cost == INFINITY) return cost;
  double wide = (double)cost;
  switch (o->map_type) {
    case INVERT: return -cost;
    case PLUS: return wf__cost_to_float(wf__cost_plus(semiring, wide, (double)o->weight));
    case TIMES: return wf__cost_to_float(wide + (double)o->weight);
    case POWER: return wf__cost_to_float(wide * (double)o->power);
    case QUANTIZE:
      return wf__cost_to_float(floor(wide / (double)o->delta + 0.5) * (double)o->delta);
    case RMWEIGHT: return 0;
    default: return cost;
  }
}

/* Both arc_sum and arc_unique sort by these; arc_unique by the cost, too. */
static int compare_ends(const wf_arc *a, const wf_arc *b) {
  if (a->ilabel != b->ilabel) return a->ilabel < b->ilabel ? -1 : 1;
  if (a->olabel != b->olabel) return a->olabel < b->olabel ? -1 : 1;
  return a->nextstate == b->nextstate ? 0 : a->nextstate < b->nextstate ? -1 : 1;
}

static int compare_arcs(const void *x, const void *y) {
  const wf_arc *a = x, *b = y;
  int order = compare_ends(a, b);
  return order != 0 ? order : (a->weight > b->weight) - (a->weight < b->weight);
}

/* Sorts and merges the arcs from `first` on. */
static void merge_arcs(wf__csr *csr, uint64_t first, bool sum, wf_semiring semiring) {
  wf_arc *arcs = csr->arcs.data;
  if (csr->arcs.size == first) return;
  qsort(arcs + first, csr->arcs.size - first, sizeof(wf_arc), compare_arcs);
  uint64_t kept = first;
  for (uint64_t i = first; i < csr->arcs.size; i++) {
    wf_arc *last = kept == first ? NULL : &arcs[kept - 1];
    bool same = last != NULL && compare_ends(last, &arcs[i]) == 0;
    if (same && sum)
      last->weight =
          wf__cost_to_float(wf__cost_plus(semiring, (double)last->weight, (double)arcs[i].weight));
    else if (!same || last->weight != arcs[i].weight)
      arcs[kept++] = arcs[i];
  }
  csr->arcs.size = kept;
}

void wf__csr_sum_arcs(wf__csr *csr, uint64_t first, wf_semiring semiring) {
  merge_arcs(csr, first, true, semiring);
}

static wf_status merge_equal(const wf_fst_view *view, bool sum, wf__csr *csr, wf_error *err) {
  for (uint64_t s = 0; s < view->num_states; s++) {
    uint64_t first = csr->arcs.size;
    WF__TRY(wf__csr_add_state(csr, view->final_cost[s], err));
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      WF__TRY(wf__csr_push(csr, view->arcs[i], err));
    merge_arcs(csr, first, sum, view->semiring);
  }
  return WF_OK;
}

static wf_status map_each(const wf_fst_view *view, const wf_map_options *o, wf__csr *csr,
                          wf_error *err) {
  WF__TRY(wf__csr_append(csr, view, err));
  for (uint64_t i = 0; i < csr->arcs.size; i++) {
    wf_arc *arc = &csr->arcs.data[i];
    arc->weight = map_cost(o, view->semiring, arc->weight);
    if (o->map_type == INPUT_EPSILON) arc->ilabel = 0;
    if (o->map_type == OUTPUT_EPSILON) arc->olabel = 0;
  }
  for (uint64_t s = 0; s < csr->final_cost.size; s++)
    csr->final_cost.data[s] = map_cost(o, view->semiring, csr->final_cost.data[s]);
  return WF_OK;
}

wf_status wf__add_superfinal(const wf_fst_view *view, wf__csr *csr, wf_error *err) {
  for (uint64_t s = 0; s < view->num_states; s++) {
    WF__TRY(wf__csr_add_state(csr, INFINITY, err));
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      WF__TRY(wf__csr_push(csr, view->arcs[i], err));
    if (wf__is_final(view, s))
      WF__TRY(wf__csr_push(
          csr, (wf_arc){.nextstate = (uint32_t)view->num_states, .weight = view->final_cost[s]},
          err));
  }
  return view->start < 0 ? WF_OK : wf__csr_add_state(csr, 0, err);
}

wf_status wf_map(const wf_fst *fst, const wf_map_options *options, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_map_options o;
  WF__TRY(wf__options_take(wf__map_table(), options, &o, err));
  if (o.map_type == TO_LOG || o.map_type == TO_STD)
    return wf_fst_with_semiring(fst, o.map_type == TO_LOG ? WF_LOG : WF_TROPICAL, out, err);
  wf_fst_view view = wf_fst_get_view(fst);
  wf__csr csr = {0};
  wf_status status = o.map_type == SUPERFINAL ? wf__add_superfinal(&view, &csr, err)
                     : o.map_type == ARC_SUM || o.map_type == ARC_UNIQUE
                         ? merge_equal(&view, o.map_type == ARC_SUM, &csr, err)
                         : map_each(&view, &o, &csr, err);
  if (status == WF_OK)
    status = wf__fst_from_csr(&csr, view.start, view.semiring,
                              o.map_type == INPUT_EPSILON ? NULL : wf_fst_isymbols(fst),
                              o.map_type == OUTPUT_EPSILON ? NULL : wf_fst_osymbols(fst), out, err);
  if (status == WF_OK && o.map_type != INPUT_EPSILON) wf__fst_keep_ctc_blank(*out, fst);
  wf__csr_free(&csr);
  return status;
}
