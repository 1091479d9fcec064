/* test_spot.c - listed words in lattices, compared with a list of all paths. */
#include "lattice/compact_lattice.h"
#include "lattice_paths.h"
#include "testing.h"

enum { MAX_OCCURRENCES = 200000, MAX_FRAMES = 16 };

/* A word on a path. */
struct occurrence {
  int32_t word, start, end;
  double probability; /* of the path; 0: part of a hit */
};

struct listing {
  const wf_compact_lattice_view *view;
  struct occurrence found[MAX_OCCURRENCES], path[80];
  size_t num_found, num_paths;
  double total;
};

/* Walks all paths in double. Path costs become probabilities at the end. */
static void walk(struct listing *list, uint64_t s, int depth, int32_t frame, double cost) {
  const wf_compact_lattice_view *view = list->view;
  const wf_compact_weight *final = &view->finals[s];
  if (final->graph_cost < INFINITY) {
    const double p = exp(-(cost + (double) final->graph_cost + (double) final->acoustic_cost));
    list->total += p;
    list->num_paths++;
    for (int i = 0; i < depth; i++) {
      assert_true(list->num_found < MAX_OCCURRENCES);
      list->found[list->num_found] = list->path[i];
      list->found[list->num_found++].probability = p;
    }
  }
  for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++) {
    const wf_compact_arc *arc = &view->arcs[a];
    const int32_t end = frame + (int32_t)arc->weight.num_labels;
    list->path[depth] = (struct occurrence){arc->word, frame, end + (end == frame), 0};
    walk(list, (uint64_t)arc->nextstate, depth + 1, end,
         cost + (double)arc->weight.graph_cost + (double)arc->weight.acoustic_cost);
  }
}

static bool covers(const struct occurrence *one, int32_t word, int32_t frame) {
  return one->word == word && one->start <= frame && frame < one->end;
}

/* Finds the most probable frame of a word, and takes the occurrences there from the list. */
static double next_hit(struct listing *list, int32_t word, double *start, double *end) {
  double most = 0;
  int32_t peak = 0;
  for (int32_t t = 0; t < MAX_FRAMES; t++) {
    double sum = 0;
    for (size_t i = 0; i < list->num_found; i++)
      if (covers(&list->found[i], word, t)) sum += list->found[i].probability;
    if (sum > most + (most > 0 ? 1e-9 : 0)) {
      most = sum;
      peak = t;
    }
  }
  *start = *end = 0;
  for (size_t i = 0; i < list->num_found; i++)
    if (covers(&list->found[i], word, peak)) {
      *start += list->found[i].probability * list->found[i].start / most;
      *end += list->found[i].probability * list->found[i].end / most;
      list->found[i].probability = 0;
    }
  return most;
}

static void check_hits(struct listing *list, const int32_t *words, size_t num_words,
                       double threshold, const wf_spot_hit *hits, size_t count) {
  bool *matched = calloc(count + 1, sizeof *matched);
  size_t expected = 0;
  for (size_t w = 0; w < num_words; w++)
    for (;;) {
      double start, end, p = next_hit(list, words[w], &start, &end);
      if (p == 0 || p < threshold) break;
      size_t i = 0;
      while (i < count && (matched[i] || hits[i].label != words[w] ||
                           fabs(hits[i].probability - fmin(p, 1)) > 1e-9 ||
                           fabs(hits[i].start_frame - start) > 0.5 + 1e-6 ||
                           fabs(hits[i].end_frame - end) > 0.5 + 1e-6))
        i++;
      if (i == count) fail_msg("word %d [%g, %g) %g is missing", words[w], start, end, p);
      matched[i] = true;
      expected++;
    }
  assert_int_equal(count, expected);
  for (size_t i = 0; i + 1 < count; i++)
    assert_true(
        hits[i].start_frame < hits[i + 1].start_frame ||
        (hits[i].start_frame == hits[i + 1].start_frame &&
         (hits[i].label < hits[i + 1].label ||
          (hits[i].label == hits[i + 1].label && hits[i].probability >= hits[i + 1].probability))));
  free(matched);
}

