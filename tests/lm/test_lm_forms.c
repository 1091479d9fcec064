/* test_lm_forms.c - one n-gram model in every format, for every use in the library: the results are
 * those of the ARPA file. Both forms of random models have the same n-grams. Threads that need the
 * other form at once get one. */
#include <pthread.h>
#include <zlib.h>

#include "lm/lm.h"
#include "lm_model.h"
#include "scorer/scorer.h"

#define DATA TEST_DATA_DIR "/lm/"
enum { WORDS = 7, FRAMES = 5, MOST = 4096 };
static const char *const texts[WORDS] = {"a", "b", "c", "d", "e", "f", "g"};

/* --- formats ----------------------------------------------------------------------------- */

static const char *gzipped(const char *path) {
  static char out[512], bytes[1 << 16];
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  snprintf(out, sizeof out, "%s", test_temp_path("model.arpa.gz"));
  gzFile packed = gzopen(out, "wb");
  assert_int_equal(gzwrite(packed, bytes, (unsigned)size), (int)size);
  assert_int_equal(gzclose(packed), Z_OK);
  return out;
}

static const char *converted(const char *path, int pack) {
  static char out[512];
  wf_error err = {0};
  wf_lm_convert_options options;
  wf_lm_convert_options_init(&options);
  options.pack = pack;
  snprintf(out, sizeof out, "%s", test_temp_path("model.wlm"));
  assert_ok(wf_lm_convert(path, out, NULL, &options, NULL, NULL, NULL, &err));
  return out;
}

enum format {
  ARPA,
  ARPA_GZ,
  KENLM,
  KENLM_PACKED,
  SPHINX,
  WLM,
  WLM_PACKED,
  WLM_GZ,
  CONVERTED,
  FORMATS
};
static const char *const format_names[FORMATS] = {"ARPA",
                                                  "gzipped ARPA",
                                                  "KenLM trie",
                                                  "KenLM trie, quantised and compressed",
                                                  "Sphinx",
                                                  ".wlm",
                                                  "packed .wlm",
                                                  "gzipped .wlm",
                                                  "ARPA, opened mapped"};

/* The same model of order 3 in each format, with the labels of `words` where the format allows. */
static wf_lm *open_format(enum format format, const wf_symbols *words) {
  static const char arpa[] = DATA "sphinx3.arpa";
  wf_error err = {0};
  wf_lm *lm;
  const char *path = format == ARPA_GZ        ? gzipped(arpa)
                     : format == KENLM        ? DATA "kenlm3.trie.bin"
                     : format == KENLM_PACKED ? DATA "kenlm3.qa.bin"
                     : format == SPHINX       ? DATA "sphinx3.lm.bin.gz"
                     : format == WLM          ? converted(arpa, 0)
                     : format == WLM_PACKED   ? converted(arpa, 1)
                     : format == WLM_GZ       ? gzipped(converted(arpa, 0))
                                              : arpa;
  if (format == CONVERTED)
    assert_ok(wf_lm_open_mapped(path, &lm, &err));
  else
    assert_ok(wf_lm_open(path, words, NULL, &lm, NULL, NULL, &err));
  return lm;
}

/* --- uses -------------------------------------------------------------------------------- */

/* What a use gives, as numbers. */
typedef struct outcome {
  double value[MOST];
  size_t size;
} outcome;

static void put(outcome *out, double value) {
  assert_true(out->size < MOST);
  out->value[out->size++] = value;
}

static void put_sentences(outcome *out, const wf_lm *lm) {
  test_rng rng = {11};
  for (int i = 0; i < 200; i++) {
    uint32_t state = i % 5 == 0 ? 0 : wf_lm_start(lm);
    int32_t order;
    for (uint32_t size = test_below(&rng, 7); size > 0; size--) {
      put(out,
          (double)wf_lm_step(lm, state, label(lm, texts[test_below(&rng, WORDS)]), &state, &order));
      put(out, order);
    }
    put(out, (double)wf_lm_final(lm, state, &order));
    put(out, order);
  }
}

