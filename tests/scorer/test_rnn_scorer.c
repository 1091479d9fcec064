/* test_rnn_scorer.c - the recurrent scorer. Costs equal those of whole-sentence scoring, for any
 * order of requests, any cache and any memory. Decoding in one pass and in two passes is compared
 * with the best of all paths, each rescored separately. */
#include "random_scorers.h"
#include "rnn_models.h"
#include "scorer/rnn_scorer.h"

/* --- the scorer alone -------------------------------------------------------------------- */

typedef struct visited {
  uint64_t context;
  int32_t labels[12];
  size_t size;
} visited;

/* Scores `num` random words after random contexts seen before. Both scorers must agree bit for bit,
 * and agree with the definition. */
static void check_walks(const models *m, const wf_rnn_scorer_options *o, const wf_scorer *scorer,
                        const wf_scorer *other, test_rng *rng, int num) {
  static visited seen[4000];
  wf_error err = {0};
  void *memory, *other_memory;
  assert_ok(scorer->ops->open(scorer, &memory, &err));
  assert_ok(other->ops->open(other, &other_memory, &err));
  for (int utterance = 0; utterance < 3; utterance++) {
    uint64_t other_start;
    size_t size = 1;
    seen[0].size = 0;
    assert_ok(scorer->ops->begin(scorer, memory, &seen[0].context, &err));
    assert_ok(other->ops->begin(other, other_memory, &other_start, &err));
    assert_true(other_start == seen[0].context);
    for (int i = 0; i < num; i++) {
      const visited *from =
          &seen[test_below(rng, 4) == 0
                    ? test_below(rng, (uint32_t)size)
                    : size - 1 - test_below(rng, size < 20 ? (uint32_t)size : 20)];
      visited to = *from;
      uint64_t next;
      float cost, again;
      int32_t label = (int32_t)test_below(rng, NUM_LABELS + 1);
      to.labels[to.size++] = label;
      if (label == 0) {
        assert_ok(scorer->ops->final(scorer, memory, from->context, &cost, &err));
        assert_ok(other->ops->final(other, other_memory, from->context, &again, &err));
      } else {
        assert_ok(
            scorer->ops->step(scorer, memory, from->context, label, &cost, &to.context, &err));
        assert_ok(other->ops->step(other, other_memory, from->context, label, &again, &next, &err));
        assert_true(next == to.context);
      }
      assert_true(cost == again);
      double wanted = cost_by_definition(m, o, to.labels, to.size);
      if (fabs((double)cost - wanted) > 2e-5 * (1 + fabs(wanted)))
        fail_msg("%s: %.9g, by definition %.9g", m->r.type, (double)cost, wanted);
      if (label != 0 && to.size < 11 && size < 4000) seen[size++] = to;
    }
  }
  scorer->ops->close(scorer, memory);
  other->ops->close(other, other_memory);
}

static void test_costs_by_definition(void **unused) {
  (void)unused;
  wf_error err = {0};
  uint64_t evicted = 0, shared_hits = 0, hits = 0;
  const uint64_t seeds = test_seeds(40);
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    test_rng rng = {seed};
    models m = random_models(&rng);
    wf_rnn_scorer_options o = random_options(&rng), tight;
    tight = o;
    tight.rnnlm_cache = (int32_t)(seed % 3);
    if (tight.rnnlm_cache != 2) tight.rnnlm_memory = 65536; /* about 200 states */
    wf_scorer *scorer, *other;
    assert_ok(wf_scorer_from_rnnlm(m.rnnlm, m.ngram, m.small, m.words, &o, &scorer, &err));
    assert_ok(wf_scorer_from_rnnlm(m.rnnlm, m.ngram, m.small, m.words, &tight, &other, &err));
    check_walks(&m, &o, scorer, other, &rng, 1000);
    wf_rnn_scorer_stats stats, other_stats;
    wf_rnn_scorer_stats_init(&stats);
    wf_rnn_scorer_stats_init(&other_stats);
    assert_ok(wf_scorer_get_rnn_stats(scorer, &stats, &err));
    assert_ok(wf_scorer_get_rnn_stats(other, &other_stats, &err));
    assert_int_equal(stats.num_utterances, 3);
    assert_int_equal(stats.num_requests, 3000);
    assert_int_equal(stats.num_evicted, 0);
    assert_true(stats.num_hits > 0 && stats.num_hits < 3000 &&
                stats.num_hidden <= stats.num_histories);
    assert_int_equal(other_stats.num_requests, 3000);
    if (tight.rnnlm_cache == 0) assert_int_equal(other_stats.num_hits, 0);
    if (tight.rnnlm_cache == 2) shared_hits += other_stats.num_hits, hits += stats.num_hits;
    evicted += other_stats.num_evicted;
    wf_scorer_free(scorer);
    wf_scorer_free(other);
    free_models(&m);
  }
  assert_true(test_many(evicted, 1000, 40));
  assert_true(seeds < 2 || shared_hits > hits); /* each utterance requests the same words */
}

