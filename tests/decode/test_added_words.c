/* test_added_words.c - words added at run time, compared with three static graphs. The first is the
 * graph that the library writes out (equal in every bit, lattices and streams included). In the
 * second, each place of a class has a chain of arcs for each phrase. The third has a grammar that
 * contains the words from the start. */
#include "lattice_paths.h"
#include "random_words.h"
#include "table_scorer.h"

static wf_error err;

/* --- graphs with a chain for each phrase ------------------------------------------------- */

/* Adds a chain for the phrase between two states, in the compact CTC topology of
 * docs/how-to/topologies.md. */
static void add_chain(wf_builder *builder, uint32_t from, uint32_t to, float weight,
                      const wf_added_phrase *phrase) {
  uint32_t at;
  assert_ok(wf_builder_add_states(builder, 1, &at, &err));
  assert_ok(wf_builder_add_arc(builder, from, (wf_arc){at, weight, 0, 0}, &err));
  for (size_t k = 0; k < phrase->num_words; k++)
    for (size_t l = 0; l < phrase->words[k].num_labels; l++) {
      int32_t label = phrase->words[k].labels[l];
      bool first = k == 0 && l == 0,
           last = k + 1 == phrase->num_words && l + 1 == phrase->words[k].num_labels;
      uint32_t state, after = to;
      assert_ok(wf_builder_add_states(builder, 1, &state, &err));
      assert_ok(wf_builder_add_arc(
          builder, at,
          (wf_arc){state, first ? phrase->cost : 0, label, l == 0 ? phrase->words[k].word : 0},
          &err));
      assert_ok(wf_builder_add_arc(builder, state, (wf_arc){state, 0, label, 0}, &err));
      if (!last) {
        assert_ok(wf_builder_add_states(builder, 1, &after, &err));
        assert_ok(wf_builder_add_arc(builder, after, (wf_arc){after, 0, 1, 0}, &err));
      }
      assert_ok(wf_builder_add_arc(builder, state, (wf_arc){after, 0, 0, 0}, &err));
      at = after;
    }
}

