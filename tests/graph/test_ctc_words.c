/* test_ctc_words.c - CTC graphs decoded, compared with all frame strings.
 *
 * For a few frames the test lists every string of tokens and blanks, collapses it as CTC says (a
 * token that goes on is one token, a blank is none; Graves et al. 2006, section 3.1), spells words
 * with the lexicon and adds the costs of the language model. The decoder must find the least cost,
 * and its lattice that of each word sequence. The same holds for the graph that is composed with
 * the topology by hand, and for results of operations on the graph. */
#include "fst/fst.h"
#include "lattice_paths.h"
#include "search/decode_graph.h"

enum { NUM_TOKENS = 3, MAX_FRAMES = 5, NUM_WORDS = 3, MAX_PRONS = 5, MAX_FOUND = 400 };
enum { END = NUM_WORDS }; /* <s> as history, </s> as word */

static wf_error err;

/* --- lexicons and language models -------------------------------------------------------- */

struct pron {
  int word, labels[3], size;
  double cost;
};

struct world {
  struct pron prons[MAX_PRONS];
  int num_prons, blank; /* column */
  const char *blank_name;
  bool has_lm, failure;                                  /* has_lm: a bigram with back-off */
  double unigram[NUM_WORDS + 1], backoff[NUM_WORDS + 1]; /* log10 */
  double bigram[NUM_WORDS + 1][NUM_WORDS + 1];           /* +infinity: there is none */
  double extra[NUM_WORDS];                               /* of a filter that the graph has */
};

static const char *const names[] = {"X", "Y", "Z"};

static int label_of(const struct world *world, char token) {
  const int place = token == 'a' ? 0 : 1;
  return 1 + (place < world->blank ? place : place + 1);
}

static void random_world(test_rng *rng, struct world *world) {
  *world = (struct world){.num_prons = 3 + (int)test_below(rng, MAX_PRONS - 2),
                          .blank = (int)test_below(rng, NUM_TOKENS),
                          .blank_name = "<blk>",
                          .has_lm = test_below(rng, 2) == 0,
                          .failure = test_below(rng, 2) == 0};
  for (int i = 0; i < world->num_prons; i++) {
    struct pron *pron = &world->prons[i];
    pron->word = i < NUM_WORDS ? i : (int)test_below(rng, NUM_WORDS);
    pron->size = 1 + (int)test_below(rng, 3);
    for (int k = 0; k < pron->size; k++)
      pron->labels[k] = label_of(world, test_below(rng, 2) == 0 ? 'a' : 'b');
    pron->cost = -log((1 + test_below(rng, 4)) / 4.0);
  }
  for (int h = 0; h <= NUM_WORDS; h++) {
    world->unigram[h] = -(double)(1 + test_below(rng, 16)) / 8;
    world->backoff[h] = 0.25 - (double)test_below(rng, 10) / 8;
    for (int w = 0; w <= NUM_WORDS; w++)
      world->bigram[h][w] =
          test_below(rng, 3) == 0 ? -(double)(1 + test_below(rng, 16)) / 8 : (double)INFINITY;
  }
}

static double lm_cost(const struct world *world, int h, int w) {
  if (!world->has_lm) return -log(10) * world->unigram[w];
  const double backed_off = -log(10) * (world->backoff[h] + world->unigram[w]),
               own = -log(10) * world->bigram[h][w];
  if (world->bigram[h][w] == (double)INFINITY) return backed_off;
  return world->failure || own < backed_off ? own : backed_off;
}

/* --- all frame strings ------------------------------------------------------------------- */

struct found {
  char words[MAX_FRAMES + 1];
  double cost;
};
struct list {
  struct found items[MAX_FOUND];
  int count;
};

static void note(struct list *list, const char *words, double cost) {
  for (int i = 0; i < list->count; i++) {
    if (strcmp(list->items[i].words, words) != 0) continue;
    list->items[i].cost = fmin(list->items[i].cost, cost);
    return;
  }
  assert_true(list->count < MAX_FOUND);
  snprintf(list->items[list->count].words, sizeof list->items[0].words, "%s", words);
  list->items[list->count++].cost = cost;
}

