/* test_wlm.c - large language models. Models built from random ARPA files are compared with the
 * definition of back-off. Also differences of two models, packing, sorting beyond memory, and
 * damaged files. */
#include "base/external_sort.h"
#include "lm/lm.h"
#include "lm_model.h"

static wf_lm *build_wlm(const char *large, const char *small, wf_lm_convert_options *options,
                        wf_lm_convert_stats *stats) {
  wf_error err = {0};
  wf_lm *lm;
  char arpa[512], subtract[512], out[512];
  snprintf(arpa, sizeof arpa, "%s", test_write_file("large.arpa", large, strlen(large)));
  if (small != NULL)
    snprintf(subtract, sizeof subtract, "%s", test_write_file("small.arpa", small, strlen(small)));
  snprintf(out, sizeof out, "%s", test_temp_path("model.wlm"));
  options->subtract = small != NULL ? subtract : NULL;
  wf_lm_convert_stats_init(stats);
  assert_ok(wf_lm_convert(arpa, out, NULL, options, stats, NULL, NULL, &err));
  assert_ok(wf_lm_open_mapped(out, &lm, &err));
  remove(out); /* the file stays mapped */
  remove(arpa);
  if (small != NULL) remove(subtract);
  assert_ok(wf_lm_verify(lm, NULL, &err));
  return lm;
}

static int32_t wlm_label(const wf_lm *lm, int word) {
  return word == UNK ? -1 : (int32_t)wf_symbols_find(wf_lm_words(lm), names[word]);
}

/* log10 probability by the definition; -INFINITY for probability 0. */
static double defined(const model *m, const int *history, int size, int word) {
  int order;
  return score(m, history, size, word, &order);
}

static bool model_has(const model *m, int word) {
  return word < m->num_words && (word != UNK || m->has_unk);
}

/* Walks random sentences and checks that every cost is scale * large - small. */
static void check_costs(const model *large, const model *small, double scale, const wf_lm *lm,
                        test_rng *rng, double delta, uint64_t *finite, uint64_t *negative) {
  for (int sentence = 0; sentence < 30; sentence++) {
    int words[16] = {BOS}, size = 1;
    uint32_t state = wf_lm_start(lm);
    for (int draws = 0; draws < 20; draws++) {
      bool end = size == 11 || test_below(rng, 6) == 0;
      int word = end ? EOS : UNK + (int)test_below(rng, (uint32_t)(large->num_words - UNK));
      if (!end && (!model_has(large, word) || (small != NULL && !model_has(small, word))))
        continue; /* no graph contains such words */
      double of_large = -M_LN10 * defined(large, words, size, word),
             of_small = small != NULL ? -M_LN10 * defined(small, words, size, word) : 0;
      double expected =
          of_large == INFINITY || of_small == INFINITY ? INFINITY : scale * of_large - of_small;
      float cost = end ? wf_lm_final(lm, state, NULL)
                       : wf_lm_step(lm, state, wlm_label(lm, word), &state, NULL);
      if (!(cost == INFINITY && expected == INFINITY) && !(fabs((double)cost - expected) <= delta))
        fail_msg("after %d words, word %d: cost %.9g, expected %.9g (%.9g, %.9g)", size - 1, word,
                 (double)cost, expected, of_large, of_small);
      *finite += expected != INFINITY;
      *negative += expected < 0;
      if (end || cost == INFINITY) break;
      words[size++] = word;
    }
  }
}

/* Every word after every state, and the sentence end: the table gives the same bits as the file.
 * From here on the model uses the table. */
