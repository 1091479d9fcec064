/* test_paths.c - shortest path, n best paths and strings, prune.
 *
 * First examples by hand. Then random fsts. Small fsts are checked with an enumeration of every
 * path up to a cost; every arc costs at least 1/2, so there are finitely many. Negative weights are
 * made by a potential for each state, which changes every path's cost by the same amount. */
#include "example.h"
#include "testing.h"

/* --- examples by hand -------------------------------------------------------------------- */

/* Two paths: "1 2" costs 1 + 1 = 2, "3 4" costs 0.5 + 2 = 2.5.
 *
 *         1/1      2/1
 *      /------(1)------\
 *   (0)                 ((3))
 *      \------(2)------/
 *         3/0.5    4/2          */
#define TWO_PATHS "0 1 1 1 1\n1 3 2 2 1\n0 2 3 3 0.5\n2 3 4 4 2\n3\n"
static const char *const two_paths[] = {"1 2 : 1 2", "3 4 : 3 4"};
static const double two_costs[] = {2, 2.5};

static void test_example_shortest_path(void **state) {
  (void)state;
  wf_error failure = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, TWO_PATHS), *out;
  wf_shortest_path_options options;
  wf_shortest_path_options_init(&options);
  for (int n = 1; n <= 3; n++) { /* there are two paths, so three give two */
    options.nshortest = n;
    assert_int_equal(wf_shortest_path(fst, &options, &out, &failure), WF_OK);
    example_expect_paths(out, n < 2 ? 1 : 2, two_paths, two_costs);
    wf_fst_free(out);
  }
  wf_fst_free(fst);
}

/* prune keeps the paths within `weight` of the best, a path at exactly `weight` included. */
static void test_example_prune(void **state) {
  (void)state;
  wf_error failure = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, TWO_PATHS), *out;
  wf_prune_options options;
  wf_prune_options_init(&options);
  for (int i = 0; i < 3; i++) {
    options.weight = (const float[]){0.25f, 0.5f, 1}[i];
    assert_int_equal(wf_prune(fst, &options, &out, &failure), WF_OK);
    example_expect_paths(out, i == 0 ? 1 : 2, two_paths, two_costs);
    wf_fst_free(out);
  }
  wf_fst_free(fst);
}

/* --- random tasks ------------------------------------------------------------------------- */

enum { max_found = 200000 };

typedef struct found_path {
  char key[160]; /* labels */
  double cost;
} found_path;

typedef struct enumeration {
  wf_fst_view view;
  double limit;
  bool strings; /* keys without epsilons, input side only */
  found_path *paths;
  size_t size, cap;
  uint8_t *arc_used, *final_used;
  uint8_t ends[64]; /* can this state reach a final one? */
  uint64_t stack[64];
} enumeration;

static void mark_ends(enumeration *e) {
  for (bool changed = true; changed;) {
    changed = false;
    for (uint64_t s = 0; s < e->view.num_states; s++) {
      bool ends = e->view.final_cost[s] != INFINITY;
      for (uint64_t i = e->view.arc_off[s]; i < e->view.arc_off[s + 1]; i++)
        ends = ends || e->ends[e->view.arcs[i].nextstate];
      changed = changed || ends != e->ends[s];
      e->ends[s] = ends;
    }
  }
}

static void record_path(enumeration *e, uint64_t state, int depth, double cost) {
  assert_true(e->size < max_found);
  if (e->size == e->cap) {
    e->cap = e->cap != 0 ? 2 * e->cap : 64;
    e->paths = realloc(e->paths, e->cap * sizeof *e->paths);
    assert_non_null(e->paths);
  }
  found_path *path = &e->paths[e->size++];
  size_t used = 0;
  path->cost = cost;
  path->key[0] = '\0';
  e->final_used[state] = 1;
  for (int i = 0; i < depth; i++) {
    const wf_arc *arc = &e->view.arcs[e->stack[i]];
    e->arc_used[e->stack[i]] = 1;
    if (e->strings && arc->ilabel == 0) continue;
    used += (size_t)snprintf(path->key + used, sizeof path->key - used,
                             e->strings ? "%d " : "%d:%d ", arc->ilabel, arc->olabel);
    assert_true(used < sizeof path->key);
  }
}

