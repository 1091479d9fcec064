/* test_more_ops.c - the operations of warpfst_ops.h, compared with path enumeration and with their
 * definitions. tests/cli/test_more_ops.sh compares them with OpenFst's tools. */
#include "testing.h"

#define INIT(name, options)    \
  wf_##name##_options options; \
  wf_##name##_options_init(&options)

static wf_fst *random_fst(test_rng *rng, bool acceptor, bool acyclic, float epsilons) {
  test_fst_shape shape = {.num_states = 1 + test_below(rng, 6),
                          .num_arcs = test_below(rng, 12),
                          .num_ilabels = 1 + (int32_t)test_below(rng, 3),
                          .num_olabels = 1 + (int32_t)test_below(rng, 3),
                          .epsilon_share = epsilons,
                          .final_share = 0.3f,
                          .max_weight = 4,
                          .acceptor = acceptor,
                          .acyclic = acyclic,
                          .semiring = test_below(rng, 2) ? WF_LOG : WF_TROPICAL};
  return test_random_fst(rng, &shape);
}

/* Fails unless both have the same pairs of strings, and frees `got`. */
static void expect_same_paths(const wf_fst *want, wf_fst *got) {
  test_relation relation = test_enumerate(want, 40, 1000000);
  test_assert_relation(got, &relation, 60, 1e-3);
  test_relation_free(&relation);
  wf_fst_free(got);
}

static void add_pair(test_relation *relation, const char *key, double cost, wf_semiring semiring) {
  for (size_t i = 0; i < relation->size; i++) {
    if (strcmp(relation->pairs[i].key, key) != 0) continue;
    relation->pairs[i].cost = test_plus(semiring, relation->pairs[i].cost, cost);
    return;
  }
  relation->pairs = realloc(relation->pairs, (relation->size + 1) * sizeof *relation->pairs);
  assert_non_null(relation->pairs);
  relation->pairs[relation->size++] = (test_pair){strdup(key), cost};
}

static int compare_pairs(const void *x, const void *y) {
  return strcmp(((const test_pair *)x)->key, ((const test_pair *)y)->key);
}

/* Compares pairs, sorted here, with those of an fst. Frees both. */
static void expect_relation(test_relation *want, wf_fst *got) {
  if (want->size != 0) qsort(want->pairs, want->size, sizeof *want->pairs, compare_pairs);
  test_assert_relation(got, want, 60, 1e-3);
  test_relation_free(want);
  wf_fst_free(got);
}

/* --- map, reweight, condense ------------------------------------------------------------- */

static wf_fst *map(const wf_fst *fst, int32_t type, float value) {
  wf_error err = {0};
  wf_fst *out;
  INIT(map, o);
  o.map_type = type;
  o.weight = o.power = value;
  o.delta = 0.5f;
  assert_ok(wf_map(fst, &o, &out, &err));
  return out;
}

static double mapped_cost(const char *type, double cost, double value, wf_semiring semiring) {
  if (cost == INFINITY) return cost;
  if (strcmp(type, "invert") == 0) return -cost;
  if (strcmp(type, "plus") == 0) return test_plus(semiring, cost, value);
  if (strcmp(type, "times") == 0) return cost + value;
  if (strcmp(type, "power") == 0) return cost * value;
  if (strcmp(type, "quantize") == 0) return floor(cost / 0.5 + 0.5) * 0.5;
  return strcmp(type, "rmweight") == 0 ? 0 : cost;
}

static void test_map_of_each_arc(void **state) {
  (void)state;
  static const char *const types[] = {
      "identity", "arc_sum",  "arc_unique", "input_epsilon", "invert", "output_epsilon", "plus",
      "power",    "quantize", "rmweight",   "superfinal",    "times",  "to_log",         "to_std"};
  test_rng rng = {1};
  for (int round = 0; round < 400; round++) {
    wf_fst *fst = random_fst(&rng, false, round % 2, 0.2f);
    int32_t type = (int32_t)test_below(&rng, 14);
    const char *name = types[type];
    float value = (float)test_below(&rng, 9) / 4;
    wf_fst *got = map(fst, type, value);
    wf_fst_view a = wf_fst_get_view(fst), b = wf_fst_get_view(got);
    bool merges = strcmp(name, "arc_sum") == 0 || strcmp(name, "arc_unique") == 0,
         superfinal = strcmp(name, "superfinal") == 0;
    assert_int_equal(b.semiring, strcmp(name, "to_log") == 0   ? WF_LOG
                                 : strcmp(name, "to_std") == 0 ? WF_TROPICAL
                                                               : a.semiring);
    for (uint64_t i = 0; i < a.num_arcs && !merges && !superfinal; i++) {
      assert_int_equal(b.arcs[i].ilabel, strcmp(name, "input_epsilon") == 0 ? 0 : a.arcs[i].ilabel);
      assert_int_equal(b.arcs[i].olabel,
                       strcmp(name, "output_epsilon") == 0 ? 0 : a.arcs[i].olabel);
      test_assert_close((double)b.arcs[i].weight,
                        mapped_cost(name, (double)a.arcs[i].weight, (double)value, a.semiring),
                        1e-5);
    }
    for (uint64_t s = 0; s < a.num_states && !superfinal; s++) {
      double want = mapped_cost(name, (double)a.final_cost[s], (double)value, a.semiring);
      if (want == INFINITY)
        assert_true(b.final_cost[s] == INFINITY);
      else
        test_assert_close((double)b.final_cost[s], want, 1e-5);
    }
    if (superfinal) {
      assert_int_equal(b.num_states, a.num_states + 1);
      for (uint64_t s = 0; s < a.num_states; s++) assert_true(b.final_cost[s] == INFINITY);
    }
    if (merges) /* no two arcs that are equal in labels and target (and cost) */
      for (uint64_t s = 0; s < b.num_states; s++)
        for (uint64_t i = b.arc_off[s]; i + 1 < b.arc_off[s + 1]; i++)
          assert_false(b.arcs[i].ilabel == b.arcs[i + 1].ilabel &&
                       b.arcs[i].olabel == b.arcs[i + 1].olabel &&
                       b.arcs[i].nextstate == b.arcs[i + 1].nextstate &&
                       (strcmp(name, "arc_sum") == 0 || b.arcs[i].weight == b.arcs[i + 1].weight));
    if (round % 2 &&
        (superfinal || (merges && (strcmp(name, "arc_sum") == 0 || a.semiring == WF_TROPICAL))))
      expect_same_paths(fst, got);
    else
      wf_fst_free(got);
    wf_fst_free(fst);
  }
}

