/* test_beam_texts.c - beam search with tokens that spell words, compared with all alignments of short utterances.
 */
#include "base/interrupt.h"
#include "compat/beam.h"
#include "lm_model.h"
#include "testing.h"

enum { FRAMES = 6, TOKENS = 5, UTTERANCES = 12, MAX_TEXTS = 4000 };

static const wf_beam_text characters[TOKENS] = {{"", false, false},
                                                {"a", false, false},
                                                {" ", false, true},
                                                {"b", false, false},
                                                {"ab", false, false}};
static const wf_beam_text pieces[TOKENS] = {{"a", true, false},
                                            {"b", false, false},
                                            {"", false, false},
                                            {"ab", true, false},
                                            {"b", true, true}};

struct sums {
  char text[MAX_TEXTS][40];
  double sum[MAX_TEXTS], best[MAX_TEXTS];
  size_t count;
};

static double add_logs(double a, double b) { return fmax(a, b) + log1p(exp(-fabs(a - b))); }

static void add(struct sums *sums, const char *text, double log_prob) {
  size_t i = 0;
  while (i < sums->count && strcmp(sums->text[i], text) != 0) i++;
  if (i == sums->count) {
    assert_true(i < MAX_TEXTS);
    strcpy(sums->text[i], text);
    sums->best[i] = sums->sum[i] = log_prob;
    sums->count++;
  } else {
    sums->best[i] = fmax(sums->best[i], log_prob);
    sums->sum[i] = add_logs(sums->sum[i], log_prob);
  }
}

/* Writes the words of an alignment, separated by single spaces. */
static void spell(const wf_beam_text *tokens, int32_t blank, const int *alignment, char *out) {
  size_t size = 0;
  bool in_word = false;
  for (int t = 0; t < FRAMES; t++) {
    if (alignment[t] == blank || (t > 0 && alignment[t] == alignment[t - 1])) continue;
    const wf_beam_text *token = &tokens[alignment[t]];
    bool has_text = token->text[0] != 0 && token->text[0] != ' ';
    if (token->starts_word) in_word = false;
    if (has_text && !in_word && size > 0) out[size++] = ' ';
    if (has_text) size += (size_t)sprintf(out + size, "%s", token->text);
    in_word = (in_word || has_text) && !token->ends_word;
  }
  out[size] = 0;
}

static void sum_alignments(const wf_beam_text *tokens, int32_t blank, const float *scores,
                           struct sums *sums) {
  int alignment[FRAMES] = {0}, t = 0;
  sums->count = 0;
  while (t < FRAMES) {
    char text[40];
    double log_prob = 0;
    for (t = 0; t < FRAMES; t++) log_prob += (double)scores[t * TOKENS + alignment[t]];
    spell(tokens, blank, alignment, text);
    add(sums, text, log_prob);
    for (t = 0; t < FRAMES && ++alignment[t] == TOKENS; t++) alignment[t] = 0;
  }
}

static void random_scores(test_rng *rng, float *scores) {
  for (int t = 0; t < FRAMES; t++, scores += TOKENS) {
    double sum = 0;
    for (int c = 0; c < TOKENS; c++) sum += exp((double)(scores[c] = 4 * test_unit(rng)));
    for (int c = 0; c < TOKENS; c++) scores[c] -= (float)log(sum);
  }
}

static wf_beam_searcher *searcher_of(const wf_beam_text *tokens, int32_t blank, const wf_lm *lm) {
  wf_error err = {0};
  wf_beam_text copy[TOKENS];
  memcpy(copy, tokens, sizeof copy);
  for (int c = 0; c < TOKENS; c++)
    if (copy[c].text[0] == ' ') copy[c].text = "";
  const char *const words[] = {"a", "ab"};
  const wf_beam_parts parts = {.texts = copy,
                               .num_texts = TOKENS,
                               .blank = blank,
                               .lm = lm,
                               .known_words = words,
                               .num_known_words = 2};
  wf_beam_searcher *searcher;
  assert_ok(wf_beam_searcher_create(&parts, &searcher, &err));
  return searcher;
}

static wf_beam_options wide(void) {
  wf_beam_options options;
  wf_beam_options_init(&options);
  options.beam_size = 1000000;
  options.beam = 1e6f;
  options.min_token_log_prob = -1e6f;
  options.sum_alignments = true;
  return options;
}

