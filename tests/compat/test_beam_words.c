/* test_beam_words.c - beam search with a lexicon and with any tokens, compared with all alignments of
 * short utterances. */
#include "lm_model.h"
#include "testing.h"

enum {
  FRAMES = 6,
  TOKENS = 4,
  ALIGNMENTS = 4096,
  UTTERANCES = 20,
  MAX_TEXTS = 4000,
  MAX_WORDS = 7
};
enum { BLANK = 0, SILENCE = 3, NUM_WORDS = 5, NUM_NODES = 8 };

/* Words 0 to 4 are spelled 1, 12, 11, 2, and 12 again; word 3 also 21 followed by silence. */
static const int8_t spellings[][4] = {{1, 0}, {1, 2, 0}, {1, 1, 0},
                                      {2, 0}, {1, 2, 0}, {2, 1, SILENCE, 0}};
static const int32_t spelled_words[] = {0, 1, 2, 3, 4, 3};
enum { NUM_SPELLINGS = 6 };

/* The same as a trie. Scores of nodes must cancel. */
static const wf_beam_node nodes[NUM_NODES] = {{-1, 0, 1, 2, 0, 0},
                                              {1, -0.5f, 3, 2, 0, 1},    /* 1 */
                                              {2, -0.25f, 5, 1, 1, 1},   /* 2 */
                                              {1, -1.5f, 0, 0, 2, 1},    /* 1 1 */
                                              {2, 0.75f, 0, 0, 3, 2},    /* 1 2 */
                                              {1, -2, 6, 1, 0, 0},       /* 2 1 */
                                              {SILENCE, -1, 0, 0, 5, 1}, /* 2 1 silence */
                                              {0, 0, 0, 0, 0, 0}};       /* not reached */
static const int32_t words[] = {0, 3, 2, 1, 4, 3};

static double add_logs(double a, double b) { return fmax(a, b) + log1p(exp(-fabs(a - b))); }

/* --- all alignments ------------------------------------------------------------------------- */

typedef struct sums {
  int size[MAX_TEXTS], text[MAX_TEXTS][MAX_WORDS];
  double best[MAX_TEXTS], sum[MAX_TEXTS];
  size_t count;
} sums;

typedef struct task {
  bool lexicon, asg;
  double lm_weight, word_score, silence_score;
  float blank_skip;
  float scores[FRAMES * TOKENS], transitions[TOKENS * TOKENS];
} task;

/* The language model: of the last word (-1: none) and the next (-1: the end). */
static double lm_score(int last, int word) {
  return -(double)((last * 7 + word * 5 + 47) % 11) / 4;
}

static void add(sums *out, const int *text, int size, double score) {
  size_t i = 0;
  while (i < out->count &&
         (out->size[i] != size || memcmp(out->text[i], text, (size_t)size * sizeof *text) != 0))
    i++;
  if (i == out->count) {
    assert_true(i < MAX_TEXTS);
    out->size[i] = size;
    memcpy(out->text[i], text, (size_t)size * sizeof *text);
    out->best[i] = out->sum[i] = score;
    out->count++;
  } else {
    out->best[i] = fmax(out->best[i], score);
    out->sum[i] = add_logs(out->sum[i], score);
  }
}

/* All ways to read tokens as words with silence in between. */
static void parse(const task *t, const int *tokens, int num, int *text, int size, double score,
                  sums *out) {
  int last = size > 0 ? text[size - 1] : -1;
  if (num == 0) {
    add(out, text, size, score + t->lm_weight * lm_score(last, -1));
    return;
  }
  if (!t->lexicon) {
    text[size] = tokens[0];
    parse(t, tokens + 1, num - 1, text, size + 1, score + t->lm_weight * lm_score(last, tokens[0]),
          out);
    return;
  }
  if (tokens[0] == SILENCE) parse(t, tokens + 1, num - 1, text, size, score, out);
  for (int s = 0; s < NUM_SPELLINGS; s++) {
    int n = 0;
    while (spellings[s][n] != 0 && n < num && tokens[n] == spellings[s][n]) n++;
    if (spellings[s][n] != 0) continue;
    text[size] = spelled_words[s];
    parse(t, tokens + n, num - n, text, size + 1,
          score + t->word_score + t->lm_weight * lm_score(last, spelled_words[s]), out);
  }
}

