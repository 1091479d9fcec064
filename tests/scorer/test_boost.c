/* test_boost.c - phrase boosts, and boosts by length.
 *
 * First examples by hand. Then random lists of phrases. Sums of costs are compared with counts of
 * phrases. Decoding, alone and in a chain with another scorer, is compared with the oracle bit for
 * bit. Last, threads that share lists. */
#include <pthread.h>

#include "decode_tasks.h"
#include "example.h"
#include "scorer/scorer.h"
#include "table_scorer.h"

/* --- examples by hand -------------------------------------------------------------------- */

/* Any string of the words 1 and 2, a frame each. The log-likelihoods are those of 1 and of 2.
 *
 *    1:1 +-+
 *        v |
 *       ((0))           frame 0:   0    -0.25
 *        ^ |            frame 1:  -0.25  0
 *    2:2 +-+
 *
 *   "1 2" costs 0, "1 1" and "2 2" cost 0.25, "2 1" costs 0.5. */
static struct example two_frames(void) {
  static const float scores[] = {0, -0.25f, -0.25f, 0};
  return example_of("0 0 1 1 0\n0 0 2 2 0\n0\n", scores, 2, 2);
}

static wf_scorer *phrases_of(size_t count, const int32_t *words, const uint64_t *off,
                             const float *boosts) {
  wf_error failure = {0};
  wf_scorer *scorer;
  if (wf_scorer_boost_phrases(words, off, boosts, count, &scorer, &failure) != WF_OK)
    fail_msg("%s", failure.message);
  return scorer;
}

/* The phrase "2 1" with 1 nat: 0.5 - 1 = -0.5 beats "1 2". */
static void test_example_phrase(void **state) {
  (void)state;
  struct example e = two_frames();
  wf_scorer *scorer = phrases_of(1, (int32_t[]){2, 1}, (uint64_t[]){0, 2}, (float[]){1});
  example_expect(&e, NULL, "1[0,1) 2[1,2)", 0, 0);
  example_expect(&e, scorer, "2[0,1) 1[1,2)", -0.5, 0);
  wf_scorer_free(scorer);
}

/* An incomplete phrase has no effect: "2 2" gets two thirds of the boost of "2 2 2" in advance,
 * which are refunded at the end. */
static void test_example_incomplete_phrase(void **state) {
  (void)state;
  struct example e = two_frames();
  wf_scorer *scorer = phrases_of(1, (int32_t[]){2, 2, 2}, (uint64_t[]){0, 3}, (float[]){3});
  example_expect(&e, scorer, "1[0,1) 2[1,2)", 0, 0);
  wf_scorer_free(scorer);
}

/* Overlapping phrases add up: "1 1" contains "1" twice and "1 1" once, 0.5 + 0.5 + 1. The cost is
 * 0.25 - 2. */
static void test_example_overlapping_phrases(void **state) {
  (void)state;
  struct example e = two_frames();
  wf_scorer *scorer =
      phrases_of(2, (int32_t[]){1, 1, 1}, (uint64_t[]){0, 1, 3}, (float[]){0.5f, 1});
  example_expect(&e, scorer, "1[0,1) 1[1,2)", -1.75, 0);
  wf_scorer_free(scorer);
}

/* --- random tasks ------------------------------------------------------------------------- */

enum { NUM_WORDS = 4, MAX_PHRASES = 8, MAX_LENGTH = 4, MAX_HEARD = 40 };

static wf_error err;

struct list {
  int count;
  int32_t words[MAX_PHRASES * MAX_LENGTH];
  uint64_t off[MAX_PHRASES + 1];
  float boosts[MAX_PHRASES];
};

static int length_of(const struct list *list, int i) {
  return (int)(list->off[i + 1] - list->off[i]);
}
static const int32_t *words_of(const struct list *list, int i) {
  return list->words + list->off[i];
}

