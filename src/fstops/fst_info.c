/* fst_info.c - counts an fst's labels, epsilons, final, accessible and coaccessible states,
 * components and so on. */
#include <string.h>

#include "base/config.h"
#include "fst/ctc_states.h"
#include "fst/fst.h"
#include "fstops/scc.h"
#include "fstops/shortest_distance.h"

enum { ACCESSIBLE = 1, COACCESSIBLE = 2 };

/* Breadth-first search: marks the states reachable from the first `count` states of `queue`, over
 * arcs whose targets are targets[off[s] .. off[s + 1]), `stride` 32-bit words apart. */
static void spread(const uint64_t *off, const uint32_t *targets, size_t stride, uint8_t mark,
                   uint8_t *marks, uint32_t *queue, uint64_t count) {
  for (uint64_t head = 0; head < count; head++) {
    for (uint64_t i = off[queue[head]]; i < off[queue[head] + 1]; i++) {
      uint32_t next = targets[i * stride];
      if (marks[next] & mark) continue;
      marks[next] |= mark;
      queue[count++] = next;
    }
  }
}

/* Reverses the arcs: the sources of the arcs into s are from[off[s] .. off[s + 1]). On entry, `off`
 * must hold n + 2 zeros. */
static void reverse_arcs(const wf_fst_view *view, uint64_t *off, uint32_t *from) {
  for (uint64_t i = 0; i < view->num_arcs; i++) off[view->arcs[i].nextstate + 2]++;
  for (uint64_t s = 0; s < view->num_states; s++) off[s + 2] += off[s + 1];
  for (uint64_t s = 0; s < view->num_states; s++)
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      from[off[view->arcs[i].nextstate + 1]++] = (uint32_t)s;
}

static wf_status count_reachable(const wf_fst_view *view, wf_fst_info *info, wf_error *err) {
  uint64_t n = view->num_states, m = view->num_arcs, queued = 0;
  if (n == 0) return WF_OK;
  uint8_t *marks = wf__calloc(n, 1);
  uint64_t *off = wf__calloc(n + 2, sizeof *off);
  uint32_t *queue = wf__alloc(n, sizeof *queue), *from = wf__alloc(m, sizeof *from);
  bool fine = marks != NULL && off != NULL && queue != NULL && from != NULL;
  if (fine) {
    queue[0] = (uint32_t)view->start;
    marks[view->start] = ACCESSIBLE;
    spread(view->arc_off, &view->arcs[0].nextstate, sizeof(wf_arc) / sizeof(uint32_t), ACCESSIBLE,
           marks, queue, 1);
    reverse_arcs(view, off, from);
    for (uint64_t s = 0; s < n; s++) {
      if (!wf__is_final(view, s)) continue;
      marks[s] |= COACCESSIBLE;
      queue[queued++] = (uint32_t)s;
    }
    spread(off, from, 1, COACCESSIBLE, marks, queue, queued);
    for (uint64_t s = 0; s < n; s++) {
      info->num_accessible += (marks[s] & ACCESSIBLE) != 0;
      info->num_coaccessible += (marks[s] & COACCESSIBLE) != 0;
      info->num_connected += marks[s] == (ACCESSIBLE | COACCESSIBLE);
    }
  }
  free(marks);
  free(off);
  free(queue);
  free(from);
  return fine ? WF_OK : wf__fail_memory(err, n * 13 + m * 4, "counting states");
}

/* Number of the tree that a state belongs to, in a forest of parents. Halves the ways. */
static uint32_t root_of(uint32_t *parent, uint32_t s) {
  while (parent[s] != s) s = parent[s] = parent[parent[s]];
  return s;
}

/* Components that are connected if the direction of arcs does not matter. */
static wf_status count_components(const wf_fst_view *view, wf_fst_info *info, wf_error *err) {
  uint64_t n = view->num_states;
  uint32_t *parent = wf__alloc(n, sizeof *parent);
  if (parent == NULL) return wf__fail_memory(err, n * sizeof *parent, "counting components");
  for (uint64_t s = 0; s < n; s++) parent[s] = (uint32_t)s;
  info->num_components = n;
  for (uint64_t s = 0; s < n; s++) {
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      uint32_t a = root_of(parent, (uint32_t)s), b = root_of(parent, view->arcs[i].nextstate);
      info->num_components -= a != b;
      parent[a] = b;
    }
  }
  free(parent);
  return WF_OK;
}

static int compare_labels(const void *x, const void *y) {
  int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
  return (a > b) - (a < b);
}