static void query(const wf_lm *lm, outcome *out) { put_sentences(out, lm); }

static void put_fst(outcome *out, const wf_fst *fst) {
  const wf_fst_view v = wf_fst_get_view(fst);
  put(out, (double)v.num_states);
  put(out, (double)v.num_arcs);
  double sum = 0;
  for (uint64_t a = 0; a < v.num_arcs; a++) sum += (double)v.arcs[a].weight;
  put(out, sum);
}

static void acceptors(const wf_lm *lm, outcome *out) {
  for (int backoff = 0; backoff < 2; backoff++) {
    wf_error err = {0};
    wf_fst *fst;
    wf_lm_fst_options options;
    wf_lm_fst_options_init(&options);
    options.backoff = backoff;
    options.backoff_label = 1000;
    options.drop_unk = true; /* KenLM adds one of probability 0 */
    assert_ok(wf_lm_to_fst(lm, &options, &fst, &err));
    put_fst(out, fst);
    wf_fst_free(fst);
  }
}

static void graph(const wf_lm *lm, outcome *out) {
  static const char token_text[] = "<blk> 0\na 1\nb 2\nc 3\nd 4\ne 5\nf 6\ng 7\n",
                    lexicon_text[] = "a a\nb b\nc c\nd d\ne e\nf f\ng g\n";
  wf_error err = {0};
  wf_symbols *tokens;
  wf_lexicon *lexicon;
  wf_lexicon_options lexicon_options;
  wf_graph_inputs parts;
  wf_graph_result result = {0};
  wf_lexicon_options_init(&lexicon_options);
  wf_graph_inputs_init(&parts);
  assert_ok(wf_symbols_read(test_write_file("tokens.txt", token_text, sizeof token_text - 1),
                            &tokens, &err));
  assert_ok(wf_lexicon_read(test_write_file("lexicon.txt", lexicon_text, sizeof lexicon_text - 1),
                            tokens, &lexicon_options, &lexicon, &err));
  parts.lexicon = lexicon;
  parts.lm = lm;
  assert_ok(wf_graph_build(&parts, NULL, &result, &err));
  put_fst(out, result.graph);
  wf_graph_result_clear(&result);
  wf_lexicon_free(lexicon);
  wf_symbols_free(tokens);
}

static void put_made(outcome *out, wf_lm *made) {
  wf_error err = {0};
  wf_lm_info info;
  wf_lm_info_init(&info);
  assert_ok(wf_lm_get_info(made, &info, &err));
  assert_false(info.mapped);
  for (int k = 2; k <= info.order; k++) put(out, (double)info.num_ngrams[k]);
  put_sentences(out, made);
  wf_lm_free(made);
}

static void pruning(const wf_lm *lm, outcome *out) {
  wf_error err = {0};
  wf_lm *small;
  wf_lm_prune_options options;
  wf_lm_prune_options_init(&options);
  options.max_ngrams = "40,60";
  assert_ok(wf_lm_prune(lm, NULL, &options, &small, NULL, NULL, &err));
  put_made(out, small);
}

static void mixing(const wf_lm *lm, outcome *out) {
  wf_error err = {0};
  wf_lm *other = read_lm(DATA "sphinx2.arpa", NULL), *mixture;
  const wf_lm *both[] = {lm, other};
  double weights[2], perplexity;
  const char *text = test_write_file("text.txt", "a b c\nd e\na a g\n", 16);
  assert_ok(wf_lm_mix_weights(both, 2, text, NULL, weights, &perplexity, NULL, &err));
  put(out, weights[0]);
  put(out, perplexity);
  assert_ok(wf_lm_mix(both, 2, weights, NULL, &mixture, NULL, NULL, &err));
  put_made(out, mixture);
  wf_lm_free(other);
}

