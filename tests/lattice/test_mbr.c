/* test_mbr.c - posteriors, minimum Bayes risk, oracle and statistics, compared with a list of all
 * paths. */
#include "lattice/compact_lattice.h"
#include "lattice_paths.h"

enum { MAX_PATHS = 20000 };

static double cost_of(const test_lattice_path *path) { return path->graph + path->acoustic; }

/* Probabilities of the paths; they sum to 1. */
static double *probabilities(const test_lattice_paths *paths, double *total) {
  double *p = malloc((paths->size + 1) * sizeof *p), sum = 0;
  for (size_t i = 0; i < paths->size; i++) sum += p[i] = exp(-cost_of(&paths->paths[i]));
  for (size_t i = 0; i < paths->size; i++) p[i] /= sum;
  *total = -log(sum);
  return p;
}

static int distance(const int32_t *a, int num_a, const int32_t *b, int num_b) {
  int row[80], next[80];
  for (int j = 0; j <= num_b; j++) row[j] = j;
  for (int i = 1; i <= num_a; i++) {
    next[0] = i;
    for (int j = 1; j <= num_b; j++) {
      int best = row[j - 1] + (a[i - 1] != b[j - 1]);
      if (row[j] + 1 < best) best = row[j] + 1;
      if (next[j - 1] + 1 < best) best = next[j - 1] + 1;
      next[j] = best;
    }
    memcpy(row, next, sizeof row);
  }
  return row[num_b];
}

static double expected_errors(const int32_t *words, int count, const test_lattice_paths *paths,
                              const double *p) {
  double sum = 0;
  for (size_t i = 0; i < paths->size; i++)
    sum += p[i] * distance(words, count, paths->paths[i].words, paths->paths[i].num_words);
  return sum;
}

/* A lattice in which paths share only the start state. Then the recursion for the edit distance is
 * exact. */
static wf_compact_lattice *unfolded(const test_lattice_paths *paths) {
  wf_error err = {0};
  wf__compact_arrays arrays = {0};
  wf_compact_lattice *lattice;
  const wf_compact_weight none = {.graph_cost = INFINITY};
  assert_ok(wf__compact_add_state(&arrays, none, &err));
  int32_t next = 1;
  for (size_t i = 0; i < paths->size; i++) {
    wf_compact_weight weight = {(float)paths->paths[i].graph, (float)paths->paths[i].acoustic, 0,
                                0};
    assert_ok(wf__compact_push(&arrays, (wf_compact_arc){0, next, weight}, &err));
    next += paths->paths[i].num_words + 1;
  }
  next = 1;
  for (size_t i = 0; i < paths->size; i++)
    for (int w = 0; w <= paths->paths[i].num_words; w++) {
      bool last = w == paths->paths[i].num_words;
      assert_ok(wf__compact_add_state(&arrays, last ? (wf_compact_weight){0} : none, &err));
      next++;
      if (!last)
        assert_ok(
            wf__compact_push(&arrays, (wf_compact_arc){paths->paths[i].words[w], next, {0}}, &err));
    }
  assert_ok(wf__compact_finish(WF_OK, &arrays, &lattice, &err));
  return lattice;
}

static test_lattice_shape shape_of(test_rng *rng) {
  return (test_lattice_shape){.num_frames = 2 + (int)test_below(rng, 4),
                              .num_words = 2 + (int32_t)test_below(rng, 3),
                              .num_labels = 3,
                              .epsilon_share = 0.3f * (float)test_below(rng, 3),
                              .eighths = 1 + test_unit(rng) * 3};
}

static void check_sausage(const wf_mbr_result *result) {
  assert_int_equal(result->num_bins, 2 * result->num_words + 1);
  assert_int_equal(result->bin_off[0], 0);
  for (size_t b = 0; b < result->num_bins; b++) {
    double sum = 0;
    for (uint64_t i = result->bin_off[b]; i < result->bin_off[b + 1]; i++) {
      sum += result->bin_words[i].posterior;
      if (i > result->bin_off[b])
        assert_true(result->bin_words[i].posterior <= result->bin_words[i - 1].posterior);
    }
    test_assert_close(sum, 1, 1e-9);
  }
}

