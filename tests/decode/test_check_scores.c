/* test_check_scores.c - the check for scores that look wrong. Each cause is reported once, with
 * figures; probabilities and costs fail. Correct scores are not reported. Also the default of
 * min_active for each kind of graph. */
#include "decode_tasks.h"

enum { NUM_TOKENS = 40, BLANK = 3, NUM_FRAMES = 90, NUM_COLUMNS = NUM_TOKENS + 2 };

static wf_error err;

/* A CTC graph whose words are its tokens. If `named`, it has a token table; otherwise nothing marks
 * it as a CTC graph. The blank is not the first column. */
static wf_graph *make_graph(const char *blank_name, bool named) {
  wf_symbols *symbols;
  wf_fst *fst, *with_names;
  wf_graph *graph;
  assert_ok(wf_symbols_create("tokens", &symbols, &err));
  assert_ok(wf_symbols_add(symbols, "<eps>", 0, NULL, &err));
  for (int c = 0; c < NUM_TOKENS; c++) {
    char name[16];
    snprintf(name, sizeof name, "t%d", c);
    assert_ok(wf_symbols_add(symbols, c == BLANK ? blank_name : name, c + 1, NULL, &err));
  }
  wf_topology_options options;
  wf_topology_options_init(&options);
  options.type = 0;
  assert_ok(wf_ctc_topology(NUM_TOKENS, BLANK, &options, &fst, &err));
  assert_ok(wf_fst_with_symbols(fst, named ? symbols : NULL, NULL, &with_names, &err));
  assert_ok(wf_graph_create(with_names, NULL, 0, &graph, &err));
  wf_fst_free(with_names);
  wf_fst_free(fst);
  wf_symbols_free(symbols);
  return graph;
}

/* Log-posteriors like those of a model: the blank in most frames, another token in the rest. There
 * is room for two more columns. */
struct matrix {
  float data[NUM_FRAMES * NUM_COLUMNS];
  wf_scores scores;
};

static void fill(struct matrix *m, uint64_t seed) {
  test_rng rng = {seed};
  for (int t = 0; t < NUM_FRAMES; t++) {
    double row[NUM_TOKENS], sum = 0;
    int best = t % 3 == 0 ? (int)test_below(&rng, NUM_TOKENS) : BLANK;
    for (int c = 0; c < NUM_TOKENS; c++)
      sum += row[c] = exp((c == best ? 7 : 0) + 3 * (double)test_unit(&rng));
    for (int c = 0; c < NUM_TOKENS; c++) m->data[t * NUM_COLUMNS + c] = (float)log(row[c] / sum);
    m->data[t * NUM_COLUMNS + NUM_TOKENS] = m->data[t * NUM_COLUMNS + NUM_TOKENS + 1] = -20;
  }
  m->scores = (wf_scores){
      .data = m->data, .num_frames = NUM_FRAMES, .num_columns = NUM_TOKENS, .stride = NUM_COLUMNS};
}