/* --- decoding ---------------------------------------------------------------------------- */

typedef struct brute {
  const models *m;
  const wf_rnn_scorer_options *o;
  wf_fst_view view;
  const wf_scores *scores;
  int32_t labels[16];
  size_t size;
  double best, second; /* second: of other words */
  int32_t best_labels[16];
  size_t best_size;
} brute;

static void end_path(brute *b, double cost) {
  b->labels[b->size] = 0;
  for (size_t i = 0; i <= b->size; i++) cost += cost_by_definition(b->m, b->o, b->labels, i + 1);
  bool same = b->size == b->best_size &&
              memcmp(b->labels, b->best_labels, b->size * sizeof *b->labels) == 0;
  if (cost >= b->best) {
    if (!same && cost < b->second) b->second = cost;
    return;
  }
  if (!same) b->second = b->best;
  b->best = cost;
  b->best_size = b->size;
  memcpy(b->best_labels, b->labels, sizeof b->labels);
}

/* Visits every path. Epsilon arcs lead to larger states, so there are finitely many. */
static void all_paths(brute *b, uint64_t state, int64_t frame, double cost) {
  if (frame == b->scores->num_frames && b->view.final_cost[state] != INFINITY)
    end_path(b, cost + (double)b->view.final_cost[state]);
  for (uint64_t a = b->view.arc_off[state]; a < b->view.arc_off[state + 1]; a++) {
    const wf_arc *arc = &b->view.arcs[a];
    double next = cost + (double)arc->weight;
    if (arc->ilabel > 0 && frame == b->scores->num_frames) continue;
    if (arc->ilabel > 0)
      next -= (double)((const float *)
                           b->scores->data)[frame * b->scores->num_columns + arc->ilabel - 1];
    if (arc->olabel > 0) b->labels[b->size++] = arc->olabel;
    all_paths(b, arc->nextstate, frame + (arc->ilabel > 0), next);
    if (arc->olabel > 0) b->size--;
  }
}

/* The same in two passes: decode a lattice of everything without the scorer, add the scorer's
 * costs, and find the best path. */
static double two_passes(const wf_graph *graph, wf_decoder_options options, const wf_scores *scores,
                         const wf_scorer *scorer) {
  wf_error err = {0};
  wf_decoder *decoder;
  wf_result *result;
  wf_determinized words;
  wf_compact_lattice *scored;
  wf_nbest *best;
  wf_lattice_determinize_options determinize;
  wf_lattice_determinize_options_init(&determinize);
  determinize.beam = 1e5f;
  determinize.delta = 0;
  options.lattice_beam = 1e5f;
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  assert_ok(test_decode(decoder, scores, 1, NULL, &result, &err));
  assert_int_equal(result->status, WF_OK);
  assert_ok(wf_lattice_determinize(result->lattice, NULL, &determinize, &words, &err));
  assert_int_equal(wf_compact_lattice_score(words.lattice, scorer, 1, &scored, &err), WF_ERR_LIMIT);
  assert_ok(wf_compact_lattice_score(words.lattice, scorer, 100000, &scored, &err));
  assert_ok(wf_compact_lattice_best_path(scored, &best, &err));
  assert_int_equal(wf_nbest_count(best), 1);
  wf_lattice_path path = wf_nbest_at(best, 0);
  double cost = path.graph_cost + path.acoustic_cost;
  wf_nbest_free(best);
  wf_compact_lattice_free(scored);
  wf_compact_lattice_free(words.lattice);
  wf_result_free(result);
  wf_decoder_free(decoder);
  return cost;
}

