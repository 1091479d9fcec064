/* test_sphinx.c - graphs from Sphinx models compared with a direct computation that builds no
 * transducer.
 *
 * For random models, lexicons and grammars, and a string x of one senone for each frame: the cost
 * of the graph's best path for x is the minimum, over the grammar's sentences, pronunciations, and
 * optional silences and noises, of
 *     the sentence's cost  +  1/lm_weight (words, pronunciations, silences, noises  +  Viterbi
 *                          alignment of x to the chain of HMMs).
 * Each phone's HMM is looked up by the rule that docs/reference/hmm.md states. */
#include "sphinx_world.h"
enum { MAX_FRAMES = 7 };

/* --- the direct computation -------------------------------------------------------------- */

struct spoken {
  int base, position;
};

static const struct row *row_in(const struct world *world, int base, int left, int right,
                                int position) {
  for (int i = NUM_BASES; i < world->num_rows; i++) {
    const struct row *row = &world->rows[i];
    if (row->base == base && row->left == left && row->right == right && row->position == position)
      return row;
  }
  return NULL;
}

static const struct row *look_up(const struct world *world, const struct spoken *spoken, int count,
                                 int i) {
  const struct row *row = NULL;
  int base = spoken[i].base, position = spoken[i].position;
  int left = i == 0 || spoken[i - 1].base >= SIL ? SIL : spoken[i - 1].base,
      right = i + 1 == count || spoken[i + 1].base >= SIL ? SIL : spoken[i + 1].base;
  if (base >= SIL) return &world->rows[base];
  for (int outside = 0; outside < 2; outside++) {
    if (outside && (position == BEGIN || position == SINGLE)) left = SIL;
    if (outside && (position == END || position == SINGLE)) right = SIL;
    if (row == NULL) row = row_in(world, base, left, right, position);
    for (int other = 0; other < NUM_POSITIONS && row == NULL; other++)
      row = row_in(world, base, left, right, other);
  }
  return row != NULL ? row : &world->rows[base];
}

/* Cost of staying in a state, and of going from it to another (to == num_states: leaving the HMM).
 */
static double stay_cost(const struct world *world, int tmat, int state) {
  const float *counts = world->counts[tmat][state];
  double sum = 0;
  for (int to = 0; to <= world->num_states; to++) sum += (double)counts[to];
  return -log((double)counts[state] / sum) * (double)world->options.self_loop_scale;
}
static double go_cost(const struct world *world, int tmat, int state, int to) {
  const float *counts = world->counts[tmat][state];
  double sum = 0;
  for (int k = 0; k <= world->num_states; k++) sum += (double)counts[k];
  double leaves = (sum - (double)counts[state]) / sum;
  return -log(leaves) * (double)world->options.self_loop_scale -
         log((double)counts[to] / sum / leaves) * (double)world->options.transition_scale;
}

static double align(const struct world *world, const struct spoken *spoken, int count, const int *x,
                    int frames) {
  double now[MAX_FRAMES][MAX_STATES],
      out[MAX_FRAMES + 1]; /* out[i]: cost of having left the first i phones */
  const struct row *rows[MAX_FRAMES];
  for (int i = 0; i < count; i++) rows[i] = look_up(world, spoken, count, i);
  for (int i = 0; i < count; i++) now[i][0] = now[i][1] = INFINITY;
  for (int i = 0; i <= count; i++) out[i] = i == 0 ? 0 : INFINITY;
  for (int t = 0; t < frames; t++) {
    for (int i = 0; i < count; i++)
      for (int s = world->num_states - 1; s >= 0;
           s--) { /* descending, so that it reads costs of the previous frame */
        double best = s == 0 ? out[i] : INFINITY;
        if (world->counts[rows[i]->tmat][s][s] > 0)
          best = fmin(best, now[i][s] + stay_cost(world, rows[i]->tmat, s));
        for (int from = 0; from < s; from++)
          if (world->counts[rows[i]->tmat][from][s] > 0)
            best = fmin(best, now[i][from] + go_cost(world, rows[i]->tmat, from, s));
        now[i][s] = x[t] == rows[i]->senones[s] ? best : INFINITY;
      }
    out[0] = INFINITY;
    for (int i = 0; i < count; i++) {
      out[i + 1] = INFINITY;
      for (int s = 0; s < world->num_states; s++)
        if (world->counts[rows[i]->tmat][s][world->num_states] > 0)
          out[i + 1] =
              fmin(out[i + 1], now[i][s] + go_cost(world, rows[i]->tmat, s, world->num_states));
    }
  }
  return out[count];
}

struct search {
  const struct world *world;
  const int *x;
  int frames, sentence[8], num_words, count;
  struct spoken spoken[MAX_FRAMES];
  double best, sentence_cost;
};

