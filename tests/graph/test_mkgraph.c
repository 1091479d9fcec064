/* test_mkgraph.c - the graph pipeline compared with a direct computation that builds no transducer.
 *
 * For random lexicons, language models and frame strings x: the cost of the graph's best path for x
 * is the minimum, over word sequences W and pronunciations that give the tokens y, of
 *     cost of x as y in the topology (0 or impossible)  -  ln P(pronunciations)  +  cost of W in
 *     the LM  (+ silences).
 * The test holds the LM as a table and queries it with or without optional back-off. The graph goes
 * through every step of the library. */
#include "testing.h"

#include "graph/push_even.h"

#define CTC_DIR WARPFST_SOURCE_DIR "/examples/ctc/"

enum { CORRECT, COMPACT, MINIMAL, EESEN };
enum { MAX_FRAMES = 6, NUM_WORDS = 3, MAX_PRONS = 5, NUM_LABELS = 4 /* blank, a, b, SIL */ };

/* --- the small random task: lexicon and LM ----------------------------------------------- */

struct pron {
  int word, labels[3], size;
  double cost;
};

/* A bigram with back-off. Index NUM_WORDS is <s> as history and </s> as next word. INFINITY: no
 * such n-gram. */
struct world {
  struct pron prons[MAX_PRONS];
  int num_prons;
  double unigram[NUM_WORDS + 1], bigram[NUM_WORDS + 1][NUM_WORDS + 1], backoff[NUM_WORDS + 1];
  bool silence, failure;
  double p_silence;
  int topology;
};

static double random_log10(test_rng *rng) { return -(double)(1 + test_below(rng, 16)) / 8; }

static void random_world(test_rng *rng, struct world *world) {
  world->num_prons = 2 + (int)test_below(rng, MAX_PRONS - 1);
  for (int i = 0; i < world->num_prons; i++) {
    struct pron *pron = &world->prons[i];
    pron->word = i < NUM_WORDS ? i : (int)test_below(rng, NUM_WORDS);
    pron->size = 1 + (int)test_below(rng, 3);
    for (int k = 0; k < pron->size; k++) pron->labels[k] = 2 + (int)test_below(rng, 2);
    pron->cost = -log((1 + test_below(rng, 4)) / 4.0);
  }
  for (int h = 0; h <= NUM_WORDS; h++) {
    world->unigram[h] = random_log10(rng);
    world->backoff[h] =
        test_unit(rng) < 0.3f
            ? 0
            : random_log10(rng) / 2 + 0.25; /* weights above 1 are common in real models */
    for (int w = 0; w <= NUM_WORDS; w++)
      world->bigram[h][w] = test_unit(rng) < 0.4f ? random_log10(rng) : INFINITY;
  }
}

static const char *word_name(int word, bool history) {
  static const char *const names[] = {"X", "Y", "Z"};
  return word < NUM_WORDS ? names[word] : history ? "<s>" : "</s>";
}

static const char *write_arpa(const struct world *world) {
  char text[8192];
  size_t used = 0;
  int num_bigrams = 0;
  for (int h = 0; h <= NUM_WORDS; h++)
    for (int w = 0; w <= NUM_WORDS; w++) num_bigrams += world->bigram[h][w] != INFINITY;
#define ADD(...) used += (size_t)snprintf(text + used, sizeof text - used, __VA_ARGS__)
  ADD("\\data\\\nngram 1=%d\nngram 2=%d\n\n\\1-grams:\n-99\t<s>\t%.6f\n%.6f\t</s>\n", NUM_WORDS + 2,
      num_bigrams, world->backoff[NUM_WORDS], world->unigram[NUM_WORDS]);
  for (int w = 0; w < NUM_WORDS; w++)
    ADD("%.6f\t%s\t%.6f\n", world->unigram[w], word_name(w, true), world->backoff[w]);
  ADD("\n\\2-grams:\n");
  for (int h = 0; h <= NUM_WORDS; h++)
    for (int w = 0; w <= NUM_WORDS; w++)
      if (world->bigram[h][w] != INFINITY)
        ADD("%.6f\t%s %s\n", world->bigram[h][w], word_name(h, true), word_name(w, false));
  ADD("\n\\end\\\n");
#undef ADD
  assert_true(used < sizeof text);
  return test_write_file("lm.arpa", text, used);
}