static void test_all_paths(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {26};
  static struct listing list;
  size_t num_hits = 0, num_lists = 0, num_repeated = 0, num_none = 0;
  for (int i = 0; i < 3000; i++) {
    test_lattice_shape shape = {.num_frames = 2 + (int)test_below(&rng, 4),
                                .num_words = 2 + (int32_t)test_below(&rng, 4),
                                .num_labels = 3,
                                .epsilon_share = 0.3f * (float)test_below(&rng, 3),
                                .eighths = 1 + test_unit(&rng) * 3};
    wf_compact_lattice *lattice = test_random_compact(&rng, &shape, false);
    wf_compact_lattice_view view = wf_compact_lattice_get_view(lattice);
    int32_t words[3];
    const size_t num_words = 1 + test_below(&rng, 3);
    for (size_t w = 0; w < num_words; w++) /* different ones, some of which no arc has */
      words[w] = 1 + (int32_t)w + 3 * (int32_t)test_below(&rng, 2);
    wf_spot_options options;
    wf_spot_options_init(&options);
    const float thresholds[] = {0, 0.0123f, 0.2345f, 0.5123f, 0.9123f};
    options.threshold = thresholds[test_below(&rng, 5)];
    wf_spot_hit *hits;
    size_t count;
    assert_ok(wf_compact_lattice_spot(lattice, words, num_words, &options, &hits, &count, &err));
    list.view = &view;
    list.num_found = list.num_paths = 0;
    list.total = 0;
    walk(&list, 0, 0, 0, 0);
    for (size_t k = 0; k < list.num_found; k++) list.found[k].probability /= list.total;
    check_hits(&list, words, num_words, (double)options.threshold, hits, count);
    for (size_t k = 0; k + 1 < count; k++) num_repeated += hits[k].label == hits[k + 1].label;
    num_hits += count;
    num_none += count == 0;
    num_lists++;
    wf_free(hits);
    wf_compact_lattice_free(lattice);
  }
  if (num_hits < 3000 || num_repeated < 500 || num_none < 100)
    fail_msg("%zu lists, %zu hits, %zu after a hit of the same word, %zu lists without hits",
             num_lists, num_hits, num_repeated, num_none);
}

/* A path of words of two frames, and a path of word 7 alone with probability 1/3. */
static wf_compact_lattice *chain(const int32_t *words, int count) {
  wf_error err = {0};
  wf__compact_arrays arrays = {0};
  wf_compact_lattice *lattice;
  for (int i = 0; i < 2 * count; i++) {
    assert_ok(wf__vec_grow(&arrays.labels, 1, "labels", &err));
    arrays.labels.data[arrays.labels.size++] = 1;
  }
  for (int i = 0; i < count; i++) {
    assert_ok(wf__compact_add_state(&arrays, (wf_compact_weight){.graph_cost = INFINITY}, &err));
    assert_ok(
        wf__compact_push(&arrays, (wf_compact_arc){words[i], i + 1, {.num_labels = 2}}, &err));
    if (i == 0)
      assert_ok(wf__compact_push(
          &arrays, (wf_compact_arc){7, count, {(float)log(2), 0, 2 * (uint32_t)count, 0}}, &err));
  }
  assert_ok(wf__compact_add_state(&arrays, (wf_compact_weight){0}, &err));
  assert_ok(wf__compact_finish(WF_OK, &arrays, &lattice, &err));
  return lattice;
}

