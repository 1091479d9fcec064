/* test_gpu_transducer_words.c - the search over any graph, with a scorer for each utterance, in kernels
 * on a GPU against the CPU's search with the same model on the GPU: results must be equal bit for bit.
 * Exits with 77 if there is no GPU. Also built for the imitated GPU of tests/simt. */
#include "device_searches.h"
#ifdef FAKE_CUDA
#include "failing_calls.h"
#endif
/* After the library's headers, because it defines `model`. */
#include "random_scorers.h"
#include "random_words.h"

enum { SCORERS = 4, GRAPHS = 3 };

static wf_error err;

struct words_task {
  struct task of;
  wf_scorer *scorers[SCORERS]; /* utterance u has number u % (SCORERS + 1), or none */
  wf_graph *graphs[GRAPHS];    /* with added words; NULL: without. The same with GRAPHS */
};

/* Graphs of few states or of many, sorted by label or not, with costs that tie; or tokens alone. */
static wf_fst *random_graph(test_rng *rng, uint64_t seed, int num_tokens) {
  if (seed % 4 == 0) return tokens_graph(num_tokens);
  wf_fst *fst = test_transducer_graph(rng, num_tokens, NUM_WORDS,
                                      seed % 5 == 0 ? 40 : 2 + (int)test_below(rng, 6));
  return seed % 3 > 0 ? test_by_label(fst) : fst;
}

/* A graph with places of classes, and graphs with words there: phrases, or any that the tokens can
 * spell. */
static void add_words(struct words_task *w, test_rng *rng, const wf_fst *fst, int num_tokens) {
  wf_fst *places = with_places(rng, fst, num_tokens, true);
  assert_ok(wf_graph_create(places, NULL, 0, &w->of.graph, &err));
  wf_fst_free(places);
  for (int g = 0; g < GRAPHS; g++) {
    struct phrases phrases;
    const bool first = test_below(rng, 2);
    const char *name = first ? "<c>" : "<d>", *other = first ? "<d>" : "<c>";
    random_phrases(rng, num_tokens, &phrases);
    w->graphs[g] = g == 1 ? with_spelling(w->of.graph, name, rng, num_tokens)
                          : with_phrases(w->of.graph, name, &phrases);
    wf_graph *both =
        g == 2 && w->graphs[g] != NULL ? with_phrases(w->graphs[g], other, &phrases) : NULL;
    if (both == NULL) continue;
    wf_graph_free(w->graphs[g]);
    w->graphs[g] = both;
  }
}

static void make_words_task(struct words_task *w, uint64_t seed, const wf_symbols *words) {
  test_rng rng = {seed * 977 + 11};
  struct task *task = &w->of;
  const bool adds = seed % 4 > 1;
  transducer_shape s = random_transducer_shape(&rng, seed);
  if (adds && seed % 3 > 0) s.num_tokens = 3 + s.num_tokens % 6;
  task->model = random_transducer(&rng, &s);
  wf_fst *fst = random_graph(&rng, seed, s.num_tokens);
  *w = (struct words_task){.of = *task};
  if (adds)
    add_words(w, &rng, fst, s.num_tokens);
  else
    assert_ok(wf_graph_create(fst, NULL, 0, &task->graph, &err));
  wf_fst_free(fst);
  wf_decoder_options *o = &task->options;
  wf_decoder_options_init(o);
  o->beam = test_below(&rng, 5) == 0 ? 1000 : 1 + (float)test_below(&rng, 12);
  o->max_hypotheses =
      test_below(&rng, 4) == 0 ? WF__DEVICE_MOST_HYPOTHESES : 1 + (int32_t)test_below(&rng, 9);
  o->max_symbols = 1 + (int32_t)test_below(&rng, 3);
  o->greedy = seed % 6 == 5;
  o->blank_penalty = test_below(&rng, 3) == 0 ? 0.5f : 0;
  o->acoustic_scale = test_below(&rng, 3) == 0 ? 0.3f + test_unit(&rng) : 1;
  o->word_score = test_below(&rng, 3) == 0 ? test_unit(&rng) - 0.5f : 0;
  o->num_threads = 1 + (int32_t)(seed % 3);
  o->lattice_beam = seed % 2 == 1 || seed % 8 == 4 ? 1 + (float)test_below(&rng, 6) : 0;
  for (int u = 0; u < UTTERANCES; u++)
    task->scores[u] =
        random_encoder_outputs(&rng, task->model, (int64_t)test_below(&rng, u % 9 == 0 ? 30 : 8));
  task->scorer = NULL;
  for (int i = 0; i < SCORERS; i++)
    w->scorers[i] = seed % 5 == 1 ? NULL : random_scorer(&rng, words);
}

