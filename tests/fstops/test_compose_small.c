/* test_compose_small.c - compositions that visit a small part of large inputs. The result is the
 * same as without the unvisited part, and the time does not depend on the size of the inputs. */
#include <time.h>

#include "testing.h"

static wf_error err;

/* The fst with `extra` more states that cannot be reached. Their arcs are not sorted. */
static wf_fst *padded(test_rng *rng, const wf_fst *fst, uint32_t extra) {
  wf_fst_view view = wf_fst_get_view(fst);
  wf_builder *builder;
  wf_fst *out;
  uint32_t n = (uint32_t)view.num_states;
  assert_ok(wf_builder_create(view.semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, n + extra, NULL, &err));
  if (view.start >= 0) assert_ok(wf_builder_set_start(builder, (uint32_t)view.start, &err));
  for (uint32_t s = 0; s < n; s++) {
    assert_ok(wf_builder_set_final(builder, s, view.final_cost[s], &err));
    for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++)
      assert_ok(wf_builder_add_arc(builder, s, view.arcs[i], &err));
  }
  for (uint32_t s = n; s < n + extra; s++)
    for (int32_t k = 0; k < 2; k++)
      assert_ok(wf_builder_add_arc(builder, s,
                                   (wf_arc){test_below(rng, n + extra), 1, 3 - k, 3 - k}, &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

static wf_fst *random_input(test_rng *rng, bool sorted, bool by_output) {
  test_fst_shape shape = {.num_states = 1 + test_below(rng, 30),
                          .num_arcs = test_below(rng, 90),
                          .num_ilabels = 4,
                          .num_olabels = 4,
                          .epsilon_share = 0.2f,
                          .final_share = 0.2f,
                          .max_weight = 3};
  wf_fst *fst = test_random_fst(rng, &shape), *out;
  wf_arcsort_options o;
  wf_arcsort_options_init(&o);
  o.sort_type = by_output;
  if (!sorted) return fst;
  assert_ok(wf_arcsort(fst, &o, &out, &err));
  wf_fst_free(fst);
  return out;
}

static void test_same_result(void **unused) {
  test_rng rng = {17};
  size_t arcs = 0;
  for (int i = 0; i < 300; i++) {
    wf_fst *a = random_input(&rng, i % 4 != 3, true), *b = random_input(&rng, i % 8 != 6, false),
           *want, *got;
    wf_fst *big_a = padded(&rng, a, i % 3 == 2 ? 0 : 40000),
           *big_b = padded(&rng, b, i % 3 == 0 ? 0 : 3000);
    wf_arc_origin *want_origins, *got_origins;
    wf_compose_options o;
    wf_compose_options_init(&o);
    o.filter = (int32_t)test_below(&rng, 7);
    o.connect = i % 5 != 0;
    o.order = i % 2;
    assert_ok(test_compose_with_origins(a, b, &o, &want, &want_origins, &err));
    assert_ok(test_compose_with_origins(big_a, big_b, &o, &got, &got_origins, &err));
    wf_fst_view x = wf_fst_get_view(want), y = wf_fst_get_view(got);
    assert_int_equal(x.num_states, y.num_states);
    assert_int_equal(x.num_arcs, y.num_arcs);
    assert_int_equal(x.start, y.start);
    for (uint64_t s = 0; s < x.num_states; s++)
      assert_true(x.arc_off[s + 1] == y.arc_off[s + 1] && x.final_cost[s] == y.final_cost[s]);
    if (x.num_arcs > 0) assert_memory_equal(x.arcs, y.arcs, x.num_arcs * sizeof *x.arcs);
    if (x.num_arcs > 0)
      assert_memory_equal(want_origins, got_origins, x.num_arcs * sizeof *want_origins);
    arcs += x.num_arcs;
    wf_free(want_origins);
    wf_free(got_origins);
    wf_fst *all[] = {a, b, want, got, big_a, big_b};
    for (int k = 0; k < 6; k++) wf_fst_free(all[k]);
  }
  assert_true(arcs > 10000);
}

static void test_limits(void **unused) {
  test_rng rng = {5};
  wf_fst *a = test_fst_of(WF_TROPICAL, "0 1 1 1;1 2 1 1;2 0 1 1;2"),
         *b = test_fst_of(WF_TROPICAL, "0 1 1 1;1 0 1 1;1"), *big = padded(&rng, a, 50000), *out;
  wf_compose_options o;
  wf_compose_options_init(&o);
  o.max_states = 5;
  assert_int_equal(wf_compose(big, b, &o, &out, &err), WF_ERR_LIMIT);
  assert_non_null(strstr(err.message, "max_states"));
  o.max_states = 6;
  assert_ok(wf_compose(big, b, &o, &out, &err));
  wf_fst *all[] = {a, b, big, out};
  for (int k = 0; k < 4; k++) wf_fst_free(all[k]);
}

/* Windows counts a thread's time in steps of 15 ms. */
#if defined(_WIN32)
enum { TEST_CLOCK = CLOCK_MONOTONIC };
#else
enum { TEST_CLOCK = CLOCK_THREAD_CPUTIME_ID };
#endif

static double seconds(const wf_fst *a, const wf_fst *b, bool canonical, bool whole) {
  double best = INFINITY;
  wf_compose_options o;
  wf_compose_options_init(&o);
  o.order = canonical;
  o.phi_label = whole ? 99 : 0; /* failure arcs are looked for in the whole input */
  for (int k = 0; k < 9; k++) {
    struct timespec begin, end;
    wf_fst *out;
    clock_gettime(TEST_CLOCK, &begin);
    assert_ok(wf_compose(a, b, &o, &out, &err));
    clock_gettime(TEST_CLOCK, &end);
    wf_fst_free(out);
    double took =
        (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    if (took < best) best = took;
  }
  return best;
}

/* Both orders read only what they need. */
static void test_time_does_not_depend_on_input_size(void **unused) {
  test_rng rng = {6};
  wf_fst *a = test_fst_of(WF_TROPICAL, "0 1 1 1;1"), *big = padded(&rng, a, 300000);
  double whole = seconds(big, a, false, true);
  for (int canonical = 0; canonical < 2; canonical++) {
    double here = seconds(big, a, canonical, false);
    if (!(here < whole / 5)) fail_msg("%g s; reading the whole input takes %g s", here, whole);
  }
  wf_fst_free(a);
  wf_fst_free(big);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_result),
                                     cmocka_unit_test(test_limits),
                                     cmocka_unit_test(test_time_does_not_depend_on_input_size)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
