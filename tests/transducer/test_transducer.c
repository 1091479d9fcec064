/* test_transducer.c - decoding with transducers.
 *
 * Random tasks are compared with the oracle bit for bit, and with every path. Built-in models are
 * compared with the formulas in double. Bad models and bad inputs give one clear error each. */
#include "function_transducers.h"
#include "lattice_oracle.h"
#include "lattice_paths.h"
#include "scorer/scoring.h"
#include "table_scorer.h"
#include "transducer_graphs.h"
#include "transducer_oracle.h"
/* After the library's headers, because it defines `model`. */
#include "random_scorers.h"
#include "random_words.h"

/* --- scorers as tables --------------------------------------------------------------------- */

static int compare_contexts(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static int place_of(const uint64_t *contexts, int count, uint64_t context) {
  for (int c = 0; c < count; c++)
    if (contexts[c] == context) return c;
  return -1;
}

/* The contexts of a scorer that its start leads to, in the order of their numbers. -1: too many. */
static int list_contexts(wf__scoring *scoring, uint64_t *contexts, int most, int num_words) {
  wf_error err = {0};
  int count = 1;
  contexts[0] = scoring->start;
  for (int c = 0; c < count; c++)
    for (int32_t word = 1; word <= num_words; word++) {
      float cost;
      uint64_t next;
      assert_ok(wf__scoring_step(scoring, contexts[c], word, &cost, &next, &err));
      if (cost == INFINITY || place_of(contexts, count, next) >= 0) continue;
      if (count == most) return -1;
      contexts[count++] = next;
    }
  qsort(contexts, (size_t)count, sizeof *contexts, compare_contexts);
  return count;
}

/* The costs of a scorer in tables, for the oracle. Returns false if it has too many contexts. */
static bool make_tables(const wf_scorer *scorer, int num_words, oracle_scorer *out, int *start) {
  enum { MOST = 400 };
  static uint64_t contexts[MOST];
  wf_error err = {0};
  wf__scoring scoring = {0};
  assert_ok(wf__scoring_set(&scoring, wf__scorer_for_transducer(scorer), &err));
  assert_ok(wf__scoring_begin(&scoring, &err));
  int count = list_contexts(&scoring, contexts, MOST, num_words);
  if (count > 0) {
    size_t size = (size_t)count * (size_t)num_words;
    *out = (oracle_scorer){count, num_words, malloc(size * sizeof(int)),
                           malloc(size * sizeof(float)), malloc((size_t)count * sizeof(float))};
    *start = place_of(contexts, count, scoring.start);
    for (int c = 0; c < count; c++) {
      assert_ok(wf__scoring_final(&scoring, contexts[c], &out->final[c], &err));
      for (int w = 0; w < num_words; w++) {
        int at = c * num_words + w;
        uint64_t next;
        assert_ok(wf__scoring_step(&scoring, contexts[c], w + 1, &out->cost[at], &next, &err));
        out->next[at] = out->cost[at] == INFINITY ? 0 : place_of(contexts, count, next);
      }
    }
  }
  wf__scoring_free(&scoring);
  return count > 0;
}

/* --- random tasks -------------------------------------------------------------------------- */

enum { NUM_WORDS = 3 };

struct task {
  struct functions functions;
  wf_transducer *model;
  wf_graph *graph;
  wf_graph *with; /* the graph with added words; NULL: none are added */
  wf_fst *whole;  /* that graph written out */
  wf_decoder_options options;
  oracle_scorer tables;
  wf_scorer *scorer;
  bool batches; /* the scorer of tables scores in batches */
  bool is_real; /* the scorer is one that users have, not one of tables */
  int oracle_start;
  float frames[16];
  wf_scores scores;
  oracle_transducer oracle;
};

static void set_options(struct task *task, test_rng *rng, bool wide) {
  static const float beams[] = {0, 0.5f, 2, 8, 100}, scales[] = {1, 1, 1, 1, 1, 0.5f, 3, 0};
  wf_decoder_options_init(&task->options);
  task->options.beam = wide ? 1e30f : beams[test_below(rng, 5)];
  task->options.max_hypotheses = wide ? 100000 : 1 + (int32_t)test_below(rng, 5);
  task->options.max_symbols = 1 + (int32_t)test_below(rng, 3);
  task->options.acoustic_scale = scales[test_below(rng, wide ? 8 : 7)];
  task->options.word_score = test_below(rng, 3) == 0 ? -0.3f : 0;
  task->options.blank_penalty = test_below(rng, 3) == 0 ? 0.5f : 0;
  task->options.greedy = !wide && test_below(rng, 5) == 0;
  task->options.num_threads = 1;
}

/* Turns arcs of the graph into places of classes, and adds words there; with `spells`, any that the
 * tokens can spell. */
static wf_fst *add_words(struct task *task, test_rng *rng, wf_fst *fst, int num_tokens,
                         bool spells) {
  wf_error err = {0};
  struct phrases phrases;
  wf_fst *places = with_places(rng, fst, num_tokens, true);
  wf_fst_free(fst);
  assert_ok(wf_graph_create(places, NULL, 0, &task->graph, &err));
  random_phrases(rng, num_tokens, &phrases);
  for (size_t i = 0; i < phrases.count; i++)
    for (size_t k = 0; k < phrases.list[i].num_words; k++)
      phrases.words[i][k].word = 1 + phrases.words[i][k].word % NUM_WORDS;
  const char *name = test_below(rng, 2) ? "<c>" : "<d>";
  task->with = spells ? with_spelling(task->graph, name, rng, num_tokens)
                      : with_phrases(task->graph, name, &phrases);
  if (task->with != NULL) assert_ok(wf_graph_to_fst(task->with, &task->whole, &err));
  return places;
}

static void make_task(struct task *task, uint64_t seed, bool wide) {
  wf_error err = {0};
  test_rng rng = {seed};
  int num_tokens = 2 + (int)test_below(&rng, 3),
      num_durations = test_below(&rng, 2) ? 0 : 2 + (int)test_below(&rng, 3);
  *task = (struct task){0};
  task->functions =
      (struct functions){.seed = wf__mix64(seed), .context_size = (int)test_below(&rng, 3)};
  task->functions.coarse = task->functions.context_size > 0 && test_below(&rng, 2);
  wf_transducer_parts parts = parts_of(&task->functions, num_tokens, num_durations);
  assert_ok(wf_transducer_create(&parts, &task->model, &err));
  wf_fst *fst =
      test_transducer_graph(&rng, num_tokens, NUM_WORDS, 1 + (int)test_below(&rng, wide ? 4 : 6));
  if (seed / 2 % 2 == 0) fst = test_by_label(fst);
  uint32_t kind = test_below(&rng, 4);
  if (test_below(&rng, 4) == 0)
    fst = add_words(task, &rng, fst, num_tokens, kind == 0 && test_below(&rng, 2));
  else
    assert_ok(wf_graph_create(fst, NULL, 0, &task->graph, &err));
  wf_fst_free(fst);
  set_options(task, &rng, wide);
  if (wide) task->options.max_symbols = 1 + task->options.max_symbols % 2;
  int64_t num_frames = test_below(&rng, wide ? 4 : 7);
  for (int64_t t = 0; t < num_frames; t++) task->frames[t] = (float)t;
  task->scores =
      (wf_scores){.data = task->frames, .num_frames = num_frames, .num_columns = 1, .stride = 1};
  if (kind == 1 && !wide) { /* an n-gram model, boosts, or a chain of these */
    wf_symbols *words = random_scorer_words();
    task->scorer = random_scorer(&rng, words);
    wf_symbols_free(words);
    task->is_real = true;
    if (!make_tables(task->scorer, NUM_WORDS, &task->tables, &task->oracle_start)) {
      wf_scorer_free(task->scorer);
      task->scorer = NULL;
    }
  } else if (kind > 1) {
    task->batches = test_below(&rng, 2);
    table_scorer_shape shape = {
        .max_contexts = 4, .num_words = NUM_WORDS, .negative = test_below(&rng, 2)};
    task->tables = test_random_tables(&rng, &shape);
    task->scorer = test_table_scorer(&task->tables, task->batches);
  }
  const wf_fst *searched = task->with != NULL ? task->whole : wf_graph_fst(task->graph);
  task->oracle = (oracle_transducer){.view = wf_fst_get_view(searched),
                                     .scorer = task->scorer != NULL ? &task->tables : NULL,
                                     .start_context = task->oracle_start,
                                     .num_tokens = num_tokens,
                                     .num_durations = num_durations,
                                     .context_size = task->functions.context_size,
                                     .num_frames = num_frames,
                                     .log_probs = log_probs};
}

static void free_task(struct task *task) {
  if (task->scorer != NULL) test_free_tables(&task->tables);
  wf_scorer_free(task->scorer);
  wf_fst_free(task->whole);
  wf_graph_free(task->with);
  wf_graph_free(task->graph);
  wf_transducer_free(task->model);
}

static wf_result *decode(struct task *task) {
  wf_error err = {0};
  wf_decoder *decoder;
  wf_result *result;
  assert_ok(wf_decoder_create_transducer(task->graph, task->model, &task->options, &decoder, &err));
  assert_ok(wf_decoder_set_scorer(decoder, task->scorer, &err));
  const wf_utterance utterance = {.scores = task->scores, .graph = task->with};
  assert_ok(wf_decode(decoder, &utterance, 1, NULL, &result, &err));
  assert_string_equal(result->message, "");
  wf_decoder_free(decoder);
  return result;
}

static bool is_same(const wf_result *r, const oracle_transducer_result *o) {
  return r->flags == o->flags && r->num_decoded == o->num_decoded &&
         r->graph_cost == o->graph_cost && r->acoustic_cost == o->acoustic_cost &&
         r->scorer_cost == o->scorer_cost && r->num_tokens == o->num_tokens &&
         r->num_expanded == o->num_expanded && r->num_arcs == o->num_arcs &&
         (int)r->num_words == o->num_words &&
         (r->num_words == 0 || memcmp(r->words, o->words, r->num_words * sizeof *r->words) == 0) &&
         (r->num_decoded == 0 ||
          memcmp(r->alignment, o->alignment, (size_t)r->num_decoded * sizeof *r->alignment) == 0);
}

/* The graph that is searched, with the costs times `scale`; `finals`: with final states? */
static wf_graph *rewritten(const struct task *task, float scale, bool finals) {
  const wf_fst_view *view = &task->oracle.view;
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *fst;
  wf_graph *graph;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view->num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, (uint32_t)view->start, &err));
  for (uint32_t s = 0; s < view->num_states; s++) {
    for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++) {
      wf_arc arc = view->arcs[a];
      arc.weight *= scale;
      assert_ok(wf_builder_add_arc(builder, s, arc, &err));
    }
    if (finals) assert_ok(wf_builder_set_final(builder, s, scale * view->final_cost[s], &err));
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  wf_fst_free(fst);
  wf_builder_free(builder);
  return graph;
}