static void say(struct search *search, int at, double cost, bool may_pause);

static void add_phone_and_go(struct search *search, int base, int at, double cost, bool may_pause) {
  if (search->count == search->frames) return;
  search->spoken[search->count++] = (struct spoken){base, NO_POSITION};
  say(search, at, cost, may_pause);
  search->count--;
}

static void finish(struct search *search, double cost) {
  search->best = fmin(search->best, search->sentence_cost +
                                        (cost + align(search->world, search->spoken, search->count,
                                                      search->x, search->frames)) /
                                            (double)search->world->options.lm_weight);
}

/* Enumerates pronunciations and fillers from the gap between the words `at` - 1 and `at`. */
static void say(struct search *search, int at, double cost, bool may_pause) {
  const struct world *world = search->world;
  if (world->style == 1 && may_pause) {
    add_phone_and_go(search, SIL, at, cost - log(0.25), false);
    cost -= log(0.75);
  }
  if (world->style == 2) {
    add_phone_and_go(search, SIL, at, cost - log(0.25), true);
    if (world->options.fillers) add_phone_and_go(search, NOISE, at, cost - log(0.125), true);
    if (at == search->num_words && search->count < search->frames) {
      search->spoken[search->count++] = (struct spoken){SIL, NO_POSITION};
      finish(search, cost);
      search->count--;
    }
  } else if (at == search->num_words) {
    finish(search, cost);
  }
  for (int i = 0; i < world->num_prons && at < search->num_words; i++) {
    int size = world->prons[i].size;
    if (world->prons[i].word != search->sentence[at] || search->count + size > search->frames)
      continue;
    for (int k = 0; k < size; k++)
      search->spoken[search->count++] =
          (struct spoken){world->prons[i].phones[k], size == 1 ? SINGLE
                                                     : k == 0  ? BEGIN
                                                               : END};
    say(search, at + 1, cost - log((double)world->prons[i].prob) - log(0.5), true);
    search->count -= size;
  }
}

static double direct_cost(const struct world *world, const test_relation *sentences, const int *x,
                          int frames) {
  double best = INFINITY;
  for (size_t i = 0; i < sentences->size; i++) {
    struct search search = {.world = world,
                            .x = x,
                            .frames = frames,
                            .best = INFINITY,
                            .sentence_cost = sentences->pairs[i].cost};
    for (const char *at = sentences->pairs[i].key; *at != ':'; at++)
      if (*at >= '1' && *at <= '3') search.sentence[search.num_words++] = *at - '1';
    if (world->style == 2 && frames > 0)
      add_phone_and_go(&search, SIL, 0, 0, true);
    else if (world->style != 2)
      say(&search, 0, 0, true);
    best = fmin(best, search.best);
  }
  return best;
}

/* --- comparing --------------------------------------------------------------------------- */

/* Draws frames that some sentence can give: its words, sometimes silences; states are passed
 * through. */
static int random_frames(test_rng *rng, const struct world *world, const test_relation *sentences,
                         int *x) {
  struct spoken spoken[MAX_FRAMES];
  int count = 0, frames = 0;
  const char *key = sentences->pairs[test_below(rng, (uint32_t)sentences->size)].key;
  if (world->style == 2) spoken[count++] = (struct spoken){SIL, NO_POSITION};
  for (; *key != ':'; key++) {
    int i = (int)test_below(rng, (uint32_t)world->num_prons);
    if (*key < '1' || *key > '3') continue;
    while (world->prons[i].word != *key - '1') {
      if (++i == world->num_prons) i = 0;
      if (test_unit(rng) < 0.01f) return 0; /* a word without pronunciation */
    }
    if (count + world->prons[i].size + 2 > MAX_FRAMES) return 0;
    for (int k = 0; k < world->prons[i].size; k++)
      spoken[count++] =
          (struct spoken){world->prons[i].phones[k], world->prons[i].size == 1 ? SINGLE
                                                     : k == 0                  ? BEGIN
                                                                               : END};
    if (world->style != 0 && test_unit(rng) < 0.3f)
      spoken[count++] = (struct spoken){test_unit(rng) < 0.5f ? SIL : NOISE, NO_POSITION};
  }
  if (world->style == 2) spoken[count++] = (struct spoken){SIL, NO_POSITION};
  for (int i = 0; i < count; i++)
    for (int s = 0; s < world->num_states; s++) do {
        if (frames == MAX_FRAMES) return frames;
        x[frames++] = look_up(world, spoken, count, i)->senones[s];
      } while (test_unit(rng) < 0.25f);
  if (frames > 0 && test_unit(rng) < 0.2f)
    x[test_below(rng, (uint32_t)frames)] = (int)test_below(rng, NUM_SENONES);
  return frames;
}

