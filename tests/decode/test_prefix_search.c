/* test_prefix_search.c - CTC prefix beam search, compared with all alignments of short utterances.
 */
#include "base/interrupt.h"
#include "lm_model.h"
#include "testing.h"

enum { FRAMES = 6, TOKENS = 5, UTTERANCES = 12, MAX_TEXTS = 4000 };

static const wf_prefix_token characters[TOKENS] = {{"", false, false},
                                                   {"a", false, false},
                                                   {" ", false, true},
                                                   {"b", false, false},
                                                   {"ab", false, false}};
static const wf_prefix_token pieces[TOKENS] = {{"a", true, false},
                                               {"b", false, false},
                                               {"", false, false},
                                               {"ab", true, false},
                                               {"b", true, true}};

struct sums {
  char text[MAX_TEXTS][40];
  double log_prob[MAX_TEXTS];
  size_t count;
};

static double add_logs(double a, double b) { return fmax(a, b) + log1p(exp(-fabs(a - b))); }

static void add(struct sums *sums, const char *text, double log_prob) {
  size_t i = 0;
  while (i < sums->count && strcmp(sums->text[i], text) != 0) i++;
  if (i == sums->count) {
    assert_true(i < MAX_TEXTS);
    strcpy(sums->text[i], text);
    sums->log_prob[sums->count++] = log_prob;
  } else {
    sums->log_prob[i] = add_logs(sums->log_prob[i], log_prob);
  }
}

/* Writes the words of an alignment, separated by single spaces. */
static void spell(const wf_prefix_token *tokens, int32_t blank, const int *alignment, char *out) {
  size_t size = 0;
  bool in_word = false;
  for (int t = 0; t < FRAMES; t++) {
    if (alignment[t] == blank || (t > 0 && alignment[t] == alignment[t - 1])) continue;
    const wf_prefix_token *token = &tokens[alignment[t]];
    bool has_text = token->text[0] != 0 && token->text[0] != ' ';
    if (token->starts_word) in_word = false;
    if (has_text && !in_word && size > 0) out[size++] = ' ';
    if (has_text) size += (size_t)sprintf(out + size, "%s", token->text);
    in_word = (in_word || has_text) && !token->ends_word;
  }
  out[size] = 0;
}

