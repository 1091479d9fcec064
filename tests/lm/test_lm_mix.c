/* test_lm_mix.c - mixtures compared with their definition, and weights with a scan. The models are
 * estimated from random texts with different words; only queries are used to look into them. */
#include "random_texts.h"

enum { MAX_MODELS = 3, MAX_ORDER = 4, EOS = MAX_TEXT_WORDS, UNK, NUM_TOKENS };

static const char *name_of(int word) {
  return word == EOS ? "</s>" : word == UNK ? "<unk>" : text_words[word];
}

static int32_t label_of(const wf_lm *lm, int word) {
  const int64_t label = wf_symbols_find(wf_lm_words(lm), name_of(word));
  return label < 0 ? -1 : (int32_t)label;
}

static bool has(const wf_lm *lm, int word) { return word >= EOS || label_of(lm, word) >= 0; }

/* Probability of a word; 0 if the model lacks it. Sets the state after it. `*order`: of the n-gram
 * used. */
static double step(const wf_lm *lm, uint32_t *state, int word, int32_t *order) {
  if (word == EOS) return exp(-(double)wf_lm_final(lm, *state, order));
  const float cost = wf_lm_step(lm, *state, label_of(lm, word), state, order);
  if (!has(lm, word)) *order = 0;
  return has(lm, word) ? exp(-(double)cost) : 0;
}

typedef struct mixture {
  int num;
  wf_lm *lms[MAX_MODELS], *lm;
  double weights[MAX_MODELS]; /* sum to 1 */
  uint64_t num_ngrams[MAX_ORDER + 1];
} mixture;

/* Compares all words after a history, given by the states of the mixture and the models, and goes
 * on with those that are n-grams. `size`: words of the history, with <s>. */
static void check_history(mixture *m, uint32_t state, const uint32_t *states, int size) {
  double sum = 0;
  for (int word = 0; word < NUM_TOKENS; word++) {
    uint32_t next[MAX_MODELS], after = state;
    int32_t order, mixed_order;
    bool is_ngram = false;
    double want = 0;
    for (int i = 0; i < m->num; i++) {
      next[i] = states[i];
      want += m->weights[i] * step(m->lms[i], &next[i], word, &order);
      is_ngram |= order == size + 1;
    }
    const double p = step(m->lm, &after, word, &mixed_order);
    sum += p;
    if (want == 0) assert_true(p == 0);
    assert_int_equal(mixed_order == size + 1, is_ngram);
    if (is_ngram && fabs(p - want) > 5e-6 * want)
      fail_msg("P(%s) after %d words is %.9g, not %.9g", name_of(word), size, p, want);
    if (!is_ngram) continue;
    m->num_ngrams[size + 1]++;
    if (size + 1 < MAX_ORDER && word != EOS) check_history(m, after, next, size + 1);
  }
  if (fabs(sum - 1) > 1e-6) fail_msg("the sum after %d words is %.9g", size, sum);
}

static wf_lm *estimated(const text *t, int order, const char *prune) {
  wf_error err = {0};
  wf_lm *lm;
  wf_lm_estimate_options options;
  wf_lm_estimate_options_init(&options);
  options.order = order;
  options.prune = prune;
  const char *path = write_text(t);
  assert_ok(wf_lm_estimate(&path, 1, NULL, &options, &lm, NULL, NULL, &err));
  return lm;
}

static mixture random_models(test_rng *rng) {
  mixture m = {.num = 1 + (int)test_below(rng, MAX_MODELS)};
  for (int i = 0; i < m.num; i++) {
    const int first = (int)test_below(rng, 5), order = 1 + (int)test_below(rng, MAX_ORDER);
    const text t = random_text(rng, first, 2 + (int)test_below(rng, 4));
    m.lms[i] = estimated(&t, order, order > 2 && test_below(rng, 2) == 0 ? "0,0,1" : NULL);
  }
  return m;
}

static void free_models(mixture *m) {
  for (int i = 0; i < m->num; i++) wf_lm_free(m->lms[i]);
  wf_lm_free(m->lm);
}

static void check_seed(uint64_t seed) {
  test_rng rng = {seed};
  wf_error err = {0};
  mixture m = random_models(&rng);
  double weights[MAX_MODELS], sum = 0;
  for (int i = 0; i < m.num; i++) sum += weights[i] = 0.1 + (double)test_unit(&rng);
  for (int i = 0; i < m.num; i++) m.weights[i] = weights[i] / sum;
  assert_ok(wf_lm_mix((const wf_lm *const *)m.lms, (size_t)m.num, weights, NULL, &m.lm, NULL, NULL,
                      &err));
  uint32_t empty[MAX_MODELS] = {0}, begin[MAX_MODELS];
  for (int i = 0; i < m.num; i++) begin[i] = wf_lm_start(m.lms[i]);
  check_history(&m, 0, empty, 0);
  if (wf_lm_start(m.lm) != 0) check_history(&m, wf_lm_start(m.lm), begin, 1);
  wf_lm_info info;
  wf_lm_info_init(&info);
  assert_ok(wf_lm_get_info(m.lm, &info, &err));
  assert_int_equal(info.num_ngrams[1], m.num_ngrams[1] + 1); /* <s> */
  for (int k = 2; k <= info.order; k++) assert_int_equal(info.num_ngrams[k], m.num_ngrams[k]);
  free_models(&m);
}