static void arpa_file(const wf_lm *lm, outcome *out) {
  wf_error err = {0};
  const char *path = test_temp_path("written.arpa");
  assert_ok(wf_lm_write_arpa(lm, path, &err));
  put_made(out, read_lm(path, NULL));
}

static void scorer(const wf_lm *lm, outcome *out) {
  wf_error err = {0};
  wf_scorer *s;
  wf_symbols *words; /* of a graph */
  assert_ok(wf_symbols_create("words", &words, &err));
  assert_ok(wf_symbols_add(words, "<eps>", 0, NULL, &err));
  for (int i = WORDS; i-- > 0;) assert_ok(wf_symbols_add(words, texts[i], -1, NULL, &err));
  for (int own = 0; own < 2; own++) { /* the labels are those of a graph, or the model's */
    assert_ok(wf_scorer_from_lm(lm, own ? NULL : words, NULL, &s, &err));
    const wf_symbols *table = own ? wf_lm_words(lm) : words;
    test_rng rng = {3};
    for (int i = 0; i < 100; i++) {
      uint64_t context;
      float cost;
      assert_ok(s->ops->begin(s, NULL, &context, &err));
      for (uint32_t size = test_below(&rng, 6); size > 0; size--) {
        const int32_t word = (int32_t)wf_symbols_find(table, texts[test_below(&rng, WORDS)]);
        assert_ok(s->ops->step(s, NULL, context, word, &cost, &context, &err));
        put(out, (double)cost);
      }
      assert_ok(s->ops->final(s, NULL, context, &cost, &err));
      put(out, (double)cost);
    }
    wf_scorer_free(s);
  }
  wf_symbols_free(words);
}

static wf_scores random_scores(int tokens) {
  static float scores[FRAMES * (WORDS + 1)];
  test_rng rng = {8};
  for (int i = 0; i < FRAMES * tokens; i++) scores[i] = -4 * test_unit(&rng);
  return (wf_scores){.data = scores,
                     .num_frames = FRAMES,
                     .num_columns = tokens,
                     .stride = tokens,
                     .dtype = WF_FLOAT32};
}

/* The best paths of a search without a graph, over words that tokens spell, or that are tokens. */
static void search(const wf_beam_parts *parts, bool sum_alignments, outcome *out) {
  wf_error err = {0};
  wf_beam_input input = {.scores = random_scores(WORDS + 1), .lm_state = -1};
  wf_beam_searcher *searcher;
  wf_beam_result *result;
  wf_beam_options options;
  wf_beam_options_init(&options);
  options.num_threads = 1;
  options.nbest = 20;
  options.lm_weight = 0.7f;
  options.sum_alignments = sum_alignments;
  assert_ok(wf_beam_searcher_create(parts, &searcher, &err));
  assert_ok(wf_beam_decode(searcher, &input, 1, &options, &result, &err));
  assert_int_equal(result->status, WF_OK);
  assert_int_equal(result->num_paths, 20);
  for (size_t i = 0; i < result->num_paths; i++) {
    put(out, result->paths[i].score);
    put(out, result->paths[i].lm_score);
  }
  assert_true(result->paths[0].lm_state > 0);
  wf_beam_result_free(result);
  wf_beam_searcher_free(searcher);
}

static void search_of_texts(const wf_lm *lm, outcome *out) {
  wf_beam_text tokens[WORDS + 1] = {{"", false, false}};
  for (int i = 0; i < WORDS; i++) tokens[i + 1] = (wf_beam_text){texts[i], true, true};
  const wf_beam_parts parts = {.texts = tokens,
                               .num_texts = WORDS + 1,
                               .lm = lm,
                               .known_words = texts,
                               .num_known_words = WORDS};
  search(&parts, true, out);
}

