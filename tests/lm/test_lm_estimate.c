/* test_lm_estimate.c - estimated models compared with the formulas of modified Kneser-Ney smoothing
 * (Chen & Goodman 1998), which are evaluated here from the sentences, by search: every count is the
 * result of a pass over the text. */
#include "random_texts.h"

enum { MAX_ORDER = 5, BOS = 100, EOS, UNK };

/* --- the oracle -------------------------------------------------------------------------- */

typedef struct oracle {
  const text *t;
  int order, num_words; /* words [0, num_words) are in the vocabulary; others are UNK */
  int prune[MAX_ORDER + 1];
  double discount[MAX_ORDER + 1][4];
  int vocabulary[MAX_TEXT_WORDS + 2], size; /* the words that have a probability */
} oracle;

/* Token `i` of a sentence with <s> at 0 and </s> after the words. */
static int token(const oracle *o, int s, int i) {
  if (i == 0) return BOS;
  if (i > o->t->size[s]) return EOS;
  const int word = o->t->words[s][i - 1];
  return word < o->num_words ? word : UNK;
}

/* Occurrences of an n-gram; 0 for <s> alone, which is never predicted. */
static int occurrences(const oracle *o, const int *gram, int k) {
  int count = 0;
  for (int s = 0; s < o->t->num_sentences; s++)
    for (int i = 0; i + k <= o->t->size[s] + 2; i++) {
      bool same = i + k > 1;
      for (int j = 0; j < k && same; j++) same = token(o, s, i + j) == gram[j];
      count += same;
    }
  return count;
}

static int adjusted(const oracle *o, const int *gram, int k) {
  if (k == o->order || gram[0] == BOS) return occurrences(o, gram, k);
  int longer[MAX_ORDER + 1], count = 0;
  memcpy(longer + 1, gram, (size_t)k * sizeof *gram);
  for (int i = -1; i < o->size; i++) {
    longer[0] = i < 0 ? BOS : o->vocabulary[i];
    count += occurrences(o, longer, k + 1) > 0;
  }
  return count;
}

static bool is_kept(const oracle *o, const int *gram, int k) {
  return k == 1 || occurrences(o, gram, k) > o->prune[k];
}

static double discount_of(const oracle *o, int k, int count) {
  return o->discount[k][count < 3 ? count : 3];
}

/* Sum of the counts after a history, and its back-off weight. False: no n-gram is kept. */
static bool sums(const oracle *o, const int *history, int size, double *sum, double *backoff) {
  int gram[MAX_ORDER];
  double left = 0;
  bool any = false;
  memcpy(gram, history, (size_t)size * sizeof *gram);
  *sum = 0;
  for (int i = 0; i < o->size; i++) {
    gram[size] = o->vocabulary[i];
    const int count = adjusted(o, gram, size + 1);
    const bool kept = is_kept(o, gram, size + 1);
    *sum += count;
    left += kept ? discount_of(o, size + 1, count) : count;
    any |= kept;
  }
  *backoff = left / *sum;
  return any && *sum > 0;
}

static double probability(const oracle *o, const int *history, int size, int word) {
  double sum, backoff;
  int gram[MAX_ORDER];
  if (size >= o->order) return probability(o, history + size - o->order + 1, o->order - 1, word);
  const bool any = sums(o, history, size, &sum, &backoff);
  const double lower = size > 0 ? probability(o, history + 1, size - 1, word) : 1.0 / o->size;
  if (!any) return lower;
  memcpy(gram, history, (size_t)size * sizeof *gram);
  gram[size] = word;
  const int count = adjusted(o, gram, size + 1);
  const bool kept = is_kept(o, gram, size + 1);
  return (kept ? (count - discount_of(o, size + 1, count)) / sum : 0) + backoff * lower;
}

/* --- all n-grams of the text ------------------------------------------------------------- */

typedef struct grams {
  int size, words[2 * MAX_SENTENCES * MAX_SENTENCE][MAX_ORDER];
} grams;

static void find_grams(const oracle *o, int k, grams *out) {
  out->size = 0;
  for (int s = 0; s < o->t->num_sentences; s++)
    for (int i = k > 1 ? 0 : 1; i + k <= o->t->size[s] + 2; i++) {
      int gram[MAX_ORDER] = {0}, at = 0;
      for (int j = 0; j < k; j++) gram[j] = token(o, s, i + j);
      while (at < out->size && memcmp(out->words[at], gram, sizeof gram) != 0) at++;
      if (at == out->size) memcpy(out->words[out->size++], gram, sizeof gram);
    }
}

