/* test_gpu_ops.c - operations on batches of fsts: the GPU against the CPU. Exits with 77 (skipped)
 * if there is no GPU. Also compiled for the imitated GPU of tests/simt/, where CUDA calls can be
 * made to fail. */
#include "compose_oracle.h"
#include "random_fsts.h"
#ifdef SIMT
#include "cuda/fstops/device_ops.h"
#include "failing_calls.h"
#endif

enum { BATCH = 9 };

/* The same fsts as a batch on each device. */
struct both {
  wf_fst *fsts[BATCH];
  wf_fst_batch *cpu, *gpu;
};

static struct both both_of(test_rng *rng, bool acyclic, wf_semiring semiring) {
  struct both b;
  wf_error err = {0};
  for (int i = 0; i < BATCH; i++) {
    b.fsts[i] = random_any_fst(rng, acyclic, semiring);
    if (test_below(rng, 6) != 0) continue;
    wf_fst *none;
    wf_builder *builder;
    assert_ok(wf_builder_create(semiring, &builder, &err));
    assert_ok(wf_builder_finish(builder, NULL, NULL, &none, &err));
    wf_builder_free(builder);
    wf_fst_free(b.fsts[i]);
    b.fsts[i] = none;
  }
  size_t count = 1 + test_below(rng, BATCH);
  assert_ok(wf_fst_batch_create((const wf_fst *const *)b.fsts, count, "cpu", &b.cpu, &err));
  assert_ok(wf_fst_batch_create((const wf_fst *const *)b.fsts, count, "cuda", &b.gpu, &err));
  return b;
}

static void free_both(struct both *b) {
  for (int i = 0; i < BATCH; i++) wf_fst_free(b->fsts[i]);
  wf_fst_batch_free(b->cpu);
  wf_fst_batch_free(b->gpu);
}

static void assert_same_batch(const wf_fst_batch *gpu, const wf_fst_batch *cpu, const char *what) {
  wf_error err = {0};
  assert_int_equal(wf_fst_batch_count(gpu), wf_fst_batch_count(cpu));
  for (size_t i = 0; i < wf_fst_batch_count(cpu); i++) {
    wf_fst *x, *y;
    assert_ok(wf_fst_batch_to_fst(gpu, i, &x, &err));
    assert_ok(wf_fst_batch_to_fst(cpu, i, &y, &err));
    assert_same_bytes(x, y, what);
    wf_fst_free(x);
    wf_fst_free(y);
  }
}

