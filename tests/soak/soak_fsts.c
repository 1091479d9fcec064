/* soak_fsts.c - runs operations on batches of fsts on the GPU and on the CPU. Both must give the
 * same bytes, or the same error. */
#include "compose_oracle.h"
#include "random_fsts.h"
#include "soak.h"
#include "sparse_pair.h"

enum {
  MOST = SOAK_SMALL ? 4 : 100,
  ROUNDS = SOAK_SMALL ? 3 : 24,
  PAIRS = SOAK_SMALL ? 3 : 40,
  NUM_FILTERS = 7
};

/* The same batch on the CPU [0] and on the GPU [1]. */
struct both {
  wf_fst *fsts[MOST];
  size_t count;
  wf_fst_batch *batch[2];
};

typedef wf_fst *random_fn(test_rng *rng, wf_semiring semiring);

static wf_fst *any_fst(test_rng *rng, wf_semiring semiring) {
  return random_any_fst(rng, test_below(rng, 3) == 0, semiring);
}
static wf_fst *acyclic_fst(test_rng *rng, wf_semiring semiring) {
  return random_any_fst(rng, true, semiring);
}
static wf_fst *ties(test_rng *rng, wf_semiring semiring) {
  return (void)semiring, fst_of_ties(rng, test_below(rng, 3) == 0);
}
static wf_fst *relation(test_rng *rng, wf_semiring semiring) {
  return (void)semiring, random_relation(rng);
}

static void open_both(struct both *b, test_rng *rng, random_fn *make, wf_semiring semiring) {
  wf_error err = {0};
  b->count = 1 + test_below(rng, MOST);
  for (size_t i = 0; i < b->count; i++)
    b->fsts[i] = test_below(rng, 30) == 0 ? no_states(semiring) : make(rng, semiring);
  for (int k = 0; k < 2; k++)
    assert_ok(wf_fst_batch_create((const wf_fst *const *)b->fsts, b->count, k == 0 ? "cpu" : "cuda",
                                  &b->batch[k], &err));
}

static void close_both(struct both *b) {
  for (size_t i = 0; i < b->count; i++) wf_fst_free(b->fsts[i]);
  for (int k = 0; k < 2; k++) wf_fst_batch_free(b->batch[k]);
}

static bool dearer(test_rng *rng, uint32_t state, wf_arc *arc) {
  (void)rng, (void)state;
  arc->weight += 1;
  return true;
}

static void compare_fsts(const wf_fst *got, const wf_fst *want) {
  if (wf_fst_get_view(want).num_arcs == 0 || !soak_plant()) {
    assert_same_bytes(got, want, "on the GPU");
    return;
  }
  test_rng none = {0};
  wf_fst *changed = test_changed_fst(wf_fst_ref(got), &none, dearer);
  assert_same_bytes(changed, want, "on the GPU, planted");
  wf_fst_free(changed);
}

static void compare_batches(wf_fst_batch *const *batch, struct soak_counts *counts) {
  wf_error err = {0};
  const size_t count = wf_fst_batch_count(batch[0]);
  assert_int_equal(wf_fst_batch_count(batch[1]), count);
  for (size_t i = 0; i < count; i++) {
    wf_fst *fst[2];
    for (int k = 0; k < 2; k++) assert_ok(wf_fst_batch_to_fst(batch[k], i, &fst[k], &err));
    compare_fsts(fst[1], fst[0]);
    for (int k = 0; k < 2; k++) wf_fst_free(fst[k]);
  }
  counts->operations += count;
}

/* Compares the results of an operation on both devices, or its errors. The GPU may also return
 * WF_ERR_UNSUPPORTED where only the CPU can do it. */
static void compare_made(const wf_status *status, const wf_error *err, wf_fst_batch *const *made,
                         struct soak_counts *counts) {
  if (status[1] == WF_ERR_UNSUPPORTED && status[0] != WF_ERR_UNSUPPORTED) {
    assert_null(made[1]);
    return;
  }
  if (status[0] != status[1])
    fail_msg("on the GPU: %s; on the CPU: %s", status[1] == WF_OK ? "fine" : err[1].message,
             status[0] == WF_OK ? "fine" : err[0].message);
  if (status[0] == WF_OK) {
    compare_batches(made, counts);
    return;
  }
  assert_string_equal(err[0].message, err[1].message);
  for (int k = 0; k < 2; k++) assert_null(made[k]);
}