static bool same_words(const int32_t *a, const int32_t *b, int count) {
  return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

/* Distinct phrases; boosts may be negative. */
static struct list random_list(test_rng *rng) {
  struct list list = {0};
  int wanted = 1 + (int)test_below(rng, MAX_PHRASES);
  for (int tries = 0; tries < 100 && list.count < wanted; tries++) {
    int length = 1 + (int)test_below(rng, MAX_LENGTH);
    int32_t *words = list.words + list.off[list.count];
    for (int k = 0; k < length; k++) words[k] = 1 + (int32_t)test_below(rng, NUM_WORDS);
    bool known = false;
    for (int i = 0; i < list.count; i++)
      known =
          known || (length_of(&list, i) == length && same_words(words_of(&list, i), words, length));
    if (known) continue;
    list.boosts[list.count++] = (float)((int)test_below(rng, 48) - 8) / 8;
    list.off[list.count] = list.off[list.count - 1] + (uint64_t)length;
  }
  return list;
}

/* --- the definition ---------------------------------------------------------------------- */

/* Finds the longest suffix of the words that begins a phrase. Returns the largest partial boost of
 * the phrases that it begins but does not complete. */
static float pending(const struct list *list, const int32_t *heard, int size, int *out_length) {
  for (int length = size < MAX_LENGTH ? size : MAX_LENGTH; length > 0; length--) {
    bool begins = false;
    float most = 0;
    for (int i = 0; i < list->count; i++) {
      if (length_of(list, i) < length ||
          !same_words(words_of(list, i), heard + size - length, length))
        continue;
      begins = true;
      float share = list->boosts[i] * (float)length / (float)length_of(list, i);
      if (length_of(list, i) > length && share > most) most = share;
    }
    if (!begins) continue;
    *out_length = length;
    return most;
  }
  *out_length = 0;
  return 0;
}

static float earned(const struct list *list, const int32_t *heard, int size) {
  float sum = 0;
  for (int i = 0; i < list->count; i++) {
    int length = length_of(list, i);
    if (length <= size && same_words(words_of(list, i), heard + size - length, length))
      sum += list->boosts[i];
  }
  return sum;
}

static wf_scorer *scorer_of(const struct list *list) {
  wf_scorer *scorer;
  assert_ok(wf_scorer_boost_phrases(list->words, list->off, list->boosts, (size_t)list->count,
                                    &scorer, &err));
  return scorer;
}

static void test_costs_equal_counted_phrases(void **state) {
  (void)state;
  uint64_t occurrences = 0, refunded = 0;
  for (uint64_t seed = 1; seed <= 3000; seed++) {
    test_rng rng = {seed};
    struct list list = random_list(&rng);
    wf_scorer *scorer = scorer_of(&list);
    int32_t heard[MAX_HEARD];
    uint64_t context;
    float cost, last;
    double sum = 0, all = 0;
    assert_ok(scorer->ops->begin(scorer, NULL, &context, &err));
    for (int t = 0; t < MAX_HEARD; t++) {
      heard[t] = 1 + (int32_t)test_below(&rng, NUM_WORDS);
      assert_ok(scorer->ops->step(scorer, NULL, context, heard[t], &cost, &context, &err));
      assert_true(context < (uint64_t)1 << scorer->context_bits || context == 0);
      int length;
      float now = pending(&list, heard, t + 1, &length);
      sum += (double)cost;
      all += (double)earned(&list, heard, t + 1);
      occurrences += earned(&list, heard, t + 1) != 0;
      refunded += cost > 0;
      test_assert_close(sum, -all - (double)now, 1e-4);
      assert_ok(scorer->ops->final(scorer, NULL, context, &last, &err));
      assert_true(last == now && last >= 0);
    }
    wf_scorer_free(scorer);
  }
  assert_true(occurrences > 20000 && refunded > 10000);
}

/* --- a phrase that follows itself -------------------------------------------------------- */

static bool ends_here(const struct list *list, int i, const int32_t *heard, int size) {
  const int length = length_of(list, i);
  return length <= size && same_words(words_of(list, i), heard + size - length, length);
}

/* What the newest word costs less for, with a transducer: a favoured phrase that comes again at
 * once. *phrase (-1: none) has ended, and *length of its words have come again. */
static float repeated(const struct list *list, const int32_t *heard, int size, int *phrase,
                      int *length) {
  float sum = 0;
  for (int i = 0; i < list->count; i++)
    if (length_of(list, i) == 1 && list->boosts[i] > 0 && size > 1 &&
        ends_here(list, i, heard, size) && heard[size - 2] == heard[size - 1])
      sum += list->boosts[i];
  if (*phrase >= 0 && words_of(list, *phrase)[*length] == heard[size - 1]) {
    if (++*length < length_of(list, *phrase)) return sum;
    *length = 0;
    return sum + list->boosts[*phrase];
  }
  *phrase = -1, *length = 0;
  for (int i = 0; i < list->count; i++)
    if (length_of(list, i) > 1 && list->boosts[i] > 0 && ends_here(list, i, heard, size) &&
        (*phrase < 0 || length_of(list, i) > length_of(list, *phrase)))
      *phrase = i;
  return sum;
}

static void test_repeated_phrases_earn_once(void **state) {
  (void)state;
  uint64_t occurrences = 0;
  for (uint64_t seed = 1; seed <= 3000; seed++) {
    test_rng rng = {seed};
    struct list list = random_list(&rng);
    wf_scorer *scorer = scorer_of(&list), *once = wf_scorer_ref(wf__scorer_for_transducer(scorer));
    wf_scorer_free(scorer); /* `once` holds it */
    int32_t heard[MAX_HEARD];
    uint64_t context;
    float cost;
    double sum = 0, all = 0;
    int phrase = -1, length = 0, unused;
    assert_ok(once->ops->begin(once, NULL, &context, &err));
    for (int t = 0; t < MAX_HEARD; t++) { /* mostly the words of a while ago again */
      const int ago = 1 + (int)test_below(&rng, 3);
      heard[t] = ago <= t && test_below(&rng, 4) != 0 ? heard[t - ago]
                                                      : 1 + (int32_t)test_below(&rng, NUM_WORDS);
      const wf__cost_bounds bounds = once->ops->bounds(once, NULL, context);
      assert_ok(once->ops->step(once, NULL, context, heard[t], &cost, &context, &err));
      assert_true(bounds.least <= cost && cost <= bounds.most);
      assert_true(wf__scorer_least(once, heard[t]) <= cost);
      const float less = repeated(&list, heard, t + 1, &phrase, &length);
      occurrences += less != 0;
      sum += (double)cost;
      all += (double)earned(&list, heard, t + 1) - (double)less;
      test_assert_close(sum, -all - (double)pending(&list, heard, t + 1, &unused), 1e-4);
    }
    wf_scorer_free(once);
  }
  assert_true(occurrences > 5000);
}

static void test_repeated_words_earn_once(void **state) {
  (void)state;
  static const int32_t words[] = {2, 5, 9}, heard[] = {2, 2, 2, 5, 2, 9, 9, 1, 2, 1, 2};
  static const float costs[] = {-3, 0, 0, -1, -3, 2, 2, 0, -3, 0, -3};
  wf_scorer *scorer, *chain;
  assert_ok(wf_scorer_boost_words(words, (float[]){3, 1, -2}, 3, &scorer, &err));
  assert_ok(wf_scorer_chain(scorer, scorer, &chain, &err));
  for (int chained = 0; chained < 2; chained++) {
    const wf_scorer *once = wf__scorer_for_transducer(chained ? chain : scorer);
    void *memory = NULL;
    uint64_t context;
    if (chained) assert_ok(once->ops->open(once, &memory, &err));
    assert_ok(once->ops->begin(once, memory, &context, &err));
    for (size_t t = 0; t < sizeof heard / sizeof *heard; t++) {
      float cost;
      assert_ok(once->ops->step(once, memory, context, heard[t], &cost, &context, &err));
      assert_true(cost == costs[t] * (float)(1 + chained));
    }
    if (chained) once->ops->close(once, memory);
  }
  wf_scorer_free(scorer);
  wf_scorer_free(chain);
}

/* --- decoding ---------------------------------------------------------------------------- */

/* A context is a prefix of a phrase. Contexts are numbered in the order of their first occurrence
 * in the list. */
struct beginning {
  const int32_t *words;
  int length;
};

static int find_beginning(const struct beginning *all, int count, const int32_t *words,
                          int length) {
  for (int c = 0; c < count; c++)
    if (all[c].length == length && same_words(all[c].words, words, length)) return c;
  return -1;
}

static oracle_scorer tables_of(const struct list *list) {
  struct beginning all[MAX_PHRASES * MAX_LENGTH + 1] = {{list->words, 0}};
  int count = 1;
  for (int i = 0; i < list->count; i++)
    for (int length = 1; length <= length_of(list, i); length++)
      if (find_beginning(all, count, words_of(list, i), length) < 0)
        all[count++] = (struct beginning){words_of(list, i), length};
  size_t size = (size_t)count * NUM_WORDS;
  oracle_scorer tables = {count, NUM_WORDS, malloc(size * sizeof(int)),
                          malloc(size * sizeof(float)), malloc((size_t)count * sizeof(float))};
  for (int c = 0; c < count; c++) {
    int32_t heard[MAX_LENGTH + 1];
    int length;
    memcpy(heard, all[c].words, (size_t)all[c].length * sizeof *heard);
    tables.final[c] = pending(list, heard, all[c].length, &length);
    for (int w = 0; w < NUM_WORDS; w++) {
      heard[all[c].length] = w + 1;
      float after = pending(list, heard, all[c].length + 1, &length);
      tables.next[c * NUM_WORDS + w] =
          find_beginning(all, count, heard + all[c].length + 1 - length, length);
      tables.cost[c * NUM_WORDS + w] =
          tables.final[c] - after - earned(list, heard, all[c].length + 1);
    }
  }
  return tables;
}

static void check_decoding(struct decode_task *task, const oracle_scorer *tables,
                           const wf_scorer *scorer, uint64_t seed, int *num_compared) {
  oracle_space space = oracle_space_of(wf_graph_fst(task->graph), tables, &task->options);
  oracle_result *expected = malloc(sizeof *expected);
  wf_result *result;
  wf_decoder *decoder;
  assert_ok(wf_decoder_create(task->graph, &task->options, &decoder, &err));
  assert_ok(test_decode_scored(decoder, &task->scores, &scorer, 1, NULL, &result, &err));
  if (result->status != WF_ERR_NEGATIVE_CYCLE) { /* words on epsilon cycles, boosted without end */
    oracle_decode_in(&space, &task->options, &task->scores, expected, NULL);
    assert_int_equal(result->status, expected->fits ? WF_OK : WF_ERR_LIMIT);
    if (expected->fits &&
        (result->flags != expected->flags || result->graph_cost != expected->graph_cost ||
         result->acoustic_cost != expected->acoustic_cost ||
         result->scorer_cost != expected->scorer_cost ||
         (int)result->num_words != expected->num_words ||
         (result->num_words > 0 &&
          memcmp(result->words, expected->words, result->num_words * sizeof(wf_word)) != 0)))
      fail_msg("seed %llu: scorer cost %.9g, expected %.9g", (unsigned long long)seed,
               result->scorer_cost, expected->scorer_cost);
    *num_compared += expected->fits && result->num_words > 0;
  }
  wf_result_free(result);
  wf_decoder_free(decoder);
  free(expected);
}

/* Lets words occur only on arcs that consume a frame, so that boosts make no epsilon cycle
 * negative. */
static bool no_epsilon_words(test_rng *rng, uint32_t state, wf_arc *arc) {
  if (arc->ilabel == 0) arc->olabel = 0;
  return true;
}

static void test_decoding_against_oracle(void **state) {
  (void)state;
  int alone = 0, chained = 0;
  for (uint64_t seed = 1; seed <= 3000; seed++) {
    test_rng rng = {seed * 77};
    struct decode_task task = test_random_task(seed);
    wf_fst *fst = test_changed_fst(wf_fst_ref(wf_graph_fst(task.graph)), &rng, no_epsilon_words);
    wf_graph_free(task.graph);
    assert_ok(wf_graph_create(fst, NULL, 0, &task.graph, &err));
    wf_fst_free(fst);
    struct list list = random_list(&rng);
    oracle_scorer tables = tables_of(&list);
    wf_scorer *scorer = scorer_of(&list);
    check_decoding(&task, &tables, scorer, seed, &alone);
    if (seed % 3 == 0) { /* a table scorer stands for an n-gram model */
      table_scorer_shape shape = {.max_contexts = 4, .num_words = NUM_WORDS};
      oracle_scorer model = test_random_tables(&rng, &shape),
                    both = test_chained_tables(&tables, &model);
      wf_scorer *second = test_table_scorer(&model, false), *chain;
      assert_ok(wf_scorer_chain(scorer, second, &chain, &err));
      check_decoding(&task, &both, chain, seed, &chained);
      wf_scorer_free(chain);
      wf_scorer_free(second);
      test_free_tables(&both);
      test_free_tables(&model);
    }
    wf_scorer_free(scorer);
    test_free_tables(&tables);
    test_free_task(&task);
  }
  assert_true(alone > 800 && chained > 200);
}

/* --- sizes, errors ----------------------------------------------------------------------- */

static void test_many_phrases(void **state) {
  (void)state;
  enum { COUNT = 50000 };
  int32_t *words = malloc(COUNT * 3 * sizeof *words);
  uint64_t *off = malloc((COUNT + 1) * sizeof *off), context;
  float *boosts = malloc(COUNT * sizeof *boosts), cost;
  for (int i = 0; i < COUNT; i++) {
    words[3 * i] = 1 + i % 100;
    words[3 * i + 1] = 1 + i / 100;
    words[3 * i + 2] = 1 + i;
    off[i] = 3 * (uint64_t)i;
    boosts[i] = 3;
  }
  off[COUNT] = 3 * COUNT;
  wf_scorer *scorer;
  assert_ok(wf_scorer_boost_phrases(words, off, boosts, COUNT, &scorer, &err));
  for (int i = 0; i < COUNT; i += 777) {
    assert_ok(scorer->ops->begin(scorer, NULL, &context, &err));
    for (int k = 0; k < 3; k++) {
      assert_ok(scorer->ops->step(scorer, NULL, context, words[3 * i + k], &cost, &context, &err));
      assert_true(cost == -1);
    }
  }
  wf_scorer_free(scorer);
  free(words);
  free(off);
  free(boosts);
}

static void test_bad_lists(void **state) {
  (void)state;
  static const struct {
    int32_t words[4];
    uint64_t off[3];
    float boosts[2];
    const char *message;
  } bad[] = {{{1, 2}, {0, 0, 2}, {1, 1}, "no words"},
             {{1, 0}, {0, 1, 2}, {1, 1}, "not a word label"},
             {{1, -5}, {0, 2, 2}, {1, 1}, "not a word label"},
             {{1, 2}, {0, 2, 1}, {1, 1}, "ends before"},
             {{1, 2}, {0, 1, 2}, {1, NAN}, "at most"},
             {{1, 2}, {0, 1, 2}, {2e6f, 1}, "at most"},
             {{1, 2, 1, 2}, {0, 2, 4}, {1, 2}, "twice"}};
  wf_scorer *scorer;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(
        wf_scorer_boost_phrases(bad[i].words, bad[i].off, bad[i].boosts, 2, &scorer, &err),
        WF_ERR_ARGUMENT);
    assert_null(scorer);
    if (strstr(err.message, bad[i].message) == NULL)
      fail_msg("'%s' is not about '%s'", err.message, bad[i].message);
  }
  static const int32_t same[] = {1, 2, 1, 2};
  static const uint64_t off[] = {0, 2, 4};
  static const float boosts[] = {1, 1};
  assert_ok(
      wf_scorer_boost_phrases(same, off, boosts, 2, &scorer,
                              &err)); /* the same phrase twice with the same boost is accepted */
  wf_scorer_free(scorer);
  assert_ok(wf_scorer_boost_phrases(NULL, off, NULL, 0, &scorer, &err));
  wf_scorer_free(scorer);
}

