/* test_ctc_states.c - a CTC graph that keeps its token graph, compared with graphs that have all
 * its states and arcs: those of ctc_explicit, under the same numbers, and those of
 * wf_graph_to_fst. Every bit of results, partial results and lattices is the same; and the same as
 * that of the slow decoder. */
#include "ctc_tasks.h"
#include "lattice_oracle.h"
#include "lattice_paths.h"
#include "table_scorer.h"
/* After the library's headers, because it defines `model`. */
#include "random_scorers.h"

static wf_error err;

/* What the tasks cover. */
struct seen {
  uint64_t decoded, failed, dead, finals, narrowed, overflown, worded, scored, epsilons, lattices,
      shared_arcs, skipped, partials, wide, crowded, deduced;
};

/* --- results ----------------------------------------------------------------------------- */

static wf_result *decode_with(const wf_graph *graph, const struct ctc_task *task,
                              const wf_scorer *scorer) {
  wf_decoder *decoder;
  wf_result *result;
  assert_ok(wf_decoder_create(graph, &task->shared.options, &decoder, &err));
  assert_ok(wf_decoder_set_scorer(decoder, scorer, &err));
  assert_ok(test_decode(decoder, &task->shared.scores, 1, NULL, &result, &err));
  wf_decoder_free(decoder);
  return result;
}

/* has_void: the other graph has the same number of arcs. */
static void assert_same(uint64_t seed, wf_result *shared, wf_result *other, bool has_void) {
  const uint64_t num_arcs = other->num_arcs;
  if (!has_void) {
    assert_true(other->num_arcs <= shared->num_arcs);
    other->num_arcs = shared->num_arcs;
  }
  assert_string_equal(shared->message, other->message);
  test_assert_same_batch(seed, &shared, &other, 1);
  other->num_arcs = num_arcs;
}

static void count(struct seen *seen, const struct ctc_task *task, const wf_result *result) {
  const wf_graph *graph = task->shared.graph;
  seen->failed += result->status != WF_OK;
  if (result->status != WF_OK) return;
  seen->decoded++;
  seen->dead += (result->flags & WF_RESULT_DIED) != 0 && result->num_decoded > 0;
  seen->finals += !(result->flags & WF_RESULT_NOT_FINAL);
  seen->narrowed += (result->flags & WF_RESULT_NARROWED) != 0;
  seen->overflown += (result->flags & WF_RESULT_OVERFLOW) != 0;
  seen->worded += result->num_words > 0;
  seen->scored += result->scorer_cost != 0;
  seen->epsilons += graph->has_epsilon_cycles;
  seen->lattices += result->lattice != NULL && wf_lattice_get_view(result->lattice).num_arcs > 20;
  seen->shared_arcs += graph->num_states > 2 * graph->view.num_states;
  seen->wide += graph->num_wide > 0;
  seen->crowded += result->num_expanded > 150 * (uint64_t)result->num_decoded;
  for (int64_t t = 0; t < result->num_decoded; t++)
    if (result->alignment[t] == 0) seen->skipped++;
}

/* Sets options of the blank, which the slow decoder does not have. */
static void set_blank_options(test_rng *rng, struct ctc_task *task) {
  wf_decoder_options *o = &task->shared.options;
  if (test_below(rng, 3) != 0) return;
  /* With few tokens, few frames have a blank above 0.3. */
  o->blank_skip_threshold = task->num_tokens > 10 ? 0.3f : 0.1f;
  o->blank_penalty = (float)test_below(rng, 3) / 2 - 0.5f;
}

/* --- against the explicit graphs --------------------------------------------------------- */