static wf_scorer *scorer_of(const struct words_task *w, int u) {
  return u % (SCORERS + 1) < SCORERS ? w->scorers[u % (SCORERS + 1)] : NULL;
}

static wf_graph *graph_of(const struct words_task *w, int u) {
  return u % (GRAPHS + 1) < GRAPHS ? w->graphs[u % (GRAPHS + 1)] : NULL;
}

static void free_words_task(struct words_task *w) {
  for (int g = 0; g < GRAPHS; g++) wf_graph_free(w->graphs[g]);
  for (int i = 0; i < SCORERS; i++) wf_scorer_free(w->scorers[i]);
  free_task(&w->of);
}

/* Is there a word that only added words have? */
static bool has_added(const wf_result *result) {
  for (size_t i = 0; i < result->num_words; i++)
    if (result->words[i].label > NUM_WORDS) return true;
  return false;
}

/* Decodes with a decoder whose search is on the GPU, or on the CPU. */
static void decode_words(const struct words_task *w, const char *device, bool on_host,
                         size_t at_once, wf_result **results) {
  const struct task *task = &w->of;
  wf_utterance utterances[UTTERANCES];
  wf_decoder *decoder = decoder_that_searches(task, device, on_host);
  for (int u = 0; u < UTTERANCES; u++)
    utterances[u] = (wf_utterance){
        .scores = task->scores[u], .scorer = scorer_of(w, u), .graph = graph_of(w, u)};
  const wf__transducer_shared *shared = ((const wf__host *)decoder->search)->setup.shared;
  for (int g = 0; g < GRAPHS; g++)
    if (w->graphs[g] != NULL)
      assert_true(wf__device_search_covers(shared, w->graphs[g], NULL) == !on_host);
  for (size_t i = 0; i < UTTERANCES; i += at_once) {
    const size_t count = UTTERANCES - i < at_once ? UTTERANCES - i : at_once;
    assert_ok(wf_decode(decoder, utterances + i, count, NULL, results + i, &err));
  }
  wf_decoder_free(decoder);
}

static void test_small_words(void **unused) {
  (void)unused;
  uint64_t num_words = 0, num_scored = 0, num_entered = 0;
  wf_symbols *words = random_scorer_words();
  struct test_heard heard = {.text = "no room on the GPU"};
  wf_set_log(test_listen, &heard);
  for (uint64_t seed = 0; seed < test_seeds(60); seed++) {
    static struct words_task w;
    wf_result *want[UTTERANCES], *got[UTTERANCES];
    make_words_task(&w, seed, words);
    decode_words(&w, "cuda", true, UTTERANCES, want);
    decode_words(&w, "cuda", false, UTTERANCES, got);
    check_same(seed, got, want, &num_words);
    test_free_results(got, UTTERANCES);
    decode_words(&w, seed % 2 == 0 ? "cuda:0,0" : "cuda", false, 1 + (size_t)(seed % 7), got);
    check_same(seed, got, want, &num_words);
    test_free_results(got, UTTERANCES);
    wf_scorer *own[UTTERANCES];
    wf_graph *graphs[UTTERANCES];
    for (int u = 0; u < UTTERANCES; u++) own[u] = scorer_of(&w, u);
    for (int u = 0; u < UTTERANCES; u++) graphs[u] = graph_of(&w, u);
    stream_on(&w.of, seed % 2 == 0 ? "cuda" : "cuda:0,0", own, graphs, want, seed);
    for (int u = 0; u < UTTERANCES; u++) num_scored += want[u]->scorer_cost != 0;
    for (int u = 0; u < UTTERANCES; u++) num_entered += has_added(want[u]);
    test_free_results(want, UTTERANCES);
    free_words_task(&w);
  }
  wf_set_log(NULL, NULL);
  wf_symbols_free(words);
  print_message(
      "%llu words, %llu utterances with costs of a scorer, %llu with added words; %d had no room; "
      "streams of %d decoders were searched in kernels\n",
      (unsigned long long)num_words, (unsigned long long)num_scored,
      (unsigned long long)num_entered, (int)heard.times, num_in_kernels);
  assert_true(num_words > 0 && num_scored > 0 && (test_seeds(60) < 4 || num_entered > 0));
  if (getenv("WARPFST_TEST_SEEDS") == NULL) assert_true(heard.times > 0);
}