static void check_texts(const wf_beam_result *result, const struct sums *sums, bool summed) {
  assert_int_equal(result->status, WF_OK);
  assert_int_equal(result->num_paths, sums->count);
  for (size_t i = 0; i < result->num_paths; i++) {
    const wf_beam_path *text = &result->paths[i];
    char joined[80] = "";
    int32_t end = 0;
    for (size_t w = 0; w < text->num_spelled; w++) {
      if (w > 0) strcat(joined, " ");
      strcat(joined, text->spelled[w].text);
      assert_true(text->spelled[w].start_frame >= end);
      end = text->spelled[w].end_frame;
      assert_true(text->spelled[w].start_frame < end && end <= FRAMES);
    }
    size_t at = 0;
    while (at < sums->count && strcmp(sums->text[at], joined) != 0) at++;
    assert_true(at < sums->count);
    test_assert_close(text->token_score, summed ? sums->sum[at] : sums->best[at], 1e-4);
    assert_true(i == 0 || text->score <= text[-1].score);
    assert_int_equal(text->lm_state, -1);
  }
}

static void test_sums(void **state) {
  (void)state;
  static struct sums sums;
  static float scores[UTTERANCES][FRAMES * TOKENS];
  test_rng rng = {1};
  wf_error err = {0};
  wf_beam_options options = wide();
  for (int kind = 0; kind < 4; kind++) {
    const wf_beam_text *tokens = kind % 2 == 0 ? characters : pieces;
    int32_t blank = kind % 2 == 0 ? 0 : 2;
    options.sum_alignments = kind < 2;
    wf_beam_searcher *searcher = searcher_of(tokens, blank, NULL);
    wf_beam_input inputs[UTTERANCES] = {0};
    wf_beam_result *results[UTTERANCES];
    for (int u = 0; u < UTTERANCES; u++) {
      random_scores(&rng, scores[u]);
      inputs[u].scores = (wf_scores){.data = scores[u],
                                     .num_frames = FRAMES,
                                     .num_columns = TOKENS,
                                     .stride = TOKENS,
                                     .dtype = WF_FLOAT32};
      inputs[u].lm_state = -1;
    }
    options.num_threads = 1 + 2 * (kind % 2);
    assert_ok(wf_beam_decode(searcher, inputs, UTTERANCES, &options, results, &err));
    for (int u = 0; u < UTTERANCES; u++) {
      sum_alignments(tokens, blank, scores[u], &sums);
      check_texts(results[u], &sums, options.sum_alignments);
      wf_beam_result_free(results[u]);
    }
    wf_beam_searcher_free(searcher);
  }
}

static void test_failed_utterances(void **state) {
  (void)state;
  wf_error err = {0};
  float good[FRAMES * TOKENS], bad[FRAMES * TOKENS];
  test_rng rng = {2};
  random_scores(&rng, good);
  memcpy(bad, good, sizeof bad);
  bad[TOKENS + 3] = NAN;
  wf_lm *lm = lm_of("\\data\\\nngram 1=3\n\n\\1-grams:\n-1 </s>\n-99 <s>\n-0.5 a\n\n\\end\\\n");
  wf_beam_searcher *searcher = searcher_of(characters, 0, lm);
  wf_lm_free(lm); /* the searcher has its own reference */
  wf_beam_input inputs[5] = {0};
  wf_beam_result *results[5];
  wf_beam_options options = wide();
  for (int u = 0; u < 5; u++) {
    inputs[u].scores = (wf_scores){.data = u == 1 ? bad : good,
                                   .num_frames = FRAMES,
                                   .num_columns = TOKENS,
                                   .stride = TOKENS,
                                   .dtype = WF_FLOAT32};
    inputs[u].lm_state = u == 2 ? 1000 : -1;
  }
  inputs[3].scores.num_columns = TOKENS - 1;
  inputs[4].scores.num_frames = 0;
  assert_ok(wf_beam_decode(searcher, inputs, 5, &options, results, &err));
  assert_true(results[0]->status == WF_OK && results[0]->paths[0].lm_state >= 0);
  assert_true(results[4]->status == WF_OK && results[4]->num_paths == 1);
  assert_int_equal(results[4]->paths[0].num_spelled, 0);
  test_assert_close(results[4]->paths[0].score, -2 * M_LN10, 1e-5); /* of </s> */
  for (int u = 1; u < 4; u++)
    assert_true(results[u]->status == WF_ERR_ARGUMENT && results[u]->num_paths == 0);
  assert_string_equal(results[1]->message, "utterance 1: frame 1, column 3: the score is nan");
  assert_string_equal(results[2]->message, "utterance 2: the language model has no state 1000");
  assert_string_equal(results[3]->message,
                      "utterance 3: the scores have 4 columns, there are 5 tokens");
  for (int u = 0; u < 5; u++) wf_beam_result_free(results[u]);
  options.beam_size = 0;
  assert_int_equal(wf_beam_decode(searcher, inputs, 5, &options, results, &err), WF_ERR_ARGUMENT);
  assert_null(results[0]);
  wf_beam_searcher_free(searcher);
  wf_beam_searcher_free(NULL);
  wf_beam_result_free(NULL);
}

