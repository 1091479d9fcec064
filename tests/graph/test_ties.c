/* test_ties.c - of paths of equal cost the one with fewer words wins, then the smaller label.
 *
 * Lexicons of a few short words, some pronounced alike, in a grammar without costs. Scores are small
 * whole numbers, so many cuts into words cost the same. Every frame string is listed and cut in
 * every way. */
#include "testing.h"

enum { NUM_TOKENS = 3, BLANK = 0, MAX_FRAMES = 6, NUM_WORDS = 7, MAX_PRON = 3 };

static wf_error err;

struct pron {
  int tokens[MAX_PRON], size;
};

/* What the best cost, and of the paths of that cost the fewest words are. */
struct best {
  double cost;
  int num_words;
};

static void cut(const struct pron *prons, const int *tokens, int size, int num_words, double cost,
                struct best *best) {
  if (size == 0 && (cost < best->cost || (cost == best->cost && num_words < best->num_words)))
    *best = (struct best){cost, num_words};
  for (int w = 0; w < NUM_WORDS; w++)
    if (prons[w].size <= size &&
        memcmp(prons[w].tokens, tokens, (size_t)prons[w].size * sizeof *tokens) == 0)
      cut(prons, tokens + prons[w].size, size - prons[w].size, num_words + 1, cost, best);
}

static struct best best_of(const struct pron *prons, const float *scores, int frames) {
  struct best best = {(double)INFINITY, 0};
  const int total = (int)pow(NUM_TOKENS, frames);
  for (int n = 0; n < total; n++) {
    int tokens[MAX_FRAMES], size = 0, last = BLANK;
    double cost = 0;
    for (int t = 0, rest = n; t < frames; t++, rest /= NUM_TOKENS) {
      const int column = rest % NUM_TOKENS;
      cost -= (double)scores[t * NUM_TOKENS + column];
      if (column != BLANK && column != last) tokens[size++] = column;
      last = column;
    }
    cut(prons, tokens, size, 0, cost, &best);
  }
  return best;
}

static wf_symbols *tokens_of(void) {
  wf_symbols *tokens;
  static const char *const names[NUM_TOKENS] = {"<blk>", "a", "b"};
  assert_ok(wf_symbols_create("tokens", &tokens, &err));
  for (int i = 0; i < NUM_TOKENS; i++) assert_ok(wf_symbols_add(tokens, names[i], i, NULL, &err));
  return tokens;
}

/* Words w0, w1, ... with the labels 1, 2, ..., which the lexicon has in this order or the other way
 * round. */
static wf_lexicon *random_lexicon(test_rng *rng, const wf_symbols *tokens, bool reversed,
                                  struct pron *prons) {
  char text[256];
  size_t used = 0;
  wf_lexicon *lexicon;
  for (int i = 0; i < NUM_WORDS; i++) {
    const int w = reversed ? NUM_WORDS - 1 - i : i;
    struct pron *pron = &prons[w];
    pron->size = w < 2 ? 1 : 1 + (int)test_below(rng, MAX_PRON);
    used += (size_t)snprintf(text + used, sizeof text - used, "w%d", w);
    for (int k = 0; k < pron->size; k++) {
      pron->tokens[k] = w < 2 ? 1 + w : 1 + (int)test_below(rng, 2);
      used += (size_t)snprintf(text + used, sizeof text - used, " %s",
                               wf_symbols_text(tokens, pron->tokens[k]));
    }
    used += (size_t)snprintf(text + used, sizeof text - used, "\n");
  }
  assert_ok(wf_lexicon_read_memory(text, used, "lexicon", tokens, NULL, &lexicon, &err));
  return lexicon;
}

static wf_fst *loop_of(const wf_symbols *words) {
  wf_builder *builder;
  wf_fst *fst;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, 1, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  assert_ok(wf_builder_set_final(builder, 0, 0, &err));
  for (int w = 1; w <= NUM_WORDS; w++)
    assert_ok(wf_builder_add_arc(builder, 0, (wf_arc){0, 0, w, w}, &err));
  assert_ok(wf_builder_finish(builder, words, words, &fst, &err));
  wf_builder_free(builder);
  return fst;
}