/* Of each state, arcs of a token that lead to two states, and epsilons from one state to the next. */
static wf_fst *graph_of_pairs(test_rng *rng, int num_tokens) {
  enum { STATES = 3 };
  char text[4096];
  size_t at = 0;
  for (int s = 0; s < STATES; s++) {
    at += (size_t)snprintf(text + at, sizeof text - at, "%d 0\n%d %d 1 0 0\n", s, s, s);
    for (int arc = 0; arc < 2 * num_tokens; arc++) {
      const bool epsilon = arc < 2;
      if (epsilon && (s + 1 == STATES || test_below(rng, 3) == 0)) continue;
      at += (size_t)snprintf(text + at, sizeof text - at, "%d %d %d %d %g\n", s,
                             epsilon ? s + 1 : (s + arc) % STATES, epsilon ? 0 : 1 + arc / 2,
                             (int)test_below(rng, NUM_WORDS + 1), (double)test_below(rng, 9) / 2);
    }
  }
  return test_fst_of(WF_TROPICAL, text);
}

/* Few hypotheses, and words that are worth more than they cost: tokens come into a set in a later step, or
 * by an epsilon, at the expense of others. Candidates of an earlier step are links to them. */
static void test_small_late_links(void **unused) {
  (void)unused;
  uint64_t num_words = 0;
  for (uint64_t seed = 0; seed < 4 * test_seeds(60); seed++) {
    static struct words_task w;
    struct task *task = &w.of;
    wf_result *want[UTTERANCES], *got[UTTERANCES];
    test_rng rng = {seed * 1013 + 7};
    transducer_shape s = random_transducer_shape(&rng, seed);
    s.num_tokens = 3 + (int)test_below(&rng, 2);
    w = (struct words_task){.of.model = random_transducer(&rng, &s)};
    wf_fst *fst = graph_of_pairs(&rng, s.num_tokens);
    assert_ok(wf_graph_create(fst, NULL, 0, &task->graph, &err));
    wf_fst_free(fst);
    wf_decoder_options *o = &task->options;
    wf_decoder_options_init(o);
    o->beam = 1000;
    o->max_hypotheses = 1 + (int32_t)test_below(&rng, 4);
    o->max_symbols = 2 + (int32_t)test_below(&rng, 3);
    o->word_score = 1 + 3 * test_unit(&rng);
    o->acoustic_scale = 0.2f;
    o->lattice_beam = 4 + (float)test_below(&rng, 8);
    for (int u = 0; u < UTTERANCES; u++)
      task->scores[u] = random_encoder_outputs(&rng, task->model, 1 + (int64_t)test_below(&rng, 4));
    decode_words(&w, "cuda", true, UTTERANCES, want);
    decode_words(&w, "cuda", false, UTTERANCES, got);
    check_same(seed, got, want, &num_words);
    test_free_results(got, UTTERANCES);
    test_free_results(want, UTTERANCES);
    free_words_task(&w);
  }
  assert_true(num_words > 0);
}

#ifdef FAKE_CUDA
enum { FEW = 3 };
static wf_result *few_want[FEW];

/* Some utterances with scorers, in two batches of one decoder. */
static wf_status decode_few(const void *input, wf_error *error) {
  const struct words_task *w = input;
  wf_utterance utterances[FEW];
  wf_decoder_options options = w->of.options;
  wf_decoder *decoder;
  options.device = "cuda";
  wf_status status =
      wf_decoder_create_transducer(w->of.graph, w->of.model, &options, &decoder, error);
  if (status != WF_OK) return status;
  for (int u = 0; u < FEW; u++)
    utterances[u] =
        (wf_utterance){.scores = w->of.scores[u], .scorer = w->scorers[u], .graph = graph_of(w, u)};
  for (int batch = 0; batch < 2 && status == WF_OK; batch++) {
    wf_result *results[FEW] = {NULL};
    status = wf_decode(decoder, utterances, FEW, NULL, results, error);
    for (int u = 0; u < FEW && status == WF_OK; u++)
      test_assert_same_result(results[u], few_want[u]);
    if (status == WF_OK) test_free_results(results, FEW);
  }
  wf_decoder_free(decoder);
  return status;
}

static void test_small_every_call_fails_once(void **unused) {
  (void)unused;
  static struct words_task w;
  wf_result *want[UTTERANCES];
  wf_symbols *words = random_scorer_words();
  make_words_task(&w, 3, words);
  for (int u = 0; u < FEW; u++) /* short ones */
    if (w.of.scores[u].num_frames > 2) w.of.scores[u].num_frames = 2;
  w.of.options.num_threads = 1;
  decode_words(&w, "cuda", true, UTTERANCES, want);
  memcpy(few_want, want, sizeof few_want);
  fail_each_call("words", decode_few, &w, 60);
  test_free_results(want, UTTERANCES);
  free_words_task(&w);
  wf_symbols_free(words);
}
#endif

int main(int argc, char **argv) {
  if (test_no_gpu()) return 77;
  test_filter(argc, argv);
#ifdef FAKE_CUDA
  fake_gpus.checks_copies = true;
#endif
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_words),
      cmocka_unit_test(test_small_late_links),
#ifdef FAKE_CUDA
      cmocka_unit_test(test_small_every_call_fails_once),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