static void check_bins(const wf_mbr_result *result) {
  check_sausage(result);
  for (size_t w = 0; w < result->num_words; w++) {
    bool found = false;
    for (uint64_t i = result->bin_off[2 * w + 1]; i < result->bin_off[2 * w + 2]; i++)
      if (result->bin_words[i].label == result->words[w].label) {
        test_assert_close(result->bin_words[i].posterior, (double)result->confidences[w], 1e-6);
        found = true;
      }
    assert_true(found);
  }
}

static int words_of(const wf_mbr_result *result, int32_t *out) {
  for (size_t i = 0; i < result->num_words; i++) out[i] = result->words[i].label;
  return (int)result->num_words;
}

/* If paths do not meet, the risk equals the expected number of errors and no iteration increases
 * it. The result is close to the best of all paths' words. It need not be the best, because the
 * search stops when no single position can be improved. */
static void test_exact_risk(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {2011};
  int compared = 0, better_than_best = 0, beaten = 0;
  double gained = 0, missed = 0;
  for (int i = 0; i < 1500; i++) {
    test_lattice_shape shape = shape_of(&rng);
    wf_compact_lattice *lattice = test_random_compact(&rng, &shape, false);
    test_lattice_paths paths = test_paths_of_compact(lattice, MAX_PATHS);
    if (paths.size <= 120) {
      double total, *p = probabilities(&paths, &total);
      wf_compact_lattice *tree = unfolded(&paths);
      wf_mbr_options options;
      wf_mbr_options_init(&options);
      wf_mbr_result *first, *result;
      int32_t words[64];
      options.decode = false;
      assert_ok(wf_compact_lattice_mbr(tree, NULL, 0, &options, &first, &err));
      assert_int_equal(first->num_rounds, 1);
      double start = expected_errors(words, words_of(first, words), &paths, p);
      test_assert_close(first->risk, start, 1e-3);
      for (size_t k = 0; k < paths.size; k += 7) { /* any word sequence, not only the best path's */
        wf_mbr_result *other;
        const test_lattice_path *path = &paths.paths[k];
        assert_ok(wf_compact_lattice_mbr(tree, path->words, (size_t)path->num_words, &options,
                                         &other, &err));
        test_assert_close(other->risk, expected_errors(path->words, path->num_words, &paths, p),
                          1e-3);
        wf_mbr_result_free(other);
      }
      assert_ok(wf_compact_lattice_mbr(tree, NULL, 0, NULL, &result, &err));
      double risk = expected_errors(words, words_of(result, words), &paths, p), least = INFINITY;
      test_assert_close(result->risk, risk, 1e-3);
      assert_true(risk <= start + 1e-6);
      check_bins(result);
      for (size_t k = 0; k < paths.size; k++)
        least =
            fmin(least, expected_errors(paths.paths[k].words, paths.paths[k].num_words, &paths, p));
      compared++;
      better_than_best += risk < start - 1e-6;
      beaten += least < risk - 1e-3;
      gained += start - risk;
      missed += fmax(risk - least, 0);
      wf_mbr_result_free(first);
      wf_mbr_result_free(result);
      wf_compact_lattice_free(tree);
      free(p);
    }
    test_paths_free(&paths);
    wf_compact_lattice_free(lattice);
  }
  if (compared < 500 || better_than_best < 100 || beaten * 6 > compared || missed > gained)
    fail_msg("%d compared, %d better than the best path by %g errors, %d not the best by %g",
             compared, better_than_best, gained, beaten, missed);
}