/* One alignment. Bit k of `again`: the token of frame k, the same as before, is a new one. */
static void sum_alignment(const task *t, int alignment, int again, sums *out) {
  int tokens[FRAMES], text[MAX_WORDS], num = 0;
  double score = 0;
  for (int frame = 0, before = SILENCE; frame < FRAMES; frame++, alignment /= TOKENS) {
    int token = alignment % TOKENS;
    bool repeated = again >> frame & 1;
    if (repeated && (token != before || token == SILENCE)) return;
    if (t->blank_skip > 0 && token != BLANK &&
        exp((double)t->scores[frame * TOKENS + BLANK]) >= (double)t->blank_skip)
      return;
    score += (double)t->scores[frame * TOKENS + token];
    if (t->asg && frame > 0) score += (double)t->transitions[token * TOKENS + before];
    if (token == SILENCE) score += t->silence_score;
    if ((t->asg || token != BLANK) && (token != before || repeated)) tokens[num++] = token;
    before = token;
  }
  parse(t, tokens, num, text, 0, score, out);
}

static void sum_alignments(const task *t, sums *out) {
  out->count = 0;
  for (int alignment = 0; alignment < ALIGNMENTS; alignment++)
    for (int again = 0; again < (t->asg && t->lexicon ? 1 << FRAMES : 1); again++)
      sum_alignment(t, alignment, again, out);
}

/* --- the search ----------------------------------------------------------------------------- */

/* A history is its words as digits. */
static bool score_of(void *user, int64_t history, int32_t word, int64_t *next, double *score) {
  ++*(int *)user;
  *score = lm_score((int)(history % 10) - 1, word);
  *next = history * 10 + word + 1;
  return true;
}

static wf_beam_options wide(const task *t) {
  wf_beam_options options;
  wf_beam_options_init(&options);
  options.beam_size = 1000000;
  options.beam = 1e6f;
  options.lm_weight = (float)t->lm_weight;
  options.word_score = (float)t->word_score;
  options.silence_score = (float)t->silence_score;
  options.asg = t->asg;
  options.blank_skip = t->blank_skip;
  return options;
}

static wf_beam_parts parts_of(const task *t) {
  wf_beam_parts parts = {.silence = SILENCE, .blank = BLANK};
  if (t->lexicon) {
    parts.nodes = nodes;
    parts.num_nodes = NUM_NODES;
    parts.words = words;
    parts.num_words = sizeof words / sizeof *words;
  }
  if (t->asg) {
    parts.transitions = t->transitions;
    parts.num_transitions = TOKENS * TOKENS;
  }
  return parts;
}

static wf_scores frames_of(const task *t, int first, int count) {
  return (wf_scores){.data = t->scores + first * TOKENS,
                     .num_frames = count,
                     .num_columns = TOKENS,
                     .stride = TOKENS,
                     .dtype = WF_FLOAT32};
}

static wf_beam_searcher *searcher_of(const wf_beam_parts *parts) {
  wf_error err = {0};
  wf_beam_searcher *searcher;
  assert_ok(wf_beam_searcher_create(parts, &searcher, &err));
  return searcher;
}

static wf_beam_search *search_of(const wf_beam_searcher *searcher, const wf_beam_options *options,
                                 int64_t state, const task *t, int cut) {
  wf_error err = {0};
  wf_beam_search *search;
  const wf_beam_input start = {.lm_state = state};
  assert_ok(wf_beam_search_create(searcher, &start, options, &search, &err));
  const wf_scores first = frames_of(t, 0, cut), rest = frames_of(t, cut, FRAMES - cut);
  assert_ok(wf_beam_search_advance(search, &first, &err));
  assert_ok(wf_beam_search_advance(search, &rest, &err));
  return search;
}

static task random_task(test_rng *rng, bool lexicon, bool asg) {
  task t = {.lexicon = lexicon, .asg = asg};
  t.lm_weight = 2 * (double)test_unit(rng);
  t.word_score = 2 * (double)test_unit(rng) - 1;
  t.silence_score = 2 * (double)test_unit(rng) - 1;
  for (int i = 0; i < FRAMES * TOKENS; i++) t.scores[i] = -4 * test_unit(rng);
  for (int i = 0; i < TOKENS * TOKENS; i++) t.transitions[i] = 2 * test_unit(rng) - 1;
  return t;
}

/* The words of a path; without a lexicon, its tokens. */
static int text_of(const task *t, const wf_beam_path *path, int32_t length, int *out) {
  int size = 0, before = SILENCE;
  for (int32_t k = 1; k < length - 1; k++) {
    if (t->lexicon ? path->words[k] >= 0
                   : path->tokens[k] != before && (t->asg || path->tokens[k] != BLANK))
      out[size++] = t->lexicon ? path->words[k] : path->tokens[k];
    before = path->tokens[k];
  }
  return size;
}

