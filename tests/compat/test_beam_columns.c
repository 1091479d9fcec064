/* test_beam_columns.c - the beam search passes over columns that cannot survive. Compared with the
 * search that looks at all, bit by bit, and with a plain beam search. */
#include "compat/beam.h"
#include "lm_model.h"
#include "testing.h"

enum { WIDTH = 300, FRAMES = 10, MAX_NODES = 1000, MAX_ENDS = 2000, NUM_WORDS = 8 };

typedef struct task {
  int width, frames;
  double grid; /* scores are multiples of it, so that there are ties; 0: any */
  float scores[FRAMES * WIDTH], transitions[WIDTH * WIDTH];
  wf_beam_node nodes[MAX_NODES];
  int32_t ends[MAX_ENDS], labels[WIDTH];
  wf_beam_parts parts;
  wf_beam_options options;
} task;

static double below(test_rng *rng, double most) { return most * (double)test_unit(rng); }
static bool one_in(test_rng *rng, uint32_t n) { return test_below(rng, n) == 0; }
static float rounded(const task *t, double score) {
  return (float)(t->grid > 0 ? t->grid * round(score / t->grid) : score);
}

/* --- random tasks ---------------------------------------------------------------------------- */

static void random_scores(test_rng *rng, task *t) {
  const double spread = one_in(rng, 2) ? 4 : 16;
  const bool has_zeros = one_in(rng, 3);
  const size_t width = (size_t)t->width;
  for (size_t i = 0; i < width * (size_t)t->frames; i++) {
    const double high = one_in(rng, 30) ? 3 : 0;
    t->scores[i] = rounded(t, high - below(rng, 1) * below(rng, spread));
    if (has_zeros && one_in(rng, 5)) t->scores[i] = -INFINITY;
    if (one_in(rng, 40)) t->scores[i] = one_in(rng, 2) ? 0.0f : -0.0f;
  }
  for (size_t f = 1; f < (size_t)t->frames; f++)
    if (one_in(rng, 4))
      memcpy(t->scores + f * width, t->scores + (f - 1) * width, width * sizeof *t->scores);
}

/* The root has many children, a few others too. Tokens come in any order, some twice. */
static uint32_t num_children(test_rng *rng, const task *t, size_t node) {
  if (node == 0) return 1 + test_below(rng, (uint32_t)t->width);
  if (node < 10 && one_in(rng, 5)) return test_below(rng, (uint32_t)t->width);
  return test_below(rng, node < 10 ? 4 : 2);
}

static void random_trie(test_rng *rng, task *t) {
  size_t num = 1, num_ends = 0;
  t->nodes[0] = (wf_beam_node){.token = 0};
  for (size_t i = 0; i < num; i++) {
    uint32_t children = num_children(rng, t, i), width = (uint32_t)t->width;
    if (children > MAX_NODES - num) children = (uint32_t)(MAX_NODES - num);
    const uint32_t start = test_below(rng, width), step = one_in(rng, 2) ? 1 : width - 1;
    t->nodes[i].first_child = (uint32_t)num;
    t->nodes[i].num_children = children;
    for (uint32_t k = 0; k < children; k++, num++) {
      const uint32_t token = one_in(rng, 20) ? test_below(rng, width) : (start + k * step) % width;
      t->nodes[num] = (wf_beam_node){.token = (int32_t)token};
      t->nodes[num].score = rounded(t, 1 - below(rng, 3));
    }
    t->nodes[i].first_word = (uint32_t)num_ends;
    t->nodes[i].num_words = i == 0 ? 0 : children > 0 ? test_below(rng, 2) : 1 + test_below(rng, 2);
    for (uint32_t k = 0; k < t->nodes[i].num_words; k++)
      t->ends[num_ends++] = (int32_t)test_below(rng, NUM_WORDS);
  }
  t->parts.nodes = t->nodes;
  t->parts.num_nodes = num;
  t->parts.words = t->ends;
  t->parts.num_words = num_ends;
}