static wf_status restructure(const wf_fst_batch *batch, uint32_t which, wf_fst_batch **out,
                             wf_error *err) {
  wf_arcsort_options by;
  wf_project_options side;
  wf_arcsort_options_init(&by);
  wf_project_options_init(&side);
  by.sort_type = side.project_type = (int32_t)(which & 1);
  switch (which / 2) {
    case 0: return wf_fst_batch_arcsort(batch, &by, out, err);
    case 1: return wf_fst_batch_project(batch, &side, out, err);
    case 2: return wf_fst_batch_connect(batch, out, err);
    case 3: return wf_fst_batch_reverse(batch, out, err);
    default: return wf_fst_batch_invert(batch, out, err);
  }
}

/* A chain of operations: each runs on the result of the one before. */
static void soak_structure(test_rng *rng, struct soak_counts *counts) {
  struct both b;
  open_both(&b, rng, any_fst, test_below(rng, 2) ? WF_LOG : WF_TROPICAL);
  for (int step = 0; step < 5; step++) {
    const uint32_t which = test_below(rng, 10);
    wf_status status[2];
    wf_error err[2] = {{0}};
    wf_fst_batch *made[2];
    soak_note("structure, step %d, operation %u, %zu fsts", step, which, b.count);
    for (int k = 0; k < 2; k++) {
      status[k] = restructure(b.batch[k], which, &made[k], &err[k]);
      assert_int_equal(status[k], WF_OK);
    }
    compare_made(status, err, made, counts);
    for (int k = 0; k < 2; k++) {
      wf_fst_batch_free(b.batch[k]);
      b.batch[k] = made[k];
    }
  }
  close_both(&b);
}

static uint64_t states_of(const struct both *b) {
  uint64_t sum = 0;
  for (size_t i = 0; i < b->count; i++) sum += wf_fst_get_view(b->fsts[i]).num_states;
  return sum;
}

static void soak_distances(test_rng *rng, struct soak_counts *counts) {
  struct both b;
  open_both(&b, rng, any_fst, WF_TROPICAL);
  wf_shortest_distance_options o;
  wf_shortest_distance_options_init(&o);
  o.reverse = test_below(rng, 2);
  soak_note("distances, %zu fsts", b.count);
  float *distances[2];
  for (int k = 0; k < 2; k++) {
    wf_error err = {0};
    assert_ok(wf_fst_batch_shortest_distance(b.batch[k], &o, &distances[k], &err));
  }
  for (uint64_t s = 0, n = states_of(&b); s < n; s++)
    if (memcmp(&distances[0][s], &distances[1][s], sizeof(float)) != 0)
      fail_msg("state %llu: %.9g, on the CPU %.9g", (unsigned long long)s, (double)distances[1][s],
               (double)distances[0][s]);
  for (int k = 0; k < 2; k++) wf_free(distances[k]);
  counts->operations += b.count;
  close_both(&b);
}

/* Sums in the log semiring. The header promises about 1e-12; the test allows 1e-9. */
static void soak_sums(test_rng *rng, struct soak_counts *counts) {
  struct both b;
  double costs[2][MOST];
  open_both(&b, rng, acyclic_fst, WF_LOG);
  soak_note("forward scores, %zu fsts", b.count);
  for (int k = 0; k < 2; k++) {
    wf_error err = {0};
    assert_ok(wf_fst_batch_forward_score(b.batch[k], NULL, true, costs[k], &err));
  }
  for (size_t i = 0; i < b.count; i++)
    if (!(costs[0][i] == costs[1][i] ||
          fabs(costs[0][i] - costs[1][i]) < 1e-9 * (1 + fabs(costs[0][i]))))
      fail_msg("fst %zu: %.15g, on the CPU %.15g", i, costs[1][i], costs[0][i]);
  counts->operations += b.count;
  close_both(&b);
}

/* Operations that may fail. Their result is a batch, or an error that both devices must give. */
enum made_by { BY_PATH, BY_EPSILONS, BY_DETERMINIZING, BY_MINIMIZING };

