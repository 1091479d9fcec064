/* test_scorer.c - decoding with scorers, which add costs for words that are not in the graph.
 *
 * First examples by hand. Then random tasks are compared with the oracle, bit for bit, and with
 * unpruned dynamic programming over the composed graph. */
#include "decode_tasks.h"
#include "example.h"
#include "lattice_oracle.h"
#include "table_scorer.h"

/* --- examples by hand -------------------------------------------------------------------- */

/* Two words for one frame of the token A, whose log-likelihood is -1.
 *
 *        A:1/0
 *      /-------\
 *   (0)         ((1))
 *      \-------/
 *        A:2/0.25        */
static struct example two_choices(void) {
  static const float scores[] = {-1};
  return example_of("0 1 1 1 0\n0 1 1 2 0.25\n1\n", scores, 1, 1);
}

static wf_scorer *boost_of(int32_t word, float nats) {
  wf_error err = {0};
  wf_scorer *scorer;
  assert_ok(wf_scorer_boost_words(&word, &nats, 1, &scorer, &err));
  return scorer;
}

/* Without a scorer word 1 wins: 0 + 1. With a boost of 0.5 nats for word 2, it costs 0.25 + 1 - 0.5
 * = 0.75 and wins against 1. */
static void test_example_boost(void **state) {
  (void)state;
  struct example e = two_choices();
  wf_scorer *scorer = boost_of(2, 0.5f);
  example_expect(&e, NULL, "1[0,1)", 1, 0);
  example_expect(&e, scorer, "2[0,1)", 0.75, 0);
  wf_result *result = example_decode(&e, scorer);
  assert_true(result->graph_cost == 0.25 && result->acoustic_cost == 1); /* the graph's costs */
  assert_true(result->scorer_cost == -0.5);                              /* the scorer's cost */
  wf_result_free(result);
  wf_scorer_free(scorer);
}

/* A chain adds the costs of its scorers: -0.5 + 0.125. */
static void test_example_chain(void **state) {
  (void)state;
  wf_error err = {0};
  struct example e = two_choices();
  wf_scorer *favoured = boost_of(2, 0.5f), *disfavoured = boost_of(2, -0.125f), *chain;
  assert_ok(wf_scorer_chain(favoured, disfavoured, &chain, &err));
  wf_scorer_free(favoured);
  wf_scorer_free(disfavoured); /* the chain holds references */
  example_expect(&e, chain, "2[0,1)", 0.875, 0);
  wf_scorer_free(chain);
}

/* --- random tasks ------------------------------------------------------------------------- */

enum { NUM_WORDS = 4 }; /* of test_random_task */

static wf_result *decode_with(struct decode_task *task, const wf_scorer *scorer) {
  wf_error err = {0};
  wf_decoder *decoder;
  wf_result *result;
  assert_ok(wf_decoder_create(task->graph, &task->options, &decoder, &err));
  assert_ok(wf_decoder_set_scorer(decoder, scorer, &err));
  assert_ok(test_decode(decoder, &task->scores, 1, NULL, &result, &err));
  wf_decoder_free(decoder);
  return result;
}

static void assert_as_expected(const struct decode_task *task, const wf_result *result,
                               const oracle_result *expected, uint64_t seed) {
  wf_fst_view view = wf_fst_get_view(wf_graph_fst(task->graph));
  bool same = result->flags == expected->flags && result->num_decoded == expected->num_decoded &&
              result->graph_cost == expected->graph_cost &&
              result->acoustic_cost == expected->acoustic_cost &&
              result->scorer_cost == expected->scorer_cost &&
              (int)result->num_words == expected->num_words &&
              (result->num_words == 0 ||
               memcmp(result->words, expected->words, result->num_words * sizeof(wf_word)) == 0);
  int64_t t = 0;
  for (int i = 0; i < expected->num_arcs && same; i++) {
    int32_t ilabel = view.arcs[expected->arcs[i]].ilabel;
    if (ilabel != 0 && result->alignment[t++] != ilabel) same = false;
  }
  if (!same)
    fail_msg(
        "seed %llu: flags %u/%u decoded %lld/%lld cost %.9g+%.9g+%.9g / %.9g+%.9g+%.9g words "
        "%zu/%d",
        (unsigned long long)seed, result->flags, expected->flags, (long long)result->num_decoded,
        (long long)expected->num_decoded, result->graph_cost, result->acoustic_cost,
        result->scorer_cost, expected->graph_cost, expected->acoustic_cost, expected->scorer_cost,
        result->num_words, expected->num_words);
}