static void walk(enumeration *e, uint64_t state, int depth, double cost) {
  if (cost + (double)e->view.final_cost[state] <= e->limit)
    record_path(e, state, depth, cost + (double)e->view.final_cost[state]);
  for (uint64_t i = e->view.arc_off[state]; i < e->view.arc_off[state + 1]; i++) {
    if (cost + (double)e->view.arcs[i].weight > e->limit || !e->ends[e->view.arcs[i].nextstate])
      continue;
    assert_true(depth < 64);
    e->stack[depth] = i;
    walk(e, e->view.arcs[i].nextstate, depth + 1, cost + (double)e->view.arcs[i].weight);
  }
}

static int by_key(const void *a, const void *b) {
  const found_path *x = a, *y = b;
  int order = strcmp(x->key, y->key);
  return order != 0 ? order : (x->cost > y->cost) - (x->cost < y->cost);
}

static int by_cost(const void *a, const void *b) {
  const found_path *x = a, *y = b;
  return x->cost != y->cost ? (x->cost > y->cost) - (x->cost < y->cost) : strcmp(x->key, y->key);
}

/* All paths (or the best of each string) of cost <= limit, by cost. */
static enumeration enumerate(const wf_fst *fst, double limit, bool strings) {
  enumeration e = {.view = wf_fst_get_view(fst), .limit = limit, .strings = strings};
  e.arc_used = calloc(e.view.num_arcs + 1, 1);
  e.final_used = calloc(e.view.num_states + 1, 1);
  assert_true(e.arc_used != NULL && e.final_used != NULL);
  assert_true(e.view.num_states <= 64);
  mark_ends(&e);
  if (e.view.start >= 0) walk(&e, (uint64_t)e.view.start, 0, 0);
  if (strings && e.size > 0) {
    size_t kept = 0;
    qsort(e.paths, e.size, sizeof *e.paths, by_key);
    for (size_t i = 0; i < e.size; i++)
      if (kept == 0 || strcmp(e.paths[kept - 1].key, e.paths[i].key) != 0)
        e.paths[kept++] = e.paths[i];
    e.size = kept;
  }
  if (e.size > 0) qsort(e.paths, e.size, sizeof *e.paths, by_cost);
  return e;
}

/* Enumerates up to a cost that includes at least one path, if there is any. */
static enumeration enumerate_some(const wf_fst *fst) {
  for (double limit = 1;; limit *= 2) {
    enumeration e = enumerate(fst, limit, false);
    if (e.size > 0 || limit > 16) return e;
    free(e.paths);
    free(e.arc_used);
    free(e.final_used);
  }
}

static void enumeration_free(enumeration *e) {
  free(e->paths);
  free(e->arc_used);
  free(e->final_used);
}

/* The paths of an n-best result in the order of the start state's arcs; checks its shape. */
static size_t read_nbest(const wf_fst *fst, bool strings, found_path *out) {
  wf_fst_view view = wf_fst_get_view(fst);
  if (view.start < 0) return 0;
  assert_int_equal(view.start, 0);
  assert_true(view.final_cost[0] == INFINITY);
  for (uint64_t k = 0; k < view.arc_off[1]; k++) {
    const wf_arc *arc = &view.arcs[k];
    size_t used = 0;
    assert_true(arc->ilabel == 0 && arc->olabel == 0);
    out[k].cost = (double)arc->weight;
    out[k].key[0] = '\0';
    uint32_t s = arc->nextstate;
    for (; view.arc_off[s + 1] > view.arc_off[s]; s = arc->nextstate) {
      assert_int_equal(view.arc_off[s + 1] - view.arc_off[s], 1);
      assert_true(view.final_cost[s] == INFINITY);
      arc = &view.arcs[view.arc_off[s]];
      out[k].cost += (double)arc->weight;
      if (strings && arc->ilabel == 0) continue;
      used += (size_t)snprintf(out[k].key + used, sizeof out[k].key - used,
                               strings ? "%d " : "%d:%d ", arc->ilabel, arc->olabel);
      assert_true(used < sizeof out[k].key);
    }
    out[k].cost += (double)view.final_cost[s];
    if (k > 0) assert_true(out[k].cost >= out[k - 1].cost - 1e-5);
  }
  return view.arc_off[1];
}