static void assert_same_graphs(const wf_graph *shared, const wf_graph *whole) {
  assert_null(whole->ctc);
  assert_int_equal(whole->num_states, shared->num_states);
  assert_int_equal(whole->num_arcs, shared->num_arcs);
  assert_int_equal(whole->start, shared->start);
  assert_int_equal(whole->num_labels, shared->num_labels);
  assert_int_equal(whole->min_columns, shared->min_columns);
  assert_int_equal(whole->blank_column, shared->blank_column);
  assert_int_equal(whole->has_epsilons, shared->has_epsilons);
  assert_int_equal(whole->has_epsilon_cycles, shared->has_epsilon_cycles);
  assert_int_equal(whole->has_negative_epsilons, shared->has_negative_epsilons);
  assert_int_equal(whole->has_epsilon_words, shared->has_epsilon_words);
  assert_memory_equal(whole->index, shared->index, (shared->num_states + 1) * sizeof *whole->index);
  for (uint32_t s = 0; s < shared->num_states; s++) {
    assert_true(wf__graph_final(shared, s) == whole->view.final_cost[s]);
    for (uint32_t a = shared->index[s].first_arc; a < shared->index[s + 1].first_arc; a++) {
      const wf_arc ours = wf__graph_arc_from(shared, s, a), theirs = whole->view.arcs[a];
      assert_int_equal(wf__ctc_source(shared, a), s);
      if (theirs.weight == INFINITY) continue;
      assert_memory_equal(&ours, &theirs, sizeof ours);
      if (ours.ilabel != 0)
        assert_int_equal(wf__label_read(shared, a, ours.nextstate, false), ours.ilabel);
    }
  }
}

static wf_scorer *some_scorer(test_rng *rng, const wf_symbols *words, const oracle_scorer *tables) {
  const uint32_t kind = test_below(rng, 6);
  return kind < 2   ? NULL
         : kind < 4 ? random_scorer(rng, words)
                    : test_table_scorer(tables, kind == 4);
}

static void check_against_explicit(uint64_t seed, struct ctc_shape shape, const wf_symbols *words,
                                   struct seen *seen) {
  struct ctc_task task;
  wf_graph *whole;
  test_rng rng = {seed * 7 + 1};
  ctc_random_task(seed, shape, &task);
  set_blank_options(&rng, &task);
  whole = ctc_explicit(task.shared.graph);
  if (!shape.wide || seed % 8 == 0) assert_same_graphs(task.shared.graph, whole);
  oracle_scorer tables = test_random_tables(
      &rng, &(table_scorer_shape){.max_contexts = 5, .num_words = 4, .negative = seed % 2 == 0});
  wf_scorer *scorer = some_scorer(&rng, words, &tables);
  if (scorer != NULL && test_below(&rng, 6) == 0) {
    task.shared.options.recombine = 1;
    task.shared.options.lattice_beam = 0;
  }
  wf_result *shared = decode_with(task.shared.graph, &task, scorer),
            *explicit_one = decode_with(whole, &task, scorer),
            *spelled = decode_with(task.spelled, &task, scorer);
  assert_same(seed, shared, explicit_one, true);
  assert_same(seed, shared, spelled, false);
  count(seen, &task, shared);
  wf_result_free(shared);
  wf_result_free(explicit_one);
  wf_result_free(spelled);
  wf_scorer_free(scorer);
  test_free_tables(&tables);
  wf_graph_free(whole);
  ctc_free_task(&task);
}

static void test_small_against_explicit(void **state) {
  (void)state;
  const uint64_t seeds = 5000;
  struct seen seen = {0};
  wf_symbols *words = random_scorer_words();
  for (uint64_t seed = 1; seed <= test_seeds(seeds); seed++)
    check_against_explicit(seed, (struct ctc_shape){0}, words, &seen);
  wf_symbols_free(words);
  assert_true(test_many(seen.decoded, 4000, seeds) && test_many(seen.failed, 20, seeds) &&
              test_many(seen.dead, 100, seeds) && test_many(seen.finals, 1000, seeds) &&
              test_many(seen.narrowed, 300, seeds) && test_many(seen.overflown, 300, seeds) &&
              test_many(seen.worded, 1000, seeds) && test_many(seen.scored, 1000, seeds) &&
              test_many(seen.epsilons, 300, seeds) && test_many(seen.lattices, 100, seeds) &&
              test_many(seen.shared_arcs, 1000, seeds) && test_many(seen.skipped, 100, seeds));
}

static void test_wide_against_explicit(void **state) {
  (void)state;
  const uint64_t seeds = 600;
  struct seen seen = {0};
  wf_symbols *words = random_scorer_words();
  for (uint64_t seed = 1; seed <= test_seeds(seeds); seed++)
    check_against_explicit(seed, (struct ctc_shape){.wide = true}, words, &seen);
  wf_symbols_free(words);
  assert_true(test_many(seen.wide, 400, seeds) && test_many(seen.dead, 10, seeds) &&
              test_many(seen.narrowed, 30, seeds) && test_many(seen.overflown, 30, seeds) &&
              test_many(seen.scored, 50, seeds) && test_many(seen.lattices, 50, seeds));
}