/* --- lists shared by threads ------------------------------------------------------------- */

enum { NUM_THREADS = 4, NUM_TURNS = 30 };

struct sharer {
  const struct decode_task *task;
  wf_scorer *lists[2]; /* references of its own */
  float costs[NUM_TURNS];
};

/* A decoder and a stream of its own, whose list changes after every frame. Frees the lists as soon
 * as the stream has them. */
static void *share(void *user) {
  struct sharer *self = user;
  wf_error failure = {0};
  wf_decoder *decoder;
  wf_stream *stream;
  wf_result *result;
  assert_ok(wf_decoder_create(self->task->graph, &self->task->options, &decoder, &failure));
  assert_ok(wf_stream_create(decoder, NULL, &stream, &failure));
  for (int turn = 0; turn < NUM_TURNS; turn++) {
    for (int64_t frame = 0; frame < self->task->scores.num_frames; frame++) {
      const wf_scores chunk = test_rows(&self->task->scores, frame, 1);
      wf_scorer *own = wf_scorer_ref(self->lists[(turn + frame) % 2]);
      assert_ok(wf_stream_set_scorer(stream, own, &failure));
      wf_scorer_free(own);
      assert_ok(wf_stream_advance(stream, &chunk, NULL, &failure));
    }
    assert_ok(wf_stream_finish(stream, &result, &failure));
    self->costs[turn] = result->cost;
    wf_result_free(result);
    assert_ok(wf_stream_reset(stream, &failure));
  }
  for (int i = 0; i < 2; i++) wf_scorer_free(self->lists[i]);
  wf_stream_free(stream);
  wf_decoder_free(decoder);
  return NULL;
}