static void check_world(test_rng *rng, struct world *world, int round, int *num_finite,
                        int *num_refused, int *num_kept) {
  wf_error err = {0};
  wf_hmm *hmm = model_of(world, round % 2 == 0, round % 4 == 1);
  wf_lexicon *lexicon = lexicon_of(world, hmm);
  wf_fst *grammar = random_grammar(rng);
  wf_graph_result result;
  test_relation sentences = test_enumerate(grammar, 4, 100000);
  wf_status status = build(world, hmm, lexicon, grammar, &result, &err);
  bool none = status == WF_ERR_ARGUMENT &&
              (strstr(err.message, "empty") != NULL ||
               strstr(err.message, "in common") != NULL); /* words without pronunciation */
  if (status != WF_OK && !none) fail_msg("round %d: %s", round, err.message);
  *num_refused += none;
  if (status == WF_OK) {
    int32_t *columns;
    size_t num_columns;
    assert_ok(wf_hmm_columns(hmm, &columns, &num_columns, &err));
    uint32_t properties = wf_fst_properties(result.graph);
    assert_true(properties & WF_PROP_EPSILONS_LAST);
    const bool kept = (properties & WF_PROP_NO_IEPSILONS) == 0;
    if (!world->options.epsilon && world->style == 2) assert_false(kept); /* ends in silence */
    *num_kept += kept && !world->options.epsilon;
    for (int k = 0; k < 25; k++) {
      int x[MAX_FRAMES], frames = random_frames(rng, world, &sentences, x);
      double wanted = direct_cost(world, &sentences, x, frames),
             found = test_best_cost(result.graph, columns, x, frames);
      if (wanted == INFINITY ? found != INFINITY : !(fabs(found - wanted) < 0.02))
        fail_msg("round %d, %d frames: %.6f, wanted %.6f", round, frames, found, wanted);
      *num_finite += frames > 0 && wanted != INFINITY;
    }
    wf_free(columns);
  }
  wf_graph_result_clear(&result);
  test_relation_free(&sentences);
  wf_fst_free(grammar);
  wf_lexicon_free(lexicon);
  wf_hmm_free(hmm);
}

static void test_against_direct_computation(void **state) {
  test_rng rng = {2025};
  int num_finite = 0, num_refused = 0, num_kept = 0;
  for (int round = 0; round < 300; round++) {
    struct world world;
    random_world(&rng, &world, round);
    check_world(&rng, &world, round, &num_finite, &num_refused, &num_kept);
  }
  assert_true(num_finite > 300 * 25 / 4);
  assert_true(num_refused < 60);
  assert_true(num_kept < 10);
}

/* Text and binary files, in either byte order, give the same graph bit for bit, and the same
 * labels. */
static void test_text_and_binary(void **state) {
  wf_error err = {0};
  test_rng rng = {7};
  for (int round = 0; round < 20; round++) {
    struct world world;
    random_world(&rng, &world, round);
    world.options.epsilon = true;
    wf_fst *grammar = random_grammar(&rng), *graphs[2];
    wf_hmm_info info[2];
    wf_status statuses[2];
    for (int binary = 0; binary < 2; binary++) {
      wf_hmm *hmm = model_of(&world, binary != 0, binary != 0);
      wf_lexicon *lexicon = lexicon_of(&world, hmm);
      wf_graph_result result;
      statuses[binary] = build(&world, hmm, lexicon, grammar, &result, &err);
      graphs[binary] = result.graph != NULL ? wf_fst_ref(result.graph) : NULL;
      wf_hmm_info_init(&info[binary]);
      assert_ok(wf_hmm_get_info(hmm, &info[binary], &err));
      wf_graph_result_clear(&result);
      wf_lexicon_free(lexicon);
      wf_hmm_free(hmm);
    }
    assert_int_equal(statuses[0], statuses[1]);
    assert_memory_equal(&info[0], &info[1], sizeof info[0]);
    assert_int_equal(info[0].num_columns, NUM_SENONES);
    bool equal = true;
    if (statuses[0] == WF_OK) assert_ok(wf_equal(graphs[0], graphs[1], 0, &equal, &err));
    assert_true(equal);
    wf_fst_free(graphs[0]);
    wf_fst_free(graphs[1]);
    wf_fst_free(grammar);
  }
}

/* --- damaged files and missing data ------------------------------------------------------ */

