/* push.c - pushes costs and output labels along paths, towards the start or the final states. The
 * cost and the output of each path do not change.
 *
 * Towards the start, the potential V(s) is the distance to the final states. The cost w of an arc
 * s -> t becomes w + V(t) - V(s), and a final cost f becomes f - V(s). That takes V(start) off
 * every path. Towards the final states, the potential is the distance from the start. */
#include "fstops/push.h"

#include <string.h>

#include "base/option_tables.h"
#include "fstops/csr_copy.h"
#include "fstops/parallel.h"
#include "fstops/shortest_distance.h"

/* For pushing towards the final states: the sum of the final costs after pushing. */
static double total_at_final(const wf_fst_view *view, const double *dist) {
  double total = INFINITY;
  for (uint64_t s = 0; s < view->num_states; s++)
    if (wf__is_final(view, s))
      total = wf__cost_plus(view->semiring, total, dist[s] + (double)view->final_cost[s]);
  return total;
}

struct reweighting {
  const wf_fst_view *view;
  wf__csr *csr;
  const double *dist;
  double total;
  bool to_final, copy;
};

static void copy_piece(const struct reweighting *r, uint64_t first, uint64_t end) {
  const uint64_t *arc_off = r->view->arc_off;
  memcpy(r->csr->arcs.data + arc_off[first], r->view->arcs + arc_off[first],
         (arc_off[end] - arc_off[first]) * sizeof(wf_arc));
  memcpy(r->csr->final_cost.data + first, r->view->final_cost + first,
         (end - first) * sizeof(float));
}

static void reweight_piece(void *user, uint64_t piece, int worker) {
  const struct reweighting *r = user;
  const wf_fst_view *view = r->view;
  const double *dist = r->dist;
  const uint64_t first = piece * WF__PIECE_STATES, end = wf__piece_end(piece, view->num_states);
  (void)worker;
  if (r->copy) copy_piece(r, first, end);
  for (uint64_t s = first; s < end; s++) {
    if (dist[s] == INFINITY) continue;
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      wf_arc *arc = &r->csr->arcs.data[i];
      double other = dist[arc->nextstate];
      if (other == INFINITY) continue;
      arc->weight = wf__cost_to_float(r->to_final ? dist[s] + (double)arc->weight - other
                                                  : (double)arc->weight + other - dist[s]);
    }
    if (wf__is_final(view, s))
      r->csr->final_cost.data[s] =
          wf__cost_to_float(r->to_final ? dist[s] + (double)view->final_cost[s] - r->total
                                        : (double)view->final_cost[s] - dist[s]);
  }
}

void wf__reweight_costs(const wf_fst_view *view, const double *dist, bool to_final, double total,
                        bool copy, wf__pool *pool, wf__csr *csr) {
  struct reweighting reweighting = {view, csr, dist, total, to_final, copy};
  wf__pool_run(pool, wf__num_pieces(view->num_states), reweight_piece, &reweighting);
}

wf_status wf__push_costs(const wf_fst_view *view, bool to_final, bool remove_total, double delta,
                         bool copy, wf__pool *pool, wf__csr *csr, double *out_total,
                         wf_error *err) {
  double *dist;
  *out_total = 0;
  WF__TRY(wf__shortest_distance(view, !to_final, delta, pool, &dist, err));
  double total = 0;
  if (to_final && remove_total) total = total_at_final(view, dist);
  if (total == INFINITY) total = 0;
  wf__reweight_costs(view, dist, to_final, total, copy, pool, csr);
  if (view->start >= 0 && dist[view->start] != INFINITY)
    *out_total = to_final ? -dist[view->start] : dist[view->start];
  free(dist);
  return WF_OK;
}

/* Is the start on a cycle? */
static wf_status start_on_cycle(const wf__csr *csr, uint32_t start, bool *on_cycle, wf_error *err) {
  uint64_t n = csr->final_cost.size, tail = 0;
  bool entered = false;
  for (uint64_t i = 0; i < csr->arcs.size && !entered; i++)
    entered = csr->arcs.data[i].nextstate == start;
  *on_cycle = false;
  if (!entered) return WF_OK;
  uint8_t *seen = wf__calloc(n, 1);
  uint32_t *queue = wf__alloc(n + 1, sizeof *queue);
  wf_status status =
      seen == NULL || queue == NULL ? wf__fail_memory(err, n * 5, "marks of states") : WF_OK;
  if (status == WF_OK) queue[tail++] = start; /* marked only if it is reached again */
  for (uint64_t head = 0; head < tail && !*on_cycle; head++) {
    uint32_t s = queue[head];
    uint64_t end = (uint64_t)s + 1 < n ? csr->arc_off.data[s + 1] : csr->arcs.size;
    for (uint64_t i = csr->arc_off.data[s]; i < end; i++) {
      uint32_t next = csr->arcs.data[i].nextstate;
      if (!seen[next]) queue[tail++] = next;
      seen[next] = 1;
    }
    *on_cycle = seen[start];
  }
  free(seen);
  free(queue);
  return status;
}

