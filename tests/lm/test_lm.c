/* test_lm.c - language models. Each rule for unusual ARPA files is tested by hand. Random models
 * are compared with a direct implementation of back-off. */
#include "lm_model.h"

/* Returns the log10 probability of `word` in *state, and moves *state. */
static double step(const wf_lm *lm, uint32_t *state, const char *word, int32_t *order) {
  return -wf_lm_step(lm, *state, label(lm, word), state, order) / M_LN10;
}
static double final(const wf_lm *lm, uint32_t state, int32_t *order) {
  return -wf_lm_final(lm, state, order) / M_LN10;
}

/* Walks from <s> and checks the log10 probability and n-gram order of each word; "</s>" is last. */
struct expected {
  const char *word;
  double log10p;
  int32_t order;
};
static void check_walk(const wf_lm *lm, const struct expected *walk, size_t size) {
  uint32_t state = wf_lm_start(lm);
  for (size_t i = 0; i < size; i++) {
    int32_t order = -1;
    bool end = strcmp(walk[i].word, "</s>") == 0;
    double log10p = end ? final(lm, state, &order) : step(lm, &state, walk[i].word, &order);
    if (fabs(log10p - walk[i].log10p) > 1e-6 || order != walk[i].order)
      fail_msg("word %zu, %s: log10p %.8f order %d, expected %.8f order %d", i, walk[i].word,
               log10p, order, walk[i].log10p, walk[i].order);
  }
}
#define CHECK_WALK(lm, ...)                              \
  check_walk(lm, (const struct expected[]){__VA_ARGS__}, \
             sizeof((const struct expected[]){__VA_ARGS__}) / sizeof(struct expected))

/* --- by hand ----------------------------------------------------------------------------- */

static void test_small_model_by_hand(void **unused) {
  (void)unused;
  wf_error err = {0};
  wf_lm *lm = lm_of(trigram);
  CHECK_WALK(lm, {"a", -0.25, 2}, {"b", -0.12, 3}, {"</s>", -0.22, 3});
  /* a after `<s> a`: bow(<s> a) + bow(a) + p(a). Then the history is `a`. */
  CHECK_WALK(lm, {"a", -0.25, 2}, {"a", -0.05 - 0.2 - 0.5, 1}, {"b", -0.35, 2},
             {"c", -0.15 - 0.45, 2}, {"a", -0.65, 2}, {"</s>", -0.4 - 0.2 - 1.0, 1});
  CHECK_WALK(lm, {"b", -0.1 - 0.6, 1}, {"</s>", -0.55, 2});
  /* `c` has no back-off weight (a missing column means 0) but is a context. */
  CHECK_WALK(lm, {"c", -0.1 - 0.7, 1}, {"b", -0.6, 1}, {"c", -0.45, 2});
  CHECK_WALK(lm, {"nothing", -0.1 - 2.0, 1}, {"<unk>", -2.0, 1}, {"<s>", -2.0, 1},
             {"</s>", -1.0, 1});
  wf_lm_info info;
  wf_lm_info_init(&info);
  assert_ok(wf_lm_get_info(lm, &info, &err));
  assert_int_equal(info.order, 3);
  assert_int_equal(info.num_ngrams[1], 6);
  assert_int_equal(info.num_ngrams[2], 5);
  assert_int_equal(info.num_ngrams[3], 2);
  assert_int_equal(info.num_words, 3);
  assert_true(info.has_unk);
  assert_int_equal(info.num_states,
                   1 + 4 + 3); /* the empty history; <s> a b c; `<s> a`, `a b`, `c a`; not `b c`,
                                  which is no context and has no back-off */
  assert_int_equal(info.num_arcs,
                   4 + 4 + 1); /* unigrams a b c <unk>; all bigrams except `b </s>`; `<s> a b` */
  assert_int_equal(info.bos, 1);
  assert_int_equal(wf_symbols_find(wf_lm_words(lm), "<eps>"), 0);
  assert_true(wf_lm_knows(lm, label(lm, "a")));
  assert_false(wf_lm_knows(lm, label(lm, "<unk>")));
  assert_false(wf_lm_knows(lm, 0));
  assert_false(wf_lm_knows(lm, -1));
  assert_false(wf_lm_knows(lm, 1000000));
  wf_lm_free(wf_lm_ref(lm));
  wf_lm_free(lm);
}