/* What the tasks have covered. */
struct coverage {
  int decoded, finals, dead, narrowed, overflown, tight, worded, contexts, changed, lattices;
};

static void count(struct coverage *seen, const wf_result *result) {
  seen->decoded++;
  seen->finals += !(result->flags & WF_RESULT_NOT_FINAL);
  seen->dead += (result->flags & WF_RESULT_DIED) != 0;
  seen->narrowed += (result->flags & WF_RESULT_NARROWED) != 0;
  seen->overflown += (result->flags & WF_RESULT_OVERFLOW) != 0;
  seen->worded += result->num_words > 0;
}

static void check_lattice(const struct decode_task *task, const oracle_space *space,
                          const wf_result *result, uint64_t seed) {
  wf_lattice_view lattice = wf_lattice_get_view(result->lattice), wanted;
  assert_true(oracle_lattice_in(space, &task->options, &task->scores, &wanted));
  if (!oracle_same_lattice(&lattice, &wanted, seed)) fail();
  oracle_check_shape(&lattice, result->num_decoded);
  if (fabs(oracle_lattice_best(&lattice) - result->cost) > 1e-4)
    fail_msg("seed %llu: best of the lattice %.9g, result %.9g", (unsigned long long)seed,
             oracle_lattice_best(&lattice), result->cost);
  oracle_free_view(&wanted);
}

static void check_task(uint64_t seed, bool by_state, struct coverage *seen) {
  test_rng rng = {seed * 31 + 7};
  struct decode_task task = test_random_task(seed);
  /* With recombination by state, a cycle of the graph may have negative cost if its contexts form
   * no cycle. */
  table_scorer_shape shape = {.max_contexts = 5,
                              .num_words = NUM_WORDS,
                              .negative = !by_state && test_below(&rng, 2) == 0,
                              .wide = test_below(&rng, 2) == 0,
                              .coarse = test_below(&rng, 2) == 0};
  oracle_scorer tables = test_random_tables(&rng, &shape);
  wf_scorer *scorer = test_table_scorer(&tables, shape.wide);
  task.options.recombine = by_state;
  if (!by_state && seed % 2 == 0) {
    task.options.lattice_beam = (float[]){0.125f, 0.5f, 2, 8, 1000}[seed / 2 % 5];
    task.options.lattice_prune_interval = 1 + (int32_t)(seed % 7);
  }
  oracle_space space = oracle_space_of(wf_graph_fst(task.graph), &tables, &task.options);
  oracle_result *expected = malloc(sizeof *expected);
  oracle_decode_in(&space, &task.options, &task.scores, expected, NULL);
  wf_result *result = decode_with(&task, scorer);
  assert_int_equal(result->status, expected->fits ? WF_OK : WF_ERR_LIMIT);
  seen->tight += !expected->fits;
  if (expected->fits) {
    assert_as_expected(&task, result, expected, seed);
    count(seen, result);
    seen->contexts += tables.num_contexts > 1;
    wf_result *plain = test_decode_alone(&task);
    seen->changed += plain->status == WF_OK && (plain->num_words != result->num_words ||
                                                plain->graph_cost != result->graph_cost);
    wf_result_free(plain);
    if (task.options.lattice_beam > 0) check_lattice(&task, &space, result, seed);
    seen->lattices += task.options.lattice_beam > 0;
  }
  wf_result_free(result);
  free(expected);
  wf_scorer_free(scorer);
  test_free_tables(&tables);
  test_free_task(&task);
}

static void assert_covered(const struct coverage *c) {
  assert_true(test_many(c->decoded, 4000, 6000) && test_many(c->finals, 800, 6000) &&
              test_many(c->dead, 300, 6000) && test_many(c->narrowed, 300, 6000) &&
              test_many(c->overflown, 300, 6000) && test_many(c->tight, 20, 6000) &&
              test_many(c->worded, 1000, 6000) && test_many(c->contexts, 3000, 6000) &&
              test_many(c->changed, 500, 6000));
}

static void test_pairs_against_oracle(void **state) {
  (void)state;
  struct coverage seen = {0};
  for (uint64_t seed = 1; seed <= test_seeds(6000); seed++) check_task(seed, false, &seen);
  assert_covered(&seen);
  assert_true(test_many(seen.lattices, 2000, 6000));
}

