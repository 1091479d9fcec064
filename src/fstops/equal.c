/* equal.c - wf_equal: compares two fsts state by state and arc by arc. */
#include "fst/fst.h"

static bool close(float a, float b, float delta) { return a == b || fabsf(a - b) <= delta; }

/* Returns false and describes the difference in err. The code in err is WF_OK, because the call
 * itself succeeds. */
static bool same_state(const wf_fst_view *a, const wf_fst_view *b, uint64_t s, float delta,
                       wf_error *err) {
  unsigned long long id = (unsigned long long)s;
  if (!close(a->final_cost[s], b->final_cost[s], delta)) {
    wf__fail(err, WF_OK, "state %llu: final cost %.9g in the first, %.9g in the second", id,
             (double)a->final_cost[s], (double)b->final_cost[s]);
    return false;
  }
  uint64_t num_a = a->arc_off[s + 1] - a->arc_off[s], num_b = b->arc_off[s + 1] - b->arc_off[s];
  if (num_a != num_b) {
    wf__fail(err, WF_OK, "state %llu: %llu arcs in the first, %llu in the second", id,
             (unsigned long long)num_a, (unsigned long long)num_b);
    return false;
  }
  for (uint64_t i = 0; i < num_a; i++) {
    const wf_arc *x = &a->arcs[a->arc_off[s] + i], *y = &b->arcs[b->arc_off[s] + i];
    if (x->ilabel == y->ilabel && x->olabel == y->olabel && x->nextstate == y->nextstate &&
        close(x->weight, y->weight, delta))
      continue;
    wf__fail(
        err, WF_OK,
        "state %llu, arc %llu: %d:%d to %u at %.9g in the first, %d:%d to %u at %.9g in the second",
        id, (unsigned long long)i, x->ilabel, x->olabel, x->nextstate, (double)x->weight, y->ilabel,
        y->olabel, y->nextstate, (double)y->weight);
    return false;
  }
  return true;
}

static bool same_fst(const wf_fst_view *a, const wf_fst_view *b, float delta, wf_error *err) {
  if (a->num_states != b->num_states) {
    wf__fail(err, WF_OK, "%llu states in the first, %llu in the second",
             (unsigned long long)a->num_states, (unsigned long long)b->num_states);
    return false;
  }
  if (a->start != b->start) {
    wf__fail(err, WF_OK, "start state %lld in the first, %lld in the second", (long long)a->start,
             (long long)b->start);
    return false;
  }
  for (uint64_t s = 0; s < a->num_states; s++)
    if (!same_state(a, b, s, delta, err)) return false;
  return true;
}

wf_status wf_equal(const wf_fst *a, const wf_fst *b, float delta, bool *out_equal, wf_error *err) {
  *out_equal = false;
  if (!(delta >= 0))
    return wf__fail(err, WF_ERR_ARGUMENT, "delta is %g, expected 0 or more", (double)delta);
  WF__TRY(wf__same_semiring(a, b, err));
  if (!wf__alike_symbols(a, b, err)) return WF_OK;
  wf_fst_view x = wf_fst_get_view(a), y = wf_fst_get_view(b);
  *out_equal = same_fst(&x, &y, delta, err);
  return WF_OK;
}