static void test_threads_share_lists(void **state) {
  (void)state;
  wf_error failure = {0};
  struct decode_task task = test_random_task(3);
  task.options.lattice_beam = 0;
  task.options.num_threads = 1;
  struct sharer sharers[NUM_THREADS + 1];
  pthread_t threads[NUM_THREADS];
  wf_scorer *lists[2];
  lists[0] =
      phrases_of(3, (int32_t[]){1, 2, 1, 3, 4}, (uint64_t[]){0, 2, 3, 5}, (float[]){1, 0.5f, 2});
  wf_scorer *other = phrases_of(1, (int32_t[]){2, 3, 1}, (uint64_t[]){0, 3}, (float[]){1.5f});
  assert_ok(wf_scorer_chain(lists[0], other, &lists[1], &failure));
  wf_scorer_free(other);
  for (int i = 0; i <= NUM_THREADS; i++)
    sharers[i] =
        (struct sharer){.task = &task, .lists = {wf_scorer_ref(lists[0]), wf_scorer_ref(lists[1])}};
  share(&sharers[NUM_THREADS]);
  for (int i = 0; i < NUM_THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, share, &sharers[i]), 0);
  for (int i = 0; i < 2; i++) wf_scorer_free(lists[i]);
  for (int i = 0; i < NUM_THREADS; i++) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_memory_equal(sharers[i].costs, sharers[NUM_THREADS].costs, sizeof sharers[i].costs);
  }
  assert_true(task.scores.num_frames > 2);
  test_free_task(&task);
}