static void check_paths(const task *t, const wf_beam_result *paths, const sums *all, bool summed) {
  assert_int_equal(paths->num_paths, all->count);
  assert_int_equal(paths->length, FRAMES + 2);
  for (size_t i = 0; i < paths->num_paths; i++) {
    const wf_beam_path *path = &paths->paths[i];
    int text[FRAMES + 2];
    int size = text_of(t, path, paths->length, text);
    size_t at = 0;
    while (at < all->count &&
           (all->size[at] != size || memcmp(all->text[at], text, (size_t)size * sizeof *text) != 0))
      at++;
    assert_true(at < all->count);
    test_assert_close(path->score, summed ? all->sum[at] : all->best[at], 1e-4);
    assert_true(i == 0 || path->score <= path[-1].score);
    assert_true(path->tokens[0] == SILENCE && path->tokens[FRAMES + 1] == SILENCE);
    double score = 0, lm = lm_score(size > 0 ? text[size - 1] : -1, -1);
    for (int k = 0; k < FRAMES; k++) {
      score += (double)t->scores[k * TOKENS + path->tokens[k + 1]];
      if (t->asg && k > 0)
        score += (double)t->transitions[path->tokens[k + 1] * TOKENS + path->tokens[k]];
    }
    for (int k = 0; k < size; k++) lm += lm_score(k > 0 ? text[k - 1] : -1, text[k]);
    test_assert_close(path->token_score, score, 1e-4);
    test_assert_close(path->lm_score, lm, 1e-4);
  }
}

static void test_all_alignments(void **state) {
  (void)state;
  static sums expected;
  test_rng rng = {1};
  wf_error err = {0};
  for (int u = 0; u < UTTERANCES; u++) {
    task t = random_task(&rng, u % 2 == 0, u % 4 > 1);
    if (!t.asg && u % 5 == 0) t.blank_skip = 0.2f;
    int calls = 0;
    wf_beam_parts parts = parts_of(&t);
    parts.lm_fn = score_of;
    parts.user = &calls;
    wf_beam_options options = wide(&t);
    options.sum_alignments = u % 3 == 0;
    wf_beam_searcher *searcher = searcher_of(&parts);
    wf_beam_search *search =
        search_of(searcher, &options, -1, &t, (int)test_below(&rng, FRAMES + 1));
    wf_beam_result *paths;
    assert_ok(wf_beam_search_finish(search, &err));
    assert_ok(wf_beam_search_result(search, -1, &paths, &err));
    sum_alignments(&t, &expected);
    check_paths(&t, paths, &expected, options.sum_alignments);
    assert_true(calls > 0);
    wf_beam_result_free(paths);
    wf_beam_search_free(search);
    wf_beam_searcher_free(searcher);
  }
}

/* --- language models ------------------------------------------------------------------------ */

static wf_lm *g_lm;
static int32_t g_labels[NUM_WORDS];

/* The n-gram model as a function. */
static bool ngram_score(void *user, int64_t history, int32_t word, int64_t *next, double *score) {
  (void)user;
  uint32_t to = (uint32_t)history;
  float cost = word < 0 ? wf_lm_final(g_lm, to, NULL)
                        : wf_lm_step(g_lm, (uint32_t)history, g_labels[word], &to, NULL);
  *score = cost == INFINITY ? -100 : -(double)cost / M_LN10;
  *next = to;
  return true;
}

static double best_score(const wf_beam_parts *parts, const wf_beam_options *options, int64_t state,
                         const task *t, int *text, int *size) {
  wf_error err = {0};
  wf_beam_searcher *searcher = searcher_of(parts);
  wf_beam_search *search = search_of(searcher, options, state, t, 0);
  wf_beam_result *paths;
  assert_ok(wf_beam_search_finish(search, &err));
  assert_ok(wf_beam_search_result(search, -1, &paths, &err));
  assert_true(paths->num_paths > 0);
  *size = text_of(t, paths->paths, paths->length, text);
  double score = paths->paths[0].score;
  wf_beam_result_free(paths);
  wf_beam_search_free(search);
  wf_beam_searcher_free(searcher);
  return score;
}

