/* test_optimize.c - shortest distance, determinization, epsilon removal, pushing: against definitions on hundreds of small fsts, against OpenFst's
 * tools on larger ones. (Minimization: test_minimize.c.) */
#include "testing.h"

static wf_error err;
static const wf_semiring semirings[2] = {WF_TROPICAL, WF_LOG};

/* Every arc and final cost passed through `change`, which may drop an arc by returning false. */
typedef bool change_fn(test_rng *rng, uint32_t state, wf_arc *arc);
static wf_fst *changed(wf_fst *fst, test_rng *rng, change_fn *change) {
  wf_fst_view view = wf_fst_get_view(fst);
  wf_builder *builder;
  wf_fst *out;
  assert_ok(wf_builder_create(view.semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, (uint32_t)view.start, &err));
  for (uint32_t s = 0; s < view.num_states; s++) {
    assert_ok(wf_builder_set_final(builder, s, view.final_cost[s], &err));
    for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++) {
      wf_arc arc = view.arcs[i];
      if (change(rng, s, &arc)) assert_ok(wf_builder_add_arc(builder, s, arc, &err));
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  wf_fst_free(fst);
  return out;
}

static double plus(wf_semiring semiring, double a, double b) {
  if (a == INFINITY || b == INFINITY || semiring == WF_TROPICAL) return a < b ? a : b;
  double low = a < b ? a : b;
  return low - log1p(exp(-fabs(a - b)));
}

static void assert_close(double a, double b, double delta) {
  if (a == b) return;
  if (!(fabs(a - b) <= delta)) fail_msg("%.9g is not %.9g", a, b);
}

/* --- shortest distance -------------------------------------------------------------------------------------------- */

/* Sums over paths of 0, 1, 2 ... `rounds` arcs: the definition. */
static double *sum_by_length(const wf_fst_view *view, bool reverse, int rounds) {
  uint64_t n = view->num_states;
  double *sum = malloc(n * sizeof *sum), *now = malloc(n * sizeof *now), *next = malloc(n * sizeof *next);
  for (uint64_t s = 0; s < n; s++) sum[s] = now[s] = reverse ? (double)view->final_cost[s] : (int64_t)s == view->start ? 0 : INFINITY;
  for (int round = 0; round < rounds; round++) {
    for (uint64_t s = 0; s < n; s++) next[s] = INFINITY;
    for (uint64_t s = 0; s < n; s++) {
      for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
        uint64_t from = reverse ? view->arcs[i].nextstate : s, to = reverse ? s : view->arcs[i].nextstate;
        next[to] = plus(view->semiring, next[to], now[from] + (double)view->arcs[i].weight);
      }
    }
    for (uint64_t s = 0; s < n; s++) {
      sum[s] = plus(view->semiring, sum[s], next[s]);
      now[s] = next[s];
    }
  }
  free(now);
  free(next);
  return sum;
}

static void check_distances(const wf_fst *fst, int rounds, double delta) {
  wf_fst_view view = wf_fst_get_view(fst);
  for (int reverse = 0; reverse < 2; reverse++) {
    wf_shortest_distance_options o;
    wf_shortest_distance_options_init(&o);
    o.reverse = reverse;
    float *got;
    assert_ok(wf_shortest_distance(fst, &o, &got, &err));
    double *want = sum_by_length(&view, reverse, rounds);
    for (uint64_t s = 0; s < view.num_states; s++) assert_close((double)got[s], want[s], delta);
    wf_free(got);
    free(want);
  }
}

static bool reweigh(test_rng *rng, uint32_t state, wf_arc *arc) {
  arc->weight += (float)(arc->nextstate * 37 % 16) - (float)(state * 37 % 16); /* cycles keep their cost, arcs go below 0 */
  return true;
}
static bool make_light(test_rng *rng, uint32_t state, wf_arc *arc) {
  arc->weight += 2; /* with at most a few arcs a state, loops then lose mass */
  return true;
}