static float *at(struct matrix *m, int t, int c) { return &m->data[t * NUM_COLUMNS + c]; }
#define FOR_EACH(m, x)                     \
  for (int t = 0; t < NUM_FRAMES; t++)     \
    for (int c = 0; c < NUM_TOKENS; c++) { \
      float *const x = at(m, t, c);        \
      (void)x

/* --- changes of the scores --------------------------------------------------------------- */

typedef void change_fn(struct matrix *m);
static void nothing(struct matrix *m) { (void)m; }
static void probabilities(struct matrix *m) {
  FOR_EACH(m, x);
  *x = expf(*x);
}
}
static void base_10(struct matrix *m) {
  FOR_EACH(m, x);
  *x = (float)((double)*x / log(10));
}
}
static void negated(struct matrix *m) {
  FOR_EACH(m, x);
  *x = -*x;
}
}
static void logits(struct matrix *m) {
  FOR_EACH(m, x);
  *x += 9 + (float)(t % 5);
}
}
static void likelihoods(struct matrix *m) {
  FOR_EACH(m, x);
  *x -= 50;
}
}
static void column_more(struct matrix *m) { m->scores.num_columns++; }
static void zeros_behind(struct matrix *m) {
  for (int t = 0; t < NUM_FRAMES; t++) *at(m, t, NUM_TOKENS) = 0;
  m->scores.num_columns++;
}
static void shifted(struct matrix *m) {
  for (int t = 0; t < NUM_FRAMES; t++) {
    float last = *at(m, t, NUM_TOKENS - 1);
    memmove(at(m, t, 1), at(m, t, 0), (NUM_TOKENS - 1) * sizeof(float));
    *at(m, t, 0) = last;
  }
}
static void transposed(struct matrix *m) {
  static float copy[NUM_TOKENS][NUM_FRAMES];
  FOR_EACH(m, x);
  copy[c][t] = *x;
}
memcpy(m->data, copy, sizeof copy);
m->scores = (wf_scores){
    .data = m->data, .num_frames = NUM_TOKENS, .num_columns = NUM_FRAMES, .stride = NUM_FRAMES};
}
/* Correct scores: rounded to 6 bits of mantissa, with a blank penalty, divided by the mean of each
 * column (priors), or scaled. */
static void rounded(struct matrix *m) {
  FOR_EACH(m, x);
  int exponent;
  float fraction = frexpf(*x, &exponent);
  *x = ldexpf(roundf(fraction * 64) / 64, exponent);
}
}
static void with_penalty(struct matrix *m) {
  FOR_EACH(m, x);
  *x -= c == BLANK ? 5 : 0;
}
}
static void without_priors(struct matrix *m) {
  double prior[NUM_TOKENS] = {0};
  FOR_EACH(m, x);
  prior[c] += exp((double)*x) / NUM_FRAMES;
}
FOR_EACH(m, x);
*x -= (float)log(prior[c]);
}
}
static void scaled(struct matrix *m) {
  FOR_EACH(m, x);
  *x *= 0.8f;
}
}
static void impossible(struct matrix *m) {
  FOR_EACH(m, x);
  *x = *x < -8 ? -INFINITY : *x;
}
}

static const struct {
  change_fn *change;
  const char *message; /* a part of the message; NULL: the scores are correct */
} cases[] = {
    {nothing, NULL},
    {rounded, NULL},
    {with_penalty, NULL},
    {without_priors, NULL},
    {scaled, NULL},
    {impossible, NULL},
    {probabilities, "look like probabilities"},
    {base_10, "logarithms to base 10"},
    {negated, "look like costs"},
    {logits, "Are they logits or likelihoods"},
    {likelihoods, "Are they logits or likelihoods"},
    {transposed, "look transposed: 40 frames, as many as the graph has tokens, of 90 columns"},
    {column_more, "the scores have 41 columns, the graph's table has 40 tokens"},
    {zeros_behind, "the scores have 41 columns, the graph's table has 40 tokens"},
    {shifted, "Is the blank column 4"}};
enum { NUM_CASES = sizeof cases / sizeof *cases };

/* Scores of which none is below 0 fail with check_scores=warn, too. */
static bool always_fails(change_fn *change) { return change == probabilities || change == negated; }

/* --- tests ------------------------------------------------------------------------------- */

struct warnings {
  int times;
  char last[1024];
};
static void listen(void *user, wf_log_level level, const char *message) {
  struct warnings *warnings = user;
  if (level != WF_LOG_WARNING) return;
  warnings->times++;
  snprintf(warnings->last, sizeof warnings->last, "%s", message);
}

static wf_decoder *open_decoder(const wf_graph *graph, int32_t check, int32_t threads) {
  wf_decoder *decoder;
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  options.check_scores = check;
  options.num_threads = threads;
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  return decoder;
}

enum { WARN, ERROR, OFF, BATCH = 5 };