static void test_states_against_oracle(void **state) {
  (void)state;
  struct coverage seen = {0};
  for (uint64_t seed = 1; seed <= test_seeds(6000); seed++) check_task(seed, true, &seen);
  check_task(25368, true, &seen); /* a token changes its context in the round in which it is
                                     relaxed; tokens made from the old context stay */
  assert_covered(&seen);
}

/* graph o scorer as a graph: state * num_contexts + context. Word costs are summed in another
 * order, so the last bits may differ. */
static wf_fst *composed(const wf_fst *fst, const oracle_scorer *tables) {
  wf_error err = {0};
  wf_fst_view view = wf_fst_get_view(fst);
  uint32_t num = (uint32_t)tables->num_contexts;
  wf_builder *builder;
  wf_fst *out;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states * num, NULL, &err));
  assert_ok(wf_builder_set_start(builder, (uint32_t)view.start * num, &err));
  for (uint32_t s = 0; s < view.num_states; s++)
    for (uint32_t c = 0; c < num; c++) {
      assert_ok(
          wf_builder_set_final(builder, s * num + c, view.final_cost[s] + tables->final[c], &err));
      for (uint64_t a = view.arc_off[s]; a < view.arc_off[s + 1]; a++) {
        wf_arc arc = view.arcs[a];
        uint32_t next = c;
        if (arc.olabel != 0) {
          int at = (int)c * tables->num_words + arc.olabel - 1;
          arc.weight += tables->cost[at];
          next = (uint32_t)tables->next[at];
        }
        arc.nextstate = arc.nextstate * num + next;
        assert_ok(wf_builder_add_arc(builder, s * num + c, arc, &err));
      }
    }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

/* If nothing is pruned, the result is the best path of the composed graph, and equals decoding that
 * graph. */
static void test_against_composed_graph(void **state) {
  (void)state;
  int compared = 0, worded = 0;
  for (uint64_t seed = 1; seed <= test_seeds(3000); seed++) {
    test_rng rng = {seed};
    wf_error err = {0};
    struct decode_task task = test_random_task(seed);
    task.options.beam = 1e6f;
    task.options.max_active = task.options.max_tokens = 1000000;
    table_scorer_shape shape = {
        .max_contexts = 5, .num_words = NUM_WORDS, .negative = true, .wide = seed % 2 == 0};
    oracle_scorer tables = test_random_tables(&rng, &shape);
    wf_scorer *scorer = test_table_scorer(&tables, shape.wide);
    wf_fst *fst = composed(wf_graph_fst(task.graph), &tables);
    double best = oracle_best_cost(fst, &task.options, &task.scores);
    wf_result *result = decode_with(&task, scorer);
    struct decode_task whole = task;
    assert_ok(wf_graph_create(fst, NULL, 0, &whole.graph, &err));
    wf_result *of_whole = test_decode_alone(&whole);
    assert_int_equal(result->status, WF_OK);
    assert_int_equal((result->flags & WF_RESULT_NOT_FINAL) != 0, best == INFINITY);
    assert_int_equal(result->flags, of_whole->flags);
    if (best != INFINITY &&
        (fabs(result->cost - best) > 1e-4 || fabs(of_whole->cost - best) > 1e-4))
      fail_msg("seed %llu: cost %.9g, of the composed graph %.9g, best path %.9g",
               (unsigned long long)seed, result->cost, of_whole->cost, best);
    compared += best != INFINITY;
    worded += best != INFINITY && result->num_words > 0;
    wf_result_free(result);
    wf_result_free(of_whole);
    wf_graph_free(whole.graph);
    wf_fst_free(fst);
    wf_scorer_free(scorer);
    test_free_tables(&tables);
    test_free_task(&task);
  }
  assert_true(test_many(compared, 800, 3000) && test_many(worded, 500, 3000));
}

