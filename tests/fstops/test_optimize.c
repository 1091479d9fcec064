/* test_optimize.c - shortest distance, epsilon removal, pushing. Hundreds of small fsts are
 * compared with definitions, larger ones with OpenFst's tools. Determinization is in
 * test_determinize.c, minimization in test_minimize.c. */
#include "testing.h"

static wf_error err;
static const wf_semiring semirings[2] = {WF_TROPICAL, WF_LOG};

/* --- shortest distance ------------------------------------------------------------------- */

static void check_distances(const wf_fst *fst, int rounds, double delta) {
  wf_fst_view view = wf_fst_get_view(fst);
  for (int reverse = 0; reverse < 2; reverse++) {
    wf_shortest_distance_options o;
    wf_shortest_distance_options_init(&o);
    o.reverse = reverse;
    float *got;
    assert_ok(wf_shortest_distance(fst, &o, &got, &err));
    double *want = test_sum_by_length(&view, reverse, rounds);
    for (uint64_t s = 0; s < view.num_states; s++)
      test_assert_close((double)got[s], want[s], delta);
    wf_free(got);
    free(want);
  }
}

static bool reweigh(test_rng *rng, uint32_t state, wf_arc *arc) {
  arc->weight += (float)(arc->nextstate * 37 % 16) -
                 (float)(state * 37 % 16); /* cycles keep their cost, but arcs become negative */
  return true;
}
static bool make_light(test_rng *rng, uint32_t state, wf_arc *arc) {
  arc->weight += 2; /* with few arcs at each state, sums over loops then converge */
  return true;
}

static void test_distances(void **unused) {
  test_rng rng = {1};
  for (int i = 0; i < 300; i++) {
    uint32_t n = 2 + test_below(&rng, 9);
    test_fst_shape shape = {.num_states = n,
                            .num_arcs = test_below(&rng, 4 * n),
                            .num_ilabels = 2,
                            .num_olabels = 2,
                            .epsilon_share = 0.2f,
                            .final_share = 0.3f,
                            .max_weight = 4,
                            .acyclic = i % 2 != 0,
                            .semiring = semirings[i / 2 % 2]};
    wf_fst *fst = test_random_fst(&rng, &shape);
    bool cyclic_log = !shape.acyclic && shape.semiring == WF_LOG;
    if (cyclic_log) fst = test_changed_fst(fst, &rng, make_light);
    check_distances(fst, cyclic_log ? 3000 : (int)n, cyclic_log ? 1e-3 : 1e-5);
    if (!cyclic_log) {
      fst = test_changed_fst(fst, &rng, reweigh);
      check_distances(fst, (int)n, 1e-5);
    }
    wf_fst_free(fst);
  }
}

static void check_least_to_end(const wf_fst *fst, int rounds) {
  wf_fst_view view = wf_fst_get_view(fst);
  wf_shortest_distance_options o;
  float *got;
  wf_shortest_distance_options_init(&o);
  o.reverse = true;
  o.delta = 0.3f;
  assert_ok(wf_shortest_distance(fst, &o, &got, &err));
  double *want = test_sum_by_length(&view, true, rounds);
  for (uint64_t s = 0; s < view.num_states; s++) assert_true((double)got[s] == want[s]);
  wf_free(got);
  free(want);
}

/* A ring whose arcs lead to lower state numbers, with arcs across it. So each sweep over the states
 * finds the distance to the end of one more state. */
static void test_distances_against_numbering(void **unused) {
  test_rng rng = {11};
  for (int i = 0; i < 40; i++) {
    wf_builder *builder;
    wf_fst *fst;
    const uint32_t n = 70;
    assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
    assert_ok(wf_builder_add_states(builder, n, NULL, &err));
    assert_ok(wf_builder_set_start(builder, n - 1, &err));
    assert_ok(wf_builder_set_final(builder, 0, 1, &err));
    for (uint32_t s = 0; s < n; s++) {
      assert_ok(wf_builder_add_arc(builder, s,
                                   (wf_arc){.nextstate = s > 0 ? s - 1 : n - 1,
                                            .weight = (float)test_below(&rng, 8) / 8,
                                            .ilabel = 1,
                                            .olabel = 1},
                                   &err));
      if (i % 4 != 0 && test_below(&rng, 3) == 0)
        assert_ok(wf_builder_add_arc(builder, s,
                                     (wf_arc){.nextstate = test_below(&rng, n),
                                              .weight = (float)test_below(&rng, 80) / 8,
                                              .ilabel = 1},
                                     &err));
    }
    assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
    wf_builder_free(builder);
    check_distances(fst, (int)n, 1e-4);
    fst = test_changed_fst(fst, &rng, reweigh);
    check_distances(fst, (int)n, 1e-4);
    wf_fst_free(fst);
  }
}