static void random_options(test_rng *rng, task *t) {
  wf_beam_options *o = &t->options;
  const uint32_t width = (uint32_t)t->width;
  wf_beam_options_init(o);
  o->asg = one_in(rng, 4);
  o->beam_size = 1 + (int32_t)test_below(rng, one_in(rng, 2) ? 6 : 40);
  o->beam = one_in(rng, 3) ? 50 : (float)below(rng, one_in(rng, 2) ? 2 : 8);
  o->sum_alignments = one_in(rng, 2);
  o->beam_size_token = one_in(rng, 3) ? 1 + (int32_t)test_below(rng, width + 3) : 0;
  o->lm_weight = rounded(t, one_in(rng, 8) ? -1 : below(rng, 2));
  o->word_score = rounded(t, below(rng, 2) - 1);
  o->silence_score = rounded(t, below(rng, 2) - 1);
  o->unknown_words = one_in(rng, 3);
  o->unknown_score = rounded(t, -below(rng, 1));
  o->blank_skip = !o->asg && one_in(rng, 6) ? 0.5f : 0;
  o->token_lm = t->parts.num_nodes > 0 && one_in(rng, 5);
  o->hold_word_ends = !one_in(rng, 3);
  if (!o->asg || one_in(rng, 2)) return;
  for (uint32_t i = 0; i < width * width; i++) t->transitions[i] = rounded(t, below(rng, 4) - 3);
  t->parts.transitions = t->transitions;
  t->parts.num_transitions = width * width;
}

static void random_task(test_rng *rng, wf_lm *lm, task *t) {
  static const char *const texts[NUM_WORDS] = {"a", "b", "c", "d", "e", "f", "g", "none"};
  t->width = 4 + (int)test_below(rng, one_in(rng, 2) ? WIDTH - 4 : 40);
  t->frames = 3 + (int)test_below(rng, FRAMES - 3);
  t->grid = one_in(rng, 3) ? 1 - below(rng, 2) * one_in(rng, 2) : 0;
  t->parts = (wf_beam_parts){.silence = (int32_t)test_below(rng, (uint32_t)t->width),
                             .blank = (int32_t)test_below(rng, (uint32_t)t->width),
                             .unknown_word = 3};
  random_scores(rng, t);
  if (one_in(rng, 2)) random_trie(rng, t);
  if (one_in(rng, 2)) {
    for (int w = 0; w < NUM_WORDS; w++) t->labels[w] = label(lm, texts[w]);
    t->parts.lm = lm;
    t->parts.lm_labels = t->labels;
    t->parts.num_lm_labels = NUM_WORDS;
  }
  random_options(rng, t);
}

/* Sums of scores that are close to each other: what is passed over decides by little. */
static void random_close_task(test_rng *rng, task *t) {
  t->width = 4 + (int)test_below(rng, 12);
  t->frames = FRAMES;
  t->grid = 0;
  t->parts = (wf_beam_parts){.silence = (int32_t)test_below(rng, (uint32_t)t->width)};
  wf_beam_options_init(&t->options);
  t->options.sum_alignments = true;
  t->options.beam_size = 1 + (int32_t)test_below(rng, 4);
  t->options.beam = (float)below(rng, one_in(rng, 2) ? 0.7 : 4);
  for (int i = 0; i < t->width * t->frames; i++) t->scores[i] = -test_unit(rng);
  if (one_in(rng, 2)) return;
  t->options.asg = true;
  t->parts.transitions = t->transitions;
  t->parts.num_transitions = (size_t)t->width * (size_t)t->width;
  for (size_t i = 0; i < t->parts.num_transitions; i++) t->transitions[i] = -3 * test_unit(rng);
}

/* --- all columns, or some -------------------------------------------------------------------- */

static wf_scores frames_of(const task *t, int first, int count) {
  return (wf_scores){.data = t->scores + first * t->width,
                     .num_frames = count,
                     .num_columns = t->width,
                     .stride = t->width,
                     .dtype = WF_FLOAT32};
}

static bool is_same(const wf_beam_path *x, const wf_beam_path *y, int32_t length) {
  const size_t bytes = (size_t)length * sizeof *x->words;
  return memcmp(&x->score, &y->score, sizeof x->score) == 0 &&
         memcmp(&x->token_score, &y->token_score, sizeof x->token_score) == 0 &&
         memcmp(&x->lm_score, &y->lm_score, sizeof x->lm_score) == 0 &&
         memcmp(x->words, y->words, bytes) == 0 && memcmp(x->tokens, y->tokens, bytes) == 0;
}

static void check_same(uint64_t seed, const wf_beam_search *some, const wf_beam_search *all) {
  wf_error err = {0};
  wf_beam_result *x, *y;
  assert_ok(wf_beam_search_result(some, -1, &x, &err));
  assert_ok(wf_beam_search_result(all, -1, &y, &err));
  if (x->num_paths != y->num_paths || x->length != y->length)
    fail_msg("seed %llu: %zu paths, all columns give %zu", (unsigned long long)seed, x->num_paths,
             y->num_paths);
  for (size_t i = 0; i < x->num_paths; i++)
    if (!is_same(&x->paths[i], &y->paths[i], x->length))
      fail_msg("seed %llu: path %zu: score %.17g, all columns give %.17g", (unsigned long long)seed,
               i, x->paths[i].score, y->paths[i].score);
  wf_beam_result_free(x);
  wf_beam_result_free(y);
}

