/* test_forward_score.c - total costs and gradients, compared with sums over paths and with finite
 * differences. Also the CTC loss by composition, compared with the direct forward-backward
 * recursion. */
#include "testing.h"

static wf_fst *with_weight(const wf_fst *fst, uint64_t arc, float weight) {
  wf_error err = {0};
  wf_fst_view view = wf_fst_get_view(fst);
  wf_builder *builder;
  wf_fst *out;
  assert_ok(wf_builder_create(view.semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, (uint32_t)view.start, &err));
  for (uint32_t s = 0; s < view.num_states; s++) {
    for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++) {
      wf_arc copy = view.arcs[i];
      if (i == arc) copy.weight = weight;
      assert_ok(wf_builder_add_arc(builder, s, copy, &err));
    }
    if (view.final_cost[s] != INFINITY)
      assert_ok(wf_builder_set_final(builder, s, view.final_cost[s], &err));
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

static double score(const wf_fst *fst) {
  wf_error err = {0};
  double cost;
  assert_ok(wf_forward_score(fst, NULL, &cost, NULL, &err));
  return cost;
}

/* The probability of all paths from a state, and the part of it that passes each arc, path by path.
 */
enum { MAX_PATH = 32 };
struct walk {
  wf_fst_view view;
  uint64_t path[MAX_PATH];
  double total, best, *shares;
};

static void walk(struct walk *w, uint64_t s, int depth, double cost) {
  if (w->view.final_cost[s] != INFINITY) {
    double all = cost + (double)w->view.final_cost[s];
    w->total += exp(-all);
    if (all < w->best) w->best = all;
    for (int k = 0; k < depth; k++) w->shares[w->path[k]] += exp(-all);
  }
  assert_true(depth < MAX_PATH);
  for (uint64_t i = w->view.arc_off[s]; i < w->view.arc_off[s + 1]; i++) {
    w->path[depth] = i;
    walk(w, w->view.arcs[i].nextstate, depth + 1, cost + (double)w->view.arcs[i].weight);
  }
}

static void test_against_sums_over_paths(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {3};
  size_t nonempty = 0;
  for (int round = 0; round < 300; round++) {
    test_fst_shape shape = {.num_states = 2 + test_below(&rng, 7),
                            .num_arcs = 4 + test_below(&rng, 14),
                            .num_ilabels = 3,
                            .num_olabels = 3,
                            .epsilon_share = 0.3f,
                            .final_share = 0.3f,
                            .max_weight = 3,
                            .acyclic = true,
                            .semiring = WF_LOG};
    wf_fst *fst = test_random_fst(&rng, &shape), *tropical;
    double cost, *gradients, shares[64] = {0};
    struct walk w = {.view = wf_fst_get_view(fst), .best = INFINITY, .shares = shares};
    walk(&w, (uint64_t)w.view.start, 0, 0);
    assert_ok(wf_forward_score(fst, NULL, &cost, &gradients, &err));
    if (w.total == 0)
      assert_true(cost == INFINITY);
    else
      assert_true(fabs(cost + log(w.total)) < 1e-9);
    for (uint64_t i = 0; i < w.view.num_arcs; i++)
      assert_true(fabs(gradients[i] - (w.total == 0 ? 0 : shares[i] / w.total)) < 1e-9);
    nonempty += w.total != 0;
    wf_free(gradients);
    assert_ok(wf_fst_with_semiring(fst, WF_TROPICAL, &tropical, &err));
    assert_true(score(tropical) == w.best);
    assert_int_equal(wf_forward_score(tropical, NULL, &cost, &gradients, &err), WF_ERR_UNSUPPORTED);
    wf_fst_free(tropical);
    wf_fst_free(fst);
  }
  assert_true(nonempty > 150);
}

/* Fsts with cycles: central differences. */
static void test_gradients_against_differences(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {4};
  const float h = 1.0f / 256;
  size_t checked = 0, above_one = 0;
  for (int round = 0; round < 60; round++) {
    test_fst_shape shape = {.num_states = 2 + test_below(&rng, 6),
                            .num_arcs = 4 + test_below(&rng, 8),
                            .num_ilabels = 3,
                            .num_olabels = 3,
                            .final_share = 0.5f,
                            .max_weight = 8,
                            .semiring = WF_LOG};
    wf_fst *fst = test_random_fst(&rng, &shape);
    wf_fst_view view = wf_fst_get_view(fst);
    double cost, *gradients;
    wf_status status = wf_forward_score(fst, NULL, &cost, &gradients, &err);
    if (status == WF_ERR_NEGATIVE_CYCLE) {
      wf_fst_free(fst);
      continue;
    }
    assert_int_equal(status, WF_OK);
    for (uint64_t i = 0; i < view.num_arcs && cost != INFINITY; i++) {
      if (view.arcs[i].weight < 1) continue; /* differences near a divergence are too inaccurate */
      wf_fst *more = with_weight(fst, i, view.arcs[i].weight + h),
             *less = with_weight(fst, i, view.arcs[i].weight - h);
      double slope = (score(more) - score(less)) / (2 * (double)h);
      if (fabs(slope - gradients[i]) > 1e-3 * (1 + slope))
        fail_msg("round %d, arc %llu: gradient %g, difference %g", round, (unsigned long long)i,
                 gradients[i], slope);
      checked++;
      above_one += slope > 1.01;
      wf_fst_free(more);
      wf_fst_free(less);
    }
    wf_free(gradients);
    wf_fst_free(fst);
  }
  assert_true(checked > 150);
  assert_true(above_one > 0);
}

/* --- CTC --------------------------------------------------------------------------------- */

enum { MAX_FRAMES = 40, MAX_LABELS = 12, BLANK = 1 /* label of column 0 */ };

/* Frames of arcs (column + 1 : column + 1), weight -log p. */
static wf_fst *emissions(const float *costs, uint32_t num_frames, uint32_t num_columns) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *out;
  assert_ok(wf_builder_create(WF_LOG, &builder, &err));
  assert_ok(wf_builder_add_states(builder, num_frames + 1, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  assert_ok(wf_builder_set_final(builder, num_frames, 0, &err));
  for (uint32_t t = 0; t < num_frames; t++)
    for (uint32_t v = 0; v < num_columns; v++)
      assert_ok(wf_builder_add_arc(builder, t,
                                   (wf_arc){.nextstate = t + 1,
                                            .weight = costs[t * num_columns + v],
                                            .ilabel = (int32_t)v + 1,
                                            .olabel = (int32_t)v + 1},
                                   &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

/* All alignments of a transcript of columns: blank states and label states alternate. Equal
 * neighbouring labels need a blank between them. */
static wf_fst *alignments(const uint32_t *labels, uint32_t num_labels) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *out;
  uint32_t n = 2 * num_labels + 1; /* state s: the last symbol was the s-th of blank, label, blank,
                                      ...; state n: before all symbols */
  assert_ok(wf_builder_create(WF_LOG, &builder, &err));
  assert_ok(wf_builder_add_states(builder, n + 1, NULL, &err));
  assert_ok(wf_builder_set_start(builder, n, &err));
  for (uint32_t s = 0; s < n; s++) {
    int32_t label = s % 2 == 0 ? BLANK : (int32_t)labels[s / 2] + 1;
    wf_arc arc = {.nextstate = s, .ilabel = label, .olabel = label};
    assert_ok(wf_builder_add_arc(builder, s, arc, &err));
    if (s > 0) assert_ok(wf_builder_add_arc(builder, s - 1, arc, &err));
    if (s > 1 && s % 2 == 1 && labels[s / 2] != labels[s / 2 - 1])
      assert_ok(wf_builder_add_arc(builder, s - 2, arc, &err));
    if (s < 2) assert_ok(wf_builder_add_arc(builder, n, arc, &err));
    if (s + 2 >= n) assert_ok(wf_builder_set_final(builder, s, 0, &err));
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

static double plus(double a, double b) {
  return a == INFINITY ? b : b == INFINITY ? a : fmin(a, b) - log1p(exp(-fabs(a - b)));
}

/* Graves et al. 2006: forward and backward variables over the extended transcript. Also the
 * gradient of the loss with respect to each cost. */
static double direct_ctc(const float *costs, uint32_t num_frames, uint32_t num_columns,
                         const uint32_t *labels, uint32_t num_labels, double *gradients) {
  static double alpha[MAX_FRAMES][2 * MAX_LABELS + 1], beta[MAX_FRAMES][2 * MAX_LABELS + 1];
  uint32_t n = 2 * num_labels + 1, last = num_frames - 1;
#define COLUMN(s) ((s) % 2 == 0 ? 0 : labels[(s) / 2])
#define COST(t, s) (double)costs[(t)*num_columns + COLUMN(s)]
#define SKIPS(s) ((s) > 1 && (s) % 2 == 1 && labels[(s) / 2] != labels[(s) / 2 - 1])
  for (uint32_t t = 0; t < num_frames; t++) {
    for (uint32_t s = 0; s < n; s++) {
      double sum = t == 0 ? (s < 2 ? 0 : INFINITY) : alpha[t - 1][s];
      if (t > 0 && s > 0) sum = plus(sum, alpha[t - 1][s - 1]);
      if (t > 0 && SKIPS(s)) sum = plus(sum, alpha[t - 1][s - 2]);
      alpha[t][s] = sum + COST(t, s);
    }
  }
  for (uint32_t t = num_frames; t-- > 0;) {
    for (uint32_t s = 0; s < n; s++) {
      double sum = t == last ? (s + 2 >= n ? 0 : INFINITY) : beta[t + 1][s] + COST(t + 1, s);
      if (t < last && s + 1 < n) sum = plus(sum, beta[t + 1][s + 1] + COST(t + 1, s + 1));
      if (t < last && s + 2 < n && SKIPS(s + 2))
        sum = plus(sum, beta[t + 1][s + 2] + COST(t + 1, s + 2));
      beta[t][s] = sum;
    }
  }
  double loss = n > 1 ? plus(alpha[last][n - 1], alpha[last][n - 2]) : alpha[last][0];
  memset(gradients, 0, num_frames * num_columns * sizeof *gradients);
  for (uint32_t t = 0; t < num_frames && loss != INFINITY; t++)
    for (uint32_t s = 0; s < n; s++)
      gradients[t * num_columns + COLUMN(s)] += exp(loss - alpha[t][s] - beta[t][s]);
  return loss;
}

/* The loss by composition. The arcs of the emissions are in order of frames and columns. */
static double composed_ctc(const float *costs, uint32_t num_frames, uint32_t num_columns,
                           const uint32_t *labels, uint32_t num_labels, int32_t order,
                           double *gradients) {
  wf_error err = {0};
  wf_fst *a = emissions(costs, num_frames, num_columns), *b = alignments(labels, num_labels), *c;
  wf_arc_origin *origins;
  double loss, *by_arc;
  wf_compose_options options;
  wf_compose_options_init(&options);
  options.order = order;
  assert_ok(test_compose_with_origins(a, b, &options, &c, &origins, &err));
  assert_ok(wf_forward_score(c, NULL, &loss, &by_arc, &err));
  memset(gradients, 0, num_frames * num_columns * sizeof *gradients);
  for (uint64_t i = 0; i < wf_fst_get_view(c).num_arcs; i++)
    if (origins[i].a != WF_NO_ARC) gradients[origins[i].a] += by_arc[i];
  wf_free(origins);
  wf_free(by_arc);
  wf_fst *all[] = {a, b, c};
  for (int i = 0; i < 3; i++) wf_fst_free(all[i]);
  return loss;
}

static void test_ctc_loss_and_gradient(void **state) {
  (void)state;
  test_rng rng = {8};
  size_t impossible = 0;
  for (int round = 0; round < 200; round++) {
    uint32_t num_frames = 1 + test_below(&rng, MAX_FRAMES), num_columns = 2 + test_below(&rng, 8),
             num_labels = test_below(&rng, MAX_LABELS + 1), labels[MAX_LABELS];
    float costs[MAX_FRAMES * 10];
    double want_gradients[MAX_FRAMES * 10], gradients[MAX_FRAMES * 10];
    for (uint32_t i = 0; i < num_labels; i++) labels[i] = 1 + test_below(&rng, num_columns - 1);
    for (uint32_t t = 0; t < num_frames; t++) {
      double sum = 0;
      for (uint32_t v = 0; v < num_columns; v++)
        sum += exp(-(double)(costs[t * num_columns + v] = 6 * test_unit(&rng)));
      for (uint32_t v = 0; v < num_columns; v++) costs[t * num_columns + v] += (float)log(sum);
    }
    double want = direct_ctc(costs, num_frames, num_columns, labels, num_labels, want_gradients);
    for (int32_t order = 0; order < 2; order++) {
      double loss =
          composed_ctc(costs, num_frames, num_columns, labels, num_labels, order, gradients);
      if (want == INFINITY)
        assert_true(loss == INFINITY);
      else
        assert_true(fabs(loss - want) < 1e-5);
      for (uint32_t i = 0; i < num_frames * num_columns; i++)
        if (fabs(gradients[i] - want_gradients[i]) > 1e-5)
          fail_msg("round %d: gradient %u is %g, not %g", round, i, gradients[i],
                   want_gradients[i]);
    }
    impossible += want == INFINITY;
  }
  assert_true(impossible > 5 && impossible < 150);
}

static void test_empty(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *a = test_fst_of(WF_LOG, "0 1 1 1;1"), *b = test_fst_of(WF_LOG, "0 1 2 2;1"), *none;
  double cost, *gradients;
  assert_ok(wf_compose(a, b, NULL, &none, &err));
  assert_ok(wf_forward_score(none, NULL, &cost, &gradients, &err));
  assert_true(cost == INFINITY);
  wf_free(gradients);
  wf_fst_free(a);
  wf_fst_free(b);
  wf_fst_free(none);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_sums_over_paths),
                                     cmocka_unit_test(test_gradients_against_differences),
                                     cmocka_unit_test(test_ctc_loss_and_gradient),
                                     cmocka_unit_test(test_empty)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