static const char *write_lexicon(const struct world *world) {
  char text[1024];
  size_t used = 0;
  for (int i = 0; i < world->num_prons; i++) {
    used += (size_t)snprintf(text + used, sizeof text - used, "%s %.9g",
                             word_name(world->prons[i].word, false), exp(-world->prons[i].cost));
    for (int k = 0; k < world->prons[i].size; k++)
      used += (size_t)snprintf(text + used, sizeof text - used, " %c",
                               world->prons[i].labels[k] == 2 ? 'a' : 'b');
    used += (size_t)snprintf(text + used, sizeof text - used, "\n");
  }
  return test_write_file("lexicon.txt", text, used);
}

/* Cost of word `w` (NUM_WORDS: the sentence end) after `h`. */
static double lm_cost(const struct world *world, int h, int w) {
  double backed_off = -log(10) * (world->backoff[h] + world->unigram[w]),
         explicit_cost = -log(10) * world->bigram[h][w];
  if (world->bigram[h][w] == INFINITY) return backed_off;
  return world->failure || explicit_cost < backed_off ? explicit_cost : backed_off;
}

/* --- the direct computation -------------------------------------------------------------- */

/* Does the topology accept x as the tokens y? Follows the definitions in docs/how-to/topologies.md.
 */
static bool reads_as(int topology, const int *x, int frames, const int *y, int size) {
  int collapsed[MAX_FRAMES], num = 0;
  if (topology == CORRECT || topology == MINIMAL) {
    for (int i = 0; i < frames; i++)
      if (x[i] != 1 && (topology == MINIMAL || i == 0 || x[i] != x[i - 1])) collapsed[num++] = x[i];
    return num == size && memcmp(collapsed, y, (size_t)size * sizeof *y) == 0;
  }
  /* One block of frames for each token of y, with blanks between them. Blocks may be adjacent. */
  if (size == 0) {
    for (int i = 0; i < frames; i++)
      if (x[i] != 1) return false;
    return topology == COMPACT || frames == 0;
  }
  if (frames == 0) return false;
  if (x[0] == 1) return reads_as(topology, x + 1, frames - 1, y, size);
  if (x[0] != y[0]) return false;
  for (int take = 1; take <= frames && x[take - 1] == y[0]; take++) {
    int rest = take;
    if (size == 1) {
      while (rest < frames && x[rest] == 1) rest++;
      if (rest == frames) return true;
    } else if (reads_as(topology, x + take, frames - take, y + 1, size - 1)) {
      return true;
    }
  }
  return false;
}

struct hypothesis {
  const struct world *world;
  const int *x;
  int frames, y[MAX_FRAMES], size;
  double best;
};

static void extend(struct hypothesis *hyp, int history, double cost);

static void extend_gap(struct hypothesis *hyp, int history, double cost) {
  const struct world *world = hyp->world;
  if (!world->silence) {
    extend(hyp, history, cost);
    return;
  }
  extend(hyp, history, cost - log(1 - world->p_silence));
  if (hyp->size == MAX_FRAMES) return;
  hyp->y[hyp->size++] = 4;
  extend(hyp, history, cost - log(world->p_silence));
  hyp->size--;
}

