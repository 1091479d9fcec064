/* test_lm_prune.c - pruning compared with its definitions, on models small enough to sum over every
 * word.
 *
 * Models are first normalized (probabilities sum to 1) by wf_lm_prune itself, which another test
 * checks. They are written as ARPA text, and the small parser here reads them into a list of
 * n-grams. The worth of an n-gram is computed from that list: remove the n-gram, recompute the
 * back-off weight of its history, and sum p ln(p / p') over all words. Only the ARPA text is shared
 * with the library. */
#include "lm/lm_prune.h"
#include "lm_model.h"

/* --- models from ARPA text --------------------------------------------------------------- */

static int number_of(const char *name, size_t size) {
  for (int i = 0; i < FIRST + 5; i++)
    if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0) return i;
  fail_msg("no word '%.*s'", (int)size, name);
  return -1;
}

static void parse_arpa(const char *text, model *m) {
  *m = (model){.num_words = FIRST + 5};
  int k = 0;
  for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
    if (*line == '\\') sscanf(line, "\\%d-grams:", &k);
    if (k == 0 || (*line != '-' && (*line < '0' || *line > '9'))) continue;
    m->order = k;
    struct gram *gram = &m->grams[m->size++];
    assert_true(m->size <= MAX_NGRAMS);
    *gram = (struct gram){.size = k};
    char *at;
    gram->p = strtod(line, &at);
    if (gram->p <= -98.5) gram->p = -INFINITY;
    for (int i = 0; i < k; i++) {
      size_t size = strcspn(++at, " \t\n");
      gram->word[i] = number_of(at, size);
      m->has_unk = m->has_unk || gram->word[i] == UNK;
      at += size;
    }
    if (*at == '\t') gram->has_bow = true, gram->bow = strtod(at, NULL);
    if (gram->bow <= -98.5) gram->bow = -INFINITY;
  }
}

/* Runs the library's pruning with these options and parses the result. */
static void prune_to(const wf_lm *lm, const wf_symbols *vocabulary,
                     const wf_lm_prune_options *options, model *m, wf_lm_prune_stats *stats) {
  wf_error err = {0};
  wf_lm *small;
  wf_lm_prune_stats_init(stats);
  assert_ok(wf_lm_prune(lm, vocabulary, options, &small, stats, NULL, &err));
  const char *path = test_temp_path("small.arpa");
  assert_ok(wf_lm_write_arpa(small, path, &err));
  char *text = test_read_file(path, NULL);
  parse_arpa(text, m);
  free(text);
  wf_lm_free(small);
}

/* --- the oracle -------------------------------------------------------------------------- */

static double p_of(const model *m, const int *history, int size, int word) {
  int order;
  return pow(10, score(m, history, size, word, &order));
}

static bool in_vocabulary(const model *m, int word) {
  return word != BOS && find(m, &word, 1) != NULL;
}

static double marginal(const model *m, const int *history, int size) {
  double p = 1;
  for (int i = 0; i < size; i++) {
    int word = history[i], eos = EOS;
    if (word == BOS) word = EOS;
    if (word == EOS && find(m, &eos, 1) == NULL) continue;
    p *= p_of(m, history, i, word);
  }
  return p;
}

/* exp(p(h) sum over all words of p ln(p / p')) - 1, where p' is the model without n-gram number g.
 */
static double worth_by_definition(const model *m, int g) {
  static model without;
  const struct gram *gram = &m->grams[g];
  int size = gram->size - 1;
  without = *m;
  memmove(&without.grams[g], &without.grams[g + 1],
          (size_t)(m->size - g - 1) * sizeof *without.grams);
  without.size--;
  double rest = 1, lower_rest = 1;
  for (int i = 0; i < without.size; i++) {
    const struct gram *other = &without.grams[i];
    if (other->size != gram->size ||
        memcmp(other->word, gram->word, (size_t)size * sizeof(int)) != 0)
      continue;
    rest -= pow(10, other->p);
    lower_rest -= p_of(m, gram->word + 1, size - 1, other->word[size]);
  }
  struct gram *history = (struct gram *)(uintptr_t)find(&without, gram->word, size);
  history->bow = log10(rest > 0 ? rest / lower_rest : 0);
  double change = 0, share = marginal(m, gram->word, size);
  for (int w = 0; w < m->num_words; w++) {
    if (!in_vocabulary(m, w)) continue;
    double p = p_of(m, gram->word, size, w), q = p_of(&without, gram->word, size, w);
    if (p > 0) change += p * log(p / q);
  }
  return share == 0 ? 0 : expm1(share * change);
}