static void check_table(wf_lm *lm) {
  uint32_t num_states = (uint32_t)lm->mapped->view.num_states,
           num_words = lm->mapped->view.num_words + 2;
  size_t count = (size_t)num_states * num_words;
  uint32_t *next = malloc(count * sizeof *next), to;
  float *costs = malloc(count * sizeof *costs), *finals = malloc(num_states * sizeof *finals);
  int32_t *orders = malloc(count * sizeof *orders), order;
  wf_error err = {0};
  for (size_t i = 0; i < count; i++)
    costs[i] = wf_lm_step(lm, (uint32_t)(i / num_words), (int32_t)(i % num_words) - 1, &next[i],
                          &orders[i]);
  for (uint32_t s = 0; s < num_states; s++) finals[s] = wf_lm_final(lm, s, NULL);
  assert_null(lm->mapped->table);
  assert_ok(wf_lm_make_table(lm, NULL, &err));
  assert_non_null(lm->mapped->table);
  assert_int_equal((uintptr_t)lm->mapped->table->slots % 64, 0);
  for (size_t i = 0; i < count; i++) {
    float cost =
        wf_lm_step(lm, (uint32_t)(i / num_words), (int32_t)(i % num_words) - 1, &to, &order);
    assert_memory_equal(&cost, &costs[i], sizeof cost);
    assert_true(to == next[i] && order == orders[i]);
  }
  for (uint32_t s = 0; s < num_states; s++) {
    float cost = wf_lm_final(lm, s, NULL);
    assert_memory_equal(&cost, &finals[s], sizeof cost);
  }
  assert_ok(wf_lm_make_table(lm, NULL, &err)); /* the table exists already */
  free(next);
  free(costs);
  free(finals);
  free(orders);
}

static void test_random_models(void **unused) {
  (void)unused;
  uint64_t finite = 0, negative = 0, created = 0;
  for (uint64_t seed = 1; seed <= test_seeds(800); seed++) {
    test_rng rng = {seed};
    static model m;
    make_model(&m, &rng, seed % 2 == 0);
    const char *text = model_text(&m, &rng);
    wf_lm_convert_options options;
    wf_lm_convert_options_init(&options);
    options.pack = seed % 3 == 0;
    options.memory = 1 << 20;
    wf_lm_convert_stats stats;
    wf_lm *lm = build_wlm(text, NULL, &options, &stats);
    created += stats.num_created;
    check_costs(&m, NULL, 1, lm, &rng, 1e-5, &finite, &negative);
    /* The same states, arcs and costs as the in-memory model. */
    wf_lm *reference = lm_of(text);
    wf_lm_info info;
    wf_lm_info own;
    wf_error err = {0};
    wf_lm_info_init(&info);
    wf_lm_info_init(&own);
    assert_ok(wf_lm_get_info(reference, &info, &err));
    assert_ok(wf_lm_get_info(lm, &own, &err));
    assert_int_equal(own.num_states, info.num_states);
    assert_int_equal(own.order, info.order);
    assert_int_equal(own.num_words, info.num_words);
    for (int k = 1; k <= info.order; k++) assert_int_equal(own.num_ngrams[k], info.num_ngrams[k]);
    uint32_t a = wf_lm_start(reference), b = wf_lm_start(lm);
    for (int i = 0; i < 200; i++) {
      int word = UNK + (int)test_below(&rng, (uint32_t)(m.num_words - UNK)), order = 0, same = 0;
      float x = wf_lm_step(reference, a, label_of(reference, word), &a, &order),
            y = wf_lm_step(lm, b, wlm_label(lm, word), &b, &same);
      assert_int_equal(order, same);
      if (x != y && !(fabsf(x - y) < 1e-5f))
        fail_msg("seed %llu: %.9g, %.9g", (unsigned long long)seed, (double)x, (double)y);
      x = wf_lm_final(reference, a, &order), y = wf_lm_final(lm, b, &same);
      assert_true(order == same && (x == y || fabsf(x - y) < 1e-5f));
    }
    check_table(lm);
    wf_lm_free(reference);
    wf_lm_free(lm);
  }
  assert_true(test_many(finite, 20000, 800) && test_many(negative, 0, 800) &&
              test_many(created, 300, 800));
}