/* Result `got` (shifted by `moved`) against all paths of the unshifted fst. */
static void check_nbest(const wf_fst *plain, found_path *got, size_t num_got, size_t n,
                        double moved, bool strings) {
  for (size_t i = 0; i < num_got; i++) got[i].cost -= moved;
  double last = num_got == n ? got[n - 1].cost : 17;
  enumeration all = enumerate(plain, last + 1e-4, strings);
  if (num_got < n) assert_int_equal(all.size, num_got); /* fewer only if there are no more */
  assert_true(all.size >= num_got);
  qsort(got, num_got, sizeof *got, by_cost);
  for (size_t i = 0; i < num_got; i++) assert_true(fabs(got[i].cost - all.paths[i].cost) < 1e-4);
  qsort(got, num_got, sizeof *got, by_key);
  if (all.size > 0) qsort(all.paths, all.size, sizeof *all.paths, by_key);
  size_t at = 0,
         below = 0; /* results are distinct paths, and every path below the last cost is present */
  for (size_t i = 0; i < num_got; i++, at++) {
    while (at < all.size && (strcmp(all.paths[at].key, got[i].key) != 0 ||
                             fabs(all.paths[at].cost - got[i].cost) > 1e-4))
      at++;
    if (at == all.size) fail_msg("'%s' at %g is no path", got[i].key, got[i].cost);
    below += got[i].cost < last - 1e-4;
  }
  for (size_t i = 0; i < all.size; i++) below -= all.paths[i].cost < last - 1e-4;
  assert_int_equal(below, 0);
  enumeration_free(&all);
}

static wf_fst *small_fst(test_rng *rng, int round, bool acceptor) {
  test_fst_shape shape = {.num_states = 1 + test_below(rng, 6),
                          .num_ilabels = 3,
                          .num_olabels = 2,
                          .epsilon_share = round % 2 ? 0.3f : 0,
                          .final_share = 0.3f,
                          .max_weight = round % 5 == 0 ? 0 : 2,
                          .acyclic = round % 4 == 0,
                          .acceptor = acceptor};
  shape.num_arcs = test_below(rng, 3 * shape.num_states);
  return test_random_fst(rng, &shape);
}

static void test_nbest(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {11};
  found_path *got = malloc(100 * sizeof *got);
  assert_non_null(got);
  int paths_seen = 0;
  for (int round = 0; round < 600; round++) {
    bool unique = round % 3 == 2;
    wf_fst *raw = small_fst(&rng, round, unique), *plain, *shifted, *best;
    double moved, none;
    plain = test_reweighted_fst(&rng, raw, 0.5f, false, &none);
    shifted = test_reweighted_fst(&rng, plain, 0, round % 8 >= 4, &moved);
    wf_shortest_path_options options;
    wf_shortest_path_options_init(&options);
    options.nshortest = (int32_t)(2 + test_below(&rng, 12));
    options.unique = unique;
    assert_ok(wf_shortest_path(shifted, &options, &best, &err));
    size_t num_got = read_nbest(best, unique, got);
    assert_true(num_got <= (size_t)options.nshortest);
    paths_seen += (int)num_got;
    check_nbest(plain, got, num_got, (size_t)options.nshortest, moved, unique);
    wf_fst *all[] = {raw, plain, shifted, best};
    for (size_t i = 0; i < 4; i++) wf_fst_free(all[i]);
  }
  assert_true(paths_seen > 1500);
  free(got);
}

