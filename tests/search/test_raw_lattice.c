/* test_raw_lattice.c - the lattice of the decoder: its arcs and its costs.
 *
 * First examples by hand. Then random tasks are compared with brute force, bit for bit, and with
 * all paths of small graphs. */
#include "decode_tasks.h"
#include "example.h"
#include "lattice_oracle.h"
#include "search/searcher.h"

/* --- examples by hand -------------------------------------------------------------------- */

/* Two words for one frame of the token A, whose log-likelihood is -1. Word 2 costs 0.5 more.
 *
 *        A:1/0
 *      /-------\
 *   (0)         ((1))
 *      \-------/
 *        A:2/0.5         */
static void expect_arcs(float lattice_beam, uint64_t num_arcs) {
  static const float scores[] = {-1};
  struct example e = example_of("0 1 1 1 0\n0 1 1 2 0.5\n1\n", scores, 1, 1);
  e.options.lattice_beam = lattice_beam;
  wf_result *result = example_decode(&e, NULL);
  const wf_lattice_view lattice = wf_lattice_get_view(result->lattice);
  assert_int_equal(lattice.num_states, 2);
  assert_int_equal(lattice.num_arcs, num_arcs);
  for (uint64_t i = 0; i < num_arcs; i++) {
    assert_int_equal(lattice.arcs[i].ilabel, 1);
    assert_int_equal(lattice.arcs[i].olabel, i + 1);
    assert_true(lattice.arcs[i].graph_cost ==
                0.5f * (float)i); /* kept apart from the acoustic cost */
    assert_true(lattice.arcs[i].acoustic_cost == 1);
  }
  assert_true(lattice.final_graph_cost[0] == INFINITY && lattice.final_graph_cost[1] == 0);
  assert_int_equal(lattice.frames[1], 1);
  wf_result_free(result);
}

static void test_example_lattice_beam(void **state) {
  (void)state;
  expect_arcs(8, 2);     /* both words */
  expect_arcs(0.25f, 1); /* only the best */
  expect_arcs(0.5f, 2);  /* a path at exactly the beam is included */
}

/* The search beam prunes first. What it has pruned is in no lattice, however large lattice_beam is.
 */
static void test_example_search_beam(void **state) {
  (void)state;
  static const float scores[] = {-1};
  struct example e = example_of("0 1 1 1 0\n0 2 1 2 0.5\n1\n2\n", scores, 1, 1);
  e.options.lattice_beam = 8;
  wf_result *wide = example_decode(&e, NULL);
  e.options.beam = 0.25f;
  wf_result *narrow = example_decode(&e, NULL);
  assert_int_equal(wf_lattice_get_view(wide->lattice).num_arcs, 2);
  assert_int_equal(wf_lattice_get_view(narrow->lattice).num_arcs, 1);
  wf_result_free(wide);
  wf_result_free(narrow);
}

/* --- random tasks ------------------------------------------------------------------------- */

static const float beams[] = {0.125f, 0.5f, 2, 8, 1000};

static void test_against_oracle(void **state) {
  (void)state;
  uint64_t compared = 0, dead = 0, not_final = 0, narrowed = 0, overflown = 0, with_epsilons = 0,
           several_paths = 0;
  for (uint64_t seed = 1; seed <= 6000; seed++) {
    struct decode_task task = test_random_task(seed);
    task.options.lattice_beam = beams[seed % 5];
    task.options.lattice_prune_interval = 1 + (int32_t)(seed % 7);
    wf_result *result = test_decode_alone(&task);
    wf_lattice_view expected;
    bool fits = oracle_lattice(wf_graph_fst(task.graph), &task.options, &task.scores, &expected);
    assert_int_equal(result->status, fits ? WF_OK : WF_ERR_LIMIT);
    if (!fits) assert_null(result->lattice);
    if (fits) {
      wf_lattice_view lattice = wf_lattice_get_view(result->lattice);
      if (!oracle_same_lattice(&lattice, &expected, seed)) fail();
      oracle_check_shape(&lattice, result->num_decoded);
      if (fabs(oracle_lattice_best(&lattice) - result->cost) > 1e-4)
        fail_msg("seed %llu: best %.9g, result %.9g", (unsigned long long)seed,
                 oracle_lattice_best(&lattice), result->cost);
      compared++;
      dead += (result->flags & WF_RESULT_DIED) != 0 && result->num_decoded > 0;
      not_final += (result->flags & WF_RESULT_NOT_FINAL) != 0 && result->num_decoded > 2;
      narrowed += (result->flags & WF_RESULT_NARROWED) != 0;
      overflown += (result->flags & WF_RESULT_OVERFLOW) != 0;
      several_paths += lattice.num_arcs >= lattice.num_states;
      for (uint64_t a = 0; a < lattice.num_arcs; a++)
        if (lattice.arcs[a].ilabel == 0) {
          with_epsilons++;
          break;
        }
      oracle_free_view(&expected);
    }
    wf_result_free(result);
    test_free_task(&task);
  }
  assert_true(compared > 4000 && dead > 300 && not_final > 300 && narrowed > 300 &&
              overflown > 300 && with_epsilons > 1000 && several_paths > 1000);
}