static void extend(struct hypothesis *hyp, int history, double cost) {
  const struct world *world = hyp->world;
  if (reads_as(world->topology, hyp->x, hyp->frames, hyp->y, hyp->size))
    hyp->best = fmin(hyp->best, cost + lm_cost(world, history, NUM_WORDS));
  for (int i = 0; i < world->num_prons; i++) {
    const struct pron *pron = &world->prons[i];
    if (hyp->size + pron->size > hyp->frames) continue;
    memcpy(hyp->y + hyp->size, pron->labels, (size_t)pron->size * sizeof *hyp->y);
    hyp->size += pron->size;
    extend_gap(hyp, pron->word, cost + pron->cost + lm_cost(world, history, pron->word));
    hyp->size -= pron->size;
  }
}

/* --- the library's graph ----------------------------------------------------------------- */

static wf_symbols *g_tokens;

static wf_symbols *tokens(void) {
  static const char text[] = "<blk> 0\na 1\nb 2\nSIL 3\n";
  wf_error err = {0};
  if (g_tokens == NULL)
    assert_ok(
        wf_symbols_read(test_write_file("tokens.txt", text, sizeof text - 1), &g_tokens, &err));
  return g_tokens;
}

struct steps {
  int count;
  uint64_t states, arcs;
  char names[256];
};
static bool count_step(void *user, const wf_graph_step *step, const wf_fst *fst) {
  struct steps *steps = user;
  wf_fst_view view = wf_fst_get_view(fst);
  assert_true(step->num_states == view.num_states && step->num_arcs == view.num_arcs &&
              step->seconds >= 0 && step->peak_bytes > 0);
  steps->count++;
  steps->states = step->num_states;
  steps->arcs = step->num_arcs;
  snprintf(steps->names + strlen(steps->names), sizeof steps->names - strlen(steps->names), "%s;",
           step->name);
  return true;
}

static wf_fst *build(const struct world *world, int32_t push) {
  wf_error err = {0};
  wf_lexicon *lexicon;
  wf_lm *lm;
  wf_symbols *words;
  wf_graph_options options;
  wf_graph_inputs parts;
  wf_graph_result result;
  struct steps steps = {.count = 0};
  assert_ok(wf_lexicon_read(write_lexicon(world), tokens(), NULL, &lexicon, &err));
  assert_ok(wf_lexicon_words(lexicon, &words, &err));
  assert_ok(wf_lm_open(write_arpa(world), words, NULL, &lm, NULL, NULL, &err));
  wf_graph_options_init(&options);
  options.topology = world->topology;
  options.backoff = world->failure;
  options.push = WF_PUSH_NONE + push;
  if (world->silence) options.silence = "SIL";
  options.silence_prob = (float)world->p_silence;
  wf_graph_inputs_init(&parts);
  parts.lexicon = lexicon;
  parts.lm = lm;
  parts.step_fn = count_step;
  parts.step_user = &steps;
  assert_ok(wf_graph_build(&parts, &options, &result, &err));
  char names[64];
  snprintf(names, sizeof names, "L;G;L o G;det;%smin;%sgraph;", push == 2 ? "push;" : "",
           world->topology == 0 ? "tokens;rmeps;" : "T;T o LG;");
  assert_string_equal(steps.names, names);
  wf_fst_view view = wf_fst_get_view(result.graph);
  assert_true(steps.states == view.num_states && steps.arcs == view.num_arcs);
  assert_true(wf_fst_properties(result.graph) & WF_PROP_EPSILONS_LAST);
  for (uint64_t i = 0; i < view.num_arcs; i++) {
    assert_true(view.arcs[i].ilabel >= 0 && view.arcs[i].ilabel <= NUM_LABELS);
    if (view.arcs[i].olabel != 0)
      assert_true(wf_symbols_text(result.words, view.arcs[i].olabel)[0] != '#');
  }
  wf_fst *graph = wf_fst_ref(result.graph);
  wf_graph_result_clear(&result);
  wf_lm_free(lm);
  wf_symbols_free(words);
  wf_lexicon_free(lexicon);
  return graph;
}