static double difference_by_definition(const model *m, int g) {
  const struct gram *gram = &m->grams[g];
  int size = gram->size - 1;
  double p = pow(10, gram->p), share = marginal(m, gram->word, size);
  if (p == 0 || share == 0) return 0;
  return share * p *
         (log(p) - log(pow(10, find(m, gram->word, size)->bow) *
                       p_of(m, gram->word + 1, size - 1, gram->word[size])));
}

static bool is_context_of(const struct gram *a, const struct gram *b) {
  return a->size < b->size && memcmp(a->word, b->word, (size_t)a->size * sizeof(int)) == 0;
}

/* value[g]: the largest worth of g and of the n-grams that begin with g. */
static void values_by_definition(const model *m, bool entropy, double *value) {
  static double own[MAX_NGRAMS];
  for (int g = 0; g < m->size; g++)
    own[g] = m->grams[g].size == 1 ? INFINITY
             : entropy             ? worth_by_definition(m, g)
                                   : difference_by_definition(m, g);
  for (int g = 0; g < m->size; g++) {
    value[g] = own[g];
    for (int i = 0; i < m->size; i++)
      if (is_context_of(&m->grams[g], &m->grams[i]) && own[i] > value[g]) value[g] = own[i];
  }
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* --- tests ------------------------------------------------------------------------------- */

/* After every history, whether an n-gram or not, the probabilities of all words sum to 1. Uses
 * queries only. */
static void check_sums(const model *m, const wf_lm *lm, test_rng *rng) {
  for (int i = 0; i < 40; i++) {
    int words[8], size = random_sentence(m, rng, words, 7);
    uint32_t state = wf_lm_start(lm), next;
    for (int j = 0; j < size; j++)
      if (in_vocabulary(m, words[j])) wf_lm_step(lm, state, label_of(lm, words[j]), &state, NULL);
    double sum = exp(-(double)wf_lm_final(lm, state, NULL));
    for (int w = UNK; w < m->num_words; w++)
      if (in_vocabulary(m, w))
        sum += exp(-(double)wf_lm_step(lm, state, label_of(lm, w), &next, NULL));
    if (fabs(sum - 1) > 5e-6) fail_msg("the probabilities sum to %.8f", sum);
  }
}

/* Every n-gram of `small` is in `large`, with the same probability if same_p. All contexts are
 * present. */
static void check_contained(const model *small, const model *large, bool same_p) {
  for (int i = 0; i < small->size; i++) {
    const struct gram *gram = &small->grams[i], *there = find(large, gram->word, gram->size);
    assert_non_null(there);
    if (same_p && gram->size > 1)
      assert_true(gram->p == there->p || fabs(gram->p - there->p) < 3e-7);
    for (int k = 1; k < gram->size; k++) assert_non_null(find(small, gram->word, k));
  }
}

static wf_lm *normalized(const wf_lm *lm) {
  wf_error err = {0};
  wf_lm *out;
  assert_ok(wf_lm_prune(lm, NULL, NULL, &out, NULL, NULL, &err));
  return out;
}

/* A threshold between two neighbouring values keeps exactly the n-grams above it. */
static void check_threshold(const wf_lm *lm, const model *m, const double *value, double threshold,
                            bool entropy) {
  static model small;
  wf_lm_prune_stats stats;
  wf_lm_prune_options options;
  wf_lm_prune_options_init(&options);
  options.threshold = (float)threshold;
  options.criterion = entropy ? 0 : 1;
  prune_to(lm, NULL, &options, &small, &stats);
  double least[MAX_N + 1];
  for (int k = 0; k <= MAX_N; k++) least[k] = INFINITY;
  for (int g = 0; g < m->size; g++) {
    const struct gram *gram = &m->grams[g];
    bool kept = find(&small, gram->word, gram->size) != NULL;
    if (kept != (value[g] >= threshold))
      fail_msg("an n-gram of order %d and worth %g is %s at threshold %g", gram->size, value[g],
               kept ? "kept" : "pruned", threshold);
    if (kept && gram->size > 1 && value[g] < least[gram->size]) least[gram->size] = value[g];
  }
  for (int k = 2; k <= m->order; k++)
    if (!(isinf(least[k]) ? isinf(stats.least_worth[k])
                          : fabs(least[k] - (double)stats.least_worth[k]) < 1e-3 * least[k] + 1e-6))
      fail_msg("the least worth of order %d is %g, not %g", k, (double)stats.least_worth[k],
               least[k]);
  check_contained(&small, m, stats.num_scaled == 0);
}

static void test_thresholds_by_definition(void **unused) {
  (void)unused;
  test_rng rng = {21};
  static model m;
  int thresholds = 0, orders[MAX_N + 1] = {0};
  for (int round = 0; round < 120; round++) {
    make_model(&m, &rng, round % 3 == 0);
    wf_lm *loaded = load_model(&m, &rng), *lm = normalized(loaded);
    wf_lm_prune_stats stats;
    prune_to(lm, NULL, NULL, &m, &stats);
    check_sums(&m, lm, &rng);
    for (int entropy = 0; entropy < 2; entropy++) {
      double value[MAX_NGRAMS], sorted[MAX_NGRAMS];
      values_by_definition(&m, entropy == 1, value);
      memcpy(sorted, value, sizeof value);
      qsort(sorted, (size_t)m.size, sizeof *sorted, compare_doubles);
      for (int i = 1; i < m.size; i++) { /* only where the gap is larger than rounding errors */
        if (sorted[i - 1] < 1e-5 || isinf(sorted[i]) || sorted[i] < 1.01 * sorted[i - 1]) continue;
        check_threshold(lm, &m, value, sqrt(sorted[i - 1] * sorted[i]), entropy == 1);
        thresholds++;
        orders[m.order]++;
      }
    }
    wf_lm_free(lm);
    wf_lm_free(loaded);
  }
  assert_true(thresholds > 500);
  for (int k = 2; k <= MAX_N; k++) assert_true(orders[k] > 20);
}

static int count(const model *m, int k) {
  int num = 0;
  for (int i = 0; i < m->size; i++) num += m->grams[i].size == k;
  return num;
}

/* Limits are never exceeded. They are met exactly if no other limit applies. The most valuable
 * n-grams stay. The result is contained in the input and sums to 1. */
static void test_ngram_limits(void **unused) {
  (void)unused;
  wf_error err = {0};
  test_rng rng = {22};
  static model m, small;
  for (int round = 0; round < 300; round++) {
    make_model(&m, &rng, false);
    wf_lm *loaded = load_model(&m, &rng), *lm = normalized(loaded);
    wf_lm_prune_stats stats;
    prune_to(lm, NULL, NULL, &m, &stats);
    wf_lm_prune_options options;
    wf_lm_prune_options_init(&options);
    options.num_threads = 1 + round % 3;
    int limits[MAX_N + 1] = {0}, total = 0;
    char text[64] = "";
    bool by_total = round % 2 == 0;
    for (int k = 2; k <= m.order; k++) {
      limits[k] = (int)test_below(&rng, (uint32_t)count(&m, k) + 2);
      sprintf(text + strlen(text), "%s%d", k > 2 ? "," : "", limits[k]);
    }
    if (by_total)
      options.max_total = total = 1 + (int)test_below(&rng, (uint32_t)m.size + 3);
    else
      options.max_ngrams = text;
    prune_to(lm, NULL, &options, &small, &stats);
    check_contained(&small, &m, stats.num_scaled == 0);
    assert_int_equal(count(&small, 1), count(&m, 1));
    if (by_total) {
      int wanted = total < m.size ? total : m.size;
      assert_int_equal(small.size, wanted > count(&m, 1) ? wanted : count(&m, 1));
    }
    for (int k = 2; k <= m.order && !by_total; k++) assert_true(count(&small, k) <= limits[k]);
    if (!by_total && m.order == 2)
      assert_int_equal(count(&small, 2), limits[2] < count(&m, 2) ? limits[2] : count(&m, 2));
    double value[MAX_NGRAMS], gone = -INFINITY, kept = INFINITY;
    if (by_total || m.order == 2) {
      values_by_definition(&m, true, value);
      for (int g = 0; g < m.size; g++) {
        bool there = find(&small, m.grams[g].word, m.grams[g].size) != NULL;
        if (there && value[g] < kept) kept = value[g];
        if (!there && value[g] > gone) gone = value[g];
      }
      if (gone > kept * 1.001 + 1e-6)
        fail_msg("n-grams of worth %g are pruned, and of worth %g kept", gone, kept);
    }
    wf_lm *again;
    assert_ok(wf_lm_prune(lm, NULL, &options, &again, NULL, NULL, &err));
    check_sums(&small, again, &rng);
    wf_lm_free(again);
    wf_lm_free(lm);
    wf_lm_free(loaded);
  }
}

/* Vocabulary: the most likely words, or the words of a list. Their unigrams keep their proportions.
 * Reading a written model gives the same model. */
static void test_vocabulary_limits(void **unused) {
  (void)unused;
  wf_error err = {0};
  test_rng rng = {23};
  static model m, small;
  for (int round = 0; round < 200; round++) {
    make_model(&m, &rng, false);
    wf_lm *loaded = load_model(&m, &rng), *lm = normalized(loaded);
    wf_lm_prune_stats stats;
    prune_to(lm, NULL, NULL, &m, &stats);
    wf_lm_prune_options options;
    wf_lm_prune_options_init(&options);
    wf_symbols *list = NULL;
    int num_words = count(&m, 1) - 2 - m.has_unk,
        wanted = 1 + (int)test_below(&rng, (uint32_t)num_words);
    if (round % 2 == 0) {
      options.max_words = wanted;
    } else {
      assert_ok(wf_symbols_create("list", &list, &err));
      for (int w = 0; w < wanted; w++)
        assert_ok(wf_symbols_add(list, names[FIRST + w], w * 7, NULL, &err));
    }
    prune_to(lm, list, &options, &small, &stats);
    check_contained(&small, &m, false);
    assert_int_equal(count(&small, 1), wanted + 2 + m.has_unk);
    double ratio = NAN, least_kept = INFINITY, most_gone = -INFINITY;
    for (int w = 0; w < m.num_words; w++) {
      const struct gram *before = find(&m, &w, 1), *after = find(&small, &w, 1);
      if (before == NULL || w == BOS || isinf(before->p)) continue;
      if (after != NULL && isnan(ratio)) ratio = after->p - before->p;
      if (after != NULL) assert_true(fabs(after->p - before->p - ratio) < 1e-6);
      if (w < FIRST) continue;
      if (after != NULL && before->p < least_kept) least_kept = before->p;
      if (after == NULL && before->p > most_gone) most_gone = before->p;
    }
    assert_true(fabs(pow(10, -ratio) - stats.word_mass) < 1e-5);
    if (list == NULL) assert_true(least_kept >= most_gone);
    for (int w = FIRST; w < m.num_words && list != NULL; w++)
      assert_true((find(&small, &w, 1) != NULL) == (w < FIRST + wanted && find(&m, &w, 1) != NULL));
    wf_symbols_free(list);
    wf_lm_free(lm);
    wf_lm_free(loaded);
  }
}

/* A written model that is read again gives the same costs. Its labels are those of the table. */
static void test_written_model_is_the_same(void **unused) {
  (void)unused;
  wf_error err = {0};
  test_rng rng = {24};
  static model m;
  for (int round = 0; round < 200; round++) {
    make_model(&m, &rng, round % 2 == 1);
    wf_lm *lm = load_model(&m, &rng), *again;
    const char *path = test_temp_path("again.arpa");
    assert_ok(wf_lm_write_arpa(lm, path, &err));
    assert_ok(wf_lm_open(path, NULL, NULL, &again, NULL, NULL, &err));
    for (int i = 0; i < 20; i++) {
      int words[10], size = random_sentence(&m, &rng, words, 10);
      uint32_t s = wf_lm_start(lm), t = wf_lm_start(again);
      for (int j = 0; j < size; j++) {
        int32_t order, same_order;
        float cost = wf_lm_step(lm, s, label_of(lm, words[j]), &s, &order),
              same = wf_lm_step(again, t, label_of(again, words[j]), &t, &same_order);
        if (!(cost > 200 ? same > 200 : fabsf(cost - same) < 3e-6f) || order != same_order)
          fail_msg("cost %g, then %g; order %d, then %d", cost, same, order, same_order);
        if (cost > 200) break;
      }
    }
    wf_lm_free(again);
    wf_lm_free(lm);
  }
}

static void test_selection_of_the_n_largest(void **unused) {
  (void)unused;
  test_rng rng = {25};
  for (int round = 0; round < 2000; round++) {
    float values[40];
    int size = (int)test_below(&rng, 40), n = (int)test_below(&rng, 45), kept = 0;
    for (int i = 0; i < size; i++)
      values[i] = round % 2 == 0 ? (float)test_below(&rng, 5) - 2
                                 : ldexpf(test_unit(&rng) - 0.5f, (int)test_below(&rng, 200) - 100);
    if (size > 3) values[test_below(&rng, (uint32_t)size)] = INFINITY;
    wf__cut cut = wf__cut_at(values, (uint64_t)size, (uint64_t)n);
    float least = INFINITY, most = -INFINITY;
    for (int i = 0; i < size; i++) {
      bool keeps = wf__cut_keeps(&cut, values[i]);
      kept += keeps;
      if (keeps && values[i] < least) least = values[i];
      if (!keeps && values[i] > most) most = values[i];
    }
    assert_int_equal(kept, n < size ? n : size);
    assert_true(kept == 0 || least >= most);
  }
}

static void test_bad_options(void **unused) {
  (void)unused;
  wf_error err = {0};
  wf_lm *lm = lm_of(trigram), *small;
  wf_lm_prune_options options;
  static const char *const bad[] = {"x", "1,-2", "1,2,3", "1 2", ",,4"};
  for (int i = 0; i < 5; i++) {
    wf_lm_prune_options_init(&options);
    options.max_ngrams = bad[i];
    small = lm;
    assert_int_equal(wf_lm_prune(lm, NULL, &options, &small, NULL, NULL, &err), WF_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "max_ngrams"));
    assert_null(small);
  }
  wf_symbols *none;
  assert_ok(wf_symbols_create("none", &none, &err));
  assert_int_equal(wf_lm_prune(lm, none, NULL, &small, NULL, NULL, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "no word"));
  wf_symbols_free(none);
  wf_lm_prune_options_init(&options);
  options.max_ngrams =
      ",1"; /* a limit for order 1 only; min_order protects those n-grams from it */
  wf_lm_info info;
  wf_lm_info_init(&info);
  for (int min_order = 3; min_order <= 4; min_order++) {
    options.min_order = min_order;
    assert_ok(wf_lm_prune(lm, NULL, &options, &small, NULL, NULL, &err));
    assert_ok(wf_lm_get_info(small, &info, &err));
    assert_int_equal(info.num_ngrams[2], 5);
    assert_int_equal(info.num_ngrams[3], min_order == 3 ? 1 : 2);
    wf_lm_free(small);
  }
  wf_lm_free(lm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_selection_of_the_n_largest),
      cmocka_unit_test(test_thresholds_by_definition),
      cmocka_unit_test(test_ngram_limits),
      cmocka_unit_test(test_vocabulary_limits),
      cmocka_unit_test(test_written_model_is_the_same),
      cmocka_unit_test(test_bad_options),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