wf_status wf__prepend(wf__strings *strings, uint32_t string, double cost, wf__csr *csr,
                      int64_t *start, wf_error *err) {
  if (*start < 0 || (string == 0 && cost == 0)) return WF_OK;
  bool on_cycle;
  WF__TRY(start_on_cycle(csr, (uint32_t)*start, &on_cycle, err));
  if (on_cycle) {
    uint32_t old = (uint32_t)*start;
    *start = (int64_t)csr->final_cost.size;
    WF__TRY(wf__csr_add_state(csr, INFINITY, err));
    return wf__csr_push(
        csr,
        (wf_arc){.nextstate = old, .weight = wf__cost_to_float(cost), .olabel = (int32_t)string},
        err);
  }
  uint64_t end =
      (uint64_t)*start + 1 < csr->arc_off.size ? csr->arc_off.data[*start + 1] : csr->arcs.size;
  for (uint64_t i = csr->arc_off.data[*start]; i < end; i++) {
    wf_arc *arc = &csr->arcs.data[i];
    uint32_t joined = (uint32_t)arc->olabel;
    if (string != 0) WF__TRY(wf__string_concat(strings, string, joined, &joined, err));
    arc->olabel = (int32_t)joined;
    arc->weight = wf__cost_to_float((double)arc->weight + cost);
  }
  csr->final_cost.data[*start] = wf__cost_to_float((double)csr->final_cost.data[*start] + cost);
  return WF_OK;
}

/* A final state with a pending string gets an arc to a common new final state that emits it,
 * because a final cost has no output label. */
static wf_status emit_at_final(const uint32_t *potential, wf__csr *csr, wf_error *err) {
  uint64_t n = csr->final_cost.size, num_pending = 0;
  for (uint64_t s = 0; s < n; s++)
    num_pending +=
        csr->final_cost.data[s] != INFINITY && potential[s] != 0 && potential[s] != WF__STRING_NONE;
  if (num_pending == 0) return WF_OK;
  wf__csr grown = {0};
  wf_status status = wf__vec_grow(&grown.arcs, csr->arcs.size + num_pending, "arcs", err);
  for (uint64_t s = 0; s < n && status == WF_OK; s++) {
    float cost = csr->final_cost.data[s];
    bool pending = cost != INFINITY && potential[s] != 0 && potential[s] != WF__STRING_NONE;
    status = wf__csr_add_state(&grown, pending ? INFINITY : cost, err);
    uint64_t end = s + 1 < n ? csr->arc_off.data[s + 1] : csr->arcs.size;
    for (uint64_t i = csr->arc_off.data[s]; i < end && status == WF_OK; i++)
      status = wf__csr_push(&grown, csr->arcs.data[i], err);
    if (pending && status == WF_OK)
      status = wf__csr_push(
          &grown,
          (wf_arc){.nextstate = (uint32_t)n, .weight = cost, .olabel = (int32_t)potential[s]}, err);
  }
  if (status == WF_OK) status = wf__csr_add_state(&grown, 0, err);
  wf__csr_free(csr);
  *csr = grown;
  return status;
}

static void reverse_string(wf__strings *strings, uint32_t *string, wf_status *status,
                           wf_error *err) {
  uint32_t reversed = 0;
  for (uint32_t s = *string; s != 0 && *status == WF_OK; s = wf__string_rest(strings, s))
    *status = wf__string_put(strings, wf__string_label(strings, s), reversed, &reversed, err);
  *string = reversed;
}

/* Splits strings pushed towards the final states into single labels: delays them to the following
 * arcs, or makes chains of arcs with input epsilon if that takes fewer states. Overwrites
 * `potential`. */
static wf_status spell_late(const wf_fst_view *view, wf__strings *strings, uint32_t *potential,
                            wf__csr *csr, int64_t *start, wf_error *err) {
  wf__csr chained = {0}, delayed = {0};
  wf__pushed pushed = {.csr = csr, .final_string = potential};
  int64_t delayed_start = *start;
  bool fits = false;
  wf_status status = wf__csr_append(&chained, view, err);
  if (status == WF_OK && view->num_arcs != 0)
    memcpy(chained.arcs.data, csr->arcs.data, view->num_arcs * sizeof *csr->arcs.data);
  if (status == WF_OK && view->num_states != 0)
    memcpy(chained.final_cost.data, csr->final_cost.data, view->num_states * sizeof(float));
  if (status == WF_OK) status = emit_at_final(potential, &chained, err);
  if (status == WF_OK)
    status = wf__strings_expand(strings, true, UINT32_MAX, UINT64_MAX, &chained, err);
  for (uint64_t i = 0; i < csr->arcs.size && status == WF_OK; i++) {
    uint32_t string = (uint32_t)csr->arcs.data[i].olabel;
    reverse_string(strings, &string, &status, err);
    csr->arcs.data[i].olabel = (int32_t)string;
  }
  for (uint64_t s = 0; s < view->num_states && status == WF_OK; s++) {
    if (potential[s] == WF__STRING_NONE) potential[s] = 0;
    reverse_string(strings, &potential[s], &status, err);
  }
  if (status == WF_OK)
    status = wf__delay_labels(strings, &pushed, chained.final_cost.size, &delayed_start, &delayed,
                              &fits, err);
  if (fits) *start = delayed_start;
  wf__csr_free(csr);
  *csr = fits ? delayed : chained;
  wf__csr_free(fits ? &chained : &delayed);
  return status;
}