static void check_world(test_rng *rng, struct world *world, int32_t push, int *num_finite) {
  wf_fst *graph = build(world, push);
  for (int round = 0; round < 40; round++) {
    int x[MAX_FRAMES], frames = (int)test_below(rng, MAX_FRAMES + 1);
    for (int t = 0; t < frames; t++)
      x[t] = t > 0 && test_unit(rng) < 0.3f ? x[t - 1]
                                            : 1 + (int)test_below(rng, world->silence ? 4 : 3);
    struct hypothesis hyp = {.world = world, .x = x, .frames = frames, .best = INFINITY};
    extend_gap(&hyp, NUM_WORDS, 0);
    double found = test_best_cost(graph, NULL, x, frames);
    if (hyp.best == INFINITY ? found != INFINITY : !(fabs(found - hyp.best) < 0.01)) {
      char text[MAX_FRAMES + 1] = "";
      for (int t = 0; t < frames; t++) text[t] = (char)('0' + x[t]);
      fail_msg("topology %d, silence %d, failure %d, frames '%s': %.6f, wanted %.6f",
               world->topology, world->silence, world->failure, text, found, hyp.best);
    }
    *num_finite += hyp.best != INFINITY;
  }
  wf_fst_free(graph);
}

static void test_against_direct_computation(void **state) {
  test_rng rng = {2024};
  int num_finite = 0;
  for (int round = 0; round < 96; round++) {
    struct world world = {.topology = round % 4,
                          .silence = round / 4 % 2 == 1,
                          .failure = round / 8 % 2 == 1,
                          .p_silence = 0.25};
    random_world(&rng, &world);
    check_world(&rng, &world, round / 16 % 3, &num_finite);
  }
  assert_true(num_finite > 96 * 40 / 3);
}

/* --- even pushing ------------------------------------------------------------------------ */

/* The probability mass that leaves a state. The final weight counts as an arc to the start. The
 * final costs already include the start's potential. */
static double leaving(const wf_fst_view *view, uint64_t s) {
  double sum = view->final_cost[s] == INFINITY ? 0 : exp(-(double)view->final_cost[s]);
  for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
    sum += exp(-(double)view->arcs[i].weight);
  return sum;
}

static void test_push_even(void **state) {
  wf_error err = {0};
  test_rng rng = {77};
  for (int round = 0; round < 40; round++) {
    test_fst_shape shape = {.num_states = 6,
                            .num_arcs = 14,
                            .num_ilabels = 3,
                            .num_olabels = 3,
                            .epsilon_share = 0.1f,
                            .final_share = 0.4f,
                            .max_weight = 3};
    wf_fst *random = test_random_fst(&rng, &shape), *fst, *pushed;
    assert_ok(wf_connect(random, &fst, &err));
    assert_ok(wf__push_even(fst, &pushed, &err));
    wf_fst_view view = wf_fst_get_view(pushed);
    for (uint64_t s = 1; s < view.num_states; s++)
      if (fabs(log(leaving(&view, s) / leaving(&view, 0))) > 0.01)
        fail_msg("round %d: state %llu has %g, state 0 %g", round, (unsigned long long)s,
                 leaving(&view, s), leaving(&view, 0));
    test_relation before = test_enumerate(fst, 6, 2000000),
                  after = test_enumerate(pushed, 6, 2000000);
    test_assert_same_relation(&before, &after, 1e-4);
    test_relation_free(&before);
    test_relation_free(&after);
    wf_fst_free(random);
    wf_fst_free(fst);
    wf_fst_free(pushed);
  }
}

/* --- parts and errors -------------------------------------------------------------------- */

static wf_symbols *table_of(const char *text) {
  wf_error err = {0};
  wf_symbols *table;
  assert_ok(wf_symbols_read(test_write_file("table.txt", text, strlen(text)), &table, &err));
  return table;
}