/* The lattice of an unfinished stream is that of its frames with a graph without final states. */
static void check_partial_lattice(const struct task *task, wf_stream *stream, int64_t num_frames) {
  wf_error err = {0};
  wf_lattice *lattice;
  wf_decoder *decoder;
  wf_result *result;
  wf_scores scores = task->scores;
  scores.num_frames = num_frames;
  wf_graph *graph = rewritten(task, 1, false);
  assert_ok(wf_stream_partial_lattice(stream, &lattice, &err));
  assert_ok(wf_decoder_create_transducer(graph, task->model, &task->options, &decoder, &err));
  assert_ok(wf_decoder_set_scorer(decoder, task->scorer, &err));
  assert_ok(test_decode(decoder, &scores, 1, NULL, &result, &err));
  assert_true(test_same_raw(result->lattice, lattice));
  wf_result_free(result);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  wf_lattice_free(lattice);
}

/* The same as a stream of random chunks, with partial results in between. */
static wf_result *decode_in_chunks(struct task *task, uint64_t seed, const wf_result *whole,
                                   uint64_t *num_stable) {
  wf_error err = {0};
  test_rng rng = {seed + 5};
  wf_decoder *decoder;
  wf_stream *stream;
  wf_result *result;
  wf_partial partial;
  wf_stream_event event;
  assert_ok(wf_decoder_create_transducer(task->graph, task->model, &task->options, &decoder, &err));
  assert_ok(wf_decoder_set_scorer(decoder, task->scorer, &err));
  assert_ok(wf_stream_create(decoder, NULL, &stream, &err));
  assert_ok(wf_stream_set_graph(stream, task->with, &err));
  for (int64_t t = 0, size; t < task->scores.num_frames; t += size) {
    if (task->scorer != NULL && !task->is_real && whole->lattice == NULL &&
        test_below(&rng, 4) == 0) { /* an equal one changes nothing */
      wf_scorer *equal = test_table_scorer(&task->tables, task->batches);
      assert_ok(wf_stream_set_scorer(stream, equal, &err));
      wf_scorer_free(equal);
    }
    size = test_below(&rng, 3);
    if (t + size > task->scores.num_frames) size = task->scores.num_frames - t;
    wf_scores chunk = task->scores;
    chunk.num_frames = size;
    chunk.data = task->frames + t;
    assert_ok(wf_stream_advance(stream, &chunk, &event, &err));
    assert_true(event.num_frames == t + size && wf_stream_bytes(stream) > 0);
    if (whole->lattice != NULL && test_below(&rng, 3) == 0)
      check_partial_lattice(task, stream, t + size);
    assert_ok(wf_stream_partial(stream, &partial, &err));
    assert_true(partial.num_frames == t + size);
    for (size_t w = 0; w < partial.num_words; w++)
      assert_true(partial.words[w].start_frame <= partial.words[w].end_frame &&
                  partial.words[w].end_frame <= t + size);
    assert_true(partial.num_stable <= whole->num_words && partial.stable_frames <= t + size);
    for (size_t w = 0; w < partial.num_stable; w++) {
      assert_int_equal(partial.words[w].label, whole->words[w].label);
      if (w + 1 < partial.num_stable)
        assert_memory_equal(&partial.words[w], &whole->words[w], sizeof(wf_word));
    }
    *num_stable += partial.num_stable;
  }
  assert_ok(wf_stream_finish(stream, &result, &err));
  wf_stream_free(stream);
  wf_decoder_free(decoder);
  return result;
}

