/* push_labels.c - finds the longest common prefixes (or suffixes) of output strings, and rewrites
 * the arcs by them (Mohri 2000, section 4.1.3: pushing in the string semiring).
 *
 * A potential is a list of labels. In both directions, the label nearest to the state comes first:
 *
 *   towards the start         P(s) = common front of o . P(t) over arcs s -o-> t
 *   towards the final states  P(t) = common front of o . P(s) over arcs s -o-> t
 *
 * It is empty at the final states in the first case, at the start in the second.
 *
 * So one algorithm serves both, over incoming or outgoing arcs. Potentials only get shorter. They
 * are computed component by component. The output of an arc becomes o . P(near) without its first
 * |P(far)| labels: towards the start, near is the arc's target and far its source; towards the
 * final states it is the other way round. */
#include "base/interrupt.h"
#include "fstops/push.h"
#include "fstops/shortest_distance.h"

struct pusher {
  const wf_fst_view *view;
  wf__strings *strings;
  /* the arcs along which potentials propagate: incoming arcs if towards the start, else outgoing */
  const uint64_t *off;
  const wf_arc *arcs;
  wf__scc scc;
  uint32_t *potential;
  WF__VEC(uint32_t) queue;
  uint8_t *queued;
  WF__VEC(uint32_t) labels; /* scratch */
};

/* Longest common front of two strings. */
static wf_status common_front(struct pusher *pusher, uint32_t a, uint32_t b, uint32_t *out,
                              wf_error *err) {
  uint32_t whole = a;
  pusher->labels.size = 0;
  while (a != b && a != 0 && b != 0 &&
         wf__string_label(pusher->strings, a) == wf__string_label(pusher->strings, b)) {
    WF__TRY(
        wf__vec_push(&pusher->labels, wf__string_label(pusher->strings, a), "label strings", err));
    a = wf__string_rest(pusher->strings, a);
    b = wf__string_rest(pusher->strings, b);
  }
  *out = whole;
  if (a == b || a == 0) return WF_OK;
  *out = 0;
  while (pusher->labels.size > 0)
    WF__TRY(wf__string_put(pusher->strings, pusher->labels.data[--pusher->labels.size], *out, out,
                           err));
  return WF_OK;
}

static wf_status put_label(struct pusher *pusher, int32_t olabel, uint32_t rest, uint32_t *out,
                           wf_error *err) {
  *out = rest;
  return olabel == 0 ? WF_OK : wf__string_put(pusher->strings, (uint32_t)olabel, rest, out, err);
}

/* Updates the potentials of the neighbours of `from`: those in its component, or those in other
 * components. */
static wf_status update_neighbours(struct pusher *pusher, uint32_t from, bool same_component,
                                   wf_error *err) {
  uint32_t component = pusher->scc.component[from];
  for (uint64_t i = pusher->off[from]; i < pusher->off[from + 1]; i++) {
    const wf_arc *arc = &pusher->arcs[i];
    uint32_t to = arc->nextstate, old = pusher->potential[to], offer, now;
    if ((pusher->scc.component[to] == component) != same_component || old == 0) continue;
    WF__TRY(put_label(pusher, arc->olabel, pusher->potential[from], &offer, err));
    if (old == WF__STRING_NONE)
      now = offer;
    else
      WF__TRY(common_front(pusher, old, offer, &now, err));
    pusher->potential[to] = now;
    if (now == old || !same_component || pusher->queued[to]) continue;
    pusher->queued[to] = 1;
    WF__TRY(wf__vec_push(&pusher->queue, to, "label strings", err));
  }
  return WF_OK;
}

