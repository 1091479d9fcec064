/* test_threads.c - operations that use threads give the same arrays bit for bit, for any number of
 * threads. The graphs are large enough for threads to start, and include hard cases (postponed
 * residual outputs of several labels; classes that differ only far away) that several threads meet
 * at once. */
#include "testing.h"

static wf_error err;
#ifdef __SANITIZE_THREAD__ /* three threads, every third filter and two graphs show a race */
static const int thread_counts[] = {3};
enum { FILTER_STEP = 3, FIRST_SHAPE = 1 };
#else
static const int thread_counts[] = {2, 3, 7};
enum { FILTER_STEP = 1, FIRST_SHAPE = 0 };
#endif
enum { NUM_COUNTS = sizeof thread_counts / sizeof *thread_counts };

static void assert_identical(const wf_fst *a, const wf_fst *b) {
  wf_fst_view x = wf_fst_get_view(a), y = wf_fst_get_view(b);
  assert_int_equal(x.start, y.start);
  assert_int_equal(x.num_states, y.num_states);
  assert_int_equal(x.num_arcs, y.num_arcs);
  assert_memory_equal(x.arc_off, y.arc_off, (x.num_states + 1) * sizeof *x.arc_off);
  assert_memory_equal(x.final_cost, y.final_cost, x.num_states * sizeof *x.final_cost);
  assert_memory_equal(x.arcs, y.arcs, x.num_arcs * sizeof *x.arcs);
}

static float eighths(uint64_t key) {
  test_rng rng = {key};
  return (float)test_below(&rng, 32) / 8;
}

/* Copies of a deterministic graph of `num_kinds` states, shuffled. Every state is equivalent to the
 * states of its kind (state % num_kinds). Kinds below `ring` lie on a ring and differ only far
 * away. Potentials move the weights, so that only pushing shows which states are equivalent. */
static wf_fst *make_copies(uint64_t seed, uint32_t num_states, uint32_t num_kinds, uint32_t ring) {
  wf_builder *builder;
  wf_fst *fst;
  test_rng rng = {seed};
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, num_kinds - 1, &err));
  float *potential = calloc(num_states, sizeof *potential);
  for (uint32_t s = 0; s < num_states; s++) potential[s] = (float)test_below(&rng, 64) / 8;
  for (uint32_t s = 0; s < num_states; s++) {
    uint32_t kind = s % num_kinds, degree = kind < ring ? 1 : 3 + kind % 3;
    for (uint32_t k = 0; k < degree; k++) {
      test_rng of_kind = {(uint64_t)kind << 8 | k};
      uint32_t next_kind = kind < ring ? (kind + 1) % ring : test_below(&of_kind, num_kinds),
               next = next_kind + num_kinds * test_below(&rng, num_states / num_kinds);
      if (next >= num_states) next = next_kind;
      wf_arc arc = {.nextstate = next,
                    .ilabel = (int32_t)(kind < ring ? 0 : k) + 1,
                    .olabel = (int32_t)(kind < ring ? 0 : test_below(&of_kind, 3))};
      arc.weight =
          (kind < ring ? 0 : eighths((uint64_t)kind << 32 | k)) + potential[s] - potential[next];
      assert_ok(wf_builder_add_arc(builder, s, arc, &err));
    }
    if (kind % 50 == 0 && (kind == 0 || kind >= ring))
      assert_ok(wf_builder_set_final(builder, s, potential[s] + 20, &err));
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  free(potential);
  return fst;
}

static void test_minimize_is_deterministic(void **unused) {
  const struct {
    uint32_t num_states, num_kinds, ring;
  } shapes[] = {{90000, 700, 0}, {70000, 3000, 1000}, {40000, 39000, 0}};
  for (size_t i = FIRST_SHAPE; i < sizeof shapes / sizeof *shapes; i++) {
    wf_fst *fst = make_copies(5 + i, shapes[i].num_states, shapes[i].num_kinds, shapes[i].ring),
           *alone, *together;
    wf_minimize_options o;
    wf_minimize_options_init(&o);
    o.num_threads = 1;
    assert_ok(wf_minimize(fst, &o, &alone, &err));
    assert_in_range(wf_fst_get_view(alone).num_states, shapes[i].num_kinds / 2,
                    shapes[i].num_kinds);
    for (int k = 0; k < NUM_COUNTS; k++) {
      o.num_threads = thread_counts[k];
      assert_ok(wf_minimize(fst, &o, &together, &err));
      assert_identical(alone, together);
      wf_fst_free(together);
    }
    bool equal;
    wf_randequivalent_options r;
    wf_randequivalent_options_init(&r);
    r.max_length = 60;
    r.delta = 0.01f;
    assert_ok(wf_randequivalent(fst, alone, &r, &equal, &err));
    if (!equal) fail_msg("%s", err.message);
    wf_fst_free(alone);
    wf_fst_free(fst);
  }
}