static void test_distances(void **unused) {
  test_rng rng = {1};
  for (int i = 0; i < 300; i++) {
    uint32_t n = 2 + test_below(&rng, 9);
    test_fst_shape shape = {.num_states = n, .num_arcs = test_below(&rng, 4 * n), .num_ilabels = 2, .num_olabels = 2, .epsilon_share = 0.2f,
                            .final_share = 0.3f, .max_weight = 4, .acyclic = i % 2 != 0, .semiring = semirings[i / 2 % 2]};
    wf_fst *fst = test_random_fst(&rng, &shape);
    bool cyclic_log = !shape.acyclic && shape.semiring == WF_LOG;
    if (cyclic_log) fst = changed(fst, &rng, make_light);
    check_distances(fst, cyclic_log ? 3000 : (int)n, cyclic_log ? 1e-3 : 1e-5);
    if (!cyclic_log) {
      fst = changed(fst, &rng, reweigh);
      check_distances(fst, (int)n, 1e-5);
    }
    wf_fst_free(fst);
  }
}

/* A ring that leads downwards through the numbers, so that distances to the end come a state at a time, with arcs across it. */
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
      assert_ok(wf_builder_add_arc(builder, s, (wf_arc){.nextstate = s > 0 ? s - 1 : n - 1, .weight = (float)test_below(&rng, 8) / 8, .ilabel = 1, .olabel = 1}, &err));
      if (i % 4 != 0 && test_below(&rng, 3) == 0)
        assert_ok(wf_builder_add_arc(builder, s, (wf_arc){.nextstate = test_below(&rng, n), .weight = (float)test_below(&rng, 80) / 8, .ilabel = 1}, &err));
    }
    assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
    wf_builder_free(builder);
    check_distances(fst, (int)n, 1e-4);
    fst = changed(fst, &rng, reweigh);
    check_distances(fst, (int)n, 1e-4);
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
    if (got != want) fail_msg("%s%s: status %d, not %d", text, reverse ? ", reversed" : "", got, want);
    assert_true((distance == NULL) == (want != WF_OK));
    wf_free(distance);
  }
  wf_fst_free(fst);
}