/* Sum over the arcs of the number of arcs of their state that have the same label. */
static wf_status sum_multiplicity(const wf_fst_view *view, bool output, uint64_t max_arcs,
                                  double *out, wf_error *err) {
  int32_t *labels = wf__alloc(max_arcs, sizeof *labels);
  if (labels == NULL) return wf__fail_memory(err, max_arcs * sizeof *labels, "counting labels");
  double sum = 0;
  for (uint64_t s = 0; s < view->num_states; s++) {
    uint64_t first = view->arc_off[s], count = view->arc_off[s + 1] - first;
    for (uint64_t k = 0; k < count; k++)
      labels[k] = output ? view->arcs[first + k].olabel : view->arcs[first + k].ilabel;
    if (count > 1) qsort(labels, count, sizeof *labels, compare_labels);
    for (uint64_t k = 0, same; k < count; k += same) {
      for (same = 1; k + same < count && labels[k + same] == labels[k]; same++) continue;
      sum += (double)same * (double)same;
    }
  }
  *out = view->num_arcs != 0 ? sum / (double)view->num_arcs : 0;
  free(labels);
  return WF_OK;
}

/* One path that takes all arcs, and nothing else. */
static bool is_string(const wf_fst_view *view) {
  if (view->start < 0) return true;
  if (view->num_arcs + 1 != view->num_states) return false;
  uint64_t s = (uint64_t)view->start;
  for (uint64_t length = 0; length < view->num_arcs; length++) {
    if (view->arc_off[s + 1] - view->arc_off[s] != 1 || wf__is_final(view, s)) return false;
    s = view->arcs[view->arc_off[s]].nextstate;
  }
  return wf__is_final(view, s) && view->arc_off[s + 1] == view->arc_off[s];
}

static wf_status describe_cycles(const wf_fst_view *view, wf_fst_info *info, wf_error *err) {
  wf__scc scc;
  WF__TRY(wf__scc_find(view, WF__ARCS_ALL, &scc, err));
  info->num_sccs = scc.num_components;
  for (uint64_t s = 0; s < view->num_states && !scc.acyclic; s++) {
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      const wf_arc *arc = &view->arcs[i];
      if (scc.component[arc->nextstate] != scc.component[s]) continue;
      if (view->start >= 0 && scc.component[s] == scc.component[view->start])
        info->cyclic_at_start = true;
      if (arc->weight != 0) info->weighted_cycles = true;
    }
  }
  wf__scc_free(&scc);
  return WF_OK;
}

static wf_status describe(const wf_fst_view *view, wf_fst_info *info, wf_error *err) {
  WF__TRY(count_components(view, info, err));
  WF__TRY(sum_multiplicity(view, false, info->max_arcs, &info->ilabel_multiplicity, err));
  WF__TRY(sum_multiplicity(view, true, info->max_arcs, &info->olabel_multiplicity, err));
  info->is_string = is_string(view);
  return describe_cycles(view, info, err);
}

/* The extremes of the sums of the states' costs. */
static void sum_states(const wf_fst_view *view, wf_fst_info *info) {
  for (uint64_t s = 0; s < view->num_states; s++) {
    double sum = (double)view->final_cost[s];
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      sum = wf__cost_plus(WF_LOG, sum, (double)view->arcs[i].weight);
    if (s == 0 || sum < info->min_sum) info->min_sum = sum;
    if (s == 0 || sum > info->max_sum) info->max_sum = sum;
  }
}

wf_status wf_fst_get_info(const wf_fst *fst, wf_fst_info *info, wf_error *err) {
  wf_fst_view view = wf_fst_get_view(fst);
  WF__TRY(wf__struct_check("wf_fst_info", info, sizeof *info, err));
  wf_fst_info own = {0};
  for (uint64_t s = 0; s < view.num_states; s++) {
    uint64_t count = view.arc_off[s + 1] - view.arc_off[s];
    own.num_final += wf__is_final(&view, s);
    if (count > own.max_arcs) own.max_arcs = count;
  }
  for (uint64_t i = 0; i < view.num_arcs; i++) {
    const wf_arc *arc = &view.arcs[i];
    own.num_iepsilons += arc->ilabel == 0;
    own.num_oepsilons += arc->olabel == 0;
    own.num_epsilons += (arc->ilabel | arc->olabel) == 0;
    if (arc->ilabel > own.max_ilabel) own.max_ilabel = arc->ilabel;
    if (arc->olabel > own.max_olabel) own.max_olabel = arc->olabel;
  }
  WF__TRY(count_reachable(&view, &own, err));
  WF__TRY(describe(&view, &own, err));
  sum_states(&view, &own);
  own.ctc_blank = wf__fst_ctc_blank(fst);
  WF__TRY(wf__ctc_count_explicit(fst, &own.num_frame_states, &own.num_frame_arcs, err));
  uint64_t size;
  own.has_word_aligner = wf__fst_boundaries(fst, &size) != NULL && size > 0;
  wf__struct_give(&own, sizeof own, info);
  return WF_OK;
}