static void test_shortest_distance(void **unused) {
  wf_fst *fst = make_copies(8, 60000, 20000, 0);
  uint64_t num_states = wf_fst_get_view(fst).num_states;
  wf_shortest_distance_options o;
  wf_shortest_distance_options_init(&o);
  o.reverse = true;
  o.num_threads = 1;
  float *alone, *together;
  assert_ok(wf_shortest_distance(fst, &o, &alone, &err));
  for (int k = 0; k < NUM_COUNTS; k++) {
    o.num_threads = thread_counts[k];
    assert_ok(wf_shortest_distance(fst, &o, &together, &err));
    assert_memory_equal(alone, together, num_states * sizeof *alone);
    wf_free(together);
  }
  /* Bellman's equations, with the final costs as the base */
  wf_fst_view view = wf_fst_get_view(fst);
  for (uint64_t s = 0; s < num_states; s++) {
    double best = (double)view.final_cost[s];
    for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++)
      best = fmin(best, (double)view.arcs[i].weight + (double)alone[view.arcs[i].nextstate]);
    assert_true(best == (double)alone[s]); /* sums of eighths are exact */
  }
  wf_free(alone);
  wf_fst_free(fst);
}

/* A functional transducer that guesses: each state of a deterministic graph occurs twice, for odd
 * and for even next labels. The arc into the odd copy already writes the output of that copy's
 * arcs. Determinization joins the two copies, with residuals of two labels. */