/* A large graph whose sums diverge (growth 2 e^-cost an arc) or converge, each told in a moment. */
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
      assert_ok(wf_builder_add_arc(builder, s, (wf_arc){.nextstate = k == 0 ? (s + 1) % n : test_below(&rng, n), .weight = cost, .ilabel = 1, .olabel = 1}, &err));
  assert_ok(wf_builder_set_final(builder, n - 1, 0, &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  assert_int_equal(wf_shortest_distance(fst, NULL, &distance, &err), want);
  if (want == WF_OK) { /* all mass that leaves a state arrives: the sum over states is 1 / (1 - 2 e^-cost) */
    double sum = 0;
    for (uint32_t s = 0; s < n; s++) sum += exp(-(double)distance[s]);
    assert_true(fabs(sum * (1 - 2 * exp(-(double)cost)) - 1) < 1e-3);
  }
  wf_free(distance);
  wf_fst_free(fst);
  wf_builder_free(builder);
}

static void test_bad_cycles(void **unused) {
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

/* --- determinization ---------------------------------------------------------------------------------------------- */

/* Pairs are sorted by key "input : output", so one input's outputs are neighbours unless one input is a prefix of another; hence the search. */
static size_t input_size(const char *key) { return (size_t)(strchr(key, ':') - key); }
static bool same_input(const char *a, const char *b) { return input_size(a) == input_size(b) && memcmp(a, b, input_size(a)) == 0; }

static bool functional(const test_relation *relation) {
  for (size_t i = 0; i < relation->size; i++)
    for (size_t j = 0; j < i; j++)
      if (same_input(relation->pairs[i].key, relation->pairs[j].key)) return false;
  return true;
}

/* Every input's best output only, as far as it is unique; `*tied` if not. */
static void keep_best(test_relation *relation, bool *tied) {
  *tied = false;
  for (size_t i = 0; i < relation->size; i++) {
    for (size_t j = 0; j < relation->size; j++) {
      test_pair *a = &relation->pairs[i], *b = &relation->pairs[j];
      if (i == j || a->key[0] == '!' || b->key[0] == '!' || !same_input(a->key, b->key)) continue;
      if (fabs(a->cost - b->cost) < 1e-6) *tied = true;
      if (a->cost > b->cost) {
        a->key[0] = '!';
        break;
      }
    }
  }
  size_t kept = 0;
  for (size_t i = 0; i < relation->size; i++) {
    if (relation->pairs[i].key[0] == '!') free(relation->pairs[i].key);
    else relation->pairs[kept++] = relation->pairs[i];
  }
  relation->size = kept;
}

static void compare_relations(const wf_fst *fst, const test_relation *want, int max_arcs, double delta) {
  test_relation got = test_enumerate(fst, max_arcs, 2000000);
  test_assert_same_relation(&got, want, delta);
  test_relation_free(&got);
}

static bool epsilon_to_nine(test_rng *rng, uint32_t state, wf_arc *arc) {
  if (arc->ilabel == 0) arc->ilabel = 9;
  return true;
}
static bool copy_input(test_rng *rng, uint32_t state, wf_arc *arc) {
  arc->olabel = arc->ilabel == 1 ? 1 : 0; /* functional: the output is a function of the input */
  return true;
}

/* What the message calls two outputs of one input must be pairs of the relation. */
static void check_witness(const test_relation *relation) {
  char input[400], output[2][400], keys[2][900];
  if (sscanf(err.message, "not functional: input \"%399[^\"]", input) != 1) input[0] = '\0';
  const char *at = strstr(err.message, "has outputs \"");
  if (at == NULL) fail_msg("no witness: %s", err.message);
  at += strlen("has outputs \"");
  for (int k = 0; k < 2; k++) {
    size_t size = strcspn(at, "\"");
    snprintf(output[k], sizeof output[k], "%.*s", (int)size, at);
    at += size + strlen("\" and \"");
    snprintf(keys[k], sizeof keys[k], "%s%s: %s%s", input, input[0] != '\0' ? " " : "", output[k], output[k][0] != '\0' ? " " : "");
  }
  assert_string_not_equal(keys[0], keys[1]);
  for (int k = 0; k < 2; k++) {
    bool found = false;
    for (size_t i = 0; i < relation->size; i++) found = found || strcmp(relation->pairs[i].key, keys[k]) == 0;
    if (!found) fail_msg("'%s' is no pair of the relation: %s", keys[k], err.message);
  }
}

static int g_functional, g_not_functional, g_best;

static void determinize_one(test_rng *rng, int i) {
  test_fst_shape shape = {.num_states = 3 + test_below(rng, 5), .num_arcs = 3 + test_below(rng, 11), .num_ilabels = 2, .num_olabels = 2, .epsilon_share = 0.3f,
                          .final_share = 0.2f, .max_weight = 3, .acyclic = true, .semiring = semirings[i % 2]};
  wf_fst *fst = test_random_fst(rng, &shape), *result;
  wf_determinize_options o;
  wf_determinize_options_init(&o);
  o.rmepsilon = i / 2 % 2 == 0;
  if (!o.rmepsilon) fst = changed(fst, rng, epsilon_to_nine);
  if (i / 4 % 2 == 0) fst = changed(fst, rng, copy_input);
  test_relation want = test_enumerate(fst, 20, 200000);
  wf_status status = wf_determinize(fst, &o, &result, &err);
  if (functional(&want)) {
    if (status != WF_OK) fail_msg("functional, yet: %s", err.message);
    compare_relations(result, &want, 60, 1e-4);
    assert_true(wf_fst_properties(result) & WF_PROP_IDETERMINISTIC);
    assert_true(want.size == 0 || test_is_trimmed(result));
    assert_true(wf_fst_properties(result) & WF_PROP_ILABEL_SORTED);
    wf_fst_free(result);
    g_functional++;
  } else {
    assert_int_equal(status, WF_ERR_NOT_DETERMINIZABLE);
    check_witness(&want);
    g_not_functional++;
  }
  bool tied;
  keep_best(&want, &tied);
  if (shape.semiring == WF_TROPICAL && !tied) {
    o.allow_nonfunctional = true;
    assert_ok(wf_determinize(fst, &o, &result, &err));
    compare_relations(result, &want, 60, 1e-4);
    wf_fst_free(result);
    g_best++;
  }
  test_relation_free(&want);
  wf_fst_free(fst);
}

static void test_determinize_small(void **unused) {
  test_rng rng = {2};
  for (int i = 0; i < 1600; i++) determinize_one(&rng, i);
  assert_true(g_functional > 1000 && g_not_functional > 250 && g_best > 500);
}

/* Cycles of epsilon input: costs of strings up to 3 labels by summing over paths of up to `rounds` arcs. */
static double string_cost(const wf_fst_view *view, const int32_t *ilabels, const int32_t *olabels, int size, bool input_only, int rounds) {
  uint64_t n = view->num_states;
  double *at = malloc((size_t)(size + 1) * n * sizeof *at), total = INFINITY;
  double *sum = malloc(n * sizeof *sum), *now = malloc(n * sizeof *now), *next = malloc(n * sizeof *next);
  for (uint64_t s = 0; s < n; s++) at[s] = (int64_t)s == view->start ? 0 : INFINITY;
  for (int k = 0; k <= size; k++) {
    for (uint64_t s = 0; s < n; s++) sum[s] = now[s] = at[(uint64_t)k * n + s];
    for (int round = 0; round < rounds; round++) {
      for (uint64_t s = 0; s < n; s++) next[s] = INFINITY;
      for (uint64_t s = 0; s < n; s++)
        for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
          if (view->arcs[i].ilabel == 0 && (input_only || view->arcs[i].olabel == 0))
            next[view->arcs[i].nextstate] = plus(view->semiring, next[view->arcs[i].nextstate], now[s] + (double)view->arcs[i].weight);
      for (uint64_t s = 0; s < n; s++) sum[s] = plus(view->semiring, sum[s], next[s]), now[s] = next[s];
    }
    if (k == size) break;
    for (uint64_t s = 0; s < n; s++) at[(uint64_t)(k + 1) * n + s] = INFINITY;
    for (uint64_t s = 0; s < n; s++) {
      for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
        const wf_arc *arc = &view->arcs[i];
        double *to = &at[(uint64_t)(k + 1) * n + arc->nextstate];
        if (arc->ilabel == ilabels[k] && (input_only || arc->olabel == olabels[k])) *to = plus(view->semiring, *to, sum[s] + (double)arc->weight);
      }
    }
  }
  for (uint64_t s = 0; s < n; s++) total = plus(view->semiring, total, sum[s] + (double)view->final_cost[s]);
  free(at);
  free(sum);
  free(now);
  free(next);
  return total;
}

/* Same costs for all strings of label pairs 0:1, 1:0, 1:1, 2:0, 2:1 (or, input_only, labels 1 and 2) up to 3 of them. */
static void compare_strings(const wf_fst *a, const wf_fst *b, bool input_only, int rounds, double delta) {
  static const int32_t pairs[5][2] = {{1, 0}, {2, 1}, {1, 1}, {2, 0}, {0, 1}};
  wf_fst_view x = wf_fst_get_view(a), y = wf_fst_get_view(b);
  int base = input_only ? 2 : 5;
  for (int size = 0; size <= 3; size++) {
    int count = 1;
    for (int k = 0; k < size; k++) count *= base;
    for (int code = 0; code < count; code++) {
      int32_t il[3], ol[3];
      for (int k = 0, rest = code; k < size; k++, rest /= base) il[k] = pairs[rest % base][0], ol[k] = pairs[rest % base][1];
      assert_close(string_cost(&x, il, ol, size, input_only, rounds), string_cost(&y, il, ol, size, input_only, rounds), delta);
    }
  }
}

static bool label_cost(test_rng *rng, uint32_t state, wf_arc *arc) {
  arc->olabel = arc->ilabel;
  /* the cost depends on the label alone, so all paths of a string cost the same and the cyclic fst can be determinized */
  if (arc->ilabel != 0) arc->weight = (float)arc->ilabel * 0.5f;
  else if (arc->nextstate <= state && arc->weight < 2) arc->weight += 2; /* epsilon cycles lose mass */
  return true;
}
static bool epsilons_free(test_rng *rng, uint32_t state, wf_arc *arc) {
  label_cost(rng, state, arc);
  if (arc->ilabel == 0) arc->weight = 0;
  return true;
}

static void test_determinize_cycles(void **unused) {
  test_rng rng = {3};
  int done = 0;
  for (int i = 0; i < 200; i++) {
    test_fst_shape shape = {.num_states = 3 + test_below(&rng, 4), .num_arcs = 4 + test_below(&rng, 8), .num_ilabels = 2, .num_olabels = 2, .epsilon_share = 0.3f,
                            .final_share = 0.4f, .max_weight = 3, .acceptor = true, .semiring = semirings[i % 2]};
    wf_fst *fst = changed(test_random_fst(&rng, &shape), &rng, shape.semiring == WF_TROPICAL ? epsilons_free : label_cost), *result;
    wf_determinize_options o;
    wf_determinize_options_init(&o);
    o.rmepsilon = true;
    o.max_states = 3000;
    wf_status status = wf_determinize(fst, &o, &result, &err);
    if (shape.semiring == WF_TROPICAL && status != WF_OK) fail_msg("%s", err.message);
    if (status == WF_OK) {
      done++;
      compare_strings(fst, result, true, shape.semiring == WF_LOG ? 300 : 8, 2e-3);
      assert_true(wf_fst_properties(result) & WF_PROP_IDETERMINISTIC);
      assert_true(wf_fst_properties(result) & WF_PROP_NO_IEPSILONS);
      wf_fst_free(result);
    } else {
      assert_int_equal(status, WF_ERR_NOT_DETERMINIZABLE); /* log: path sums of a string need not have twins */
    }
    wf_fst_free(fst);
  }
  assert_true(done > 120);
}

static void refuse(const char *text, wf_determinize_options *o, const char *part) {
  wf_fst *fst = test_fst_of(WF_TROPICAL, text), *result = NULL;
  wf_status status = wf_determinize(fst, o, &result, &err);
  assert_int_equal(status, WF_ERR_NOT_DETERMINIZABLE);
  assert_null(result);
  if (strstr(err.message, part) == NULL) fail_msg("no '%s' in: %s", part, err.message);
  wf_fst_free(fst);
}

static void test_determinize_refusals(void **unused) {
  wf_determinize_options o;
  wf_determinize_options_init(&o);
  o.max_states = 50;
  refuse("0 1 1 1 0;0 2 1 1 0;1 1 2 2 1;2 2 2 2 2;1 3 3 3;2 3 4 4;3", &o, "1 2 2 2"); /* not twins: the costs drift apart */
  o.max_states = 0;
  refuse("0 1 1 0;0 2 1 0;1 1 2 0;2 2 2 5;1 3 3 0;2 3 4 0;3", &o, "10000"); /* the outputs drift apart */
  refuse("0 1 1 7;0 2 1 7;1 3 2 5;2 3 2 6;3 4 3 3;4", &o, "input \"1 2 3\" has outputs \"7 5 3\" and \"7 6 3\"");
  refuse("0 1 1 7;0 2 1 8;1;2", &o, "input \"1\" has outputs \"7\" and \"8\"");
  o.rmepsilon = true;
  refuse("0 1 1 7;1 1 0 8;1", &o, "input \"1\" has outputs");
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 0 0 -1;1 0 0 0 0.5;1"), *result = NULL;
  assert_int_equal(wf_determinize(fst, &o, &result, &err), WF_ERR_NEGATIVE_CYCLE);
  wf_fst_free(fst);
  fst = test_fst_of(WF_LOG, "0 1 0 0 0;1 0 0 0 0;1");
  assert_int_equal(wf_determinize(fst, &o, &result, &err), WF_ERR_NEGATIVE_CYCLE);
  wf_fst_free(fst);
}

static void test_determinize_final_strings(void **unused) {
  wf_determinize_options o;
  wf_determinize_options_init(&o);
  o.subsequential_label = 6;
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 7 1;1 1 2 7 0;1 2 1 8 0;0 3 1 0 1;3 4 4 5 0;2;1;4"), *result;
  assert_ok(wf_determinize(fst, &o, &result, &err));
  wf_fst_free(result);
  wf_fst_free(fst);
  /* output 7 8 only known at the end: spelled on arcs that read the subsequential label */
  fst = test_fst_of(WF_TROPICAL, "0 1 1 7;1 2 2 8;2;0 3 1 0;3 4 2 0;4 5 3 9;5"), result = NULL;
  assert_ok(wf_determinize(fst, &o, &result, &err));
  test_relation got = test_enumerate(result, 10, 100);
  assert_int_equal(got.size, 2);
  assert_string_equal(got.pairs[0].key, "1 2 3 : 9 ");
  assert_string_equal(got.pairs[1].key, "1 2 6 6 : 7 8 ");
  test_relation_free(&got);
  wf_fst_free(result);
  wf_fst_free(fst);
}

/* --- epsilon removal ---------------------------------------------------------------------------------------------- */

static bool few_labels(test_rng *rng, uint32_t state, wf_arc *arc) {
  if (arc->olabel > 1) arc->olabel = 1;
  if (arc->ilabel == 0 && arc->olabel == 0) arc->weight += 1.5f; /* epsilon cycles lose mass */
  return true;
}

/* Arcs that do not count, epsilons or not. */
static bool few_labels_some_infinite(test_rng *rng, uint32_t state, wf_arc *arc) {
  if (test_below(rng, 4) == 0) arc->weight = INFINITY;
  return few_labels(rng, state, arc);
}

static void test_rmepsilon(void **unused) {
  test_rng rng = {4};
  for (int i = 0; i < 300; i++) {
    test_fst_shape shape = {.num_states = 2 + test_below(&rng, 6), .num_arcs = 2 + test_below(&rng, 12), .num_ilabels = 2, .num_olabels = 2, .epsilon_share = 0.6f,
                            .final_share = 0.3f, .max_weight = 3, .acyclic = i / 2 % 2 == 0, .semiring = semirings[i % 2]};
    wf_fst *fst = changed(test_random_fst(&rng, &shape), &rng, i % 5 == 0 ? few_labels_some_infinite : few_labels), *result;
    wf_rmepsilon_options o;
    wf_rmepsilon_options_init(&o);
    o.connect = i % 3 != 0;
    wf_status status = wf_rmepsilon(fst, &o, &result, &err);
    if (status == WF_ERR_NEGATIVE_CYCLE && shape.semiring == WF_LOG && !shape.acyclic) { /* too many light cycles through one state */
      wf_fst_free(fst);
      continue;
    }
    if (status != WF_OK) fail_msg("%s", err.message);
    bool slow = shape.semiring == WF_LOG && !shape.acyclic;
    compare_strings(fst, result, false, slow ? 400 : 10, slow ? 5e-3 : 1e-4);
    assert_true(wf_fst_properties(result) & WF_PROP_NO_EPSILONS);
    if (o.connect && wf_fst_get_view(result).num_states > 0) {
      assert_true(wf_fst_properties(result) & WF_PROP_ACCESSIBLE);
      assert_true(wf_fst_properties(result) & WF_PROP_COACCESSIBLE);
    }
    if (!o.connect) assert_int_equal(wf_fst_get_view(result).num_states, wf_fst_get_view(fst).num_states);
    wf_fst_free(result);
    wf_fst_free(fst);
  }
  wf_fst *bad = test_fst_of(WF_TROPICAL, "0 1 0 0 -1;1 0 0 0 0;1"), *result = NULL;
  assert_int_equal(wf_rmepsilon(bad, NULL, &result, &err), WF_ERR_NEGATIVE_CYCLE);
  assert_null(result);
  wf_fst_free(bad);
}

/* --- pushing ------------------------------------------------------------------------------------------------------ */

/* Longest common prefix (suffix) of the outputs from a state (to a state) over all paths: must be empty after pushing. -1: no path. */
static int common_outputs(const wf_fst *fst, uint32_t state, bool to_final) {
  wf_fst_view view = wf_fst_get_view(fst);
  wf_builder *builder;
  wf_fst *part;
  assert_ok(wf_builder_create(view.semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, to_final ? (uint32_t)view.start : state, &err));
  for (uint32_t s = 0; s < view.num_states; s++) {
    assert_ok(wf_builder_set_final(builder, s, to_final ? (s == state ? 0 : INFINITY) : view.final_cost[s], &err));
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
  for (size_t i = 0; i < outputs.size; i++) { /* labels are single digits, so "3 1 " is compared two characters at a time */
    const char *text = strchr(outputs.pairs[i].key, ':') + 2, *first = strchr(outputs.pairs[0].key, ':') + 2;
    int size = (int)strlen(text) / 2, size_first = (int)strlen(first) / 2, same = 0;
    while (same < size && same < size_first && (to_final ? text[2 * (size - 1 - same)] == first[2 * (size_first - 1 - same)] : text[2 * same] == first[2 * same])) same++;
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
    double *reach = sum_by_length(&view, !to_final, 30);
    if (reach[s] != INFINITY) {
      sum = reach[s];
      assert_close(sum, 0, 1e-3);
    }
    free(reach);
  }
}

static void test_push(void **unused) {
  test_rng rng = {5};
  for (int i = 0; i < 400; i++) {
    test_fst_shape shape = {.num_states = 2 + test_below(&rng, 6), .num_arcs = 2 + test_below(&rng, 10), .num_ilabels = 2, .num_olabels = i % 3 == 0 ? 1 : 2,
                            .epsilon_share = 0.3f, .final_share = 0.2f, .max_weight = 3, .acyclic = true, .semiring = semirings[i % 2]};
    wf_fst *raw = test_random_fst(&rng, &shape), *fst, *result;
    assert_ok(wf_connect(raw, &fst, &err));
    wf_fst_free(raw);
    wf_push_options o;
    wf_push_options_init(&o);
    o.push_labels = i / 2 % 2;
    o.to_final = i / 4 % 2;
    o.push_weights = i / 8 % 4 != 0;
    o.remove_total_weight = i / 32 % 4 == 0;
    assert_ok(wf_push(fst, &o, &result, &err));
    test_relation want = test_enumerate(fst, 30, 1000000);
    double total = INFINITY;
    for (size_t k = 0; k < want.size; k++) total = plus(shape.semiring, total, want.pairs[k].cost);
    for (size_t k = 0; k < want.size && o.push_weights && o.remove_total_weight; k++) want.pairs[k].cost -= total;
    compare_relations(result, &want, 100, 1e-3);
    test_relation_free(&want);
    uint64_t n = wf_fst_get_view(fst).num_states;
    if (o.push_weights) check_pushed_costs(result, o.to_final, n);
    for (uint32_t s = 0; o.push_labels && s < n; s++)
      if ((int64_t)s != wf_fst_get_view(fst).start) assert_true(common_outputs(result, s, o.to_final) <= 0);
    wf_fst_free(result);
    wf_fst_free(fst);
  }
}

static void test_push_labels_round_cycles(void **unused) {
  wf_push_options o;
  wf_push_options_init(&o);
  o.push_labels = true;
  /* the cycle puts out 5 6 each time; both ways on from it begin with 5 */
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 3 1;1 2 1 5 0;2 1 2 6 0.5;2 3 1 7 0.25;3"), *result;
  assert_ok(wf_push(fst, &o, &result, &err));
  test_relation want = test_enumerate(fst, 9, 1000), got = test_enumerate(result, 40, 100000);
  for (size_t i = 0; i < want.size; i++) { /* chains make paths longer, so the result shows more rounds */
    bool found = false;
    for (size_t j = 0; j < got.size; j++) found = found || (strcmp(want.pairs[i].key, got.pairs[j].key) == 0 && fabs(want.pairs[i].cost - got.pairs[j].cost) < 1e-5);
    assert_true(found);
  }
  assert_int_equal(common_outputs(result, 1, false), 0);
  test_relation_free(&want);
  test_relation_free(&got);
  wf_fst_free(result);
  wf_fst_free(fst);
}

/* --- against OpenFst's tools ---------------------------------------------------------------------------------------- */

static const char *saved(const wf_fst *fst, const char *name) {
  const char *path = test_temp_path(name);
  assert_ok(wf_fst_write(fst, path, WF_FORMAT_OPENFST_VECTOR, &err));
  return path;
}

/* By random paths: Debian's packages leave fstrandequivalent out, so this takes ours, which shares no code with what is tested here. */
static void assert_equivalent_to_file(const wf_fst *fst, const char *path) {
  wf_fst *other;
  wf_randequivalent_options o;
  bool equal;
  wf_randequivalent_options_init(&o);
  o.npath = 100;
  o.delta = 0.01f;
  assert_ok(wf_fst_read(path, &other, &err));
  assert_ok(wf_randequivalent(fst, other, &o, &equal, &err));
  if (!equal) fail_msg("%s: %s", path, err.message);
  wf_fst_free(other);
}

static uint64_t states_of(const char *path) {
  wf_fst *fst;
  assert_ok(wf_fst_read(path, &fst, &err));
  uint64_t n = wf_fst_get_view(fst).num_states;
  wf_fst_free(fst);
  return n;
}

static void test_openfst_determinize(void **unused) {
  test_rng rng = {6};
  for (int i = 0; i < 24; i++) {
    test_fst_shape shape = {.num_states = 400, .num_arcs = i % 2 != 0 ? 900 : 700, .num_ilabels = 12, .num_olabels = 12, .epsilon_share = 0,
                            .final_share = 0.1f, .max_weight = 5, .acyclic = i % 2 != 0, .acceptor = true, .semiring = semirings[i / 2 % 2]};
    wf_fst *fst = test_random_fst(&rng, &shape), *result;
    if (!shape.acyclic) fst = changed(fst, &rng, label_cost);
    wf_determinize_options o;
    wf_determinize_options_init(&o);
    if (!shape.acyclic && shape.semiring == WF_LOG) {
      wf_fst_free(fst);
      continue;
    }
    o.max_states = 200000;
    assert_ok(wf_determinize(fst, &o, &result, &err));
    const char *in = saved(fst, "in.fst"), *ours = saved(result, "ours.fst"), *theirs = test_temp_path("theirs.fst");
    test_shell("fstconnect %s | fstdeterminize - %s", in, theirs);
    test_shell("fstequivalent --delta=0.01 %s %s", ours, theirs);
    assert_int_equal(states_of(ours), states_of(theirs));
    wf_fst_free(result);
    wf_fst_free(fst);
  }
}

static void test_openfst_determinize_transducers(void **unused) {
  test_rng rng = {7};
  for (int i = 0; i < 16; i++) {
    test_fst_shape shape = {.num_states = 200, .num_arcs = 500, .num_ilabels = 6, .num_olabels = 6, .epsilon_share = 0, .final_share = 0.1f, .max_weight = 5,
                            .acyclic = true, .semiring = WF_TROPICAL};
    wf_fst *fst = changed(test_random_fst(&rng, &shape), &rng, copy_input), *result;
    wf_determinize_options o;
    wf_determinize_options_init(&o);
    o.subsequential_label = i % 2 * 9;
    assert_ok(wf_determinize(fst, &o, &result, &err));
    const char *in = saved(fst, "in.fst"), *theirs = test_temp_path("theirs.fst");
    test_shell("fstconnect %s | fstdeterminize --subsequential_label=%d - %s", in, o.subsequential_label, theirs);
    assert_equivalent_to_file(result, theirs);
    wf_fst_free(result);
    wf_fst_free(fst);
  }
}

static void test_openfst_rmepsilon_and_push(void **unused) {
  test_rng rng = {8};
  for (int i = 0; i < 24; i++) {
    test_fst_shape shape = {.num_states = 300, .num_arcs = 800, .num_ilabels = 6, .num_olabels = 6, .epsilon_share = 0.4f, .final_share = 0.1f, .max_weight = 5,
                            .acyclic = i % 2 != 0, .semiring = i / 2 % 2 != 0 && i % 2 != 0 ? WF_LOG : WF_TROPICAL};
    wf_fst *fst = test_random_fst(&rng, &shape), *result, *pushed, *trimmed;
    assert_ok(wf_rmepsilon(fst, NULL, &result, &err));
    const char *in = saved(fst, "in.fst"), *ours = saved(result, "ours.fst"), *theirs = test_temp_path("theirs.fst");
    test_shell("fstrmepsilon %s %s", in, theirs);
    assert_equivalent_to_file(result, theirs);
    assert_int_equal(states_of(ours), states_of(theirs));
    wf_push_options o;
    wf_push_options_init(&o);
    o.to_final = i / 4 % 2;
    assert_ok(wf_connect(fst, &trimmed, &err));
    assert_ok(wf_push(trimmed, &o, &pushed, &err));
    in = saved(trimmed, "trimmed.fst");
    ours = saved(pushed, "pushed.fst");
    test_shell("fstpush --push_weights --delta=1e-6 --to_final=%s %s %s", o.to_final ? "true" : "false", in, theirs);
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
      cmocka_unit_test(test_bad_cycles),
      cmocka_unit_test(test_determinize_small),
      cmocka_unit_test(test_determinize_cycles),
      cmocka_unit_test(test_determinize_refusals),
      cmocka_unit_test(test_determinize_final_strings),
      cmocka_unit_test(test_rmepsilon),
      cmocka_unit_test(test_push),
      cmocka_unit_test(test_push_labels_round_cycles),
      cmocka_unit_test(test_openfst_determinize),
      cmocka_unit_test(test_openfst_determinize_transducers),
      cmocka_unit_test(test_openfst_rmepsilon_and_push),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