/* Decodes the same batch twice. Returns the second results and the warnings of both. */
static void decode(const wf_graph *graph, int32_t check, const struct matrix *m,
                   wf_result **results, struct warnings *warnings) {
  wf_scores batch[BATCH];
  wf_decoder *decoder = open_decoder(graph, check, 2);
  *warnings = (struct warnings){0};
  wf_set_log(listen, warnings);
  for (int i = 0; i < BATCH; i++) batch[i] = m->scores;
  assert_ok(test_decode(decoder, batch, BATCH, NULL, results, &err));
  test_free_results(results, BATCH);
  assert_ok(test_decode(decoder, batch, BATCH, NULL, results, &err));
  wf_set_log(NULL, NULL);
  wf_decoder_free(decoder);
}

static void assert_all_fail(wf_result **results, const char *message) {
  for (int i = 0; i < BATCH; i++) {
    assert_int_equal(results[i]->status, message != NULL ? WF_ERR_ARGUMENT : WF_OK);
    if (message != NULL) assert_non_null(strstr(results[i]->message, message));
  }
}

static void test_each_cause_is_reported_once(void **state) {
  (void)state;
  static const char *const names[] = {"<blk>",
                                      "_"}; /* the usual name; and another, so that the blank is
                                               found by the loop at the graph's start */
  static struct matrix m;
  wf_result *results[BATCH], *silent[BATCH];
  struct warnings warnings;
  for (int k = 0; k < 2 * NUM_CASES; k++) {
    const char *message = cases[k / 2].message;
    wf_graph *graph = make_graph(names[k % 2], true);
    fill(&m, (uint64_t)k);
    cases[k / 2].change(&m);
    decode(graph, WARN, &m, results, &warnings);
    assert_int_equal(warnings.times, message != NULL);
    if (message != NULL && strstr(warnings.last, message) == NULL)
      fail_msg("'%s' is not in '%s'", message, warnings.last);
    decode(graph, OFF, &m, silent, &warnings);
    assert_int_equal(warnings.times, 0);
    if (always_fails(cases[k / 2].change)) {
      assert_all_fail(results, message);
      assert_all_fail(silent, NULL);
    } else {
      test_assert_same_batch((uint64_t)k, results, silent, BATCH);
    }
    test_free_results(silent, BATCH);
    test_free_results(results, BATCH);
    decode(graph, ERROR, &m, results, &warnings);
    assert_int_equal(warnings.times, 0);
    assert_all_fail(results, message);
    test_free_results(results, BATCH);
    wf_graph_free(graph);
  }
}

/* Without check_scores=error only the first utterances are all checked. All probabilities fail
 * nevertheless, and the right ones among them are decoded. */
static void test_all_probabilities_fail(void **state) {
  (void)state;
  enum { MANY = 200 };
  static struct matrix right, wrong;
  static wf_scores batch[MANY];
  static wf_result *results[MANY];
  wf_graph *graph = make_graph("<blk>", true);
  wf_decoder *decoder = open_decoder(graph, WARN, 1);
  fill(&right, 1);
  fill(&wrong, 1);
  probabilities(&wrong);
  for (int i = 0; i < MANY; i++) batch[i] = i % 3 == 1 ? right.scores : wrong.scores;
  assert_ok(test_decode(decoder, batch, MANY, NULL, results, &err));
  for (int i = 0; i < MANY; i++)
    assert_int_equal(results[i]->status, i % 3 == 1 ? WF_OK : WF_ERR_ARGUMENT);
  test_free_results(results, MANY);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
}

/* A graph that is not marked as a CTC graph accepts any scores, because scores of hybrid models are
 * not posteriors. */
static void test_graphs_without_ctc_table(void **state) {
  (void)state;
  static struct matrix m;
  wf_result *results[BATCH];
  struct warnings warnings;
  wf_graph *graph = make_graph("<blk>", false);
  for (int k = 0; k < NUM_CASES; k++) {
    if (cases[k].change == probabilities || cases[k].change == transposed)
      continue; /* too flat: see test_max_active_warning */
    fill(&m, 1);
    cases[k].change(&m);
    decode(graph, ERROR, &m, results, &warnings);
    for (int i = 0; i < BATCH; i++) assert_int_equal(results[i]->status, WF_OK);
    test_free_results(results, BATCH);
  }
  wf_graph_free(graph);
}

