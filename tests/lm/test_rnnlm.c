/* test_rnnlm.c - recurrent language models. Scores of the original toolkit; random models of every
 * kind compared with their definition (rnnlm_oracle.h); the same costs for any batch, number of
 * threads and interface; every malformed file is rejected. */
#include <unistd.h>

#include "rnnlm_oracle.h"

static wf_rnnlm *open_model(const char *path) {
  wf_error err = {0};
  wf_rnnlm *rnnlm;
  assert_ok(wf_rnnlm_open(path, NULL, &rnnlm, &err));
  return rnnlm;
}

/* Random sentences, some empty. */
typedef struct text {
  int32_t words[4000];
  uint64_t first[201];
  size_t num_sentences;
} text;

static void random_text(test_rng *rng, int num_words, size_t num_sentences, text *t) {
  uint64_t size = 0;
  t->num_sentences = num_sentences;
  for (size_t s = 0; s < num_sentences; s++) {
    t->first[s] = size;
    for (uint32_t n = test_below(rng, 20); n > 0; n--)
      t->words[size++] = (int32_t)test_below(rng, (uint32_t)num_words);
  }
  t->first[num_sentences] = size;
}

/* --- scores of the toolkit --------------------------------------------------------------- */

static void check_toolkit(const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/rnnlm/%s", TEST_DATA_DIR, name);
  wf_rnnlm *rnnlm = open_model(path);
  snprintf(path, sizeof path, "%s/rnnlm/%s.expected", TEST_DATA_DIR, name);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  static int32_t words[1000];
  double want[1000];
  char word[100];
  size_t size = 0, checked = 0;
  while (fscanf(file, "w %99s %lf ", word, &want[size]) == 2) {
    words[size] = wf_rnnlm_find(rnnlm, word);
    if (words[size++] != 0) continue; /* </s> ends the sentence */
    double total, sum = 0;
    float costs[1000];
    wf_error err = {0};
    assert_int_equal(fscanf(file, "%lf ", &total), 1);
    assert_ok(wf_rnnlm_score(rnnlm, words, (uint64_t[]){0, size - 1}, 1, 1, costs, &err));
    for (size_t i = 0; i < size; i++) {
      double log10p = -(double)costs[i] / M_LN10;
      test_assert_close(log10p, want[i], 1e-5);
      sum += log10p;
    }
    test_assert_close(sum, total, 1e-5 * (double)size);
    checked += size;
    size = 0;
  }
  fclose(file);
  assert_true(checked > 500);
  wf_rnnlm_free(rnnlm);
}

static void test_scores_of_the_toolkit(void **unused) {
  (void)unused;
  check_toolkit("sigmoid");
  check_toolkit("relu2_maxent2");
}

/* --- random models ----------------------------------------------------------------------- */

static void check_steps(const wf_rnnlm *rnnlm, const text *t, const float *costs) {
  wf_error err = {0};
  wf_rnnlm_info info;
  wf_rnnlm_info_init(&info);
  assert_ok(wf_rnnlm_get_info(rnnlm, &info, &err));
  size_t n = t->num_sentences;
  char *states = malloc(n * info.state_bytes), *next = malloc(n * info.state_bytes);
  int32_t words[200];
  float got[200];
  for (size_t s = 0; s < n; s++) wf_rnnlm_start(rnnlm, states + s * info.state_bytes);
  for (uint64_t at = 0; at < 20;
       at++) { /* all sentences in parallel; finished ones continue with </s> */
    for (size_t s = 0; s < n; s++)
      words[s] = at < t->first[s + 1] - t->first[s] ? t->words[t->first[s] + at] : 0;
    wf_status status = wf_rnnlm_step(rnnlm, n, states, words, got, next, &err);
    if (info.reverse) {
      assert_int_equal(status, WF_ERR_UNSUPPORTED);
      break;
    }
    assert_ok(status);
    for (size_t s = 0; s < n; s++)
      if (at <= t->first[s + 1] - t->first[s])
        assert_true(got[s] == costs[t->first[s] + s + at]); /* bit for bit */
    memcpy(states, next, n * info.state_bytes);
  }
  free(states);
  free(next);
}