/* Frames in which hundreds of sources share the arcs of a few states, and of which most are left out
 * (frame/dominance.h). */
static void test_ties_against_explicit(void **state) {
  (void)state;
  const uint64_t seeds = 300;
  struct seen seen = {0};
  wf_symbols *words = random_scorer_words();
  for (uint64_t seed = 1; seed <= test_seeds(seeds); seed++)
    check_against_explicit(seed, (struct ctc_shape){.wide = true, .tied = true}, words, &seen);
  wf_symbols_free(words);
  assert_true(test_many(seen.crowded, 60, seeds) && test_many(seen.narrowed, 8, seeds) &&
              test_many(seen.overflown, 4, seeds) && test_many(seen.scored, 80, seeds) &&
              test_many(seen.lattices, 25, seeds));
}

/* --- paths ------------------------------------------------------------------------------- */

/* A sum over all paths that read x, of a number made of a path's words and cost; weights are
 * multiples of 1/8. The sum tells whether two fsts have the same paths, each as often. */
static uint64_t sum_of_paths(const wf_fst_view *view, uint64_t s, const int32_t *x, int size,
                             uint64_t words, float cost) {
  uint64_t sum = 0;
  if (size == 0 && view->final_cost[s] != INFINITY) {
    test_rng mixer = {words * 4096 + (uint64_t)(int64_t)(8 * (cost + view->final_cost[s]))};
    sum += test_next(&mixer);
  }
  for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++) {
    const wf_arc *arc = &view->arcs[a];
    const int read = arc->ilabel != 0;
    if (arc->weight == INFINITY || (read && (size == 0 || arc->ilabel != *x))) continue;
    sum += sum_of_paths(view, arc->nextstate, x + read, size - read,
                        arc->olabel != 0 ? words * 5 + (uint64_t)arc->olabel : words,
                        cost + arc->weight);
  }
  return sum;
}

/* What the frames say: a token that goes on is one, a blank is none. */
static int collapse(const int32_t *x, int frames, int32_t blank, int32_t *out) {
  int size = 0;
  for (int t = 0; t < frames; t++)
    if (x[t] != blank && (t == 0 || x[t] != x[t - 1])) out[size++] = x[t];
  return size;
}

/* The paths of the token graph for each string of tokens, one for each string of frames that says
 * it. */
static void test_each_path_once(void **state) {
  (void)state;
  enum { FRAMES = 5 };
  uint64_t compared = 0;
  for (uint64_t seed = 1; seed <= 400; seed++) {
    struct ctc_task task;
    wf_graph *whole;
    ctc_random_task(seed, (struct ctc_shape){.plain = true}, &task);
    test_rng rng = {seed};
    whole = ctc_explicit(task.shared.graph);
    const wf_fst_view *token_graph = &task.shared.graph->view,
                      *views[2] = {&whole->view, &task.spelled->view};
    for (int round = 0; round < 60 && !task.shared.graph->has_epsilon_cycles; round++) {
      int32_t x[FRAMES], y[FRAMES];
      const int frames = (int)test_below(&rng, FRAMES + 1);
      for (int t = 0; t < frames; t++)
        x[t] = t > 0 && test_below(&rng, 3) == 0
                   ? x[t - 1]
                   : 1 + (int32_t)test_below(&rng, (uint32_t)task.num_tokens);
      const int size = collapse(x, frames, task.blank, y);
      const uint64_t want = sum_of_paths(token_graph, (uint64_t)token_graph->start, y, size, 0, 0);
      for (int i = 0; i < 2; i++)
        if (sum_of_paths(views[i], (uint64_t)views[i]->start, x, frames, 0, 0) != want)
          fail_msg("seed %llu, round %d, graph %d: other paths", (unsigned long long)seed, round,
                   i);
      compared += want != 0 && size > 1;
    }
    wf_graph_free(whole);
    ctc_free_task(&task);
  }
  assert_true(compared > 500);
}

/* --- against the slow decoder ------------------------------------------------------------ */