/* Sets the discounts, and the model's order to the longest n-grams that are kept. */
static int prepare(oracle *o, wf_lm_estimate_stats *stats, int *num_kept) {
  static grams all;
  int model_order = 1;
  for (int k = 1; k <= o->order; k++) {
    double with[5] = {0};
    find_grams(o, k, &all);
    num_kept[k] = k == 1 ? o->size + 1 : 0; /* with <s> */
    for (int i = 0; i < all.size; i++) {
      const int count = adjusted(o, all.words[i], k);
      if (count < 5) with[count]++;
      if (k > 1) num_kept[k] += is_kept(o, all.words[i], k);
    }
    if (num_kept[k] > 0) model_order = k;
    const double y = with[1] / (with[1] + 2 * with[2]);
    bool closed = true;
    for (int c = 1; c <= 3; c++) {
      const double d = o->discount[k][c] = c - (c + 1) * y * with[c + 1] / with[c];
      closed = closed && with[c] > 0 && d > 0 && d <= c;
    }
    if (k <= model_order) assert_int_equal(stats->fallback[k], !closed);
    for (int c = 1; c <= 3 && !closed; c++) o->discount[k][c] = 0.25 * c;
  }
  return model_order;
}

/* --- tests ------------------------------------------------------------------------------- */

static const char *name_of(int word) {
  return word == EOS ? "</s>" : word == UNK ? "<unk>" : text_words[word];
}

/* The model's state after a history. */
static uint32_t state_after(const wf_lm *lm, const int *history, int size) {
  uint32_t state = size > 0 && history[0] == BOS ? wf_lm_start(lm) : 0;
  for (int i = size > 0 && history[0] == BOS; i < size; i++)
    wf_lm_step(lm, state, (int32_t)wf_symbols_find(wf_lm_words(lm), name_of(history[i])), &state,
               NULL);
  return state;
}

/* Compares the probabilities of all words after a history. */
static void check_history(const oracle *o, const wf_lm *lm, const int *history, int size) {
  const uint32_t state = state_after(lm, history, size);
  double sum = 0;
  for (int i = 0; i < o->size; i++) {
    uint32_t next;
    int gram[MAX_ORDER + 1], order;
    const int word = o->vocabulary[i];
    const float cost =
        word == EOS
            ? wf_lm_final(lm, state, &order)
            : wf_lm_step(lm, state, (int32_t)wf_symbols_find(wf_lm_words(lm), name_of(word)), &next,
                         &order);
    const double want = probability(o, history, size, word), p = exp(-(double)cost);
    sum += p;
    if (fabs(p - want) > 5e-6 * want) /* the model's costs are float32 */
      fail_msg("P(%s) after %d words is %.9g, not %.9g", name_of(word), size, p, want);
    memcpy(gram, history, (size_t)size * sizeof *gram);
    gram[size] = word;
    if (size > 0)
      assert_int_equal(order == size + 1, occurrences(o, gram, size + 1) > o->prune[size + 1]);
  }
  assert_true(fabs(sum - 1) < 1e-6);
}

static oracle random_oracle(test_rng *rng, const text *t, wf_lm_estimate_options *options,
                            char *prune) {
  oracle o = {.t = t, .order = 1 + (int)test_below(rng, MAX_ORDER), .num_words = MAX_TEXT_WORDS};
  const bool prunes = test_below(rng, 2) == 0;
  size_t used = (size_t)sprintf(prune, "0");
  for (int k = 2; k <= o.order; k++) {
    o.prune[k] = o.prune[k - 1] + (prunes ? (int)test_below(rng, 3) % 2 : 0);
    used += (size_t)sprintf(prune + used, ",%d", o.prune[k]);
  }
  wf_lm_estimate_options_init(options);
  options->order = o.order;
  options->prune = prune;
  options->discount_fallback = "0.25,0.5,0.75";
  return o;
}

static wf_symbols *symbols_of(int num) {
  wf_error err = {0};
  wf_symbols *symbols;
  assert_ok(wf_symbols_create("vocabulary", &symbols, &err));
  for (int i = 0; i < num; i++) assert_ok(wf_symbols_add(symbols, text_words[i], -1, NULL, &err));
  return symbols;
}

/* Fills in the words that the model must know. */
static void choose_words(oracle *o, bool closed) {
  int one;
  for (int word = 0; word < o->num_words; word++) {
    one = word;
    if (closed || occurrences(o, &one, 1) > 0) o->vocabulary[o->size++] = word;
  }
  o->vocabulary[o->size++] = EOS;
  o->vocabulary[o->size++] = UNK;
}