static void check_random(test_rng *rng, test_rnn r) {
  test_rnn_fill(&r, rng);
  wf_error err = {0};
  wf_rnnlm *rnnlm = open_model(test_rnn_write(&r));
  text t;
  random_text(rng, r.num_words, 150, &t);
  static float costs[4300], threaded[4300], alone[40];
  double want[40];
  assert_ok(wf_rnnlm_score(rnnlm, t.words, t.first, t.num_sentences, 1, costs, &err));
  assert_ok(wf_rnnlm_score(rnnlm, t.words, t.first, t.num_sentences, 3, threaded, &err));
  assert_memory_equal(costs, threaded,
                      (t.first[t.num_sentences] + t.num_sentences) * sizeof(float));
  for (size_t s = 0; s < t.num_sentences; s++) {
    size_t size = t.first[s + 1] - t.first[s];
    test_rnn_costs(&r, t.words + t.first[s], size, want);
    assert_ok(
        wf_rnnlm_score(rnnlm, t.words + t.first[s], (uint64_t[]){0, size}, 1, 1, alone, &err));
    for (size_t i = 0; i <= size; i++) {
      double got = (double)costs[t.first[s] + s + i];
      if (fabs(got - want[i]) > 2e-5 * (1 + fabs(want[i])))
        fail_msg("%s, sentence %zu, word %zu: %.9g, by definition %.9g", r.type, s, i, got,
                 want[i]);
      assert_true(alone[i] == costs[t.first[s] + s + i]);
    }
  }
  check_steps(rnnlm, &t, costs);
  wf_rnnlm_free(rnnlm);
  test_rnn_free(&r);
}

static void test_random_models(void **unused) {
  (void)unused;
  static const char *const types[] = {"sigmoid", "tanh",      "relu",      "relu-trunc",
                                      "gru",     "gru-bias",  "gru-insyn", "gru-full",
                                      "scrn3",   "scrnfast3", "scrn1000"};
  test_rng rng = {1};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    for (int variant = 0; variant < 4; variant++)
      check_random(&rng, test_random_rnn(&rng, types[i], variant));
  for (int version = 0; version < 6;
       version++) /* fields that earlier versions lack have defaults */
    check_random(&rng, (test_rnn){.type = "sigmoid",
                                  .version = version,
                                  .nce = version == 1,
                                  .lnz = 9,
                                  .num_layers = 1,
                                  .arity = 2,
                                  .num_words = 30,
                                  .hidden = 8,
                                  .order = 3,
                                  .num_cells = 500});
}

/* The probabilities of the words of a hierarchical softmax sum to 1. */
static void test_sums_to_one(void **unused) {
  (void)unused;
  test_rng rng = {7};
  for (int arity = 2; arity <= 5; arity++) {
    test_rnn r = {.type = "gru-full",
                  .version = 6,
                  .num_layers = 2,
                  .arity = arity,
                  .hidden = 9,
                  .num_words = 60 * (arity - 1) + 1,
                  .order = 3,
                  .num_cells = 3000};
    test_rnn_fill(&r, &rng);
    wf_rnnlm *rnnlm = open_model(test_rnn_write(&r));
    double sum = 0;
    for (int32_t w = 0; w < r.num_words; w++) {
      float costs[3];
      wf_error err = {0};
      assert_ok(wf_rnnlm_score(rnnlm, (int32_t[]){3, w}, (uint64_t[]){0, 2}, 1, 1, costs, &err));
      sum += exp(-(double)costs[1]);
    }
    test_assert_close(sum, 1, 1e-5);
    wf_rnnlm_free(rnnlm);
    test_rnn_free(&r);
  }
}

/* --- files ------------------------------------------------------------------------------- */

static void expect_refusal(const char *path, wf_status code, const char *part) {
  wf_error err = {0};
  wf_rnnlm *rnnlm = (wf_rnnlm *)&err;
  wf_status status = wf_rnnlm_open(path, NULL, &rnnlm, &err);
  if (status != code || strstr(err.message, part) == NULL)
    fail_msg("status %d (%s), expected %d (...%s...)", status, err.message, code, part);
  assert_null(rnnlm);
}

static void write_at(const char *path, long offset, const void *bytes, size_t size) {
  char net[600];
  snprintf(net, sizeof net, "%s.nnet", path);
  FILE *file = fopen(net, "r+b");
  assert_non_null(file);
  fseek(file, offset, SEEK_SET);
  fwrite(bytes, 1, size, file);
  fclose(file);
}

