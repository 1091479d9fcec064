/* test_frame_columns.c - a frame's scores by label, the lists of the cheapest labels, and scores that
 * cannot be used, against loops over all labels. */
#include "search/frame/frame_columns.h"

#include "decode_tasks.h"
#include "math/score.h"

static wf_error err;

/* Around multiples of what cells and blocks hold. */
static const int32_t sizes[] = {129, 130, 191,  192,  193,  194, 256,
                                257, 513, 1023, 1025, 2049, 4100};
enum { NUM_SIZES = sizeof sizes / sizeof *sizes };

/* --- a search over tokens alone ----------------------------------------------------------- */

/* One state, with an arc for each token but the blank, the last one. */
static wf_graph *tokens_graph(int32_t num_tokens) {
  wf_builder *builder;
  wf_fst *fst;
  wf_graph *graph;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, 1, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  assert_ok(wf_builder_set_final(builder, 0, 0, &err));
  for (int32_t label = 1; label < num_tokens; label++)
    assert_ok(wf_builder_add_arc(builder, 0, (wf_arc){.ilabel = label, .olabel = label}, &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  wf__fst_set_ctc_blank(fst, num_tokens);
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  assert_true(graph->num_wide == 1 && graph->num_labels == num_tokens + 1);
  wf_fst_free(fst);
  return graph;
}

static wf_decoder_options options_of(int32_t num_tokens) {
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  options.blank = num_tokens - 1;
  options.num_threads = 1;
  options.check_scores = 2;
  return options;
}

static wf__search *search_of(const wf_graph *graph, const wf_decoder_options *options) {
  const wf__search_setup setup = {.ops = &wf__frame_searcher, .graph = graph, .options = *options};
  wf__searcher *searcher;
  assert_ok(wf__frame_searcher.create(&setup, false, &searcher, &err));
  return (wf__search *)searcher;
}

/* Two frames of one kind each. */
struct rows {
  wf_scores scores;
  void *data;
};

/* Noise; ties, some of them -infinity; few that are possible; none; masked ones. */
static float random_score(test_rng *rng, uint32_t kind) {
  const uint32_t one = test_below(rng, 40);
  return kind < 2    ? -20 * test_unit(rng)
         : kind == 2 ? (one == 0 ? -INFINITY : -(float)test_below(rng, 9) / 4)
         : kind == 3 ? (one == 0 ? -test_unit(rng) : -INFINITY)
         : kind == 4 ? -INFINITY
                     : (one < 5 ? -1e4f : 3 - 6 * test_unit(rng));
}

static struct rows random_rows(test_rng *rng, int32_t num_tokens, wf_dtype dtype) {
  struct rows rows = {.scores = {.num_frames = 2,
                                 .num_columns = num_tokens,
                                 .stride = num_tokens + (int32_t)test_below(rng, 3),
                                 .dtype = dtype}};
  const int64_t stride = rows.scores.stride;
  rows.data = calloc((size_t)(2 * stride), sizeof(float));
  assert_non_null(rows.data);
  for (int64_t t = 0; t < 2; t++) {
    const uint32_t kind = test_below(rng, 6);
    for (int32_t c = 0; c < num_tokens; c++)
      test_put_score(rows.data, t * stride + c, random_score(rng, kind), dtype);
  }
  rows.scores.data = rows.data;
  return rows;
}

/* --- labels ------------------------------------------------------------------------------ */

static float cost_of(const wf_decoder_options *options, const wf_scores *scores, int64_t t,
                     int32_t label) {
  float score = wf__score_at(scores, t, label - 1);
  if (label - 1 == options->blank) score -= options->blank_penalty;
  return score == -INFINITY ? INFINITY : -(options->acoustic_scale * score);
}

static int compare_labels(const void *a, const void *b) {
  return *(const int32_t *)a - *(const int32_t *)b;
}

/* Exactly the labels of cost up to `bound` are listed, each once. */
static void assert_covered(wf__search *search, const float *costs, int32_t num_tokens,
                           float bound) {
  const wf__columns *columns = &search->step.columns;
  uint64_t count = 0;
  assert_ok(wf__columns_cover(search, bound, &err));
  int32_t *labels = malloc((columns->labels.size + 1) * sizeof *labels);
  assert_non_null(labels);
  memcpy(labels, columns->labels.data, columns->labels.size * sizeof *labels);
  qsort(labels, columns->labels.size, sizeof *labels, compare_labels);
  for (int32_t label = 1; label <= num_tokens; label++)
    if (costs[label] <= columns->covered && columns->covered > -INFINITY) {
      assert_true(count < columns->labels.size && labels[count] == label);
      count++;
    }
  assert_int_equal(count, columns->labels.size);
  assert_true(!(bound > columns->covered));
  free(labels);
}

/* As many labels as asked for are within the bound, but for its rounding. */
static void assert_bound(wf__search *search, const float *costs, int32_t num_tokens,
                         uint64_t wanted) {
  const float bound = wf__columns_bound(search, wanted);
  uint64_t within = 0, finite = 0;
  for (int32_t label = 1; label <= num_tokens; label++) {
    within += costs[label] <= bound + 1e-5f * (1 + fabsf(bound));
    finite += costs[label] < INFINITY;
  }
  assert_true(bound == INFINITY || within >= wanted);
  if (finite < wanted) assert_true(bound == INFINITY);
}

static void check_labels(uint64_t seed, uint64_t *num_listed) {
  test_rng rng = {seed};
  const int32_t num_tokens = sizes[test_below(&rng, NUM_SIZES)];
  wf_graph *graph = tokens_graph(num_tokens);
  wf_decoder_options options = options_of(num_tokens);
  options.acoustic_scale = (float[]){1, 1, 0.3f, 0}[test_below(&rng, 4)];
  options.blank_penalty = test_below(&rng, 3) == 0 ? 2.5f : 0;
  wf__search *search = search_of(graph, &options);
  struct rows rows = random_rows(&rng, num_tokens, (wf_dtype)test_below(&rng, 3));
  float *costs = malloc(((size_t)num_tokens + 1) * sizeof *costs);
  assert_non_null(costs);
  for (int64_t t = 0; t < 2; t++) {
    assert_ok(wf__columns_read(search, &rows.scores, t, &err));
    for (int32_t label = 1; label <= num_tokens; label++) {
      costs[label] = cost_of(&options, &rows.scores, t, label);
      assert_true(wf__label_cost(search, label) == costs[label]);
      assert_true(search->step.columns.least <= costs[label]);
    }
    for (int i = 0; i < 4; i++) /* often the cost of a label */
      assert_covered(search, costs, num_tokens,
                     costs[1 + test_below(&rng, (uint32_t)num_tokens)] +
                         (test_below(&rng, 3) == 0 ? test_unit(&rng) : 0));
    *num_listed += search->step.columns.labels.size;
    for (int i = 0; i < 4; i++)
      assert_bound(search, costs, num_tokens, 1 + test_below(&rng, (uint32_t)num_tokens + 10));
    assert_bound(search, costs, num_tokens, 21);
    assert_covered(search, costs, num_tokens, INFINITY);
    assert_int_equal(search->step.columns.labels.size, num_tokens);
  }
  free(costs);
  free(rows.data);
  wf__frame_searcher.free(&search->base);
  wf_graph_free(graph);
}

static void test_labels(void **state) {
  (void)state;
  const uint64_t seeds = 600;
  uint64_t num_listed = 0;
  for (uint64_t seed = 1; seed <= test_seeds(seeds); seed++) check_labels(seed, &num_listed);
  assert_true(test_many(num_listed, 100000, seeds));
}

/* Few labels more than wanted are within the bound if the scores are noise. */
static void test_bound_is_near(void **state) {
  (void)state;
  test_rng rng = {5};
  for (int s = 0; s < NUM_SIZES; s++) {
    const int32_t num_tokens = sizes[s];
    wf_graph *graph = tokens_graph(num_tokens);
    const wf_decoder_options options = options_of(num_tokens);
    wf__search *search = search_of(graph, &options);
    float *row = malloc((size_t)num_tokens * sizeof *row);
    assert_non_null(row);
    for (int32_t c = 0; c < num_tokens; c++) row[c] = -30 * test_unit(&rng);
    row[3] = 0; /* the distance of the others is from the highest */
    const wf_scores scores = {
        .data = row, .num_frames = 1, .num_columns = num_tokens, .stride = num_tokens};
    assert_ok(wf__columns_read(search, &scores, 0, &err));
    const float bound = wf__columns_bound(search, 21);
    int within = 0;
    for (int32_t c = 0; c < num_tokens; c++) within += -row[c] <= bound;
    assert_in_range(within, 21, 60);
    free(row);
    wf__frame_searcher.free(&search->base);
    wf_graph_free(graph);
  }
}

/* --- scores that cannot be used ------------------------------------------------------------ */

static void assert_bad(wf_status status, int64_t frame, int32_t column) {
  char place[64];
  snprintf(place, sizeof place, "frame %lld, column %d is", (long long)frame, (int)column);
  assert_int_equal(status, WF_ERR_ARGUMENT);
  if (strstr(err.message, place) == NULL) fail_msg("%s: not %s", err.message, place);
}

/* Cut off, not rounded, for bfloat16. */
static void put_exactly(void *data, int64_t i, float value, wf_dtype dtype) {
  const uint32_t bits = wf__bits_of_float(value);
  if (dtype == WF_FLOAT16)
    test_put_score(data, i, value, dtype);
  else if (dtype == WF_FLOAT32)
    ((uint32_t *)data)[i] = bits;
  else
    ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
}

/* Among all kinds of neighbours, which alone are good. */
static void test_bad_scores(void **state) {
  (void)state;
  static const float good[] = {-3, -3, -3, 0, -INFINITY, 1e18f, 1e20f, -1e20f, -1e19f, 2e4f},
                     bad[] = {NAN, INFINITY, -NAN, 1.1e20f, -1.1e20f, -3e38f};
  const uint64_t seeds = 3000;
  for (uint64_t seed = 1; seed <= test_seeds(seeds); seed++) {
    test_rng rng = {seed};
    const int32_t num_tokens = sizes[test_below(&rng, NUM_SIZES - 1)];
    const uint32_t dtype = test_below(&rng, 3), most = 1 + test_below(&rng, 10);
    wf_graph *graph = tokens_graph(num_tokens);
    wf_decoder_options options = options_of(num_tokens);
    options.blank_penalty = test_below(&rng, 4) == 0 ? -1 : 0;
    wf__search *search = search_of(graph, &options);
    struct rows rows = random_rows(&rng, num_tokens, (wf_dtype)dtype);
    const int64_t stride = rows.scores.stride;
    const uint32_t kinds = dtype == WF_FLOAT16 && most > 5 ? 5 : most;
    for (int32_t c = 0; c < num_tokens; c++)
      put_exactly(rows.data, stride + c, good[test_below(&rng, kinds)], (wf_dtype)dtype);
    assert_ok(wf__columns_read(search, &rows.scores, 1, &err));
    assert_ok(wf__columns_check(search, &rows.scores, 1, &err));
    const int32_t places[] = {0,
                              num_tokens - 1,
                              num_tokens - 2,
                              63,
                              64,
                              (int32_t)test_below(&rng, (uint32_t)num_tokens)},
                  column = places[test_below(&rng, 6)];
    put_exactly(rows.data, stride + column, bad[test_below(&rng, dtype == WF_FLOAT16 ? 3 : 6)],
                (wf_dtype)dtype);
    assert_bad(wf__columns_read(search, &rows.scores, 1, &err), 1, column);
    assert_bad(wf__columns_check(search, &rows.scores, 1, &err), 1, column);
    free(rows.data);
    wf__frame_searcher.free(&search->base);
    wf_graph_free(graph);
  }
}

/* Frames are checked that the search does not read: those after its death, and skipped ones. */
static void test_frames_not_searched(void **state) {
  (void)state;
  enum { NUM_TOKENS = 150, NUM_FRAMES = 6 };
  static float row[NUM_FRAMES][NUM_TOKENS];
  wf_graph *graph = tokens_graph(NUM_TOKENS);
  const wf_scores scores = {
      .data = row, .num_frames = NUM_FRAMES, .num_columns = NUM_TOKENS, .stride = NUM_TOKENS};
  for (int dies = 0; dies < 2; dies++) {
    wf_decoder_options options = options_of(NUM_TOKENS);
    options.blank_skip_threshold = dies ? 1 : 0.5f;
    wf__search *search = search_of(graph, &options);
    for (int t = 0; t < NUM_FRAMES; t++)
      for (int c = 0; c < NUM_TOKENS; c++)
        row[t][c] = dies && t == 1 ? -INFINITY : c == NUM_TOKENS - 1 ? -0.1f : -9;
    assert_ok(wf__search_begin(&search->base, &err));
    assert_ok(wf__searcher_advance(&search->base, &scores, &err));
    assert_int_equal(search->died, dies);
    row[4][140] = NAN;
    assert_ok(wf__search_begin(&search->base, &err));
    assert_bad(wf__searcher_advance(&search->base, &scores, &err), 4, 140);
    wf__frame_searcher.free(&search->base);
  }
  wf_graph_free(graph);
}

/* Each float16, from the definition. */
static void test_halves(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits < 1 << 16; bits++) {
    const int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
    const float got = wf__float_of_half((uint16_t)bits),
                size = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                       : exponent == 0 ? ldexpf((float)fraction, -24)
                                       : ldexpf((float)(1024 + fraction), exponent - 25);
    assert_int_equal(signbit(got) != 0, bits >> 15);
    assert_true(isnan(size) ? isnan(got) : fabsf(got) == size);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_labels),     cmocka_unit_test(test_bound_is_near),
      cmocka_unit_test(test_bad_scores), cmocka_unit_test(test_frames_not_searched),
      cmocka_unit_test(test_halves),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