static void check_streams(struct task *task, const wf_result *alone,
                          const oracle_transducer_result *expected, uint64_t seed,
                          uint64_t *num_stable) {
  wf_result *result = decode_in_chunks(task, seed, alone, num_stable);
  if (result->status != WF_OK || !is_same(result, expected))
    fail_msg("seed %llu: a stream's result differs: %s", (unsigned long long)seed, result->message);
  assert_true((alone->lattice == NULL) == (result->lattice == NULL));
  if (alone->lattice != NULL) assert_true(test_same_raw(alone->lattice, result->lattice));
  wf_result_free(result);
}

/* Does an arc of the graph without added words have the word? */
static bool base_has_word(const struct task *task, int32_t word) {
  wf_fst_view view = wf_fst_get_view(wf_graph_fst(task->graph));
  for (uint64_t a = 0; a < view.num_arcs; a++)
    if (view.arcs[a].olabel == word) return true;
  return false;
}

/* What the tasks have covered. */
struct coverage {
  int tasks, finals, dead, worded, scored, real, timed, greedy, states, added, entered;
};

static void count(struct coverage *seen, const struct task *task, const wf_result *result) {
  seen->tasks++;
  seen->finals += !(result->flags & WF_RESULT_NOT_FINAL);
  seen->dead += (result->flags & WF_RESULT_DIED) != 0;
  seen->worded += result->num_words > 0;
  seen->scored += task->scorer != NULL;
  seen->real += task->scorer != NULL && task->is_real;
  seen->timed += task->oracle.num_durations > 0;
  seen->greedy += task->options.greedy;
  seen->states += task->functions.context_size == 0;
  seen->added += task->with != NULL;
  for (size_t w = 0; w < result->num_words && task->with != NULL; w++)
    if (!base_has_word(task, result->words[w].label)) {
      seen->entered++;
      break;
    }
}