static void test_repeated_word(void **state) {
  (void)state;
  wf_error err = {0};
  wf_spot_hit *hits;
  size_t count;
  wf_compact_lattice *lattice = chain((const int32_t[]){5, 5, 3, 5}, 4);
  const int32_t words[] = {7, 5, 9, 5}, starts[] = {0, 2, 6};
  assert_ok(wf_compact_lattice_spot(lattice, words, 4, NULL, &hits, &count, &err));
  assert_int_equal(count, 3); /* 7 is below the default threshold, 9 is not there */
  for (int i = 0; i < 3; i++) {
    assert_int_equal(hits[i].label, 5);
    assert_int_equal(hits[i].start_frame, starts[i]);
    assert_int_equal(hits[i].end_frame, hits[i].start_frame + 2);
    test_assert_close(hits[i].probability, 2.0 / 3, 1e-6);
  }
  wf_free(hits);
  wf_spot_options options;
  wf_spot_options_init(&options);
  options.threshold = 0.3f;
  assert_ok(wf_compact_lattice_spot(lattice, words, 1, &options, &hits, &count, &err));
  assert_int_equal(count, 1);
  assert_true(hits[0].label == 7 && hits[0].start_frame == 0 && hits[0].end_frame == 8);
  test_assert_close(hits[0].probability, 1.0 / 3, 1e-6);
  wf_free(hits);
  wf_compact_lattice_free(lattice);
}

static void test_odd_input(void **state) {
  (void)state;
  wf_error err = {0};
  wf_spot_hit *hits;
  size_t count = 1;
  wf_compact_lattice *lattice = chain((const int32_t[]){5}, 1), *empty;
  assert_ok(wf_compact_lattice_spot(lattice, NULL, 0, NULL, &hits, &count, &err));
  assert_true(hits == NULL && count == 0);
  const int32_t none = 0, one = 1;
  assert_int_equal(wf_compact_lattice_spot(lattice, &none, 1, NULL, &hits, &count, &err),
                   WF_ERR_ARGUMENT);
  assert_string_equal(err.message, "word 0 is 0, which is not a word label");
  wf_spot_options options;
  wf_spot_options_init(&options);
  options.threshold = 1.5f;
  assert_int_equal(wf_compact_lattice_spot(lattice, &one, 1, &options, &hits, &count, &err),
                   WF_ERR_ARGUMENT);
  wf_compact_lattice_free(lattice);

  wf__compact_arrays arrays = {0};
  assert_ok(wf__compact_finish(WF_OK, &arrays, &empty, &err));
  assert_ok(wf_compact_lattice_spot(empty, &one, 1, NULL, &hits, &count, &err));
  assert_true(hits == NULL && count == 0);
  wf_compact_lattice_free(empty);

  /* two paths, of no and of one frame, meet before word 1 */
  const wf_compact_weight not_final = {.graph_cost = INFINITY};
  assert_ok(wf__vec_grow(&arrays.labels, 1, "labels", &err));
  arrays.labels.data[arrays.labels.size++] = 1;
  assert_ok(wf__compact_add_state(&arrays, not_final, &err));
  assert_ok(wf__compact_push(&arrays, (wf_compact_arc){2, 1, {0}}, &err));
  assert_ok(wf__compact_push(&arrays, (wf_compact_arc){2, 1, {.num_labels = 1}}, &err));
  assert_ok(wf__compact_add_state(&arrays, not_final, &err));
  assert_ok(wf__compact_push(&arrays, (wf_compact_arc){1, 2, {.num_labels = 1}}, &err));
  assert_ok(wf__compact_add_state(&arrays, (wf_compact_weight){0}, &err));
  assert_ok(wf__compact_finish(WF_OK, &arrays, &lattice, &err));
  assert_int_equal(wf_compact_lattice_spot(lattice, &one, 1, NULL, &hits, &count, &err),
                   WF_ERR_ARGUMENT);
  assert_string_equal(err.message,
                      "paths of the lattice to word 1 differ in their number of frames");
  const int32_t two = 2;
  assert_ok(wf_compact_lattice_spot(lattice, &two, 1, NULL, &hits, &count, &err));
  assert_int_equal(count, 1); /* an arc without labels spans one frame */
  assert_true(hits[0].start_frame == 0 && hits[0].end_frame == 1 && hits[0].probability == 1);
  wf_free(hits);
  wf_compact_lattice_free(lattice);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_paths),
      cmocka_unit_test(test_repeated_word),
      cmocka_unit_test(test_odd_input),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