static wf_symbols *words_of(void) {
  wf_symbols *words;
  assert_ok(wf_symbols_create("words", &words, &err));
  assert_ok(wf_symbols_add(words, "<eps>", 0, NULL, &err));
  for (int w = 0; w < NUM_WORDS; w++) {
    char text[16];
    snprintf(text, sizeof text, "w%d", w);
    assert_ok(wf_symbols_add(words, text, w + 1, NULL, &err));
  }
  return words;
}

static wf_graph *graph_of(const wf_lexicon *lexicon) {
  wf_graph_inputs parts;
  wf_graph_result result;
  wf_symbols *words = words_of();
  wf_graph *graph;
  wf_fst *grammar = loop_of(words);
  wf_graph_inputs_init(&parts);
  parts.lexicon = lexicon;
  parts.grammar = grammar;
  assert_ok(wf_graph_build(&parts, NULL, &result, &err));
  assert_ok(wf_graph_create(result.graph, NULL, 0, &graph, &err));
  wf_graph_result_clear(&result);
  wf_fst_free(grammar);
  wf_symbols_free(words);
  return graph;
}

static bool sound_alike(const struct pron *one, const struct pron *other) {
  return one->size == other->size &&
         memcmp(one->tokens, other->tokens, (size_t)one->size * sizeof *one->tokens) == 0;
}

static void check_result(const struct pron *prons, const struct best *best, const wf_result *result,
                         uint64_t seed) {
  if (fabs(result->acoustic_cost - best->cost) > 1e-9 ||
      result->num_words != (size_t)best->num_words)
    fail_msg("seed %llu: %zu words of acoustic cost %g, wanted %d of %g", (unsigned long long)seed,
             result->num_words, result->acoustic_cost, best->num_words, best->cost);
  assert_true(result->graph_cost == best->num_words / 1024.0);
  for (size_t i = 0; i < result->num_words; i++)
    for (int w = 0; w + 1 < result->words[i].label; w++)
      if (sound_alike(&prons[w], &prons[result->words[i].label - 1]))
        fail_msg("seed %llu: word %d, which sounds like word %d", (unsigned long long)seed,
                 (int)result->words[i].label, w + 1);
}

static void test_ties(void **state) {
  (void)state;
  const uint64_t seeds = 400;
  wf_symbols *tokens = tokens_of();
  for (uint64_t seed = 1; seed <= test_seeds(seeds); seed++) {
    test_rng rng = {seed};
    struct pron prons[NUM_WORDS];
    float data[MAX_FRAMES * NUM_TOKENS];
    wf_decoder_options options;
    wf_decoder *decoder;
    wf_result *result;
    wf_lexicon *lexicon = random_lexicon(&rng, tokens, seed % 2 == 1, prons);
    wf_graph *graph = graph_of(lexicon);
    wf_decoder_options_init(&options);
    options.beam = 100;
    options.check_scores = 2;
    options.num_threads = 1;
    assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
    for (int frames = 1; frames <= MAX_FRAMES; frames++) {
      for (int i = 0; i < frames * NUM_TOKENS; i++) data[i] = -(float)test_below(&rng, 3);
      const wf_scores scores = {
          .data = data, .num_frames = frames, .num_columns = NUM_TOKENS, .stride = NUM_TOKENS};
      const struct best best = best_of(prons, data, frames);
      assert_ok(test_decode(decoder, &scores, 1, NULL, &result, &err));
      assert_int_equal(result->status, WF_OK);
      check_result(prons, &best, result, seed);
      wf_result_free(result);
    }
    wf_decoder_free(decoder);
    wf_graph_free(graph);
    wf_lexicon_free(lexicon);
  }
  wf_symbols_free(tokens);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_ties)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