/* A ring like that, whose last states have two arcs each, in any order. Costs are multiples of 1/8,
 * so sums are exact, and gains below delta still count. */
static void test_gains_below_delta(void **unused) {
  test_rng rng = {12};
  for (int i = 0; i < 20; i++) {
    wf_builder *builder;
    wf_fst *fst;
    const uint32_t n = 100;
    assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
    assert_ok(wf_builder_add_states(builder, n, NULL, &err));
    assert_ok(wf_builder_set_start(builder, n - 1, &err));
    assert_ok(wf_builder_set_final(builder, 0, 1, &err));
    for (uint32_t s = 0; s < n; s++)
      for (int arc = 0; arc <= (s > 60); arc++)
        assert_ok(wf_builder_add_arc(builder, s,
                                     (wf_arc){.nextstate = s > 0 ? s - 1 : n - 1,
                                              .weight = (float)test_below(&rng, 3) / 8,
                                              .ilabel = 1,
                                              .olabel = 1},
                                     &err));
    assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
    wf_builder_free(builder);
    fst = test_changed_fst(fst, &rng, reweigh);
    check_least_to_end(fst, (int)n);
    wf_fst_free(fst);
  }
}

static void expect_status(wf_semiring semiring, const char *text, wf_status want) {
  wf_fst *fst = test_fst_of(semiring, text);
  wf_shortest_distance_options o;
  wf_shortest_distance_options_init(&o);
  for (int reverse = 0; reverse < 2; reverse++) {
    float *distance = NULL;
    o.reverse = reverse;
    wf_status got = wf_shortest_distance(fst, &o, &distance, &err);
    if (got != want)
      fail_msg("%s%s: status %d, not %d", text, reverse ? ", reversed" : "", got, want);
    assert_true((distance == NULL) == (want != WF_OK));
    wf_free(distance);
  }
  wf_fst_free(fst);
}

/* A large graph whose sums diverge or converge (growth 2 e^-cost for each arc). Either is found
 * quickly. */