/* --- columns that cannot survive ------------------------------------------------------------- */

enum { MANY = 200, LONG_FRAMES = 12 };

/* Texts of one to three of the letters a, b and c, with all kinds of word boundaries; 0: blank. */
static void random_tokens(test_rng *rng, char texts[MANY][4], wf_beam_text *tokens) {
  const bool spaces = test_below(rng, 2), bounds = test_below(rng, 2);
  for (int c = 0; c < MANY; c++) {
    const uint32_t size = c == 0 ? 0 : test_below(rng, 12) == 0 ? 0 : 1 + test_below(rng, 3);
    for (uint32_t i = 0; i < size; i++) texts[c][i] = (char)('a' + test_below(rng, 3));
    texts[c][size] = 0;
    tokens[c] = (wf_beam_text){texts[c], c > 0 && bounds && test_below(rng, 2),
                               c > 0 && spaces && test_below(rng, 3) == 0};
  }
}

/* Some frames are flat, some peaky; with few different values, many hypotheses are equally good. */
static void many_scores(test_rng *rng, float *scores) {
  const bool ties = test_below(rng, 3) == 0;
  for (int t = 0; t < LONG_FRAMES; t++, scores += MANY) {
    const float spread = (float)test_below(rng, 30);
    for (int c = 0; c < MANY; c++) {
      scores[c] = -spread * (float)test_unit(rng);
      if (test_below(rng, 40) == 0) scores[c] += 10;
      if (test_below(rng, 100) == 0) scores[c] = -INFINITY;
      if (ties) scores[c] = floorf(scores[c] / 4) * 4;
    }
  }
}

static wf_beam_options random_options(test_rng *rng) {
  static const float weights[] = {0, 0.5f, 2}, unknown[] = {-10, -1, 0, 0.5f};
  wf_beam_options options;
  wf_beam_options_init(&options);
  options.beam_size = (int32_t)(1 + test_below(rng, 20));
  options.beam = test_below(rng, 3) == 0 ? 1e6f : (float)test_below(rng, 20);
  options.min_token_log_prob = test_below(rng, 3) == 0 ? -8 : -1e6f;
  options.lm_weight = test_below(rng, 20) == 0 ? -0.5f : weights[test_below(rng, 3)];
  options.word_score = (float)test_below(rng, 5) - 2;
  options.unknown_score = unknown[test_below(rng, 4)];
  options.hotword_weight = test_below(rng, 10) == 0 ? -3 : (float)test_below(rng, 12);
  options.merge_histories = test_below(rng, 2);
  options.sentence_ends = test_below(rng, 2);
  options.sum_alignments = test_below(rng, 4) > 0;
  return options;
}

/* The same bits, also of scores. */
static void check_same(const wf_beam_result *a, const wf_beam_result *b) {
  assert_int_equal(a->num_paths, b->num_paths);
  for (size_t i = 0; i < a->num_paths; i++) {
    const wf_beam_path *x = &a->paths[i], *y = &b->paths[i];
    assert_memory_equal(&x->token_score, &y->token_score, sizeof x->token_score);
    assert_memory_equal(&x->score, &y->score, sizeof x->score);
    assert_int_equal(x->lm_state, y->lm_state);
    assert_int_equal(x->num_spelled, y->num_spelled);
    for (size_t w = 0; w < x->num_spelled; w++) {
      assert_string_equal(x->spelled[w].text, y->spelled[w].text);
      assert_int_equal(x->spelled[w].start_frame, y->spelled[w].start_frame);
      assert_int_equal(x->spelled[w].end_frame, y->spelled[w].end_frame);
    }
  }
}