/* A model without <unk>: unknown words have no probability. Float32 costs are -ln(10) log10 p,
 * rounded once. */
static void test_no_unk(void **unused) {
  (void)unused;
  wf_lm *lm = lm_of(
      "\\data\\\nngram 1=4\nngram 2=1\n\\1-grams:\n-99 <s> -0.5\n-1 </s>\n-0.3010300 a -0.25\n-inf "
      "z\n\\2-grams:\n-0.125 a </s>\n\\end\\\n");
  uint32_t state = wf_lm_start(lm), next = 7;
  int32_t order = -1;
  assert_true(isinf(wf_lm_step(lm, state, label(lm, "x"), &next, &order)));
  assert_int_equal(next, 0);
  assert_int_equal(order, 0);
  assert_true(wf_lm_step(lm, 0, label(lm, "a"), &next, NULL) == (float)(0.3010300 * M_LN10));
  assert_true(wf_lm_final(lm, next, &order) == (float)(0.125 * M_LN10));
  assert_true(isinf(
      wf_lm_step(lm, 0, label(lm, "z"), &next, &order))); /* probability zero, but a known word */
  assert_int_equal(order, 1);
  assert_true(wf_lm_knows(lm, label(lm, "z")));
  assert_true(isinf(wf_lm_step(lm, 12345, label(lm, "a"), &next, &order)));
  wf_lm_free(lm);
}

static void test_invalid_ngrams_and_positive_values(void **unused) {
  (void)unused;
  wf_error err = {0};
  wf_arpa_stats stats;
  wf_lm *lm;
  assert_ok(
      read_text("\\data\\\nngram 1=4\nngram 2=4\nngram 3=2\n\\1-grams:\n0.5 <s> -0.5\n-1 </s> "
                "0\n0.0000001 a 0.25\n-0.5 b\n"
                "\\2-grams:\n-0.1 a <s> -1\n-0.2 </s> a -1\n-0.3 a b 0\n-0.4 a "
                "</s>\n\\3-grams:\n-0.1 a <s> b\n-0.2 a b </s>\n\\end\\\n",
                NULL, NULL, &lm, &stats, &err));
  assert_int_equal(stats.num_refused, 3);
  assert_int_equal(stats.num_positive, 1);
  assert_int_equal(stats.num_created, 0);
  assert_int_equal(stats.num_lines[2], 4);
  CHECK_WALK(lm, {"a", -0.5, 1}, {"a", 0.25, 1}, {"b", -0.3, 2}, {"</s>", -0.2, 3});
  wf_lm_free(lm);
}

/* `a b c` and `a b </s>` without `a b`; `b d c a` without `b d` and `b d c`. The missing contexts
 * are created with their backed-off probability. */
static void test_missing_contexts_are_created(void **unused) {
  (void)unused;
  wf_error err = {0};
  wf_arpa_stats stats;
  wf_lm *lm;
  assert_ok(
      read_text("\\data\\\nngram 1=6\nngram 2=1\nngram 3=2\nngram 4=1\n\\1-grams:\n-99 <s> "
                "-0.5\n-1 </s>\n-0.5 a -0.25\n-0.6 b -0.35\n-0.7 c -0.45\n-0.8 d -0.1\n"
                "\\2-grams:\n-0.2 b c -0.3\n\\3-grams:\n-0.1 a b c\n-0.15 a b "
                "</s>\n\\4-grams:\n-0.05 b d c a\n\\end\\\n",
                NULL, NULL, &lm, &stats, &err));
  assert_int_equal(stats.num_created, 3);
  CHECK_WALK(lm, {"a", -1.0, 1}, {"b", -0.25 - 0.6, 2}, {"c", -0.1, 3},
             {"</s>", -0.3 - 0.45 - 1, 1});
  CHECK_WALK(lm, {"a", -1.0, 1}, {"b", -0.25 - 0.6, 2}, {"</s>", -0.15, 3});
  CHECK_WALK(lm, {"b", -1.1, 1}, {"d", -0.35 - 0.8, 2}, {"c", -0.1 - 0.7, 3}, {"a", -0.05, 4},
             {"b", -0.25 - 0.6, 2});
  wf_lm_free(lm);
}