/* The graph with a chain for every phrase at every place. */
static wf_graph *with_chains(const wf_fst *fst, int32_t num_tokens, const struct phrases *phrases) {
  wf_fst_view view = wf_fst_get_view(fst);
  wf_builder *builder;
  wf_fst *out;
  wf_graph *graph;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, (uint32_t)view.start, &err));
  for (uint32_t s = 0; s < view.num_states; s++) {
    if (view.final_cost[s] != INFINITY)
      assert_ok(wf_builder_set_final(builder, s, view.final_cost[s], &err));
    for (uint64_t a = view.arc_off[s]; a < view.arc_off[s + 1]; a++) {
      const wf_arc *arc = &view.arcs[a];
      int32_t c = arc->ilabel - num_tokens - 1;
      if (c < 0) assert_ok(wf_builder_add_arc(builder, s, *arc, &err));
      for (size_t i = 0; c >= 0 && i < phrases[c].count; i++)
        add_chain(builder, s, arc->nextstate, arc->weight, &phrases[c].list[i]);
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  assert_ok(wf_graph_create(out, NULL, 0, &graph, &err));
  wf_builder_free(builder);
  wf_fst_free(out);
  return graph;
}

static wf_graph *written_out(const wf_graph *graph) {
  wf_fst *fst;
  wf_graph *out;
  assert_ok(wf_graph_to_fst(graph, &fst, &err));
  assert_ok(wf_graph_create(fst, NULL, 0, &out, &err));
  wf_fst_free(fst);
  return out;
}

/* --- equal to the written-out graph, bit for bit ----------------------------------------- */

static void assert_same(const wf_result *a, const wf_result *b) {
  test_assert_same_result(a, b);
  assert_string_equal(a->message, b->message);
  if (a->status != WF_OK) return;
  assert_int_equal(a->lattice != NULL, b->lattice != NULL);
  if (a->lattice != NULL) assert_true(test_same_raw(a->lattice, b->lattice));
}

/* Decodes in chunks on a stream that has decoded an utterance with the bare graph before. */
static wf_result *decode_stream(wf_decoder *decoder, const struct added_task *task,
                                const wf_scorer *scorer, test_rng *rng) {
  wf_stream *stream;
  wf_result *result;
  assert_ok(wf_stream_create(decoder, NULL, &stream, &err));
  assert_ok(wf_stream_set_scorer(stream, scorer, &err));
  assert_ok(wf_stream_advance(stream, &task->task.scores, NULL, &err));
  if (task->task.scores.num_frames > 0)
    assert_int_equal(wf_stream_set_graph(stream, task->with, &err), WF_ERR_STATE);
  assert_ok(wf_stream_finish(stream, &result, &err));
  wf_result_free(result);
  assert_ok(wf_stream_reset(stream, &err));
  if (test_below(rng, 2) == 0) /* an empty chunk makes the start's tokens, with the bare graph */
    assert_ok(wf_stream_advance(stream, &(wf_scores){0}, NULL, &err));
  assert_ok(wf_stream_set_graph(stream, task->with, &err));
  for (int64_t fed = 0; fed < task->task.scores.num_frames;) {
    wf_scores chunk = task->task.scores;
    int64_t left = chunk.num_frames - fed, size = test_below(rng, 4);
    wf_partial partial;
    chunk.data = (const float *)chunk.data + fed * chunk.stride;
    chunk.num_frames = size < left ? size : left;
    assert_ok(wf_stream_advance(stream, &chunk, NULL, &err));
    if (test_below(rng, 3) == 0)
      wf_stream_partial(stream, &partial, &err); /* partials change nothing */
    fed += chunk.num_frames;
  }
  assert_ok(wf_stream_finish(stream, &result, &err));
  wf_stream_free(stream);
  return result;
}

/* Gives the class <c> a spelling model in place of its words. */
static void add_spelling(struct added_task *task, test_rng *rng) {
  wf_graph_free(task->with);
  task->with = with_spelling(task->task.graph, "<c>", rng, task->num_tokens);
}

static void test_same_bits_as_written_out_graph(void **state) {
  (void)state;
  uint64_t tried = 0, said = 0, with_lattice = 0, scored = 0, bare_differs = 0, entered = 0;
  for (uint64_t seed = 1; seed <= test_seeds(4000); seed++) {
    struct added_task task;
    test_rng rng = {seed};
    if (!is_fitting(seed, &task)) {
      free_added(&task);
      continue;
    }
    oracle_scorer tables =
        test_random_tables(&rng, &(table_scorer_shape){3, 6, false, seed % 2 == 0, seed % 4 == 1});
    wf_scorer *scorer = seed % 5 == 0 ? test_table_scorer(&tables, seed % 2 == 0) : NULL;
    if (scorer == NULL && seed % 7 == 0) add_spelling(&task, &rng);
    wf_graph *all = written_out(task.with);
    wf_decoder *decoder, *whole;
    wf_result *expected, *results[2], *streamed;
    wf_scores twice[2] = {task.task.scores, task.task.scores};
    const wf_graph *graphs[2] = {task.with, NULL};
    const wf_scorer *scorers[2] = {scorer, scorer};
    assert_ok(wf_decoder_create(task.task.graph, &task.task.options, &decoder, &err));
    assert_ok(wf_decoder_create(all, &task.task.options, &whole, &err));
    assert_ok(test_decode_scored(whole, twice, scorers, 1, NULL, &expected, &err));
    assert_ok(test_decode_each(decoder, twice, scorers, graphs, 2, NULL, results, &err));
    assert_same(results[0], expected);
    streamed = decode_stream(decoder, &task, scorer, &rng);
    assert_same(streamed, expected);
    tried++;
    said += expected->num_words > 0;
    with_lattice += expected->lattice != NULL;
    scored += scorer != NULL;
    bare_differs += results[1]->status != expected->status || results[1]->cost != expected->cost ||
                    results[1]->num_tokens != expected->num_tokens;
    wf_fst_view view = wf_fst_get_view(wf_graph_fst(all)),
                base = wf_fst_get_view(wf_graph_fst(task.task.graph));
    entered += view.num_states > base.num_states + 2;
    wf_result_free(expected);
    wf_result_free(streamed);
    test_free_results(results, 2);
    wf_decoder_free(decoder);
    wf_decoder_free(whole);
    wf_graph_free(all);
    wf_scorer_free(scorer);
    test_free_tables(&tables);
    free_added(&task);
  }
  print_message(
      "%llu tasks, %llu with words, %llu with lattice, %llu scored; added words change %llu\n",
      (unsigned long long)tried, (unsigned long long)said, (unsigned long long)with_lattice,
      (unsigned long long)scored, (unsigned long long)bare_differs);
  assert_true(test_many(tried, 1000, 4000) && test_many(said, 300, 4000) &&
              test_many(with_lattice, 100, 4000) && test_many(scored, 200, 4000) &&
              test_many(bare_differs, 300, 4000) && test_many(entered, 500, 4000));
}

/* --- the same words as the graph with chains --------------------------------------------- */

static wf_result *decode_wide(const wf_graph *graph, const wf_scores *scores) {
  wf_decoder_options options;
  wf_decoder *decoder;
  wf_result *result;
  wf_decoder_options_init(&options);
  options.beam = 1000;
  options.num_threads = 1;
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  assert_ok(test_decode(decoder, scores, 1, NULL, &result, &err));
  wf_decoder_free(decoder);
  return result;
}

static bool has_words_of(const wf_result *a, const wf_result *b) {
  for (size_t i = 0; i < a->num_words && a->num_words == b->num_words; i++)
    if (a->words[i].label != b->words[i].label) return false;
  return a->num_words == b->num_words;
}

static void test_same_words_as_chains(void **state) {
  (void)state;
  uint64_t tried = 0, compared = 0, alike = 0;
  for (uint64_t seed = 1; seed <= test_seeds(3000); seed++) {
    struct added_task task;
    test_rng rng = {seed * 3};
    if (!is_fitting(seed, &task)) {
      free_added(&task);
      continue;
    }
    for (int64_t i = 0; i < task.task.scores.num_frames * task.task.scores.stride; i++)
      task.task.data[i] = -test_unit(&rng) * 5; /* distinct scores: ties would allow other words */
    wf_graph *chains = with_chains(task.fst, task.num_tokens, task.phrases);
    wf_result *expected = decode_wide(chains, &task.task.scores),
              *result = decode_wide(task.with, &task.task.scores);
    assert_int_equal(result->status, expected->status);
    assert_int_equal(result->flags, expected->flags);
    if (expected->flags == 0 &&
        expected->status ==
            WF_OK) { /* within a phrase its cost may or may not have been paid yet */
      assert_true(fabs(result->cost - expected->cost) < 1e-4);
      compared += expected->num_words > 0;
      alike += expected->num_words > 0 && has_words_of(result, expected);
    }
    tried++;
    wf_result_free(expected);
    wf_result_free(result);
    wf_graph_free(chains);
    free_added(&task);
  }
  print_message("%llu tasks, %llu with words and an end, the same words in %llu\n",
                (unsigned long long)tried, (unsigned long long)compared, (unsigned long long)alike);
  assert_true(test_many(compared, 200, 3000) &&
              alike * 10 > compared * 9); /* words that sound alike tie */
}

/* --- the same as words in the grammar ---------------------------------------------------- */

static wf_symbols *table_of(const char *text) {
  wf_symbols *table;
  assert_ok(wf_symbols_read(test_write_file("table.txt", text, strlen(text)), &table, &err));
  return table;
}

static wf_lexicon *lexicon_of(const char *text, const wf_symbols *tokens) {
  wf_lexicon *lexicon;
  assert_ok(wf_lexicon_read(test_write_file("lexicon.txt", text, strlen(text)), tokens, NULL,
                            &lexicon, &err));
  return lexicon;
}

static wf_status build(const wf_lexicon *lexicon, const wf_fst *grammar, const wf_symbols *words,
                       const char *classes, int32_t topology, wf_graph_result *out) {
  wf_graph_inputs parts;
  wf_graph_options options;
  wf_graph_inputs_init(&parts);
  wf_graph_options_init(&options);
  parts.lexicon = lexicon;
  parts.grammar = grammar;
  parts.words = words;
  options.classes = classes;
  options.topology = topology;
  return wf_graph_build(&parts, &options, out, &err);
}

enum { GO = 1, TO = 2, PLACE = 3, PARIS = 4, ROME = 5, AROMA = 6, COMPACT = 1, AUTO = 5 };

/* "go" and "to" with costs; <place> after "to" or at the start; then optionally "go" again. */
static const char *const class_grammar =
    "0 1 1 1 0.5;1 2 2 2 0.25;2 3 3 3 1;0 3 3 3 2;3 1 1 1 0.125;3 0.25;1 3";
/* The same with the three words instead of the class, at costs 0.5, 0 and 1. */
static const char *const word_grammar =
    "0 1 1 1 0.5;1 2 2 2 0.25;2 3 4 4 1.5;2 3 5 5 1;2 3 6 6 2;0 3 4 4 2.5;0 3 5 5 2;0 3 6 6 3;3 1 "
    "1 1 0.125;3 0.25;1 3";

static void check_against_grammar(int32_t topology, const char *place, uint64_t most_seeds) {
  char table[100];
  snprintf(table, sizeof table, "<eps> 0\ngo 1\nto 2\n%s 3\nparis 4\nrome 5\naroma 6\n#0 7\n",
           place);
  wf_symbols *tokens = table_of("<blk> 0\na 1\nr 2\no 3\nm 4\ng 5\n"), *words = table_of(table);
  wf_lexicon *some = lexicon_of("go g o\nto m o\n", tokens),
             *all =
                 lexicon_of("go g o\nto m o\nparis r a r\nrome r o m\naroma a r o m a\n", tokens);
  wf_fst *with_class = test_fst_of(WF_TROPICAL, class_grammar),
         *with_words = test_fst_of(WF_TROPICAL, word_grammar);
  wf_graph_result base, whole;
  wf_graph *graph, *added, *expected;
  assert_ok(build(some, with_class, words, place, topology, &base));
  assert_ok(build(all, with_words, words, NULL, topology, &whole));
  assert_ok(wf_graph_create(base.graph, NULL, 0, &graph, &err));
  assert_ok(wf_graph_create(whole.graph, NULL, 0, &expected, &err));
  assert_int_equal(wf_graph_num_classes(graph), 1);
  assert_string_equal(wf_graph_class(graph, 0), place);
  assert_null(wf_graph_class(graph, 1));
  const int32_t paris[] = {3, 2, 3}, rome[] = {3, 4, 5}, aroma[] = {2, 3, 4, 5, 2};
  const wf_spoken_word spoken[] = {{PARIS, paris, 3}, {ROME, rome, 3}, {AROMA, aroma, 5}};
  const wf_added_phrase phrases[] = {{&spoken[0], 1, 0.5f}, {&spoken[1], 1, 0}, {&spoken[2], 1, 1}};
  assert_ok(wf_graph_add_phrases(graph, place, phrases, 3, &added, &err));
  uint64_t with_place = 0;
  for (uint64_t seed = 1; seed <= most_seeds; seed++) {
    test_rng rng = {seed};
    float data[14 * 6];
    wf_scores scores = {data, 4 + test_below(&rng, 11), 6, 6};
    for (int64_t i = 0; i < scores.num_frames * 6; i++) data[i] = -test_unit(&rng) * 8;
    wf_result *a = decode_wide(added, &scores), *b = decode_wide(expected, &scores);
    assert_int_equal(a->flags, b->flags);
    assert_true(fabs(a->cost - b->cost) < 1e-4);
    assert_int_equal(a->num_words, b->num_words);
    for (size_t i = 0; i < a->num_words; i++)
      assert_int_equal(a->words[i].label, b->words[i].label);
    for (size_t i = 0; i < a->num_words; i++) with_place += a->words[i].label >= PARIS;
    wf_result *bare = decode_wide(graph, &scores);
    for (size_t i = 0; i < bare->num_words; i++) assert_true(bare->words[i].label < PLACE);
    wf_result_free(a);
    wf_result_free(b);
    wf_result_free(bare);
  }
  assert_true(test_many(with_place, most_seeds / 3, most_seeds));
  wf_graph_free(added);
  wf_graph_free(graph);
  wf_graph_free(expected);
  wf_graph_result_clear(&base);
  wf_graph_result_clear(&whole);
  wf_fst_free(with_class);
  wf_fst_free(with_words);
  wf_lexicon_free(some);
  wf_lexicon_free(all);
  wf_symbols_free(tokens);
  wf_symbols_free(words);
}

static void test_same_as_words_in_the_grammar(void **state) {
  (void)state;
  check_against_grammar(COMPACT, "<place>", test_seeds(300));
  check_against_grammar(AUTO, "<place>", test_seeds(300));
}

/* A class may have any name that a word may have. */
static void test_names_of_classes(void **state) {
  (void)state;
  static const char *const names[] = {"$PLACE",     "[PLACE]",  "place", "{place}",
                                      "#nonterm:x", "#<place>", "#1x",   "<"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    check_against_grammar(i % 2 == 0 ? AUTO : COMPACT, names[i], 30);
}

/* --- errors ------------------------------------------------------------------------------ */

static void assert_refused(wf_status status, wf_status expected, const char *says) {
  assert_int_equal(status, expected);
  if (strstr(err.message, says) == NULL) fail_msg("'%s' does not say '%s'", err.message, says);
}

static void test_build_errors(void **state) {
  (void)state;
  wf_symbols *tokens = table_of("<blk> 0\na 1\n"),
             *words = table_of("<eps> 0\ngo 1\nto 2\n<place> 3\n<other> 4\n#0 5\n");
  wf_lexicon *lexicon = lexicon_of("go a\n", tokens);
  wf_fst *grammar = test_fst_of(WF_TROPICAL, class_grammar);
  wf_graph_result made;
  assert_refused(build(lexicon, grammar, words, "<city>", COMPACT, &made), WF_ERR_ARGUMENT,
                 "class '<city>' is not in the word table");
  assert_refused(build(lexicon, grammar, words, "<place>,place", COMPACT, &made), WF_ERR_ARGUMENT,
                 "class 'place' is not in the word table");
  assert_refused(build(lexicon, grammar, words, "<place>,#0", COMPACT, &made), WF_ERR_ARGUMENT,
                 "is reserved");
  assert_refused(build(lexicon, grammar, words, "<place>,<place>", COMPACT, &made), WF_ERR_ARGUMENT,
                 "given twice");
  assert_refused(build(lexicon, grammar, words, "<place>,<other>", COMPACT, &made), WF_ERR_ARGUMENT,
                 "'<other>' is nowhere in the grammar");
  for (int32_t topology = 2; topology < 4; topology++)
    assert_refused(build(lexicon, grammar, words, "<place>", topology, &made), WF_ERR_UNSUPPORTED,
                   "need 'compact'");
  wf_fst_free(grammar);
  wf_lexicon_free(lexicon);
  wf_symbols_free(tokens);
  wf_symbols_free(words);
}

/* s --#<c>--> t with blank loops, and one place of <d>. */
static wf_graph *small_graph(const char *text, bool named) {
  wf_fst *fst = test_fst_of(WF_TROPICAL, text), *out;
  wf_symbols *table = label_table(3, false);
  wf_graph *graph;
  assert_ok(wf_fst_with_symbols(fst, named ? table : NULL, NULL, &out, &err));
  assert_ok(wf_graph_create(out, NULL, 0, &graph, &err));
  wf_fst_free(fst);
  wf_fst_free(out);
  wf_symbols_free(table);
  return graph;
}

static wf_status try_phrase(const wf_graph *graph, const char *word_class, wf_spoken_word word,
                            float cost) {
  wf_added_phrase phrase = {&word, 1, cost};
  wf_graph *out;
  wf_status status = wf_graph_add_phrases(graph, word_class, &phrase, 1, &out, &err);
  if (status != WF_OK) assert_null(out);
  wf_graph_free(out);
  return status;
}

static void test_errors(void **state) {
  (void)state;
  wf_graph *graph = small_graph("0 0 1 0 0;0 1 4 0 1;1 1 1 0 0;1 2 5 0 0;2 0", true),
           *plain = small_graph("0 0 1 0 0;0 1 2 1 1;1 0", false);
  wf_graph *one = small_graph("0 0 1 0 0;0 1 4 0 1;1 0", true),
           *loopless = small_graph("0 1 4 0 1;1 0", true);
  const int32_t labels[] = {2, 3, 2};
  wf_spoken_word good = {7, labels, 3};
  assert_ok(try_phrase(graph, "<c>", good, 0));
  assert_ok(try_phrase(one, "<c>", good, 0));
  assert_refused(try_phrase(plain, "<c>", good, 0), WF_ERR_ARGUMENT, "no place for added words");
  assert_refused(try_phrase(graph, NULL, good, 0), WF_ERR_ARGUMENT, "no class is given");
  assert_refused(try_phrase(graph, "<e>", good, 0), WF_ERR_ARGUMENT, "no class '<e>'");
  assert_refused(try_phrase(one, "<d>", good, 0), WF_ERR_ARGUMENT, "no path of the graph");
  assert_refused(try_phrase(loopless, "<c>", good, 0), WF_ERR_UNSUPPORTED, "compact and");
  assert_refused(try_phrase(graph, "<c>", good, NAN), WF_ERR_ARGUMENT, "cost");
  assert_refused(try_phrase(graph, "<c>", good, INFINITY), WF_ERR_ARGUMENT, "cost");
  assert_refused(try_phrase(graph, "<c>", (wf_spoken_word){0, labels, 3}, 0), WF_ERR_ARGUMENT,
                 "not a word label");
  assert_refused(try_phrase(graph, "<c>", (wf_spoken_word){7, labels, 0}, 0), WF_ERR_ARGUMENT,
                 "without a pronunciation");
  assert_refused(try_phrase(graph, "<c>", (wf_spoken_word){7, (const int32_t[]){1}, 1}, 0),
                 WF_ERR_ARGUMENT, "the blank in a pronunciation");
  assert_refused(try_phrase(graph, "<c>", (wf_spoken_word){7, (const int32_t[]){4}, 1}, 0),
                 WF_ERR_ARGUMENT, "label 4 is not a token");
  wf_added_phrase empty = {NULL, 0, 0};
  wf_graph *out, *again;
  assert_refused(wf_graph_add_phrases(graph, "<c>", &empty, 1, &out, &err), WF_ERR_ARGUMENT,
                 "no words");
  wf_added_phrase phrase = {&good, 1, 0};
  assert_ok(wf_graph_add_phrases(graph, "<c>", &phrase, 1, &out, &err));
  assert_refused(wf_graph_add_phrases(out, "<c>", &phrase, 1, &again, &err), WF_ERR_ARGUMENT,
                 "has words already");
  wf_decoder *decoder;
  wf_stream *stream;
  assert_ok(wf_decoder_create(one, NULL, &decoder, &err));
  assert_ok(wf_stream_create(decoder, NULL, &stream, &err));
  assert_refused(wf_stream_set_graph(stream, out, &err), WF_ERR_ARGUMENT, "its decoder's graph");
  wf_scores scores = {.num_columns = 3, .stride = 3};
  const wf_graph *graphs[] = {out};
  wf_result *result;
  assert_refused(test_decode_each(decoder, &scores, NULL, graphs, 1, NULL, &result, &err),
                 WF_ERR_ARGUMENT, "its decoder's graph");
  wf_stream_free(stream);
  wf_decoder_free(decoder);
  wf_graph_free(out);
  wf_graph_free(graph);
  wf_graph_free(plain);
  wf_graph_free(one);
  wf_graph_free(loopless);
}

/* The order in which the words of two classes are added does not matter. */
static void test_order_of_classes_does_not_matter(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 200; seed++) {
    test_rng rng = {seed};
    struct phrases a, b;
    random_phrases(&rng, 3, &a);
    random_phrases(&rng, 3, &b);
    wf_graph *graph =
        small_graph("0 0 1 0 0;0 1 4 0 1;1 1 1 0 0;1 2 5 0 0;2 2 1 0 0;2 0 4 0 0.5;2 0", true);
    wf_graph *first = with_phrases(graph, "<c>", &a), *second = with_phrases(graph, "<d>", &b),
             *ab = with_phrases(first, "<d>", &b), *ba = with_phrases(second, "<c>", &a);
    wf_fst *x, *y;
    bool equal;
    assert_ok(wf_graph_to_fst(ab, &x, &err));
    assert_ok(wf_graph_to_fst(ba, &y, &err));
    assert_ok(wf_equal(x, y, 0, &equal, &err));
    assert_true(equal);
    wf_fst_free(x);
    wf_fst_free(y);
    wf_graph_free(graph);
    wf_graph_free(first);
    wf_graph_free(second);
    wf_graph_free(ab);
    wf_graph_free(ba);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same_bits_as_written_out_graph),
      cmocka_unit_test(test_same_words_as_chains),
      cmocka_unit_test(test_same_as_words_in_the_grammar),
      cmocka_unit_test(test_names_of_classes),
      cmocka_unit_test(test_build_errors),
      cmocka_unit_test(test_errors),
      cmocka_unit_test(test_order_of_classes_does_not_matter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