static wf_beam_result *search(const wf_beam_searcher *searcher, const wf_beam_options *options,
                              const wf_beam_input *input, bool all_columns) {
  wf_error err = {0};
  wf_beam_search *made;
  wf_beam_result *result;
  assert_ok(wf_beam_search_create(searcher, input, options, &made, &err));
  made->all_columns = all_columns;
  assert_ok(wf_beam_search_advance(made, &input->scores, &err));
  assert_ok(wf_beam_search_finish(made, &err));
  assert_ok(wf_beam_search_result(made, -1, &result, &err));
  wf_beam_search_free(made);
  return result;
}

/* The search that looks at all columns finds the same. */
static void test_all_columns(void **state) {
  (void)state;
  static const char *const words[] = {"a", "ab", "abc", "bca", "caab", "cc"};
  static const char *const hotwords[] = {"abca", "bb", "cc"};
  static float scores[LONG_FRAMES * MANY];
  static wf_beam_text tokens[MANY];
  static char texts[MANY][4];
  wf_error err = {0};
  wf_lm *lm = lm_of(
      "\\data\\\nngram 1=8\nngram 2=4\n\n\\1-grams:\n-1 </s>\n-99 <s> 0.3\n-1.5 "
      "<unk>\n-0.5 a -0.2\n-0.9 ab 0.4\n-1.2 abc\n-0.8 bca 1.5\n-2 cc\n\n"
      "\\2-grams:\n-0.1 a ab\n-0.2 ab a\n-0.4 <s> cc\n-0.3 bca bca\n\n\\end\\\n");
  for (uint64_t seed = 0; seed < 400; seed++) {
    test_rng rng = {seed};
    random_tokens(&rng, texts, tokens);
    many_scores(&rng, scores);
    const wf_beam_options options = random_options(&rng);
    const wf_beam_parts parts = {.texts = tokens,
                                 .num_texts = MANY,
                                 .lm = test_below(&rng, 3) > 0 ? lm : NULL,
                                 .known_words = words,
                                 .num_known_words = 6};
    const wf_beam_input input = {.scores = {.data = scores,
                                            .num_frames = LONG_FRAMES,
                                            .num_columns = MANY,
                                            .stride = MANY,
                                            .dtype = WF_FLOAT32},
                                 .hotwords = hotwords,
                                 .num_hotwords = test_below(&rng, 2) * 3,
                                 .lm_state = -1};
    wf_beam_searcher *searcher;
    assert_ok(wf_beam_searcher_create(&parts, &searcher, &err));
    wf_beam_result *some = search(searcher, &options, &input, false);
    wf_beam_result *all = search(searcher, &options, &input, true);
    check_same(some, all);
    wf_beam_result_free(some);
    wf_beam_result_free(all);
    wf_beam_searcher_free(searcher);
  }
  wf_lm_free(lm);
}

