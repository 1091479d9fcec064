/* test_compose.c - composition: x:z for every x:y of the first fst and y:z of the second, at the
 * sum of their costs.
 *
 * First examples by hand. Then random fsts against the definition (all pairs of paths), and state
 * by state against OpenFst's fstcompose. */
#include "example.h"
#include "testing.h"

/* --- examples by hand -------------------------------------------------------------------- */

static void expect_composition(const char *a, const char *b, size_t count, const char *const *pairs,
                               const double *costs) {
  wf_error err = {0};
  wf_fst *x = test_fst_of(WF_TROPICAL, a), *y = test_fst_of(WF_TROPICAL, b), *out;
  assert_ok(wf_compose(x, y, NULL, &out, &err));
  example_expect_paths(out, count, pairs, costs);
  wf_fst_free(x);
  wf_fst_free(y);
  wf_fst_free(out);
}

/*       1:2/0.5                  2:3/1                       1:3/1.5
 *   (0) -------> ((1))/0.25  o   (0) -------> ((1))/0.125  =  (0) -------> ((1))/0.375   */
static void test_example_one_arc(void **state) {
  (void)state;
  expect_composition("0 1 1 2 0.5\n1 0.25\n", "0 1 2 3 1\n1 0.125\n", 1,
                     (const char *const[]){"1 : 3"}, (const double[]){1.875});
}

/* An arc of the first fst without output moves alone while the second fst waits, and an arc of the
 * second fst without input moves alone while the first waits. Input "1 2" has output 5 in the first
 * fst, and the second maps 5 to "7 8". */
static void test_example_epsilons(void **state) {
  (void)state;
  expect_composition("0 1 1 0 0.5\n1 2 2 5\n2\n", "0 1 5 7 0.25\n1 2 0 8\n2\n", 1,
                     (const char *const[]){"1 2 : 7 8"}, (const double[]){0.75});
}

/* Every arc with output y matches every arc with input y: two times two paths. */
static void test_example_all_pairs(void **state) {
  (void)state;
  expect_composition("0 1 1 5 1\n0 1 2 5 2\n1\n", "0 1 5 3 0.25\n0 1 5 4 0.5\n1\n", 4,
                     (const char *const[]){"1 : 3", "1 : 4", "2 : 3", "2 : 4"},
                     (const double[]){1.25, 1.5, 2.25, 2.5});
}

/* --- random tasks ------------------------------------------------------------------------- */

enum { SEQUENCE = 1, ALT_SEQUENCE, MATCH, NO_MATCH, TRIVIAL, NULL_FILTER, NUM_FILTERS };
static const char *const filter_names[] = {"auto",     "sequence", "alt_sequence", "match",
                                           "no_match", "trivial",  "null"};

static wf_fst *compose(const wf_fst *a, const wf_fst *b, int filter, bool connect) {
  wf_error err = {0};
  wf_compose_options options;
  wf_compose_options_init(&options);
  options.filter = filter;
  options.connect = connect;
  wf_fst *out;
  assert_ok(wf_compose(a, b, &options, &out, &err));
  return out;
}

/* Fails unless both fsts have the same arrays. */
static void assert_identical(const wf_fst *x, const wf_fst *y, const char *what) {
  wf_fst_view a = wf_fst_get_view(x), b = wf_fst_get_view(y);
  if (a.num_states != b.num_states || a.num_arcs != b.num_arcs || a.start != b.start)
    fail_msg("%s: %llu states, %llu arcs, start %lld against %llu, %llu, %lld", what,
             (unsigned long long)a.num_states, (unsigned long long)a.num_arcs, (long long)a.start,
             (unsigned long long)b.num_states, (unsigned long long)b.num_arcs, (long long)b.start);
  for (uint64_t s = 0; s < a.num_states; s++) {
    if (a.final_cost[s] != b.final_cost[s])
      fail_msg("%s: final cost of state %llu: %g against %g", what, (unsigned long long)s,
               a.final_cost[s], b.final_cost[s]);
    if (a.arc_off[s + 1] != b.arc_off[s + 1])
      fail_msg("%s: arcs of state %llu", what, (unsigned long long)s);
  }
  for (uint64_t i = 0; i < a.num_arcs; i++) {
    const wf_arc *p = &a.arcs[i], *q = &b.arcs[i];
    if (p->nextstate != q->nextstate || p->weight != q->weight || p->ilabel != q->ilabel ||
        p->olabel != q->olabel)
      fail_msg("%s: arc %llu: %d:%d/%g -> %u against %d:%d/%g -> %u", what, (unsigned long long)i,
               p->ilabel, p->olabel, p->weight, p->nextstate, q->ilabel, q->olabel, q->weight,
               q->nextstate);
  }
}