struct how {
  enum made_by by;
  wf_rmepsilon_options rmepsilon;
  wf_determinize_options determinize;
  wf_minimize_options minimize;
};

static void random_how(test_rng *rng, struct how *how) {
  wf_rmepsilon_options_init(&how->rmepsilon);
  wf_determinize_options_init(&how->determinize);
  wf_minimize_options_init(&how->minimize);
  how->rmepsilon.connect = test_below(rng, 3) > 0;
  how->determinize.allow_nonfunctional = test_below(rng, 8) > 0;
  how->determinize.max_states = test_below(rng, 8) == 0 ? 30 : 5000;
  how->determinize.subsequential_label = (int32_t)test_below(rng, 5);
  if (test_below(rng, 6) == 0) how->determinize.delta = 0;
  how->minimize.allow_nondet = test_below(rng, 3) == 0;
  how->minimize.push_weights = test_below(rng, 4) > 0;
  how->minimize.encode_labels = test_below(rng, 10) > 0;
  if (test_below(rng, 5) == 0) how->minimize.delta = test_below(rng, 2) ? 0 : 0.6f;
  how->determinize.num_threads = how->minimize.num_threads = 1;
}

static wf_status make(const struct how *how, const wf_fst_batch *batch, wf_fst_batch **out,
                      wf_error *err) {
  switch (how->by) {
    case BY_PATH: return wf_fst_batch_shortest_path(batch, out, err);
    case BY_EPSILONS: return wf_fst_batch_rmepsilon(batch, &how->rmepsilon, out, err);
    case BY_DETERMINIZING: return wf_fst_batch_determinize(batch, &how->determinize, out, err);
    default: return wf_fst_batch_minimize(batch, &how->minimize, out, err);
  }
}

/* An fst that cannot be determinized or minimized makes its whole batch fail. The fsts are small,
 * so that most batches succeed. */
static void soak_made(test_rng *rng, enum made_by by, struct soak_counts *counts) {
  static random_fn *const makers[] = {ties, random_epsilons_fst, relation, random_unfolded};
  static const char *const names[] = {"shortest paths", "epsilon removal", "determinization",
                                      "minimization"};
  struct both b;
  struct how how = {.by = by};
  wf_status status[2];
  wf_error err[2] = {{0}};
  wf_fst_batch *made[2];
  random_how(rng, &how);
  open_both(&b, rng, by == BY_PATH && test_below(rng, 2) ? any_fst : makers[by], WF_TROPICAL);
  soak_note("%s, %zu fsts", names[by], b.count);
  for (int k = 0; k < 2; k++) status[k] = make(&how, b.batch[k], &made[k], &err[k]);
  compare_made(status, err, made, counts);
  for (int k = 0; k < 2; k++) wf_fst_batch_free(made[k]);
  for (size_t i = 0; i < b.count && status[0] != WF_OK;
       i++) { /* the batch failed: try each fst alone */
    wf_fst_batch *alone[2];
    for (int k = 0; k < 2; k++) {
      assert_int_equal(wf_fst_batch_create((const wf_fst *const *)&b.fsts[i], 1,
                                           k == 0 ? "cpu" : "cuda", &alone[k], &err[k]),
                       WF_OK);
      status[k] = make(&how, alone[k], &made[k], &err[k]);
    }
    compare_made(status, err, made, counts);
    for (int k = 0; k < 2; k++) {
      wf_fst_batch_free(made[k]);
      wf_fst_batch_free(alone[k]);
    }
    status[0] = WF_ERR_LIMIT;
  }
  close_both(&b);
}

/* --- compositions ------------------------------------------------------------------------ */

static wf_fst *side(test_rng *rng, uint32_t max_states, wf_semiring semiring) {
  const uint32_t n = 1 + test_below(rng, max_states);
  test_fst_shape shape = {.num_states = n,
                          .num_arcs = test_below(rng, n * 4 + 1),
                          .num_ilabels = 1 + (int32_t)test_below(rng, 4),
                          .num_olabels = 1 + (int32_t)test_below(rng, 4),
                          .epsilon_share = (float)test_below(rng, 3) / 5,
                          .final_share = 0.1f,
                          .max_weight = 4,
                          .semiring = semiring};
  return test_random_fst(rng, &shape);
}