static void search_of_words(const wf_lm *lm, outcome *out) {
  int32_t labels[WORDS + 1] = {-1};
  for (int i = 0; i < WORDS; i++) labels[i + 1] = label(lm, texts[i]);
  const wf_beam_parts parts = {
      .lm = lm, .lm_labels = labels, .num_lm_labels = WORDS + 1, .silence = 0};
  search(&parts, false, out);
}

static const struct use {
  const char *name;
  void (*run)(const wf_lm *lm, outcome *out);
} uses[] = {{"queries", query},
            {"acceptors", acceptors},
            {"graph", graph},
            {"pruning", pruning},
            {"mixing", mixing},
            {"ARPA file", arpa_file},
            {"scorer", scorer},
            {"search of texts", search_of_texts},
            {"search of words", search_of_words}};

static void compare(const outcome *want, const outcome *got, const char *use, const char *format) {
  assert_int_equal(got->size, want->size);
  for (size_t i = 0; i < want->size; i++)
    if (!(got->value[i] == want->value[i] ||
          fabs(got->value[i] - want->value[i]) <= 1e-5 * (1 + fabs(want->value[i]))))
      fail_msg("%s of %s: value %zu is %.9g, not %.9g", use, format, i, got->value[i],
               want->value[i]);
}

/* Each use has a model of its own, then all share one. */
static void test_uses_of_formats(void **state) {
  (void)state;
  static outcome want, got;
  wf_error err = {0};
  wf_symbols *words;
  assert_ok(wf_symbols_create("words", &words, &err));
  assert_ok(wf_symbols_add(words, "<eps>", 0, NULL, &err));
  assert_ok(wf_symbols_add(words, "not in the model", -1, NULL, &err));
  for (int i = 0; i < WORDS; i++) assert_ok(wf_symbols_add(words, texts[i], -1, NULL, &err));
  for (size_t u = 0; u < sizeof uses / sizeof *uses; u++) {
    wf_lm *arpa = open_format(ARPA, NULL);
    want.size = 0;
    uses[u].run(arpa, &want);
    wf_lm_free(arpa);
    for (enum format f = 0; f < FORMATS; f++) {
      for (int given = 0; given < 2; given++) {
        wf_lm *lm = open_format(f, given ? words : NULL);
        got.size = 0;
        uses[u].run(lm, &got);
        compare(&want, &got, uses[u].name, format_names[f]);
        wf_lm_free(lm);
      }
    }
  }
  for (enum format f = 0; f < FORMATS; f++) {
    wf_lm *lm = open_format(f, words);
    for (size_t u = 0; u < sizeof uses / sizeof *uses; u++) {
      got.size = 0;
      uses[u].run(lm, &got);
      assert_true(got.size > 0);
    }
    wf_lm_free(lm);
  }
  wf_symbols_free(words);
}

/* --- random models ----------------------------------------------------------------------- */

/* Same arrays, bit for bit. Costs of created contexts may be summed in another order. */
static void check_same(const wf__automaton *a, const wf__automaton *b) {
  if (a->order != b->order || a->num_states != b->num_states || a->num_arcs != b->num_arcs ||
      a->start != b->start || a->unk != b->unk)
    fail_msg("order %d, %d; states %llu, %llu; arcs %llu, %llu; start %u, %u; unk %u, %u", a->order,
             b->order, (unsigned long long)a->num_states, (unsigned long long)b->num_states,
             (unsigned long long)a->num_arcs, (unsigned long long)b->num_arcs, a->start, b->start,
             a->unk, b->unk);
  for (uint64_t s = 0; s < a->num_states; s++) {
    assert_true(a->states[s].first_arc == b->states[s].first_arc &&
                a->states[s].backoff == b->states[s].backoff &&
                a->states[s].backoff_cost == b->states[s].backoff_cost &&
                a->final_order[s] == b->final_order[s]);
    assert_true(a->final_cost[s] == b->final_cost[s] ||
                fabsf(a->final_cost[s] - b->final_cost[s]) < 1e-5f);
  }
  for (uint64_t i = 0; i < a->num_arcs; i++)
    assert_true(
        a->arcs[i].word == b->arcs[i].word && a->arcs[i].next == b->arcs[i].next &&
        (a->arcs[i].cost == b->arcs[i].cost || fabsf(a->arcs[i].cost - b->arcs[i].cost) < 1e-5f));
  for (uint32_t w = 0; w < a->num_public; w++)
    assert_true(a->unigrams[w].cost == b->unigrams[w].cost &&
                a->unigrams[w].next == b->unigrams[w].next);
}