/* --- the definition: every pair of successful paths -------------------------------------- */

enum { MAX_PATH = 12, MAX_PATHS = 4000 };

struct path {
  int size;
  int32_t in[MAX_PATH], out[MAX_PATH]; /* with epsilons */
  double cost;
};

struct paths {
  size_t size;
  struct path items[MAX_PATHS];
};

static void walk(const wf_fst_view *view, uint64_t state, struct path *path, struct paths *out) {
  if (view->final_cost[state] != INFINITY) {
    assert_true(out->size < MAX_PATHS);
    out->items[out->size] = *path;
    out->items[out->size++].cost += (double)view->final_cost[state];
  }
  for (uint64_t i = view->arc_off[state]; i < view->arc_off[state + 1]; i++) {
    const wf_arc *arc = &view->arcs[i];
    assert_true(path->size < MAX_PATH);
    path->in[path->size] = arc->ilabel;
    path->out[path->size++] = arc->olabel;
    path->cost += (double)arc->weight;
    walk(view, arc->nextstate, path, out);
    path->cost -= (double)arc->weight;
    path->size--;
  }
}

/* Number of ways to interleave m epsilons of one side with n of the other. It is 1 for the filters
 * that choose one way. It is binomial(m + n, n) if epsilons move one at a time, a Delannoy number
 * if they may also move together. The null filter matches epsilons only with each other, as
 * symbols. */
static double ways(int filter, int m, int n) {
  if (filter == NULL_FILTER) return m == n;
  if (filter != NO_MATCH && filter != TRIVIAL) return 1;
  if (m == 0 || n == 0) return 1;
  return ways(filter, m - 1, n) + ways(filter, m, n - 1) +
         (filter == TRIVIAL ? ways(filter, m - 1, n - 1) : 0);
}

static int epsilons_from(const int32_t *labels, int size, int *at) {
  int count = 0;
  for (; *at < size && labels[*at] == 0; ++*at) count++;
  return count;
}

/* Number of ways in which two paths compose; 0 if their strings differ. */
static double meetings(const struct path *a, const struct path *b, int filter) {
  double count = 1;
  for (int i = 0, j = 0;; i++, j++) {
    int m = epsilons_from(a->out, a->size, &i), n = epsilons_from(b->in, b->size, &j);
    count *= ways(filter, m, n);
    if (i == a->size || j == b->size) return i == a->size && j == b->size ? count : 0;
    if (a->out[i] != b->in[j]) return 0;
  }
}

static int compare_pairs(const void *x, const void *y) {
  return strcmp(((const test_pair *)x)->key, ((const test_pair *)y)->key);
}

static double log_add(double a, double b) {
  return a < b ? a - log1p(exp(a - b)) : b - log1p(exp(b - a));
}

static test_relation expected(const struct paths *a, const struct paths *b, int filter,
                              wf_semiring semiring) {
  test_relation out = {.pairs = malloc(sizeof(test_pair) * (a->size * b->size + 1))};
  assert_non_null(out.pairs);
  for (size_t i = 0; i < a->size; i++) {
    for (size_t j = 0; j < b->size; j++) {
      const struct path *x = &a->items[i], *y = &b->items[j];
      double count = meetings(x, y, filter);
      if (count == 0) continue;
      char key[512];
      size_t used = 0;
      for (int k = 0; k < x->size; k++)
        if (x->in[k] != 0) used += (size_t)snprintf(key + used, sizeof key - used, "%d ", x->in[k]);
      used += (size_t)snprintf(key + used, sizeof key - used, ": ");
      for (int k = 0; k < y->size; k++)
        if (y->out[k] != 0)
          used += (size_t)snprintf(key + used, sizeof key - used, "%d ", y->out[k]);
      double cost = x->cost + y->cost - (semiring == WF_LOG ? log(count) : 0);
      out.pairs[out.size++] = (test_pair){strdup(key), cost};
    }
  }
  qsort(out.pairs, out.size, sizeof *out.pairs, compare_pairs);
  size_t kept = 0;
  for (size_t i = 0; i < out.size; i++) {
    if (kept == 0 || strcmp(out.pairs[kept - 1].key, out.pairs[i].key) != 0) {
      out.pairs[kept++] = out.pairs[i];
      continue;
    }
    double *cost = &out.pairs[kept - 1].cost;
    *cost = semiring == WF_LOG ? log_add(*cost, out.pairs[i].cost) : fmin(*cost, out.pairs[i].cost);
    free(out.pairs[i].key);
  }
  out.size = kept;
  return out;
}