static void assert_as_expected(uint64_t seed, const wf_fst *fst, const wf_result *result,
                               const oracle_result *expected) {
  bool same = result->flags == expected->flags && result->num_decoded == expected->num_decoded &&
              result->graph_cost == expected->graph_cost &&
              result->acoustic_cost == expected->acoustic_cost &&
              result->scorer_cost == expected->scorer_cost &&
              (int)result->num_words == expected->num_words &&
              (result->num_words == 0 ||
               memcmp(result->words, expected->words, result->num_words * sizeof(wf_word)) == 0);
  int64_t t = 0;
  for (int i = 0; i < expected->num_arcs && same; i++) {
    const int32_t label = wf_fst_get_view(fst).arcs[expected->arcs[i]].ilabel;
    if (label != 0) same = result->alignment[t++] == label;
  }
  if (!same)
    fail_msg("seed %llu: flags %u/%u decoded %lld/%lld cost %.9g+%.9g / %.9g+%.9g words %zu/%d",
             (unsigned long long)seed, result->flags, expected->flags,
             (long long)result->num_decoded, (long long)expected->num_decoded, result->graph_cost,
             result->acoustic_cost, expected->graph_cost, expected->acoustic_cost,
             result->num_words, expected->num_words);
}

static void check_against_oracle(uint64_t seed, bool wide, struct seen *seen) {
  struct ctc_task task;
  test_rng rng = {seed * 13 + 5};
  ctc_random_task(seed, (struct ctc_shape){wide, true}, &task);
  oracle_scorer tables = test_random_tables(
      &rng, &(table_scorer_shape){
                .max_contexts = wide ? 2 : 5, .num_words = 4, .negative = test_below(&rng, 2)});
  const bool scored = test_below(&rng, 2) == 0;
  wf_scorer *scorer = scored ? test_table_scorer(&tables, test_below(&rng, 2) == 0) : NULL;
  const wf_fst *fst = wf_graph_fst(task.spelled);
  const oracle_space space = oracle_space_of(fst, scored ? &tables : NULL, &task.shared.options);
  oracle_result *expected = malloc(sizeof *expected);
  assert_non_null(expected);
  oracle_decode_in(&space, &task.shared.options, &task.shared.scores, expected, NULL);
  wf_result *result = decode_with(task.shared.graph, &task, scorer);
  assert_int_equal(result->status, expected->fits ? WF_OK : WF_ERR_LIMIT);
  if (expected->fits) assert_as_expected(seed, fst, result, expected);
  if (expected->fits && result->lattice != NULL) {
    const wf_lattice_view lattice = wf_lattice_get_view(result->lattice);
    wf_lattice_view wanted;
    assert_true(oracle_lattice_in(&space, &task.shared.options, &task.shared.scores, &wanted));
    if (!oracle_same_lattice(&lattice, &wanted, seed)) fail();
    oracle_free_view(&wanted);
  }
  count(seen, &task, result);
  wf_result_free(result);
  free(expected);
  wf_scorer_free(scorer);
  test_free_tables(&tables);
  ctc_free_task(&task);
}

static void test_small_against_oracle(void **state) {
  (void)state;
  const uint64_t seeds = 3000;
  struct seen seen = {0};
  for (uint64_t seed = 1; seed <= test_seeds(seeds); seed++)
    check_against_oracle(seed, false, &seen);
  assert_true(test_many(seen.decoded, 2000, seeds) && test_many(seen.failed, 10, seeds) &&
              test_many(seen.dead, 50, seeds) && test_many(seen.overflown, 150, seeds) &&
              test_many(seen.scored, 300, seeds) && test_many(seen.epsilons, 150, seeds) &&
              test_many(seen.lattices, 50, seeds) && test_many(seen.shared_arcs, 500, seeds));
}

static void test_wide_against_oracle(void **state) {
  (void)state;
  const uint64_t seeds = 60;
  struct seen seen = {0};
  for (uint64_t seed = 1; seed <= test_seeds(seeds); seed++)
    check_against_oracle(seed, true, &seen);
  assert_true(test_many(seen.wide, 8, seeds) && test_many(seen.scored, 5, seeds));
}

/* --- streams ----------------------------------------------------------------------------- */