/* States that can be reached with 1, 2 ... `frames` frames consumed, summed over the frames. */
static uint64_t count_reachable(const wf_fst *fst, int frames) {
  wf_fst_view view = wf_fst_get_view(fst);
  bool *now = calloc(view.num_states, 1), *next = malloc(view.num_states);
  uint64_t sum = 0;
  now[view.start] = true;
  for (int t = 0; t <= frames; t++) {
    memset(next, 0, view.num_states);
    for (bool changed = true; changed;) {
      changed = false;
      for (uint64_t s = 0; s < view.num_states; s++)
        for (uint64_t a = view.arc_off[s]; a < view.arc_off[s + 1] && now[s]; a++) {
          const wf_arc *arc = &view.arcs[a];
          bool *to = arc->ilabel == 0 ? now : next;
          if (arc->weight == INFINITY) continue;
          changed = changed || (arc->ilabel == 0 && !to[arc->nextstate]);
          to[arc->nextstate] = true;
        }
    }
    for (uint64_t s = 0; s < view.num_states && t > 0; s++) sum += now[s];
    bool *swap = now;
    now = next;
    next = swap;
  }
  free(now);
  free(next);
  return sum;
}

/* More pairs than the initial token table holds. All numbers are multiples of 1/8 or 1/4, so sums
 * are exact. */
static void test_token_table_grows(void **state) {
  (void)state;
  enum { FRAMES = 8, COLUMNS = 8, WORDS = 30 };
  uint64_t most = 0;
  for (uint64_t seed = 1; seed <= 30; seed++) {
    test_rng rng = {seed};
    wf_error err = {0};
    struct decode_task task = {0};
    test_fst_shape shape = {.num_states = 150,
                            .num_arcs = 900,
                            .num_ilabels = COLUMNS,
                            .num_olabels = WORDS,
                            .epsilon_share = 0.3f,
                            .final_share = 0.5f,
                            .max_weight = 2};
    wf_fst *fst = test_random_fst(&rng, &shape);
    assert_ok(wf_graph_create(fst, NULL, 0, &task.graph, &err));
    wf_fst_free(fst);
    wf_decoder_options_init(&task.options);
    task.options.beam = seed % 2 == 0 ? 1e6f : 3;
    task.options.max_active = task.options.max_tokens = 1000000;
    float data[FRAMES * COLUMNS];
    for (int i = 0; i < FRAMES * COLUMNS; i++) data[i] = -(float)test_below(&rng, 17) / 8;
    task.scores = (wf_scores){data, FRAMES, COLUMNS, COLUMNS};
    table_scorer_shape kind = {.max_contexts = 60,
                               .num_words = WORDS,
                               .wide = seed % 2 == 0,
                               .coarse = true,
                               .negative = true};
    oracle_scorer tables = test_random_tables(&rng, &kind);
    wf_scorer *scorer = test_table_scorer(&tables, kind.wide);
    struct decode_task whole = task;
    wf_fst *product = composed(wf_graph_fst(task.graph), &tables);
    assert_ok(wf_graph_create(product, NULL, 0, &whole.graph, &err));
    wf_result *result = decode_with(&task, scorer), *expected = test_decode_alone(&whole);
    assert_int_equal(result->status, WF_OK);
    assert_true(result->flags == expected->flags && result->cost == expected->cost &&
                result->num_tokens == expected->num_tokens);
    if (seed % 2 == 0) assert_int_equal(result->num_tokens, count_reachable(product, FRAMES));
    if (result->num_tokens > most) most = result->num_tokens;
    wf_result_free(result);
    wf_result_free(expected);
    wf_graph_free(whole.graph);
    wf_fst_free(product);
    wf_scorer_free(scorer);
    test_free_tables(&tables);
    wf_graph_free(task.graph);
  }
  assert_true(most > FRAMES * 4096);
}

/* --- chains, boosts ---------------------------------------------------------------------- */

/* Two scorers in a chain equal the product of their tables, whether pairs of contexts fit 64 bits
 * or are hashed. Hashed contexts are in an order that the oracle does not know, so ties may be
 * broken differently. Then costs must agree, not paths. */