/* With a beam, confidences leave room for paths beyond it; nothing else changes. */
static void check_room(const wf_compact_lattice *lattice, wf_mbr_options options,
                       const wf_mbr_result *whole) {
  wf_error err = {0};
  wf_mbr_result *result;
  for (int beam = 0; beam <= 8; beam += 4) {
    options.complete_beam = (float)beam;
    assert_ok(wf_compact_lattice_mbr(lattice, NULL, 0, &options, &result, &err));
    assert_int_equal(result->num_words, whole->num_words);
    assert_true(result->risk == whole->risk && result->num_rounds == whole->num_rounds);
    double sum = 0;
    for (size_t i = 0; i < result->num_words; i++) sum += (double)whole->confidences[i];
    const double n = (double)result->num_words,
                 room = 3 * (1 + n - sum) / (3 + n) * exp(-(double)options.scale * beam);
    for (size_t i = 0; i < result->num_words; i++) {
      assert_int_equal(result->words[i].label, whole->words[i].label);
      test_assert_close((double)result->confidences[i], (double)whole->confidences[i] / (1 + room),
                        1e-6);
    }
    check_sausage(result);
    wf_mbr_result_free(result);
  }
}

/* A scale gives what a lattice with scaled costs gives: exactly, since costs are eighths. */
static void test_scale(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {83};
  int differ = 0;
  for (int i = 0; i < 300; i++) {
    test_lattice_shape shape = shape_of(&rng);
    wf_compact_lattice *lattice = test_random_compact(&rng, &shape, i % 2 == 0), *scaled;
    wf_lattice_scale_options scaling;
    wf_mbr_options options;
    wf_mbr_result *result, *wanted, *plain;
    wf_lattice_scale_options_init(&scaling);
    scaling.lm_scale = scaling.acoustic_scale = i % 3 == 0 ? 0.25f : 2;
    assert_ok(wf_compact_lattice_scale(lattice, &scaling, &scaled, &err));
    assert_ok(wf_compact_lattice_mbr(scaled, NULL, 0, NULL, &wanted, &err));
    assert_ok(wf_compact_lattice_mbr(lattice, NULL, 0, NULL, &plain, &err));
    wf_mbr_options_init(&options);
    options.scale = scaling.lm_scale;
    assert_ok(wf_compact_lattice_mbr(lattice, NULL, 0, &options, &result, &err));
    assert_int_equal(result->num_words, wanted->num_words);
    assert_true(result->risk == wanted->risk && result->num_rounds == wanted->num_rounds);
    if (result->num_words > 0)
      assert_memory_equal(result->confidences, wanted->confidences,
                          result->num_words * sizeof(float));
    differ += plain->risk != result->risk;
    check_room(lattice, options, result);
    wf_mbr_result_free(result);
    wf_mbr_result_free(wanted);
    wf_mbr_result_free(plain);
    wf_compact_lattice_free(scaled);
    wf_compact_lattice_free(lattice);
  }
  assert_true(differ > 200);
}

/* On the original lattice the risk is an upper bound. The words are seldom worse than those of the
 * best path. */
static void test_risk_is_an_upper_bound(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {7};
  int compared = 0, worse = 0, better = 0;
  for (int i = 0; i < 1000; i++) {
    test_lattice_shape shape = shape_of(&rng);
    wf_compact_lattice *lattice = test_random_compact(&rng, &shape, i % 2 == 0);
    test_lattice_paths paths = test_paths_of_compact(lattice, MAX_PATHS);
    double total, *p = probabilities(&paths, &total);
    wf_mbr_options options;
    wf_mbr_options_init(&options);
    wf_mbr_result *first, *result;
    int32_t words[64];
    options.decode = false;
    assert_ok(wf_compact_lattice_mbr(lattice, NULL, 0, &options, &first, &err));
    assert_ok(wf_compact_lattice_mbr(lattice, NULL, 0, NULL, &result, &err));
    double start = expected_errors(words, words_of(first, words), &paths, p),
           end = expected_errors(words, words_of(result, words), &paths, p);
    if (first->risk < start - 1e-6 || result->risk < end - 1e-6)
      fail_msg("%d: risk %g for %g expected errors", i, result->risk, end);
    assert_true(result->risk <= first->risk + 1e-3);
    check_bins(first);
    check_bins(result);
    size_t best = 0;
    for (size_t k = 1; k < paths.size; k++)
      best = cost_of(&paths.paths[k]) < cost_of(&paths.paths[best]) ? k : best;
    bool is_best = false; /* several may have equal cost */
    for (size_t k = 0; k < paths.size; k++)
      is_best = is_best || (cost_of(&paths.paths[k]) <= cost_of(&paths.paths[best]) &&
                            distance(paths.paths[k].words, paths.paths[k].num_words, words,
                                     words_of(first, words)) == 0);
    assert_true(is_best);
    compared++;
    worse += end > start + 1e-6;
    better += end < start - 1e-6;
    wf_mbr_result_free(first);
    wf_mbr_result_free(result);
    free(p);
    test_paths_free(&paths);
    wf_compact_lattice_free(lattice);
  }
  if (compared != 1000 || worse > 50 || better < 100)
    fail_msg("%d compared, %d worse, %d better", compared, worse, better);
}