static void test_one_best(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {12};
  for (int round = 0; round < 400; round++) {
    wf_fst *raw = small_fst(&rng, round, false), *plain, *shifted, *best;
    double moved, none;
    plain = test_reweighted_fst(&rng, raw, 0.5f, false, &none);
    shifted = test_reweighted_fst(&rng, plain, 0, round % 8 >= 4, &moved);
    assert_ok(wf_shortest_path(shifted, NULL, &best, &err));
    wf_fst_view view = wf_fst_get_view(best);
    enumeration all = enumerate_some(plain), one = enumerate(best, 1000, false);
    assert_int_equal(one.size, all.size != 0);
    if (one.size == 1) {
      assert_int_equal(view.num_arcs + 1, view.num_states);
      assert_true(wf_fst_properties(best) & WF_PROP_TOP_SORTED);
      assert_true(one.paths[0].cost - moved == all.paths[0].cost);
      bool real = false;
      for (size_t i = 0; i < all.size && !real; i++)
        real = all.paths[i].cost == all.paths[0].cost &&
               strcmp(all.paths[i].key, one.paths[0].key) == 0;
      assert_true(real);
    }
    enumeration_free(&all);
    enumeration_free(&one);
    wf_fst *fsts[] = {raw, plain, shifted, best};
    for (size_t i = 0; i < 4; i++) wf_fst_free(fsts[i]);
  }
}