/* Did the newest frame pass over columns? */
static bool has_short_list(const wf_beam_search *s, const task *t) {
  const int32_t most = t->options.beam_size_token;
  const int32_t chosen = most > 0 && most < t->width ? most : t->width;
  return s->columns.by_lm ||
         (s->columns.listed == WF__COLUMNS_LISTED && s->columns.list_size < chosen / 2);
}

/* Adds 1 to `short_lists` if columns were passed over. */
static void check_task(uint64_t seed, test_rng *rng, const task *t, uint64_t *short_lists) {
  wf_error err = {0};
  wf_beam_searcher *searcher;
  wf_beam_search *some, *all;
  assert_ok(wf_beam_searcher_create(&t->parts, &searcher, &err));
  assert_ok(wf_beam_search_create(searcher, NULL, &t->options, &some, &err));
  assert_ok(wf_beam_search_create(searcher, NULL, &t->options, &all, &err));
  all->all_columns = true;
  const bool stepwise = one_in(rng, 3);
  for (int frame = 0; frame < t->frames;) {
    const int count =
        stepwise ? 1 + (int)test_below(rng, (uint32_t)(t->frames - frame)) : t->frames;
    const wf_scores scores = frames_of(t, frame, count);
    assert_ok(wf_beam_search_advance(some, &scores, &err));
    assert_ok(wf_beam_search_advance(all, &scores, &err));
    check_same(seed, some, all);
    frame += count;
    const int32_t look_back = stepwise ? (int32_t)test_below(rng, 3) : FRAMES;
    assert_ok(wf_beam_search_prune(some, look_back, &err));
    assert_ok(wf_beam_search_prune(all, look_back, &err));
  }
  *short_lists += has_short_list(some, t);
  assert_ok(wf_beam_search_finish(some, &err));
  assert_ok(wf_beam_search_finish(all, &err));
  check_same(seed, some, all);
  wf_beam_search_free(some);
  wf_beam_search_free(all);
  wf_beam_searcher_free(searcher);
}

static void test_all_columns(void **state) {
  (void)state;
  enum { SEEDS = 2000 };
  static task t;
  uint64_t short_lists[2][2] = {{0}};
  wf_lm *lm = lm_of(
      "\\data\\\nngram 1=10\nngram 2=4\n\n\\1-grams:\n-1 </s>\n-99 <s> 0.3\n-1.5 "
      "<unk>\n-0.5 a -0.2\n-0.9 b 0.4\n-1.2 c\n-0.8 d 1.5\n-2 e\n-0.5 f\n-1 g -1\n\n"
      "\\2-grams:\n-0.1 a b\n-0.2 b a\n-0.4 <s> e\n-0.3 d d\n\n\\end\\\n");
  for (uint64_t seed = 1; seed <= test_seeds(SEEDS); seed++) {
    test_rng rng = {seed};
    model m;
    if (seed % 2 == 0) make_model(&m, &rng, true);
    wf_lm *random = seed % 2 == 0 ? load_model(&m, &rng) : NULL;
    random_task(&rng, random != NULL ? random : lm, &t);
    check_task(seed, &rng, &t, &short_lists[t.parts.num_nodes > 0][t.options.sum_alignments]);
    wf_lm_free(random);
  }
  for (int lexicon = 0; lexicon < 2; lexicon++)
    for (int sums = 0; sums < 2; sums++)
      assert_true(test_many(short_lists[lexicon][sums], SEEDS / 100, SEEDS));
  wf_lm_free(lm);
}

static void test_close_scores(void **state) {
  (void)state;
  static task t;
  uint64_t short_lists = 0;
  for (uint64_t seed = 1; seed <= test_seeds(4000); seed++) {
    test_rng rng = {seed};
    random_close_task(&rng, &t);
    check_task(seed, &rng, &t, &short_lists);
  }
}

/* A trigram model of as many words as there are columns, and some n-grams of each. Back-off costs
 * are of either sign. */