/* Graphs small enough to list every path. All numbers are multiples of 1/8, so float32 sums are
 * exact, and costs at exactly lattice_beam are common. */
static struct decode_task small_task(uint64_t seed) {
  wf_error err = {0};
  test_rng rng = {seed * 77 + 5};
  struct decode_task task = {0};
  static const float epsilon_shares[] = {0, 0.3f, 0.5f};
  test_fst_shape shape = {.num_states = 2 + test_below(&rng, 6),
                          .num_ilabels = 3,
                          .num_olabels = 30,
                          .final_share = 0.2f + test_unit(&rng),
                          .max_weight = seed % 4 == 0 ? 0 : 2,
                          .epsilon_share = epsilon_shares[test_below(&rng, 3)]};
  shape.num_arcs = shape.num_states * (2 + test_below(&rng, 2));
  wf_fst *fst = test_random_fst(&rng, &shape);
  assert_ok(wf_graph_create(fst, NULL, 0, &task.graph, &err));
  wf_fst_free(fst);
  wf_decoder_options_init(&task.options);
  task.options.beam = 1e6f;
  task.options.lattice_beam = (float)(1 + test_below(&rng, 40)) / 8;
  task.options.lattice_prune_interval = 1 + (int32_t)test_below(&rng, 4);
  task.options.word_score = test_below(&rng, 3) == 0 ? -0.25f : 0;
  task.options.num_threads = 1;
  int64_t num_frames = test_below(&rng, 7);
  task.scores = (wf_scores){.num_frames = num_frames, .num_columns = 3, .stride = 3};
  task.data = malloc((size_t)(num_frames * 3 + 1) * sizeof *task.data);
  for (int64_t i = 0; i < num_frames * 3; i++)
    task.data[i] = test_below(&rng, 20) == 0 ? -INFINITY : -(float)test_below(&rng, 17) / 8;
  task.scores.data = task.data;
  return task;
}

static bool epsilons_cycle(const wf_fst *fst) {
  wf_fst_view view = wf_fst_get_view(fst);
  bool removed = true, left[64],
       any = false; /* remove states whose epsilon arcs all lead to removed states */
  for (uint64_t s = 0; s < view.num_states; s++) left[s] = true;
  while (removed) {
    removed = false;
    for (uint64_t s = 0; s < view.num_states; s++) {
      bool leads_on = false;
      for (uint64_t a = view.arc_off[s]; a < view.arc_off[s + 1]; a++)
        leads_on = leads_on || (view.arcs[a].ilabel == 0 && left[view.arcs[a].nextstate]);
      if (left[s] && !leads_on) left[s] = false, removed = true;
    }
  }
  for (uint64_t s = 0; s < view.num_states; s++) any = any || left[s];
  return any;
}