static void check_large_cycle(float cost, wf_status want) {
  test_rng rng = {9};
  wf_builder *builder;
  wf_fst *fst;
  float *distance = NULL;
  const uint32_t n = 5000;
  assert_ok(wf_builder_create(WF_LOG, &builder, &err));
  assert_ok(wf_builder_add_states(builder, n, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  for (uint32_t s = 0; s < n; s++)
    for (int k = 0; k < 2; k++)
      assert_ok(wf_builder_add_arc(builder, s,
                                   (wf_arc){.nextstate = k == 0 ? (s + 1) % n : test_below(&rng, n),
                                            .weight = cost,
                                            .ilabel = 1,
                                            .olabel = 1},
                                   &err));
  assert_ok(wf_builder_set_final(builder, n - 1, 0, &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  assert_int_equal(wf_shortest_distance(fst, NULL, &distance, &err), want);
  if (want == WF_OK) { /* all mass that leaves a state arrives: the sum over states is 1 / (1 - 2
                          e^-cost) */
    double sum = 0;
    for (uint32_t s = 0; s < n; s++) sum += exp(-(double)distance[s]);
    assert_true(fabs(sum * (1 - 2 * exp(-(double)cost)) - 1) < 1e-3);
  }
  wf_free(distance);
  wf_fst_free(fst);
  wf_builder_free(builder);
}

static void test_divergent_cycles(void **unused) {
  check_large_cycle(0.5f, WF_ERR_NEGATIVE_CYCLE);
  check_large_cycle(0.69f, WF_ERR_NEGATIVE_CYCLE);
  check_large_cycle(0.7f, WF_OK);
  check_large_cycle(1, WF_OK);
  expect_status(WF_TROPICAL, "0 1 1 1 1;1 2 1 1 -2;2 1 1 1 1;2", WF_ERR_NEGATIVE_CYCLE);
  expect_status(WF_TROPICAL, "0 0 1 1 -0.5;0", WF_ERR_NEGATIVE_CYCLE);
  expect_status(WF_TROPICAL, "0 1 1 1 1;1 2 1 1 -2;2 1 1 1 2;2", WF_OK);
  expect_status(WF_TROPICAL, "0 0 1 1 1;0;1 1 1 1 -1", WF_OK); /* not reached */
  expect_status(WF_LOG, "0 0 1 1 0;0", WF_ERR_NEGATIVE_CYCLE);
  expect_status(WF_LOG, "0 1 1 1 0.5;1 0 1 1 -0.75;1", WF_ERR_NEGATIVE_CYCLE);
  expect_status(WF_LOG, "0 1 1 1 0.4;1 0 1 1 0.4;0 0 1 1 0.5;1", WF_ERR_NEGATIVE_CYCLE);
  expect_status(WF_LOG, "0 0 1 1 0.001;0", WF_OK);
  expect_status(WF_LOG, "0 1 1 1 0.001;1 0 1 1 0.001;0", WF_OK);
  wf_fst *empty;
  wf_builder *builder;
  float *distance;
  assert_ok(wf_builder_create(WF_LOG, &builder, &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &empty, &err));
  assert_ok(wf_shortest_distance(empty, NULL, &distance, &err));
  wf_free(distance);
  wf_builder_free(builder);
  wf_fst_free(empty);
}

/* --- epsilon removal --------------------------------------------------------------------- */

static bool few_labels(test_rng *rng, uint32_t state, wf_arc *arc) {
  if (arc->olabel > 1) arc->olabel = 1;
  if (arc->ilabel == 0 && arc->olabel == 0)
    arc->weight += 1.5f; /* sums over epsilon cycles converge */
  return true;
}

/* Also arcs of infinite cost, epsilons or not. */
static bool few_labels_some_infinite(test_rng *rng, uint32_t state, wf_arc *arc) {
  if (test_below(rng, 4) == 0) arc->weight = INFINITY;
  return few_labels(rng, state, arc);
}

static void test_epsilon_removal(void **unused) {
  test_rng rng = {4};
  for (int i = 0; i < 300; i++) {
    test_fst_shape shape = {.num_states = 2 + test_below(&rng, 6),
                            .num_arcs = 2 + test_below(&rng, 12),
                            .num_ilabels = 2,
                            .num_olabels = 2,
                            .epsilon_share = 0.6f,
                            .final_share = 0.3f,
                            .max_weight = 3,
                            .acyclic = i / 2 % 2 == 0,
                            .semiring = semirings[i % 2]};
    wf_fst *fst = test_changed_fst(test_random_fst(&rng, &shape), &rng,
                                   i % 5 == 0 ? few_labels_some_infinite : few_labels),
           *result;
    wf_rmepsilon_options o;
    wf_rmepsilon_options_init(&o);
    o.connect = i % 3 != 0;
    wf_status status = wf_rmepsilon(fst, &o, &result, &err);
    if (status == WF_ERR_NEGATIVE_CYCLE && shape.semiring == WF_LOG &&
        !shape.acyclic) { /* too many light cycles through one state */
      wf_fst_free(fst);
      continue;
    }
    if (status != WF_OK) fail_msg("%s", err.message);
    bool slow = shape.semiring == WF_LOG && !shape.acyclic;
    test_assert_same_strings(fst, result, false, slow ? 400 : 10, slow ? 5e-3 : 1e-4);
    assert_true(wf_fst_properties(result) & WF_PROP_NO_EPSILONS);
    if (o.connect && wf_fst_get_view(result).num_states > 0) {
      assert_true(wf_fst_properties(result) & WF_PROP_ACCESSIBLE);
      assert_true(wf_fst_properties(result) & WF_PROP_COACCESSIBLE);
    }
    if (!o.connect)
      assert_int_equal(wf_fst_get_view(result).num_states, wf_fst_get_view(fst).num_states);
    wf_fst_free(result);
    wf_fst_free(fst);
  }
  wf_fst *bad = test_fst_of(WF_TROPICAL, "0 1 0 0 -1;1 0 0 0 0;1"), *result = NULL;
  assert_int_equal(wf_rmepsilon(bad, NULL, &result, &err), WF_ERR_NEGATIVE_CYCLE);
  assert_null(result);
  wf_fst_free(bad);
}

/* --- pushing ----------------------------------------------------------------------------- */

/* Longest common prefix of the outputs of all paths from a state. -1: no path. */
static int common_prefix(const wf_fst *fst, uint32_t state) {
  wf_fst_view view = wf_fst_get_view(fst);
  wf_builder *builder;
  wf_fst *part;
  assert_ok(wf_builder_create(view.semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, state, &err));
  for (uint32_t s = 0; s < view.num_states; s++) {
    assert_ok(wf_builder_set_final(builder, s, view.final_cost[s], &err));
    for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++) {
      wf_arc arc = view.arcs[i];
      arc.ilabel = 0;
      assert_ok(wf_builder_add_arc(builder, s, arc, &err));
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &part, &err));
  wf_builder_free(builder);
  test_relation outputs = test_enumerate(part, 40, 1000000);
  wf_fst_free(part);
  int common = -1;
  for (size_t i = 0; i < outputs.size;
       i++) { /* labels are single digits, so "3 1 " is compared two characters at a time */
    const char *text = strchr(outputs.pairs[i].key, ':') + 2,
               *first = strchr(outputs.pairs[0].key, ':') + 2;
    int size = (int)strlen(text) / 2, size_first = (int)strlen(first) / 2, same = 0;
    while (same < size && same < size_first && text[2 * same] == first[2 * same]) same++;
    if (common < 0 || same < common) common = same;
  }
  test_relation_free(&outputs);
  return common;
}

static void check_pushed_costs(const wf_fst *fst, bool to_final, uint64_t num_states) {
  wf_fst_view view = wf_fst_get_view(fst);
  for (uint64_t s = 0; s < num_states; s++) {
    if ((int64_t)s == view.start) continue;
    double sum = to_final ? INFINITY : (double)view.final_cost[s];
    double *reach = test_sum_by_length(&view, !to_final, 30);
    if (reach[s] != INFINITY) {
      sum = reach[s];
      test_assert_close(sum, 0, 1e-3);
    }
    free(reach);
  }
}

static void test_pushing(void **unused) {
  test_rng rng = {5};
  for (int i = 0; i < 400; i++) {
    test_fst_shape shape = {.num_states = 2 + test_below(&rng, 6),
                            .num_arcs = 2 + test_below(&rng, 10),
                            .num_ilabels = 2,
                            .num_olabels = i % 3 == 0 ? 1 : 2,
                            .epsilon_share = 0.3f,
                            .final_share = 0.2f,
                            .max_weight = 3,
                            .acyclic = true,
                            .semiring = semirings[i % 2]};
    wf_fst *raw = test_random_fst(&rng, &shape), *fst, *result;
    assert_ok(wf_connect(raw, &fst, &err));
    wf_fst_free(raw);
    wf_push_options o;
    wf_push_options_init(&o);
    o.push_labels = i / 2 % 2;
    o.to_final = i / 4 % 2;
    o.push_weights = i / 8 % 4 != 0;
    o.remove_total_weight = i / 32 % 4 == 0;
    if (o.remove_total_weight && !o.push_weights) {
      assert_int_equal(wf_push(fst, &o, &result, &err), WF_ERR_ARGUMENT);
      o.remove_total_weight = false;
    }
    assert_ok(wf_push(fst, &o, &result, &err));
    test_relation want = test_enumerate(fst, 30, 1000000);
    double total = INFINITY;
    for (size_t k = 0; k < want.size; k++)
      total = test_plus(shape.semiring, total, want.pairs[k].cost);
    for (size_t k = 0; k < want.size && o.remove_total_weight; k++) want.pairs[k].cost -= total;
    test_assert_relation(result, &want, 100, 1e-3);
    test_relation_free(&want);
    uint64_t n = wf_fst_get_view(fst).num_states;
    if (o.push_weights && !(o.push_labels && o.to_final))
      check_pushed_costs(result, o.to_final,
                         n); /* labels that are pushed to the end split states */
    wf_fst_view view = wf_fst_get_view(result);
    for (uint64_t k = 0; o.push_labels && !o.to_final && k < view.num_arcs;
         k++) /* an output of epsilon is right only where no output is certain yet */
      if (view.arcs[k].olabel == 0) assert_true(common_prefix(result, view.arcs[k].nextstate) <= 0);
    wf_fst_free(result);
    wf_fst_free(fst);
  }
}

static void test_push_labels_on_cycles(void **unused) {
  wf_push_options o;
  wf_push_options_init(&o);
  o.push_labels = true;
  /* the cycle writes 5 6 each time; both continuations after it begin with 5 */
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 3 1;1 2 1 5 0;2 1 2 6 0.5;2 3 1 7 0.25;3"), *result;
  assert_ok(wf_push(fst, &o, &result, &err));
  test_relation want = test_enumerate(fst, 9, 1000), got = test_enumerate(result, 40, 100000);
  for (size_t i = 0; i < want.size; i++) { /* longer paths, so that the result shows more rounds */
    bool found = false;
    for (size_t j = 0; j < got.size; j++)
      found = found || (strcmp(want.pairs[i].key, got.pairs[j].key) == 0 &&
                        fabs(want.pairs[i].cost - got.pairs[j].cost) < 1e-5);
    assert_true(found);
  }
  wf_fst_view view = wf_fst_get_view(result);
  for (uint64_t i = 0; i < view.num_arcs; i++) assert_int_not_equal(view.arcs[i].ilabel, 0);
  test_relation_free(&want);
  test_relation_free(&got);
  wf_fst_free(result);
  wf_fst_free(fst);
}

/* --- against OpenFst's tools ------------------------------------------------------------- */

static void test_openfst_rmepsilon_and_push(void **unused) {
  test_rng rng = {8};
  for (int i = 0; i < 24; i++) {
    test_fst_shape shape = {.num_states = 300,
                            .num_arcs = 800,
                            .num_ilabels = 6,
                            .num_olabels = 6,
                            .epsilon_share = 0.4f,
                            .final_share = 0.1f,
                            .max_weight = 5,
                            .acyclic = i % 2 != 0,
                            .semiring = i / 2 % 2 != 0 && i % 2 != 0 ? WF_LOG : WF_TROPICAL};
    wf_fst *fst = test_random_fst(&rng, &shape), *result, *pushed, *trimmed;
    assert_ok(wf_rmepsilon(fst, NULL, &result, &err));
    const char *in = test_save_fst(fst, "in.fst"), *ours = test_save_fst(result, "ours.fst"),
               *theirs = test_temp_path("theirs.fst");
    test_shell("fstrmepsilon %s %s", in, theirs);
    test_assert_equivalent_to_file(result, theirs);
    assert_int_equal(test_states_of(ours), test_states_of(theirs));
    wf_push_options o;
    wf_push_options_init(&o);
    o.to_final = i / 4 % 2;
    assert_ok(wf_connect(fst, &trimmed, &err));
    assert_ok(wf_push(trimmed, &o, &pushed, &err));
    in = test_save_fst(trimmed, "trimmed.fst");
    ours = test_save_fst(pushed, "pushed.fst");
    test_shell("fstpush --push_weights --delta=1e-6 --to_final=%s %s %s",
               o.to_final ? "true" : "false", in, theirs);
    test_shell("fstequal --delta=0.01 %s %s", ours, theirs);
    wf_fst_free(pushed);
    wf_fst_free(trimmed);
    wf_fst_free(result);
    wf_fst_free(fst);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_distances),
      cmocka_unit_test(test_distances_against_numbering),
      cmocka_unit_test(test_gains_below_delta),
      cmocka_unit_test(test_divergent_cycles),
      cmocka_unit_test(test_epsilon_removal),
      cmocka_unit_test(test_pushing),
      cmocka_unit_test(test_push_labels_on_cycles),
      cmocka_unit_test(test_openfst_rmepsilon_and_push),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