static void assert_same_partial_lattices(wf_stream *const *streams) {
  wf_lattice *lattices[2];
  wf_status status[2];
  for (int i = 0; i < 2; i++) status[i] = wf_stream_partial_lattice(streams[i], &lattices[i], &err);
  assert_int_equal(status[0], status[1]);
  if (status[0] == WF_OK) assert_true(test_same_raw(lattices[0], lattices[1]));
  for (int i = 0; i < 2; i++) wf_lattice_free(lattices[i]);
}

/* Feeds both streams the same chunks, and compares what they say so far. */
static void feed(test_rng *rng, const struct ctc_task *task, wf_stream *const *streams,
                 struct seen *seen) {
  const wf_scores *scores = &task->shared.scores;
  for (int64_t fed = 0, size; fed < scores->num_frames; fed += size) {
    wf_stream_event events[2];
    size = test_below(rng, 4);
    if (size > scores->num_frames - fed) size = scores->num_frames - fed;
    const wf_scores chunk = test_rows(scores, fed, size);
    for (int i = 0; i < 2; i++) assert_ok(wf_stream_advance(streams[i], &chunk, &events[i], &err));
    test_assert_same_event(&events[0], &events[1]);
    if (test_below(rng, 2) == 0) test_assert_same_partials(streams);
    if (task->shared.options.lattice_beam > 0 && test_below(rng, 2) == 0)
      assert_same_partial_lattices(streams);
    seen->partials++;
  }
}

/* A stream of the shared graph, and one of the graph with all its arcs; each for two utterances. */
static void check_streams(uint64_t seed, struct ctc_shape shape, const wf_symbols *words,
                          struct seen *seen) {
  struct ctc_task task;
  test_rng rng = {seed * 3 + 2};
  wf_decoder *decoders[2];
  wf_stream *streams[2];
  ctc_random_task(seed, shape, &task);
  set_blank_options(&rng, &task);
  oracle_scorer tables = test_random_tables(
      &rng, &(table_scorer_shape){.max_contexts = 5, .num_words = 4, .last_word = true});
  wf_scorer *scorer = some_scorer(&rng, words, &tables);
  const wf_graph *graphs[2] = {task.shared.graph, task.spelled};
  for (int i = 0; i < 2; i++) {
    assert_ok(wf_decoder_create(graphs[i], &task.shared.options, &decoders[i], &err));
    assert_ok(wf_decoder_set_scorer(decoders[i], scorer, &err));
    assert_ok(wf_stream_create(decoders[i], NULL, &streams[i], &err));
  }
  wf_result *whole = decode_with(task.shared.graph, &task, scorer);
  for (int round = 0; round < 2; round++) {
    wf_result *results[2];
    feed(&rng, &task, streams, seen);
    for (int i = 0; i < 2; i++) assert_ok(wf_stream_finish(streams[i], &results[i], &err));
    if (whole->status == WF_OK) test_assert_same_batch(seed, &results[0], &whole, 1);
    assert_same(seed, results[0], results[1], false);
    test_free_results(results, 2);
    for (int i = 0; i < 2; i++) assert_ok(wf_stream_reset(streams[i], &err));
  }
  count(seen, &task, whole);
  wf_result_free(whole);
  for (int i = 0; i < 2; i++) {
    wf_stream_free(streams[i]);
    wf_decoder_free(decoders[i]);
  }
  wf_scorer_free(scorer);
  test_free_tables(&tables);
  ctc_free_task(&task);
}

static void test_streams(void **state) {
  (void)state;
  const uint64_t seeds = 1500;
  struct seen seen = {0};
  wf_symbols *words = random_scorer_words();
  for (uint64_t seed = 1; seed <= test_seeds(seeds); seed++)
    check_streams(seed, (struct ctc_shape){.wide = seed % 10 == 0, .tied = seed % 20 == 0}, words,
                  &seen);
  wf_symbols_free(words);
  assert_true(test_many(seen.partials, 2000, seeds) && test_many(seen.worded, 300, seeds) &&
              test_many(seen.scored, 200, seeds) && test_many(seen.lattices, 30, seeds) &&
              test_many(seen.skipped, 5, seeds) && test_many(seen.wide, 50, seeds));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_against_explicit), cmocka_unit_test(test_wide_against_explicit),
      cmocka_unit_test(test_ties_against_explicit),  cmocka_unit_test(test_small_against_oracle),
      cmocka_unit_test(test_wide_against_oracle),    cmocka_unit_test(test_streams),
      cmocka_unit_test(test_each_path_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