static void check_seed(uint64_t seed) {
  test_rng rng = {seed};
  wf_error err = {0};
  char prune[64];
  const text t = random_text(&rng, 0, 2 + (int)test_below(&rng, MAX_TEXT_WORDS - 2));
  const char *path = write_text(&t);
  wf_lm_estimate_options options;
  oracle o = random_oracle(&rng, &t, &options, prune);
  wf_symbols *vocabulary = NULL;
  if (test_below(&rng, 3) == 0) {
    o.num_words = 1 + (int)test_below(&rng, MAX_TEXT_WORDS - 1);
    vocabulary = symbols_of(o.num_words);
  }
  choose_words(&o, vocabulary != NULL);
  wf_lm *lm;
  wf_lm_estimate_stats stats;
  wf_lm_estimate_stats_init(&stats);
  assert_ok(wf_lm_estimate(&path, 1, vocabulary, &options, &lm, &stats, NULL, &err));
  int num_kept[MAX_ORDER + 1] = {0};
  const int model_order = prepare(&o, &stats, num_kept);
  wf_lm_info info;
  wf_lm_info_init(&info);
  assert_ok(wf_lm_get_info(lm, &info, &err));
  assert_int_equal(info.order, model_order);
  for (int k = 1; k <= model_order; k++) assert_int_equal(info.num_ngrams[k], num_kept[k]);
  assert_int_equal(info.num_words, o.size - 2);
  check_history(&o, lm, (int[]){0}, 0);
  static grams all;
  for (int k = 1; k < o.order; k++) {
    find_grams(&o, k, &all);
    for (int i = 0; i < all.size; i++)
      if (all.words[i][k - 1] != EOS) check_history(&o, lm, all.words[i], k);
  }
  if (o.order > 1) check_history(&o, lm, (int[]){BOS}, 1);
  wf_lm_free(lm);
  wf_symbols_free(vocabulary);
}

static void test_formulas(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < test_seeds(120); seed++) {
    print_message("seed %llu\r", (unsigned long long)seed);
    check_seed(seed);
  }
}

static char *estimate_arpa(const char *const *paths, size_t num, int64_t memory, int32_t order,
                           const char *prune) {
  wf_error err = {0};
  wf_lm_estimate_options options;
  wf_lm_estimate_options_init(&options);
  options.memory = memory;
  options.order = order;
  options.prune = prune;
  const char *out = test_temp_path("estimated.arpa");
  assert_ok(wf_lm_estimate_arpa(paths, num, NULL, &options, out, NULL, NULL, &err));
  return test_read_file(out, NULL);
}

/* Writes a text of 60,000 words, with 4,000 different ones. */
static const char *large_text(test_rng *rng) {
  enum { WORDS = 60000 };
  char *bytes = malloc(WORDS * 8);
  size_t used = 0;
  uint32_t word = 0;
  assert_non_null(bytes);
  for (int i = 0; i < WORDS; i++) {
    word = test_below(rng, 2) == 0 ? word * 7 % 4001 : test_below(rng, 1 + test_below(rng, 4000));
    used += (size_t)sprintf(bytes + used, "w%u%c", word, test_below(rng, 9) == 0 ? '\n' : ' ');
  }
  const char *path = test_write_file("large", bytes, used);
  free(bytes);
  return path;
}

/* Sorting in files gives the same model, and so do the model in memory and a gzipped text. */
static void test_files(void **state) {
  (void)state;
  test_rng rng = {1};
  wf_error err = {0};
  const char *path = large_text(&rng), *zipped;
  char *want = estimate_arpa(&path, 1, (int64_t)1 << 30, 4, "0,0,1"),
       *got = estimate_arpa(&path, 1, 1048576, 4, "0,0,1");
  assert_string_equal(got, want);
  free(got);
  wf_lm *lm;
  wf_lm_estimate_options options;
  wf_lm_estimate_options_init(&options);
  options.order = 4;
  options.prune = "0,0,1";
  test_shell("gzip -k %s", path);
  char name[4200];
  snprintf(name, sizeof name, "%s.gz", path);
  zipped = name;
  assert_ok(wf_lm_estimate(&zipped, 1, NULL, &options, &lm, NULL, NULL, &err));
  const char *out = test_temp_path("written.arpa");
  assert_ok(wf_lm_write_arpa(lm, out, &err));
  got = test_read_file(out, NULL);
  assert_string_equal(got, want);
  wf_lm_free(lm);
  free(got);
  free(want);
}

/* Runs an estimation that must fail and returns its message. */
static const char *failure(const void *bytes, size_t size, const wf_lm_estimate_options *options,
                           wf_status want) {
  static wf_error err;
  wf_lm *lm;
  const char *path = test_write_file("bad", bytes, size);
  const wf_status status = wf_lm_estimate(&path, 1, NULL, options, &lm, NULL, NULL, &err);
  assert_null(lm);
  assert_int_equal(status, want);
  return err.message;
}