static wf_lm *large_model(test_rng *rng) {
  static char text[1 << 18];
  char *at = text;
  at += sprintf(at, "\\data\\\nngram 1=%d\nngram 2=%d\nngram 3=%d\n\n\\1-grams:\n", WIDTH + 3,
                3 * WIDTH, WIDTH);
  at += sprintf(at, "-1 </s>\n-99 <s> -0.2\n-3 <unk>\n");
  for (int w = 0; w < WIDTH; w++)
    at += sprintf(at, "%.3f w%d %.3f\n", -below(rng, 4), w, 0.5 - below(rng, 2));
  at += sprintf(at, "\n\\2-grams:\n");
  for (int i = 0; i < 3 * WIDTH; i++)
    at += sprintf(at, "%.3f w%d w%d %.3f\n", -below(rng, 2), i % WIDTH, (i * 7 + i / WIDTH) % WIDTH,
                  0.5 - below(rng, 2));
  at += sprintf(at, "\n\\3-grams:\n");
  for (int i = 0; i < WIDTH; i++)
    at += sprintf(at, "%.3f w%d w%d w%d\n", -below(rng, 1), i, i * 7 % WIDTH, i * 5 % WIDTH);
  sprintf(at, "\n\\end\\\n");
  return lm_of(text);
}

/* Without a lexicon, the columns that n-grams let survive are found without asking for others. */
static void test_many_words(void **state) {
  (void)state;
  static task t;
  uint64_t short_lists = 0;
  test_rng of_model = {1};
  wf_lm *lm = large_model(&of_model);
  for (uint64_t seed = 1; seed <= test_seeds(1500); seed++) {
    test_rng rng = {seed};
    char word[8];
    random_task(&rng, lm, &t);
    t.parts.num_nodes = t.parts.num_words = 0;
    t.options.token_lm = false;
    t.options.lm_weight = fabsf(t.options.lm_weight);
    for (int c = 0; c < t.width; c++) {
      snprintf(word, sizeof word, "w%u", test_below(&rng, one_in(&rng, 20) ? 2 * WIDTH : WIDTH));
      t.labels[c] = label(lm, word);
    }
    t.parts.lm = lm;
    t.parts.lm_labels = t.labels;
    t.parts.num_lm_labels = (size_t)t.width - test_below(&rng, 3);
    check_task(seed, &rng, &t, &short_lists);
  }
  assert_true(test_many(short_lists, 500, 1500));
  wf_lm_free(lm);
}

/* --- a plain beam search --------------------------------------------------------------------- */

enum { MAX_BEAM = 8 };

typedef struct plain {
  int text[FRAMES], size, last;
  bool after_blank;
  double score;
} plain;

typedef struct plain_frame {
  plain all[MAX_BEAM * WIDTH];
  size_t size;
} plain_frame;

static void plain_add(plain_frame *to, const plain *h, bool sums) {
  size_t i = 0;
  for (; i < to->size; i++) {
    const plain *x = &to->all[i];
    if (x->size == h->size && x->last == h->last && x->after_blank == h->after_blank &&
        memcmp(x->text, h->text, (size_t)h->size * sizeof *h->text) == 0)
      break;
  }
  if (i == to->size) {
    to->all[to->size++] = *h;
    return;
  }
  const double a = to->all[i].score, b = h->score;
  to->all[i].score = sums ? fmax(a, b) + log1p(exp(-fabs(a - b))) : fmax(a, b);
}

static int compare_plain(const void *a, const void *b) {
  const plain *x = a, *y = b;
  return (x->score < y->score) - (x->score > y->score);
}

/* How many columns have a higher score, or the same and come before? */
static int rank_of(const float *row, int width, int column) {
  int rank = 0;
  for (int c = 0; c < width; c++)
    rank += row[c] > row[column] || (row[c] == row[column] && c < column);
  return rank;
}

static void plain_step(const task *t, const float *row, const plain_frame *from, plain_frame *to) {
  const int most = t->options.beam_size_token > 0 ? t->options.beam_size_token : t->width;
  to->size = 0;
  for (int c = 0; c < t->width; c++) {
    if (rank_of(row, t->width, c) >= most) continue;
    for (size_t k = 0; k < from->size; k++) {
      plain h = from->all[k];
      h.score += (double)row[c] + (c == t->parts.silence ? (double)t->options.silence_score : 0);
      if (c != t->parts.blank && (c != h.last || h.after_blank)) h.text[h.size++] = c;
      h.after_blank = c == t->parts.blank;
      h.last = c;
      plain_add(to, &h, t->options.sum_alignments);
    }
  }
  qsort(to->all, to->size, sizeof *to->all, compare_plain);
  if (to->size > (size_t)t->options.beam_size) to->size = (size_t)t->options.beam_size;
}