/* ARPA -> memory; ARPA -> .wlm -> memory; memory -> .wlm -> memory. With a table that lacks words,
 * whose probabilities go to <unk> or not. */
static void test_random_models(void **state) {
  (void)state;
  wf_error err = {0};
  uint64_t merged = 0;
  for (uint64_t seed = 1; seed <= test_seeds(300); seed++) {
    test_rng rng = {seed};
    static model m;
    make_model(&m, &rng, seed % 2 == 0);
    const char *text = model_text(&m, &rng);
    char arpa[512], wlm[512];
    snprintf(arpa, sizeof arpa, "%s", test_write_file("random.arpa", text, strlen(text)));
    snprintf(wlm, sizeof wlm, "%s", converted(arpa, (int)(seed % 2)));
    wf_symbols *table = NULL;
    wf_arpa_options options;
    wf_arpa_options_init(&options);
    options.oov = (int32_t)test_below(&rng, 2);
    if (seed % 3 > 0) {
      assert_ok(wf_symbols_create("words", &table, &err));
      assert_ok(wf_symbols_add(table, "<eps>", 0, NULL, &err));
      for (int w = m.num_words; w-- > FIRST;)
        if (test_below(&rng, 4) > 0) assert_ok(wf_symbols_add(table, names[w], -1, NULL, &err));
      if (test_below(&rng, 2) == 0) assert_ok(wf_symbols_add(table, "<unk>", -1, NULL, &err));
    }
    wf_lm *a, *b, *again;
    wf_arpa_stats stats;
    wf_arpa_stats_init(&stats);
    assert_ok(wf_lm_open(arpa, table, &options, &a, &stats, NULL, &err));
    assert_ok(wf_lm_open(wlm, table, &options, &b, NULL, NULL, &err));
    merged += stats.num_oov_merged > 0;
    assert_true(b->is_mapped || stats.num_oov_merged + stats.num_oov_skipped > 0);
    const wf__automaton *read, *made;
    assert_ok(wf__lm_automaton(a, &read, &err));
    assert_ok(wf__lm_automaton(b, &made, &err));
    /* A .wlm file has the contexts that the ARPA file lacks, also those that only n-grams with words
     * outside the table need. They change no cost, but that of an unknown word which gets theirs. */
    const bool same_ngrams = table == NULL || seed % 2 == 1;
    if (same_ngrams) check_same(read, made);
    assert_true(made->num_outside == read->num_outside);
    const int num_walks = same_ngrams || stats.num_oov_merged == 0 ? 200 : 0;
    for (int i = 0; i < num_walks; i++) { /* the same costs of the same labels, known or not */
      uint32_t s = wf_lm_start(a), t = wf_lm_start(b);
      for (int k = 0; k < 4; k++) {
        const int32_t word = (int32_t)test_below(&rng, 10) - 1;
        int32_t order, same;
        const float x = wf_lm_step(a, s, word, &s, &order), y = wf_lm_step(b, t, word, &t, &same);
        if (wf_lm_knows(a, word) != wf_lm_knows(b, word) ||
            !(same_ngrams ? order == same : order <= same) || !(x == y || fabsf(x - y) < 1e-5f))
          fail_msg("seed %llu, label %d: %.9g of order %d, and %.9g of order %d",
                   (unsigned long long)seed, word, (double)x, order, (double)y, same);
      }
    }
    wf__wlm *mapped;
    assert_ok(wf__lm_mapped(a, &mapped, &err)); /* from memory */
    assert_ok(wf__wlm_verify(mapped, NULL, &err));
    wf__automaton *back;
    assert_ok(wf__automaton_of_wlm(mapped, a->words, 1, &back, NULL, NULL, &err));
    check_same(read, back);
    wf__automaton_free(back);
    assert_ok(wf_lm_open_mapped(wlm, &again, &err));
    assert_true(again->is_mapped);
    wf_lm_free(again);
    wf_lm_free(a);
    wf_lm_free(b);
    wf_symbols_free(table);
  }
  assert_true(test_many(merged, 20, 300));
}