static void test_malformed_files(void **unused) {
  (void)unused;
  test_rng rng = {3};
  test_rnn r = {.type = "sigmoid",
                .version = 6,
                .num_layers = 1,
                .arity = 2,
                .hidden = 4,
                .num_words = 10,
                .order = 2,
                .num_cells = 50};
  test_rnn_fill(&r, &rng);
  const char *path = test_rnn_write(&r);
  char net[600];
  snprintf(net, sizeof net, "%s.nnet", path);
  size_t size;
  char *whole = test_read_file(net, &size);
  for (size_t cut = 0; cut < size; cut += cut < 120 ? 1 : 37) { /* truncated at any byte */
    FILE *file = fopen(net, "wb");
    fwrite(whole, 1, cut, file);
    fclose(file);
    expect_refusal(path, WF_ERR_FORMAT, cut < 98 ? "ends early" : "truncated");
  }
  FILE *file = fopen(net, "wb");
  fwrite(whole, 1, size, file);
  fwrite("more", 1, 4, file);
  fclose(file);
  expect_refusal(path, WF_ERR_FORMAT, "bytes of weights");
  struct {
    long offset;
    const void *bytes;
    size_t size;
    const char *part;
  } damages[] = {
      {0, &(uint64_t){70004}, 8, "expected 0 to 6"},
      {0, &(uint64_t){60000}, 8, "expected 0 to 6"},
      {8, &(uint64_t){UINT64_MAX}, 8, "bytes of weights"},
      {8, &(uint64_t){10}, 8, "more cells than words"},
      {8, &(uint64_t){1000}, 8, "bytes of weights"},
      {16, &(int32_t){-1}, 4, "MaxEnt order"},
      {16, &(int32_t){1000}, 4, "MaxEnt order"},
      {20, &(uint8_t){2}, 1, "NCE flag"},
      {21, &(float){INFINITY}, 4, "ln Z"},
      {25, &(uint8_t){9}, 1, "reverse flag"},
      {26, "lstm", 5, "layer type 'lstm'"},
      {26, "scrn0", 6, "context size"},
      {90, &(int32_t){0}, 4, "0 layers"},
      {90, &(int32_t){INT32_MAX}, 4, "layers"},
      {94, &(int32_t){3}, 4, "arity 3"},
      {94, &(int32_t){-5}, 4, "tree of arity -5"},
      {98 + 4 * 13, &(float){NAN}, 4, "byte 150: weight is"},
      {90, &(int32_t){40}, 4, "bytes of weights"},
  };
  for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
    write_at(path, 0, whole, size);
    assert_int_equal(truncate(net, (long)size), 0);
    write_at(path, damages[i].offset, damages[i].bytes, damages[i].size);
    expect_refusal(path, WF_ERR_FORMAT, damages[i].part);
  }
  free(whole);
  test_rnn_free(&r);
}

static void check_vocab(const char *lines, wf_status code, const char *part) {
  const char *path = test_write_file("vocab", lines, strlen(lines));
  char net[600];
  snprintf(net, sizeof net, "%s.nnet", path);
  uint64_t header[2] = {4, 0};
  FILE *file = fopen(net, "wb");
  fwrite(header, 8, 2, file);
  fwrite(&(int32_t){0}, 4, 1, file);
  float weights[100] = {0};
  fwrite(weights, 4, 2 * 3 * 4 + 16, file); /* three words */
  fclose(file);
  if (part == NULL)
    wf_rnnlm_free(open_model(path));
  else
    expect_refusal(path, code, part);
}