/* --- boosts by length -------------------------------------------------------------------- */

static void test_boost_by_length_examples(void **state) {
  (void)state;
  assert_true(wf_boost_by_length("", 0.5f) == 0);
  assert_true(wf_boost_by_length(" \t ", 0.5f) == 0);
  assert_true(wf_boost_by_length("read", 0.5f) == 2);
  assert_true(wf_boost_by_length("  new \tyork ", 0.5f) == 3.5f);
  assert_true(wf_boost_by_length("Z\u00fcrich", 0.5f) == 3); /* 6 letters in 7 bytes */
  assert_true(wf_boost_by_length("\u6771\u4eac", -1) == -2);
  assert_true(wf_boost_by_length("abcdefghijkl", 1) == 12);
  assert_true(wf_boost_by_length("abcdefghijklm", 1) == 12); /* the limit of a word */
  assert_true(wf_boost_by_length("abcdefghijklmnop ab", 1) == 14);
  /* the default: by the number of words, also if they are spelled with names of tokens */
  static const struct {
    const char *text;
    float per_letter;
    int num_letters;
  } defaults[] = {{"", 0.6f, 0},
                  {" read\t", 0.6f, 4},
                  {"new york", 1, 7},
                  {"\t a  b ", 1, 2},
                  {"\u2581m ar k", 0.6f, 5},
                  {"\u2581m ar k \u2581to", 1, 8},
                  {"m ar k \u2581to", 1, 7},
                  {"m a r k \u2581 t o", 1, 7},
                  {"mark ##et ##s", 0.6f, 11},
                  {"new mark ##et", 1, 11}};
  for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
    assert_true(wf_boost_by_length(defaults[i].text, NAN) ==
                defaults[i].per_letter * (float)defaults[i].num_letters);
}