static void test_chain_against_product(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_seeds(2000); seed++) {
    test_rng rng = {seed};
    wf_error err = {0};
    struct decode_task task = test_random_task(seed);
    bool wide = seed % 2 == 0;
    if (wide) {
      task.options.max_active = task.options.max_tokens =
          1000000; /* then ties only decide between paths of equal cost */
      task.options.lattice_beam = 0;
    } else {
      task.options.lattice_beam = 2;
    }
    table_scorer_shape shape = {
        .max_contexts = 3, .num_words = NUM_WORDS, .negative = seed % 3 == 0, .wide = wide};
    oracle_scorer first = test_random_tables(&rng, &shape),
                  second = test_random_tables(&rng, &shape);
    oracle_scorer both = test_chained_tables(&first, &second);
    wf_scorer *a = test_table_scorer(&first, wide), *b = test_table_scorer(&second, wide), *chain;
    assert_ok(wf_scorer_chain(a, b, &chain, &err));
    wf_scorer_free(a); /* the chain holds references */
    wf_scorer_free(b);
    wf_result *result = decode_with(&task, chain);
    oracle_space space = oracle_space_of(wf_graph_fst(task.graph), &both, &task.options);
    oracle_result *expected = malloc(sizeof *expected);
    oracle_decode_in(&space, &task.options, &task.scores, expected, NULL);
    assert_int_equal(result->status, expected->fits ? WF_OK : WF_ERR_LIMIT);
    if (expected->fits && wide)
      assert_true(result->flags == expected->flags &&
                  fabs(result->cost - expected->graph_cost - expected->acoustic_cost -
                       expected->scorer_cost) < 1e-4);
    /* If the second scorer's number of contexts is not a power of two, a pair's number differs from
     * its index in the product. The order is the same. */
    if (expected->fits && !wide) {
      assert_as_expected(&task, result, expected, seed);
      check_lattice(&task, &space, result, seed);
    }
    wf_result_free(result);
    free(expected);
    wf_scorer_free(chain);
    test_free_tables(&first);
    test_free_tables(&second);
    test_free_tables(&both);
    test_free_task(&task);
  }
}