static void test_decoding(void **unused) {
  (void)unused;
  enum { COLUMNS = 3, FRAMES = 5, BATCH = 4 };
  wf_error err = {0};
  int compared = 0, worded = 0;
  const uint64_t seeds = test_seeds(40);
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    test_rng rng = {seed * 77};
    models m = random_models(&rng);
    wf_rnn_scorer_options o = random_options(&rng);
    o.rnnlm_memory = seed % 2 == 0 ? 65536 : 1 << 20;
    o.rnnlm_cache = (int32_t)(seed % 3);
    wf_scorer *scorer;
    assert_ok(wf_scorer_from_rnnlm(m.rnnlm, m.ngram, m.small, m.words, &o, &scorer, &err));
    test_fst_shape shape = {.num_states = 5,
                            .num_arcs = 13,
                            .num_ilabels = COLUMNS,
                            .num_olabels = NUM_LABELS,
                            .epsilon_share = 0.25f,
                            .final_share = 0.7f,
                            .max_weight = 2};
    wf_fst *fst = test_changed_fst(test_random_fst(&rng, &shape), &rng, forward_epsilons);
    wf_graph *graph;
    assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
    wf_decoder_options options;
    wf_decoder_options_init(&options);
    options.beam = 1e6f;
    options.max_active = options.max_tokens = 1000000;
    options.acoustic_scale = 1;
    options.num_threads = 1 + (int32_t)(seed % 3);
    float data[BATCH][FRAMES * COLUMNS];
    wf_scores scores[BATCH];
    for (int u = 0; u < BATCH; u++) {
      for (int i = 0; i < FRAMES * COLUMNS; i++) data[u][i] = -3 * test_unit(&rng);
      scores[u] = (wf_scores){data[u], 1 + (int64_t)test_below(&rng, FRAMES), COLUMNS, COLUMNS};
    }
    wf_decoder *decoder;
    wf_result *results[BATCH];
    assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
    assert_ok(wf_decoder_set_scorer(decoder, scorer, &err));
    assert_ok(test_decode(decoder, scores, BATCH, NULL, results, &err));
    for (int u = 0; u < BATCH; u++) {
      brute b = {.m = &m,
                 .o = &o,
                 .view = wf_fst_get_view(wf_graph_fst(graph)),
                 .scores = &scores[u],
                 .best = INFINITY,
                 .second = INFINITY};
      if (b.view.start >= 0) all_paths(&b, (uint64_t)b.view.start, 0, 0);
      const wf_result *result = results[u];
      assert_int_equal(result->status, WF_OK);
      assert_int_equal((result->flags & WF_RESULT_NOT_FINAL) != 0, b.best == INFINITY);
      if (b.best == INFINITY) continue;
      if (fabs(result->cost - b.best) > 1e-4)
        fail_msg("seed %d, utterance %d: cost %.9g, best of all paths %.9g", (int)seed, u,
                 result->cost, b.best);
      double rescored = b.best_size == 0 ? b.best : two_passes(graph, options, &scores[u], scorer);
      if (fabs(rescored - b.best) > 1e-4)
        fail_msg("seed %d, utterance %d: in two passes %.9g, best of all paths %.9g", (int)seed, u,
                 rescored, b.best);
      if (b.second - b.best > 1e-3) {
        assert_int_equal(result->num_words, b.best_size);
        for (size_t i = 0; i < b.best_size; i++)
          assert_int_equal(result->words[i].label, b.best_labels[i]);
      }
      compared++;
      worded += b.best_size > 1;
      wf_result *alone; /* the same alone as in any batch */
      assert_ok(test_decode(decoder, &scores[u], 1, NULL, &alone, &err));
      assert_true(alone->cost == result->cost && alone->scorer_cost == result->scorer_cost &&
                  alone->num_words == result->num_words);
      wf_result_free(alone);
    }
    for (int u = 0; u < BATCH; u++) wf_result_free(results[u]);
    wf_decoder_free(decoder);
    wf_graph_free(graph);
    wf_fst_free(fst);
    wf_scorer_free(scorer);
    free_models(&m);
  }
  if (compared < (int)(3 * seeds / 2) || worded < (int)(3 * seeds / 4))
    fail_msg("compared %d, with words %d", compared, worded);
}

/* --- many utterances at once ------------------------------------------------------------- */