/* Letters of one to four bytes, in words of known length. */
static void test_boost_by_length_random(void **state) {
  (void)state;
  static const char *const letters[] = {"a", "'", "\u00e9", "\u6771", "\U0001f600"};
  for (uint64_t seed = 1; seed <= 2000; seed++) {
    test_rng rng = {seed};
    char text[600] = "";
    int expected = 0;
    for (int words = (int)test_below(&rng, 6); words > 0; words--) {
      int length = 1 + (int)test_below(&rng, 20);
      for (int i = 0; i < length; i++) strcat(text, letters[test_below(&rng, 5)]);
      strcat(text, test_below(&rng, 2) == 0 ? " " : "\t ");
      expected += length < 12 ? length : 12;
    }
    float per_letter = (float)((int)test_below(&rng, 41) - 20) / 10;
    assert_true(wf_boost_by_length(text, per_letter) == per_letter * (float)expected);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_example_phrase),
                                     cmocka_unit_test(test_example_incomplete_phrase),
                                     cmocka_unit_test(test_example_overlapping_phrases),
                                     cmocka_unit_test(test_costs_equal_counted_phrases),
                                     cmocka_unit_test(test_repeated_phrases_earn_once),
                                     cmocka_unit_test(test_repeated_words_earn_once),
                                     cmocka_unit_test(test_decoding_against_oracle),
                                     cmocka_unit_test(test_many_phrases),
                                     cmocka_unit_test(test_bad_lists),
                                     cmocka_unit_test(test_boost_by_length_examples),
                                     cmocka_unit_test(test_boost_by_length_random),
                                     cmocka_unit_test(test_threads_share_lists)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