static wf_lexicon *lexicon_of(const char *text) {
  wf_error err = {0};
  wf_lexicon *lexicon;
  assert_ok(wf_lexicon_read(test_write_file("lexicon.txt", text, strlen(text)), tokens(), NULL,
                            &lexicon, &err));
  return lexicon;
}

/* A grammar fst: X Y or nothing. Its table lacks #0. Z has no pronunciation. W is not in the
 * grammar. */
static void test_grammar_fst(void **state) {
  wf_error err = {0};
  wf_symbols *words = table_of("<eps> 0\nX 1\nY 2\nZ 3\nW 4\n");
  wf_lexicon *lexicon = lexicon_of("X a\nY b\nW a b\nV b\n");
  wf_fst *grammar = test_fst_of(WF_TROPICAL, "0 1 1 1 0.5; 1 2 2 2 0.25; 0 2 3 3; 0 1; 2 0");
  wf_graph_inputs parts;
  wf_graph_options options;
  wf_graph_result result;
  wf_graph_inputs_init(&parts);
  wf_graph_options_init(&options);
  parts.lexicon = lexicon;
  parts.grammar = grammar;
  assert_int_equal(wf_graph_build(&parts, &options, &result, &err),
                   WF_ERR_ARGUMENT); /* no word table */
  parts.words = words;
  assert_ok(wf_graph_build(&parts, &options, &result, &err));
  assert_int_equal(result.lm_words_missing.count, 1);
  assert_string_equal(result.lm_words_missing.names[0], "Z");
  assert_int_equal(result.lexicon_words_missing.count, 2);
  assert_int_equal(wf_symbols_find(result.words, "#0"), 5);
  assert_ptr_equal(wf_fst_osymbols(result.graph), result.words);
  assert_string_equal(wf_symbols_text(wf_fst_isymbols(result.graph), 2), "a");
  assert_true(fabs(test_best_cost(result.graph, NULL, (int[]){1, 2, 1, 3, 1}, 5) - 0.75) < 1e-6);
  assert_true(fabs(test_best_cost(result.graph, NULL, (int[]){1, 1}, 2) - 1) < 1e-6);
  assert_true(test_best_cost(result.graph, NULL, (int[]){2, 2}, 2) == INFINITY);
  wf_graph_result_clear(&result);
  wf_fst *empty =
      test_fst_of(WF_TROPICAL, "0 1 3 3; 1 2 1 1; 2 0"); /* Z X: Z has no pronunciation */
  parts.grammar = empty;
  assert_int_equal(wf_graph_build(&parts, &options, &result, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "compose L o G"));
  wf_fst *foreign = test_fst_of(WF_TROPICAL, "0 1 3 3; 1 0");
  parts.grammar = foreign;
  assert_int_equal(wf_graph_build(&parts, &options, &result, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "no word in common"));
  assert_null(result.graph);
  wf_fst_free(empty);
  wf_fst_free(foreign);
  wf_fst_free(grammar);
  wf_lexicon_free(lexicon);
  wf_symbols_free(words);
}

static wf_fst *build_of(const wf_lexicon *lexicon, const wf_fst *grammar, const wf_symbols *words,
                        const char *classes) {
  wf_error err = {0};
  wf_graph_inputs parts;
  wf_graph_options options;
  wf_graph_result result;
  wf_graph_inputs_init(&parts);
  wf_graph_options_init(&options);
  options.classes = classes;
  parts.lexicon = lexicon;
  parts.grammar = grammar;
  parts.words = words;
  assert_ok(wf_graph_build(&parts, &options, &result, &err));
  wf_fst *graph = wf_fst_ref(result.graph);
  wf_graph_result_clear(&result);
  return graph;
}