enum { MANY = 70 /* more than are batched together */, LONG = 14, INPUTS = 4 };

static void check_same(const wf_result *a, const wf_result *b, const char *what, int utterance) {
  bool same = a->status == b->status && a->flags == b->flags && a->cost == b->cost &&
              a->graph_cost == b->graph_cost && a->acoustic_cost == b->acoustic_cost &&
              a->scorer_cost == b->scorer_cost && a->num_words == b->num_words;
  for (size_t i = 0; same && i < a->num_words; i++)
    same = a->words[i].label == b->words[i].label &&
           a->words[i].start_frame == b->words[i].start_frame;
  if (!same)
    fail_msg("%s, utterance %d: cost %.9g, alone %.9g; %zu words, alone %zu", what, utterance,
             a->cost, b->cost, a->num_words, b->num_words);
}

static void decode_all(const wf_graph *graph, const wf_decoder_options *options,
                       const wf_scorer *scorer, const wf_scores *scores, size_t at_once,
                       wf_result **results) {
  wf_error err = {0};
  wf_decoder *decoder;
  assert_ok(wf_decoder_create(graph, options, &decoder, &err));
  assert_ok(wf_decoder_set_scorer(decoder, scorer, &err));
  for (size_t i = 0; i < MANY; i += at_once)
    assert_ok(test_decode(decoder, scores + i, MANY - i < at_once ? MANY - i : at_once, NULL,
                          results + i, &err));
  wf_decoder_free(decoder);
}

/* Decodes in batches of `at_once`. Chains `boost` before the scorer unless it is NULL. */
static wf_rnn_scorer_stats check_together(const models *m, const wf_rnn_scorer_options *o,
                                          const wf_scorer *boost, const wf_graph *graph,
                                          const wf_decoder_options *options,
                                          const wf_scores *scores, size_t at_once,
                                          wf_result **alone) {
  wf_error err = {0};
  wf_scorer *scorer, *chain;
  wf_result *together[MANY];
  assert_ok(wf_scorer_from_rnnlm(m->rnnlm, m->ngram, m->small, m->words, o, &scorer, &err));
  if (boost != NULL)
    assert_ok(wf_scorer_chain(boost, scorer, &chain, &err));
  else
    chain = wf_scorer_ref(scorer);
  decode_all(graph, options, chain, scores, at_once, together);
  char what[100];
  snprintf(what, sizeof what, "%s, cache %d, memory %d, %d threads, %d at once", m->r.type,
           o->rnnlm_cache, (int)o->rnnlm_memory, options->num_threads, (int)at_once);
  for (int u = 0; u < MANY; u++) {
    check_same(together[u], alone[u], what, u);
    wf_result_free(together[u]);
  }
  wf_scorer_free(chain);
  wf_rnn_scorer_stats stats;
  wf_rnn_scorer_stats_init(&stats);
  assert_ok(wf_scorer_get_rnn_stats(scorer, &stats, &err));
  assert_int_equal(stats.num_utterances, MANY);
  assert_true(stats.num_costs <= stats.num_requests - stats.num_hits);
  wf_scorer_free(scorer);
  return stats;
}

/* For any batch, number of threads, cache and memory, results equal those of utterances decoded one
 * at a time with one request at a time, bit for bit. */