static void test_random_differences(void **unused) {
  (void)unused;
  uint64_t finite = 0, negative = 0, added = 0, words_added = 0, outside = 0;
  for (uint64_t seed = 1; seed <= test_seeds(800); seed++) {
    test_rng rng = {seed};
    static model large, small;
    static char text[1 << 16];
    make_model(&large, &rng, seed % 4 == 0);
    do make_model(&small, &rng, seed % 5 == 0);
    while (small.order > large.order);
    snprintf(text, sizeof text, "%s", model_text(&large, &rng));
    wf_lm_convert_options options;
    wf_lm_convert_options_init(&options);
    options.lm_scale = seed % 2 == 0 ? 1 : 0.7f;
    wf_lm_convert_stats stats;
    wf_lm *lm = build_wlm(text, model_text(&small, &rng), &options, &stats);
    added += stats.num_added;
    words_added += stats.num_words_added;
    outside += stats.num_outside;
    check_costs(&large, &small, (double)options.lm_scale, lm, &rng, 2e-5, &finite, &negative);
    wf_lm_free(lm);
  }
  assert_true(test_many(finite, 10000, 800) && test_many(negative, 2000, 800) &&
              test_many(added, 1000, 800) && test_many(words_added, 100, 800) &&
              test_many(outside, 500, 800));
}

/* The difference of a model and itself is zero. */
static void test_difference_with_itself(void **unused) {
  (void)unused;
  wf_lm_convert_options options;
  wf_lm_convert_options_init(&options);
  wf_lm_convert_stats stats;
  wf_lm *lm = build_wlm(trigram, trigram, &options, &stats);
  assert_int_equal(stats.num_added + stats.num_outside + stats.num_words_added, 0);
  static const int words[] = {FIRST, FIRST + 1, FIRST + 2, FIRST, FIRST};
  uint32_t state = wf_lm_start(lm);
  for (int i = 0; i < 5; i++) {
    assert_true(wf_lm_step(lm, state, wlm_label(lm, words[i]), &state, NULL) == 0);
    assert_true(wf_lm_final(lm, state, NULL) == 0);
  }
  assert_true(wf_lm_step(lm, state, 12345, &state, NULL) == 0); /* both models have <unk> */
  wf_lm_free(lm);
}

/* --- states with many arcs --------------------------------------------------------------- */

/* Bigram states with every number of arcs, so that every number of buckets occurs, at different
 * fill levels. */
static char *many_arcs_text(int num_words, int *num_bigrams) {
  char *text = malloc(4000000), *at = text;
  *num_bigrams = 0;
  for (int w = 0; w < num_words; w++) *num_bigrams += w;
  at += sprintf(at, "\\data\\\nngram 1=%d\nngram 2=%d\n\\1-grams:\n-99 <s>\n-1 </s>\n",
                num_words + 2, *num_bigrams);
  for (int w = 0; w < num_words; w++) at += sprintf(at, "-%d.5 w%d -0.25\n", 1 + w % 3, w);
  at += sprintf(at, "\\2-grams:\n");
  for (int w = 0; w < num_words; w++)
    for (int i = 0; i < w; i++)
      at +=
          sprintf(at, "-0.%03d w%d w%d\n", 1 + (w * 31 + i * 7) % 999, w, (i * 3 + w) % num_words);
  sprintf(at, "\\end\\\n");
  return text;
}