/* Without a language model and a grammar: the same as a grammar with a loop for each word. */
static void test_any_words(void **state) {
  static const struct {
    const char *lexicon, *words, *classes, *grammar;
  } cases[] = {
      {"X a\nY b\nX a b\n#tag b\n", NULL, NULL, "0 0 1 1; 0 0 2 2; 0 0 3 3; 0 0"},
      {"X a\nY b\nZ b a\n", "<eps> 0\n<s> 1\nY 4\nX 7\n#0 8\n", NULL, "0 0 4 4; 0 0 7 7; 0 0"},
      {"X a\nY b\n", NULL, "<c>,<d>", "0 0 1 1; 0 0 2 2; 0 0 6 6; 0 0 7 7; 0 0"},
  };
  (void)state;
  wf_error err = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wf_symbols *words = NULL;
    wf_fst *grammar = test_fst_of(WF_TROPICAL, cases[i].grammar);
    wf_lexicon *lexicon = lexicon_of(cases[i].lexicon);
    if (cases[i].words != NULL)
      words = table_of(cases[i].words);
    else
      assert_ok(wf_lexicon_words(lexicon, &words, &err));
    for (const char *at = cases[i].classes; at != NULL; at = strchr(at + 1, '<')) {
      const char name[] = {'<', at[1], '>', '\0'};
      assert_ok(wf_symbols_add(words, name, -1, NULL, &err));
    }
    wf_fst *expected = build_of(lexicon, grammar, words, cases[i].classes),
           *made = build_of(lexicon, NULL, cases[i].words != NULL ? words : NULL, cases[i].classes);
    bool equal = false;
    assert_ok(wf_equal(made, expected, 0, &equal, &err));
    if (!equal) fail_msg("case %zu: %s", i, err.message);
    assert_int_equal(wf_symbols_num_entries(wf_fst_osymbols(made)),
                     wf_symbols_num_entries(wf_fst_osymbols(expected)));
    wf_fst_free(made);
    wf_fst_free(expected);
    wf_fst_free(grammar);
    wf_symbols_free(words);
    wf_lexicon_free(lexicon);
  }
}

/* Keeps the warning about case. Words that the lexicon lacks have another warning. */
static void note_warning(void *user, wf_log_level level, const char *message) {
  char *last = user;
  if (level == WF_LOG_WARNING && strstr(message, "another case") != NULL)
    snprintf(last, 256, "%s", message);
}

/* Warns if half of the grammar's words, or one of many, are in the lexicon only in another case.
 * Includes letters beyond ASCII. An LM drops such words when it is read. */
static void test_warning_of_words_in_another_case(void **state) {
  static const struct {
    const char *lexicon, *message;
  } cases[] = {{"MARK a\nIS b\nÄRGER a b\nДОМ b a\n", NULL},
               {"MARK a\nis b\nÄRGER a b\nДОМ b a\n",
                "1 of the 4 words of the %s are in the lexicon only in another case (upper or "
                "lower), 'IS' is the first"},
               {"MARK a\nIS b\närger a b\nдом b a\n",
                "2 of the 4 words of the %s are in the lexicon only in another case (upper or "
                "lower), 'ÄRGER' is the first"},
               {"MARK a\nIT b\nOTHER a b\n", NULL}};
  wf_error err = {0};
  wf_symbols *words = table_of("<eps> 0\nMARK 1\nIS 2\nÄRGER 3\nДОМ 4\n");
  wf_fst *grammar = test_fst_of(WF_TROPICAL, "0 0 1 1; 0 0 2 2; 0 0 3 3; 0 0 4 4; 0");
  static const char arpa[] =
      "\\data\\\nngram 1=6\n\n\\1-grams:\n-99 <s>\n-1 </s>\n-1 MARK\n-1 IS\n-1 ÄRGER\n-1 "
      "ДОМ\n\n\\end\\\n";
  for (int k = 0; k < 24; k++) {
    int mode = k / 8;
    bool with_lm = k % 2 == 1;
    char want[256] = "", last[256] = "";
    wf_lexicon *lexicon = lexicon_of(cases[k / 2 % 4].lexicon);
    wf_symbols *spoken;
    wf_lm *lm = NULL;
    wf_graph_inputs parts;
    wf_graph_options options;
    wf_graph_result result;
    wf_graph_inputs_init(&parts);
    wf_graph_options_init(&options);
    options.check_words = mode;
    parts.lexicon = lexicon;
    assert_ok(wf_lexicon_words(lexicon, &spoken, &err));
    if (with_lm)
      assert_ok(wf_lm_open(test_write_file("case.arpa", arpa, sizeof arpa - 1), spoken, NULL, &lm,
                           NULL, NULL, &err));
    parts.lm = lm;
    parts.grammar = with_lm ? NULL : grammar;
    parts.words = with_lm ? NULL : words;
    if (cases[k / 2 % 4].message != NULL)
      snprintf(want, sizeof want, cases[k / 2 % 4].message, with_lm ? "language model" : "grammar");
    wf_set_log(note_warning, last);
    wf_status status = wf_graph_build(&parts, &options, &result, &err);
    wf_set_log(NULL, NULL);
    bool warned = want[0] != '\0';
    assert_int_equal(status, warned && mode == 1 ? WF_ERR_ARGUMENT : WF_OK);
    if (warned && mode < 2) assert_non_null(strstr(mode == 1 ? err.message : last, want));
    if (!warned || mode == 2) assert_string_equal(last, "");
    wf_graph_result_clear(&result);
    wf_lm_free(lm);
    wf_symbols_free(spoken);
    wf_lexicon_free(lexicon);
  }
  wf_fst_free(grammar);
  wf_symbols_free(words);
}