static wf_fst *make_guessing(uint64_t seed, uint32_t num_states, uint32_t num_labels,
                             uint32_t bad_state) {
  wf_builder *builder;
  wf_fst *fst;
  test_rng rng = {seed};
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, 2 * num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  for (uint32_t s = 0; s < num_states; s++) {
    for (uint32_t label = 1; label <= num_labels; label++) {
      uint32_t next = label == 1 ? (s + 1) % num_states : test_below(&rng, num_states);
      float weight = (float)test_below(&rng, 32) / 8;
      for (uint32_t guess = 0; guess < 2; guess++) {
        wf_arc arc = {.nextstate = 2 * next + guess,
                      .weight = weight,
                      .ilabel = (int32_t)label,
                      .olabel = guess ? 1 + (int32_t)(next % 1000) : 0};
        assert_ok(wf_builder_add_arc(builder, 2 * s + (s == 0 ? 0 : label % 2), arc,
                                     &err)); /* the start does not guess */
      }
    }
    if (s % 7 == 3) assert_ok(wf_builder_set_final(builder, 2 * s, (float)(s % 16) / 8, &err));
    if (s == bad_state)
      assert_ok(wf_builder_set_final(builder, 2 * s + 1, 0,
                                     &err)); /* ends with an output that the other guess lacks */
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  return fst;
}

/* Determinizes with one thread and with several, and compares with the input. */
static wf_fst *determinize_by_threads(const wf_fst *fst, wf_determinize_options *o) {
  wf_fst *alone, *together;
  bool equal;
  o->num_threads = 1;
  assert_ok(wf_determinize(fst, o, &alone, &err));
  assert_true(wf_fst_properties(alone) & WF_PROP_IDETERMINISTIC);
  assert_true(test_is_trimmed(alone));
  for (int k = 0; k < NUM_COUNTS; k++) {
    o->num_threads = thread_counts[k];
    assert_ok(wf_determinize(fst, o, &together, &err));
    assert_identical(alone, together);
    wf_fst_free(together);
  }
  wf_randequivalent_options r;
  wf_randequivalent_options_init(&r);
  r.npath = 50;
  r.max_length = 200;
  assert_ok(wf_randequivalent(fst, alone, &r, &equal, &err));
  if (!equal) fail_msg("%s", err.message);
  return alone;
}

static void test_determinize_is_deterministic(void **unused) {
  wf_fst *fst = make_guessing(17, 30000, 6, UINT32_MAX);
  wf_determinize_options o;
  wf_determinize_options_init(&o);
  wf_fst *result = determinize_by_threads(fst, &o);
  assert_true(wf_fst_get_view(result).num_states >= 29000);
  wf_fst_free(result);
  wf_fst_free(fst);
}

/* An fst of three copies of each state. Epsilons, some on cycles, lead from the first copy to the
 * others, which read labels of their own. So a subset has three states at most. */
static wf_fst *make_epsilons(uint64_t seed, uint32_t num_states) {
  wf_builder *builder;
  wf_fst *fst;
  test_rng rng = {seed};
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, 3 * num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  for (uint32_t s = 0; s < num_states; s++) {
    for (uint32_t label = 1; label <= 6; label++) {
      uint32_t next = label == 1 ? (s + 1) % num_states : test_below(&rng, num_states);
      wf_arc arc = {3 * next, (float)test_below(&rng, 32) / 8, (int32_t)label, (int32_t)label};
      assert_ok(wf_builder_add_arc(builder, 3 * s + (label - 1) / 2, arc, &err));
    }
    wf_arc there = {3 * s + 1, 0.5f, 0, 7}, on = {3 * s + 2, 0.25f, 0, 8},
           back = {3 * s + 1, 0.125f, 0, 0};
    if (s % 3 != 0) assert_ok(wf_builder_add_arc(builder, 3 * s, there, &err));
    if (s % 3 == 1) assert_ok(wf_builder_add_arc(builder, 3 * s + 1, on, &err));
    if (s % 5 == 1) assert_ok(wf_builder_add_arc(builder, 3 * s + 1, back, &err));
    assert_ok(wf_builder_set_final(builder, 3 * s, (float)(s % 16) / 8, &err));
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  return fst;
}

static void test_closures_are_deterministic(void **unused) {
  wf_fst *fst = make_epsilons(29, 20000);
  wf_determinize_options o;
  wf_determinize_options_init(&o);
  o.rmepsilon = true;
  wf_fst *result = determinize_by_threads(fst, &o);
  assert_in_range(wf_fst_get_view(result).num_states, 20000, 100000);
  wf_fst_free(result);
  wf_fst_free(fst);
}

/* Failures too give the same message, whether about two outputs or about growth. */
static void test_determinize_fails_with_one_message(void **unused) {
  for (int growth = 0; growth < 2; growth++) {
    wf_fst *fst = make_guessing(23, 30000, 6, growth ? UINT32_MAX : 7 * 2900 + 3), *result;
    wf_determinize_options o;
    wf_determinize_options_init(&o);
    o.num_threads = 1;
    o.max_states = growth ? 12345 : 0;
    wf_error alone = {0}, together = {0};
    assert_int_equal(wf_determinize(fst, &o, &result, &alone), WF_ERR_NOT_DETERMINIZABLE);
    for (int k = 0; k < NUM_COUNTS; k++) {
      o.num_threads = thread_counts[k];
      assert_int_equal(wf_determinize(fst, &o, &result, &together), WF_ERR_NOT_DETERMINIZABLE);
      assert_string_equal(together.message, alone.message);
    }
    assert_non_null(
        strstr(alone.message, growth ? "after 12345 states" : "not functional: input \""));
    wf_fst_free(fst);
  }
}

/* Every filter, with epsilons on both sides, with and without trimming. */
static void test_compose_is_deterministic(void **unused) {
  test_rng rng = {31};
  const test_fst_shape shape_a = {.num_states = 300,
                                  .num_arcs = 70000,
                                  .num_ilabels = 9,
                                  .num_olabels = 4000,
                                  .epsilon_share = 0.05f,
                                  .final_share = 0.02f,
                                  .max_weight = 4};
  const test_fst_shape shape_b = {.num_states = 200,
                                  .num_arcs = 3000,
                                  .num_ilabels = 4000,
                                  .num_olabels = 9,
                                  .epsilon_share = 0.05f,
                                  .final_share = 0.02f,
                                  .max_weight = 4};
  wf_fst *a = test_random_fst(&rng, &shape_a), *b = test_random_fst(&rng, &shape_b), *alone,
         *together;
  for (int32_t filter = 0; filter < 7; filter += FILTER_STEP) {
    wf_compose_options o;
    wf_compose_options_init(&o);
    o.filter = filter;
    o.connect = filter % 2 == 0;
    o.num_threads = 1;
    assert_ok(wf_compose(a, b, &o, &alone, &err));
    if (filter < 4) assert_in_range(wf_fst_get_view(alone).num_states, 10000, 1000000);
    for (int k = 0; k < NUM_COUNTS; k++) {
      o.num_threads = thread_counts[k];
      assert_ok(wf_compose(a, b, &o, &together, &err));
      assert_identical(alone, together);
      wf_fst_free(together);
    }
    wf_fst_free(alone);
  }
  wf_fst_free(a);
  wf_fst_free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_compose_is_deterministic),
      cmocka_unit_test(test_minimize_is_deterministic),
      cmocka_unit_test(test_shortest_distance),
      cmocka_unit_test(test_determinize_is_deterministic),
      cmocka_unit_test(test_closures_are_deterministic),
      cmocka_unit_test(test_determinize_fails_with_one_message),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