/* Is every arc of `part` also in `whole`, with the same frame, labels and costs? */
static bool is_part(const wf_lattice_view *part, const wf_lattice_view *whole) {
  for (uint64_t s = 0; s < part->num_states; s++)
    for (uint64_t a = part->arc_off[s]; a < part->arc_off[s + 1]; a++) {
      const wf_lattice_arc *x = &part->arcs[a];
      bool found = false;
      for (uint64_t r = 0; r < whole->num_states && !found; r++)
        for (uint64_t b = whole->arc_off[r]; b < whole->arc_off[r + 1] && !found; b++) {
          const wf_lattice_arc *y = &whole->arcs[b];
          found = whole->frames[r] == part->frames[s] && x->ilabel == y->ilabel &&
                  x->olabel == y->olabel && x->graph_cost == y->graph_cost &&
                  x->acoustic_cost == y->acoustic_cost;
        }
      if (!found) return false;
    }
  return true;
}

static void test_against_all_paths(void **state) {
  (void)state;
  uint64_t compared = 0, cyclic = 0, arcs = 0, unfinished = 0;
  for (uint64_t seed = 1; seed <= 6000; seed++) {
    struct decode_task task = small_task(seed);
    wf_result *result = test_decode_alone(&task);
    assert_int_equal(result->status, WF_OK);
    wf_lattice_view lattice = wf_lattice_get_view(result->lattice), expected;
    bool final = !(result->flags & WF_RESULT_NOT_FINAL),
         cycle = epsilons_cycle(wf_graph_fst(task.graph));
    if (enumerated_lattice(wf_graph_fst(task.graph), &task.options, &task.scores,
                           result->num_decoded, final, 20000, &expected)) {
      if (!cycle && !oracle_same_lattice(&lattice, &expected, seed)) fail();
      if (cycle) assert_true(is_part(&lattice, &expected));
      oracle_check_shape(&lattice, result->num_decoded);
      assert_true(oracle_lattice_best(&lattice) == result->cost); /* all numbers are exact */
      compared += !cycle;
      cyclic += cycle;
      unfinished += !final && result->num_decoded > 0;
      arcs += lattice.num_arcs;
      oracle_free_view(&expected);
    }
    wf_result_free(result);
    test_free_task(&task);
  }
  assert_true(compared > 3000 && cyclic > 300 && unfinished > 200 && arcs > 50000);
}

static void assert_same_bytes(const wf_lattice *x, const wf_lattice *y) {
  wf_lattice_view a = wf_lattice_get_view(x), b = wf_lattice_get_view(y);
  assert_int_equal(a.num_states, b.num_states);
  assert_int_equal(a.num_arcs, b.num_arcs);
  assert_memory_equal(a.arc_off, b.arc_off, (a.num_states + 1) * sizeof *a.arc_off);
  assert_memory_equal(a.arcs, b.arcs, a.num_arcs * sizeof *a.arcs);
  assert_memory_equal(a.frames, b.frames, a.num_states * sizeof *a.frames);
  assert_memory_equal(a.final_graph_cost, b.final_graph_cost,
                      a.num_states * sizeof *a.final_graph_cost);
}

/* Pruning at intervals never changes the lattice. The lattice never changes the result. */
static void test_prune_intervals(void **state) {
  (void)state;
  static const int32_t intervals[] = {1, 2, 3, 7, 25, 64, 1 << 30};
  for (uint64_t seed = 1; seed <= 40; seed++) {
    struct decode_task task = test_random_task(seed);
    wf_scores scores;
    float *data;
    test_random_batch(&task, &scores, &data, 1, seed, 400);
    task.scores = scores;
    task.options.max_tokens = 28000;
    task.options.beam = seed % 2 == 0 ? 4 : 20;
    wf_result *plain = test_decode_alone(&task), *first = NULL;
    task.options.lattice_beam = beams[seed % 5];
    assert_null(plain->lattice);
    for (size_t i = 0; i < sizeof intervals / sizeof *intervals; i++) {
      task.options.lattice_prune_interval = intervals[i];
      wf_result *result = test_decode_alone(&task);
      test_assert_same_result(result, plain);
      if (first != NULL) assert_same_bytes(result->lattice, first->lattice);
      if (first == NULL)
        first = result;
      else
        wf_result_free(result);
    }
    wf_result_free(first);
    wf_result_free(plain);
    free(data);
    test_free_task(&task);
  }
}

/* Long audio: the memory of the history follows the size of the lattice, not of the search. The
 * lattice stays the same. */