static void test_random(void **state) {
  (void)state;
  struct coverage seen = {0};
  uint64_t num_stable = 0;
  for (uint64_t seed = 0; seed < test_seeds(20000); seed++) {
    struct task task;
    struct log_probs probs;
    oracle_transducer_result expected;
    make_task(&task, seed, false);
    task.options.lattice_beam = seed % 2 == 0 ? 0 : 1;
    wf_result *result = decode(&task);
    if (seed % 2 != 0) {
      wf_lattice_view lattice = wf_lattice_get_view(result->lattice);
      oracle_check_shape(&lattice, result->num_decoded);
      assert_true(fabs(oracle_lattice_best(&lattice) - result->cost) < 1e-4);
    }
    begin_log_probs(&probs, task.model, &task.scores);
    task.oracle.user = &probs;
    oracle_transduce(&task.oracle, &task.options, &expected);
    if (!is_same(result, &expected))
      fail_msg(
          "seed %llu: flags %u/%u decoded %lld/%lld cost %.9g+%.9g+%.9g / %.9g+%.9g+%.9g "
          "words %zu/%d tokens %llu/%llu expanded %llu/%llu",
          (unsigned long long)seed, result->flags, expected.flags, (long long)result->num_decoded,
          (long long)expected.num_decoded, result->graph_cost, result->acoustic_cost,
          result->scorer_cost, expected.graph_cost, expected.acoustic_cost, expected.scorer_cost,
          result->num_words, expected.num_words, (unsigned long long)result->num_tokens,
          (unsigned long long)expected.num_tokens, (unsigned long long)result->num_expanded,
          (unsigned long long)expected.num_expanded);
    if (seed % 3 == 0) check_streams(&task, result, &expected, seed, &num_stable);
    count(&seen, &task, result);
    end_log_probs(&probs);
    wf_result_free(result);
    free_task(&task);
  }
  print_message(
      "%d tasks: %d final, %d dead, %d with words, %d with a scorer (%d of them n-gram models, "
      "boosts "
      "and chains), %d with durations, "
      "%d greedy, %d with states, %d with added words (in %d results that the graph alone cannot "
      "give)\n",
      seen.tasks, seen.finals, seen.dead, seen.worded, seen.scored, seen.real, seen.timed,
      seen.greedy, seen.states, seen.added, seen.entered);
  print_message("%llu stable words of partial results\n", (unsigned long long)num_stable);
  assert_true(num_stable > 0 && seen.finals > seen.tasks / 10 && seen.dead > 0 &&
              seen.worded > seen.tasks / 5 && seen.scored > seen.tasks / 5 &&
              seen.timed > seen.tasks / 5 && seen.greedy > 0 && seen.states > 0 &&
              seen.entered > 0);
}