/* A word boost equals the same cost on every arc of that word. */
static void test_word_boost_against_arc_costs(void **state) {
  (void)state;
  wf_error err = {0};
  static const int32_t words[] = {3, 1, 3};
  static const float boosts[] = {0.75f, -2, 0.75f};
  for (uint64_t seed = 1; seed <= test_seeds(500); seed++) {
    struct decode_task task = test_random_task(seed);
    task.options.beam = 1e6f;
    task.options.max_active = task.options.max_tokens = 1000000;
    wf_scorer *scorer;
    assert_ok(wf_scorer_boost_words(words, boosts, 3, &scorer, &err));
    float costs[] = {2, 0, -0.75f, 0}, final = 0;
    int next[] = {0, 0, 0, 0};
    oracle_scorer tables = {1, NUM_WORDS, next, costs, &final};
    for (int by_state = 0; by_state < 2;
         by_state++) { /* there is one context, so both recombine in the same way */
      task.options.recombine = by_state;
      wf_result *result = decode_with(&task, scorer);
      oracle_space space = oracle_space_of(wf_graph_fst(task.graph), &tables, &task.options);
      oracle_result *expected = malloc(sizeof *expected);
      if (result->status != WF_ERR_NEGATIVE_CYCLE) { /* a boosted word may be on an epsilon cycle */
        assert_int_equal(result->status, WF_OK);
        oracle_decode_in(&space, &task.options, &task.scores, expected, NULL);
        assert_as_expected(&task, result, expected, seed);
      }
      wf_result_free(result);
      free(expected);
    }
    wf_scorer_free(scorer);
    test_free_task(&task);
  }
  wf_scorer *none = NULL;
  assert_int_equal(wf_scorer_boost_words((int32_t[]){0}, boosts, 1, &none, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_scorer_boost_words(words, (float[]){1, 1, 2}, 3, &none, &err),
                   WF_ERR_ARGUMENT);
  assert_int_equal(wf_scorer_boost_words(words, (float[]){NAN, 1, 2}, 3, &none, &err),
                   WF_ERR_ARGUMENT);
  assert_null(none);
}

/* --- the public calls -------------------------------------------------------------------- */

/* The utterances of a batch have their own scorer, the decoder's, or none, on several threads.
 * Results equal those of single utterances. */
static void test_batches(void **state) {
  (void)state;
  enum { COUNT = 30 };
  wf_error err = {0};
  test_rng rng = {5};
  struct decode_task task = test_random_task(76);
  wf_scores batch[COUNT];
  float *data[COUNT];
  wf_result *alone[COUNT], *together[COUNT];
  test_random_batch(&task, batch, data, COUNT, 5, 80);
  oracle_scorer tables[2];
  wf_scorer *scorers[2];
  for (int i = 0; i < 2; i++) {
    table_scorer_shape shape = {.max_contexts = 5, .num_words = NUM_WORDS, .wide = i == 0};
    tables[i] = test_random_tables(&rng, &shape);
    scorers[i] = test_table_scorer(&tables[i], shape.wide);
  }
  const wf_scorer *each[COUNT];
  for (int i = 0; i < COUNT; i++) {
    task.scores = batch[i];
    each[i] = i % 3 == 0 ? NULL : scorers[0];
    alone[i] = decode_with(&task, i % 3 == 0 ? scorers[1] : scorers[0]);
  }
  for (int threads = 1; threads <= 5; threads += 2) {
    wf_decoder *decoder;
    task.options.num_threads = threads;
    assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
    assert_ok(wf_decoder_set_scorer(decoder, scorers[1], &err));
    assert_ok(test_decode_scored(decoder, batch, each, COUNT, NULL, together, &err));
    test_assert_same_batch(0, together, alone, COUNT);
    test_free_results(together, COUNT);
    assert_ok(wf_decoder_set_scorer(decoder, NULL, &err)); /* no scorer any more */
    assert_ok(test_decode(decoder, batch, COUNT, NULL, together, &err));
    for (int i = 0; i < COUNT; i++) {
      task.scores = batch[i];
      wf_result *plain = test_decode_alone(&task);
      test_assert_same_result(together[i], plain);
      assert_true(plain->scorer_cost == 0);
      wf_result_free(plain);
    }
    test_free_results(together, COUNT);
    wf_decoder_free(decoder);
  }
  test_free_results(alone, COUNT);
  for (int i = 0; i < COUNT; i++) free(data[i]);
  for (int i = 0; i < 2; i++) {
    wf_scorer_free(scorers[i]);
    test_free_tables(&tables[i]);
  }
  test_free_task(&task);
}

/* Two paths into one state with different histories. By pair, both are kept, and the second word
 * decides. By state, the cheaper first word wins at once. */
static void test_pair_and_state_by_hand(void **state) {
  (void)state;
  wf_error err = {0};
  struct decode_task task = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 1 0;0 1 1 2 0.5;1 2 1 3 0;2 0");
  int next[] = {1, 2, 0, 1, 2, 0, 1, 2, 0};
  float cost[] = {0, 0, 0, 0, 0, 5, 0, 0, 0.25f}, final[] = {1, 0, 0}, score[] = {0, 0};
  oracle_scorer tables = {3, 3, next, cost,
                          final}; /* word 3 costs 5 after word 1, 0.25 after word 2 */
  wf_scorer *scorer = test_table_scorer(&tables, false);
  assert_ok(wf_graph_create(fst, NULL, 0, &task.graph, &err));
  wf_decoder_options_init(&task.options);
  task.scores = (wf_scores){score, 2, 1, 1};
  task.options.lattice_beam = 10;
  wf_result *result = decode_with(&task, scorer);
  assert_true(result->num_words == 2 && result->words[0].label == 2 && result->cost == 1.75 &&
              result->scorer_cost == 1.25 && result->graph_cost == 0.5);
  wf_lattice_view lattice = wf_lattice_get_view(result->lattice);
  assert_int_equal(lattice.num_states, 4); /* state 1 twice, in order of context; state 2 once */
  assert_int_equal(lattice.num_arcs, 4);
  assert_true(lattice.arcs[0].olabel == 1 && lattice.arcs[1].olabel == 2 &&
              lattice.arcs[2].scorer_cost == 5 && lattice.arcs[3].scorer_cost == 0.25f);
  assert_true(lattice.final_scorer_cost[3] == 1 && lattice.final_graph_cost[3] == 0);
  wf_result_free(result);
  task.options.recombine = 1;
  wf_decoder *decoder;
  assert_int_equal(wf_decoder_create(task.graph, &task.options, &decoder, &err),
                   WF_ERR_UNSUPPORTED);
  task.options.lattice_beam = 0;
  result = decode_with(&task, scorer);
  assert_true(result->num_words == 2 && result->words[0].label == 1 && result->cost == 6);
  wf_result_free(result);
  wf_scorer_free(scorer);
  test_free_task(&task);
  wf_fst_free(fst);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_example_boost),
                                     cmocka_unit_test(test_example_chain),
                                     cmocka_unit_test(test_pairs_against_oracle),
                                     cmocka_unit_test(test_states_against_oracle),
                                     cmocka_unit_test(test_against_composed_graph),
                                     cmocka_unit_test(test_token_table_grows),
                                     cmocka_unit_test(test_chain_against_product),
                                     cmocka_unit_test(test_word_boost_against_arc_costs),
                                     cmocka_unit_test(test_batches),
                                     cmocka_unit_test(test_pair_and_state_by_hand)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