static void test_broken_files(void **state) {
  wf_error err = {0};
  test_rng rng = {5};
  struct world world;
  wf_hmm *hmm = NULL;
  static struct bytes mdef[2], tmats, cut;
  random_world(&rng, &world, 0);
  mdef_text(&world, &mdef[0]);
  mdef_binary(&world, &mdef[1]);
  tmat_file(&world, false, 0, &tmats);
  for (int kind = 0; kind < 3; kind++) {
    const struct bytes *whole = kind < 2 ? &mdef[kind] : &tmats;
    for (size_t size = 0; size + 2 < whole->size;
         size++) { /* all bytes but the last newline are needed */
      memcpy(cut.data, whole->data, size);
      cut.size = size;
      err.message[0] = '\0';
      if (read_model(kind < 2 ? &cut : &mdef[0], kind < 2 ? &tmats : &cut, &hmm, &err) == WF_OK)
        fail_msg("kind %d is accepted with %zu of %zu bytes", kind, size, whole->size);
      assert_true(hmm == NULL && err.message[0] != '\0');
    }
    for (int flip = 0; flip < 2000;
         flip++) { /* any changed byte gives an error or another model, and does no harm */
      cut = *whole;
      cut.data[test_below(&rng, (uint32_t)cut.size)] = (uint8_t)test_below(&rng, 256);
      if (read_model(kind < 2 ? &cut : &mdef[0], kind < 2 ? &tmats : &cut, &hmm, &err) == WF_OK)
        wf_hmm_free(hmm);
    }
  }
  tmat_file(&world, false, 1, &tmats);
  assert_int_equal(read_model(&mdef[0], &tmats, &hmm, &err), WF_ERR_FORMAT);
  assert_non_null(strstr(err.message, "checksum"));
  assert_int_equal(wf_hmm_read_sphinx("/nowhere", &hmm, &err), WF_ERR_IO);
}

/* Words without pronunciation and windows without a triphone are counted and named. An option makes
 * them errors. */
static void test_missing_words_and_triphones(void **state) {
  wf_error err = {0};
  test_rng rng = {9};
  struct world world;
  random_world(&rng, &world, 0);
  world.num_rows = NUM_BASES + 1; /* one triphone, so nearly every window is missing */
  world.rows[NUM_BASES] = (struct row){A, B, B, INTERNAL, A, {0, 0}};
  world.num_prons = 2; /* Z has no pronunciation */
  world.options.epsilon = true;
  world.options.missing_words = 0;
  wf_hmm *hmm = model_of(&world, false, false);
  wf_lexicon *lexicon = lexicon_of(&world, hmm);
  wf_fst *grammar = test_fst_of(WF_TROPICAL, "0 1 1 1\n0 1 2 2\n0 1 3 3\n1\n");
  wf_graph_result result;
  assert_ok(build(&world, hmm, lexicon, grammar, &result, &err));
  assert_int_equal(result.lm_words_missing.count, 1);
  assert_string_equal(result.lm_words_missing.names[0], "Z");
  assert_true(result.hmm_substituted.count > 0 && result.hmm_substituted.names[0] != NULL);
  assert_non_null(strchr(result.hmm_substituted.names[0], '_'));
  wf_graph_result_clear(&result);
  world.options.missing_words = 1;
  assert_int_equal(build(&world, hmm, lexicon, grammar, &result, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "'Z'"));
  world.options.missing_words = 0;
  world.options.missing_hmm = 2;
  assert_int_equal(build(&world, hmm, lexicon, grammar, &result, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "no HMM for"));
  world.options.missing_hmm = 1; /* nothing is left */
  assert_int_equal(build(&world, hmm, lexicon, grammar, &result, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "empty"));
  world.options.missing_hmm = 0;
  world.options.silence = "nope";
  assert_int_equal(build(&world, hmm, lexicon, grammar, &result, &err), WF_ERR_ARGUMENT);
  world.options.silence = "";
  world.options.silence_style = 2;
  assert_int_equal(build(&world, hmm, lexicon, grammar, &result, &err), WF_ERR_ARGUMENT);
  wf_fst_free(grammar);
  wf_lexicon_free(lexicon);
  wf_hmm_free(hmm);
}

static void test_invalid_arguments(void **state) {
  wf_error err = {0};
  wf_graph_inputs parts;
  wf_graph_result result;
  wf_graph_options options;
  wf_graph_inputs_init(&parts);
  wf_graph_options_init(&options);
  options.kind = WF_GRAPH_HMM;
  assert_int_equal(wf_graph_build(&parts, &options, &result, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "no acoustic model"));
  parts.struct_size = 1;
  assert_int_equal(wf_graph_build(&parts, &options, &result, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_graph_build(NULL, &options, &result, &err), WF_ERR_ARGUMENT);
  wf_graph_result_clear(NULL);
  wf_hmm_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_against_direct_computation),
      cmocka_unit_test(test_text_and_binary),
      cmocka_unit_test(test_broken_files),
      cmocka_unit_test(test_missing_words_and_triphones),
      cmocka_unit_test(test_invalid_arguments),
  };
  int code = cmocka_run_group_tests(tests, NULL, NULL);
  wf_symbols_free(words());
  return code;
}
