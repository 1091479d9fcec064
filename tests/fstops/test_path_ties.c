/* test_path_ties.c - which of several equally good paths comes first: the one with the fewest arcs;
 * then, compared from the end, the lowest final state, the lowest arc number, and so on.
 *
 * First an example for each part of the rule. Then random fsts.
 *
 * Weights are small integers, so ties are frequent and sums are exact. The oracle lists all paths
 * up to a cost and sorts them by the rule. */
#include "example.h"
#include "testing.h"

/* --- examples by hand -------------------------------------------------------------------- */

static void expect_first(const char *text, const char *pair, double cost) {
  wf_error err = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, text), *out;
  assert_ok(wf_shortest_path(fst, NULL, &out, &err));
  example_expect_paths(out, 1, &pair, &cost);
  wf_fst_free(fst);
  wf_fst_free(out);
}

/* "1 2" and "3" cost 2 each: fewest arcs.
 *
 *      1/1      2/1
 *   (0) --> (1) --> ((2))
 *      \-----------/
 *           3/2             */
static void test_example_fewest_arcs(void **state) {
  (void)state;
  expect_first("0 1 1 1 1\n1 2 2 2 1\n0 2 3 3 2\n2\n", "3 : 3", 2);
}

/* As many arcs, two final states: the lowest final state wins, although its arc comes later. */
static void test_example_lowest_final_state(void **state) {
  (void)state;
  expect_first("0 2 4 4 1\n0 1 5 5 1\n1\n2\n", "5 : 5", 1);
}

/* Two arcs between the same states: the lowest arc number wins, which is the first in the file. */
static void test_example_lowest_arc(void **state) {
  (void)state;
  expect_first("0 1 5 5 1\n0 1 4 4 1\n1\n", "5 : 5", 1);
}

/* --- random tasks ------------------------------------------------------------------------- */

enum { MAX_ARCS = 24, MAX_PATHS = 100000, MOST_POTENTIAL = 3 };

struct path {
  int cost, length;
  int32_t from_end[MAX_ARCS + 1]; /* final state, then arc numbers; with `strings`: labels */
};

struct oracle {
  wf_fst_view view;
  int limit;
  bool strings;
  struct path *paths;
  size_t count;
  uint64_t stack[MAX_ARCS];
};

static void keep_path(struct oracle *o, uint64_t state, int depth, int cost) {
  struct path *path = &o->paths[o->count];
  int skipped = o->strings ? 0 : 1;
  assert_true(o->count < MAX_PATHS);
  memset(path, 0, sizeof *path);
  path->cost = cost + (int)o->view.final_cost[state];
  path->length = depth;
  path->from_end[0] = (int32_t)state;
  for (int k = 0; k < depth; k++) {
    uint64_t arc = o->stack[depth - 1 - k];
    path->from_end[skipped + k] = o->strings ? o->view.arcs[arc].ilabel : (int32_t)arc;
  }
  if (o->strings && depth == 0) path->from_end[0] = 0;
  o->count += path->cost <= o->limit;
}

static void walk(struct oracle *o, uint64_t state, int depth, int cost) {
  if (cost > o->limit + MOST_POTENTIAL)
    return; /* the rest of a path can reduce the cost by at most this much */
  if (o->view.final_cost[state] != INFINITY) keep_path(o, state, depth, cost);
  for (uint64_t i = o->view.arc_off[state]; i < o->view.arc_off[state + 1]; i++) {
    assert_true(depth < MAX_ARCS);
    o->stack[depth] = i;
    walk(o, o->view.arcs[i].nextstate, depth + 1, cost + (int)o->view.arcs[i].weight);
  }
}

static int by_rule(const void *a, const void *b) {
  const struct path *x = a, *y = b;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  if (x->length != y->length) return x->length < y->length ? -1 : 1;
  for (int k = 0; k <= x->length; k++)
    if (x->from_end[k] != y->from_end[k]) return x->from_end[k] < y->from_end[k] ? -1 : 1;
  return 0;
}

static void oracle_init(struct oracle *o, const wf_fst *fst, bool strings) {
  *o = (struct oracle){.view = wf_fst_get_view(fst),
                       .limit = 3,
                       .strings = strings,
                       .paths = calloc(MAX_PATHS, sizeof *o->paths)};
  assert_non_null(o->paths);
  walk(o, (uint64_t)o->view.start, 0, 0);
  qsort(o->paths, o->count, sizeof *o->paths, by_rule);
  size_t kept = 0;
  for (size_t i = 0; strings && i < o->count; i++) { /* a string counts once, at its best cost */
    bool seen = false;
    for (size_t k = 0; k < kept && !seen; k++)
      seen = o->paths[k].length == o->paths[i].length &&
             memcmp(o->paths[k].from_end, o->paths[i].from_end, sizeof o->paths[k].from_end) == 0;
    if (!seen) o->paths[kept++] = o->paths[i];
  }
  if (strings) o->count = kept;
}

/* Output labels are the numbers of the arcs. `shift`: potentials make some weights negative but
 * change every path's cost by the same amount. Cycles cost at least 1. */