static void test_states_with_many_arcs(void **unused) {
  (void)unused;
  enum { WORDS = 401 }; /* coprime to 3, so that i * 3 + w reaches all words */
  int num_bigrams;
  char *text = many_arcs_text(WORDS, &num_bigrams);
  for (int pack = 0; pack <= 2; pack++) {
    wf_lm_convert_options options;
    wf_lm_convert_options_init(&options);
    options.pack = pack;
    options.cost_bits = 10;
    options.memory = 1 << 20;
    wf_lm_convert_stats stats;
    wf_lm *lm = build_wlm(text, NULL, &options, &stats);
    double worst = 0, sum = 0;
    if (pack > 0) check_table(lm);
    for (int w = 0; w < WORDS; w++) {
      uint32_t state, next;
      int32_t order;
      char name[16];
      snprintf(name, sizeof name, "w%d", w);
      wf_lm_step(lm, 0, (int32_t)wf_symbols_find(wf_lm_words(lm), name), &state, NULL);
      bool seen[WORDS] = {false};
      for (int i = 0; i < WORDS; i++) {
        int word = (i * 3 + w) % WORDS;
        snprintf(name, sizeof name, "w%d", word);
        double expected = i < w ? M_LN10 * ((1 + (w * 31 + i * 7) % 999) / 1000.0)
                                : M_LN10 * (0.25 + 1.5 + word % 3);
        float cost =
            wf_lm_step(lm, state, (int32_t)wf_symbols_find(wf_lm_words(lm), name), &next, &order);
        assert_int_equal(order, i < w ? 2 : 1);
        double loss = fabs((double)cost - expected);
        if (pack < 2) assert_true(loss < 1e-5);
        if (i < w) sum += loss;
        if (i < w && loss > worst) worst = loss;
        seen[word] = true;
      }
      for (int i = 0; i < WORDS; i++) assert_true(seen[i]);
    }
    if (pack == 2) {
      assert_true(fabs(worst - stats.loss_worst) < 1e-4 &&
                  fabs(sum / num_bigrams - stats.loss_mean) < 1e-4);
      assert_true(stats.loss_worst < 0.02 && stats.loss_mean < 0.002 && stats.loss_mean > 0);
    }
    wf_lm_free(lm);
  }
  free(text);
}

/* --- sorting ----------------------------------------------------------------------------- */

static int compare_records(const void *a, const void *b) {
  const uint32_t *x = a, *y = b;
  for (int i = 0; i < 3; i++)
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  return 0;
}

/* The key is two words. The third word is the order of insertion, which equal keys must keep. */
static void test_external_sort(void **unused) {
  (void)unused;
  wf_error err = {0};
  for (uint64_t seed = 1; seed <= 40; seed++) {
    test_rng rng = {seed};
    uint32_t count = test_below(&rng, 60000), most = seed % 3 == 0 ? 50 : UINT32_MAX,
             (*all)[3] = malloc((count + 1) * sizeof *all);
    wf__sort *sort;
    assert_ok(wf__sort_create(3, 2, seed % 2 == 0 ? 1 << 15 : 1 << 22, "/tmp", &sort, &err));
    uint32_t added = 0;
    for (int part = 0; part < 3; part++) { /* records are added after reading */
      uint32_t end = part < 2 ? added + test_below(&rng, count - added + 1) : count;
      for (; added < end; added++) {
        all[added][0] = test_below(&rng, most);
        all[added][1] = test_below(&rng, most);
        all[added][2] = added;
        assert_ok(wf__sort_add(sort, all[added], &err));
      }
      assert_ok(wf__sort_finish(sort, &err));
      assert_int_equal(wf__sort_count(sort), added);
      uint32_t(*sorted)[3] = malloc((added + 1) * sizeof *sorted);
      memcpy(sorted, all, added * sizeof *sorted);
      qsort(sorted, added, sizeof *sorted, compare_records);
      for (int round = 0; round < 2; round++) {
        const uint32_t *record;
        assert_ok(wf__sort_rewind(sort, &err));
        for (uint32_t i = 0; i < added; i++) {
          assert_ok(wf__sort_next(sort, &record, &err));
          assert_memory_equal(record, sorted[i], sizeof *sorted);
        }
        assert_ok(wf__sort_next(sort, &record, &err));
        assert_null(record);
      }
      free(sorted);
    }
    wf__sort_free(sort);
    free(all);
  }
}

