/* compose_order.c - renumbers the states of a composition in canonical order. Two stable counting
 * sorts give the order, or a sort by comparison if there are few states; then the arrays are
 * copied.
 */
#include "fstops/compose_order.h"

#include <string.h>

#include "fstops/compose_chain.h"
#include "fstops/compose_filter.h"
#include "fstops/compose_states.h"

enum { FEW_SHARE = 16 }; /* states are few if there are this many times as many keys */

/* Sort key of a triple: (filter state, state of b) in pass 0, the state of a in pass 1. */
static uint64_t digit_of(uint64_t triple, int pass, uint64_t num_b) {
  return pass == 0 ? (uint64_t)wf__compose_filter(triple) * num_b + wf__compose_b(triple)
                   : wf__compose_a(triple);
}

/* Stable counting sort of the states in `from` (NULL: 0, 1, ...) by one key. `first` has room for
 * num_digits + 1. */
static void sort_pass(const uint64_t *triples, const uint32_t *from, uint32_t *to, uint64_t count,
                      int pass, uint64_t num_b, uint64_t *first, uint64_t num_digits) {
  memset(first, 0, (num_digits + 1) * sizeof *first);
  for (uint64_t i = 0; i < count; i++) first[digit_of(triples[i], pass, num_b) + 1]++;
  for (uint64_t d = 0; d < num_digits; d++) first[d + 1] += first[d];
  for (uint64_t i = 0; i < count; i++) {
    uint32_t s = from != NULL ? from[i] : (uint32_t)i;
    to[first[digit_of(triples[s], pass, num_b)]++] = s;
  }
}

/* `order[i]` is the old number of the new state i. `other` is scratch, and becomes the inverse. */
static wf_status copy_in_order(wf__compose_output *out, const uint32_t *order, uint32_t *other,
                               wf_error *err) {
  const wf__csr *old = &out->csr;
  uint64_t n = old->final_cost.size, m = old->arcs.size, at = 0;
  wf__compose_output made = {.with_origins = out->with_origins};
  wf_status status = WF_OK;
  for (uint64_t i = 0; i < n; i++) other[order[i]] = (uint32_t)i;
  WF__TRY_GOTO(status, wf__vec_grow(&made.csr.arc_off, n + 1, "states", err), failed);
  WF__TRY_GOTO(status, wf__vec_grow(&made.csr.final_cost, n, "states", err), failed);
  WF__TRY_GOTO(status, wf__vec_grow(&made.csr.arcs, m + 1, "arcs", err), failed);
  if (made.with_origins)
    WF__TRY_GOTO(status, wf__vec_grow(&made.origins, m + 1, "origins of arcs", err), failed);
  for (uint64_t i = 0; i < n; i++) {
    uint64_t s = order[i], begin = old->arc_off.data[s],
             end = s + 1 < n ? old->arc_off.data[s + 1] : m;
    made.csr.arc_off.data[i] = at;
    made.csr.final_cost.data[i] = old->final_cost.data[s];
    if (made.with_origins && begin != end)
      memcpy(made.origins.data + at, out->origins.data + begin,
             (end - begin) * sizeof *made.origins.data);
    for (uint64_t k = begin; k < end; k++) {
      made.csr.arcs.data[at] = old->arcs.data[k];
      made.csr.arcs.data[at++].nextstate = other[old->arcs.data[k].nextstate];
    }
  }
  made.csr.arc_off.size = made.csr.final_cost.size = n;
  made.csr.arcs.size = m;
  made.origins.size = made.with_origins ? m : 0;
  made.start = other[out->start];
failed:
  wf__compose_output_free(status == WF_OK ? out : &made);
  if (status == WF_OK) *out = made;
  return status;
}

static wf_status order_of(const wf__compose_job *job, uint64_t *triples, uint64_t n,
                          uint32_t *order, uint32_t *other, wf_error *err);