/* Number of first labels that two strings share. */
static uint32_t common_size(const wf__strings *strings, uint32_t a, uint32_t b) {
  uint32_t size = 0;
  for (; a != 0 && b != 0 && wf__string_label(strings, a) == wf__string_label(strings, b); size++) {
    a = wf__string_rest(strings, a);
    b = wf__string_rest(strings, b);
  }
  return size;
}

/* Drops the suffix common to all outputs. The strings pending at final states begin with the last
 * label, so it is their common front. */
static void drop_suffix(const wf__csr *csr, const wf__strings *strings, uint32_t *potential) {
  uint32_t first = WF__STRING_NONE, size = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (uint64_t s = 0; s < csr->final_cost.size; s++) {
      uint32_t here = potential[s];
      if (csr->final_cost.data[s] == INFINITY || here == WF__STRING_NONE) continue;
      if (pass == 1) {
        potential[s] = wf__string_drop(strings, here, size);
      } else if (first == WF__STRING_NONE) {
        first = here;
        size = wf__string_size(strings, here);
      } else {
        uint32_t common = common_size(strings, first, here);
        if (common < size) size = common;
      }
    }
  }
}

static wf_status push_labels(const wf_fst_view *view, const wf_push_options *o, double total,
                             wf__strings *strings, wf__csr *csr, int64_t *start, wf_error *err) {
  const bool to_final = o->to_final;
  uint32_t *potential = NULL;
  wf__csr delayed = {0};
  wf__pushed pushed = {.csr = csr};
  bool fits;
  WF__TRY(wf__strings_init(strings, err));
  WF__TRY(wf__push_labels(view, to_final, strings, csr, &potential, err));
  pushed.potential = potential;
  wf_status status;
  if (to_final) {
    if (o->remove_common_affix) drop_suffix(csr, strings, potential);
    status = spell_late(view, strings, potential, csr, start, err);
    if (status == WF_OK) status = wf__prepend(strings, 0, total, csr, start, err);
  } else {
    uint32_t prefix = 0;
    if (view->start >= 0 && potential[view->start] != WF__STRING_NONE && !o->remove_common_affix)
      prefix = potential[view->start];
    status = wf__prepend(strings, prefix, total, csr, start, err);
    if (status == WF_OK)
      status = wf__delay_labels(strings, &pushed, UINT64_MAX, start, &delayed, &fits, err);
    wf__csr_free(csr);
    *csr = delayed;
  }
  free(potential);
  return status;
}

static wf_status push(const wf_fst_view *view, const wf_push_options *o, wf__strings *strings,
                      wf__pool *pool, wf__csr *csr, int64_t *start, wf_error *err) {
  double total = 0;
  WF__TRY(wf__csr_append(csr, view, err));
  if (o->push_weights)
    WF__TRY(wf__push_costs(view, o->to_final, o->remove_total_weight, (double)o->delta, false, pool,
                           csr, &total, err));
  if (o->remove_total_weight && !o->to_final) total = 0;
  if (o->push_labels) return push_labels(view, o, total, strings, csr, start, err);
  return wf__prepend(strings, 0, total, csr, start, err);
}

wf_status wf_push(const wf_fst *fst, const wf_push_options *options, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_push_options o;
  WF__TRY(wf__options_take(wf__push_table(), options, &o, err));
  if (o.remove_total_weight && !o.push_weights)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "remove_total_weight applies to pushed weights; set push_weights, too");
  if (o.remove_common_affix && !o.push_labels)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "remove_common_affix applies to pushed labels; set push_labels, too");
  wf_fst_view view = wf_fst_get_view(fst);
  wf__strings strings = {0};
  wf__csr csr = {0};
  int64_t start = view.start;
  wf__pool *pool;
  WF__TRY(wf__pool_for_fst(o.num_threads, &view, &pool, err));
  wf_status status = push(&view, &o, &strings, pool, &csr, &start, err);
  wf__pool_free(pool);
  wf__strings_free(&strings);
  if (status == WF_OK) status = wf__fst_like(&csr, start, fst, out, err);
  wf__csr_free(&csr);
  return status;
}