static void spell(const struct world *world, const int *y, int size, char *words, int num_words,
                  double cost, struct list *list) {
  const int history = num_words > 0 ? words[num_words - 1] - '0' : END;
  if (size == 0) {
    words[num_words] = '\0';
    note(list, words, cost + lm_cost(world, history, END));
    return;
  }
  for (int i = 0; i < world->num_prons; i++) {
    const struct pron *pron = &world->prons[i];
    if (pron->size > size ||
        memcmp(pron->labels, y, (size_t)pron->size * sizeof *pron->labels) != 0)
      continue;
    words[num_words] = (char)('0' + pron->word);
    spell(world, y + pron->size, size - pron->size, words, num_words + 1,
          cost + pron->cost + world->extra[pron->word] + lm_cost(world, history, pron->word), list);
  }
}

static void list_all(const struct world *world, const float *scores, int frames,
                     struct list *list) {
  list->count = 0;
  for (int n = 0, total = (int)pow(NUM_TOKENS, frames); n < total; n++) {
    int y[MAX_FRAMES], size = 0, last = -1;
    char words[MAX_FRAMES + 1];
    double cost = 0;
    for (int t = 0, rest = n; t < frames; t++, rest /= NUM_TOKENS) {
      const int column = rest % NUM_TOKENS;
      cost -= (double)scores[t * NUM_TOKENS + column];
      if (column != last && column != world->blank) y[size++] = column + 1;
      last = column;
    }
    if (cost < (double)INFINITY) spell(world, y, size, words, 0, cost, list);
  }
}

/* --- graphs ------------------------------------------------------------------------------ */

static wf_symbols *tokens_of(const struct world *world) {
  wf_symbols *tokens;
  assert_ok(wf_symbols_create("tokens", &tokens, &err));
  for (int column = 0, next = 'a'; column < NUM_TOKENS; column++) {
    const char text[2] = {(char)next, '\0'};
    next += column != world->blank;
    assert_ok(wf_symbols_add(tokens, column == world->blank ? world->blank_name : text, column,
                             NULL, &err));
  }
  return tokens;
}

static wf_lexicon *lexicon_of(const struct world *world, const wf_symbols *tokens) {
  char text[1024];
  size_t used = 0;
  wf_lexicon_options options;
  wf_lexicon *lexicon;
  for (int i = 0; i < world->num_prons; i++) {
    const struct pron *pron = &world->prons[i];
    used += (size_t)snprintf(text + used, sizeof text - used, "%s %.9g", names[pron->word],
                             exp(-pron->cost));
    for (int k = 0; k < pron->size; k++)
      used += (size_t)snprintf(text + used, sizeof text - used, " %s",
                               wf_symbols_text(tokens, pron->labels[k] - 1));
    used += (size_t)snprintf(text + used, sizeof text - used, "\n");
  }
  wf_lexicon_options_init(&options);
  options.lexicon_format = 2;
  options.blank = world->blank_name;
  assert_ok(wf_lexicon_read_memory(text, used, "lexicon", tokens, &options, &lexicon, &err));
  return lexicon;
}

static wf_lm *lm_of(const struct world *world, const wf_symbols *words) {
  char text[8192];
  size_t used = 0;
  int num_bigrams = 0;
  wf_lm *lm;
  for (int h = 0; h <= NUM_WORDS; h++)
    for (int w = 0; w <= NUM_WORDS; w++) num_bigrams += world->bigram[h][w] != (double)INFINITY;
#define ADD(...) used += (size_t)snprintf(text + used, sizeof text - used, __VA_ARGS__)
  ADD("\\data\\\nngram 1=%d\nngram 2=%d\n\n\\1-grams:\n-99\t<s>\t%.6f\n%.6f\t</s>\n", NUM_WORDS + 2,
      num_bigrams, world->backoff[END], world->unigram[END]);
  for (int w = 0; w < NUM_WORDS; w++)
    ADD("%.6f\t%s\t%.6f\n", world->unigram[w], names[w], world->backoff[w]);
  ADD("\n\\2-grams:\n");
  for (int h = 0; h <= NUM_WORDS; h++)
    for (int w = 0; w <= NUM_WORDS; w++)
      if (world->bigram[h][w] != (double)INFINITY)
        ADD("%.6f\t%s %s\n", world->bigram[h][w], h < END ? names[h] : "<s>",
            w < END ? names[w] : "</s>");
  ADD("\n\\end\\\n");
#undef ADD
  assert_ok(wf_lm_open(test_write_file("lm.arpa", text, used), words, NULL, &lm, NULL, NULL, &err));
  return lm;
}