/* A context that exists only as a suffix: `a b` is neither an n-gram nor a context, so after `x a
 * b` the history is `b`. */
static void test_context_that_is_only_a_suffix(void **unused) {
  (void)unused;
  wf_lm *lm = lm_of(
      "\\data\\\nngram 1=5\nngram 2=3\nngram 3=1\n\\1-grams:\n-99 <s>\n-1 </s>\n-0.5 a -0.1\n-0.6 "
      "b -0.2\n-0.7 x -0.3\n"
      "\\2-grams:\n-0.11 x a -0.01\n-0.12 b b -0.02\n-0.13 a x\n\\3-grams:\n-0.05 x a "
      "b\n\\end\\\n");
  CHECK_WALK(lm, {"x", -0.7, 1}, {"a", -0.11, 2}, {"b", -0.05, 3}, {"b", -0.12, 2},
             {"b", -0.02 - 0.12, 2}, {"</s>", -0.02 - 0.2 - 1, 1});
  wf_lm_free(lm);
}

static wf_symbols *symbols_of(const char *const *words, size_t count) {
  wf_error err = {0};
  wf_symbols *symbols;
  assert_ok(wf_symbols_create("words", &symbols, &err));
  for (size_t i = 0; i < count; i++)
    assert_ok(wf_symbols_add(symbols, words[i], (int64_t)i * 3, NULL, &err));
  return symbols;
}

static const char *const oov_lm =
    "\\data\\\nngram 1=6\nngram 2=6\n\\1-grams:\n-99 <s> -0.5\n-1 </s>\n-2 <unk> -0.7\n-0.5 a "
    "-0.1\n-1 b -0.2\n-1.5 c -0.3\n"
    "\\2-grams:\n-0.3 a b\n-0.4 a c\n-0.6 b a\n-0.7 <unk> a\n-0.8 a a\n-0.9 c c\n\\end\\\n";

static double log10_sum(double a, double b) { return log10(pow(10, a) + pow(10, b)); }

static void test_oov(void **unused) {
  (void)unused;
  wf_error err = {0};
  wf_arpa_stats stats;
  wf_arpa_options options;
  wf_arpa_options_init(&options);
  wf_lm *lm;
  static const char *const with_unk[] = {"<eps>", "a", "<unk>", "extra"};
  wf_symbols *words = symbols_of(with_unk, 4);
  assert_ok(read_text(oov_lm, words, NULL, &lm, &stats, &err));
  assert_int_equal(stats.num_oov_words, 2);
  assert_int_equal(stats.num_oov_merged, 4);  /* b, c, `a b`, `a c` */
  assert_int_equal(stats.num_oov_skipped, 2); /* `b a`, `c c` */
  assert_ptr_equal(wf_lm_words(lm), words);
  double unk = log10_sum(log10_sum(-1, -1.5), -2);
  CHECK_WALK(lm, {"a", -0.5 - 0.5, 1}, {"b", log10_sum(-0.3, -0.4), 2}, {"a", -0.7, 2},
             {"a", -0.8, 2}, {"extra", log10_sum(-0.3, -0.4), 2}, {"c", -0.7 + unk, 1},
             {"</s>", -0.7 - 1, 1});
  wf_fst *fst;
  assert_ok(wf_lm_to_fst(lm, NULL, &fst, &err));
  assert_true(wf_fst_osymbols(fst) == words);
  wf_fst_free(fst);
  wf_lm_free(lm);
  options.oov = 1; /* skip */
  assert_ok(read_text(oov_lm, words, &options, &lm, &stats, &err));
  assert_int_equal(stats.num_oov_merged, 0);
  assert_int_equal(stats.num_oov_skipped, 6);
  CHECK_WALK(lm, {"b", -0.5 - 2, 1}, {"a", -0.7, 2}, {"b", -0.1 - 2, 1});
  wf_lm_free(lm);
  options.oov = 2; /* error */
  assert_int_equal(read_text(oov_lm, words, &options, &lm, NULL, &err), WF_ERR_FORMAT);
  assert_non_null(strstr(err.message, ":9: 'b' is not in the word table"));
  wf_symbols_free(words);
  /* With a table without <unk> the n-grams of unknown words are skipped. Unknown words still cost
   * what the model's <unk> costs, which has no arc in the acceptor. */
  static const char *const without[] = {"<eps>", "c", "a", "</s>"};
  words = symbols_of(without, 4);
  assert_ok(read_text(oov_lm, words, NULL, &lm, &stats, &err));
  assert_int_equal(stats.num_oov_merged, 0);
  assert_int_equal(stats.num_oov_skipped, 3); /* b, `a b`, `b a` */
  CHECK_WALK(lm, {"a", -1.0, 1}, {"b", -0.1 - 2, 1}, {"a", -0.7, 2}, {"c", -0.4, 2});
  wf_lm_info info;
  wf_lm_info_init(&info);
  assert_ok(wf_lm_get_info(lm, &info, &err));
  assert_int_equal(info.unk, -1);
  assert_int_equal(info.bos, -1);
  assert_int_equal(info.eos, 9);
  assert_true(info.has_unk);
  assert_ok(wf_lm_to_fst(lm, NULL, &fst, &err));
  wf_fst_view view = wf_fst_get_view(fst);
  assert_int_equal(view.num_states, 4); /* empty, <s>, a, c; the history <unk> cannot be reached */
  for (uint64_t i = 0; i < view.num_arcs; i++)
    assert_true(view.arcs[i].ilabel == 0 || view.arcs[i].ilabel == 3 || view.arcs[i].ilabel == 6);
  wf_fst_free(fst);
  wf_lm_free(lm);
  wf_symbols_free(words);
}