static void test_memory_follows_the_lattice(void **state) {
  (void)state;
  enum { FRAMES = 10000, COLUMNS = 8 };
  wf_error err = {0};
  test_rng rng = {9};
  struct decode_task task = {0};
  test_fst_shape shape = {.num_states = 300,
                          .num_arcs = 1500,
                          .num_ilabels = COLUMNS,
                          .num_olabels = 50,
                          .epsilon_share = 0.1f,
                          .final_share = 0.5f,
                          .max_weight = 2};
  wf_fst *fst = test_random_fst(&rng, &shape);
  assert_ok(wf_graph_create(fst, NULL, 0, &task.graph, &err));
  wf_fst_free(fst);
  wf_decoder_options_init(&task.options);
  task.options.lattice_beam = 2;
  task.scores = (wf_scores){.num_frames = FRAMES, .num_columns = COLUMNS, .stride = COLUMNS};
  task.data = malloc(FRAMES * COLUMNS * sizeof *task.data);
  for (int i = 0; i < FRAMES * COLUMNS; i++) task.data[i] = -(float)test_below(&rng, 64) / 8;
  task.scores.data = task.data;
  uint64_t rooms[2];
  wf_lattice *lattices[2];
  for (int i = 0; i < 2; i++) {
    wf__searcher *search;
    task.options.lattice_prune_interval = i == 0 ? 25 : 1 << 30;
    const wf__search_setup setup = {
        .ops = &wf__frame_searcher, .graph = task.graph, .options = task.options};
    assert_ok(setup.ops->create(&setup, false, &search, &err));
    assert_ok(setup.ops->begin(search, &err));
    assert_ok(wf__searcher_advance(search, &task.scores, &err));
    assert_ok(wf__searcher_finish(search, &task.scores, &err));
    assert_ok(setup.ops->lattice(search, &task.scores, &lattices[i], &err));
    rooms[i] = search->history.links.cap * sizeof(wf__link) +
               search->history.tokens.cap * sizeof(wf__past_token);
    setup.ops->free(search);
  }
  assert_same_bytes(lattices[0], lattices[1]);
  wf_lattice_view lattice = wf_lattice_get_view(lattices[0]);
  uint64_t kept = lattice.num_arcs * sizeof(wf__link) + lattice.num_states * sizeof(wf__past_token);
  if (rooms[0] > 3 * kept || rooms[1] < 8 * rooms[0])
    fail_msg("%llu bytes, %llu without pruning, for %llu kept", (unsigned long long)rooms[0],
             (unsigned long long)rooms[1], (unsigned long long)kept);
  wf_lattice_free(lattices[0]);
  wf_lattice_free(lattices[1]);
  test_free_task(&task);
}

static void test_batches(void **state) {
  (void)state;
  enum { COUNT = 24 };
  wf_error err = {0};
  struct decode_task task = test_random_task(76);
  wf_scores batch[COUNT];
  float *data[COUNT];
  wf_result *alone[COUNT], *together[COUNT];
  task.options.lattice_beam = 3;
  test_random_batch(&task, batch, data, COUNT, 5, 80);
  for (size_t i = 0; i < COUNT; i++) {
    task.scores = batch[i];
    alone[i] = test_decode_alone(&task);
  }
  wf_decoder *decoder;
  task.options.num_threads = 3;
  assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
  for (int round = 0; round < 2; round++) {
    assert_ok(test_decode(decoder, batch, COUNT, NULL, together, &err));
    for (size_t i = 0; i < COUNT; i++) {
      assert_same_bytes(together[i]->lattice, alone[i]->lattice);
      wf_result_free(together[i]);
    }
  }
  wf_decoder_free(decoder);
  for (size_t i = 0; i < COUNT; i++) {
    wf_result_free(alone[i]);
    free(data[i]);
  }
  test_free_task(&task);
}

/* By hand: two paths with the same words in one frame. The longer one uses an epsilon cycle of cost
 * 0. */