/* --- one form for all threads ------------------------------------------------------------ */

enum { THREADS = 8 };
static wf_lm *g_shared;

static void *need_forms(void *argument) {
  const void **forms = argument;
  wf_error err = {0};
  const wf__automaton *automaton;
  wf__wlm *mapped;
  wf_scorer *s;
  if (wf__lm_automaton(g_shared, &automaton, &err) != WF_OK ||
      wf__lm_mapped(g_shared, &mapped, &err) != WF_OK ||
      wf_scorer_from_lm(g_shared, NULL, NULL, &s, &err) != WF_OK ||
      wf_lm_make_table(g_shared, NULL, &err) != WF_OK)
    return NULL;
  wf_scorer_free(s);
  forms[0] = automaton;
  forms[1] = mapped;
  return argument;
}

static void test_threads(void **state) {
  (void)state;
  for (int round = 0; round < 20; round++) {
    pthread_t threads[THREADS];
    const void *forms[THREADS][2];
    g_shared = open_format(round % 2 == 0 ? ARPA : WLM, NULL);
    for (int i = 0; i < THREADS; i++)
      assert_int_equal(pthread_create(&threads[i], NULL, need_forms, forms[i]), 0);
    for (int i = 0; i < THREADS; i++) {
      void *done;
      assert_int_equal(pthread_join(threads[i], &done), 0);
      assert_non_null(done);
      assert_true(forms[i][0] == forms[0][0] && forms[i][1] == forms[0][1]);
    }
    wf_lm_free(g_shared);
  }
}

/* --- refused ----------------------------------------------------------------------------- */

static void test_differences(void **state) {
  (void)state;
  wf_error err = {0};
  wf_lm_convert_options options;
  wf_lm_convert_options_init(&options);
  options.subtract = DATA "sphinx2.arpa";
  char path[512];
  snprintf(path, sizeof path, "%s", test_temp_path("difference.wlm"));
  assert_ok(wf_lm_convert(DATA "sphinx3.arpa", path, NULL, &options, NULL, NULL, NULL, &err));
  wf_lm *lm = read_lm(path, NULL), *small;
  wf_fst *fst;
  assert_int_equal(wf_lm_prune(lm, NULL, NULL, &small, NULL, NULL, &err), WF_ERR_ARGUMENT);
  assert_true(strstr(err.message, "difference.wlm: the difference of two models") != NULL);
  assert_int_equal(wf_lm_to_fst(lm, NULL, &fst, &err), WF_ERR_ARGUMENT);
  wf_lm_fst_options exact;
  wf_lm_fst_options_init(&exact);
  exact.backoff = 1;
  exact.backoff_label = 1000;
  assert_ok(wf_lm_to_fst(lm, &exact, &fst, &err));
  const wf_fst_view v = wf_fst_get_view(fst);
  uint64_t negative = 0;
  for (uint64_t a = 0; a < v.num_arcs; a++) negative += v.arcs[a].weight < 0;
  assert_true(negative > 10);
  wf_fst_free(fst);
  wf_lm_free(lm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_uses_of_formats),
      cmocka_unit_test(test_random_models),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_differences),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