/* Adds the words of the paths of a lattice from state s on, except those above `most`. */
static void add_paths(const wf_lattice_view *lattice, uint64_t s, int *words, int size, double cost,
                      double most, struct oracle_sentences *out) {
  double end = cost + (double)lattice->final_graph_cost[s] + (double)lattice->final_scorer_cost[s];
  if (cost > most) return;
  if (end != INFINITY) oracle_add_sentence(out, words, size, end);
  for (uint64_t a = lattice->arc_off[s]; a < lattice->arc_off[s + 1]; a++) {
    const wf_lattice_arc *arc = &lattice->arcs[a];
    if (arc->olabel != 0) words[size] = arc->olabel;
    add_paths(
        lattice, (uint64_t)arc->nextstate, words, size + (arc->olabel != 0),
        cost + (double)arc->graph_cost + (double)arc->acoustic_cost + (double)arc->scorer_cost,
        most, out);
  }
}

static double cost_of(const struct oracle_sentences *sentences, const struct oracle_sentence *s) {
  for (size_t i = 0; i < sentences->size; i++)
    if (sentences->data[i].size == s->size &&
        memcmp(sentences->data[i].words, s->words, (size_t)s->size * sizeof *s->words) == 0)
      return sentences->data[i].cost;
  return INFINITY;
}

enum { LATTICE_BEAM = 2 }; /* of the sum of costs */