/* Costs of an n-best result, OpenFst's or ours. */
static size_t nbest_costs(const wf_fst *fst, double *costs, size_t room) {
  wf_fst_view view = wf_fst_get_view(fst);
  size_t size = 0;
  for (uint64_t i = view.arc_off[view.start]; i < view.arc_off[view.start + 1]; i++) {
    double cost = (double)view.arcs[i].weight;
    uint32_t s = view.arcs[i].nextstate;
    for (; view.arc_off[s + 1] > view.arc_off[s]; s = view.arcs[view.arc_off[s]].nextstate)
      cost += (double)view.arcs[view.arc_off[s]].weight;
    assert_true(size < room);
    costs[size++] = cost + (double)view.final_cost[s];
  }
  return size;
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void test_openfst_nbest(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {13};
  for (int round = 0; round < 8; round++) {
    bool unique = round % 2 == 1;
    test_fst_shape shape = {.num_states = 2000,
                            .num_arcs = 20000,
                            .num_ilabels = unique ? 12 : 50,
                            .num_olabels = 50,
                            .epsilon_share = unique ? 0 : 0.2f,
                            .final_share = 0.02f,
                            .max_weight = round < 4 ? 10 : 900,
                            .acyclic = round % 4 < 2,
                            .acceptor = unique};
    wf_fst *fst = test_random_fst(&rng, &shape), *ours, *theirs;
    char input[600], output[600];
    snprintf(input, sizeof input, "%s", test_temp_path("in.fst"));
    snprintf(output, sizeof output, "%s", test_temp_path("out.fst"));
    assert_ok(wf_fst_write(fst, input, WF_FORMAT_OPENFST_VECTOR, &err));
    test_shell("fstshortestpath --nshortest=100 %s %s %s", unique ? "--unique" : "", input, output);
    assert_ok(wf_fst_read(output, &theirs, &err));
    wf_shortest_path_options options;
    wf_shortest_path_options_init(&options);
    options.nshortest = 100;
    options.unique = unique;
    assert_ok(wf_shortest_path(fst, &options, &ours, &err));
    double a[200], b[200];
    size_t num_a = nbest_costs(ours, a, 200), num_b = nbest_costs(theirs, b, 200);
    assert_int_equal(num_a, num_b);
    assert_int_equal(num_a, 100);
    qsort(b, num_b, sizeof *b, compare_doubles);
    for (size_t i = 0; i < num_a; i++) assert_true(fabs(a[i] - b[i]) < 1e-4 + 1e-5 * fabs(b[i]));
    wf_fst *all[] = {fst, ours, theirs};
    for (size_t i = 0; i < 3; i++) wf_fst_free(all[i]);
  }
}

/* Cycles of cost 0 give infinitely many paths of one cost. The n with the fewest arcs must be
 * found, in short time. */
static void test_cycles_of_cost_zero(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 0 1 1;0 1 2 2;1 1 3 3;1 0 4 4;1 0.5"), *best;
  wf_shortest_path_options options;
  wf_shortest_path_options_init(&options);
  for (int unique = 0; unique < 2; unique++) {
    found_path got[7];
    options.nshortest = 7;
    options.unique = unique == 1;
    assert_ok(wf_shortest_path(fst, &options, &best, &err));
    assert_int_equal(read_nbest(best, true, got), 7);
    for (int i = 0; i < 7; i++) assert_true(got[i].cost == 0.5);
    static const char *const shortest[] = {"2 ", "1 2 ",
                                           "2 3 "}; /* 1, 2, 2 arcs, then four paths of 3 arcs */
    assert_string_equal(got[0].key, shortest[0]);
    for (int i = 1; i < 3; i++)
      assert_true(strcmp(got[i].key, shortest[1]) == 0 || strcmp(got[i].key, shortest[2]) == 0);
    for (int i = 3; i < 7; i++) assert_int_equal(strlen(got[i].key), 6);
    wf_fst_free(best);
  }
  assert_ok(wf_shortest_path(fst, NULL, &best, &err));
  assert_int_equal(wf_fst_get_view(best).num_arcs, 1);
  wf_fst_free(best);
  wf_fst_free(fst);
}

static void expect(const char *text, int32_t n, bool unique, wf_semiring semiring,
                   wf_status expected) {
  wf_error err = {0};
  wf_fst *fst = test_fst_of(semiring, text), *best;
  wf_shortest_path_options options;
  wf_shortest_path_options_init(&options);
  options.nshortest = n;
  options.unique = unique;
  wf_status status = wf_shortest_path(fst, &options, &best, &err);
  if (status != expected) fail_msg("'%s': %s", text, err.message);
  assert_true((best == NULL) == (status != WF_OK));
  if (status != WF_OK) assert_true(err.message[0] != '\0');
  wf_fst_free(best);
  wf_fst_free(fst);
}

static void test_errors(void **state) {
  (void)state;
  const char *negative = "0 1 1 1;1 0 1 1 -0.5;1",
             *elsewhere = "0 1 1 1;0 2 1 1;2 2 1 1 -1;3 3 1 1 -1;3 1 1 1;1";
  for (int n = 1; n < 4; n++) {
    for (int unique = 0; unique < 2; unique++) {
      expect(negative, n, unique, WF_TROPICAL, WF_ERR_NEGATIVE_CYCLE);
      expect(elsewhere, n, unique, WF_TROPICAL,
             WF_OK); /* a dead end or an unreachable state does no harm */
      expect("0 1 1 1;1", n, unique, WF_LOG, WF_OK); /* the paths of the lowest cost */
      expect("0 1 1 1", n, unique, WF_TROPICAL, WF_OK);
      expect("0 1 1 1 inf;1", n, unique, WF_TROPICAL, WF_OK);
      expect("", n, unique, WF_TROPICAL, WF_OK);
      /* A cycle that is slightly negative because of float32 rounding. */
      expect("0 1 1 1 0.1;1 2 1 1 0.2;2 0 1 1 -0.30000005;1 3 0 0;3 0 0 0 -0.1000001;2", n, unique,
             WF_TROPICAL, WF_OK);
    }
  }
  expect("0 1 1 2;1", 2, true, WF_TROPICAL, WF_ERR_ARGUMENT);
  expect("0 1 1 2;1", 1, true, WF_TROPICAL, WF_OK); /* with one path there is one string */
  expect("0 1 1 1;1", 0, false, WF_TROPICAL, WF_ERR_ARGUMENT);
  wf_error err = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, negative), *out;
  assert_int_equal(wf_prune(fst, NULL, &out, &err), WF_ERR_NEGATIVE_CYCLE);
  wf_fst_free(fst);
  fst = test_fst_of(WF_LOG, "0 1 1 1;1");
  assert_int_equal(wf_prune(fst, NULL, &out, &err), WF_ERR_UNSUPPORTED);
  wf_fst_free(fst);
}

/* --- prune ------------------------------------------------------------------------------- */