static struct paths *paths_of(const wf_fst *fst) {
  struct paths *out = calloc(1, sizeof *out);
  assert_non_null(out);
  wf_fst_view view = wf_fst_get_view(fst);
  struct path path = {0};
  walk(&view, (uint64_t)view.start, &path, out);
  return out;
}

static test_fst_shape small_shape(test_rng *rng) {
  static const float epsilons[] = {0, 0.3f, 0.6f};
  return (test_fst_shape){.num_states = 2 + test_below(rng, 5),
                          .num_arcs = 3 + test_below(rng, 9),
                          .num_ilabels = 1 + (int32_t)test_below(rng, 3),
                          .num_olabels = 1 + (int32_t)test_below(rng, 3),
                          .epsilon_share = epsilons[test_below(rng, 3)],
                          .final_share = 0.3f,
                          .max_weight = 4,
                          .acyclic = true,
                          .semiring = test_below(rng, 2) ? WF_LOG : WF_TROPICAL};
}

static void test_definition(void **state) {
  (void)state;
  test_rng rng = {11};
  size_t nonempty = 0, with_ways = 0;
  for (int round = 0; round < 400; round++) {
    test_fst_shape shape = small_shape(&rng), other = small_shape(&rng);
    other.semiring = shape.semiring;
    wf_fst *a = test_random_fst(&rng, &shape), *b = test_random_fst(&rng, &other);
    struct paths *a_paths = paths_of(a), *b_paths = paths_of(b);
    double seen[NUM_FILTERS] = {0};
    for (int filter = 0; filter < NUM_FILTERS; filter++) {
      test_relation want = expected(a_paths, b_paths, filter, shape.semiring);
      wf_fst *all = compose(a, b, filter, false), *trimmed = compose(a, b, filter, true);
      test_relation got = test_enumerate(all, 30, 2000000),
                    got_trimmed = test_enumerate(trimmed, 30, 2000000);
      test_assert_same_relation(&want, &got, 1e-4);
      test_assert_same_relation(&want, &got_trimmed, 1e-4);
      assert_true((wf_fst_get_view(trimmed).start < 0) == (want.size == 0));
      assert_true(test_is_trimmed(trimmed));
      for (size_t i = 0; i < want.size; i++) seen[filter] += want.pairs[i].cost;
      nonempty += want.size != 0;
      test_relation_free(&want);
      test_relation_free(&got);
      test_relation_free(&got_trimmed);
      wf_fst_free(all);
      wf_fst_free(trimmed);
    }
    with_ways += fabs(seen[TRIVIAL] - seen[SEQUENCE]) > 1e-3;
    free(a_paths);
    free(b_paths);
    wf_fst_free(a);
    wf_fst_free(b);
  }
  assert_true(nonempty > 700);
  assert_true(with_ways > 25); /* the cases distinguish the filters */
}

/* Two epsilons against two give 13, 6 or 1 paths (log semiring). */
static void test_number_of_paths(void **state) {
  (void)state;
  static const double counts[] = {1, 1, 1, 1, 6, 13, 1};
  wf_fst *a = test_fst_of(WF_LOG, "0 1 1 0;1 2 2 0;2"),
         *b = test_fst_of(WF_LOG, "0 1 0 3;1 2 0 4;2");
  for (int filter = 0; filter < NUM_FILTERS; filter++) {
    wf_fst *c = compose(a, b, filter, true);
    test_relation got = test_enumerate(c, 10, 100);
    assert_int_equal(got.size, 1);
    assert_true(fabs(got.pairs[0].cost + log(counts[filter])) < 1e-6);
    test_relation_free(&got);
    wf_fst_free(c);
  }
  wf_fst_free(a);
  wf_fst_free(b);
}