static void test_same_bits_in_any_batch(void **unused) {
  (void)unused;
  wf_error err = {0};
  wf_rnn_scorer_stats sum = {0}, shared = {0}, apart = {0};
  for (uint64_t seed = 1; seed <= 8; seed++) {
    test_rng rng = {seed * 991};
    models m = random_models(&rng);
    wf_rnn_scorer_options o = random_options(&rng);
    wf_fst *fst = random_word_fst(&rng, INPUTS);
    wf_graph *graph;
    assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
    wf_decoder_options options;
    wf_decoder_options_init(&options);
    options.beam = 6;
    options.max_active = 60;
    options.max_tokens = 90 + (int32_t)test_below(&rng, 100); /* some frames do not fit */
    options.recombine = (int32_t)(seed % 4 == 3);
    options.lattice_beam = seed % 2 == 0 && options.recombine == 0 ? 3 : 0;
    static float data[MANY][LONG * INPUTS];
    wf_scores scores[MANY];
    for (int u = 0; u < MANY; u++) {
      for (int i = 0; i < LONG * INPUTS; i++)
        data[u][i] =
            u % 5 == 4
                ? data[u - 1][i]
                : -3 * test_unit(&rng); /* some utterances have the same scores as the one before */
      scores[u] = (wf_scores){data[u], (int64_t)test_below(&rng, LONG + 1), INPUTS, INPUTS};
    }
    wf_result *alone[MANY];
    wf_scorer *scorer, *boost, *chain;
    int32_t words[] = {2, 4};
    float boosts[] = {0.5f, -0.25f};
    assert_ok(wf_scorer_boost_words(words, boosts, 2, &boost, &err));
    o.rnnlm_cache = 0;
    assert_ok(wf_scorer_from_rnnlm(m.rnnlm, m.ngram, m.small, m.words, &o, &scorer, &err));
    assert_ok(wf_scorer_chain(boost, scorer, &chain, &err));
    bool chained = seed % 3 == 0;
    options.num_threads = 1;
    decode_all(graph, &options, chained ? chain : scorer, scores, 1, alone);
    wf_scorer_free(chain);
    wf_scorer_free(scorer);
    for (int kind = 0; kind < 6; kind++) {
      o.rnnlm_cache = 1 + kind % 2;
      o.rnnlm_memory = kind < 4 ? 65536 : 1 << 24;
      options.num_threads = 1 + kind / 2;
      wf_rnn_scorer_stats stats =
          check_together(&m, &o, chained ? boost : NULL, graph, &options, scores,
                         (size_t[]){MANY, 7, 1}[(kind + (int)seed) % 3], alone);
      wf_rnn_scorer_stats *kept = kind == 4 ? &apart : &shared;
      if (kind >= 4)
        kept->num_hits += stats.num_hits, kept->num_costs += stats.num_costs,
            kept->num_requests += stats.num_requests - stats.num_hits;
      sum.num_evicted += stats.num_evicted;
      sum.num_evicted_results += stats.num_evicted_results;
      sum.num_evicted_contexts += stats.num_evicted_contexts;
    }
    for (int u = 0; u < MANY; u++) wf_result_free(alone[u]);
    wf_scorer_free(boost);
    wf_graph_free(graph);
    wf_fst_free(fst);
    free_models(&m);
  }
  assert_true(sum.num_evicted > 0 && sum.num_evicted_results > 0 && sum.num_evicted_contexts > 0);
  assert_true(shared.num_hits > apart.num_hits); /* utterances share costs */
  assert_true(
      apart.num_costs <
      apart.num_requests); /* even without sharing, equal requests of one round are computed once */
}

/* Flattens a chain with a recurrent scorer as the GPU does. The other parts become arrays. Costs
 * are summed and contexts numbered as in the chain. */
