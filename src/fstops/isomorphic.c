/* isomorphic.c - are two fsts equal up to the numbers of states and the order of arcs?
 *
 * States are paired from the start on. The arcs of two paired states, sorted by labels and weight,
 * must lead to states that can be paired. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "fst/fst.h"

struct pairing {
  wf_fst_view views[2];
  uint32_t *partner[2];    /* [num_states]; UINT32_MAX: none yet */
  WF__VEC(uint32_t) queue; /* states of the first fst */
  WF__VEC(wf_arc) arcs[2];
  float delta;
};

static int compare_arcs(const void *x, const void *y) {
  const wf_arc *a = x, *b = y;
  if (a->ilabel != b->ilabel) return a->ilabel < b->ilabel ? -1 : 1;
  if (a->olabel != b->olabel) return a->olabel < b->olabel ? -1 : 1;
  if (a->weight != b->weight) return a->weight < b->weight ? -1 : 1;
  return (a->nextstate > b->nextstate) - (a->nextstate < b->nextstate);
}

static bool same_cost(const struct pairing *p, float a, float b) {
  return a == b || fabsf(a - b) <= p->delta;
}

static wf_status sort_arcs(struct pairing *p, int side, uint32_t state, wf_error *err) {
  const wf_fst_view *view = &p->views[side];
  uint64_t first = view->arc_off[state], count = view->arc_off[state + 1] - first;
  p->arcs[side].size = 0;
  WF__TRY(wf__vec_grow(&p->arcs[side], count, "arcs", err));
  for (uint64_t i = 0; i < count; i++) p->arcs[side].data[i] = view->arcs[first + i];
  p->arcs[side].size = count;
  if (count != 0) qsort(p->arcs[side].data, count, sizeof(wf_arc), compare_arcs);
  return WF_OK;
}

/* Pairs two states; false if one of them has another partner. */
static wf_status pair(struct pairing *p, uint32_t a, uint32_t b, bool *fits, wf_error *err) {
  bool fresh = p->partner[0][a] == UINT32_MAX && p->partner[1][b] == UINT32_MAX;
  *fits = fresh || (p->partner[0][a] == b && p->partner[1][b] == a);
  if (!fresh) return WF_OK;
  p->partner[0][a] = b;
  p->partner[1][b] = a;
  return wf__vec_push(&p->queue, a, "states", err);
}

/* Two arcs of one state that only their targets tell apart could be paired in two ways. */
static wf_status check_choice(const struct pairing *p, uint32_t state, uint64_t i, wf_error *err) {
  const wf_arc *x = &p->arcs[0].data[i - 1], *y = &p->arcs[0].data[i];
  if (x->ilabel != y->ilabel || x->olabel != y->olabel || x->nextstate == y->nextstate ||
      !same_cost(p, x->weight, y->weight))
    return WF_OK;
  return wf__fail(err, WF_ERR_UNSUPPORTED,
                  "state %u of the first fst has two arcs %d:%d/%g to different states: it is not "
                  "deterministic as an unweighted acceptor",
                  state, x->ilabel, x->olabel, (double)x->weight);
}

static wf_status compare_states(struct pairing *p, uint32_t a, bool *same, wf_error *err) {
  uint32_t b = p->partner[0][a];
  *same = false;
  if (!same_cost(p, p->views[0].final_cost[a], p->views[1].final_cost[b]))
    return wf__fail(err, WF_OK, "states %u and %u have different final costs %g and %g", a, b,
                    (double)p->views[0].final_cost[a], (double)p->views[1].final_cost[b]);
  WF__TRY(sort_arcs(p, 0, a, err));
  WF__TRY(sort_arcs(p, 1, b, err));
  if (p->arcs[0].size != p->arcs[1].size)
    return wf__fail(err, WF_OK, "states %u and %u have %llu and %llu arcs", a, b,
                    (unsigned long long)p->arcs[0].size, (unsigned long long)p->arcs[1].size);
  for (uint64_t i = 0; i < p->arcs[0].size; i++) {
    const wf_arc *x = &p->arcs[0].data[i], *y = &p->arcs[1].data[i];
    if (x->ilabel != y->ilabel || x->olabel != y->olabel || !same_cost(p, x->weight, y->weight))
      return wf__fail(err, WF_OK, "states %u and %u have different arcs %d:%d/%g and %d:%d/%g", a,
                      b, x->ilabel, x->olabel, (double)x->weight, y->ilabel, y->olabel,
                      (double)y->weight);
    if (i > 0) WF__TRY(check_choice(p, a, i, err));
    bool fits;
    WF__TRY(pair(p, x->nextstate, y->nextstate, &fits, err));
    if (!fits)
      return wf__fail(err, WF_OK, "the arcs %d:%d of states %u and %u lead to states that differ",
                      x->ilabel, x->olabel, a, b);
  }
  *same = true;
  return WF_OK;
}

static wf_status compare(struct pairing *p, bool *same, wf_error *err) {
  for (int side = 0; side < 2; side++) {
    uint64_t n = p->views[side].num_states;
    p->partner[side] = wf__alloc(n, sizeof(uint32_t));
    if (p->partner[side] == NULL) return wf__fail_memory(err, n * 4, "pairs of states");
    for (uint64_t s = 0; s < n; s++) p->partner[side][s] = UINT32_MAX;
  }
  *same = p->views[0].start < 0 && p->views[1].start < 0;
  if (*same) return WF_OK;
  if (p->views[0].start < 0 || p->views[1].start < 0)
    return wf__fail(err, WF_OK, "only one fst is empty");
  WF__TRY(pair(p, (uint32_t)p->views[0].start, (uint32_t)p->views[1].start, same, err));
  for (uint64_t k = 0; k < p->queue.size && *same; k++)
    WF__TRY(compare_states(p, p->queue.data[k], same, err));
  return WF_OK;
}

wf_status wf_isomorphic(const wf_fst *a, const wf_fst *b, float delta, bool *out_equal,
                        wf_error *err) {
  struct pairing p = {.views = {wf_fst_get_view(a), wf_fst_get_view(b)}, .delta = delta};
  *out_equal = false;
  if (!(delta >= 0))
    return wf__fail(err, WF_ERR_ARGUMENT, "delta is %g, expected 0 or more", (double)delta);
  WF__TRY(wf__same_semiring(a, b, err));
  if (!wf__alike_symbols(a, b, err)) return WF_OK;
  wf_status status = compare(&p, out_equal, err);
  for (int side = 0; side < 2; side++) {
    free(p.partner[side]);
    wf__vec_free(&p.arcs[side]);
  }
  wf__vec_free(&p.queue);
  return status;
}