/* One state with an arc for each word of the lexicon. */
static wf_fst *loop_of(const wf_symbols *words, const double *costs, double end) {
  wf_builder *builder;
  wf_fst *fst;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, 1, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  assert_ok(wf_builder_set_final(builder, 0, (float)end, &err));
  for (int w = 0; w < NUM_WORDS; w++) {
    const int32_t label = (int32_t)wf_symbols_find(words, names[w]);
    assert_true(label > 0);
    assert_ok(wf_builder_add_arc(builder, 0, (wf_arc){0, (float)costs[w], label, label}, &err));
  }
  assert_ok(wf_builder_finish(builder, words, words, &fst, &err));
  wf_builder_free(builder);
  return fst;
}

static wf_fst *build(const struct world *world, int32_t topology) {
  wf_graph_inputs parts;
  wf_graph_options options;
  wf_graph_result result;
  wf_symbols *tokens = tokens_of(world), *words;
  wf_lexicon *lexicon = lexicon_of(world, tokens);
  double costs[NUM_WORDS];
  assert_ok(wf_lexicon_words(lexicon, &words, &err));
  wf_graph_inputs_init(&parts);
  wf_graph_options_init(&options);
  options.topology = topology;
  options.backoff = world->failure && world->has_lm;
  for (int w = 0; w < NUM_WORDS; w++) costs[w] = lm_cost(world, END, w);
  wf_lm *lm = world->has_lm ? lm_of(world, words) : NULL;
  wf_fst *grammar = world->has_lm ? NULL : loop_of(words, costs, lm_cost(world, END, END));
  parts.lexicon = lexicon;
  parts.lm = lm;
  parts.grammar = grammar;
  assert_ok(wf_graph_build(&parts, &options, &result, &err));
  wf_fst *graph = wf_fst_ref(result.graph);
  wf_graph_result_clear(&result);
  wf_fst_free(grammar);
  wf_lm_free(lm);
  wf_symbols_free(words);
  wf_lexicon_free(lexicon);
  wf_symbols_free(tokens);
  return graph;
}

/* --- the decoder ------------------------------------------------------------------------- */

/* Costs of all word sequences of the lattice. */
static void list_lattice(const wf_fst *fst, const wf_result *result, struct list *list) {
  test_lattice_paths paths = test_paths_of_raw(result->lattice, 100000);
  list->count = 0;
  for (size_t i = 0; i < paths.size; i++) {
    char words[MAX_FRAMES + 1];
    const test_lattice_path *path = &paths.paths[i];
    assert_true(path->num_words <= MAX_FRAMES);
    for (int w = 0; w < path->num_words; w++)
      words[w] = (char)('0' + wf_symbols_text(wf_fst_osymbols(fst), path->words[w])[0] - 'X');
    words[path->num_words] = '\0';
    note(list, words, path->graph + path->acoustic);
  }
  test_paths_free(&paths);
}

static void assert_same_lists(const struct list *want, const struct list *got, const char *what) {
  for (int i = 0; i < want->count; i++) {
    int k = 0;
    while (k < got->count && strcmp(got->items[k].words, want->items[i].words) != 0) k++;
    if (k == got->count)
      fail_msg("%s: words '%s' of cost %g are not in the lattice", what, want->items[i].words,
               want->items[i].cost);
    if (fabs(got->items[k].cost - want->items[i].cost) > 2e-3)
      fail_msg("%s: words '%s': cost %g, wanted %g", what, want->items[i].words, got->items[k].cost,
               want->items[i].cost);
  }
  assert_int_equal(want->count, got->count);
}