/* Masses of paths through each arc, by the same walk as test_paths_of_compact: the final weight
 * first, then the arcs. */
struct mass {
  const wf_compact_lattice_view *view;
  double *arcs, *finals;
  uint64_t arc_of[80];
  double total;
};

static void walk(struct mass *mass, uint64_t s, int depth, double cost) {
  const wf_compact_lattice_view *view = mass->view;
  const wf_compact_weight *final = &view->finals[s];
  if (final->graph_cost < INFINITY) {
    double p =
        exp(mass->total - (cost + (double) final->graph_cost + (double) final->acoustic_cost));
    mass->finals[s] += p;
    for (int i = 0; i < depth; i++) mass->arcs[mass->arc_of[i]] += p;
  }
  for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++) {
    mass->arc_of[depth] = a;
    walk(mass, (uint64_t)view->arcs[a].nextstate, depth + 1,
         cost + (double)view->arcs[a].weight.graph_cost +
             (double)view->arcs[a].weight.acoustic_cost);
  }
}

static void test_arc_posteriors(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {1};
  for (int i = 0; i < 500; i++) {
    test_lattice_shape shape = shape_of(&rng);
    wf_compact_lattice *lattice = test_random_compact(&rng, &shape, i % 2 == 0);
    wf_compact_lattice_view view = wf_compact_lattice_get_view(lattice);
    test_lattice_paths paths = test_paths_of_compact(lattice, MAX_PATHS);
    double total, sum, *p = probabilities(&paths, &total);
    double *arcs = malloc((view.num_arcs + 1) * sizeof *arcs),
           *finals = malloc(view.num_states * sizeof *finals);
    struct mass mass = {.view = &view,
                        .arcs = calloc(view.num_arcs + 1, sizeof *arcs),
                        .finals = calloc(view.num_states, sizeof *finals),
                        .total = total};
    walk(&mass, 0, 0, 0);
    assert_ok(wf_compact_lattice_posteriors(lattice, arcs, finals, &sum, &err));
    test_assert_close(sum, total, 1e-9);
    for (uint64_t a = 0; a < view.num_arcs; a++) test_assert_close(arcs[a], mass.arcs[a], 1e-9);
    for (uint64_t s = 0; s < view.num_states; s++)
      test_assert_close(finals[s], mass.finals[s], 1e-9);

    wf_lattice_stats stats;
    wf_lattice_stats_init(&stats);
    assert_ok(wf_compact_lattice_get_stats(lattice, &stats, &err));
    double best = INFINITY;
    for (size_t k = 0; k < paths.size; k++) best = fmin(best, cost_of(&paths.paths[k]));
    test_assert_close(stats.best_cost, best, 1e-9);
    test_assert_close(stats.total_cost, total, 1e-9);
    test_assert_close(stats.log_paths, log((double)paths.size), 1e-9);
    if (i % 2 == 1) { /* all paths have the same number of frames */
      uint64_t labels = 0;
      for (uint64_t a = 0; a < view.num_arcs; a++) labels += view.arcs[a].weight.num_labels;
      assert_int_equal(stats.num_frames, shape.num_frames);
      test_assert_close(stats.depth, (double)labels / shape.num_frames, 1e-12);
    }
    free(arcs);
    free(finals);
    free(mass.arcs);
    free(mass.finals);
    free(p);
    test_paths_free(&paths);
    wf_compact_lattice_free(lattice);
  }
}