static void test_definition(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < test_seeds(300); seed++) {
    print_message("seed %llu\r", (unsigned long long)seed);
    check_seed(seed);
  }
}

/* Log-probability of a text under a mixture, and its tokens, without words that no model has. */
static double log_p_of(const mixture *m, const text *t, double first_weight, int *tokens) {
  double log_p = 0;
  *tokens = 0;
  for (int s = 0; s < t->num_sentences; s++) {
    uint32_t states[2] = {wf_lm_start(m->lms[0]), wf_lm_start(m->lms[1])};
    for (int i = 0; i <= t->size[s]; i++) {
      const int word = i < t->size[s] ? t->words[s][i] : EOS;
      int32_t order;
      const double p = step(m->lms[0], &states[0], word, &order),
                   q = step(m->lms[1], &states[1], word, &order);
      if (p == 0 && q == 0) continue;
      log_p += log(first_weight * p + (1 - first_weight) * q);
      ++*tokens;
    }
  }
  return log_p;
}

/* No weight of a scan is better than those of EM. */
static void test_weights(void **state) {
  (void)state;
  int inside = 0;
  for (uint64_t seed = 0; seed < test_seeds(40); seed++) {
    test_rng rng = {seed};
    wf_error err = {0};
    const text a = random_text(&rng, 0, 6), b = random_text(&rng, 2, 6),
               held_out = random_text(&rng, 0, MAX_TEXT_WORDS);
    mixture m = {.num = 2, .lms = {estimated(&a, 3, NULL), estimated(&b, 2, NULL)}};
    const char *path = write_text(&held_out);
    double weights[2], perplexity;
    int tokens;
    assert_ok(wf_lm_mix_weights((const wf_lm *const *)m.lms, 2, path, NULL, weights, &perplexity,
                                NULL, &err));
    assert_true(fabs(weights[0] + weights[1] - 1) < 1e-9);
    const double got = log_p_of(&m, &held_out, weights[0], &tokens);
    test_assert_close(log(perplexity), -got / tokens, 1e-5);
    for (int i = 0; i <= 1000; i++)
      if (log_p_of(&m, &held_out, i / 1000.0, &tokens) > got + 1e-4 * tokens)
        fail_msg("seed %d: weight %g is better than %g", (int)seed, i / 1000.0, weights[0]);
    inside += weights[0] > 0.05 && weights[0] < 0.95;
    free_models(&m);
  }
  assert_true(test_many((uint64_t)inside, 20, 40));
}

static void expect_failure(wf_status got, wf_status want, const wf_error *err, const char *part) {
  assert_int_equal(got, want);
  if (strstr(err->message, part) == NULL) fail_msg("'%s' does not say '%s'", err->message, part);
}

static void test_errors(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {3};
  const text t = random_text(&rng, 0, 3);
  wf_lm *lm = estimated(&t, 2, NULL), *mixed;
  const wf_lm *lms[] = {lm, lm};
  expect_failure(wf_lm_mix(NULL, 0, NULL, NULL, &mixed, NULL, NULL, &err), WF_ERR_ARGUMENT, &err,
                 "needs a model");
  expect_failure(wf_lm_mix(lms, 2, (double[]){0, 0}, NULL, &mixed, NULL, NULL, &err),
                 WF_ERR_ARGUMENT, &err, "weight above 0");
  expect_failure(wf_lm_mix(lms, 2, (double[]){2, -1}, NULL, &mixed, NULL, NULL, &err),
                 WF_ERR_ARGUMENT, &err, "weight 2");
  expect_failure(wf_lm_mix(lms, 2, (double[]){NAN, 1}, NULL, &mixed, NULL, NULL, &err),
                 WF_ERR_ARGUMENT, &err, "weight 1");
  double weights[2];
  const char *empty = test_write_file("empty", "", 0);
  expect_failure(wf_lm_mix_weights(lms, 2, empty, NULL, weights, NULL, NULL, &err), WF_ERR_FORMAT,
                 &err, "no word or sentence end");
  expect_failure(wf_lm_mix_weights(lms, 0, empty, NULL, weights, NULL, NULL, &err), WF_ERR_ARGUMENT,
                 &err, "needs a model");
  expect_failure(wf_lm_mix_weights(lms, 2, "/nowhere/text", NULL, weights, NULL, NULL, &err),
                 WF_ERR_IO, &err, "/nowhere/text");
  wf_lm_free(lm);
}

/* A mixture of a model with itself is that model; a weight of 0 leaves a model out. */
static void test_itself(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {5};
  const text t = random_text(&rng, 0, 6), other_text = random_text(&rng, 4, 6);
  wf_lm *lm = estimated(&t, 3, NULL), *other = estimated(&other_text, 3, NULL), *mixed;
  const wf_lm *lms[] = {lm, lm, other};
  assert_ok(wf_lm_mix(lms, 3, (double[]){1, 3, 0}, NULL, &mixed, NULL, NULL, &err));
  mixture m = {.num = 1, .lms = {lm}, .lm = mixed, .weights = {1}};
  check_history(&m, 0, (uint32_t[]){0}, 0);
  check_history(&m, wf_lm_start(mixed), (uint32_t[]){wf_lm_start(lm)}, 1);
  wf_lm_free(other);
  free_models(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_definition),
                                     cmocka_unit_test(test_weights), cmocka_unit_test(test_errors),
                                     cmocka_unit_test(test_itself)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