static bool stop_at_det(void *user, const wf_graph_step *step, const wf_fst *fst) {
  return strcmp(step->name, "det") != 0;
}
static bool stop_progress(void *user, const char *stage, double fraction) { return fraction < 0.5; }

static void test_limits_and_cancelling(void **state) {
  wf_error err = {0};
  test_rng rng = {3};
  struct world world = {.topology = COMPACT};
  random_world(&rng, &world);
  wf_lexicon *lexicon;
  wf_lm *lm;
  assert_ok(wf_lexicon_read(write_lexicon(&world), tokens(), NULL, &lexicon, &err));
  assert_ok(wf_lm_open(write_arpa(&world), NULL, NULL, &lm, NULL, NULL, &err));
  wf_graph_inputs parts;
  wf_graph_options options;
  wf_graph_result result;
  wf_graph_inputs_init(&parts);
  wf_graph_options_init(&options);
  assert_int_equal(wf_graph_build(&parts, &options, &result, &err), WF_ERR_ARGUMENT);
  parts.lexicon = lexicon;
  parts.lm = lm;
  wf_fst *grammar = test_fst_of(WF_TROPICAL, "0 0 1 1; 0 0");
  parts.grammar = grammar;
  assert_int_equal(wf_graph_build(&parts, &options, &result, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "a language model and a grammar are given"));
  parts.grammar = NULL;
  wf_fst_free(grammar);
  assert_ok(wf_graph_build(&parts, NULL, &result, &err));
  wf_graph_result_clear(&result);
  options.max_states = 3;
  assert_int_equal(wf_graph_build(&parts, &options, &result, &err), WF_ERR_LIMIT);
  assert_non_null(strstr(err.message, "compose L o G"));
  options.max_states = 0;
  options.silence = "nope";
  assert_int_equal(wf_graph_build(&parts, &options, &result, &err), WF_ERR_ARGUMENT);
  options.silence = NULL;
  parts.step_fn = stop_at_det;
  assert_int_equal(wf_graph_build(&parts, &options, &result, &err), WF_ERR_CANCELLED);
  parts.step_fn = NULL;
  parts.progress.fn = stop_progress;
  assert_int_equal(wf_graph_build(&parts, &options, &result, &err), WF_ERR_CANCELLED);
  assert_null(result.graph);
  wf_lm_free(lm);
  wf_lexicon_free(lexicon);
}