static void check_decoding(test_rng *rng, const struct world *world, const wf_fst *fst,
                           bool is_token_graph, const char *what, int *num_final) {
  static struct list want, got;
  float data[MAX_FRAMES * NUM_TOKENS];
  wf_graph *graph;
  wf_decoder *decoder;
  wf_decoder_options options;
  wf_result *result;
  double best = (double)INFINITY;
  const int frames = (int)test_below(rng, MAX_FRAMES + 1);
  for (int i = 0; i < MAX_FRAMES * NUM_TOKENS; i++)
    data[i] = test_below(rng, 12) == 0 ? -INFINITY : -(float)test_below(rng, 33) / 8;
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  if ((graph->ctc != NULL) != is_token_graph)
    fail_msg("%s: the graph is %s token graph", what, is_token_graph ? "no" : "a");
  wf_decoder_options_init(&options);
  options.beam = options.lattice_beam = 1e6f;
  options.max_active = options.max_tokens = 1000000;
  options.check_scores = 2;
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  const wf_scores scores = {
      .data = data, .num_frames = frames, .num_columns = NUM_TOKENS, .stride = NUM_TOKENS};
  assert_ok(test_decode(decoder, &scores, 1, NULL, &result, &err));
  assert_int_equal(result->status, WF_OK);
  list_all(world, data, frames, &want);
  for (int i = 0; i < want.count; i++) best = fmin(best, want.items[i].cost);
  if (((result->flags & WF_RESULT_NOT_FINAL) != 0) != (want.count == 0))
    fail_msg("%s: flags %u, but there are %d word sequences", what, result->flags, want.count);
  if (want.count > 0) {
    if (fabs(result->cost - best) > 2e-3)
      fail_msg("%s: cost %g, the best string has %g", what, result->cost, best);
    list_lattice(fst, result, &got);
    assert_same_lists(&want, &got, what);
  }
  *num_final += want.count > 0;
  wf_result_free(result);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
}

static void test_all_strings(void **state) {
  (void)state;
  const uint64_t seeds = 300;
  int num_final = 0;
  for (uint64_t seed = 1; seed <= test_seeds(seeds); seed++) {
    struct world world;
    test_rng rng = {seed};
    random_world(&rng, &world);
    if (seed % 3 == 0) world.blank_name = "nothing";
    wf_fst *graph = build(&world, seed % 2 == 0 ? 0 : 5);
    assert_int_equal(wf__fst_ctc_blank(graph), world.blank + 1);
    for (int round = 0; round < 4; round++)
      check_decoding(&rng, &world, graph, true, "the graph", &num_final);
    wf_fst_free(graph);
  }
  assert_true(test_many((uint64_t)num_final, 600, seeds));
}

/* --- the topology by hand, and operations ------------------------------------------------ */

static wf_fst *with_topology(const wf_fst *lg, int32_t blank) {
  wf_topology_options options;
  wf_fst *t, *bare, *sorted, *graph, *ordered;
  wf_topology_options_init(&options);
  options.type = 0;
  assert_ok(wf_ctc_topology(NUM_TOKENS, blank, &options, &t, &err));
  assert_ok(wf_fst_with_symbols(lg, NULL, wf_fst_osymbols(lg), &bare, &err));
  assert_ok(wf_arcsort(bare, NULL, &sorted, &err));
  assert_ok(wf_compose(t, sorted, NULL, &graph, &err));
  assert_ok(wf_epsilons_last(graph, &ordered, &err));
  wf_fst_free(t);
  wf_fst_free(bare);
  wf_fst_free(sorted);
  wf_fst_free(graph);
  return ordered;
}

static wf_fst *by_words(const wf_fst *lg) {
  wf_arcsort_options options;
  wf_fst *out;
  wf_arcsort_options_init(&options);
  options.sort_type = 1;
  assert_ok(wf_arcsort(lg, &options, &out, &err));
  return out;
}

static wf_fst *filtered(const wf_fst *lg, const double *costs) {
  wf_fst *filter = loop_of(wf_fst_osymbols(lg), costs, 0), *sorted, *out;
  sorted = by_words(lg);
  assert_ok(wf_compose(sorted, filter, NULL, &out, &err));
  wf_fst_free(filter);
  wf_fst_free(sorted);
  return out;
}