static void test_reweight(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {2};
  for (int round = 0; round < 200; round++) {
    wf_fst *fst = random_fst(&rng, false, true, 0.2f), *got;
    float potentials[8];
    INIT(reweight, o);
    o.to_final = round % 4 > 1;
    for (int s = 0; s < 8; s++) potentials[s] = (float)test_below(&rng, 33) / 8 - 2;
    uint64_t n = wf_fst_get_view(fst).num_states;
    assert_ok(wf_reweight(fst, potentials, n, &o, &got, &err));
    expect_same_paths(fst, got);
    assert_int_equal(wf_reweight(fst, potentials, n + 1, &o, &got, &err), WF_ERR_ARGUMENT);
    potentials[0] = NAN;
    assert_int_equal(wf_reweight(fst, potentials, n, &o, &got, &err), WF_ERR_ARGUMENT);
    wf_fst_free(fst);
  }
}

/* --- factor_weight ----------------------------------------------------------------------- */

struct strings_walk {
  wf_fst_view view;
  wf_label_strings arcs, finals;
  test_relation out;
};

/* Lists the pairs of the paths from a state. `ins` and `outs`: what was read and written so far. */
static void walk_strings(struct strings_walk *w, uint32_t s, const char *ins, const char *outs,
                         double cost) {
  char key[1024], next_ins[256], next_outs[512];
  if (w->view.final_cost[s] < INFINITY) {
    size_t used = (size_t)snprintf(key, sizeof key, "%s: %s", ins, outs);
    for (uint64_t i = w->finals.offsets[s]; i < w->finals.offsets[s + 1]; i++)
      used += (size_t)snprintf(key + used, sizeof key - used, "%d ", w->finals.labels[i]);
    add_pair(&w->out, key, cost + (double)w->view.final_cost[s], w->view.semiring);
  }
  for (uint64_t i = w->view.arc_off[s]; i < w->view.arc_off[s + 1]; i++) {
    const wf_arc *arc = &w->view.arcs[i];
    size_t used = (size_t)snprintf(next_outs, sizeof next_outs, "%s", outs);
    snprintf(next_ins, sizeof next_ins, arc->ilabel != 0 ? "%s%d " : "%s", ins, arc->ilabel);
    if (arc->olabel != 0)
      used += (size_t)snprintf(next_outs + used, sizeof next_outs - used, "%d ", arc->olabel);
    for (uint64_t k = w->arcs.offsets[i]; k < w->arcs.offsets[i + 1]; k++)
      used += (size_t)snprintf(next_outs + used, sizeof next_outs - used, "%d ", w->arcs.labels[k]);
    walk_strings(w, arc->nextstate, next_ins, next_outs, cost + (double)arc->weight);
  }
}

/* Random strings, half of them empty. */
static wf_label_strings random_strings(test_rng *rng, uint64_t *offsets, int32_t *labels,
                                       uint64_t count) {
  offsets[0] = 0;
  for (uint64_t k = 0; k < count; k++) {
    offsets[k + 1] = offsets[k] + (test_below(rng, 2) ? 1 + test_below(rng, 3) : 0);
    for (uint64_t i = offsets[k]; i < offsets[k + 1]; i++)
      labels[i] = 1 + (int32_t)test_below(rng, 3);
  }
  return (wf_label_strings){offsets, labels};
}

static void test_factor_weight(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {3};
  for (int round = 0; round < 400; round++) {
    wf_fst *fst = random_fst(&rng, round % 4 == 0, true, 0.3f), *got;
    uint64_t offsets[2][20];
    int32_t labels[2][60];
    struct strings_walk w = {.view = wf_fst_get_view(fst)};
    const bool has_arcs = round % 3 != 0, has_finals = round % 5 != 0;
    w.arcs = random_strings(&rng, offsets[0], labels[0], has_arcs ? w.view.num_arcs : 0);
    w.finals = random_strings(&rng, offsets[1], labels[1], has_finals ? w.view.num_states : 0);
    for (int k = 0; k < 20 && !has_arcs; k++) offsets[0][k] = 0;
    for (int k = 0; k < 20 && !has_finals; k++) offsets[1][k] = 0;
    if (w.view.start >= 0) walk_strings(&w, (uint32_t)w.view.start, "", "", 0);
    assert_ok(wf_factor_weight(fst, has_arcs ? &w.arcs : NULL, has_finals ? &w.finals : NULL, NULL,
                               &got, &err));
    const wf_fst_view view = wf_fst_get_view(got);
    for (uint64_t i = 0; i < w.view.num_arcs && w.view.start >= 0; i++) /* costs stay in place */
      assert_true(has_finals || view.arcs[i].weight == w.view.arcs[i].weight);
    expect_relation(&w.out, got);
    wf_fst_free(fst);
  }
}