/* The lattice has the sentences whose best path is within the beam, at its cost. */
static size_t check_lattice(const struct task *task, const wf_result *result, double best,
                            const struct oracle_sentences *wanted, uint64_t seed) {
  wf_lattice_view lattice = wf_lattice_get_view(result->lattice);
  struct oracle_sentences found = {0};
  int words[64];
  oracle_check_shape(&lattice, result->num_decoded);
  if (fabs(oracle_lattice_best(&lattice) - result->cost) > 1e-4)
    fail_msg("seed %llu: best of the lattice %.9g, result %.9g", (unsigned long long)seed,
             oracle_lattice_best(&lattice), result->cost);
  add_paths(&lattice, 0, words, 0, 0, best + 6, &found);
  for (size_t i = 0; i < wanted->size; i++) {
    double cost = wanted->data[i].cost, other = cost_of(&found, &wanted->data[i]);
    if (cost > best + LATTICE_BEAM - 1e-3 ? other < cost - 1e-3 : fabs(other - cost) > 1e-3)
      fail_msg("seed %llu: a sentence of %d words costs %.9g, in the lattice %.9g",
               (unsigned long long)seed, wanted->data[i].size, cost, other);
  }
  for (size_t i = 0; i < found.size; i++)
    assert_true(found.data[i].cost > best + 3 || cost_of(wanted, &found.data[i]) != INFINITY);
  size_t size = found.size;
  free(found.data);
  return size;
}

/* Without pruning, no path is cheaper than the result, and the lattice has all paths of its beam.
 */
static void test_every_path(void **state) {
  (void)state;
  int num_finals = 0;
  size_t num_sentences = 0;
  for (uint64_t seed = 0; seed < test_seeds(2000); seed++) {
    struct task task;
    struct log_probs probs;
    struct oracle_sentences sentences = {0};
    make_task(&task, seed + 1000000, true);
    task.options.lattice_beam = LATTICE_BEAM;
    if (task.options.acoustic_scale > 0) task.options.lattice_beam /= task.options.acoustic_scale;
    task.options.lattice_prune_interval = 1 + (int32_t)(seed % 3);
    wf_result *result = decode(&task);
    begin_log_probs(&probs, task.model, &task.scores);
    task.oracle.user = &probs;
    double best = oracle_best_transduction(&task.oracle, &task.options, &sentences);
    bool final = !(result->flags & WF_RESULT_NOT_FINAL);
    if (final != (best != INFINITY) || (final && fabs(result->cost - best) > 1e-4))
      fail_msg("seed %llu: cost %.9g, flags %u; the best path costs %.9g", (unsigned long long)seed,
               result->cost, result->flags, best);
    num_finals += final;
    if (final) num_sentences += check_lattice(&task, result, best, &sentences, seed);
    free(sentences.data);
    end_log_probs(&probs);
    wf_result_free(result);
    free_task(&task);
  }
  print_message("%d tasks had a path; their lattices had %zu sentences\n", num_finals,
                num_sentences);
  assert_true(test_many((uint64_t)num_finals, 100, 2000));
}

/* Multiplies every cost of the task by `scale`: acoustic_scale, word_score, graph, scorer. */
static void scale_task(struct task *task, float scale) {
  wf_graph *graph = rewritten(task, scale, true);
  wf_fst_free(task->whole);
  wf_graph_free(task->with);
  wf_graph_free(task->graph);
  task->graph = graph;
  task->with = NULL;
  task->whole = NULL;
  task->oracle.view = wf_fst_get_view(wf_graph_fst(graph));
  task->options.acoustic_scale *= scale;
  task->options.word_score *= scale;
  if (task->scorer == NULL) return;
  wf_scorer_free(task->scorer);
  for (int c = 0; c < task->tables.num_contexts; c++) {
    task->tables.final[c] *= scale;
    for (int w = 0; w < NUM_WORDS; w++) task->tables.cost[c * NUM_WORDS + w] *= scale;
  }
  task->scorer = test_table_scorer(&task->tables, task->batches);
}