static void sum_alignments(const wf_prefix_token *tokens, int32_t blank, const float *scores,
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

static wf_prefix_searcher *searcher_of(const wf_prefix_token *tokens, int32_t blank,
                                       const wf_lm *lm) {
  wf_error err = {0};
  wf_prefix_token copy[TOKENS];
  memcpy(copy, tokens, sizeof copy);
  for (int c = 0; c < TOKENS; c++)
    if (copy[c].text[0] == ' ') copy[c].text = "";
  const char *const words[] = {"a", "ab"};
  const wf_prefix_parts parts = {.tokens = copy,
                                 .num_tokens = TOKENS,
                                 .blank = blank,
                                 .lm = lm,
                                 .words = words,
                                 .num_words = 2};
  wf_prefix_searcher *searcher;
  assert_ok(wf_prefix_searcher_create(&parts, &searcher, &err));
  return searcher;
}

static wf_prefix_options wide(void) {
  wf_prefix_options options;
  wf_prefix_options_init(&options);
  options.beam_width = 1000000;
  options.beam = 1e6f;
  options.min_token_log_prob = -1e6f;
  return options;
}

static void check_texts(const wf_prefix_result *result, const struct sums *sums) {
  assert_int_equal(result->status, WF_OK);
  assert_int_equal(result->num_texts, sums->count);
  for (size_t i = 0; i < result->num_texts; i++) {
    const wf_prefix_text *text = &result->texts[i];
    char joined[80] = "";
    int32_t end = 0;
    for (size_t w = 0; w < text->num_words; w++) {
      if (w > 0) strcat(joined, " ");
      strcat(joined, text->words[w].text);
      assert_true(text->words[w].start_frame >= end);
      end = text->words[w].end_frame;
      assert_true(text->words[w].start_frame < end && end <= FRAMES);
    }
    size_t at = 0;
    while (at < sums->count && strcmp(sums->text[at], joined) != 0) at++;
    assert_true(at < sums->count);
    test_assert_close(text->log_prob, sums->log_prob[at], 1e-4);
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
  wf_prefix_options options = wide();
  for (int kind = 0; kind < 2; kind++) {
    const wf_prefix_token *tokens = kind == 0 ? characters : pieces;
    int32_t blank = kind == 0 ? 0 : 2;
    wf_prefix_searcher *searcher = searcher_of(tokens, blank, NULL);
    wf_prefix_input inputs[UTTERANCES] = {0};
    wf_prefix_result *results[UTTERANCES];
    for (int u = 0; u < UTTERANCES; u++) {
      random_scores(&rng, scores[u]);
      inputs[u].scores = (wf_scores){.data = scores[u],
                                     .num_frames = FRAMES,
                                     .num_columns = TOKENS,
                                     .stride = TOKENS,
                                     .dtype = WF_FLOAT32};
      inputs[u].lm_state = -1;
    }
    options.num_threads = 1 + 2 * kind;
    assert_ok(wf_prefix_search(searcher, inputs, UTTERANCES, &options, results, &err));
    for (int u = 0; u < UTTERANCES; u++) {
      sum_alignments(tokens, blank, scores[u], &sums);
      check_texts(results[u], &sums);
      wf_prefix_result_free(results[u]);
    }
    wf_prefix_searcher_free(searcher);
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
  wf_prefix_searcher *searcher = searcher_of(characters, 0, lm);
  wf_lm_free(lm); /* the searcher has its own reference */
  wf_prefix_input inputs[5] = {0};
  wf_prefix_result *results[5];
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
  assert_ok(wf_prefix_search(searcher, inputs, 5, NULL, results, &err));
  assert_true(results[0]->status == WF_OK && results[0]->texts[0].lm_state >= 0);
  assert_true(results[4]->status == WF_OK && results[4]->num_texts == 1);
  assert_int_equal(results[4]->texts[0].num_words, 0);
  test_assert_close(results[4]->texts[0].score, -0.5 * M_LN10, 1e-5); /* of </s> */
  for (int u = 1; u < 4; u++)
    assert_true(results[u]->status == WF_ERR_ARGUMENT && results[u]->num_texts == 0);
  assert_string_equal(results[1]->message, "utterance 1: frame 1, column 3: the score is nan");
  assert_string_equal(results[2]->message, "utterance 2: the language model has no state 1000");
  assert_string_equal(results[3]->message,
                      "utterance 3: the scores have 4 columns, there are 5 tokens");
  for (int u = 0; u < 5; u++) wf_prefix_result_free(results[u]);
  wf_prefix_options options = wide();
  options.beam_width = 0;
  assert_int_equal(wf_prefix_search(searcher, inputs, 5, &options, results, &err), WF_ERR_ARGUMENT);
  assert_null(results[0]);
  wf_prefix_searcher_free(searcher);
  wf_prefix_searcher_free(NULL);
  wf_prefix_result_free(NULL);
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
  wf_prefix_searcher *searcher = searcher_of(characters, 0, NULL);
  const wf_prefix_input input = {.scores = {.data = scores,
                                            .num_frames = LONG,
                                            .num_columns = TOKENS,
                                            .stride = TOKENS,
                                            .dtype = WF_FLOAT32},
                                 .lm_state = -1};
  wf_prefix_result *result;
  int polls = 0;
  wf_set_interrupt(cancel_third, &polls);
  assert_int_equal(wf_prefix_search(searcher, &input, 1, NULL, &result, &err), WF_ERR_CANCELLED);
  wf_set_interrupt(NULL, NULL);
  assert_null(result);
  assert_true(polls < 10); /* soon: all frames would have made 63 */
  assert_ok(wf_prefix_search(searcher, &input, 1, NULL, &result, &err));
  wf_prefix_result_free(result);
  wf_prefix_searcher_free(searcher);
}

static void test_wrong_parts(void **state) {
  (void)state;
  wf_error err = {0};
  wf_prefix_searcher *searcher;
  wf_prefix_parts parts = {.tokens = pieces, .num_tokens = TOKENS, .blank = TOKENS};
  assert_int_equal(wf_prefix_searcher_create(&parts, &searcher, &err), WF_ERR_ARGUMENT);
  assert_string_equal(err.message, "the blank is column 5, there are 5 tokens");
  const char *const words[] = {"a", ""};
  parts.blank = 2;
  parts.words = words;
  parts.num_words = 2;
  assert_int_equal(wf_prefix_searcher_create(&parts, &searcher, &err), WF_ERR_ARGUMENT);
  assert_string_equal(err.message, "word 1 is empty");
  parts.num_tokens = 0;
  assert_int_equal(wf_prefix_searcher_create(&parts, &searcher, &err), WF_ERR_ARGUMENT);
  assert_null(searcher);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sums),
      cmocka_unit_test(test_failed_utterances),
      cmocka_unit_test(test_cancelled),
      cmocka_unit_test(test_wrong_parts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