static void test_ngram_models(void **state) {
  (void)state;
  test_rng rng = {2};
  static const char *const texts[NUM_WORDS] = {"a", "b", "c", "d", "nowhere"};
  for (int u = 0; u < UTTERANCES; u++) {
    model m;
    make_model(&m, &rng, true);
    g_lm = load_model(&m, &rng);
    for (int w = 0; w < NUM_WORDS; w++) g_labels[w] = label(g_lm, texts[w]);
    task t = random_task(&rng, u % 4 > 0, false);
    wf_beam_options options = wide(&t);
    wf_beam_parts parts = parts_of(&t);
    parts.lm = g_lm;
    parts.lm_labels = g_labels;
    parts.num_lm_labels = NUM_WORDS - (u % 5 == 0); /* the rest is unknown, as "nowhere" is */
    int text[FRAMES + 2], size, same[FRAMES + 2], same_size;
    double score = best_score(&parts, &options, -1, &t, text, &size);
    parts.lm = NULL;
    parts.lm_fn = ngram_score;
    const double other =
        best_score(&parts, &options, (int64_t)wf_lm_start(g_lm), &t, same, &same_size);
    test_assert_close(other, score, 1e-4);
    assert_true(size == same_size && memcmp(text, same, (size_t)size * sizeof *text) == 0);
    wf_lm_free(g_lm);
  }
}

static bool fails(void *user, int64_t history, int32_t word, int64_t *next, double *score) {
  *next = history;
  *score = word == 3 ? NAN : 0;
  return ++*(int *)user < 5;
}

static void test_failing_model(void **state) {
  (void)state;
  test_rng rng = {3};
  wf_error err = {0};
  task t = random_task(&rng, true, false);
  wf_beam_options options = wide(&t);
  wf_beam_parts parts = parts_of(&t);
  int calls = 0;
  parts.lm_fn = fails;
  parts.user = &calls;
  wf_beam_searcher *searcher = searcher_of(&parts);
  wf_beam_search *search;
  assert_ok(wf_beam_search_create(searcher, NULL, &options, &search, &err));
  const wf_scores scores = frames_of(&t, 0, FRAMES);
  assert_int_equal(wf_beam_search_advance(search, &scores, &err), WF_ERR_CANCELLED);
  assert_true(calls <= 5);
  wf_beam_search_free(search);
  wf_beam_searcher_free(searcher);
}

/* --- beams, frames that are freed ------------------------------------------------------------ */

/* Without a lexicon, all tokens of a path are among the frame's best; of equal ones, the first. */
static void check_chosen_tokens(task *t, int32_t most) {
  wf_error err = {0};
  wf_beam_parts parts = parts_of(t);
  wf_beam_options options = wide(t);
  options.beam_size_token = most;
  for (int c = 1; c < TOKENS; c++) t->scores[c] = t->scores[0] + (c == 1 ? 0.5f : 0);
  wf_beam_searcher *searcher = searcher_of(&parts);
  wf_beam_search *search = search_of(searcher, &options, -1, t, 0);
  wf_beam_result *paths;
  assert_ok(wf_beam_search_result(search, -1, &paths, &err));
  assert_true(paths->num_paths > (most > 1));
  for (size_t i = 0; i < paths->num_paths; i++)
    for (int k = 0; k < FRAMES; k++) {
      int token = paths->paths[i].tokens[k + 1], before = 0;
      for (int c = 0; c < TOKENS; c++) {
        float other = t->scores[k * TOKENS + c], own = t->scores[k * TOKENS + token];
        before += other > own || (other == own && c < token);
      }
      assert_true(before < most);
    }
  wf_beam_result_free(paths);
  wf_beam_search_free(search);
  wf_beam_searcher_free(searcher);
}

static void test_beams(void **state) {
  (void)state;
  test_rng rng = {4};
  wf_error err = {0};
  for (int u = 0; u < UTTERANCES; u++) {
    task t = random_task(&rng, u % 2 == 0, false);
    wf_beam_parts parts = parts_of(&t);
    wf_beam_options options = wide(&t);
    int text[FRAMES + 2], size;
    double best = best_score(&parts, &options, -1, &t, text, &size);
    options.beam_size = 4;
    options.beam = 3;
    wf_beam_searcher *searcher = searcher_of(&parts);
    wf_beam_search *search = search_of(searcher, &options, -1, &t, 2);
    wf_beam_result *paths;
    assert_ok(wf_beam_search_result(search, -1, &paths, &err));
    assert_true(paths->num_paths > 0 && paths->num_paths <= 4);
    for (size_t i = 0; i < paths->num_paths; i++)
      assert_true(paths->paths[i].score >= paths->paths[0].score - 3);
    wf_beam_result_free(paths);
    assert_ok(wf_beam_search_finish(search, &err));
    assert_ok(wf_beam_search_result(search, -1, &paths, &err));
    assert_true(paths->paths[0].score <= best + 1e-6);
    wf_beam_result_free(paths);
    wf_beam_search_free(search);
    wf_beam_searcher_free(searcher);
    if (t.lexicon) continue;
    for (int32_t most = 1; most < TOKENS; most++) check_chosen_tokens(&t, most);
  }
}