static void test_vocabulary_files(void **unused) {
  (void)unused;
  check_vocab("</s> 3\na 2\nb 1\n", WF_OK, NULL);
  check_vocab("</s> 0\n\na 0\nb\t0", WF_OK, NULL);
  check_vocab("", WF_ERR_FORMAT, "no words");
  check_vocab("a 2\nb 1\nc 0\n", WF_ERR_FORMAT, "'</s>' expected");
  check_vocab("</s> 3\na\nb 1\n", WF_ERR_FORMAT, ":2: 'word count'");
  check_vocab("</s> 3\na -1\nb 1\n", WF_ERR_FORMAT, ":2: 'word count'");
  check_vocab("</s> 3\na 1 b\nb 1\n", WF_ERR_FORMAT, ":2: 'word count'");
  check_vocab("</s> 3\na 9000000000000000000\nb 1\n", WF_ERR_LIMIT, ":2: the counts");
  check_vocab("</s> 3\na 1\na 1\n", WF_ERR_FORMAT, "'a'");
  check_vocab("</s> 3\na 1\n", WF_ERR_FORMAT, "bytes of weights");
  expect_refusal("/nonexistent/model", WF_ERR_IO, "cannot open");
  /* Words are sorted by count, equal ones in the order of the file. Words are identified by their
   * first 99 bytes. */
  char lines[400], word[200];
  memset(word, 'x', 150);
  word[99] = '\0';
  snprintf(lines, sizeof lines, "</s> 0\n%s 5\nb 7\n", word);
  const char *path = test_write_file("vocab", lines, strlen(lines));
  test_shell("rm -f '%s.nnet'; cp '%s/rnnlm/sigmoid.nnet.gz' '%s.nnet.gz'", path, TEST_DATA_DIR,
             path);
  expect_refusal(path, WF_ERR_FORMAT, "bytes of weights");
  test_shell(
      "{ printf '\\004\\0\\0\\0\\0\\0\\0\\0'; head -c 172 /dev/zero; } | gzip > '%s.nnet.gz'",
      path);
  wf_rnnlm *rnnlm = open_model(path);
  assert_int_equal(wf_rnnlm_find(rnnlm, "b"), 1);
  word[99] = 'x';
  assert_int_equal(wf_rnnlm_find(rnnlm, word), 2);
  assert_int_equal(wf_rnnlm_find(rnnlm, "c"), -1);
  wf_error err = {0};
  float costs[8];
  assert_int_equal(wf_rnnlm_score(rnnlm, (int32_t[]){1, 3}, (uint64_t[]){0, 2}, 1, 1, costs, &err),
                   WF_ERR_ARGUMENT);
  assert_int_equal(wf_rnnlm_score(rnnlm, (int32_t[]){1, -1}, (uint64_t[]){0, 2}, 1, 1, costs, &err),
                   WF_ERR_ARGUMENT);
  wf_rnnlm_free(wf_rnnlm_ref(rnnlm));
  wf_rnnlm_free(rnnlm);
  assert_int_equal(wf_rnnlm_open(path, "nope", &rnnlm, &err), WF_ERR_ARGUMENT);
  assert_ok(wf_rnnlm_open(path, "b", &rnnlm, &err));
  assert_int_equal(wf_rnnlm_find(rnnlm, "c"), 1);
  wf_rnnlm_free(rnnlm);
}

/* Counts that grow like Fibonacci numbers give the deepest tree. If all counts are zero, the tree
 * is a chain, whose depth is limited. */
static void test_deep_trees(void **unused) {
  (void)unused;
  test_rng rng = {5};
  for (int words = 60; words <= 2000; words += 1940) {
    test_rnn r = {.type = "sigmoid",
                  .version = 6,
                  .num_layers = 1,
                  .arity = 2,
                  .hidden = 4,
                  .num_words = words};
    test_rnn_fill(&r, &rng);
    for (int w = 0; w < words; w++) r.counts[w] = 0;
    const char *path = test_rnn_write(&r);
    if (words > 1024) {
      expect_refusal(path, WF_ERR_LIMIT, "deeper than");
    } else {
      wf_rnnlm *rnnlm = open_model(path);
      double want[2];
      float got[2];
      wf_error err = {0};
      test_rnn_costs(&r, (int32_t[]){1}, 1, want);
      assert_ok(wf_rnnlm_score(rnnlm, (int32_t[]){1}, (uint64_t[]){0, 1}, 1, 1, got, &err));
      test_assert_close((double)got[0], want[0], 1e-4);
      wf_rnnlm_free(rnnlm);
    }
    test_rnn_free(&r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scores_of_the_toolkit), cmocka_unit_test(test_random_models),
      cmocka_unit_test(test_sums_to_one),           cmocka_unit_test(test_malformed_files),
      cmocka_unit_test(test_vocabulary_files),      cmocka_unit_test(test_deep_trees)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