/* Chunks of 7 frames report the same causes, except that finding the blank's column takes more
 * frames than one chunk. */
static void test_streams(void **state) {
  (void)state;
  static struct matrix m;
  wf_graph *graph = make_graph("<blk>", true);
  for (int k = 0; k < 2 * NUM_CASES; k++) {
    bool wrong = cases[k / 2].message != NULL, error = k % 2 == 1,
         fails = error || always_fails(cases[k / 2].change);
    if (cases[k / 2].change == transposed) continue; /* not detectable in chunks */
    struct warnings warnings = {0};
    wf_decoder *decoder = open_decoder(graph, error ? ERROR : WARN, 1);
    wf_stream *stream;
    wf_result *result;
    fill(&m, (uint64_t)k);
    cases[k / 2].change(&m);
    wf_set_log(listen, &warnings);
    assert_ok(wf_stream_create(decoder, NULL, &stream, &err));
    for (int64_t from = 0; from < NUM_FRAMES; from += 7) {
      wf_scores chunk = m.scores;
      chunk.data = m.data + from * chunk.stride;
      chunk.num_frames = NUM_FRAMES - from < 7 ? NUM_FRAMES - from : 7;
      assert_ok(wf_stream_advance(stream, &chunk, NULL, &err));
    }
    assert_ok(wf_stream_finish(stream, &result, &err));
    wf_set_log(NULL, NULL);
    assert_int_equal(warnings.times, wrong && !error);
    assert_int_equal(result->status, wrong && fails ? WF_ERR_ARGUMENT : WF_OK);
    if (wrong && !error) assert_non_null(strstr(warnings.last, cases[k / 2].message));
    if (wrong && fails) assert_non_null(strstr(result->message, cases[k / 2].message));
    wf_result_free(result);
    wf_stream_free(stream);
    wf_decoder_free(decoder);
  }
  wf_graph_free(graph);
}

/* The check samples utterances, but it still finds scores that turn wrong late. */
static void test_scores_that_turn_wrong_late(void **state) {
  (void)state;
  static struct matrix m;
  struct warnings warnings = {0};
  wf_graph *graph = make_graph("<blk>", true);
  wf_decoder *decoder = open_decoder(graph, WARN, 1);
  wf_set_log(listen, &warnings);
  for (int i = 0; i < 400; i++) {
    wf_result *result;
    fill(&m, (uint64_t)i);
    if (i >= 300) base_10(&m);
    m.scores.num_frames = 10;
    assert_ok(test_decode(decoder, &m.scores, 1, NULL, &result, &err));
    wf_result_free(result);
    assert_true(i >= 300 || warnings.times == 0);
  }
  wf_set_log(NULL, NULL);
  assert_int_equal(warnings.times, 1);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
}

static void test_max_active_warning(void **state) {
  (void)state;
  static struct matrix m;
  fill(&m, 1);
  for (int k = 0; k < 6; k++) {
    struct warnings warnings = {0};
    wf_graph *graph = make_graph("<blk>", k % 2 == 0);
    wf_decoder_options options;
    wf_decoder *decoder;
    wf_result *result;
    wf_decoder_options_init(&options);
    options.max_active = 10;
    options.check_scores = k / 2;
    assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
    wf_set_log(listen, &warnings);
    for (int i = 0; i < 2; i++) {
      assert_ok(test_decode(decoder, &m.scores, 1, NULL, &result, &err));
      assert_true(result->num_narrowed * 2 > NUM_FRAMES);
      assert_int_equal(result->status, k / 2 == ERROR ? WF_ERR_ARGUMENT : WF_OK);
      const char *text = k / 2 == ERROR ? result->message : warnings.last;
      assert_true(k / 2 == OFF || strstr(text, "max_active=10 tokens were reached in ") != NULL);
      wf_result_free(result);
    }
    wf_set_log(NULL, NULL);
    assert_int_equal(warnings.times, k / 2 == WARN);
    wf_decoder_free(decoder);
    wf_graph_free(graph);
  }
}