static wf_compose_options any_composition(test_rng *rng) {
  wf_compose_options o;
  wf_compose_options_init(&o);
  o.order = 1;
  o.num_threads = 1;
  o.filter = (int32_t)test_below(rng, NUM_FILTERS);
  o.connect = test_below(rng, 4) > 0;
  return o;
}

/* Composes batches of small pairs, each of which one block searches. About one pair in 400 is
 * large. Either all pairs share their first fst, or each has its own. */
static void soak_compositions(test_rng *rng, struct soak_counts *counts) {
  static const uint32_t sizes[] = {9, 30, 200, 600};
  const wf_semiring semiring = test_below(rng, 2) ? WF_LOG : WF_TROPICAL;
  const uint32_t max_states = SOAK_SMALL ? 30 : sizes[test_below(rng, 4)];
  wf_fst *a[PAIRS], *b[PAIRS];
  wf_fst_batch *made[2];
  wf_compose_options o = any_composition(rng);
  const size_t count = 1 + test_below(rng, PAIRS), num_a = test_below(rng, 3) == 0 ? 1 : count;
  for (size_t i = 0; i < count; i++) {
    const bool large = !SOAK_SMALL && semiring == WF_TROPICAL && test_below(rng, 400) == 0;
    a[i] = large ? oracle_words(1500, 5, test_next(rng)) : side(rng, 12, semiring);
    b[i] = large ? oracle_random_graph(300, 1, 5, test_next(rng)) : side(rng, max_states, semiring);
  }
  soak_note("%zu compositions, filter %d", count, o.filter);
  for (int k = 0; k < 2; k++) {
    wf_error err = {0};
    o.device = k == 0 ? "cpu" : "cuda";
    assert_ok(test_fst_batch_compose((const wf_fst *const *)a, num_a, (const wf_fst *const *)b,
                                     count, count, &o, &made[k], &err));
  }
  compare_batches(made, counts);
  for (int k = 0; k < 2; k++) wf_fst_batch_free(made[k]);
  for (size_t i = 0; i < count; i++) {
    wf_fst_free(a[i]);
    wf_fst_free(b[i]);
  }
}

static void soak_sparse_pair(test_rng *rng, struct soak_counts *counts) {
  wf_error err = {0};
  const wf_semiring semiring = test_below(rng, 2) ? WF_LOG : WF_TROPICAL;
  wf_fst *a = side(rng, SOAK_SMALL ? 12 : 60, semiring),
         *b = side(rng, SOAK_SMALL ? 20 : 200, semiring), *want, *got;
  wf_compose_options o = any_composition(rng);
  wf__gpu_batch *batch;
  wf__csr csr = {0};
  int64_t start;
  soak_note("a composition by a hash table, filter %d", o.filter);
  if (wf_fst_get_view(a).start >= 0 && wf_fst_get_view(b).start >= 0) {
    assert_ok(wf_compose(a, b, &o, &want, &err));
    assert_ok(compose_sparsely(a, b, &o, &batch, &err));
    assert_ok(wf__gpu_batch_get(batch, 0, &csr, &start, &err));
    assert_ok(wf__fst_from_csr(&csr, start, semiring, NULL, NULL, &got, &err));
    compare_fsts(got, want);
    wf__csr_free(&csr);
    wf__gpu_batch_free(batch);
    wf_fst_free(want);
    wf_fst_free(got);
    counts->operations++;
  }
  wf_fst_free(a);
  wf_fst_free(b);
}

void soak_fsts(test_rng *rng, struct soak_counts *counts) {
  for (int round = 0; round < ROUNDS; round++) {
    const uint32_t kind = test_below(rng, 12);
    if (kind < 4)
      soak_structure(rng, counts);
    else if (kind < 5)
      soak_distances(rng, counts);
    else if (kind < 6)
      soak_sums(rng, counts);
    else if (kind < 10)
      soak_made(rng, (enum made_by)(kind - 6), counts);
    else if (kind < 11)
      soak_compositions(rng, counts);
    else
      soak_sparse_pair(rng, counts);
  }
}
