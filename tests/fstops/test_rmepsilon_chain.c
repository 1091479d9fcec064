/* test_rmepsilon_chain.c - epsilon removal where results of many arcs go from state to state: bit
 * for bit as a plain definition says, and in a time that long chains do not exceed. */
#include "testing.h"

#include "math/cost.h"

static wf_error err;

enum { STATES = 90, MOST = 4000 };

/* The result of a state by definition: its labelled arcs, then the result of each epsilon arc at
 * its cost. Arcs with the same labels and target are summed, and the sums rounded, at each state.
 */
struct plain {
  wf_arc arcs[MOST];
  double costs[MOST], final_cost;
  uint64_t count;
};
static struct plain plain[STATES];

static double plus(wf_semiring semiring, double a, double b) {
  return semiring == WF_LOG ? wf__log_add(a, b) : a < b ? a : b;
}

static void plain_add(struct plain *to, wf_semiring semiring, wf_arc arc, double cost) {
  uint64_t i = 0;
  while (i < to->count &&
         (to->arcs[i].ilabel != arc.ilabel || to->arcs[i].nextstate != arc.nextstate))
    i++;
  if (i < to->count) {
    to->costs[i] = plus(semiring, to->costs[i], cost);
    return;
  }
  assert_true(to->count < MOST);
  to->arcs[to->count] = arc;
  to->costs[to->count++] = cost;
}

static void plain_result(const wf_fst_view *view, uint64_t s) {
  struct plain *to = &plain[s];
  to->count = 0;
  to->final_cost = (double)view->final_cost[s];
  for (int epsilons = 0; epsilons < 2; epsilons++)
    for (uint64_t k = view->arc_off[s]; k < view->arc_off[s + 1]; k++) {
      const wf_arc arc = view->arcs[k];
      const double cost = 0 + (double)arc.weight;
      if ((arc.ilabel == 0) != (epsilons == 1)) continue;
      if (epsilons == 0) {
        plain_add(to, view->semiring, arc, cost);
        continue;
      }
      const struct plain *from = &plain[arc.nextstate];
      for (uint64_t i = 0; i < from->count; i++)
        plain_add(to, view->semiring, from->arcs[i], cost + (double)from->arcs[i].weight);
      to->final_cost = plus(view->semiring, to->final_cost, cost + from->final_cost);
    }
  for (uint64_t i = 0; i < to->count; i++) to->arcs[i].weight = (float)to->costs[i];
}

static float some_weight(test_rng *rng) {
  switch (test_below(rng, 4)) {
    case 0: return 0;
    case 1: return -0.0f;
    case 2: return 0.5f;
    default: return (float)test_below(rng, 1000003) / 300007 - 0.7f;
  }
}

/* A chain of epsilons, most of them the only way into their target, with other epsilon arcs before
 * and behind. Few labels make many equal arcs. Epsilons go to states with larger numbers. (A state
 * whose only arc is an epsilon arc has no result of its own, so there is none.) */
static wf_fst *random_chain(test_rng *rng, wf_semiring semiring) {
  wf_builder *builder;
  wf_fst *fst;
  const uint32_t labels = test_below(rng, 2) == 0 ? 3 : 200, side = STATES * 2 / 3;
  assert_ok(wf_builder_create(semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, STATES, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  for (uint32_t s = 0; s < STATES; s++) {
    uint32_t num_arcs = s + 1 < STATES ? 2 + test_below(rng, 3) : 1,
             chain = test_below(rng, num_arcs);
    if (s == STATES - 1 || test_below(rng, 6) == 0)
      assert_ok(wf_builder_set_final(builder, s, some_weight(rng), &err));
    for (uint32_t k = 0; k < num_arcs; k++) {
      bool epsilon = s + 1 < STATES && (k == chain || test_below(rng, 5) == 0);
      int32_t label = epsilon ? 0 : 1 + (int32_t)test_below(rng, labels);
      uint32_t first = s < side && k != chain ? side : s + 1,
               to = !epsilon     ? (test_below(rng, 3) == 0 ? test_below(rng, STATES) : STATES - 1)
                    : k == chain ? s + 1
                                 : first + test_below(rng, STATES - first);
      assert_ok(wf_builder_add_arc(
          builder, s,
          (wf_arc){.nextstate = to, .weight = some_weight(rng), .ilabel = label, .olabel = label},
          &err));
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  return fst;
}

static void assert_as_defined(const wf_fst *fst, const wf_fst *result) {
  wf_fst_view in = wf_fst_get_view(fst), out = wf_fst_get_view(result);
  for (uint64_t s = in.num_states; s-- > 0;) plain_result(&in, s);
  assert_int_equal(out.num_states, in.num_states);
  for (uint64_t s = 0; s + 1 < out.num_states; s++) { /* the last has no epsilons to remove */
    const uint64_t count = out.arc_off[s + 1] - out.arc_off[s];
    if (count == 0) continue; /* only epsilons enter the state, or it has no arcs */
    assert_int_equal(count, plain[s].count);
    for (uint64_t i = 0; i < count; i++)
      assert_memory_equal(&out.arcs[out.arc_off[s] + i], &plain[s].arcs[i], sizeof(wf_arc));
    assert_true(out.final_cost[s] == wf__cost_to_float(plain[s].final_cost));
  }
}

static void test_as_defined(void **unused) {
  (void)unused;
  test_rng rng = {11};
  wf_rmepsilon_options o;
  wf_rmepsilon_options_init(&o);
  o.connect = false;
  for (int i = 0; i < 400; i++) {
    wf_fst *fst = random_chain(&rng, i % 2 == 0 ? WF_TROPICAL : WF_LOG), *result;
    assert_ok(wf_rmepsilon(fst, &o, &result, &err));
    assert_as_defined(fst, result);
    wf_fst_free(result);
    wf_fst_free(fst);
  }
}

/* A copy of all arcs behind each state would take 80 GB. */
static void test_long_chain(void **unused) {
  (void)unused;
  enum { LENGTH = 100000 };
  wf_builder *builder;
  wf_fst *fst, *result;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, LENGTH + 1, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  assert_ok(wf_builder_set_final(builder, LENGTH, 0, &err));
  for (uint32_t s = 0; s < LENGTH; s++) {
    int32_t label = (int32_t)s + 1;
    wf_arc next = {.nextstate = s + 1, .weight = s == 5 ? 0.25f : 0},
           own = {.nextstate = LENGTH, .weight = 1, .ilabel = label, .olabel = label};
    assert_ok(wf_builder_add_arc(builder, s, next, &err));
    assert_ok(wf_builder_add_arc(builder, s, own, &err));
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  assert_ok(wf_rmepsilon(fst, NULL, &result, &err));
  wf_fst_view view = wf_fst_get_view(result);
  assert_int_equal(view.num_states, 2);
  assert_int_equal(view.num_arcs, LENGTH);
  for (uint64_t i = 0; i < view.num_arcs; i++) {
    assert_int_equal(view.arcs[i].ilabel, i + 1);
    assert_true(view.arcs[i].weight == (i > 5 ? 1.25f : 1));
  }
  assert_true(view.final_cost[0] == 0.25f);
  wf_fst_free(result);
  wf_fst_free(fst);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_as_defined),
      cmocka_unit_test(test_long_chain),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