/* Replaces the states of a in the triples by their ranks in canonical order. */
static wf_status rank_left(const wf__compose_chain *left, uint64_t *triples, uint64_t n,
                           wf_error *err) {
  const uint64_t num_left = left->states.pairs.size;
  uint32_t *order = wf__alloc(num_left, sizeof *order), *rank = wf__alloc(num_left, sizeof *rank);
  wf_status status =
      order == NULL || rank == NULL
          ? wf__fail_memory(err, num_left * 8, "an order of states")
          : order_of(&left->job, left->states.pairs.data, num_left, order, rank, err);
  if (status == WF_OK) {
    for (uint64_t i = 0; i < num_left; i++) rank[order[i]] = (uint32_t)i;
    for (uint64_t i = 0; i < n; i++)
      triples[i] = wf__compose_pack(rank[wf__compose_a(triples[i])], wf__compose_b(triples[i]),
                                    wf__compose_filter(triples[i]));
  }
  free(order);
  free(rank);
  return status;
}

/* The key of a state of a small result. */
struct place {
  uint64_t high, low; /* pass 1, pass 0 */
  uint32_t state;
};

static int compare_places(const void *x, const void *y) {
  const struct place *a = x, *b = y;
  if (a->high != b->high) return a->high < b->high ? -1 : 1;
  return (a->low > b->low) - (a->low < b->low);
}

/* Sorts few states by comparison, so that the time does not depend on the size of the inputs. */
static wf_status sort_few(const uint64_t *triples, uint64_t n, uint64_t num_b, uint32_t *order,
                          wf_error *err) {
  struct place *places = wf__alloc(n, sizeof *places);
  if (places == NULL) return wf__fail_memory(err, n * sizeof *places, "an order of states");
  for (uint64_t i = 0; i < n; i++)
    places[i] =
        (struct place){digit_of(triples[i], 1, num_b), digit_of(triples[i], 0, num_b), (uint32_t)i};
  qsort(places, n, sizeof *places, compare_places);
  for (uint64_t i = 0; i < n; i++) order[i] = places[i].state;
  free(places);
  return WF_OK;
}

/* Writes the states in canonical order to `order` [n]. `other` [n] is scratch. */
static wf_status order_of(const wf__compose_job *job, uint64_t *triples, uint64_t n,
                          uint32_t *order, uint32_t *other, wf_error *err) {
  const uint64_t num_a = job->left != NULL ? job->left->states.pairs.size : job->a->view.num_states,
                 num_b = job->b->view.num_states,
                 num_b_digits =
                     num_b * (uint64_t)wf__num_filter_states(job->filter, job->a->has_epsilons,
                                                             job->b->has_epsilons),
                 num_digits = num_a > num_b_digits ? num_a : num_b_digits;
  if (job->left != NULL) WF__TRY(rank_left(job->left, triples, n, err));
  if (n < num_digits / FEW_SHARE) return sort_few(triples, n, num_b, order, err);
  uint64_t *first = wf__alloc(num_digits + 1, sizeof *first);
  if (first == NULL) return wf__fail_memory(err, num_digits * 8, "an order of states");
  sort_pass(triples, NULL, other, n, 0, num_b, first, num_b_digits);
  sort_pass(triples, other, order, n, 1, num_b, first, num_a);
  free(first);
  return WF_OK;
}

wf_status wf__compose_renumber(const wf__compose_job *job, uint64_t *triples,
                               wf__compose_output *out, wf_error *err) {
  const uint64_t n = out->csr.final_cost.size;
  uint32_t *order = wf__alloc(n, sizeof *order), *other = wf__alloc(n, sizeof *other);
  wf_status status = order == NULL || other == NULL
                         ? wf__fail_memory(err, n * 8, "an order of states")
                         : order_of(job, triples, n, order, other, err);
  if (status == WF_OK) status = copy_in_order(out, order, other, err);
  free(order);
  free(other);
  return status;
}