/* After pruning, the search goes on as without: the same last words, and the same differences of
 * scores. */
static void test_pruning(void **state) {
  (void)state;
  test_rng rng = {5};
  wf_error err = {0};
  int pruned = 0;
  for (int u = 0; u < 4 * UTTERANCES; u++) {
    task t = random_task(&rng, u % 4 > 0, false);
    int calls = 0;
    wf_beam_parts parts = parts_of(&t);
    parts.lm_fn = score_of;
    parts.user = &calls;
    wf_beam_options options = wide(&t);
    options.beam_size = 200;
    wf_beam_searcher *searcher = searcher_of(&parts);
    wf_beam_search *whole = search_of(searcher, &options, -1, &t, 4), *cut;
    assert_ok(wf_beam_search_create(searcher, NULL, &options, &cut, &err));
    const wf_scores first = frames_of(&t, 0, 4), rest = frames_of(&t, 4, FRAMES - 4);
    assert_ok(wf_beam_search_advance(cut, &first, &err));
    wf_beam_result *best, *short_best, *all, *short_all;
    assert_ok(wf_beam_search_result(cut, 1, &best, &err));
    assert_int_equal(best->num_paths, 1);
    int32_t frame = best->length - 1;
    assert_ok(wf_beam_search_prune(cut, 1, &err));
    assert_ok(wf_beam_search_result(cut, -1, &short_all, &err));
    assert_int_equal(short_all->num_frames, 4 - frame);
    assert_true(frame == 0 || short_all->paths[0].score == 0);
    wf_beam_result_free(short_all);
    pruned += frame > 0;
    assert_ok(wf_beam_search_advance(cut, &rest, &err));
    assert_ok(wf_beam_search_finish(whole, &err));
    assert_ok(wf_beam_search_finish(cut, &err));
    assert_ok(wf_beam_search_result(whole, -1, &all, &err));
    assert_ok(wf_beam_search_result(cut, -1, &short_all, &err));
    assert_int_equal(all->num_paths, short_all->num_paths);
    assert_int_equal(all->length, short_all->length + frame);
    double shift = all->paths[0].score - short_all->paths[0].score;
    for (size_t i = 0; i < all->num_paths; i++)
      test_assert_close(all->paths[i].score, short_all->paths[i].score + shift, 1e-6);
    for (int32_t k = 0; k < short_all->length; k++)
      assert_true(k == 0 || (all->paths[0].words[k + frame] == short_all->paths[0].words[k] &&
                             all->paths[0].tokens[k + frame] == short_all->paths[0].tokens[k]));
    assert_ok(wf_beam_search_result(cut, 100, &short_best, &err));
    assert_int_equal(short_best->num_paths, 0);
    wf_beam_result_free(best);
    wf_beam_result_free(short_best);
    wf_beam_result_free(all);
    wf_beam_result_free(short_all);
    wf_beam_search_free(whole);
    wf_beam_search_free(cut);
    wf_beam_searcher_free(searcher);
  }
  assert_true(pruned > UTTERANCES);
}

/* --- wrong input ---------------------------------------------------------------------------- */