/* Step by step, the same as in one piece. Before the end there are the complete words. */
static void test_steps(void **state) {
  (void)state;
  wf_error err = {0};
  float scores[FRAMES * TOKENS];
  const wf_beam_options options = wide();
  int num_ends = 0;
  wf_beam_searcher *searcher = searcher_of(pieces, 2, NULL);
  for (uint64_t seed = 0; seed < UTTERANCES; seed++) {
    test_rng rng = {seed};
    random_scores(&rng, scores);
    wf_beam_input input = {.scores = {.data = scores,
                                      .num_frames = FRAMES,
                                      .num_columns = TOKENS,
                                      .stride = TOKENS,
                                      .dtype = WF_FLOAT32},
                           .lm_state = -1};
    wf_beam_search *steps;
    wf_beam_result *whole = search(searcher, &options, &input, false), *result;
    assert_ok(wf_beam_search_create(searcher, NULL, &options, &steps, &err));
    input.scores.num_frames = 1;
    for (int t = 0; t < FRAMES; t++) {
      input.scores.data = scores + t * TOKENS;
      assert_ok(wf_beam_search_advance(steps, &input.scores, &err));
      assert_ok(wf_beam_search_result(steps, -1, &result, &err));
      assert_int_equal(result->length, t + 2);
      for (size_t i = 0; i < result->num_paths; i++) {
        const wf_beam_path *path = &result->paths[i];
        const int32_t token = path->tokens[t + 1];
        const bool in_word = token != 2 && !pieces[token].ends_word;
        for (size_t w = 0; w < path->num_spelled; w++)
          assert_true(path->spelled[w].end_frame <= t + !in_word);
      }
      wf_beam_result_free(result);
    }
    assert_int_equal(wf_beam_search_prune(steps, 0, &err), WF_ERR_UNSUPPORTED);
    assert_ok(wf_beam_search_finish(steps, &err));
    assert_ok(wf_beam_search_result(steps, -1, &result, &err));
    check_same(whole, result);
    wf_beam_result_free(result);
    /* The last frame of a path that goes back from the end is not the end. */
    assert_ok(wf_beam_search_result(steps, 1, &result, &err));
    assert_true(result->num_paths == 1 && result->length == FRAMES + 1);
    assert_memory_equal(result->paths->tokens, whole->paths->tokens,
                        FRAMES * sizeof *result->paths->tokens);
    const wf_beam_path *path = result->paths;
    const bool ends_word = pieces[path->tokens[FRAMES]].ends_word;
    if (ends_word) assert_int_equal(path->num_spelled, whole->paths->num_spelled);
    if (ends_word) num_ends++;
    wf_beam_result_free(result);
    wf_beam_result_free(whole);
    wf_beam_search_free(steps);
  }
  assert_true(num_ends > 0);
  wf_beam_searcher_free(searcher);
}

static bool cancel_third(void *user) {
  wf__interrupt_poll();
  return ++*(int *)user < 3;
}

static void test_cancelled(void **state) {
  (void)state;
  enum { LONG = 1000 };
  wf_error err = {0};
  static float scores[LONG * TOKENS];
  wf_beam_searcher *searcher = searcher_of(characters, 0, NULL);
  const wf_beam_input input = {.scores = {.data = scores,
                                          .num_frames = LONG,
                                          .num_columns = TOKENS,
                                          .stride = TOKENS,
                                          .dtype = WF_FLOAT32},
                               .lm_state = -1};
  wf_beam_result *result;
  int polls = 0;
  wf_set_interrupt(cancel_third, &polls);
  assert_int_equal(wf_beam_decode(searcher, &input, 1, NULL, &result, &err), WF_ERR_CANCELLED);
  wf_set_interrupt(NULL, NULL);
  assert_null(result);
  assert_true(polls < 10); /* soon: all frames would have made 63 */
  assert_ok(wf_beam_decode(searcher, &input, 1, NULL, &result, &err));
  wf_beam_result_free(result);
  wf_beam_searcher_free(searcher);
}

static void test_wrong_parts(void **state) {
  (void)state;
  wf_error err = {0};
  wf_beam_searcher *searcher;
  wf_beam_parts parts = {.texts = pieces, .num_texts = TOKENS, .blank = TOKENS};
  assert_int_equal(wf_beam_searcher_create(&parts, &searcher, &err), WF_ERR_ARGUMENT);
  assert_string_equal(err.message, "the blank is column 5, there are 5 tokens");
  const char *const words[] = {"a", ""};
  parts.blank = 2;
  parts.known_words = words;
  parts.num_known_words = 2;
  assert_int_equal(wf_beam_searcher_create(&parts, &searcher, &err), WF_ERR_ARGUMENT);
  assert_string_equal(err.message, "word 1 is empty");
  parts.num_texts = 0;
  assert_int_equal(wf_beam_searcher_create(&parts, &searcher, &err), WF_ERR_ARGUMENT);
  assert_null(searcher);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sums),        cmocka_unit_test(test_failed_utterances),
      cmocka_unit_test(test_all_columns), cmocka_unit_test(test_steps),
      cmocka_unit_test(test_cancelled),   cmocka_unit_test(test_wrong_parts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