static wf_fst *random_fst(test_rng *rng, bool acyclic, bool strings, bool shift) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *fst;
  uint32_t n = 1 + test_below(rng, acyclic ? 7 : 4),
           num_arcs = acyclic && n == 1 ? 0 : test_below(rng, acyclic ? 14 : 5);
  uint32_t source[14] = {0};
  float potential[7];
  for (uint32_t s = 0; s < n; s++)
    potential[s] = shift ? (float)test_below(rng, MOST_POTENTIAL + 1) : 0;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, n, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  for (uint32_t s = 0; s < n; s++)
    if (s + 1 == n || test_below(rng, 3) == 0)
      assert_ok(wf_builder_set_final(builder, s, (float)test_below(rng, 2) - potential[s], &err));
  for (uint32_t i = 0; i < num_arcs; i++) source[i] = test_below(rng, acyclic ? n - 1 : n);
  for (uint32_t s = 0, number = 0; s < n; s++) {
    for (uint32_t i = 0; i < num_arcs; i++) {
      if (source[i] != s) continue;
      uint32_t to = acyclic ? s + 1 + test_below(rng, n - s - 1) : test_below(rng, n);
      float weight = (float)(test_below(rng, 2) + (acyclic ? 0 : 1)) + potential[to] - potential[s];
      int32_t label = 1 + (int32_t)test_below(rng, 2);
      assert_ok(wf_builder_add_arc(
          builder, s, (wf_arc){to, weight, label, strings ? label : 1 + (int32_t)number}, &err));
      number++;
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  return fst;
}

/* Follows the path from `state`. Its labels must be those of `want`. */
static void check_path(const wf_fst_view *view, uint32_t state, double cost,
                       const struct path *want, bool strings) {
  for (int k = 0; k < want->length; k++) {
    assert_int_equal(view->arc_off[state + 1] - view->arc_off[state], 1);
    const wf_arc *arc = &view->arcs[view->arc_off[state]];
    assert_int_equal(arc->olabel, strings ? want->from_end[want->length - 1 - k]
                                          : want->from_end[want->length - k] + 1);
    cost += (double)arc->weight;
    state = arc->nextstate;
  }
  assert_int_equal(view->arc_off[state + 1], view->arc_off[state]);
  assert_true(cost + (double)view->final_cost[state] == (double)want->cost);
}

static void check_all(const wf_fst *fst, const struct oracle *o) {
  wf_error err = {0};
  wf_shortest_path_options options;
  wf_shortest_path_options_init(&options);
  options.unique = o->strings;
  for (options.nshortest = 1; options.nshortest <= 40;
       options.nshortest = options.nshortest * 3 - 1) {
    wf_fst *best;
    size_t n = (size_t)options.nshortest;
    assert_ok(wf_shortest_path(fst, &options, &best, &err));
    wf_fst_view view = wf_fst_get_view(best);
    if (n == 1 && o->count > 0 && !o->strings)
      check_path(&view, (uint32_t)view.start, 0, &o->paths[0], false);
    if (n > 1 && o->count > 0) { /* otherwise all costs may be above the oracle's limit */
      assert_true(view.arc_off[1] >= (o->count < n ? o->count : n));
      for (size_t k = 0; k < n && k < o->count; k++)
        check_path(&view, view.arcs[k].nextstate, (double)view.arcs[k].weight, &o->paths[k],
                   o->strings);
    }
    wf_fst_free(best);
  }
}

static void test_random_against_rule(void **state) {
  (void)state;
  test_rng rng = {5};
  size_t compared = 0, ties = 0;
  for (uint64_t round = 0; round < test_seeds(3000); round++) {
    bool acyclic = round % 3 != 0, strings = round % 4 == 3;
    struct oracle o;
    wf_fst *fst = random_fst(&rng, acyclic, strings, round % 2 != 0);
    oracle_init(&o, fst, strings);
    check_all(fst, &o);
    compared += o.count;
    for (size_t i = 1; i < o.count; i++) ties += o.paths[i].cost == o.paths[i - 1].cost;
    free(o.paths);
    wf_fst_free(fst);
  }
  assert_true(test_many(compared, 10000, 3000) && test_many(ties, 5000, 3000));
}

/* 0 -> 2 -> 5 and 0 -> 4 -> 5 cost the same: the last arc of the first has the lower number. */
static void test_lower_last_arc_wins(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *path, *fst = test_fst_of(WF_TROPICAL,
                                   "0 2 4 1 .25;0 4 3 2 .25;0 5 1 1 1;1 4 2 3 4;1 4 2 0 2;1 2 4 4 "
                                   "1.75;2 5 2 0 .5;3 2 1 1 3.5;4 5 1 2 .5;0 2;5 .5");
  assert_ok(wf_shortest_path(fst, NULL, &path, &err));
  wf_fst_view view = wf_fst_get_view(path);
  assert_int_equal(view.num_arcs, 2);
  assert_int_equal(view.arcs[0].ilabel, 4);
  assert_int_equal(view.arcs[1].ilabel, 2);
  wf_fst_free(path);
  wf_fst_free(fst);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_example_fewest_arcs), cmocka_unit_test(test_example_lowest_final_state),
      cmocka_unit_test(test_example_lowest_arc), cmocka_unit_test(test_random_against_rule),
      cmocka_unit_test(test_lower_last_arc_wins)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