/* --- against OpenFst --------------------------------------------------------------------- */

static wf_fst *read_fst(const char *name) {
  wf_error err = {0};
  wf_fst *fst;
  assert_ok(wf_fst_read(test_temp_path(name), &fst, &err));
  return fst;
}

static void write_fst(const wf_fst *fst, const char *name) {
  wf_error err = {0};
  assert_ok(wf_fst_write(fst, test_temp_path(name), WF_FORMAT_OPENFST_VECTOR, &err));
}

static void compare_with_openfst(test_rng *rng, const test_fst_shape *shape,
                                 const test_fst_shape *other) {
  wf_error err = {0};
  wf_fst *a = test_random_fst(rng, shape), *b = test_random_fst(rng, other);
  write_fst(a, "a.fst");
  write_fst(b, "b.fst");
  char folder[512];
  snprintf(folder, sizeof folder, "%s", test_temp_path("a.fst"));
  *strrchr(folder, '/') = '\0';
  test_shell(
      "cd %s && fstarcsort --sort_type=olabel a.fst as.fst && fstarcsort --sort_type=ilabel b.fst "
      "bs.fst && "
      "for f in auto sequence alt_sequence match no_match trivial null; do for c in true false; do "
      "fstcompose --compose_filter=$f --connect=$c as.fst bs.fst $f.$c.fst || exit 1; done; done",
      folder);
  wf_fst *as = read_fst("as.fst"), *bs = read_fst("bs.fst");
  for (int filter = 0; filter < NUM_FILTERS; filter++) {
    for (int connect = 0; connect < 2; connect++) {
      char name[64];
      snprintf(name, sizeof name, "%s.%s.fst", filter_names[filter], connect ? "true" : "false");
      wf_fst *want = read_fst(name), *got = compose(as, bs, filter, connect);
      assert_identical(got, want, name);
      wf_fst_free(want);
      wf_fst_free(got);
    }
  }
  /* Sorting within composition gives the same result as sorting before it. */
  wf_arcsort_options by;
  wf_arcsort_options_init(&by);
  wf_fst *sorted_b, *sorted_a;
  assert_ok(wf_arcsort(b, &by, &sorted_b, &err));
  by.sort_type = 1;
  assert_ok(wf_arcsort(a, &by, &sorted_a, &err));
  wf_fst *inside = compose(a, b, MATCH, true), *outside = compose(sorted_a, sorted_b, MATCH, true);
  assert_identical(inside, outside, "sorted inside");
  wf_fst *all[] = {a, b, as, bs, sorted_a, sorted_b, inside, outside};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) wf_fst_free(all[i]);
}

static void test_openfst_small(void **state) {
  (void)state;
  test_rng rng = {5};
  for (int round = 0; round < 20; round++) {
    test_fst_shape shape = small_shape(&rng), other = small_shape(&rng);
    shape.acyclic = other.acyclic = false;
    other.semiring = shape.semiring;
    compare_with_openfst(&rng, &shape, &other);
  }
}

/* States with many arcs, large and small alphabets (so that index, bisection and merging all
 * occur), and tens of thousands of triples (so that the table grows and becomes a plain array). */
static void test_openfst_large(void **state) {
  (void)state;
  test_rng rng = {6};
  test_fst_shape many = {.num_states = 300,
                         .num_arcs = 1500,
                         .num_ilabels = 30,
                         .num_olabels = 12,
                         .epsilon_share = 0.1f,
                         .final_share = 0.02f,
                         .max_weight = 9};
  test_fst_shape hub = {.num_states = 40,
                        .num_arcs = 6000,
                        .num_ilabels = 2000,
                        .num_olabels = 90,
                        .epsilon_share = 0.01f,
                        .final_share = 0.05f,
                        .max_weight = 9};
  test_fst_shape sparse = {.num_states = 500,
                           .num_arcs = 1200,
                           .num_ilabels = 90,
                           .num_olabels = 2000,
                           .epsilon_share = 0.3f,
                           .final_share = 0.01f,
                           .max_weight = 9};
  test_fst_shape narrow = {.num_states = 90,
                           .num_arcs = 400,
                           .num_ilabels = 12,
                           .num_olabels = 30,
                           .epsilon_share = 0.2f,
                           .final_share = 0.05f,
                           .max_weight = 9};
  compare_with_openfst(&rng, &many, &narrow);
  compare_with_openfst(&rng, &narrow, &many);
  compare_with_openfst(&rng, &sparse, &hub);
  compare_with_openfst(&rng, &hub, &sparse);
}