static void test_factor_weight_in_detail(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 0 0.5;0 1 2 4 0.25;1 0 3 0 1;1 2"), *got;
  const uint64_t arcs[] = {0, 3, 5, 8}, finals[] = {0, 1, 4}, wrong[] = {0, 3, 2, 8};
  int32_t labels[] = {7, 8, 9, 8, 9, 5, 6, 7};
  INIT(factor_weight, o);
  o.final_ilabel = 11;
  const wf_label_strings of_arcs = {arcs, labels}, of_finals = {finals, labels};
  assert_ok(wf_factor_weight(fst, &of_arcs, &of_finals, &o, &got, &err));
  wf_fst *want = test_fst_of(WF_TROPICAL,
                             "0 4 1 7 0.5;0 4 2 4 0.25;1 6 3 5 1;1 8 11 8 2;3 1 0 9;4 3 0 8;5 0 0 "
                             "7;6 5 0 6;7 2 11 8;8 7 11 9;2");
  bool same;
  assert_ok(wf_equal(want, got, 0, &same, &err)); /* equal ends share states */
  assert_true(same);
  wf_fst_free(want);
  wf_fst_free(got);
  const wf_label_strings descending = {wrong, labels};
  assert_int_equal(wf_factor_weight(fst, &descending, NULL, NULL, &got, &err), WF_ERR_ARGUMENT);
  labels[4] = 0;
  assert_int_equal(wf_factor_weight(fst, &of_arcs, NULL, NULL, &got, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "label 0 in a string of arc"));
  assert_null(got);
  wf_fst_free(fst);
}

/* reach[a * n + b]: does a path lead from a to b? */
static bool *reachable(const wf_fst_view *view) {
  uint64_t n = view->num_states;
  bool *reach = calloc(n * n + 1, 1);
  assert_non_null(reach);
  for (uint64_t s = 0; s < n; s++) reach[s * n + s] = true;
  for (uint64_t s = 0; s < n; s++)
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      reach[s * n + view->arcs[i].nextstate] = true;
  for (uint64_t via = 0; via < n; via++)
    for (uint64_t a = 0; a < n; a++)
      for (uint64_t b = 0; b < n; b++)
        if (reach[a * n + via] && reach[via * n + b]) reach[a * n + b] = true;
  return reach;
}

static void test_condense_and_info(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {3};
  for (int round = 0; round < 300; round++) {
    wf_fst *fst = random_fst(&rng, false, round % 3 == 0, 0.2f), *got;
    wf_fst_view view = wf_fst_get_view(fst);
    uint64_t n = view.num_states, components = 0, kept = 0;
    bool *reach = reachable(&view), cyclic_at_start = false, weighted = false;
    for (uint64_t s = 0; s < n; s++) {
      bool first = true;
      for (uint64_t t = 0; t < s; t++)
        if (reach[s * n + t] && reach[t * n + s]) first = false;
      components += first;
      for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++) {
        uint32_t to = view.arcs[i].nextstate;
        bool on_cycle = reach[to * n + s];
        kept += !on_cycle;
        weighted = weighted || (on_cycle && view.arcs[i].weight != 0);
        cyclic_at_start = cyclic_at_start || (on_cycle && reach[s * n + (uint64_t)view.start] &&
                                              reach[(uint64_t)view.start * n + s]);
      }
    }
    assert_ok(wf_condense(fst, &got, &err));
    assert_int_equal(wf_fst_get_view(got).num_states, components);
    assert_int_equal(wf_fst_get_view(got).num_arcs, kept);
    assert_true(wf_fst_properties(got) & WF_PROP_TOP_SORTED);
    wf_fst_info info;
    wf_fst_info_init(&info);
    assert_ok(wf_fst_get_info(fst, &info, &err));
    assert_int_equal(info.num_sccs, components);
    assert_int_equal(info.cyclic_at_start, cyclic_at_start);
    assert_int_equal(info.weighted_cycles, weighted);
    if (round % 3 == 0)
      expect_same_paths(fst, got);
    else
      wf_fst_free(got);
    wf_fst_free(fst);
    free(reach);
  }
}

static void test_info_of_known_fsts(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst_info info;
  wf_fst *string = test_fst_of(WF_TROPICAL, "0 1 1 1;1 2 2 2;2"),
         *fork = test_fst_of(WF_TROPICAL, "0 1 1 2;0 1 1 3;0 2 2 2;1;2;3 3 1 1");
  wf_fst_info_init(&info);
  assert_ok(wf_fst_get_info(string, &info, &err));
  assert_true(info.is_string && info.num_components == 1 && info.ilabel_multiplicity == 1);
  assert_ok(wf_fst_get_info(fork, &info, &err));
  assert_false(info.is_string);
  assert_int_equal(info.num_components, 2);
  test_assert_close(info.ilabel_multiplicity, (2 * 2 + 1 + 1) / 4.0, 1e-9);
  test_assert_close(info.olabel_multiplicity, (2 * 2 + 1 + 1) / 4.0, 1e-9);
  wf_fst_free(string);
  wf_fst_free(fork);
}

/* --- difference, replace ----------------------------------------------------------------- */

/* Does the acceptor accept the labels "1 2 "? Follows sets of states. */
static bool accepts(const wf_fst *fst, const char *labels) {
  wf_fst_view view = wf_fst_get_view(fst);
  bool now[16] = {false}, next[16];
  if (view.start < 0) return false;
  now[view.start] = true;
  for (const char *at = labels;;) {
    for (uint64_t repeat = 0; repeat < view.num_states; repeat++)
      for (uint64_t s = 0; s < view.num_states; s++)
        for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++)
          if (now[s] && view.arcs[i].ilabel == 0) now[view.arcs[i].nextstate] = true;
    char *stop;
    long label = strtol(at, &stop, 10);
    if (stop == at) break;
    memset(next, 0, sizeof next);
    for (uint64_t s = 0; s < view.num_states; s++)
      for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++)
        if (now[s] && view.arcs[i].ilabel == label) next[view.arcs[i].nextstate] = true;
    memcpy(now, next, sizeof now);
    at = stop;
  }
  for (uint64_t s = 0; s < view.num_states; s++)
    if (now[s] && view.final_cost[s] != INFINITY) return true;
  return false;
}