/* Operation `which` of 0 .. 9. */
static wf_status operate(const wf_fst_batch *batch, uint32_t which, wf_fst_batch **out,
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

/* Six random operations in a row on both devices, each on the result of the one before. */
static void test_small_structure(void **state) {
  (void)state;
  wf_error err = {0};
  for (uint64_t seed = 1; seed <= test_seeds(300); seed++) {
    test_rng rng = {seed};
    struct both b = both_of(&rng, seed % 3 == 0, seed % 2 ? WF_LOG : WF_TROPICAL);
    assert_same_batch(b.gpu, b.cpu, "upload");
    for (int step = 0; step < 6; step++) {
      char what[64];
      uint32_t which = test_below(&rng, 10);
      wf_fst_batch *cpu, *gpu;
      snprintf(what, sizeof what, "seed %llu, step %d, operation %u", (unsigned long long)seed,
               step, which);
      assert_ok(operate(b.cpu, which, &cpu, &err));
      assert_ok(operate(b.gpu, which, &gpu, &err));
      assert_same_batch(gpu, cpu, what);
      wf_fst_batch_free(b.cpu);
      wf_fst_batch_free(b.gpu);
      b.cpu = cpu;
      b.gpu = gpu;
    }
    free_both(&b);
  }
}

static uint64_t count_states(const wf_fst_batch *batch) {
  uint64_t sum = 0;
  wf_error err = {0};
  for (size_t i = 0; i < wf_fst_batch_count(batch); i++) {
    wf_fst *fst;
    assert_ok(wf_fst_batch_to_fst(batch, i, &fst, &err));
    sum += wf_fst_get_view(fst).num_states;
    wf_fst_free(fst);
  }
  return sum;
}

static void test_small_distances(void **state) {
  (void)state;
  wf_error err = {0};
  size_t compared = 0, diverging = 0;
  for (uint64_t seed = 1; seed <= test_seeds(200); seed++) {
    test_rng rng = {seed};
    wf_semiring semiring = seed % 2 ? WF_LOG : WF_TROPICAL;
    struct both b = both_of(&rng, semiring == WF_LOG && seed % 4 != 1, semiring);
    uint64_t n = count_states(b.cpu);
    for (int reverse = 0; reverse < 2; reverse++) {
      wf_shortest_distance_options o;
      float *cpu, *gpu;
      wf_shortest_distance_options_init(&o);
      o.reverse = reverse;
      wf_status status = wf_fst_batch_shortest_distance(b.cpu, &o, &cpu, &err);
      if (status != WF_OK) { /* the sum over a cycle diverges */
        assert_int_equal(status, WF_ERR_NEGATIVE_CYCLE);
        diverging++;
        continue;
      }
      assert_ok(wf_fst_batch_shortest_distance(b.gpu, &o, &gpu, &err));
      for (uint64_t s = 0; s < n; s++) {
        bool same = semiring == WF_TROPICAL ? memcmp(&cpu[s], &gpu[s], sizeof cpu[s]) == 0
                                            : cpu[s] == gpu[s] || fabsf(cpu[s] - gpu[s]) < 1e-4f;
        if (!same)
          fail_msg("seed %llu, reverse %d, state %llu: %g, on the CPU %g", (unsigned long long)seed,
                   reverse, (unsigned long long)s, (double)gpu[s], (double)cpu[s]);
      }
      compared += n;
      wf_free(cpu);
      wf_free(gpu);
    }
    free_both(&b);
  }
  printf("%zu distances, %zu batches diverge\n", compared, diverging);
  assert_true(compared > 100);
}

/* Weights are multiples of 1/8, so sums are exact and many paths have equal costs. */
static void test_small_paths(void **state) {
  (void)state;
  wf_error err = {0};
  size_t found = 0;
  for (uint64_t seed = 1; seed <= test_seeds(200); seed++) {
    test_rng rng = {seed};
    struct both b = both_of(&rng, seed % 3 == 0, WF_TROPICAL);
    wf_fst_batch *cpu, *gpu;
    assert_ok(wf_fst_batch_shortest_path(b.cpu, &cpu, &err));
    assert_ok(wf_fst_batch_shortest_path(b.gpu, &gpu, &err));
    assert_same_batch(gpu, cpu, "paths");
    for (size_t i = 0; i < wf_fst_batch_count(cpu); i++) {
      wf_fst *path;
      assert_ok(wf_fst_batch_to_fst(gpu, i, &path, &err));
      found += wf_fst_get_view(path).num_arcs > 0;
      wf_fst_free(path);
    }
    wf_fst_batch_free(cpu);
    wf_fst_batch_free(gpu);
    free_both(&b);
  }
  assert_true(found > 3);
}

/* Of paths with equal costs, both devices return the one that warpfst_fst.h defines. */
static void test_small_ties(void **state) {
  (void)state;
  wf_error err = {0};
  enum { FSTS = 40 };
  wf_fst *fsts[FSTS];
  size_t found = 0;
  for (uint64_t seed = 1; seed <= test_seeds(150); seed++) {
    test_rng rng = {seed};
    wf_fst_batch *batch[2], *paths[2];
    for (int i = 0; i < FSTS; i++) fsts[i] = fst_of_ties(&rng, i % 3 == 2);
    for (int k = 0; k < 2; k++) {
      assert_ok(wf_fst_batch_create((const wf_fst *const *)fsts, FSTS, k == 0 ? "cpu" : "cuda",
                                    &batch[k], &err));
      assert_ok(wf_fst_batch_shortest_path(batch[k], &paths[k], &err));
    }
    char what[32];
    snprintf(what, sizeof what, "ties, seed %llu", (unsigned long long)seed);
    assert_same_batch(paths[1], paths[0], what);
    for (size_t i = 0; i < FSTS; i++) {
      wf_fst *path;
      assert_ok(wf_fst_batch_to_fst(paths[1], i, &path, &err));
      found += wf_fst_get_view(path).num_arcs > 1;
      wf_fst_free(path);
      wf_fst_free(fsts[i]);
    }
    for (int k = 0; k < 2; k++) {
      wf_fst_batch_free(batch[k]);
      wf_fst_batch_free(paths[k]);
    }
  }
  assert_true(found > 5);
}

static void assert_close_gradients(const wf_fst_batch *gpu, const wf_fst_batch *cpu,
                                   wf_gradients_of of) {
  wf_error err = {0};
  for (size_t i = 0; i < wf_fst_batch_count(cpu); i++) {
    double *x, *y;
    uint64_t m, n;
    assert_ok(wf_fst_batch_gradients(cpu, i, of, &x, &m, &err));
    assert_ok(wf_fst_batch_gradients(gpu, i, of, &y, &n, &err));
    assert_int_equal(m, n);
    for (uint64_t k = 0; k < m; k++)
      if (!(fabs(x[k] - y[k]) <= 1e-6 * (1 + x[k])))
        fail_msg("fst %zu, gradient %llu of %d: %.12g, on the CPU %.12g", i, (unsigned long long)k,
                 (int)of, y[k], x[k]);
    wf_free(x);
    wf_free(y);
  }
}

static void test_small_scores(void **state) {
  (void)state;
  wf_error err = {0};
  size_t finite = 0;
  for (uint64_t seed = 1; seed <= test_seeds(200); seed++) {
    test_rng rng = {seed};
    struct both b = both_of(&rng, seed % 4 != 0, WF_LOG);
    double cpu[BATCH], gpu[BATCH], *none;
    uint64_t count;
    assert_int_equal(wf_fst_batch_gradients(b.gpu, 0, WF_GRADIENTS_OF_ARCS, &none, &count, &err),
                     WF_ERR_STATE);
    wf_status status = wf_fst_batch_forward_score(b.cpu, NULL, true, cpu, &err);
    if (status == WF_OK) {
      for (int round = 0; round < 2; round++)
        assert_ok(wf_fst_batch_forward_score(b.gpu, NULL, true, gpu, &err));
      for (size_t i = 0; i < wf_fst_batch_count(b.cpu); i++) {
        if (!(cpu[i] == gpu[i] || fabs(cpu[i] - gpu[i]) < 1e-6 * (1 + fabs(cpu[i]))))
          fail_msg("seed %llu, fst %zu: %.12g, on the CPU %.12g", (unsigned long long)seed, i,
                   gpu[i], cpu[i]);
        finite += cpu[i] != INFINITY;
      }
      assert_close_gradients(b.gpu, b.cpu, WF_GRADIENTS_OF_ARCS);
      assert_int_equal(wf_fst_batch_gradients(b.gpu, 0, WF_GRADIENTS_OF_FIRST, &none, &count, &err),
                       WF_ERR_UNSUPPORTED);
    }
    free_both(&b);
  }
  assert_true(finite > 5);
}

/* Cycles with a negative cost fail as on the CPU; cycles of cost 0 do not. Wrong devices fail. */
static void test_small_errors(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *fsts[2] = {
      test_fst_of(WF_TROPICAL, "0 1 1 1 1;1 0 1 1 -2;1 2 1 1 1;2"),
      test_fst_of(WF_TROPICAL, "0 0 1 1 0;0 1 1 1 2;1 1 1 1 0;1 2 2 2 0;2 1 2 2 0;2 1")};
  wf_fst_batch *batch, *path;
  float *distances;
  double cost;
  for (int i = 0; i < 2; i++) {
    assert_ok(wf_fst_batch_create((const wf_fst *const *)&fsts[i], 1, "cuda", &batch, &err));
    wf_status want = i == 0 ? WF_ERR_NEGATIVE_CYCLE : WF_OK;
    assert_int_equal(wf_fst_batch_shortest_distance(batch, NULL, &distances, &err), want);
    wf_free(distances);
    assert_int_equal(wf_fst_batch_shortest_path(batch, &path, &err), want);
    wf_fst_batch_free(path);
    assert_int_equal(wf_fst_batch_forward_score(batch, NULL, true, &cost, &err),
                     WF_ERR_UNSUPPORTED);
    wf_fst_batch_free(batch);
  }
  assert_int_equal(wf_fst_batch_create(NULL, 0, "cuda", &batch, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_fst_batch_create((const wf_fst *const *)fsts, 2, "cuda:99", &batch, &err),
                   WF_ERR_DEVICE);
  assert_int_equal(wf_fst_batch_create((const wf_fst *const *)fsts, 2, "banana", &batch, &err),
                   WF_ERR_ARGUMENT);
  for (int i = 0; i < 2; i++) wf_fst_free(fsts[i]);
}

/* --- compositions ------------------------------------------------------------------------ */

enum { CTC = 5, COLUMNS = 30 };

/* A line of frames, each with an arc for every label. */
static wf_fst *emissions(test_rng *rng, uint32_t num_frames) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *out;
  assert_ok(wf_builder_create(WF_LOG, &builder, &err));
  assert_ok(wf_builder_add_states(builder, num_frames + 1, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  assert_ok(wf_builder_set_final(builder, num_frames, 0, &err));
  for (uint32_t t = 0; t < num_frames; t++)
    for (int32_t v = 1; v <= COLUMNS; v++)
      assert_ok(wf_builder_add_arc(builder, t, (wf_arc){t + 1, 8 * test_unit(rng), v, v}, &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

/* All CTC alignments of a random transcript of `length` labels. Label 1 is the blank. */
static wf_fst *alignments(test_rng *rng, uint32_t length) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *out;
  /* In state s < n, the last symbol was number s of: blank, label, blank, ... State n is the start.
   */
  uint32_t n = 2 * length + 1;
  int32_t label[128] = {0};
  for (uint32_t s = 0; s < n; s++) label[s] = s % 2 == 0 ? 1 : 2 + (int32_t)test_below(rng, 3);
  assert_ok(wf_builder_create(WF_LOG, &builder, &err));
  assert_ok(wf_builder_add_states(builder, n + 1, NULL, &err));
  assert_ok(wf_builder_set_start(builder, n, &err));
  for (uint32_t from = 0; from <= n; from++) {
    for (uint32_t to = 0; to < n; to++) {
      bool fits = from == n ? to <= 1
                            : to == from || to == from + 1 ||
                                  (to == from + 2 && to % 2 == 1 && label[to] != label[from]);
      if (fits)
        assert_ok(wf_builder_add_arc(builder, from, (wf_arc){to, 0, label[to], label[to]}, &err));
    }
  }
  for (uint32_t s = n < 2 ? 0 : n - 2; s < n; s++)
    assert_ok(wf_builder_set_final(builder, s, 0, &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

/* Every path has one emission arc for each frame, so the gradients of the emissions sum to the
 * number of frames. */
static void assert_gradients_sum_to_frames(const wf_fst_batch *batch, wf_fst *const *a,
                                           const double *costs) {
  wf_error err = {0};
  for (size_t i = 0; i < CTC; i++) {
    double *gradients,
        sum = 0, want = costs[i] == INFINITY ? 0 : (double)(wf_fst_get_view(a[i]).num_states - 1);
    uint64_t count;
    assert_ok(wf_fst_batch_gradients(batch, i, WF_GRADIENTS_OF_FIRST, &gradients, &count, &err));
    assert_int_equal(count, wf_fst_get_view(a[i]).num_arcs);
    for (uint64_t k = 0; k < count; k++) sum += gradients[k];
    assert_true(fabs(sum - want) < 1e-6);
    wf_free(gradients);
  }
}

/* CTC losses of a batch: composition, forward scores, and gradients of the emissions, then the same
 * after sorting the arcs. */
static void test_small_ctc(void **state) {
  (void)state;
  wf_error err = {0};
  wf_compose_options options;
  wf_compose_options_init(&options);
  options.order = 1;
  for (uint64_t seed = 1; seed <= test_seeds(20); seed++) {
    test_rng rng = {seed};
    wf_fst *a[CTC], *b[CTC];
    wf_fst_batch *cpu, *gpu;
    double cpu_costs[CTC], gpu_costs[CTC];
    for (int i = 0; i < CTC; i++) {
      a[i] = emissions(&rng, 1 + test_below(&rng, 60));
      b[i] = alignments(&rng, test_below(&rng, 20));
    }
    options.device = NULL;
    assert_ok(test_fst_batch_compose((const wf_fst *const *)a, CTC, (const wf_fst *const *)b, CTC,
                                     CTC, &options, &cpu, &err));
    options.device = "cuda";
    assert_ok(test_fst_batch_compose((const wf_fst *const *)a, CTC, (const wf_fst *const *)b, CTC,
                                     CTC, &options, &gpu, &err));
    assert_same_batch(gpu, cpu, "composed");
    for (int sorted = 0; sorted < 2; sorted++) {
      assert_ok(wf_fst_batch_forward_score(cpu, NULL, true, cpu_costs, &err));
      assert_ok(wf_fst_batch_forward_score(gpu, NULL, true, gpu_costs, &err));
      for (int i = 0; i < CTC; i++)
        assert_true(cpu_costs[i] == gpu_costs[i] ||
                    fabs(cpu_costs[i] - gpu_costs[i]) < 1e-9 * (1 + fabs(cpu_costs[i])));
      assert_close_gradients(gpu, cpu, WF_GRADIENTS_OF_ARCS);
      assert_gradients_sum_to_frames(cpu, a, cpu_costs);
      assert_close_gradients(gpu, cpu, WF_GRADIENTS_OF_FIRST);
      assert_close_gradients(gpu, cpu, WF_GRADIENTS_OF_SECOND);
      wf_fst_batch *other[2];
      assert_ok(wf_fst_batch_arcsort(cpu, NULL, &other[0], &err));
      assert_ok(wf_fst_batch_arcsort(gpu, NULL, &other[1], &err));
      wf_fst_batch_free(cpu);
      wf_fst_batch_free(gpu);
      cpu = other[0];
      gpu = other[1];
    }
    for (int i = 0; i < CTC; i++) {
      wf_fst_free(a[i]);
      wf_fst_free(b[i]);
    }
    wf_fst_batch_free(cpu);
    wf_fst_batch_free(gpu);
  }
}

#ifdef SIMT
/* Every operation on a batch of one fst. */
static wf_status every_operation(const void *input, wf_error *err) {
  const wf_fst *fst = input;
  const bool log_semiring = wf_fst_get_view(fst).semiring == WF_LOG;
  wf_fst_batch *batch, *out;
  float *distances;
  double cost;
  wf_status status = wf_fst_batch_create(&fst, 1, "cuda", &batch, err);
  for (uint32_t which = 0; status == WF_OK && which < 10; which++) {
    status = operate(batch, which, &out, err);
    wf_fst_batch_free(out);
  }
  if (status == WF_OK) status = wf_fst_batch_shortest_distance(batch, NULL, &distances, err);
  if (status == WF_OK) wf_free(distances);
  if (status == WF_OK && !log_semiring) {
    status = wf_fst_batch_shortest_path(batch, &out, err);
    wf_fst_batch_free(out);
  }
  if (status == WF_OK && log_semiring)
    status = wf_fst_batch_forward_score(batch, NULL, true, &cost, err);
  wf_fst *copy = NULL;
  if (status == WF_OK) status = wf_fst_batch_to_fst(batch, 0, &copy, err);
  if (status == WF_OK) assert_same_bytes(copy, fst, "a copy");
  wf_fst_free(copy);
  wf_fst_batch_free(batch);
  return status;
}

static void test_small_failures(void **state) {
  (void)state;
  for (int log_semiring = 0; log_semiring < 2; log_semiring++) {
    wf_fst *fst = test_fst_of(log_semiring ? WF_LOG : WF_TROPICAL,
                              "0 1 1 2 1;0 2 2 2 1;1 1 1 1 3;1 2 3 1 1;2");
    fail_each_call(log_semiring ? "log semiring" : "tropical semiring", every_operation, fst, 1100);
    wf_fst_free(fst);
  }
}

/* Makes a batch of five compositions out of arrays laid out as a composer has them in memory. Then
 * scores the batch and computes the gradients of the first inputs. */
static void test_small_join(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {5};
  wf_compose_options options;
  wf_compose_options_init(&options);
  options.order = 1;
  wf_fst *a[CTC], *b[CTC], *out[CTC];
  wf_arc_origin *origins[CTC], *all_origins = calloc(1 << 20, sizeof *all_origins);
  uint64_t state_base[CTC + 1] = {0}, arc_base[CTC + 1] = {0}, input_base[2][CTC + 1] = {{0}},
                            *arc_off = calloc(1 << 20, sizeof *arc_off);
  wf_arc *arcs = calloc(1 << 20, sizeof *arcs);
  float *final_cost = calloc(1 << 20, sizeof *final_cost);
  int64_t start[CTC];
  for (size_t i = 0; i < CTC; i++) {
    a[i] = emissions(&rng, 1 + 12 * (uint32_t)i);
    b[i] = alignments(&rng, 4);
    assert_ok(test_compose_with_origins(a[i], b[i], &options, &out[i], &origins[i], &err));
    wf_fst_view view = wf_fst_get_view(out[i]);
    start[i] = view.start;
    state_base[i + 1] = state_base[i] + view.num_states;
    arc_base[i + 1] = arc_base[i] + view.num_arcs;
    input_base[0][i + 1] = input_base[0][i] + wf_fst_get_view(a[i]).num_arcs;
    input_base[1][i + 1] = input_base[1][i] + wf_fst_get_view(b[i]).num_arcs;
    memcpy(arc_off + state_base[i] + i, view.arc_off, (view.num_states + 1) * sizeof *arc_off);
    if (view.num_states == 0) continue;
    memcpy(arcs + arc_base[i], view.arcs, view.num_arcs * sizeof *arcs);
    memcpy(final_cost + state_base[i], view.final_cost, view.num_states * sizeof *final_cost);
    memcpy(all_origins + arc_base[i], origins[i], view.num_arcs * sizeof *all_origins);
  }
  wf__composed composed = {.count = CTC,
                           .state_base = state_base,
                           .arc_base = arc_base,
                           .start = start,
                           .arc_off = arc_off,
                           .arcs = arcs,
                           .final_cost = final_cost,
                           .origins = all_origins,
                           .input_base = {input_base[0], input_base[1]}};
  wf__gpu_batch *batch, *inverted, *sorted;
  double costs[CTC];
  assert_ok(wf__gpu_batch_of_composed(&composed, WF_LOG, &batch, &err));
  assert_ok(wf__gpu_batch_labels(batch, WF__INVERT, &inverted, &err));
  assert_ok(wf__gpu_batch_arcsort(inverted, false, &sorted, &err));
  assert_ok(wf__gpu_batch_forward_score(sorted, 1e-6, true, costs, &err));
  /* The first composition is empty: one frame is too short for four labels. */
  assert_true(state_base[1] == 0 && state_base[CTC] > 100);
  for (size_t i = 0; i < CTC; i++) {
    double cost, *gradients, *want = calloc(input_base[0][CTC] + 1, sizeof *want), *got;
    uint64_t count;
    assert_ok(wf_forward_score(out[i], NULL, &cost, &gradients, &err));
    assert_true(cost == costs[i] || fabs(cost - costs[i]) < 1e-9);
    for (uint64_t k = 0; k < wf_fst_get_view(out[i]).num_arcs; k++)
      if (origins[i][k].a != WF_NO_ARC) want[origins[i][k].a] += gradients[k];
    assert_ok(wf__gpu_batch_gradients(sorted, i, WF_GRADIENTS_OF_FIRST, &got, &count, &err));
    assert_int_equal(count, wf_fst_get_view(a[i]).num_arcs);
    for (uint64_t k = 0; k < count; k++) assert_true(fabs(want[k] - got[k]) < 1e-9);
    free(got);
    free(want);
    wf_free(gradients);
    wf_free(origins[i]);
    wf_fst *all[] = {a[i], b[i], out[i]};
    for (int k = 0; k < 3; k++) wf_fst_free(all[k]);
  }
  wf__gpu_batch_free(batch);
  wf__gpu_batch_free(inverted);
  wf__gpu_batch_free(sorted);
  free(arc_off);
  free(arcs);
  free(final_cost);
  free(all_origins);
}

enum { CALLERS_GPU = 1 };
static void check_callers_gpu(const char *what) {
  int device = -1;
  assert_int_equal(cudaGetDevice(&device), cudaSuccess);
  if (device != CALLERS_GPU) fail_msg("%s: the current GPU is %d after it", what, device);
}

/* Operations on another GPU than the caller's current one leave that one current. */
static void test_small_callers_gpu(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 2 1;0 2 2 2 1;0 1 3 3 2;1 2 3 1 1;1 2 0 1 2;2"),
         *copy;
  wf_fst *logs = test_fst_of(WF_LOG, "0 1 1 1 1;1 2 2 2 1;2");
  wf_fst_batch *batch, *scored, *made;
  wf_composer *composer;
  wf_compose_options options;
  double cost;
  float *distances;
  wf_compose_options_init(&options);
  options.device = "cuda:2";
  options.order = 1;
  assert_int_equal(cudaSetDevice(CALLERS_GPU), cudaSuccess);
  assert_ok(wf_fst_batch_create((const wf_fst *const *)&fst, 1, "cuda:2", &batch, &err));
  assert_ok(wf_fst_batch_create((const wf_fst *const *)&logs, 1, "cuda:2", &scored, &err));
  check_callers_gpu("create");
  for (uint32_t which = 0; which < 13; which++) {
    if (which == 10) assert_ok(wf_fst_batch_rmepsilon(batch, NULL, &made, &err));
    if (which == 11) assert_ok(wf_fst_batch_determinize(batch, NULL, &made, &err));
    if (which == 12) assert_ok(wf_fst_batch_shortest_path(batch, &made, &err));
    if (which < 10) assert_ok(operate(batch, which, &made, &err));
    check_callers_gpu("an operation");
    assert_ok(wf_fst_batch_to_fst(made, 0, &copy, &err));
    check_callers_gpu("get");
    wf_fst_free(copy);
    wf_fst_batch_free(made);
    check_callers_gpu("free");
  }
  assert_ok(wf_fst_batch_shortest_distance(batch, NULL, &distances, &err));
  check_callers_gpu("distances");
  wf_free(distances);
  assert_ok(wf_fst_batch_forward_score(scored, NULL, true, &cost, &err));
  double *gradients;
  uint64_t count;
  assert_ok(wf_fst_batch_gradients(scored, 0, WF_GRADIENTS_OF_ARCS, &gradients, &count, &err));
  check_callers_gpu("scores");
  wf_free(gradients);
  assert_ok(wf_compose(fst, fst, &options, &copy, &err));
  check_callers_gpu("composition");
  wf_fst_free(copy);
  const wf_fst *const many[] = {fst, fst, fst};
  assert_ok(wf_compose_n(many, 3, &options, &copy, &err));
  check_callers_gpu("composition of three");
  wf_fst_free(copy);
  for (int with_origins = 0; with_origins < 2; with_origins++) {
    assert_ok(wf_composer_create((const wf_fst *const *)&fst, 1, (const wf_fst *const *)&fst, 1, 1,
                                 &options, with_origins != 0, &composer, &err));
    check_callers_gpu("composer");
    assert_ok(wf_composer_run(composer, &err));
    assert_ok(wf_composer_to_fst(composer, 0, &copy, NULL, &err));
    check_callers_gpu("run");
    assert_ok(wf_composer_to_batch(composer, &made, &err));
    check_callers_gpu("batch of a composer");
    wf_fst_free(copy);
    wf_fst_batch_free(made);
    wf_composer_free(composer);
    check_callers_gpu("free");
  }
  wf_fst_batch_free(batch);
  wf_fst_batch_free(scored);
  check_callers_gpu("free");
  assert_int_equal(cudaSetDevice(0), cudaSuccess);
  wf_fst_free(fst);
  wf_fst_free(logs);
}
#endif

/* Every operation on the untrimmed composition of a lexicon with 251 frames. */
static void test_large(void **state) {
  (void)state;
  wf_error err = {0};
  wf_compose_options options;
  wf_compose_options_init(&options);
  options.order = 1;
  options.connect = false;
#ifdef SIMT
  const uint32_t num_words = 200;
#else
  const uint32_t num_words = 3000;
#endif
  wf_fst *a = oracle_words(num_words, 69, 5), *b = oracle_emissions(251, 69, 6), *graph, *cut;
  wf_fst_batch *cpu, *gpu, *next[2];
  assert_ok(wf_compose(a, b, &options, &graph, &err));
  assert_ok(wf_fst_batch_create((const wf_fst *const *)&graph, 1, NULL, &cpu, &err));
  assert_ok(wf_fst_batch_create((const wf_fst *const *)&graph, 1, "cuda", &gpu, &err));
  for (uint32_t which = 0; which < 10; which++) {
    assert_ok(operate(cpu, which, &next[0], &err));
    assert_ok(operate(gpu, which, &next[1], &err));
    assert_same_batch(next[1], next[0], "large");
    wf_fst_batch_free(next[0]);
    wf_fst_batch_free(next[1]);
  }
  assert_ok(wf_fst_batch_connect(gpu, &next[0], &err));
  assert_ok(wf_fst_batch_shortest_path(next[0], &next[1], &err));
  assert_ok(wf_fst_batch_to_fst(next[1], 0, &cut, &err));
  wf_fst *best;
  assert_ok(wf_shortest_path(graph, NULL, &best, &err));
  assert_same_bytes(cut, best, "large path");
  wf_fst *all[] = {a, b, graph, cut, best};
  for (int k = 0; k < 5; k++) wf_fst_free(all[k]);
  wf_fst_batch *batches[] = {cpu, gpu, next[0], next[1]};
  for (int k = 0; k < 4; k++) wf_fst_batch_free(batches[k]);
}

/* Every operation once on a small batch, with and without cycles: little work, for
 * compute-sanitizer. */
static void test_races(void **state) {
  (void)state;
  wf_error err = {0};
  static const char *const texts[] = {"0 1 1 2 1;0 2 2 2 1;1 1 1 1 3;1 2 3 1 1;2",
                                      "0 1 1 2 1;0 2 2 2 1;0 1 3 3 2;1 2 3 1 1;1 2 1 1 2;2"};
  for (int kind = 0; kind < 3; kind++) { /* with cycles; without; without, in the log semiring */
    wf_semiring semiring = kind == 2 ? WF_LOG : WF_TROPICAL;
    wf_fst *fsts[2] = {test_fst_of(semiring, texts[kind != 0]), test_fst_of(semiring, texts[1])};
    wf_fst_batch *batches[2], *made[2];
    float *distances[2];
    double cost[2][2];
    for (int k = 0; k < 2; k++)
      assert_ok(wf_fst_batch_create((const wf_fst *const *)fsts, 2, k == 0 ? "cpu" : "cuda",
                                    &batches[k], &err));
    for (uint32_t which = 0; which < 10; which++) {
      for (int k = 0; k < 2; k++) assert_ok(operate(batches[k], which, &made[k], &err));
      assert_same_batch(made[1], made[0], "races");
      for (int k = 0; k < 2; k++) wf_fst_batch_free(made[k]);
    }
    for (int reverse = 0; reverse < 2; reverse++) {
      wf_shortest_distance_options o;
      wf_shortest_distance_options_init(&o);
      o.reverse = reverse;
      for (int k = 0; k < 2; k++)
        assert_ok(wf_fst_batch_shortest_distance(batches[k], &o, &distances[k], &err));
      for (uint64_t s = 0; s < 6; s++)
        assert_true(fabsf(distances[0][s] - distances[1][s]) < 1e-5f);
      for (int k = 0; k < 2; k++) wf_free(distances[k]);
    }
    for (int k = 0; k < 2; k++) {
      if (semiring == WF_LOG)
        assert_ok(wf_fst_batch_forward_score(batches[k], NULL, true, cost[k], &err));
      else
        assert_ok(wf_fst_batch_shortest_path(batches[k], &made[k], &err));
    }
    if (semiring == WF_LOG)
      assert_close_gradients(batches[1], batches[0], WF_GRADIENTS_OF_ARCS);
    else
      assert_same_batch(made[1], made[0], "paths");
    for (int k = 0; k < 2; k++) {
      if (semiring != WF_LOG) wf_fst_batch_free(made[k]);
      wf_fst_batch_free(batches[k]);
      wf_fst_free(fsts[k]);
    }
  }
}

int main(int argc, char **argv) {
  if (test_no_gpu_for_batches()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_structure),
                                     cmocka_unit_test(test_small_distances),
                                     cmocka_unit_test(test_small_paths),
                                     cmocka_unit_test(test_small_ties),
                                     cmocka_unit_test(test_small_scores),
                                     cmocka_unit_test(test_small_errors),
                                     cmocka_unit_test(test_small_ctc),
#ifdef SIMT
                                     cmocka_unit_test(test_small_join),
                                     cmocka_unit_test(test_small_failures),
                                     cmocka_unit_test(test_small_callers_gpu),
#endif
                                     cmocka_unit_test(test_races),
                                     cmocka_unit_test(test_large)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