static void test_wrong_scores(void **state) {
  (void)state;
  test_rng rng = {6};
  wf_error err = {0};
  task t = random_task(&rng, true, false);
  wf_beam_parts parts = parts_of(&t);
  wf_beam_searcher *searcher = searcher_of(&parts);
  wf_beam_search *search;
  assert_ok(wf_beam_search_create(searcher, NULL, NULL, &search, &err));
  wf_scores scores = frames_of(&t, 0, FRAMES);
  scores.num_columns = 3;
  assert_int_equal(wf_beam_search_advance(search, &scores, &err), WF_ERR_ARGUMENT);
  assert_string_equal(err.message, "the scores have 3 columns, the tokens need 4");
  scores.num_columns = TOKENS;
  t.scores[TOKENS + 1] = NAN;
  assert_int_equal(wf_beam_search_advance(search, &scores, &err), WF_ERR_ARGUMENT);
  assert_string_equal(err.message, "frame 1, column 1: the score is nan");
  wf_beam_search_free(search);
  /* Frames in which nothing is possible leave no hypothesis. */
  for (int i = 0; i < TOKENS; i++) t.scores[i] = -INFINITY;
  wf_beam_result *paths;
  assert_ok(wf_beam_search_create(searcher, NULL, NULL, &search, &err));
  scores.num_frames = 1;
  assert_ok(wf_beam_search_advance(search, &scores, &err));
  assert_ok(wf_beam_search_result(search, 0, &paths, &err));
  assert_int_equal(paths->num_paths, 0);
  wf_beam_result_free(paths);
  assert_ok(wf_beam_search_prune(search, 0, &err));
  assert_ok(wf_beam_search_finish(search, &err));
  assert_ok(wf_beam_search_result(search, -1, &paths, &err));
  assert_int_equal(paths->num_paths, 0);
  wf_beam_result_free(paths);
  assert_int_equal(wf_beam_search_finish(search, &err), WF_ERR_STATE);
  assert_int_equal(wf_beam_search_advance(search, &scores, &err), WF_ERR_STATE);
  wf_beam_search_free(search);
  wf_beam_searcher_free(searcher);
  wf_beam_search_free(NULL);
  wf_beam_searcher_free(NULL);
  wf_beam_result_free(NULL);
}

/* By the searcher, or, if the options do not fit the parts, by a search and by a batch. */
static void expect_refused(const wf_beam_parts *parts, const wf_beam_options *options,
                           const char *message) {
  wf_error err = {0};
  wf_beam_searcher *searcher;
  wf_beam_search *search;
  wf_status status = wf_beam_searcher_create(parts, &searcher, &err);
  if (status == WF_OK) {
    assert_int_equal(wf_beam_decode(searcher, NULL, 0, options, NULL, &err), WF_ERR_ARGUMENT);
    status = wf_beam_search_create(searcher, NULL, options, &search, &err);
    assert_null(search);
    wf_beam_searcher_free(searcher);
  } else {
    assert_null(searcher);
  }
  assert_int_equal(status, WF_ERR_ARGUMENT);
  if (strstr(err.message, message) == NULL) fail_msg("%s: %s", message, err.message);
}

static void test_wrong_parts(void **state) {
  (void)state;
  const task t = {.lexicon = true};
  wf_beam_node bad[2] = {{-1, 0, 0, 1, 0, 0}, {1, 0, 0, 0, 0, 0}};
  wf_beam_parts parts = parts_of(&t);
  parts.nodes = bad;
  parts.num_nodes = 2;
  expect_refused(&parts, NULL, "node 0"); /* its own child */
  bad[0].first_child = 2;
  expect_refused(&parts, NULL, "node 0");
  bad[0].first_child = 1;
  bad[1].num_words = 7;
  expect_refused(&parts, NULL, "node 1");
  bad[1].num_words = 1;
  bad[1].token = -1;
  expect_refused(&parts, NULL, "node 1: token -1");
  parts = parts_of(&t);
  const int32_t negative[] = {0, 3, 2, 1, -4, 3};
  parts.words = negative;
  expect_refused(&parts, NULL, "word -4");
  parts = parts_of(&t);
  parts.transitions = t.transitions;
  parts.num_transitions = TOKENS * TOKENS;
  expect_refused(&parts, NULL, "transitions, but asg is off");
  parts.num_transitions = 3;
  wf_beam_options options = wide(&t);
  options.asg = true;
  expect_refused(&parts, &options, "3 transitions");
  parts = parts_of(&t);
  parts.blank = -1;
  expect_refused(&parts, NULL, "blank -1");
  parts = parts_of(&t);
  parts.unknown_word = -1;
  options = wide(&t);
  options.unknown_words = true;
  expect_refused(&parts, &options, "the unknown word is -1");
  parts = parts_of(&t);
  parts.texts = &(wf_beam_text){.text = "a"};
  parts.num_texts = 1;
  expect_refused(&parts, NULL, "tokens with texts have no trie");
  options = wide(&t);
  parts = parts_of(&t);
  options.beam_size = 0;
  expect_refused(&parts, &options, "beam_size");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_alignments), cmocka_unit_test(test_ngram_models),
      cmocka_unit_test(test_failing_model),  cmocka_unit_test(test_beams),
      cmocka_unit_test(test_pruning),        cmocka_unit_test(test_wrong_scores),
      cmocka_unit_test(test_wrong_parts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