static wf_status solve_component(struct pusher *pusher, uint32_t component, wf_error *err) {
  uint32_t first = pusher->scc.off[component], end = pusher->scc.off[component + 1];
  pusher->queue.size = 0;
  for (uint32_t i = first; i < end; i++) {
    uint32_t s = pusher->scc.order[i];
    if (pusher->potential[s] == WF__STRING_NONE) continue;
    pusher->queued[s] = 1;
    WF__TRY(wf__vec_push(&pusher->queue, s, "label strings", err));
  }
  for (uint64_t head = 0; head < pusher->queue.size; head++) {
    uint32_t s = pusher->queue.data[head];
    WF__TRY(wf__interrupted_at(head, err));
    pusher->queued[s] = 0;
    WF__TRY(update_neighbours(pusher, s, true, err));
  }
  for (uint32_t i = first; i < end; i++) {
    uint32_t s = pusher->scc.order[i];
    if (pusher->potential[s] != WF__STRING_NONE) WF__TRY(update_neighbours(pusher, s, false, err));
  }
  return WF_OK;
}

static wf_status find_potentials(struct pusher *pusher, bool to_final, wf_error *err) {
  const wf_fst_view *view = pusher->view;
  uint64_t n = view->num_states;
  pusher->potential = wf__alloc(n, sizeof *pusher->potential);
  pusher->queued = wf__calloc(n, 1);
  if (pusher->potential == NULL || pusher->queued == NULL)
    return wf__fail_memory(err, n * 5, "label strings");
  for (uint64_t s = 0; s < n; s++) {
    bool base = to_final ? (int64_t)s == view->start : wf__is_final(view, s);
    pusher->potential[s] = base ? 0 : WF__STRING_NONE;
  }
  for (uint32_t k = 0; k < pusher->scc.num_components; k++) {
    WF__TRY(wf__interrupted_at(k, err));
    WF__TRY(solve_component(pusher, to_final ? k : pusher->scc.num_components - 1 - k, err));
  }
  return WF_OK;
}

static wf_status rewrite(struct pusher *pusher, bool to_final, wf__csr *csr, wf_error *err) {
  const wf_fst_view *view = pusher->view;
  for (uint64_t s = 0; s < view->num_states; s++) {
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      wf_arc *arc = &csr->arcs.data[i];
      uint32_t far = pusher->potential[to_final ? arc->nextstate : s],
               near = pusher->potential[to_final ? s : arc->nextstate], string;
      if (near == WF__STRING_NONE || far == WF__STRING_NONE) { /* on no successful path */
        arc->olabel = (int32_t)wf__string_of(arc->olabel);
        continue;
      }
      WF__TRY(put_label(pusher, arc->olabel, near, &string, err));
      arc->olabel =
          (int32_t)(string == far ? 0
                                  : wf__string_drop(pusher->strings, string,
                                                    wf__string_size(pusher->strings, far)));
    }
  }
  return WF_OK;
}

wf_status wf__push_labels(const wf_fst_view *view, bool to_final, wf__strings *strings,
                          wf__csr *csr, uint32_t **out_potential, wf_error *err) {
  *out_potential = NULL;
  struct pusher pusher = {
      .view = view, .strings = strings, .off = view->arc_off, .arcs = view->arcs};
  wf__incoming incoming = {0};
  wf_status status;
  WF__TRY_GOTO(status, wf__scc_find(view, WF__ARCS_ALL, &pusher.scc, err), done);
  if (!to_final) {
    WF__TRY_GOTO(status, wf__incoming_find(view, &incoming, err), done);
    pusher.off = incoming.off;
    pusher.arcs = incoming.arcs;
  }
  WF__TRY_GOTO(status, find_potentials(&pusher, to_final, err), done);
  WF__TRY_GOTO(status, rewrite(&pusher, to_final, csr, err), done);
  *out_potential = pusher.potential;
  pusher.potential = NULL;
done:
  free(pusher.potential);
  free(pusher.queued);
  wf__vec_free(&pusher.queue);
  wf__vec_free(&pusher.labels);
  wf__incoming_free(&incoming);
  wf__scc_free(&pusher.scc);
  return status;
}