static void test_symbols_options(void **unused) {
  (void)unused;
  wf_error err = {0};
  wf_arpa_options options;
  wf_arpa_options_init(&options);
  options.bos_symbol = "BOS";
  options.eos_symbol = "EOS";
  options.unk_symbol = "a";
  wf_lm *lm;
  assert_ok(read_text("\\data\\\nngram 1=3\n\\1-grams:\n0 BOS\n-1 EOS\n-0.5 a\n\\end\\\n", NULL,
                      &options, &lm, NULL, &err));
  CHECK_WALK(lm, {"b", -0.5, 1}, {"</s>", -1, 1});
  assert_false(wf_lm_knows(lm, label(lm, "a")));
  wf_lm_free(lm);
  assert_ok(read_text("\\data\\\nngram 1=3\n\\1-grams:\n0 <s>\n-1 </s>\n-0.5 <UNK>\n\\end\\\n",
                      NULL, NULL, &lm, NULL, &err));
  CHECK_WALK(lm, {"b", -0.5, 1});
  wf_lm_free(lm);
}

/* Malformed text, and a part of the expected message. */
static void test_malformed_arpa(void **unused) {
  (void)unused;
#define HEAD "\\data\\\nngram 1=3\nngram 2=1\n\n\\1-grams:\n-99 <s>\n-1 </s>\n"
#define TWO HEAD "-0.5 a\n\n\\2-grams:\n"
  static const struct {
    const char *text, *message;
  } bad[] = {
      {"", "no line \\data\\"},
      {"hello\n", "no line \\data\\"},
      {"\\data\\\n", "ends within the header"},
      {"\\data\\\n\\1-grams:\n", ":2: the header holds no"},
      {"\\data\\\nngram 1=x\n", ":2: expected 'ngram ORDER=COUNT'"},
      {"\\data\\\nngram 1=-1\n", ":2: expected 'ngram ORDER=COUNT'"},
      {"\\data\\\nngram 1=3 4\n", ":2: expected 'ngram ORDER=COUNT'"},
      {"\\data\\\nngram 1\n", ":2: expected 'ngram ORDER=COUNT'"},
      {"\\data\\\nngrams 1=2\n", ":2: expected 'ngram ORDER=COUNT'"},
      {"\\data\\\nngram 2=1\n", ":2: expected the count of 1-grams"},
      {"\\data\\\nngram 1=1\nngram 1=1\n", ":3: expected the count of 2-grams"},
      {HEAD "-0.5 a\n", "ends within the 1-grams"},
      {HEAD "-0.5 a", "ends within the 1-grams"},
      {HEAD "-0.5 a\n-0.5 b\n", ":9: more 1-grams than the 3"},
      {HEAD "\\2-grams:\n", ":8: the 1-grams end after 2, the header says 3"},
      {HEAD "-0.5 a\n\\end\\\n", ":9: expected '\\2-grams:'"},
      {TWO "-0.1 a a\n\\3-grams:\n", ":12: expected '\\end\\'"},
      {TWO "\\end\\\n", ":11: the 2-grams end after 0, the header says 1"},
      {TWO "-0.1 a\n",
       ":11: expected a probability, 2 words and perhaps a back-off weight, found 2 fields"},
      {TWO "-0.1 a a a a\n", "found 5 fields"},
      {TWO "-0.1 a a a a a a a a a a a a a a a a a a a a a a a\n", "found at least 19 fields"},
      {TWO "x a a\n", ":11: expected a probability (log10), found 'x'"},
      {TWO "-0.1x a a\n", "expected a probability (log10), found '-0.1x'"},
      {TWO "nan a a\n", ":11: probability 'nan' is not a finite number or -inf"},
      {TWO "inf a a\n", "probability 'inf' is not"},
      {TWO "0.01 a a\n", ":11: log10 probability 0.01 is above 0"},
      {TWO "1e300 a a\n", "out of range"},
      {HEAD "-0.5 a 1e31\n", ":8: back-off weight '1e31' is out of range"},
      {TWO "-0.1 a a -0.5\n", ":11: an n-gram of the highest order has the back-off weight '-0.5'"},
      {TWO "-0.1 a a b\n", "expected a back-off weight (log10), found 'b'"},
      {TWO "-0.1 a b\n", ":11: 'b' is not among the unigrams"},
      {TWO "-0.1 b a\n", ":11: 'b' is not among the unigrams"},
      {TWO "-0.1 <eps> a\n", ":11: '<eps>' is not among the unigrams"},
      {HEAD "-0.5 <s>\n", ":8: the unigram '<s>' is given twice"},
      {HEAD "-0.5 <eps>\n", "stands for epsilon"},
      {HEAD "-0.5 \xff\n", ":8: the word is not UTF-8"},
      {HEAD "-0.5 a nan\n", ":8: back-off weight 'nan' is not"},
      {"\\data\\\nngram 1=1\n\\1-grams:\n-1 a\n\\end\\\n", ":5: no '<s>' among the unigrams"},
      {"\\data\\\nngram 1=0\n\\end\\\n", "no '<s>'"},
      {"\\data\\\nngram 1=1\nngram 2=2\n\\1-grams:\n-1 <s>\n\\2-grams:\n-1 <s> <s>\n",
       "ends within"},
      {"\\data\\\nngram 1=2\nngram 2=2\n\\1-grams:\n-1 <s>\n-1 a\n\\2-grams:\n-1 a a\n-1 a "
       "a\n\\end\\\n",
       ":10: the 2-grams above give 'a a' twice"},
      {"\\data\\\nngram 1=3\nngram 2=2\nngram 3=2\n\\1-grams:\n-1 <s>\n-1 a\n-2 b\n\\2-grams:\n-1 "
       "a a\n-1 a b\n\\3-grams:\n-1 a b a\n-1 a b a\n\\end\\\n",
       ":15: the 3-grams above give 'a b a' twice"},
      {"\\data\\\nngram 1=99999999999999\n\\1-grams:\n-1 <s>\n\\end\\\n",
       "the 1-grams end after 1"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    wf_error err = {0};
    wf_lm *lm = (wf_lm *)&err;
    wf_status status = read_text(bad[i].text, NULL, NULL, &lm, NULL, &err);
    if (status != WF_ERR_FORMAT || lm != NULL || strstr(err.message, bad[i].message) == NULL)
      fail_msg("text %zu: status %d, '%s', expected '%s'", i, status, err.message, bad[i].message);
    assert_non_null(strstr(err.message, "lm.arpa"));
  }
  wf_error err = {0};
  wf_lm *lm;
  char text[512] = "\\data\\\n";
  for (int k = 1; k <= 17; k++) sprintf(text + strlen(text), "ngram %d=1\n", k);
  assert_int_equal(read_text(text, NULL, NULL, &lm, NULL, &err), WF_ERR_LIMIT);
  assert_int_equal(wf_lm_open("/nowhere/lm", NULL, NULL, &lm, NULL, NULL, &err), WF_ERR_IO);
  /* Labels that would need a huge array; a word that is epsilon in the table. */
  wf_symbols *words;
  assert_ok(wf_symbols_create("words", &words, &err));
  assert_ok(wf_symbols_add(words, "a", 0, NULL, &err));
  assert_int_equal(read_text(trigram, words, NULL, &lm, NULL, &err), WF_ERR_FORMAT);
  assert_non_null(strstr(err.message, ":12: 'a' is epsilon (0) in the word table"));
  assert_ok(wf_symbols_add(words, "b", INT32_MAX, NULL, &err));
  assert_int_equal(read_text(trigram, words, NULL, &lm, NULL, &err), WF_ERR_LIMIT);
  wf_symbols_free(words);
}

static bool refuse(void *user, const char *stage, double fraction) {
  (void)stage;
  if (!(fraction >= 0 && fraction <= 1)) fail_msg("progress of %g", fraction);
  return --*(int *)user > 0;
}

static void test_gzip_and_progress(void **unused) {
  (void)unused;
  wf_error err = {0};
  const char *path = test_write_file("plain.arpa", trigram, strlen(trigram));
  test_shell("gzip -c %s > %s.gz", path, path);
  char packed[4096];
  snprintf(packed, sizeof packed, "%s.gz", path);
  wf_lm *lm;
  assert_ok(wf_lm_open(packed, NULL, NULL, &lm, NULL, NULL, &err));
  CHECK_WALK(lm, {"a", -0.25, 2}, {"b", -0.12, 3}, {"</s>", -0.22, 3});
  wf_lm_free(lm);
  int left = 1;
  wf_progress progress = {refuse, &left};
  assert_int_equal(wf_lm_open(packed, NULL, NULL, &lm, NULL, &progress, &err), WF_ERR_CANCELLED);
  assert_null(lm);
}

/* --- random models against the definition ------------------------------------------------ */

static void test_random_models(void **unused) {
  (void)unused;
  test_rng rng = {11};
  static model m;
  for (int round = 0; round < 400; round++) {
    bool holes = round % 2 == 1;
    make_model(&m, &rng, holes);
    wf_lm *lm = load_model(&m, &rng);
    for (int i = 0; i < 30; i++) {
      int history[16] = {BOS}, size = 1 + random_sentence(&m, &rng, history + 1, 10), order;
      uint32_t state = wf_lm_start(lm);
      for (int at = 1; at <= size; at++) {
        int32_t got_order;
        double got =
            -(at < size ? wf_lm_step(lm, state, label_of(lm, history[at]), &state, &got_order)
                        : wf_lm_final(lm, state, &got_order)) /
            M_LN10;
        double want = score(&m, history, at, at < size ? history[at] : EOS, &order);
        bool same = isinf(want) ? isinf(got) : fabs(got - want) < 2e-5;
        if (!same || (!holes && got_order != order))
          fail_msg("round %d, sentence %d, word %d: log10p %g order %d, expected %g order %d",
                   round, i, at, got, got_order, want, order);
        if (isinf(want)) break; /* unknown word without <unk>: the history is lost */
      }
    }
    wf_lm_free(lm);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_model_by_hand),
      cmocka_unit_test(test_no_unk),
      cmocka_unit_test(test_invalid_ngrams_and_positive_values),
      cmocka_unit_test(test_missing_contexts_are_created),
      cmocka_unit_test(test_oov),
      cmocka_unit_test(test_context_that_is_only_a_suffix),
      cmocka_unit_test(test_symbols_options),
      cmocka_unit_test(test_malformed_arpa),
      cmocka_unit_test(test_random_models),
      cmocka_unit_test(test_gzip_and_progress),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
