/* test_ngram_scorer.c - decoding with a large model on the fly, compared with decoding graphs into
 * which the model was composed. Random models on random graphs, and real speech with graphs of a
 * small and of the large model. */
#include "decode_tasks.h"
#include "lm/lm.h"
#include "lm_model.h"
#include "scorer/scorer.h"

/* --- the model as a transducer ----------------------------------------------------------- */

static void add_arc(wf_builder *builder, const wf_lm *lm, const wf_symbols *words, uint32_t state,
                    wf__wlm_arc arc) {
  wf_error err = {0};
  int64_t label = arc.word == lm->mapped->view.eos || arc.word == lm->mapped->view.bos
                      ? -1
                      : wf_symbols_find(words, wf_symbols_text(lm->words, arc.word));
  if (label > 0)
    assert_ok(wf_builder_add_arc(
        builder, state, (wf_arc){arc.next, arc.cost, (int32_t)label, (int32_t)label}, &err));
}

/* What is impossible stays so with a negative factor. */
static float scaled(float cost, float scale) { return cost == INFINITY ? cost : cost * scale; }

/* The states, arcs and failure arcs of the model, with the labels of `words`, read from the model's
 * arrays. */
static wf_fst *fst_of(const wf_lm *lm, const wf_symbols *words, int32_t phi, float scale) {
  wf_error err = {0};
  const wf__wlm_view *v = &lm->mapped->view;
  wf_builder *builder;
  wf_fst *fst, *sorted;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, v->num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, v->start, &err));
  for (uint32_t s = 0; s < v->num_states; s++) {
    uint64_t where = v->states[s].where, first = where & (WF__WLM_LARGE - 1),
             count = where >> (WF__WLM_FIRST_BITS + 1), end = first + count;
    bool large = (where & WF__WLM_LARGE) != 0;
    if (large) {
      uint64_t last = wf__wlm_head(&v->buckets[end - 1]);
      first = wf__wlm_head(&v->buckets[first]) & (((uint64_t)1 << WF__WLM_BASE_BITS) - 1);
      end = (last & (((uint64_t)1 << WF__WLM_BASE_BITS) - 1)) + (last >> WF__WLM_BASE_BITS & 15);
    }
    for (uint64_t i = first; i < end; i++) {
      wf__wlm_arc arc = wf__wlm_arc_at(v, large ? v->large : v->small, i);
      arc.cost = scaled(arc.cost, scale);
      add_arc(builder, lm, words, s, arc);
    }
    for (uint32_t w = 0; w < v->num_words && s == 0; w++)
      if (wf__wlm_knows(v, w))
        add_arc(builder, lm, words, 0,
                (wf__wlm_arc){w, scaled(v->unigrams[w].cost, scale), v->unigrams[w].next});
    if (s > 0)
      assert_ok(wf_builder_add_arc(
          builder, s,
          (wf_arc){v->states[s].backoff, scaled(v->states[s].backoff_cost, scale), phi, 0}, &err));
    assert_ok(wf_builder_set_final(builder, s, scaled(wf_lm_final(lm, s, NULL), scale), &err));
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  assert_ok(wf_arcsort(fst, NULL, &sorted, &err));
  wf_fst_free(fst);
  return sorted;
}