/* NaN is reported by the search, not by this check. Matrices without frames are ignored. */
static void test_nan_and_empty_scores(void **state) {
  (void)state;
  static struct matrix m;
  wf_result *results[BATCH];
  struct warnings warnings;
  wf_graph *graph = make_graph("<blk>", true);
  fill(&m, 1);
  FOR_EACH(&m, x);
  *x = NAN;
}
decode(graph, WARN, &m, results, &warnings);
assert_int_equal(warnings.times, 0);
assert_non_null(strstr(results[0]->message, "NaN"));
test_free_results(results, BATCH);
m.scores.num_frames = 0;
decode(graph, ERROR, &m, results, &warnings);
assert_int_equal(results[0]->status, WF_OK);
test_free_results(results, BATCH);
fill(&m, 1);
transposed(&m);
m.scores.num_columns = 20; /* fewer columns than the graph reads: an error in any case */
decode(graph, OFF, &m, results, &warnings);
assert_non_null(strstr(results[0]->message, "are they transposed?"));
test_free_results(results, BATCH);
wf_graph_free(graph);
}

static uint64_t tokens_with(const wf_graph *graph, const wf_scores *scores, int32_t min_active) {
  wf_decoder_options options;
  wf_decoder *decoder;
  wf_result *result;
  wf_decoder_options_init(&options);
  assert_int_equal(options.min_active, -1);
  options.beam = 0.5f;
  options.min_active = min_active;
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  assert_ok(test_decode(decoder, scores, 1, NULL, &result, &err));
  uint64_t count = result->num_tokens;
  wf_result_free(result);
  wf_decoder_free(decoder);
  return count;
}

static void test_default_min_active(void **state) {
  (void)state;
  static struct matrix m;
  wf_graph *ctc = make_graph("<blk>", true), *other = make_graph("<blk>", false);
  fill(&m, 1);
  assert_int_equal(tokens_with(ctc, &m.scores, -1), tokens_with(ctc, &m.scores, 20));
  assert_int_equal(tokens_with(other, &m.scores, -1), tokens_with(other, &m.scores, 200));
  assert_int_not_equal(tokens_with(ctc, &m.scores, 20), tokens_with(ctc, &m.scores, 200));
  wf_graph_free(other);
  wf_graph_free(ctc);
}

/* Scores of many more columns than tokens are refused, whatever their values, unless the check is
 * off. Columns of tokens that the table leaves out, and padding, are no error. */
static void test_columns_of_another_model(void **state) {
  (void)state;
  static float data[4 * 400];
  static const int32_t good[] = {40, 41, 44, 48, 64, 128}, bad[] = {45, 47, 56, 96, 100, 200, 256};
  wf_graph *graph = make_graph("<blk>", true);
  for (int k = 0; k < 3 * 13; k++) {
    const bool fits = k / 3 < 6;
    const int32_t columns = fits ? good[k / 3] : bad[k / 3 - 6];
    wf_decoder *decoder = open_decoder(graph, k % 3, 1);
    const wf_scores scores = {
        .data = data, .num_frames = 4, .num_columns = columns, .stride = columns};
    wf_result *result;
    assert_ok(test_decode(decoder, &scores, 1, NULL, &result, &err));
    if (k % 3 != ERROR) assert_int_equal(result->status == WF_OK, fits || k % 3 == OFF);
    if (!fits && k % 3 != OFF) assert_non_null(strstr(result->message, "scores of another model"));
    wf_result_free(result);
    wf_decoder_free(decoder);
  }
  wf_graph_free(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_cause_is_reported_once),
                                     cmocka_unit_test(test_all_probabilities_fail),
                                     cmocka_unit_test(test_graphs_without_ctc_table),
                                     cmocka_unit_test(test_streams),
                                     cmocka_unit_test(test_scores_that_turn_wrong_late),
                                     cmocka_unit_test(test_max_active_warning),
                                     cmocka_unit_test(test_nan_and_empty_scores),
                                     cmocka_unit_test(test_columns_of_another_model),
                                     cmocka_unit_test(test_default_min_active)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
