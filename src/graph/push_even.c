/* push_even.c - weight pushing in the log semiring for graphs whose sums do not converge.
 *
 * If back-off arcs may be taken without restriction, the probabilities of a grammar sum to more
 * than one. The shortest distances that ordinary pushing needs then do not exist. Instead, power
 * iteration finds the dominant eigenvector: x > 0 and a constant c with
 *     sum over arcs s -> n of p x[n]  +  p_final(s) x[start]  =  c x[s]        for every state s.
 * Arc costs become w - ln x[n] + ln x[s], final costs f - ln x[start] + ln x[s]. Along a path these
 * terms cancel for any x. So stopping early makes the result less even but never changes a path's
 * cost. (The idea is that of Kaldi's fstpushspecial.) */
#include "graph/push_even.h"

#include <string.h>

#include "base/callbacks.h"
#include "base/interrupt.h"
#include "fst/fst.h"
#include "fstops/csr_copy.h"

static const double smallest =
    1e-250; /* keeps logarithms finite for states with almost no continuation */
enum { MAX_ROUNDS = 300 };
static const double tolerance = 1e-3; /* largest difference between states, in nats */

/* Computes y = A x + shift x, scaled. The shift prevents oscillation on periodic graphs. Returns
 * the spread of ln(A x / x) over the states. */
static double multiply(const wf_fst_view *view, const float *p, const double *x, double *y) {
  double low = INFINITY, high = 0, largest = 0;
  for (uint64_t s = 0; s < view->num_states; s++) {
    double sum =
        view->final_cost[s] == INFINITY ? 0 : exp(-(double)view->final_cost[s]) * x[view->start];
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      sum += (double)p[i] * x[view->arcs[i].nextstate];
    if (sum / x[s] < low) low = sum / x[s];
    if (sum / x[s] > high) high = sum / x[s];
    y[s] = sum;
    if (sum > largest) largest = sum;
  }
  double scale = largest > 0 ? 1 / largest : 1;
  for (uint64_t s = 0; s < view->num_states; s++) {
    y[s] = (y[s] + 0.1 * x[s] * largest) * scale;
    if (!(y[s] > smallest)) y[s] = smallest;
  }
  return low > 0 ? log(high / low) : INFINITY;
}

static void find_potentials(const wf_fst_view *view, float *p, double *x, double *y) {
  for (uint64_t i = 0; i < view->num_arcs; i++) p[i] = expf(-fmaxf(view->arcs[i].weight, -80));
  for (uint64_t s = 0; s < view->num_states; s++) x[s] = 1;
  double spread = INFINITY;
  int rounds = 0;
  for (; rounds < MAX_ROUNDS && spread > tolerance && !wf__stopped(); rounds++) {
    spread = multiply(view, p, x, y);
    memcpy(x, y, view->num_states * sizeof *x);
  }
  wf__log(WF_LOG_DEBUG, "push: %d rounds, states within %g nats", rounds, spread);
}

static void reweight(wf__csr *csr, const wf_fst_view *view, double *x) {
  for (uint64_t s = 0; s < view->num_states; s++) x[s] = log(x[s]);
  for (uint64_t s = 0; s < view->num_states; s++) {
    if (wf__is_final(view, s))
      csr->final_cost.data[s] = (float)((double)view->final_cost[s] + x[s] - x[view->start]);
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      csr->arcs.data[i].weight =
          (float)((double)view->arcs[i].weight + x[s] - x[view->arcs[i].nextstate]);
  }
}

wf_status wf__push_even(const wf_fst *fst, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_fst_view view = wf_fst_get_view(fst);
  wf__csr csr = {0};
  float *p = wf__alloc(view.num_arcs, sizeof *p);
  double *x = wf__alloc(view.num_states, sizeof *x), *y = wf__alloc(view.num_states, sizeof *y);
  wf_status status =
      p != NULL && x != NULL && y != NULL
          ? WF_OK
          : wf__fail_memory(err, view.num_arcs * sizeof *p + view.num_states * 16, "pushing");
  if (status == WF_OK) status = wf__csr_append(&csr, &view, err);
  if (status == WF_OK && view.start >= 0) {
    find_potentials(&view, p, x, y);
    reweight(&csr, &view, x);
    status = wf__interrupted(err);
  }
  if (status == WF_OK)
    status = wf__fst_from_csr(&csr, view.start, view.semiring, wf_fst_isymbols(fst),
                              wf_fst_osymbols(fst), out, err);
  wf__csr_free(&csr);
  free(p);
  free(x);
  free(y);
  return status;
}