/* --- failure arcs ------------------------------------------------------------------------ */

enum { PHI = 9, NUM_LABELS = 3 };

/* Spells out the meaning of failure arcs: for each state and label, the arcs of the first state
 * along the failure arcs that has arcs with that label. */
static wf_fst *spell_out(const wf_fst *fst, bool phi_final) {
  wf_error err = {0};
  wf_fst_view view = wf_fst_get_view(fst);
  wf_builder *builder;
  assert_ok(wf_builder_create(view.semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, (uint32_t)view.start, &err));
  for (uint32_t s = 0; s < view.num_states; s++) {
    for (int32_t label = -1; label <= NUM_LABELS;
         label++) { /* -1 stands for the end of the string */
      float cost = 0;
      for (uint64_t at = s;;) {
        const wf_arc *failure = NULL;
        bool found = false;
        for (uint64_t i = view.arc_off[at]; i < view.arc_off[at + 1]; i++) {
          wf_arc arc = view.arcs[i];
          if (arc.ilabel == PHI) failure = &view.arcs[i];
          if (arc.ilabel != label) continue;
          found = true;
          arc.weight += cost;
          assert_ok(wf_builder_add_arc(builder, s, arc, &err));
        }
        if (label == -1 && view.final_cost[at] != INFINITY) {
          found = true;
          assert_ok(wf_builder_set_final(builder, s, view.final_cost[at] + cost, &err));
        }
        if (found || label == 0 || failure == NULL || (label == -1 && !phi_final)) break;
        cost += failure->weight;
        at = failure->nextstate;
      }
    }
  }
  wf_fst *out;
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

/* An acyclic fst in which some states have a failure arc to a larger state, at any position among
 * their arcs. */
static wf_fst *random_with_failures(test_rng *rng, const test_fst_shape *shape) {
  wf_error err = {0};
  wf_fst *plain = test_random_fst(rng, shape), *out;
  wf_fst_view view = wf_fst_get_view(plain);
  wf_builder *builder;
  assert_ok(wf_builder_create(view.semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, (uint32_t)view.start, &err));
  for (uint32_t s = 0; s < view.num_states; s++) {
    if (s + 1 < view.num_states && test_below(rng, 3) != 0) {
      uint32_t to = s + 1 + test_below(rng, (uint32_t)view.num_states - s - 1);
      assert_ok(wf_builder_add_arc(builder, s,
                                   (wf_arc){.nextstate = to,
                                            .weight = 0.25f * (float)test_below(rng, 9),
                                            .ilabel = PHI,
                                            .olabel = test_below(rng, 2) ? PHI : 0},
                                   &err));
    }
    for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++)
      assert_ok(wf_builder_add_arc(builder, s, view.arcs[i], &err));
    if (view.final_cost[s] != INFINITY)
      assert_ok(wf_builder_set_final(builder, s, view.final_cost[s], &err));
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  wf_fst_free(plain);
  return out;
}

static void test_failure_arcs(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {21};
  size_t nonempty = 0, finals_matter = 0;
  for (int round = 0; round < 300; round++) {
    test_fst_shape shape = small_shape(&rng), other = small_shape(&rng);
    other.semiring = shape.semiring;
    other.num_ilabels = shape.num_olabels = NUM_LABELS;
    wf_fst *a = test_random_fst(&rng, &shape), *b = random_with_failures(&rng, &other);
    struct paths *a_paths = paths_of(a);
    size_t sizes[2] = {0};
    for (int phi_final = 0; phi_final < 2; phi_final++) {
      wf_fst *plain = spell_out(b, phi_final), *c;
      struct paths *b_paths = paths_of(plain);
      for (int filter = 0; filter < NUM_FILTERS; filter++) {
        wf_compose_options options;
        wf_compose_options_init(&options);
        options.filter = filter;
        options.phi_label = PHI;
        options.phi_final = phi_final;
        assert_ok(wf_compose(a, b, &options, &c, &err));
        test_relation want = expected(a_paths, b_paths, filter, shape.semiring),
                      got = test_enumerate(c, 40, 2000000);
        test_assert_same_relation(&want, &got, 1e-4);
        sizes[phi_final] += want.size;
        test_relation_free(&want);
        test_relation_free(&got);
        wf_fst_free(c);
      }
      free(b_paths);
      wf_fst_free(plain);
    }
    nonempty += sizes[0] != 0;
    finals_matter += sizes[0] != sizes[1];
    free(a_paths);
    wf_fst_free(a);
    wf_fst_free(b);
  }
  assert_true(nonempty > 100);
  assert_true(finals_matter > 30);
}

/* --- errors and limits ------------------------------------------------------------------- */

static void expect(const char *a_text, const char *b_text, int32_t phi_label, int64_t max_states,
                   wf_status want, const char *message) {
  wf_error err = {0};
  wf_fst *a = test_fst_of(WF_TROPICAL, a_text), *b = test_fst_of(WF_TROPICAL, b_text), *c;
  wf_compose_options options;
  wf_compose_options_init(&options);
  options.phi_label = phi_label;
  options.max_states = max_states;
  assert_int_equal(wf_compose(a, b, &options, &c, &err), want);
  if (want != WF_OK) assert_null(c);
  if (want != WF_OK && strstr(err.message, message) == NULL)
    fail_msg("'%s' lacks '%s'", err.message, message);
  wf_fst_free(a);
  wf_fst_free(b);
  wf_fst_free(c);
}

static void test_errors(void **state) {
  (void)state;
  wf_error err = {0};
  const char *loop = "0 0 1 1 1;0", *chain = "0 1 1 1;1 2 1 1;2 3 1 1;3";
  expect(loop, chain, 0, 4, WF_OK, "");
  expect(loop, chain, 0, 3, WF_ERR_LIMIT, "more than 3 states");
  expect(loop, "0 0 9 0 1;0", 9, 0, WF_ERR_ARGUMENT, "cycle of failure arcs");
  expect(loop, "0 1 9 0 1;1 2 9 0;2 0 9 9;0", 9, 0, WF_ERR_ARGUMENT, "cycle of failure arcs");
  expect(loop, "0 1 9 0 1;0 1 9 0 2;1", 9, 0, WF_ERR_ARGUMENT, "2 failure arcs");
  expect(loop, "0 1 9 3 1;1", 9, 0, WF_ERR_ARGUMENT, "output label 3");
  expect("0 0 1 9;0", "0 1 9 0 1;1", 9, 0, WF_ERR_ARGUMENT, "output side");
  expect(loop, "0 1 9 0 1;1 2 9 0;2 1 1 1;2", 9, 0, WF_OK, "");
  wf_fst *a = test_fst_of(WF_TROPICAL, loop), *b = test_fst_of(WF_LOG, loop), *c;
  assert_int_equal(wf_compose(a, b, NULL, &c, &err), WF_ERR_ARGUMENT);
  assert_null(c);
  wf_fst_free(a);
  wf_fst_free(b);
}

/* No final state is reachable; inputs without states. */
static void test_empty(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *a = test_fst_of(WF_TROPICAL, "0 1 1 1;1"), *b = test_fst_of(WF_TROPICAL, "0 1 2 2;1"), *c,
         *d, *e;
  assert_ok(wf_compose(a, b, NULL, &c, &err));
  assert_int_equal(wf_fst_get_view(c).start, -1);
  assert_int_equal(wf_fst_get_view(c).num_states, 0);
  assert_ok(wf_compose(a, c, NULL, &d, &err));
  assert_ok(wf_compose(c, a, NULL, &e, &err));
  assert_int_equal(wf_fst_get_view(d).num_states + wf_fst_get_view(e).num_states, 0);
  wf_fst *all[] = {a, b, c, d, e};
  for (size_t i = 0; i < 5; i++) wf_fst_free(all[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_example_one_arc),
                                     cmocka_unit_test(test_example_epsilons),
                                     cmocka_unit_test(test_example_all_pairs),
                                     cmocka_unit_test(test_definition),
                                     cmocka_unit_test(test_number_of_paths),
                                     cmocka_unit_test(test_openfst_small),
                                     cmocka_unit_test(test_openfst_large),
                                     cmocka_unit_test(test_failure_arcs),
                                     cmocka_unit_test(test_errors),
                                     cmocka_unit_test(test_empty)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