static void test_flat_chains(void **unused) {
  (void)unused;
  wf_error err = {0};
  wf_symbols *words = random_scorer_words();
  int num_said = 0;
  const uint64_t seeds = test_seeds(60);
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    test_rng rng = {seed};
    models m = random_models(&rng);
    wf_rnn_scorer_options o = random_options(&rng);
    wf_scorer *rnn, *chain, *exchanged;
    assert_ok(wf_scorer_from_rnnlm(m.rnnlm, m.ngram, m.small, m.words, &o, &rnn, &err));
    chain = random_chain(&rng, rnn, words);
    assert_true(wf__rnn_part_of(chain) == rnn && wf__rnn_part_of(rnn) == rnn);
    assert_ok(wf__scorer_exchange(chain, rnn, rnn, &exchanged, &err));
    wf__flat_scorer flat;
    assert_null(wf__scorer_flatten(chain, &flat));
    void *memory, *own_memory, *exchanged_memory;
    assert_ok(chain->ops->open(chain, &memory, &err));
    assert_ok(exchanged->ops->open(exchanged, &exchanged_memory, &err));
    assert_ok(rnn->ops->open(rnn, &own_memory, &err));
    for (int walk = 0; walk < 10; walk++) {
      uint64_t context, own, same, at = flat.start;
      assert_ok(chain->ops->begin(chain, memory, &context, &err));
      assert_ok(exchanged->ops->begin(exchanged, exchanged_memory, &same, &err));
      assert_ok(rnn->ops->begin(rnn, own_memory, &own, &err));
      for (int i = 0; i < 8; i++) {
        const int32_t word = 1 + (int32_t)test_below(&rng, NUM_LABELS);
        float cost, own_cost, exchanged_cost;
        uint64_t next;
        assert_true(same == context && wf__flat_number(&flat, at, own) == context);
        assert_ok(chain->ops->final(chain, memory, context, &cost, &err));
        assert_ok(rnn->ops->final(rnn, own_memory, own, &own_cost, &err));
        assert_true(cost == wf__flat_chained(&flat, at, true, 0, own_cost, &next));
        assert_ok(chain->ops->step(chain, memory, context, word, &cost, &context, &err));
        assert_ok(exchanged->ops->step(exchanged, exchanged_memory, same, word, &exchanged_cost,
                                       &same, &err));
        assert_ok(rnn->ops->step(rnn, own_memory, own, word, &own_cost, &own, &err));
        assert_true(cost == exchanged_cost &&
                    cost == wf__flat_chained(&flat, at, false, (uint32_t)word, own_cost, &at));
        if (isinf(cost)) break;
        num_said += cost != own_cost;
      }
    }
    chain->ops->close(chain, memory);
    exchanged->ops->close(exchanged, exchanged_memory);
    rnn->ops->close(rnn, own_memory);
    wf_scorer *two;
    assert_ok(wf_scorer_chain(rnn, rnn, &two, &err));
    assert_string_equal(wf__scorer_flatten(two, &flat), "chain of more than one recurrent scorer");
    assert_null(wf__rnn_part_of(two));
    wf_scorer *all[] = {rnn, chain, exchanged, two};
    for (int i = 0; i < 4; i++) wf_scorer_free(all[i]);
    free_models(&m);
  }
  wf_symbols_free(words);
  assert_true(test_many((uint64_t)num_said, 480, 60));
}

static void test_rejected_options(void **unused) {
  (void)unused;
  test_rng rng = {9};
  wf_error err = {0};
  models m = random_models(&rng);
  wf_rnn_scorer_options o;
  wf_rnn_scorer_options_init(&o);
  wf_scorer *scorer;
  o.rnnlm_weight = 0.5f;
  assert_int_equal(wf_scorer_from_rnnlm(m.rnnlm, NULL, m.small, m.words, &o, &scorer, &err),
                   WF_ERR_ARGUMENT);
  assert_null(scorer);
  o.rnnlm_weight = 2;
  assert_int_equal(wf_scorer_from_rnnlm(m.rnnlm, m.ngram, NULL, m.words, &o, &scorer, &err),
                   WF_ERR_ARGUMENT);
  wf_symbols *strange;
  assert_ok(wf_symbols_create("strange", &strange, &err));
  assert_ok(wf_symbols_add(strange, "nothing", 1, NULL, &err));
  assert_int_equal(wf_scorer_from_rnnlm(m.rnnlm, NULL, NULL, strange, NULL, &scorer, &err),
                   WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "knows none of the words of strange"));
  wf_symbols_free(strange);
  test_rnn r = {.type = "sigmoid",
                .version = 6,
                .num_layers = 1,
                .arity = 2,
                .hidden = 4,
                .num_words = 6,
                .reverse = true};
  test_rnn_fill(&r, &rng);
  wf_rnnlm *reverse;
  assert_ok(wf_rnnlm_open(test_rnn_write(&r), NULL, &reverse, &err));
  assert_int_equal(wf_scorer_from_rnnlm(reverse, NULL, NULL, NULL, NULL, &scorer, &err),
                   WF_ERR_UNSUPPORTED);
  assert_non_null(strstr(err.message, "from their end"));
  wf_rnnlm_free(reverse);
  test_rnn_free(&r);
  wf_rnn_scorer_stats stats;
  wf_rnn_scorer_stats_init(&stats);
  assert_ok(wf_scorer_boost_words(NULL, NULL, 0, &scorer, &err));
  assert_int_equal(wf_scorer_get_rnn_stats(scorer, &stats, &err), WF_ERR_ARGUMENT);
  wf_scorer_free(scorer);
  free_models(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_costs_by_definition), cmocka_unit_test(test_decoding),
      cmocka_unit_test(test_same_bits_in_any_batch), cmocka_unit_test(test_flat_chains),
      cmocka_unit_test(test_rejected_options)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