/* Counts of equal keys are added up, above 2^32 - 1 in several records. Without a key the records
 * keep their order. */
static void test_external_sort_sums(void **unused) {
  (void)unused;
  wf_error err = {0};
  enum { MOST = 500 };
  for (uint64_t seed = 1; seed <= 20; seed++) {
    test_rng rng = {seed};
    uint64_t want[MOST] = {0}, got[MOST] = {0}, records = 0;
    wf__sort *sort, *queue;
    const uint32_t *record, count = test_below(&rng, 60000);
    assert_ok(wf__sort_create(2, 1, 1 << 15, "/tmp", &sort, &err));
    assert_ok(wf__sort_create(1, 0, 1 << 15, "/tmp", &queue, &err));
    wf__sort_add_up(sort);
    for (uint32_t i = 0; i < count; i++) {
      const uint32_t add[2] = {test_below(&rng, test_below(&rng, 4) == 0 ? MOST : 3),
                               seed % 2 == 0 ? 1 : 1 + test_below(&rng, 1000000)};
      want[add[0]] += add[1];
      assert_ok(wf__sort_add(sort, add, &err));
      assert_ok(wf__sort_add(queue, &i, &err));
    }
    assert_ok(wf__sort_finish(sort, &err));
    assert_ok(wf__sort_finish(queue, &err));
    assert_true(wf__sort_count(sort) <= count / 4 + MOST);
    for (uint32_t last = 0;; last = record[0], records++) {
      assert_ok(wf__sort_next(sort, &record, &err));
      if (record == NULL) break;
      assert_true(record[0] >= last);
      got[record[0]] += record[1];
    }
    assert_memory_equal(got, want, sizeof want);
    assert_int_equal(records, wf__sort_count(sort));
    for (uint32_t i = 0; i < count; i++) {
      assert_ok(wf__sort_next(queue, &record, &err));
      assert_int_equal(record[0], i);
    }
    wf__sort_free(sort);
    wf__sort_free(queue);
  }
}

/* --- damaged files and bad input --------------------------------------------------------- */

/* Runs every kind of query on a model that may be damaged. Nothing may crash or loop forever. */
static void query_all(const wf_lm *lm) {
  for (uint32_t s = 0; s < lm->mapped->view.num_states && s < 50; s++)
    for (int32_t w = -1; w < 12; w++) {
      uint32_t next;
      wf_lm_step(lm, s, w, &next, NULL);
      assert_true(next < lm->mapped->view.num_states);
      wf_lm_final(lm, s, NULL);
    }
  const wf__automaton *automaton;
  wf_error err = {0};
  if (wf__lm_signed_automaton(lm, &automaton, &err) != WF_OK) return;
  for (uint32_t s = 0, next; s < automaton->num_states && s < 50; s++) {
    wf__automaton_step(automaton, s, 2, &next, NULL);
    assert_true(next < automaton->num_states);
  }
}