/* The library's acceptor of the model, with the labels of `words`. */
static wf_fst *acceptor_of(const wf_lm *lm, const wf_symbols *words, int32_t phi) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *own, *fst, *sorted;
  wf_lm_fst_options options;
  wf_lm_fst_options_init(&options);
  options.backoff = 1;
  options.backoff_label = (int32_t)wf_symbols_next_key(wf_lm_words(lm));
  assert_ok(wf_lm_to_fst(lm, &options, &own, &err));
  const wf_fst_view v = wf_fst_get_view(own);
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, v.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, (uint32_t)v.start, &err));
  for (uint32_t s = 0; s < v.num_states; s++) {
    assert_ok(wf_builder_set_final(builder, s, v.final_cost[s], &err));
    for (uint64_t a = v.arc_off[s]; a < v.arc_off[s + 1]; a++) {
      wf_arc arc = v.arcs[a];
      const bool backs_off = arc.ilabel == options.backoff_label;
      const int64_t label =
          backs_off ? phi : wf_symbols_find(words, wf_symbols_text(wf_lm_words(lm), arc.ilabel));
      arc.ilabel = (int32_t)label;
      arc.olabel = backs_off ? 0 : (int32_t)label;
      if (label > 0) assert_ok(wf_builder_add_arc(builder, s, arc, &err));
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  wf_fst_free(own);
  assert_ok(wf_arcsort(fst, NULL, &sorted, &err));
  wf_fst_free(fst);
  return sorted;
}

static wf_graph *compose_graph(const wf_fst *graph, const wf_lm *lm, const wf_symbols *words,
                               float scale) {
  wf_error err = {0};
  wf_compose_options options;
  wf_compose_options_init(&options);
  options.phi_label = (int32_t)wf_symbols_next_key(words);
  wf_fst *acceptor, *fst, *ordered;
  if (scale == 1)
    acceptor = acceptor_of(lm, words, options.phi_label);
  else
    acceptor = fst_of(lm, words, options.phi_label, scale);
  wf_graph *out = NULL;
  assert_ok(wf_compose(graph, acceptor, &options, &fst, &err));
  if (wf_fst_get_view(fst).start >= 0) {
    assert_ok(wf_epsilons_last(fst, &ordered, &err));
    wf_status status = wf_graph_create(ordered, NULL, 0, &out,
                                       &err); /* word costs may make an epsilon cycle negative */
    assert_true(status == WF_OK || status == WF_ERR_NEGATIVE_CYCLE);
    wf_fst_free(ordered);
  }
  wf_fst_free(fst);
  wf_fst_free(acceptor);
  return out;
}

static wf_lm *built(const char *arpa, const char *small, wf_lm_convert_options *options) {
  wf_error err = {0};
  wf_lm *lm;
  const char *out = test_temp_path("model.wlm");
  options->subtract = small;
  assert_ok(wf_lm_convert(arpa, out, NULL, options, NULL, NULL, NULL, &err));
  assert_ok(wf_lm_open_mapped(out, &lm, &err));
  remove(out);
  return lm;
}

/* --- random graphs and models ------------------------------------------------------------ */

/* Labels 1 .. 5 are words of the models. The word `e` is in a few models only. */
static wf_symbols *random_words(void) {
  wf_error err = {0};
  wf_symbols *words;
  static const char *const texts[] = {"<eps>", "c", "a", "d", "b", "e"};
  assert_ok(wf_symbols_create("words", &words, &err));
  for (int64_t i = 0; i < 6; i++) assert_ok(wf_symbols_add(words, texts[i], i, NULL, &err));
  return words;
}

static void test_random_against_composed_graph(void **unused) {
  (void)unused;
  uint64_t compared = 0, worded = 0, differences = 0;
  wf_symbols *words = random_words();
  for (uint64_t seed = 1; seed <= test_seeds(350); seed++) {
    wf_error err = {0};
    test_rng rng = {seed};
    static model large, small;
    make_model(&large, &rng, false);
    do make_model(&small, &rng, false);
    while (small.order > large.order);
    char arpa[512], small_arpa[512];
    const char *text = model_text(&large, &rng);
    snprintf(arpa, sizeof arpa, "%s", test_write_file("large.arpa", text, strlen(text)));
    text = model_text(&small, &rng);
    snprintf(small_arpa, sizeof small_arpa, "%s",
             test_write_file("small.arpa", text, strlen(text)));
    wf_lm_convert_options options;
    wf_lm_convert_options_init(&options);
    options.pack = seed % 3 == 0;
    wf_lm *lm = built(arpa, seed % 2 == 0 ? small_arpa : NULL, &options);
    remove(arpa);
    remove(small_arpa);
    struct decode_task task = test_random_task(seed); /* its words are 1 .. 4 */
    task.options.beam = 1e6f;
    task.options.max_active = task.options.max_tokens =
        20000; /* more than occur; tables of a million tokens would take ten times the time of the
                  search */
    float scale = seed % 5 == 0 ? 0.5f : seed % 7 == 0 ? -0.25f : 1;
    wf_ngram_scorer_options scorer_options;
    wf_ngram_scorer_options_init(&scorer_options);
    scorer_options.lm_scale = scale;
    wf_scorer *scorer;
    wf_status status = wf_scorer_from_lm(lm, words, &scorer_options, &scorer, &err);
    if (status == WF_OK) {
      wf_decoder *decoder;
      wf_result *result, *expected = NULL;
      assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
      assert_ok(wf_decoder_set_scorer(decoder, scorer, &err));
      assert_ok(test_decode(decoder, &task.scores, 1, NULL, &result, &err));
      struct decode_task whole = task;
      whole.graph = large.has_unk ? NULL
                                  : compose_graph(wf_graph_fst(task.graph), lm, words,
                                                  scale); /* <unk> has no label to compose with */
      if (whole.graph != NULL) expected = test_decode_alone(&whole);
      if (expected != NULL && expected->status == WF_OK && result->status == WF_OK) {
        bool final = !(result->flags & WF_RESULT_NOT_FINAL);
        assert_int_equal(final, !(expected->flags & WF_RESULT_NOT_FINAL));
        if (final && fabs(result->cost - expected->cost) > 1e-4)
          fail_msg("seed %llu: cost %.9g, of the composed graph %.9g", (unsigned long long)seed,
                   result->cost, expected->cost);
        compared += final;
        worded += final && result->num_words > 1;
        differences += final && seed % 2 == 0 && result->scorer_cost != 0;
      }
      wf_result_free(result);
      wf_result_free(expected);
      wf_graph_free(whole.graph);
      wf_decoder_free(decoder);
      wf_scorer_free(scorer);
    }
    test_free_task(&task);
    wf_lm_free(lm);
  }
  wf_symbols_free(words);
  if (!(test_many(compared, 30, 350) && test_many(worded, 15, 350) &&
        test_many(differences, 8, 350)))
    fail_msg("%llu compared, %llu with words, %llu with differences", (unsigned long long)compared,
             (unsigned long long)worded, (unsigned long long)differences);
}

/* --- real speech: examples/ctc ----------------------------------------------------------- */

#define CTC WARPFST_SOURCE_DIR "/examples/ctc"

static wf_graph_result ctc_graph(const wf_lm *lm, const wf_lexicon *lexicon) {
  wf_error err = {0};
  wf_graph_options options;
  wf_graph_inputs parts;
  wf_graph_result result;
  wf_graph_options_init(&options);
  options.backoff = 1; /* failure: the model exactly */
  wf_graph_inputs_init(&parts);
  parts.lexicon = lexicon;
  parts.lm = lm;
  assert_ok(wf_graph_build(&parts, &options, &result, &err));
  return result;
}

enum { UTTERANCES = 6 };

static void read_scores(wf_matrix *matrices, wf_scores *scores) {
  wf_error err = {0};
  wf_score_reader *reader;
  const char *source = CTC "/logp_phone";
  assert_ok(wf_score_reader_open(&source, 1, NULL, &reader, &err));
  for (int i = 0; i < UTTERANCES; i++) {
    bool done;
    assert_ok(wf_score_reader_next(reader, &matrices[i], &done, &err));
    scores[i] = (wf_scores){.data = matrices[i].data,
                            .num_frames = matrices[i].num_frames,
                            .num_columns = matrices[i].num_columns,
                            .stride = matrices[i].num_columns};
  }
  wf_score_reader_free(reader);
}

static void decode(const wf_graph *graph, const wf_scorer *scorer, const wf_scores *scores,
                   float lattice_beam, wf_result **results) {
  wf_error err = {0};
  wf_decoder *decoder;
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  options.beam = 16;
  options.max_active = options.max_tokens =
      200000; /* more than occur; test_real_speech checks the flags */
  options.acoustic_scale = 0.7f;
  options.num_threads = 1;
  options.lattice_beam = lattice_beam;
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  assert_ok(wf_decoder_set_scorer(decoder, scorer, &err));
  assert_ok(test_decode(decoder, scores, UTTERANCES, NULL, results, &err));
  wf_decoder_free(decoder);
}

/* --- lattices: old and new costs kept separate ------------------------------------------- */

struct parts {
  double total, graph, acoustic, scorer;
};

static void take_better(struct parts *to, const struct parts *from, double graph, double acoustic,
                        double scorer) {
  double total = from->total + graph + acoustic + scorer;
  if (total < to->total)
    *to = (struct parts){total, from->graph + graph, from->acoustic + acoustic,
                         from->scorer + scorer};
}

/* Costs of the best path of a raw lattice with these words. best[s * (size + 1) + k] is the best
 * path to state s with the first k words. */
static struct parts best_of_words(wf_lattice_view raw, const int32_t *words, size_t size) {
  struct parts *best = malloc(raw.num_states * (size + 1) * sizeof *best),
               out = {.total = INFINITY};
  for (size_t i = 0; i < raw.num_states * (size + 1); i++)
    best[i] = (struct parts){.total = INFINITY};
  best[0] = (struct parts){0};
  for (uint64_t s = 0; s < raw.num_states; s++)
    for (size_t k = 0; k <= size; k++) {
      const struct parts *here = &best[s * (size + 1) + k];
      if (here->total == INFINITY) continue;
      if (k == size && raw.final_graph_cost[s] != INFINITY)
        take_better(&out, here, (double)raw.final_graph_cost[s], (double)raw.final_acoustic_cost[s],
                    (double)raw.final_scorer_cost[s]);
      for (uint64_t a = raw.arc_off[s]; a < raw.arc_off[s + 1]; a++) {
        const wf_lattice_arc *arc = &raw.arcs[a];
        if (arc->olabel != 0 && (k == size || words[k] != arc->olabel)) continue;
        take_better(&best[(uint64_t)arc->nextstate * (size + 1) + k + (arc->olabel != 0)], here,
                    (double)arc->graph_cost, (double)arc->acoustic_cost, (double)arc->scorer_cost);
      }
    }
  free(best);
  return out;
}

/* Costs of the single path of a deterministic compact lattice with these words. */
static struct parts parts_of_words(wf_compact_lattice_view lattice, const wf_scorer_costs *costs,
                                   const int32_t *words, size_t size) {
  struct parts out = {0};
  uint64_t state = 0;
  for (size_t k = 0; k < size; k++) {
    uint64_t a = lattice.arc_off[state];
    while (a < lattice.arc_off[state + 1] && lattice.arcs[a].word != words[k]) a++;
    assert_true(a < lattice.arc_off[state + 1]);
    out.graph += (double)lattice.arcs[a].weight.graph_cost - (double)costs->arcs[a];
    out.acoustic += (double)lattice.arcs[a].weight.acoustic_cost;
    out.scorer += (double)costs->arcs[a];
    state = (uint64_t)lattice.arcs[a].nextstate;
  }
  assert_true(lattice.finals[state].graph_cost != INFINITY);
  out.graph += (double)lattice.finals[state].graph_cost - (double)costs->finals[state];
  out.acoustic += (double)lattice.finals[state].acoustic_cost;
  out.scorer += (double)costs->finals[state];
  return out;
}

/* The model's cost of a sentence. */
static double model_cost(const wf_lm *lm, const wf_symbols *words, const int32_t *labels,
                         size_t size) {
  uint32_t state = wf_lm_start(lm);
  double sum = 0;
  for (size_t k = 0; k < size; k++)
    sum += (double)wf_lm_step(
        lm, state, (int32_t)wf_symbols_find(wf_lm_words(lm), wf_symbols_text(words, labels[k])),
        &state, NULL);
  return sum + (double)wf_lm_final(lm, state, NULL);
}

static void check_lattice(const wf_lattice *raw, const wf_lm *lm, const wf_scorer *scorer,
                          const wf_symbols *words, int *compared) {
  wf_error err = {0};
  wf_determinized made;
  wf_compact_lattice *split;
  wf_scorer_costs costs;
  wf_nbest *nbest;
  assert_ok(wf_lattice_determinize(raw, NULL, NULL, &made, &err));
  assert_ok(wf_compact_lattice_scorer_costs(made.lattice, scorer, 1000000, &split, &costs, &err));
  assert_ok(wf_compact_lattice_nbest(made.lattice, 40, &nbest, &err));
  for (size_t i = 0; i < wf_nbest_count(nbest); i++) {
    wf_lattice_path path = wf_nbest_at(nbest, i);
    struct parts want = best_of_words(wf_lattice_get_view(raw), path.words, path.num_words),
                 have = parts_of_words(wf_compact_lattice_get_view(split), &costs, path.words,
                                       path.num_words);
    if (fabs(have.graph - want.graph) > 2e-3 || fabs(have.acoustic - want.acoustic) > 2e-3 ||
        fabs(have.scorer - want.scorer) > 2e-3)
      fail_msg("path %zu: %g %g %g, in the raw lattice %g %g %g", i, have.graph, have.acoustic,
               have.scorer, want.graph, want.acoustic, want.scorer);
    assert_true(fabs(have.scorer - model_cost(lm, words, path.words, path.num_words)) < 2e-3);
    ++*compared;
  }
  wf_nbest_free(nbest);
  wf_scorer_costs_clear(&costs);
  wf_compact_lattice_free(split);
  wf_compact_lattice_free(made.lattice);
}

static void assert_same_words(wf_result **a, const wf_symbols *a_words, wf_result **b,
                              const wf_symbols *b_words, const char *what) {
  for (int i = 0; i < UTTERANCES; i++) {
    assert_true(a[i]->status == WF_OK && b[i]->status == WF_OK && a[i]->flags == 0 &&
                b[i]->flags == 0);
    if (fabs(a[i]->cost - b[i]->cost) > 1e-4)
      fail_msg("%s, utterance %d: cost %.9g, %.9g", what, i, a[i]->cost, b[i]->cost);
    assert_int_equal(a[i]->num_words, b[i]->num_words);
    for (size_t w = 0; w < a[i]->num_words; w++)
      assert_string_equal(wf_symbols_text(a_words, a[i]->words[w].label),
                          wf_symbols_text(b_words, b[i]->words[w].label));
  }
}

/* Prunes `from` to so many n-grams and reads it back from a file, so that values are rounded as in
 * the file. The path goes to `path`. */
static wf_lm *pruned(const wf_lm *from, const char *max_ngrams, const char *name, char path[512]) {
  wf_error err = {0};
  wf_lm *some, *out;
  wf_lm_prune_options prune;
  wf_lm_prune_options_init(&prune);
  prune.max_ngrams = max_ngrams;
  assert_ok(wf_lm_prune(from, NULL, &prune, &some, NULL, NULL, &err));
  snprintf(path, 512, "%s", test_temp_path(name));
  assert_ok(wf_lm_write_arpa(some, path, &err));
  wf_lm_free(some);
  assert_ok(wf_lm_open(path, NULL, NULL, &out, NULL, NULL, &err));
  return out;
}

/* Three decoders give the same words at the same costs: the graph of a pruned model with the
 * difference on the fly, that graph with the difference composed in, and the graph of the large
 * model. */
static void test_real_speech(void **unused) {
  (void)unused;
  wf_error err = {0};
  wf_lm *whole;
  char large_arpa[512], small_arpa[512];
  wf_symbols *tokens;
  wf_lexicon *lexicon;
  assert_ok(wf_lm_open(CTC "/lm3.arpa.gz", NULL, NULL, &whole, NULL, NULL, &err));
  wf_lm *large = pruned(whole, "4000,2000", "large.arpa", large_arpa),
        *small = pruned(whole, "1000,0", "small.arpa", small_arpa);
  wf_lm_free(whole);
  assert_ok(wf_symbols_read(CTC "/tokens_phone.txt", &tokens, &err));
  assert_ok(wf_lexicon_read(CTC "/lexicon_phone.txt", tokens, NULL, &lexicon, &err));
  wf_graph_result of_small = ctc_graph(small, lexicon), of_large = ctc_graph(large, lexicon);
  wf_graph *small_graph, *large_graph;
  assert_ok(wf_graph_create(of_small.graph, NULL, 0, &small_graph, &err));
  assert_ok(wf_graph_create(of_large.graph, NULL, 0, &large_graph, &err));
  wf_lm_convert_options options;
  wf_lm_convert_options_init(&options);
  wf_lm *difference = built(large_arpa, small_arpa, &options);
  wf_scorer *scorer;
  assert_ok(wf_scorer_from_lm(difference, of_small.words, NULL, &scorer, &err));
  wf_graph *composed = compose_graph(of_small.graph, difference, of_small.words, 1);
  wf_matrix matrices[UTTERANCES] = {{0}};
  wf_scores scores[UTTERANCES];
  wf_result *plain[UTTERANCES], *on_the_fly[UTTERANCES], *static_difference[UTTERANCES],
      *static_large[UTTERANCES];
  read_scores(matrices, scores);
  decode(small_graph, NULL, scores, 0, plain);
  decode(small_graph, scorer, scores, 6, on_the_fly);
  decode(composed, NULL, scores, 0, static_difference);
  decode(large_graph, NULL, scores, 0, static_large);
  assert_same_words(on_the_fly, of_small.words, static_difference, of_small.words,
                    "composed difference");
  assert_same_words(on_the_fly, of_small.words, static_large, of_large.words,
                    "graph of the large model");
  int changed = 0, compared = 0;
  for (int i = 0; i < UTTERANCES; i++)
    check_lattice(on_the_fly[i]->lattice, difference, scorer, of_small.words, &compared);
  assert_true(compared > UTTERANCES);
  for (int i = 0; i < UTTERANCES; i++) changed += fabs(plain[i]->cost - on_the_fly[i]->cost) > 0.1;
  assert_true(changed > UTTERANCES / 2);
  test_free_results(plain, UTTERANCES);
  test_free_results(on_the_fly, UTTERANCES);
  test_free_results(static_difference, UTTERANCES);
  test_free_results(static_large, UTTERANCES);
  for (int i = 0; i < UTTERANCES; i++) wf_matrix_clear(&matrices[i]);
  wf_scorer_free(scorer);
  wf_lm_free(difference);
  wf_graph_free(composed);
  wf_graph_free(small_graph);
  wf_graph_free(large_graph);
  wf_graph_result_clear(&of_small);
  wf_graph_result_clear(&of_large);
  wf_lexicon_free(lexicon);
  wf_symbols_free(tokens);
  wf_lm_free(small);
  wf_lm_free(large);
}

/* --- many tokens from one state ------------------------------------------------------------ */

enum {
  MANY = 60
}; /* tokens: the search sorts the arcs of a state that has so many (search/frame/hub.h) */

/* A random bigram model over the tokens t1, t2, ... */
static wf_lm *random_token_model(test_rng *rng) {
  wf_error err = {0};
  static char text[32768];
  char path[512];
  int used = snprintf(text, sizeof text,
                      "\\data\\\nngram 1=%d\nngram 2=%d\n\n\\1-grams:\n-99\t<s>\t-0.2\n-2\t</s>\n",
                      MANY + 2, 4 * MANY);
  for (int t = 1; t <= MANY; t++)
    used += snprintf(text + used, sizeof text - (size_t)used, "-%u.%u\tt%d\t-0.%u\n",
                     test_below(rng, 4), 1 + test_below(rng, 9), t, 1 + test_below(rng, 9));
  used += snprintf(text + used, sizeof text - (size_t)used, "\n\\2-grams:\n");
  for (int t = 1; t <= MANY; t++)
    for (uint32_t k = 0; k < 4; k++)
      used += snprintf(text + used, sizeof text - (size_t)used, "-0.%u\tt%d\tt%u\n",
                       1 + test_below(rng, 9), t, 1 + 15 * k + test_below(rng, 15));
  used += snprintf(text + used, sizeof text - (size_t)used, "\n\\end\\\n");
  snprintf(path, sizeof path, "%s", test_write_file("tokens.arpa", text, (size_t)used));
  wf_lm *lm;
  const char *out = test_write_file("tokens.wlm", "", 0);
  assert_ok(wf_lm_convert(path, out, NULL, NULL, NULL, NULL, NULL, &err));
  assert_ok(wf_lm_open_mapped(out, &lm, &err));
  return lm;
}

static wf_graph *graph_of_tokens(void) {
  wf_error err = {0};
  wf_symbols *tokens;
  wf_fst *fst;
  wf_graph *graph;
  char name[16];
  assert_ok(wf_symbols_create("tokens", &tokens, &err));
  assert_ok(wf_symbols_add(tokens, "<blk>", 0, NULL, &err));
  for (int t = 1; t <= MANY; t++) {
    snprintf(name, sizeof name, "t%d", t);
    assert_ok(wf_symbols_add(tokens, name, t, NULL, &err));
  }
  assert_ok(test_tokens_graph(tokens, NULL, WF_TOPOLOGY_AUTO, &fst, &err));
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  wf_fst_free(fst);
  wf_symbols_free(tokens);
  return graph;
}

static wf_result *decode_tokens(const struct decode_task *task, const wf_scorer *scorer) {
  wf_error err = {0};
  wf_decoder *decoder;
  wf_result *result;
  assert_ok(wf_decoder_create(task->graph, &task->options, &decoder, &err));
  assert_ok(wf_decoder_set_scorer(decoder, scorer, &err));
  assert_ok(test_decode(decoder, &task->scores, 1, NULL, &result, &err));
  assert_int_equal(result->status, WF_OK);
  wf_decoder_free(decoder);
  return result;
}

/* Least costs of words only save time. A scorer that hides them gives the same bits: with it, no
 * arc is passed over before it is scored. */
static void test_least_costs_change_nothing(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {5};
  struct decode_task task = {.graph = graph_of_tokens()};
  static float scores[40 * (MANY + 1)];
  uint64_t pruned = 0, widened = 0;
  for (int i = 0; i < 60; i++) {
    wf_lm *lm = random_token_model(&rng);
    wf_scorer *scorers[2];
    wf_result *results[2];
    task.scores =
        (wf_scores){.data = scores, .num_frames = 40, .num_columns = MANY + 1, .stride = MANY + 1};
    for (int k = 0; k < 40 * (MANY + 1); k++)
      scores[k] = -(float)test_below(&rng, i % 2 == 0 ? 64 : 12) / 4;
    wf_decoder_options_init(&task.options);
    task.options.beam = (float)(1 + i % 5) * 1.5f;
    task.options.min_active = (int32_t[]){0, 20, 200}[i % 3];
    task.options.max_active = i % 4 == 0 ? 30 : 10000;
    task.options.word_score = (float)(i % 3) / 2;
    task.options.lattice_beam = i % 5 == 0 ? 2 : 0;
    task.options.check_scores = 2;
    for (int j = 0; j < 2; j++) {
      assert_ok(wf_scorer_from_lm(lm, wf_fst_osymbols(wf_graph_fst(task.graph)), NULL, &scorers[j],
                                  &err));
      assert_non_null(scorers[j]->least);
      if (j == 1) {
        scorers[j]->least = NULL;
        scorers[j]->num_least = 0;
        scorers[j]->least_of_others = -INFINITY;
      }
      results[j] = decode_tokens(&task, scorers[j]);
    }
    test_assert_same_batch((uint64_t)i, &results[0], &results[1], 1);
    pruned += results[0]->num_tokens < 40 * 100;
    widened += results[0]->num_tokens > 40 * 10;
    test_free_results(results, 2);
    for (int j = 0; j < 2; j++) wf_scorer_free(scorers[j]);
    wf_lm_free(lm);
  }
  assert_true(pruned > 10 && widened > 10);
  wf_graph_free(task.graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_against_composed_graph),
                                     cmocka_unit_test(test_least_costs_change_nothing),
                                     cmocka_unit_test(test_real_speech)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