static const char *const operations[] = {"T o LG",   "LG o filter", "connect", "rmepsilon",
                                         "minimize", "push",        "prune",   "arcsort"};
enum { NUM_OPERATIONS = sizeof operations / sizeof *operations };

static wf_fst *operated(int operation, const wf_fst *lg, struct world *world) {
  wf_fst *out = NULL;
  wf_minimize_options minimize;
  wf_push_options push;
  wf_minimize_options_init(&minimize);
  wf_push_options_init(&push);
  switch (operation) {
    case 0: return with_topology(lg, world->blank);
    case 1:
      for (int w = 0; w < NUM_WORDS; w++) world->extra[w] = w / 2.0 - 0.25;
      return filtered(lg, world->extra);
    case 2: assert_ok(wf_connect(lg, &out, &err)); break;
    case 3: assert_ok(wf_rmepsilon(lg, NULL, &out, &err)); break;
    case 4:
      minimize.allow_nondet = true;
      assert_ok(wf_minimize(lg, &minimize, &out, &err));
      break;
    case 5:
      push.push_weights = true;
      assert_ok(wf_push(lg, &push, &out, &err));
      break;
    case 6: assert_ok(wf_prune(lg, NULL, &out, &err)); break;
    default: return by_words(lg);
  }
  return out;
}

static void test_operations(void **state) {
  (void)state;
  const uint64_t seeds = 300;
  int num_final = 0;
  for (uint64_t seed = 1; seed <= test_seeds(seeds); seed++) {
    struct world world;
    test_rng rng = {seed + 1000};
    const int operation = (int)(seed % NUM_OPERATIONS);
    random_world(&rng, &world);
    if (seed / NUM_OPERATIONS % 2 == 0) world.blank_name = "nothing";
    wf_fst *graph = build(&world, 5), *out = operated(operation, graph, &world);
    for (int round = 0; round < 4; round++)
      check_decoding(&rng, &world, out, operation != 0, operations[operation], &num_final);
    wf_fst_free(out);
    wf_fst_free(graph);
  }
  assert_true(test_many((uint64_t)num_final, 400, seeds));
}

/* --- the graph of tokens alone ----------------------------------------------------------- */

enum { CORRECT = 0, AUTO = 5 };

static wf_status make_tokens_graph(int32_t num_tokens, int32_t blank, int32_t topology,
                                   wf_fst **out) {
  wf_symbols *tokens;
  assert_ok(wf_symbols_create("tokens", &tokens, &err));
  for (int32_t column = 0; column < num_tokens; column++) {
    char text[16];
    snprintf(text, sizeof text, "t%d", (int)column);
    assert_ok(wf_symbols_add(tokens, column == blank ? "-" : text, column, NULL, &err));
  }
  const wf_status status = test_tokens_graph(tokens, "-", topology, out, &err);
  wf_symbols_free(tokens);
  return status;
}

static wf_result *decode(const wf_graph *graph, const float *data, int32_t num_tokens,
                         int64_t num_frames) {
  wf_decoder *decoder;
  wf_decoder_options options;
  wf_result *result;
  const wf_scores scores = {
      .data = data, .num_frames = num_frames, .num_columns = num_tokens, .stride = num_tokens};
  wf_decoder_options_init(&options);
  options.check_scores = 2;
  options.lattice_beam = 5;
  options.num_threads = 1;
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  assert_ok(test_decode(decoder, &scores, 1, NULL, &result, &err));
  assert_int_equal(result->status, WF_OK);
  wf_decoder_free(decoder);
  return result;
}

static wf_result *decode_fst(const wf_fst *fst, bool is_token_graph, const float *data,
                             int32_t num_tokens, int64_t num_frames) {
  wf_graph *graph;
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  assert_int_equal(graph->ctc != NULL, is_token_graph);
  assert_int_equal(wf_graph_min_columns(graph), num_tokens);
  wf_result *result = decode(graph, data, num_tokens, num_frames);
  wf_graph_free(graph);
  return result;
}

