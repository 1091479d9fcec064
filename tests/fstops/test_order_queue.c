/* test_order_queue.c - the queue of label correcting against an array of flags, and distances of
 * ladders, where first in, first out takes quadratic time, against their recurrences. */
#include <math.h>

#include "fstops/order_queue.h"
#include "testing.h"

static wf_error err;

static wf__search_graph graph_of(const wf_fst_view *view) {
  return (wf__search_graph){
      .num_states = view->num_states, .arc_off = view->arc_off, .arcs = view->arcs, .start = -1};
}

/* Puts and takes states at random; `waits` is the queue, by rank. */
static void use_at_random(wf__order_queue *queue, uint64_t n, test_rng *rng) {
  uint8_t *waits = calloc(n, 1);
  uint64_t next = 0, count = 0;
  for (int step = 0; step < 2000; step++) {
    if (count == 0 || test_below(rng, 2) == 0) {
      uint32_t state = (uint32_t)test_below(rng, (uint32_t)n);
      count += !waits[queue->rank[state]];
      waits[queue->rank[state]] = 1;
      wf__order_queue_put(queue, state);
      assert_true(wf__order_queue_has(queue, state));
    } else {
      while (!waits[next % n]) next++;
      next %= n;
      uint32_t state = wf__order_queue_take(queue);
      assert_int_equal(queue->rank[state], next);
      assert_false(wf__order_queue_has(queue, state));
      waits[next++] = 0;
      count--;
    }
    assert_int_equal(queue->count, count);
  }
  free(waits);
}

static void test_order_of_states(void **unused) {
  test_rng rng = {7};
  for (int i = 0; i < 60; i++) { /* up to 10,000 states: three levels of bits */
    uint64_t n = 1 + test_below(&rng, i % 3 == 0 ? 3 : i % 3 == 1 ? 200 : 10000), backward = 0;
    wf_builder *builder;
    wf_fst *fst;
    assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
    assert_ok(wf_builder_add_states(builder, n, NULL, &err));
    assert_ok(wf_builder_set_start(builder, 0, &err));
    for (uint64_t k = 0; k < 2 * n; k++) { /* without cycles if i is even */
      uint32_t a = test_below(&rng, (uint32_t)n), b = test_below(&rng, (uint32_t)n);
      if (i % 2 == 0 && a == b) continue;
      bool turn = i % 2 == 0 && (a * 7919 % 10007 > b * 7919 % 10007);
      assert_ok(wf_builder_add_arc(builder, turn ? b : a, (wf_arc){turn ? a : b, 0, 1, 1}, &err));
    }
    assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
    wf_builder_free(builder);
    wf_fst_view view = wf_fst_get_view(fst);
    wf__search_graph graph = graph_of(&view);
    wf__order_queue queue;
    assert_ok(wf__order_queue_init(&queue, &graph, &err));
    for (uint64_t s = 0; s < n; s++) {
      assert_int_equal(queue.order[queue.rank[s]], s);
      for (uint64_t k = view.arc_off[s]; k < view.arc_off[s + 1]; k++)
        backward += queue.rank[view.arcs[k].nextstate] <= queue.rank[s];
    }
    if (i % 2 == 0) assert_int_equal(backward, 0);
    use_at_random(&queue, n, &rng);
    wf__order_queue_free(&queue);
    wf_fst_free(fst);
  }
}

enum { SKIP = 10 };

/* State s has a dear arc to s + SKIP and then one to s + 1; an arc leads back to the start. The
 * last state is final. */
static wf_fst *ladder(wf_semiring semiring, uint32_t n, float skip, float step, float back) {
  wf_builder *builder;
  wf_fst *fst;
  assert_ok(wf_builder_create(semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, n, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  for (uint32_t s = 0; s + 1 < n; s++) {
    if (s + SKIP < n)
      assert_ok(wf_builder_add_arc(builder, s, (wf_arc){s + SKIP, skip, 1, 1}, &err));
    assert_ok(
        wf_builder_add_arc(builder, s, (wf_arc){s + 1, s % 8 == 0 ? -step : step, 1, 1}, &err));
  }
  assert_ok(wf_builder_add_arc(builder, n - 1, (wf_arc){0, back, 1, 1}, &err));
  assert_ok(wf_builder_set_final(builder, n - 1, 0, &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  return fst;
}

/* A best path takes every step: first in, first out would visit state s some s / 2 times. */
static void test_long_paths_are_better(void **unused) {
  const uint32_t n = 1000000;
  wf_fst *fst = ladder(WF_TROPICAL, n, 20, 0.5f, 1e7f), *best;
  float *distance;
  double sum = 0;
  assert_ok(wf_shortest_distance(fst, NULL, &distance, &err));
  for (uint32_t s = 0; s < n; s++) {
    assert_float_equal(distance[s], (float)sum, 0);
    sum += s % 8 == 0 ? -0.5 : 0.5;
  }
  wf_free(distance);
  assert_ok(wf_shortest_path(fst, NULL, &best, &err));
  assert_int_equal(wf_fst_get_view(best).num_arcs, n - 1);
  wf_fst_free(best);
  wf_fst_free(fst);
}

/* The masses of all paths: a recurrence, times the sum over the rounds through the back arc. */
static void test_sums_of_long_paths(void **unused) {
  const uint32_t n = 200000;
  const double skip = 1, step = 0.7, back = 3;
  wf_fst *fst = ladder(WF_LOG, n, (float)skip, (float)step, (float)back);
  double *sum = malloc(n * sizeof *sum), growth;
  float *distance;
  for (uint32_t s = 0; s < n; s++) {
    sum[s] = s == 0 ? 0 : sum[s - 1] + (double)(float)((s - 1) % 8 == 0 ? -step : step);
    if (s >= SKIP) sum[s] = test_plus(WF_LOG, sum[s], sum[s - SKIP] + skip);
  }
  growth = log1p(-exp(-(sum[n - 1] + back)));
  assert_ok(wf_shortest_distance(fst, NULL, &distance, &err));
  for (uint32_t s = 0; s < n; s++)
    test_assert_close((double)distance[s], sum[s] + growth, 1e-5 * (100 + sum[s]));
  wf_free(distance);
  free(sum);
  wf_fst_free(fst);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_order_of_states),
                                     cmocka_unit_test(test_long_paths_are_better),
                                     cmocka_unit_test(test_sums_of_long_paths)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