static void test_difference(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {4};
  uint64_t num_kept = 0, num_removed = 0;
  for (int round = 0; round < 400; round++) {
    wf_fst *a = random_fst(&rng, false, true, 0.2f), *b0 = random_fst(&rng, true, round % 2, 0.2f),
           *b1 = map(b0, 9, 0), *b, *got;
    assert_ok(wf_fst_with_semiring(b1, wf_fst_get_view(a).semiring, &b, &err));
    test_relation all = test_enumerate(a, 40, 1000000), want = {0};
    for (size_t i = 0; i < all.size; i++) {
      bool removed = accepts(b, strchr(all.pairs[i].key, ':') + 1);
      num_removed += removed;
      num_kept += !removed;
      if (!removed) add_pair(&want, all.pairs[i].key, all.pairs[i].cost, WF_TROPICAL);
    }
    assert_ok(wf_difference(a, b, NULL, &got, &err));
    assert_true(test_is_trimmed(got));
    expect_relation(&want, got);
    test_relation_free(&all);
    wf_fst *each[] = {a, b0, b1, b};
    for (size_t i = 0; i < 4; i++) wf_fst_free(each[i]);
  }
  assert_true(num_kept > 200 && num_removed > 200);
  wf_fst *a = test_fst_of(WF_TROPICAL, "0 1 1 1;1"),
         *weighted = test_fst_of(WF_TROPICAL, "0 1 1 1 2;1"),
         *other = test_fst_of(WF_TROPICAL, "0 1 1 2;1"),
         *log_fst = test_fst_of(WF_LOG, "0 1 1 1;1"), *out;
  assert_int_equal(wf_difference(a, weighted, NULL, &out, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_difference(a, other, NULL, &out, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_difference(a, log_fst, NULL, &out, &err), WF_ERR_ARGUMENT);
  wf_fst *each[] = {a, weighted, other, log_fst};
  for (size_t i = 0; i < 4; i++) wf_fst_free(each[i]);
}

struct caller {
  const wf_fst *fsts[3]; /* label 10 + k calls fst k */
  bool keep_input, keep_output;
  test_relation out;
};

/* Adds the paths from a state of fst `k` on; `rest` holds what follows after its end. */
struct rest {
  size_t fst;
  uint32_t state;
  const struct rest *below;
};
static void follow(struct caller *c, size_t k, uint32_t s, const struct rest *rest, const char *in,
                   const char *out, double cost) {
  wf_fst_view view = wf_fst_get_view(c->fsts[k]);
  if (view.final_cost[s] != INFINITY) {
    char key[1024];
    double end = cost + (double)view.final_cost[s];
    snprintf(key, sizeof key, "%s: %s", in, out);
    if (rest == NULL)
      add_pair(&c->out, key, end, view.semiring);
    else
      follow(c, rest->fst, rest->state, rest->below, in, out, end);
  }
  for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++) {
    const wf_arc *arc = &view.arcs[i];
    bool calls = arc->olabel >= 10;
    char more_in[512], more_out[512], label[2][24] = {"", ""};
    if (arc->ilabel != 0 && (!calls || c->keep_input))
      snprintf(label[0], sizeof label[0], "%d ", arc->ilabel);
    if (arc->olabel != 0 && (!calls || c->keep_output))
      snprintf(label[1], sizeof label[1], "%d ", arc->olabel);
    snprintf(more_in, sizeof more_in, "%s%s", in, label[0]);
    snprintf(more_out, sizeof more_out, "%s%s", out, label[1]);
    struct rest back = {k, arc->nextstate, rest};
    wf_fst_view callee = wf_fst_get_view(c->fsts[calls ? arc->olabel - 10 : 0]);
    if (!calls)
      follow(c, k, arc->nextstate, rest, more_in, more_out, cost + (double)arc->weight);
    else if (callee.start >= 0)
      follow(c, (size_t)(arc->olabel - 10), (uint32_t)callee.start, &back, more_in, more_out,
             cost + (double)arc->weight);
  }
}

/* Calls go to fsts of larger numbers: labels above are those of fst 1 or 2. */
static bool call_some(test_rng *rng, uint32_t state, wf_arc *arc) {
  (void)state;
  if (arc->olabel == 2) arc->olabel = 11 + (int32_t)test_below(rng, 2);
  return true;
}
static bool call_last(test_rng *rng, uint32_t state, wf_arc *arc) {
  (void)rng, (void)state;
  if (arc->olabel == 2) arc->olabel = 12;
  return true;
}

static void test_replace(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {5};
  uint64_t num_paths = 0;
  for (int round = 0; round < 300; round++) {
    wf_fst *fsts[3], *got;
    static test_change_fn *const changes[] = {call_some, call_last, NULL};
    for (size_t k = 0; k < 3; k++) {
      test_fst_shape shape = {.num_states = 2 + test_below(&rng, 4),
                              .num_arcs = 2 + test_below(&rng, 7),
                              .num_ilabels = 3,
                              .num_olabels = 3,
                              .epsilon_share = 0.2f,
                              .final_share = 0.3f,
                              .max_weight = 2,
                              .acyclic = true,
                              .semiring = round % 2 ? WF_LOG : WF_TROPICAL};
      fsts[k] = test_random_fst(&rng, &shape);
      if (changes[k] != NULL) fsts[k] = test_changed_fst(fsts[k], &rng, changes[k]);
    }
    INIT(replace, o);
    o.call_arc_labeling = (int32_t)test_below(&rng, 4);
    struct caller caller = {.fsts = {fsts[0], fsts[1], fsts[2]},
                            .keep_input = o.call_arc_labeling == 0 || o.call_arc_labeling == 2,
                            .keep_output = o.call_arc_labeling == 1 || o.call_arc_labeling == 2};
    static const int32_t labels[] = {10, 11, 12};
    assert_ok(wf_replace((const wf_fst *const *)fsts, labels, 3, &o, &got, &err));
    if (wf_fst_get_view(fsts[0]).start >= 0)
      follow(&caller, 0, (uint32_t)wf_fst_get_view(fsts[0]).start, NULL, "", "", 0);
    num_paths += caller.out.size;
    expect_relation(&caller.out, got);
    for (size_t k = 0; k < 3; k++) wf_fst_free(fsts[k]);
  }
  assert_true(num_paths > 500);
}

static void test_replace_errors(void **state) {
  (void)state;
  wf_error err = {0};
  INIT(replace, o);
  wf_fst *root = test_fst_of(WF_TROPICAL, "0 1 5 10;1"),
         *inner = test_fst_of(WF_TROPICAL, "0 1 5 11;1"),
         *leaf = test_fst_of(WF_TROPICAL, "0 1 5 6;1"),
         *self = test_fst_of(WF_TROPICAL, "0 1 5 10;1"),
         *log_fst = test_fst_of(WF_LOG, "0 1 5 6;1"), *got;
  static const int32_t labels[] = {9, 10, 11}, twice[] = {9, 10, 10}, negative[] = {9, -1, 3};
  const wf_fst *good[] = {root, inner, leaf}, *endless[] = {root, inner, self},
               *mixed[] = {root, inner, log_fst};
  o.return_arc_labeling = 3;
  o.return_label = 8;
  o.root = 9;
  assert_ok(wf_replace(good, labels, 3, &o, &got, &err));
  wf_fst *want = test_fst_of(WF_TROPICAL, "0 1 5 0;1 2 5 0;2 3 5 6;3 4 8 8;4 5 8 8;5");
  bool same;
  assert_ok(wf_equal(got, want, 0, &same, &err));
  assert_true(same);
  wf_fst_free(got);
  o.max_states = 3;
  assert_int_equal(wf_replace(good, labels, 3, &o, &got, &err), WF_ERR_LIMIT);
  o.max_states = 0;
  assert_int_equal(wf_replace(endless, labels, 3, &o, &got, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "calls itself"));
  assert_int_equal(wf_replace(mixed, labels, 3, &o, &got, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_replace(good, twice, 3, &o, &got, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_replace(good, negative, 3, &o, &got, &err), WF_ERR_ARGUMENT);
  o.root = 77;
  assert_int_equal(wf_replace(good, labels, 3, &o, &got, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_replace(good, labels, 0, NULL, &got, &err), WF_ERR_ARGUMENT);
  wf_fst *each[] = {root, inner, leaf, self, log_fst, want};
  for (size_t i = 0; i < 6; i++) wf_fst_free(each[i]);
}

/* --- encode ------------------------------------------------------------------------------ */

static void test_encode(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {6};
  for (int round = 0; round < 300; round++) {
    wf_fst *fst = random_fst(&rng, false, true, 0.2f), *encoded, *decoded, *again;
    bool labels = round % 3 != 1, weights = round % 3 != 0, same;
    wf_encoder *encoder, *read;
    assert_ok(wf_encoder_create(wf_fst_get_view(fst).semiring, labels, weights, &encoder, &err));
    assert_ok(wf_encoder_encode(encoder, fst, &encoded, &err));
    wf_fst_view view = wf_fst_get_view(encoded);
    for (uint64_t i = 0; i < view.num_arcs; i++) {
      assert_in_range(view.arcs[i].ilabel, 1, wf_encoder_size(encoder));
      assert_true(!labels || view.arcs[i].ilabel == view.arcs[i].olabel);
      assert_true(!weights || view.arcs[i].weight == 0);
    }
    const char *path = test_temp_path("table");
    assert_ok(wf_encoder_write(encoder, path, &err));
    assert_ok(wf_encoder_read(path, &read, &err));
    assert_int_equal(wf_encoder_size(read), wf_encoder_size(encoder));
    assert_ok(wf_encoder_encode(read, fst, &again, &err)); /* no new labels */
    assert_ok(wf_equal(again, encoded, 0, &same, &err));
    assert_true(same);
    assert_ok(wf_encoder_decode(read, encoded, &decoded, &err));
    if (!weights) {
      assert_ok(wf_equal(decoded, fst, 0, &same, &err));
      assert_true(same);
    }
    expect_same_paths(fst, decoded);
    wf_encoder_free(encoder);
    wf_encoder_free(read);
    wf_fst *each[] = {fst, encoded, again};
    for (size_t i = 0; i < 3; i++) wf_fst_free(each[i]);
  }
}

static void test_encode_errors(void **state) {
  (void)state;
  wf_error err = {0};
  wf_encoder *encoder;
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 2 3;1"),
         *unknown = test_fst_of(WF_TROPICAL, "0 1 9 9;1"),
         *uneven = test_fst_of(WF_TROPICAL, "0 1 1 2;1"),
         *costly = test_fst_of(WF_TROPICAL, "0 1 1 1 4;1"),
         *log_fst = test_fst_of(WF_LOG, "0 1 1 1;1"), *out, *encoded;
  assert_int_equal(wf_encoder_create(WF_TROPICAL, false, false, &encoder, &err), WF_ERR_ARGUMENT);
  assert_ok(wf_encoder_create(WF_TROPICAL, true, true, &encoder, &err));
  assert_ok(wf_encoder_encode(encoder, fst, &encoded, &err));
  const wf_fst *bad[] = {unknown, uneven, costly, log_fst};
  for (size_t i = 0; i < 4; i++)
    assert_int_equal(wf_encoder_decode(encoder, bad[i], &out, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_encoder_encode(encoder, log_fst, &out, &err), WF_ERR_ARGUMENT);
  const char *path = test_temp_path("table");
  assert_ok(wf_encoder_write(encoder, path, &err));
  wf_encoder_free(encoder);
  size_t size;
  char *data = test_read_file(path, &size);
  for (size_t cut = 0; cut < size; cut++) { /* a table cut anywhere is refused */
    const char *short_path = test_write_file("short", data, cut);
    assert_int_equal(wf_encoder_read(short_path, &encoder, &err), WF_ERR_FORMAT);
    assert_null(encoder);
  }
  for (size_t at = 0; at < size; at++) { /* a changed byte gives a table or an error */
    char old = data[at];
    data[at] = (char)(old ^ 0x81);
    if (wf_encoder_read(test_write_file("changed", data, size), &encoder, &err) == WF_OK)
      wf_encoder_free(encoder);
    data[at] = old;
  }
  free(data);
  wf_fst *each[] = {fst, unknown, uneven, costly, log_fst, encoded};
  for (size_t i = 0; i < 6; i++) wf_fst_free(each[i]);
}

/* --- normal forms ------------------------------------------------------------------------ */

/* States that the start reaches, in modes: mode m turns to next_mode(m, arc), or fails if that is
 * negative. */
static void check_form(const wf_fst *fst, int (*next_mode)(int mode, const wf_arc *arc)) {
  wf_fst_view view = wf_fst_get_view(fst);
  bool *seen = calloc(view.num_states * 3 + 1, 1);
  assert_non_null(seen);
  if (view.start >= 0) seen[view.start * 3] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint64_t at = 0; at < view.num_states * 3; at++) {
      for (uint64_t i = view.arc_off[at / 3]; seen[at] && i < view.arc_off[at / 3 + 1]; i++) {
        int mode = next_mode((int)(at % 3), &view.arcs[i]);
        if (mode < 0)
          fail_msg("arc %d:%d after mode %d", view.arcs[i].ilabel, view.arcs[i].olabel,
                   (int)(at % 3));
        uint64_t to = view.arcs[i].nextstate * 3 + (uint64_t)mode;
        changed = changed || !seen[to];
        seen[to] = true;
      }
    }
  }
  free(seen);
}

/* 0: input is read; 1: it ended. */
static int input_first(int mode, const wf_arc *arc) {
  return arc->ilabel == 0 ? 1 : mode == 0 ? 0 : -1;
}
/* 0: both sides or none; 1: only input, 2: only output from now on. */
static int in_step(int mode, const wf_arc *arc) {
  int now = arc->ilabel != 0 && arc->olabel == 0 ? 1 : arc->ilabel == 0 && arc->olabel != 0 ? 2 : 0;
  bool none = arc->ilabel == 0 && arc->olabel == 0;
  return mode == 0 || now == mode ? now : none ? mode : -1;
}

static void test_epsnormalize(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {7};
  for (int round = 0; round < 400; round++) {
    wf_fst *fst = random_fst(&rng, false, true, 0.35f), *got, *inverse;
    INIT(epsnormalize, o);
    o.eps_norm_type = round % 2;
    assert_ok(wf_epsnormalize(fst, &o, &got, &err));
    assert_true(test_is_trimmed(got));
    assert_ok(wf_invert(got, &inverse, &err));
    check_form(round % 2 ? inverse : got, input_first);
    wf_fst_free(inverse);
    expect_same_paths(fst, got);
    wf_fst_free(fst);
  }
  wf_fst *waiting =
             test_fst_of(WF_TROPICAL, "0 1 1 1 1;1 0 0 2 1;1"), /* writes twice what it reads */
      *shrinking = test_fst_of(WF_TROPICAL, "0 1 1 1 1;1 0 2 0 1;1"), *out;
  assert_int_equal(wf_epsnormalize(waiting, NULL, &out, &err), WF_ERR_ARGUMENT);
  assert_ok(wf_epsnormalize(shrinking, NULL, &out, &err));
  test_assert_same_strings(shrinking, out, false, 3, 1e-4);
  wf_fst_free(out);
  wf_fst_free(waiting);
  wf_fst_free(shrinking);
}

static void test_synchronize(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {8};
  for (int round = 0; round < 400; round++) {
    wf_fst *fst = random_fst(&rng, false, true, 0.35f), *got;
    assert_ok(wf_synchronize(fst, &got, &err));
    check_form(got, in_step);
    assert_true(test_is_trimmed(got));
    expect_same_paths(fst, got);
    wf_fst_free(fst);
  }
  wf_fst *uneven = test_fst_of(WF_TROPICAL, "0 1 1 1 1;1 0 0 2 1;1"),
         *even = test_fst_of(WF_TROPICAL, "0 1 1 0 1;1 0 0 2 1;1 2 3 0;2 1"), *out;
  assert_int_equal(wf_synchronize(uneven, &out, &err), WF_ERR_ARGUMENT);
  assert_ok(wf_synchronize(even, &out, &err));
  test_assert_same_strings(even, out, false, 6, 1e-4);
  wf_fst_free(out);
  wf_fst_free(uneven);
  wf_fst_free(even);
}

/* --- disambiguate, determinize, push ----------------------------------------------------- */

/* Number of successful paths of an acyclic fst. */
static uint64_t num_paths_from(const wf_fst_view *view, uint64_t s) {
  uint64_t sum = view->final_cost[s] != INFINITY;
  for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
    sum += num_paths_from(view, view->arcs[i].nextstate);
  return sum;
}

/* The output is a function of the input. */
static bool function_of_input(test_rng *rng, uint32_t state, wf_arc *arc) {
  (void)rng, (void)state;
  arc->olabel = arc->ilabel == 2 ? 0 : arc->ilabel + 4;
  return true;
}

static void test_disambiguate(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {9};
  uint64_t num_ambiguous = 0;
  for (int round = 0; round < 400; round++) {
    wf_fst *fst = random_fst(&rng, true, true, 0), *got;
    if (round % 2) fst = test_changed_fst(fst, &rng, function_of_input);
    wf_fst_view view = wf_fst_get_view(fst);
    test_relation strings = test_enumerate(fst, 40, 1000000);
    num_ambiguous += num_paths_from(&view, (uint64_t)view.start) > strings.size;
    assert_ok(wf_disambiguate(fst, NULL, &got, &err));
    view = wf_fst_get_view(got);
    assert_int_equal(view.start < 0 ? 0 : num_paths_from(&view, (uint64_t)view.start),
                     strings.size);
    test_relation_free(&strings);
    expect_same_paths(fst, got);
    wf_fst_free(fst);
  }
  assert_true(num_ambiguous > 50);
  /* Cannot be determinized (the two loops have different costs), but is ambiguous only at first. */
  wf_fst *twins =
             test_fst_of(WF_TROPICAL,
                         "0 1 1 1;0 2 1 1;1 1 2 2 1;2 2 2 2 2;1 3 3 3;2 3 4 4;0 3 5 5;0 3 5 5 1;3"),
         *out;
  assert_ok(wf_disambiguate(twins, NULL, &out, &err));
  test_assert_same_strings(twins, out, true, 1, 1e-4);
  assert_int_equal(wf_fst_get_view(out).num_arcs, 7);
  wf_fst_free(out);
  wf_fst_free(twins);
  /* 1 2* 3 has two costs that grow apart: no unambiguous acceptor has a finite number of states. */
  twins = test_fst_of(WF_TROPICAL, "0 1 1 1;0 2 1 1 1;1 1 2 2 2;2 2 2 2 1;1 3 3 3;2 3 3 3;3");
  INIT(disambiguate, o);
  o.max_states = 1000;
  assert_int_equal(wf_disambiguate(twins, &o, &out, &err), WF_ERR_LIMIT);
  wf_fst_free(twins);
}

static void test_determinize_keeps_all_outputs(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {10};
  for (int round = 0; round < 400; round++) {
    wf_fst *fst = random_fst(&rng, false, true, 0.15f), *got;
    INIT(determinize, o);
    o.det_type = 1;
    o.num_threads = 1 + round % 2;
    assert_ok(wf_determinize(fst, &o, &got, &err));
    wf_fst_view view = wf_fst_get_view(got);
    for (uint64_t s = 0; s < view.num_states; s++)
      for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++)
        for (uint64_t j = view.arc_off[s]; j < i; j++)
          assert_false(view.arcs[i].ilabel == view.arcs[j].ilabel && view.arcs[i].ilabel != 0);
    expect_same_paths(fst, got);
    o.rmepsilon = true;
    wf_status status = wf_determinize(fst, &o, &got, &err);
    assert_true(status == WF_OK || status == WF_ERR_UNSUPPORTED);
    if (status == WF_OK) expect_same_paths(fst, got);
    wf_fst_free(fst);
  }
  wf_fst *two = test_fst_of(WF_TROPICAL, "0 1 1 2;0 2 1 3 1;1;2"), *got;
  INIT(determinize, o);
  assert_int_equal(wf_determinize(two, &o, &got, &err), WF_ERR_NOT_DETERMINIZABLE);
  o.det_type = 2; /* the best one only */
  assert_ok(wf_determinize(two, &o, &got, &err));
  test_relation best = test_enumerate(got, 9, 100);
  assert_int_equal(best.size, 1);
  assert_string_equal(best.pairs[0].key, "1 : 2 ");
  test_relation_free(&best);
  wf_fst_free(got);
  wf_fst_free(two);
}

/* Number of labels at the beginning (or end) that two texts "1 2 3 " share, in characters. */
static size_t common(const char *a, const char *b, bool suffix) {
  size_t size_a = strlen(a), size_b = strlen(b), shared = 0, best = 0;
  while (shared < size_a && shared < size_b &&
         (suffix ? a[size_a - 1 - shared] == b[size_b - 1 - shared] : a[shared] == b[shared])) {
    shared++;
    char edge = suffix ? (shared < size_a ? a[size_a - 1 - shared] : ' ') : a[shared - 1];
    char other = suffix ? (shared < size_b ? b[size_b - 1 - shared] : ' ') : ' ';
    if (edge == ' ' && other == ' ') best = shared;
  }
  return best;
}

static void test_push_removes_affix(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {11};
  uint64_t num_removed = 0;
  for (int round = 0; round < 600; round++) {
    wf_fst *fst = random_fst(&rng, false, true, 0.1f), *got;
    bool suffix = round % 2;
    test_relation all = test_enumerate(fst, 40, 1000000), want = {0};
    size_t shared = SIZE_MAX;
    const char *first = all.size != 0 ? strchr(all.pairs[0].key, ':') + 2 : "";
    for (size_t i = 0; i < all.size; i++) {
      size_t here = common(first, strchr(all.pairs[i].key, ':') + 2, suffix);
      shared = here < shared ? here : shared;
    }
    for (size_t i = 0; i < all.size; i++) {
      char key[1024];
      const char *colon = strchr(all.pairs[i].key, ':') + 2;
      size_t kept = strlen(colon) - shared;
      snprintf(key, sizeof key, "%.*s%.*s", (int)(colon - all.pairs[i].key), all.pairs[i].key,
               (int)kept, suffix ? colon : colon + shared);
      add_pair(&want, key, all.pairs[i].cost, WF_TROPICAL);
      num_removed += shared;
    }
    INIT(push, o);
    o.push_weights = false;
    o.push_labels = o.remove_common_affix = true;
    o.to_final = suffix;
    assert_ok(wf_push(fst, &o, &got, &err));
    expect_relation(&want, got);
    test_relation_free(&all);
    o.push_labels = false;
    assert_int_equal(wf_push(fst, &o, &got, &err), WF_ERR_ARGUMENT);
    wf_fst_free(fst);
  }
  assert_true(num_removed > 100);
}

/* --- isomorphic -------------------------------------------------------------------------- */

/* The fst with states and arcs in another order; `change`: one arc differs. */
static wf_fst *shuffled(test_rng *rng, const wf_fst *fst, bool change) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *out;
  wf_fst_view view = wf_fst_get_view(fst);
  uint32_t number[16];
  for (uint32_t s = 0; s < view.num_states; s++) number[s] = s;
  for (uint32_t s = (uint32_t)view.num_states; s-- > 1;) {
    uint32_t other = test_below(rng, s + 1), swap = number[s];
    number[s] = number[other];
    number[other] = swap;
  }
  assert_ok(wf_builder_create(view.semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, number[view.start], &err));
  for (uint64_t s = 0; s < view.num_states; s++) {
    assert_ok(wf_builder_set_final(builder, number[s], view.final_cost[s], &err));
    for (uint64_t i = view.arc_off[s + 1]; i-- > view.arc_off[s];) {
      wf_arc arc = view.arcs[i];
      arc.nextstate = number[arc.nextstate];
      if (change && i == 0) arc.weight += 1;
      assert_ok(wf_builder_add_arc(builder, number[s], arc, &err));
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

static void test_isomorphic(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {12};
  uint64_t num_tested = 0;
  for (int round = 0; round < 400; round++) {
    wf_fst *fst = random_fst(&rng, false, false, 0.2f), *trimmed;
    assert_ok(wf_connect(fst, &trimmed, &err));
    if (wf_fst_get_view(trimmed).num_arcs != 0) {
      wf_fst *same = shuffled(&rng, trimmed, false), *other = shuffled(&rng, trimmed, true);
      bool equal, differs;
      wf_status status = wf_isomorphic(trimmed, same, 0, &equal, &err);
      if (status == WF_OK) {
        assert_true(equal);
        if (wf_isomorphic(trimmed, other, 0, &differs, &err) == WF_OK) {
          assert_false(differs);
          assert_true(err.message[0] != '\0');
        }
        num_tested++;
      } else {
        assert_int_equal(status, WF_ERR_UNSUPPORTED);
      }
      wf_fst_free(same);
      wf_fst_free(other);
    }
    wf_fst_free(trimmed);
    wf_fst_free(fst);
  }
  assert_true(num_tested > 150);
}

/* --- archives ---------------------------------------------------------------------------- */

static const char *write_archive(wf_far_type type, const wf_fst *a, const wf_fst *b) {
  wf_error err = {0};
  wf_far_writer *writer;
  const char *path = test_temp_path("archive.far");
  assert_ok(wf_far_writer_create(path, type, &writer, &err));
  assert_ok(wf_far_writer_add(writer, "a", a, &err));
  assert_ok(wf_far_writer_add(writer, "bcd", b, &err));
  assert_int_equal(wf_far_writer_add(writer, "b", a, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_far_writer_add(writer, "", a, &err), WF_ERR_ARGUMENT);
  assert_ok(wf_far_writer_finish(writer, &err));
  return path;
}

/* Reads all fsts; returns the first error, or WF_OK. */
static wf_status read_archive(const char *path, size_t *count) {
  wf_error err = {0};
  wf_far *far;
  const char *key;
  wf_fst *fst = NULL;
  *count = 0;
  wf_status status = wf_far_open(path, &far, &err);
  if (status != WF_OK) return status;
  while ((status = wf_far_next(far, &key, &fst, &err)) == WF_OK && fst != NULL) {
    ++*count;
    wf_fst_free(fst);
  }
  wf_far_close(far);
  return status;
}

static void test_archives(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *a = test_fst_of(WF_TROPICAL, "0 1 1 2 3;1"), *b = test_fst_of(WF_LOG, "0 0 1 2 3;0 1"),
         *got;
  for (int type = 0; type < 2; type++) {
    const char *path = write_archive((wf_far_type)type, a, b), *key;
    wf_far *far;
    bool same;
    size_t count, size;
    assert_ok(wf_far_open(path, &far, &err));
    assert_int_equal(wf_far_get_type(far), type);
    const wf_fst *want[] = {a, b};
    for (int k = 0; k < 2; k++) {
      assert_ok(wf_far_next(far, &key, &got, &err));
      assert_string_equal(key, k == 0 ? "a" : "bcd");
      assert_ok(wf_equal(got, want[k], 0, &same, &err));
      assert_true(same);
      wf_fst_free(got);
    }
    for (int k = 0; k < 2; k++) { /* the end stays the end */
      assert_ok(wf_far_next(far, &key, &got, &err));
      assert_true(key == NULL && got == NULL);
    }
    assert_ok(wf_far_find(far, "a", &got, &err));
    wf_fst_free(got);
    assert_ok(wf_far_find(far, "bcd", &got, &err));
    assert_ok(wf_equal(got, b, 0, &same, &err));
    assert_true(same);
    wf_fst_free(got);
    assert_int_equal(wf_far_find(far, "b", &got, &err), WF_ERR_ARGUMENT);
    assert_null(got);
    assert_int_equal(wf_far_find(far, "z", &got, &err), WF_ERR_ARGUMENT);
    wf_far_close(far);
    char *data = test_read_file(path, &size);
    for (size_t cut = 0; cut < size; cut++) /* cut anywhere: an error */
      assert_int_not_equal(read_archive(test_write_file("cut.far", data, cut), &count), WF_OK);
    for (size_t at = 0; at < size; at++) { /* a changed byte: fsts or an error */
      char old = data[at];
      data[at] = (char)(old ^ 0x81);
      read_archive(test_write_file("changed.far", data, size), &count);
      data[at] = old;
    }
    free(data);
  }
  size_t count;
  assert_int_equal(read_archive(test_save_fst(a, "single.fst"), &count), WF_OK);
  assert_int_equal(count, 1);
  wf_far_writer *writer;
  assert_int_equal(wf_far_writer_create("-", WF_FAR_STTABLE, &writer, &err), WF_ERR_ARGUMENT);
  assert_ok(wf_far_writer_create(test_temp_path("none.far"), WF_FAR_STLIST, &writer, &err));
  wf_far_writer_abort(writer);
  wf_far_writer_abort(NULL);
  wf_fst_free(a);
  wf_fst_free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_map_of_each_arc),
                                     cmocka_unit_test(test_reweight),
                                     cmocka_unit_test(test_factor_weight),
                                     cmocka_unit_test(test_factor_weight_in_detail),
                                     cmocka_unit_test(test_condense_and_info),
                                     cmocka_unit_test(test_info_of_known_fsts),
                                     cmocka_unit_test(test_difference),
                                     cmocka_unit_test(test_replace),
                                     cmocka_unit_test(test_replace_errors),
                                     cmocka_unit_test(test_encode),
                                     cmocka_unit_test(test_encode_errors),
                                     cmocka_unit_test(test_epsnormalize),
                                     cmocka_unit_test(test_synchronize),
                                     cmocka_unit_test(test_disambiguate),
                                     cmocka_unit_test(test_determinize_keeps_all_outputs),
                                     cmocka_unit_test(test_push_removes_affix),
                                     cmocka_unit_test(test_isomorphic),
                                     cmocka_unit_test(test_archives)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