static void test_epsilon_cycle_by_hand(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 5 0;1 2 0 0 0;2 1 0 0 0;2 3 0 6 0.5;1 3 0 7 2;3 0");
  wf_graph *graph;
  wf_decoder *decoder;
  wf_result *result;
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  options.lattice_beam = 1;
  float score = -3;
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  assert_ok(test_decode(decoder, &(wf_scores){&score, 1, 1, 1}, 1, NULL, &result, &err));
  wf_lattice_view lattice = wf_lattice_get_view(result->lattice);
  assert_int_equal(lattice.num_states, 4); /* in the order of the graph */
  assert_int_equal(
      lattice.num_arcs,
      3); /* neither 2 -> 1, which closes the cycle, nor 1 -> 3, which costs 1.5 more */
  assert_true(lattice.arcs[0].acoustic_cost == 3 && lattice.arcs[0].nextstate == 1 &&
              lattice.arcs[0].olabel == 5);
  assert_true(lattice.arcs[1].nextstate == 2 && lattice.arcs[2].nextstate == 3 &&
              lattice.arcs[2].graph_cost == 0.5f);
  wf_lattice *kept = wf_lattice_ref(result->lattice); /* outlives the result */
  wf_result_free(result);
  assert_int_equal(wf_lattice_get_view(kept).num_arcs, 3);
  wf_lattice_free(kept);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  wf_fst_free(fst);
}

/* Gains below the slack of the closure: a token keeps a higher cost than an epsilon arc would give
 * it. Then the extra cost of the arc is 0, not negative. */
static void test_gains_below_the_slack(void **state) {
  (void)state;
  wf_error err = {0};
  uint64_t arcs = 0;
  for (uint64_t seed = 1; seed <= 500; seed++) {
    test_rng rng = {seed};
    char text[1024];
    int length = snprintf(
        text, sizeof text,
        "0 8 1 1 0;8 9 0 0 -0.25;9 8 0 0 0.25;8 0;9 0;"); /* the cycle that makes the slack apply */
    for (int from = 0; from < 7; from++)
      for (int k = 0; k < 3;
           k++) { /* multiples of 1/4096 on forward epsilons, any direction otherwise */
        int label = (int)test_below(&rng, 3),
            to = label == 0 ? from + 1 + (int)test_below(&rng, (uint32_t)(7 - from))
                            : (int)test_below(&rng, 8);
        length +=
            snprintf(text + length, sizeof text - (size_t)length, "%d %d %d %d %.9g;", from, to,
                     label, (int)test_below(&rng, 2), ((double)test_below(&rng, 16) - 8) / 4096);
      }
    snprintf(text + length, sizeof text - (size_t)length, "7 7 1 0 0;7 0;3 0.001");
    wf_fst *fst = test_fst_of(WF_TROPICAL, text);
    struct decode_task task = {0};
    assert_ok(wf_graph_create(fst, NULL, 0, &task.graph, &err));
    wf_fst_free(fst);
    wf_decoder_options_init(&task.options);
    task.options.lattice_beam = 0.002f;
    task.options.num_threads = 1;
    task.data = malloc(12 * sizeof *task.data);
    for (int i = 0; i < 12; i++) task.data[i] = -(float)test_below(&rng, 4) / 4096;
    task.scores = (wf_scores){task.data, 6, 2, 2};
    wf_result *result = test_decode_alone(&task);
    wf_lattice_view lattice = wf_lattice_get_view(result->lattice), expected;
    assert_true(oracle_lattice(wf_graph_fst(task.graph), &task.options, &task.scores, &expected));
    if (!oracle_same_lattice(&lattice, &expected, seed)) fail();
    oracle_check_shape(&lattice, 6);
    arcs += lattice.num_arcs;
    oracle_free_view(&expected);
    wf_result_free(result);
    test_free_task(&task);
  }
  assert_true(arcs > 5000);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_example_lattice_beam),
                                     cmocka_unit_test(test_example_search_beam),
                                     cmocka_unit_test(test_against_oracle),
                                     cmocka_unit_test(test_against_all_paths),
                                     cmocka_unit_test(test_prune_intervals),
                                     cmocka_unit_test(test_memory_follows_the_lattice),
                                     cmocka_unit_test(test_batches),
                                     cmocka_unit_test(test_epsilon_cycle_by_hand),
                                     cmocka_unit_test(test_gains_below_the_slack)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