static void assert_says(const char *message, const char *part) {
  if (strstr(message, part) == NULL) fail_msg("'%s' does not say '%s'", message, part);
}

static void test_bad_texts(void **state) {
  (void)state;
  wf_lm_estimate_options options;
  wf_lm_estimate_options_init(&options);
  assert_says(failure("", 0, NULL, WF_ERR_FORMAT), "no line");
  assert_says(failure("a\nb <s>\n", 8, NULL, WF_ERR_FORMAT), ":2: '<s>'");
  assert_says(failure("a </s>\n", 7, NULL, WF_ERR_FORMAT), ":1: '</s>'");
  assert_says(failure("a\n\n<unk>", 8, NULL, WF_ERR_FORMAT), ":3: '<unk>'");
  assert_says(failure("<eps>", 5, NULL, WF_ERR_FORMAT), ":1: '<eps>'");
  assert_says(failure("a\nb\0c\n", 6, NULL, WF_ERR_FORMAT), ":2: a word holds a NUL byte");
  assert_says(failure("a \xff", 3, NULL, WF_ERR_FORMAT), ":1: a word is not UTF-8");
  char *word = malloc(70000);
  memset(word, 'x', 70000);
  assert_says(failure(word, 70000, NULL, WF_ERR_LIMIT), ":1: a word is longer than 65536 bytes");
  free(word);
  static const char *const wrong[] = {"1", "0,2,1", "0,x", "0,", "0,0,0,0", "-1"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    options.prune = wrong[i];
    assert_says(failure("a", 1, &options, WF_ERR_ARGUMENT), "prune");
  }
  options.prune = NULL;
  static const char *const discounts[] = {"0,1,1", "0.5,1", "0.5,1,4", "0.5,1,1,1", "x", "1,1,nan"};
  for (size_t i = 0; i < sizeof discounts / sizeof *discounts; i++) {
    options.discount_fallback = discounts[i];
    assert_says(failure("a", 1, &options, WF_ERR_ARGUMENT), "discount_fallback");
  }
  options.discount_fallback = NULL;
  options.order = 17;
  assert_says(failure("a", 1, &options, WF_ERR_ARGUMENT), "order");
}

/* Counts of a text with all that texts may have: a byte order mark, ids, blanks of all kinds, lines
 * without words, symbols to skip, no line feed at the end. */
static void test_counts(void **state) {
  (void)state;
  static const char bytes[] = "\xEF\xBB\xBFu1 a  b\r\nu2\n\nu3\t<s> a \xC3\xA4 </s> \nu4 a";
  wf_error err = {0};
  wf_lm *lm;
  wf_lm_estimate_options options;
  wf_lm_estimate_stats stats;
  wf_lm_estimate_options_init(&options);
  wf_lm_estimate_stats_init(&stats);
  options.ids = options.skip_symbols = true;
  options.order = 16;
  const char *path = test_write_file("text", bytes, sizeof bytes - 1);
  assert_ok(wf_lm_estimate(&path, 1, NULL, &options, &lm, &stats, NULL, &err));
  assert_int_equal(stats.num_sentences, 5);
  assert_int_equal(stats.num_empty, 2);
  assert_int_equal(stats.num_words, 5);
  assert_int_equal(stats.num_found[1], 6); /* <s>, </s>, <unk>, a, b, ä */
  assert_int_equal(wf_symbols_find(wf_lm_words(lm), "\xC3\xA4"), 6);
  wf_lm_info info;
  wf_lm_info_init(&info);
  assert_ok(wf_lm_get_info(lm, &info, &err));
  assert_int_equal(info.order, 4); /* <s> a b </s> */
  wf_lm_free(lm);
}

/* A line that is larger than any buffer, and several texts. */
static void test_long_line(void **state) {
  (void)state;
  enum { BYTES = 20 << 20 };
  char *bytes = malloc(BYTES);
  assert_non_null(bytes);
  for (int i = 0; i < BYTES; i++) bytes[i] = i % 2 == 0 ? (char)('a' + i / 2 % 23) : ' ';
  const char *one = test_write_file("one", bytes, BYTES);
  const char *const paths[] = {one, test_write_file("two", "a b\n", 4)};
  free(bytes);
  char *arpa = estimate_arpa(paths, 2, 1048576, 2, NULL);
  assert_non_null(strstr(arpa, "ngram 1=26\n")); /* with <s>, </s>, <unk> */
  assert_non_null(strstr(arpa, "\tb </s>"));
  free(arpa);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_formulas), cmocka_unit_test(test_files),
                                     cmocka_unit_test(test_bad_texts),
                                     cmocka_unit_test(test_counts),
                                     cmocka_unit_test(test_long_line)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