static void test_damaged_files(void **unused) {
  (void)unused;
  wf_error err = {0};
  wf_lm_convert_options options;
  wf_lm_convert_options_init(&options);
  char arpa[512], out[512];
  snprintf(arpa, sizeof arpa, "%s", test_write_file("large.arpa", trigram, strlen(trigram)));
  snprintf(out, sizeof out, "%s", test_temp_path("model.wlm"));
  test_rng rng = {3};
  uint64_t refused = 0;
  for (options.pack = 0; options.pack <= 2; options.pack++) {
    assert_ok(wf_lm_convert(arpa, out, NULL, &options, NULL, NULL, NULL, &err));
    size_t size;
    char *file = test_read_file(out, &size);
    wf_lm *lm;
    for (int i = 0; i < 300; i++) { /* truncated, or one byte changed */
      char *bad = malloc(size);
      memcpy(bad, file, size);
      size_t keep = i % 2 == 0 ? test_below(&rng, (uint32_t)size) : size,
             at = test_below(&rng, (uint32_t)size);
      if (i % 2 == 1) bad[at] = (char)(bad[at] ^ (1 << test_below(&rng, 8)));
      const char *path = test_write_file("bad.wlm", bad, keep);
      wf_status status = wf_lm_open_mapped(path, &lm, &err);
      if (keep < size) assert_int_equal(status, WF_ERR_FORMAT);
      if (status == WF_OK) { /* the changed byte was padding */
        query_all(lm);
        assert_memory_equal(lm->mapped->header, file, sizeof *lm->mapped->header);
        wf_lm_free(lm);
      }
      remove(path);
      free(bad);
    }
    /* The checksums are valid but the contents are not, as in a large file, whose checksums are not
     * verified. */
    for (int i = 0; i < 1000; i++) {
      char *bad = malloc(size);
      memcpy(bad, file, size);
      wf__wlm_header *h = (wf__wlm_header *)(void *)bad;
      for (int k = 0; k < 1 + i % 5; k++) {
        const wf__wlm_section *s = &h->sections[1 + test_below(&rng, WF__WLM_SECTIONS - 1)];
        if (s->size > 0)
          bad[s->offset + test_below(&rng, (uint32_t)s->size)] = (char)test_below(&rng, 256);
      }
      for (int k = 0; k < WF__WLM_SECTIONS; k++)
        h->sections[k].crc = wf__wlm_crc(0, bad + h->sections[k].offset, h->sections[k].size);
      h->crc = wf__wlm_crc(0, h, offsetof(wf__wlm_header, crc));
      const char *path = test_write_file("bad.wlm", bad, size);
      if (wf_lm_open_mapped(path, &lm, &err) == WF_OK) {
        bool sound = wf_lm_verify(lm, NULL, &err) == WF_OK;
        query_all(lm);
        if (sound)
          check_table(lm);
        else
          refused += wf_lm_make_table(lm, NULL, &err) != WF_OK;
        query_all(lm);
        wf_lm_free(lm);
      }
      remove(path);
      free(bad);
    }
    free(file);
  }
  assert_true(refused > 10);
}

static void test_bad_input(void **unused) {
  (void)unused;
  wf_error err = {0};
  const struct {
    const char *text, *expected;
  } bad[] = {{"\\data\\\nngram 1=3\nngram 2=2\n\\1-grams:\n-1 <s>\n-1 </s>\n-1 a\n\\2-grams:\n-1 a "
              "a\n-1 a a\n\\end\\\n",
              "'a a' twice"},
             {"\\data\\\nngram 1=2\n\\1-grams:\n-1 <s>\n-1 a\n", "without \\end\\"},
             {"\\data\\\nngram 1=1\n\\1-grams:\n-1 a\n\\end\\\n", "no '<s>'"},
             {"hello\n", "not an ARPA file"},
             {"\\data\\\nngram 1=2\n\\1-grams:\n-1 <s>\n-1 a x y\n\\end\\\n", ":5:"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char arpa[512];
    snprintf(arpa, sizeof arpa, "%s",
             test_write_file("bad.arpa", bad[i].text, strlen(bad[i].text)));
    const char *out = test_temp_path("never.wlm");
    assert_int_equal(wf_lm_convert(arpa, out, NULL, NULL, NULL, NULL, NULL, &err), WF_ERR_FORMAT);
    if (strstr(err.message, bad[i].expected) == NULL)
      fail_msg("'%s' lacks '%s'", err.message, bad[i].expected);
    FILE *file = fopen(out, "rb");
    assert_null(file); /* no partial file is left */
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_models),          cmocka_unit_test(test_random_differences),
      cmocka_unit_test(test_difference_with_itself), cmocka_unit_test(test_states_with_many_arcs),
      cmocka_unit_test(test_external_sort),          cmocka_unit_test(test_external_sort_sums),
      cmocka_unit_test(test_damaged_files),          cmocka_unit_test(test_bad_input)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