/* --- real models ------------------------------------------------------------------------- */

static void build_real(const char *kind, int32_t topology, bool spell, const char *merges,
                       wf_graph_result *result) {
  wf_error err = {0};
  char path[512];
  wf_symbols *table, *words = NULL;
  wf_lexicon *lexicon;
  wf_lm *lm;
  snprintf(path, sizeof path, CTC_DIR "tokens_%s.txt", kind);
  assert_ok(wf_symbols_read(path, &table, &err));
  snprintf(path, sizeof path, CTC_DIR "lexicon_%s.txt", kind);
  if (!spell) {
    assert_ok(wf_lexicon_read(path, table, NULL, &lexicon, &err));
    assert_ok(wf_lexicon_words(lexicon, &words, &err));
  }
  assert_ok(wf_lm_open(CTC_DIR "lm3.arpa.gz", words, NULL, &lm, NULL, NULL, &err));
  if (spell) {
    wf_lexicon_options options;
    wf_lexicon_options_init(&options);
    options.merges = merges;
    assert_ok(wf_lexicon_spell(wf_lm_words(lm), table, &options, &lexicon, &err));
  }
  wf_graph_inputs parts;
  wf_graph_options options;
  wf_graph_inputs_init(&parts);
  wf_graph_options_init(&options);
  options.topology = topology;
  parts.lexicon = lexicon;
  parts.lm = lm;
  assert_ok(wf_graph_build(&parts, &options, result, &err));
  wf_lm_free(lm);
  wf_lexicon_free(lexicon);
  wf_symbols_free(words);
  wf_symbols_free(table);
}

/* Another toolkit built 61,636 states and 147,970 arcs from the same lexicon, LM and topology. */
static void test_size_of_a_real_graph(void **state) {
  wf_graph_result result;
  build_real("phone", COMPACT, false, NULL, &result);
  wf_fst_view view = wf_fst_get_view(result.graph);
  assert_in_range(view.num_states, 61636 * 95 / 100, 61636 * 1005 / 1000);
  assert_in_range(view.num_arcs, 147970 * 95 / 100, 147970 * 1005 / 1000);
  assert_int_equal(result.lm_words_missing.count, 0);
  wf_graph_result_clear(&result);
}

/* With spelling, the words of the LM are the lexicon. The graph is the same as with the lexicon
 * file, except for the names of words. */
static void test_real_graph_by_spelling(void **state) {
  static const struct {
    const char *kind, *merges;
  } kinds[] = {{"char", NULL}, {"bpe", CTC_DIR "bpe_merges.txt"}};
  for (size_t i = 0; i < 2; i++) {
    wf_graph_result read, spelled;
    build_real(kinds[i].kind, MINIMAL, false, NULL, &read);
    build_real(kinds[i].kind, MINIMAL, true, kinds[i].merges, &spelled);
    wf_fst_view a = wf_fst_get_view(read.graph), b = wf_fst_get_view(spelled.graph);
    assert_int_equal(a.num_states, b.num_states);
    assert_int_equal(a.num_arcs, b.num_arcs);
    assert_int_equal(spelled.lexicon_words_missing.count, 0);
    assert_int_equal(read.lexicon_words_missing.count, 719);
    wf_graph_result_clear(&read);
    wf_graph_result_clear(&spelled);
  }
}

static int free_tokens(void **state) {
  wf_symbols_free(g_tokens);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_against_direct_computation),
      cmocka_unit_test(test_push_even),
      cmocka_unit_test(test_grammar_fst),
      cmocka_unit_test(test_any_words),
      cmocka_unit_test(test_warning_of_words_in_another_case),
      cmocka_unit_test(test_limits_and_cancelling),
      cmocka_unit_test(test_size_of_a_real_graph),
      cmocka_unit_test(test_real_graph_by_spelling),
  };
  return cmocka_run_group_tests(tests, NULL, free_tokens);
}