static void check_plain(const task *t, const wf_beam_result *paths, const plain_frame *expected) {
  assert_int_equal(paths->num_paths, expected->size);
  for (size_t i = 0; i < paths->num_paths; i++) {
    const plain *h = &expected->all[i];
    int size = 0, last = t->parts.silence;
    test_assert_close(paths->paths[i].score, h->score, 1e-6);
    for (int f = 1; f < paths->length; f++) {
      const int token = paths->paths[i].tokens[f];
      if (token != t->parts.blank && token != last) {
        assert_true(size < h->size);
        assert_int_equal(token, h->text[size++]);
      }
      last = token;
    }
    assert_int_equal(size, h->size);
  }
}

static void test_plain_search(void **state) {
  (void)state;
  static task t;
  static plain_frame frames[2];
  wf_error err = {0};
  for (uint64_t seed = 0; seed < 60; seed++) {
    test_rng rng = {seed};
    t = (task){.width = 70 + (int)test_below(&rng, 150), .frames = 6};
    t.parts = (wf_beam_parts){.silence = (int32_t)test_below(&rng, 70), .blank = 65};
    wf_beam_options_init(&t.options);
    t.options.beam = 1e6f;
    t.options.beam_size = 2 + (int32_t)test_below(&rng, MAX_BEAM - 1);
    t.options.sum_alignments = seed % 2;
    t.options.silence_score = (float)below(&rng, 2) - 1;
    if (seed % 3 == 0) t.options.beam_size_token = 1 + (int32_t)test_below(&rng, 100);
    for (int i = 0; i < t.width * t.frames; i++)
      t.scores[i] = -8 * test_unit(&rng) + (seed % 4 == 0 && i % t.width % 16 == 0 ? 8.0f : 0);
    wf_beam_searcher *searcher;
    wf_beam_search *search;
    wf_beam_result *paths;
    assert_ok(wf_beam_searcher_create(&t.parts, &searcher, &err));
    assert_ok(wf_beam_search_create(searcher, NULL, &t.options, &search, &err));
    frames[0].size = 1;
    frames[0].all[0] = (plain){.last = t.parts.silence};
    for (int f = 0; f < t.frames; f++) {
      const wf_scores scores = frames_of(&t, f, 1);
      assert_ok(wf_beam_search_advance(search, &scores, &err));
      plain_step(&t, t.scores + f * t.width, &frames[f % 2], &frames[1 - f % 2]);
      assert_ok(wf_beam_search_result(search, -1, &paths, &err));
      check_plain(&t, paths, &frames[1 - f % 2]);
      wf_beam_result_free(paths);
    }
    wf_beam_search_free(search);
    wf_beam_searcher_free(searcher);
  }
}

/* --- rows of other widths -------------------------------------------------------------------- */

/* Tokens of hypotheses may be beyond the columns of the next frames. */
static void test_widths(void **state) {
  (void)state;
  static task t;
  wf_error err = {0};
  for (uint64_t seed = 0; seed < 20; seed++) {
    test_rng rng = {seed};
    t = (task){.width = WIDTH, .parts = {.silence = 1, .blank = 0}};
    wf_beam_options_init(&t.options);
    t.options.sum_alignments = seed % 2;
    for (int i = 0; i < WIDTH; i++) t.scores[i] = -8 * test_unit(&rng);
    wf_beam_searcher *searcher;
    wf_beam_search *some, *all;
    assert_ok(wf_beam_searcher_create(&t.parts, &searcher, &err));
    assert_ok(wf_beam_search_create(searcher, NULL, &t.options, &some, &err));
    assert_ok(wf_beam_search_create(searcher, NULL, &t.options, &all, &err));
    all->all_columns = true;
    for (int step = 0; step < 6; step++) {
      wf_scores scores = frames_of(&t, 0, 1);
      scores.num_columns = 2 + (int32_t)test_below(&rng, WIDTH - 1);
      assert_ok(wf_beam_search_advance(some, &scores, &err));
      assert_ok(wf_beam_search_advance(all, &scores, &err));
      check_same(seed, some, all);
    }
    wf_beam_search_free(some);
    wf_beam_search_free(all);
    wf_beam_searcher_free(searcher);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_columns), cmocka_unit_test(test_close_scores),
      cmocka_unit_test(test_many_words),  cmocka_unit_test(test_plain_search),
      cmocka_unit_test(test_widths),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