/* The same words as the topology `correct`, at the same cost. */
static void test_few_tokens(void **state) {
  (void)state;
  enum { FRAMES = 30, MOST = 6 };
  static float data[FRAMES * MOST];
  for (uint64_t seed = 1; seed <= 120; seed++) {
    test_rng rng = {seed};
    const int32_t num_tokens = 2 + (int32_t)(seed % (MOST - 1)),
                  blank = (int32_t)test_below(&rng, (uint32_t)num_tokens);
    wf_topology_options options;
    wf_fst *graph, *by_hand;
    for (int i = 0; i < FRAMES * num_tokens; i++) data[i] = -3 * test_unit(&rng);
    assert_ok(make_tokens_graph(num_tokens, blank, seed % 2 == 0 ? CORRECT : AUTO, &graph));
    wf_topology_options_init(&options);
    options.type = CORRECT;
    assert_ok(wf_ctc_topology(num_tokens, blank, &options, &by_hand, &err));
    wf_result *results[2] = {decode_fst(graph, true, data, num_tokens, FRAMES),
                             decode_fst(by_hand, false, data, num_tokens, FRAMES)};
    assert_int_equal(results[0]->flags, 0);
    assert_true(results[0]->cost == results[1]->cost);
    assert_int_equal(results[0]->num_words, results[1]->num_words);
    assert_true(results[0]->num_words > 0);
    for (size_t w = 0; w < results[0]->num_words; w++)
      assert_int_equal(results[0]->words[w].label, results[1]->words[w].label);
    for (int i = 0; i < 2; i++) wf_result_free(results[i]);
    wf_fst_free(graph);
    wf_fst_free(by_hand);
  }
  wf_fst *none;
  for (int32_t topology = CORRECT; topology <= AUTO; topology++) { /* only a blank: no words */
    assert_int_equal(make_tokens_graph(1, 0, topology, &none), WF_ERR_FORMAT);
    assert_null(none);
  }
}

/* One token a frame stands out. Tokens go on for several frames, come again with or without a
 * blank, and are from all parts of the table. */
static void check_many_tokens(int32_t num_tokens, bool is_token_graph) {
  enum { FRAMES = 24, FEW = 6 };
  test_rng rng = {(uint64_t)num_tokens};
  const int32_t blank = num_tokens / 3;
  const size_t size = FRAMES * (size_t)num_tokens;
  int32_t few[FEW] = {blank, 0, 1, num_tokens - 1, num_tokens / 2, blank + 1}, best[FRAMES],
          words[FRAMES];
  float *data = malloc(size * sizeof *data);
  size_t num_words = 0;
  wf_fst *fst;
  assert_non_null(data);
  for (size_t i = 0; i < size; i++) data[i] = -30 - 10 * test_unit(&rng);
  for (int t = 0; t < FRAMES; t++) {
    best[t] = few[test_below(&rng, FEW)];
    data[(size_t)t * (size_t)num_tokens + (size_t)best[t]] = -0.01f;
    if (best[t] != blank && (t == 0 || best[t] != best[t - 1])) words[num_words++] = best[t] + 1;
  }
  assert_ok(make_tokens_graph(num_tokens, blank, AUTO, &fst));
  wf_result *result = decode_fst(fst, is_token_graph, data, num_tokens, FRAMES);
  assert_int_equal(result->num_words, num_words);
  for (size_t w = 0; w < num_words; w++) assert_int_equal(result->words[w].label, words[w]);
  for (int t = 0; t < FRAMES; t++) assert_int_equal(result->alignment[t], best[t] + 1);
  assert_true(fabs(result->cost - FRAMES * 0.01) < 0.05);
  wf_result_free(result);
  wf_fst_free(fst);
  free(data);
}

static void test_many_tokens(void **state) {
  (void)state;
  wf_fst *fst;
  check_many_tokens(1000, true);
  check_many_tokens(65535, true); /* nearly 2^32 arcs */
  check_many_tokens(65536, false);
  check_many_tokens(70000, false);
  assert_int_equal(make_tokens_graph(70000, 0, CORRECT, &fst), WF_ERR_LIMIT);
  assert_null(fst);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_strings),
      cmocka_unit_test(test_operations),
      cmocka_unit_test(test_few_tokens),
      cmocka_unit_test(test_many_tokens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