static void test_oracle_errors(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {8};
  int with_errors = 0, without = 0;
  for (int i = 0; i < 1000; i++) {
    test_lattice_shape shape = shape_of(&rng);
    wf_compact_lattice *lattice = test_random_compact(&rng, &shape, i % 2 == 0);
    test_lattice_paths paths = test_paths_of_compact(lattice, MAX_PATHS);
    int32_t reference[12], *words;
    int count = (int)test_below(&rng, 8), least = 1000;
    for (int k = 0; k < count; k++) reference[k] = 1 + (int32_t)test_below(&rng, 4);
    if (i % 3 == 0) { /* a word sequence of the lattice, sometimes with an error */
      const test_lattice_path *path = &paths.paths[test_below(&rng, (uint32_t)paths.size)];
      count = path->num_words > 11 ? 11 : path->num_words;
      memcpy(reference, path->words, (size_t)count * sizeof *reference);
      if (count > 0 && i % 2 == 0) reference[test_below(&rng, (uint32_t)count)] = 9;
    }
    for (size_t k = 0; k < paths.size; k++) {
      int errors = distance(reference, count, paths.paths[k].words, paths.paths[k].num_words);
      least = errors < least ? errors : least;
    }
    size_t num_words;
    uint64_t errors;
    assert_ok(wf_compact_lattice_oracle(lattice, reference, (size_t)count, &words, &num_words,
                                        &errors, &err));
    assert_int_equal(errors, least);
    assert_int_equal(distance(reference, count, words, (int)num_words), least);
    bool found = false;
    for (size_t k = 0; k < paths.size; k++)
      found = found ||
              distance(words, (int)num_words, paths.paths[k].words, paths.paths[k].num_words) == 0;
    assert_true(found);
    with_errors += least > 0;
    without += least == 0;
    wf_free(words);
    test_paths_free(&paths);
    wf_compact_lattice_free(lattice);
  }
  assert_true(with_errors > 200 && without > 100);
}

static void test_odd_lattices(void **state) {
  (void)state;
  wf_error err = {0};
  wf__compact_arrays arrays = {0};
  wf_compact_lattice *lattice;
  wf_mbr_result *result;
  int32_t *words;
  size_t count;
  double total;
  assert_ok(wf__compact_finish(WF_OK, &arrays, &lattice, &err)); /* empty */
  assert_int_equal(wf_compact_lattice_mbr(lattice, NULL, 0, NULL, &result, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_compact_lattice_oracle(lattice, NULL, 0, &words, &count, NULL, &err),
                   WF_ERR_ARGUMENT);
  assert_ok(wf_compact_lattice_posteriors(lattice, NULL, NULL, &total, &err));
  assert_true(total == INFINITY);
  wf_compact_lattice_free(lattice);
  assert_ok(wf__compact_add_state(&arrays, (wf_compact_weight){3, 4, 0, 0},
                                  &err)); /* one state: the empty string */
  assert_ok(wf__compact_finish(WF_OK, &arrays, &lattice, &err));
  assert_ok(wf_compact_lattice_mbr(lattice, NULL, 0, NULL, &result, &err));
  assert_true(result->num_words == 0 && result->num_bins == 1 && result->risk == 0);
  wf_mbr_result_free(result);
  int32_t one = 5;
  uint64_t errors;
  assert_ok(wf_compact_lattice_oracle(lattice, &one, 1, &words, &count, &errors, &err));
  assert_true(errors == 1 && count == 0);
  wf_free(words);
  one = 0;
  assert_int_equal(wf_compact_lattice_mbr(lattice, &one, 1, NULL, &result, &err), WF_ERR_ARGUMENT);
  wf_compact_lattice_free(lattice);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_exact_risk),
      cmocka_unit_test(test_scale),
      cmocka_unit_test(test_risk_is_an_upper_bound),
      cmocka_unit_test(test_arc_posteriors),
      cmocka_unit_test(test_oracle_errors),
      cmocka_unit_test(test_odd_lattices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