static bool is_scaled_lattice(const wf_lattice *lattice, const wf_lattice *by, float scale) {
  const wf_lattice_view a = wf_lattice_get_view(lattice), b = wf_lattice_get_view(by);
  bool same = a.num_states == b.num_states && a.num_arcs == b.num_arcs;
  for (uint64_t s = 0; same && s < a.num_states; s++)
    same = a.arc_off[s + 1] == b.arc_off[s + 1] && a.frames[s] == b.frames[s] &&
           a.final_graph_cost[s] * scale == b.final_graph_cost[s] &&
           a.final_acoustic_cost[s] * scale == b.final_acoustic_cost[s] &&
           a.final_scorer_cost[s] * scale == b.final_scorer_cost[s];
  for (uint64_t i = 0; same && i < a.num_arcs; i++) {
    const wf_lattice_arc *x = &a.arcs[i], *y = &b.arcs[i];
    same = x->ilabel == y->ilabel && x->olabel == y->olabel && x->nextstate == y->nextstate &&
           x->graph_cost * scale == y->graph_cost && x->acoustic_cost * scale == y->acoustic_cost &&
           x->scorer_cost * scale == y->scorer_cost;
  }
  return same;
}

/* The same words, times and work, at costs times `scale`? */
static bool is_scaled(const wf_result *a, const wf_result *b, float scale) {
  const double by = (double)scale;
  return a->flags == b->flags && a->num_decoded == b->num_decoded && a->cost * by == b->cost &&
         a->graph_cost * by == b->graph_cost && a->acoustic_cost * by == b->acoustic_cost &&
         a->scorer_cost * by == b->scorer_cost && a->num_tokens == b->num_tokens &&
         a->num_expanded == b->num_expanded && a->num_arcs == b->num_arcs &&
         a->num_words == b->num_words &&
         (a->num_words == 0 || memcmp(a->words, b->words, a->num_words * sizeof *a->words) == 0) &&
         (a->num_decoded == 0 ||
          memcmp(a->alignment, b->alignment, (size_t)a->num_decoded * sizeof *a->alignment) == 0) &&
         (a->lattice == NULL) == (b->lattice == NULL) &&
         (a->lattice == NULL || is_scaled_lattice(a->lattice, b->lattice, scale));
}

/* Costs times a power of two, which rounds nothing: what survives is the same, with the same beams,
 * in batches, streams and lattices. */
static void test_scaled_costs(void **state) {
  (void)state;
  static const float scales[] = {0.25f, 2, 8};
  uint64_t num_tasks = 0, num_scored = 0, num_pruned = 0, num_stable = 0;
  for (uint64_t seed = 0; seed < test_seeds(3000); seed++) {
    struct task task;
    make_task(&task, seed + 2000000, false);
    task.options.lattice_beam = seed % 2 == 0 ? 0 : 1;
    const float scale = scales[seed % 3];
    wf_result *plain = task.is_real ? NULL : decode(&task);
    if (plain != NULL) {
      scale_task(&task, scale);
      wf_result *scaled = decode(&task);
      wf_result *streamed = decode_in_chunks(&task, seed, scaled, &num_stable);
      if (!is_scaled(plain, scaled, scale) || !is_scaled(scaled, streamed, 1))
        fail_msg("seed %llu: times %g, cost %.9g becomes %.9g, in a stream %.9g; tokens %llu, %llu",
                 (unsigned long long)seed, (double)scale, plain->cost, scaled->cost, streamed->cost,
                 (unsigned long long)plain->num_tokens, (unsigned long long)scaled->num_tokens);
      task.options.beam = 1e30f;
      wf_result *wide = decode(&task);
      num_tasks++;
      num_scored += task.scorer != NULL;
      num_pruned += wide->num_tokens != scaled->num_tokens;
      wf_result_free(wide);
      wf_result_free(streamed);
      wf_result_free(scaled);
      wf_result_free(plain);
    }
    free_task(&task);
  }
  print_message("%llu tasks, %llu with a scorer, %llu in which the beam cuts\n",
                (unsigned long long)num_tasks, (unsigned long long)num_scored,
                (unsigned long long)num_pruned);
  assert_true(num_scored > num_tasks / 4 && num_pruned > num_tasks / 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_every_path),
      cmocka_unit_test(test_scaled_costs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