/* The part of the fst that the enumeration visited. */
static wf_fst *used_part(const enumeration *e, const wf_fst_view *weights) {
  wf_error err = {0};
  const wf_fst_view *view = &e->view;
  uint32_t number[64], next = 0;
  wf_builder *builder;
  wf_fst *out;
  uint8_t used[64] = {0};
  for (uint64_t s = 0; s < view->num_states; s++) {
    used[s] |= e->final_used[s];
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      if (e->arc_used[i]) used[s] = used[view->arcs[i].nextstate] = 1;
  }
  for (uint64_t s = 0; s < view->num_states; s++) number[s] = used[s] ? next++ : UINT32_MAX;
  assert_ok(wf_builder_create(view->semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, next, NULL, &err));
  if (next > 0) assert_ok(wf_builder_set_start(builder, number[view->start], &err));
  for (uint64_t s = 0; s < view->num_states; s++) {
    if (e->final_used[s])
      assert_ok(wf_builder_set_final(builder, number[s], weights->final_cost[s], &err));
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      wf_arc arc = weights->arcs[i];
      arc.nextstate = number[arc.nextstate];
      if (e->arc_used[i]) assert_ok(wf_builder_add_arc(builder, number[s], arc, &err));
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

static void test_prune_small(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {14};
  int smaller = 0;
  for (int round = 0; round < 500; round++) {
    wf_fst *raw = small_fst(&rng, round, false), *plain, *shifted, *pruned;
    double moved, none;
    plain = test_reweighted_fst(&rng, raw, 0.5f, false, &none);
    shifted = test_reweighted_fst(&rng, plain, 0, round % 8 >= 4, &moved);
    wf_prune_options options;
    wf_prune_options_init(&options);
    options.weight = (float)test_below(&rng, 24) / 8;
    assert_ok(wf_prune(shifted, &options, &pruned, &err));
    enumeration all = enumerate_some(plain);
    double best = all.size > 0 ? all.paths[0].cost : 0;
    enumeration_free(&all);
    all = enumerate(plain, best + (double)options.weight, false);
    wf_fst_view weights = wf_fst_get_view(shifted);
    wf_fst *expected = used_part(&all, &weights);
    bool equal;
    assert_ok(wf_equal(expected, pruned, 0, &equal, &err));
    if (!equal) fail_msg("round %d: %s", round, err.message);
    smaller += wf_fst_get_view(pruned).num_arcs < wf_fst_get_view(raw).num_arcs &&
               wf_fst_get_view(pruned).num_arcs > 0;
    enumeration_free(&all);
    wf_fst *fsts[] = {raw, plain, shifted, pruned, expected};
    for (size_t i = 0; i < 5; i++) wf_fst_free(fsts[i]);
  }
  assert_true(smaller > 100);
}

static void test_prune_nstate(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {15};
  for (int round = 0; round < 300; round++) {
    test_fst_shape shape = {.num_states = 30,
                            .num_arcs = 70,
                            .num_ilabels = 3,
                            .num_olabels = 3,
                            .final_share = 0.1f,
                            .max_weight = round % 3 ? 3 : 0,
                            .acyclic = round % 2};
    wf_fst *fst = test_random_fst(&rng, &shape), *pruned, *best;
    assert_ok(wf_shortest_path(fst, NULL, &best, &err));
    uint64_t length = wf_fst_get_view(best).num_states;
    wf_prune_options options;
    wf_prune_options_init(&options);
    options.nstate = 1 + test_below(&rng, 20);
    assert_ok(wf_prune(fst, &options, &pruned, &err));
    wf_fst_view view = wf_fst_get_view(pruned);
    assert_true(view.num_states <= (uint64_t)options.nstate);
    assert_true((view.num_states >= length) ==
                (length <= (uint64_t)options.nstate)); /* the best path is included if it fits */
    assert_true((wf_fst_properties(pruned) & (WF_PROP_ACCESSIBLE | WF_PROP_COACCESSIBLE)) ==
                (WF_PROP_ACCESSIBLE | WF_PROP_COACCESSIBLE));
    if (view.num_states > 0) {
      wf_fst *again;
      bool equal;
      assert_ok(wf_shortest_path(pruned, NULL, &again, &err));
      enumeration one = enumerate(best, 1000, false), two = enumerate(again, 1000, false);
      equal = one.paths[0].cost == two.paths[0].cost;
      assert_true(equal);
      enumeration_free(&one);
      enumeration_free(&two);
      wf_fst_free(again);
    }
    wf_fst *fsts[] = {fst, pruned, best};
    for (size_t i = 0; i < 3; i++) wf_fst_free(fsts[i]);
  }
}

static void test_openfst_prune(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {16};
  for (int round = 0; round < 6; round++) {
    test_fst_shape shape = {.num_states = 3000,
                            .num_arcs = 30000,
                            .num_ilabels = 1000,
                            .num_olabels = 1000,
                            .epsilon_share = 0.1f,
                            .final_share = 0.02f,
                            .max_weight = 10,
                            .acyclic = round % 2};
    wf_fst *fst = test_random_fst(&rng, &shape), *ours;
    char input[600], pruned[600], mine[600];
    snprintf(input, sizeof input, "%s", test_temp_path("in.fst"));
    snprintf(pruned, sizeof pruned, "%s", test_temp_path("pruned.fst"));
    snprintf(mine, sizeof mine, "%s", test_temp_path("mine.fst"));
    wf_prune_options options;
    wf_prune_options_init(&options);
    options.weight =
        4.3f + (float)round * 1.1f; /* between multiples of 1/8, so that no path is at the limit */
    assert_ok(wf_fst_write(fst, input, WF_FORMAT_OPENFST_VECTOR, &err));
    assert_ok(wf_prune(fst, &options, &ours, &err));
    assert_ok(wf_fst_write(ours, mine, WF_FORMAT_OPENFST_VECTOR, &err));
    assert_true(wf_fst_get_view(ours).num_states > 10);
    test_shell("fstprune --weight=%.9g %s %s && fstisomorphic %s %s", (double)options.weight, input,
               pruned, pruned, mine);
    wf_fst_free(fst);
    wf_fst_free(ours);
  }
}

/* A chain of a million states with a cycle of cost 0: no recursion, no quadratic time. */
static void test_million_states(void **state) {
  (void)state;
  wf_error err = {0};
  const uint32_t n = 1000000;
  wf_builder *builder;
  wf_fst *fst, *out;
  for (int kind = 0; kind < 3; kind++) { /* acyclic; a cycle; a cycle and negative arcs */
    assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
    assert_ok(wf_builder_add_states(builder, n, NULL, &err));
    assert_ok(wf_builder_set_start(builder, 0, &err));
    for (uint32_t s = 0; s + 1 < n; s++)
      assert_ok(
          wf_builder_add_arc(builder, s, (wf_arc){s + 1, kind == 2 ? -0.5f : 0.5f, 1, 1}, &err));
    if (kind > 0) assert_ok(wf_builder_add_arc(builder, n - 1, (wf_arc){0, 600000, 1, 1}, &err));
    assert_ok(wf_builder_set_final(builder, n - 1, 1, &err));
    assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
    wf_builder_free(builder);
    wf_shortest_path_options options;
    wf_shortest_path_options_init(&options);
    for (options.nshortest = 1; options.nshortest < 3; options.nshortest++) {
      assert_ok(wf_shortest_path(fst, &options, &out, &err));
      assert_true(wf_fst_get_view(out).num_states >= n);
      wf_fst_free(out);
    }
    assert_ok(wf_prune(fst, NULL, &out, &err));
    assert_int_equal(wf_fst_get_view(out).num_states, n);
    wf_fst_free(out);
    wf_fst_free(fst);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_example_shortest_path),
                                     cmocka_unit_test(test_example_prune),
                                     cmocka_unit_test(test_one_best),
                                     cmocka_unit_test(test_nbest),
                                     cmocka_unit_test(test_openfst_nbest),
                                     cmocka_unit_test(test_cycles_of_cost_zero),
                                     cmocka_unit_test(test_errors),
                                     cmocka_unit_test(test_prune_small),
                                     cmocka_unit_test(test_prune_nstate),
                                     cmocka_unit_test(test_openfst_prune),
                                     cmocka_unit_test(test_million_states)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
