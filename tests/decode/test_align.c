/* test_align.c - forced alignment compared with an enumeration of all paths on small inputs, also
 * with gaps, and with a table of all states on inputs of several segments. */
#include "decode/align_kernel.h"
#include "testing.h"

enum { MAX_FRAMES = 7, MAX_TOKENS = 4, BLANK = 1 };

typedef struct task {
  wf_align_input input;
  float *data;
  int32_t *tokens;
} task;

/* Few distinct scores, multiples of 1/8, make ties; `rough` scores are any floats. */
static task random_task(test_rng *rng, int64_t num_frames, size_t num_tokens, int32_t num_columns,
                        bool rough) {
  task out = {.data = malloc(((size_t)num_frames * (size_t)num_columns + 1) * sizeof(float)),
              .tokens = malloc((num_tokens + 1) * sizeof(int32_t))};
  for (int64_t i = 0; i < num_frames * num_columns; i++)
    out.data[i] = rough                      ? -10 * test_unit(rng)
                  : test_below(rng, 20) == 0 ? -INFINITY
                                             : -(float)test_below(rng, 4) / 8;
  for (size_t i = 0; i < num_tokens; i++) {
    int32_t column = (int32_t)test_below(rng, (uint32_t)num_columns - 1);
    out.tokens[i] = column + (column >= BLANK);
  }
  out.input = (wf_align_input){
      .key = "u",
      .scores = {out.data, num_frames, num_columns, num_columns, WF_FLOAT32, false, {0}},
      .tokens = out.tokens,
      .num_tokens = num_tokens};
  return out;
}

/* Gives the tokens a path, in which scores are high. `percent_wrong` of the frames have others.
 * Sums of `rough` scores are rounded. */
static void make_peaky(test_rng *rng, task *t, uint32_t percent_wrong, bool rough) {
  const wf_align_input *input = &t->input;
  int64_t num_frames = input->scores.num_frames, num_columns = input->scores.num_columns;
  for (int64_t f = 0; f < num_frames; f++) {
    int64_t place = f * (int64_t)(2 * input->num_tokens + 1) / num_frames;
    bool wrong = test_below(rng, 100) < percent_wrong;
    int32_t column = wrong            ? (int32_t)test_below(rng, (uint32_t)num_columns)
                     : place % 2 == 0 ? BLANK
                                      : input->tokens[place / 2];
    for (int64_t c = 0; c < num_columns; c++)
      t->data[f * num_columns + c] = c != column ? -4 - (float)test_below(rng, 64) / 8
                                     : rough     ? -(float)test_unit(rng)
                                                 : -0.125f;
  }
}

static void free_task(task *t) {
  free(t->data);
  free(t->tokens);
}

static wf_alignment *align(const wf_align_input *input) {
  wf_error err = {0};
  wf_align_options options;
  wf_alignment *out;
  wf_align_options_init(&options);
  options.blank = BLANK;
  assert_ok(wf_align(input, 1, &options, &out, &err));
  return out;
}

/* --- enumeration ------------------------------------------------------------------------- */

/* State 2 i is the blank before token i, state 2 i + 1 is token i. */
static int32_t column_of(const wf_align_input *input, int state) {
  return state % 2 == 0 ? BLANK : input->tokens[state / 2];
}

typedef struct best {
  int states[MAX_FRAMES];
  float score;
} best;

/* At ties the path with the larger state in the last frame that differs is better, as staying is
 * better than coming from a smaller state. At the end, the last token comes before the blank. */
static bool is_better(const wf_align_input *input, const int *states, float score,
                      const best *than) {
  int64_t last = input->scores.num_frames - 1;
  if (score != than->score) return score > than->score;
  if (states[last] != than->states[last]) return states[last] < than->states[last];
  for (int64_t t = last; t-- > 0;)
    if (states[t] != than->states[t]) return states[t] > than->states[t];
  return false;
}

static void enumerate(const wf_align_input *input, int *states, int frame, float score,
                      best *found) {
  int end = 2 * (int)input->num_tokens, from = frame == 0 ? 0 : states[frame - 1];
  if (frame == input->scores.num_frames) {
    if (from >= end - 1 && score > -INFINITY && is_better(input, states, score, found)) {
      memcpy(found->states, states, (size_t)frame * sizeof *states);
      found->score = score;
    }
    return;
  }
  for (int to = from; to <= from + 2 && to <= end; to++) {
    if (frame == 0 && to == 2) continue;
    if (to == from + 2 && (to % 2 == 0 || column_of(input, to) == column_of(input, from))) continue;
    states[frame] = to;
    float here = ((const float *)
                      input->scores.data)[frame * input->scores.num_columns + column_of(input, to)];
    enumerate(input, states, frame + 1, score + here, found);
  }
}

/* --- table of all states ----------------------------------------------------------------- */

static void fill_table(const wf_align_input *input, int *states, float *score) {
  int64_t num_frames = input->scores.num_frames;
  int count = 2 * (int)input->num_tokens + 1;
  const float *data = input->scores.data;
  float *sums = malloc((size_t)(num_frames + 1) * (size_t)count * sizeof *sums);
  int *from = malloc((size_t)num_frames * (size_t)count * sizeof *from);
  for (int s = 0; s < count; s++) sums[s] = s == 0 ? 0 : -INFINITY;
  for (int64_t t = 0; t < num_frames; t++) {
    const float *before = sums + t * count;
    for (int s = 0; s < count; s++) {
      int origin = s;
      if (s >= 1 && before[s - 1] > before[origin]) origin = s - 1;
      if (s >= 2 && s % 2 == 1 && column_of(input, s) != column_of(input, s - 2) &&
          before[s - 2] > before[origin])
        origin = s - 2;
      from[t * count + s] = origin;
      sums[(t + 1) * count + s] =
          before[origin] + data[t * input->scores.num_columns + column_of(input, s)];
    }
  }
  const float *end = sums + num_frames * count;
  int state = count >= 2 && end[count - 2] >= end[count - 1] ? count - 2 : count - 1;
  *score = end[state];
  for (int64_t t = num_frames; t-- > 0;) {
    states[t] = state;
    state = from[t * count + state];
  }
  free(sums);
  free(from);
}

/* --- comparison -------------------------------------------------------------------------- */

static void assert_path(const wf_align_input *input, const wf_alignment *got, const int *states,
                        float score) {
  const float *data = input->scores.data;
  assert_int_equal(got->status, WF_OK);
  assert_true(got->log_prob == score);
  assert_int_equal(got->num_tokens, input->num_tokens);
  int64_t t = 0;
  for (size_t i = 0; i < got->num_tokens; i++) {
    const wf_aligned_token *token = &got->tokens[i];
    float sum = 0;
    assert_int_equal(token->column, input->tokens[i]);
    assert_true(token->start_frame < token->end_frame);
    for (; t < token->start_frame; t++) assert_int_equal(states[t], 2 * (int)i);
    for (; t < token->end_frame; t++) {
      assert_int_equal(states[t], 2 * (int)i + 1);
      sum += data[t * input->scores.num_columns + token->column];
    }
    assert_true(sum == token->log_prob);
  }
  for (; t < got->num_frames; t++) assert_int_equal(states[t], 2 * (int)got->num_tokens);
}

static void test_small(void **unused) {
  (void)unused;
  test_rng rng = {5};
  int num_failed = 0, num_found = 0;
  for (uint64_t round = 0; round < test_seeds(20000); round++) {
    task t = random_task(&rng, 1 + test_below(&rng, MAX_FRAMES), test_below(&rng, MAX_TOKENS + 1),
                         2 + (int32_t)test_below(&rng, 3), round % 2 == 0);
    int states[MAX_FRAMES];
    best found = {.score = -INFINITY};
    enumerate(&t.input, states, 0, 0, &found);
    wf_alignment *got = align(&t.input);
    if (found.score == -INFINITY) {
      num_failed++;
      assert_true(got->status == WF_ERR_ARGUMENT || got->status == WF_ERR_FORMAT);
    } else {
      num_found++;
      assert_path(&t.input, got, found.states, found.score);
    }
    wf_alignment_free(got);
    free_task(&t);
  }
  assert_true(test_many((uint64_t)num_failed, 0, 20000) &&
              test_many((uint64_t)num_found, 10000, 20000));
}

static void test_segments(void **unused) {
  (void)unused;
  test_rng rng = {6};
  static const int64_t frames[] = {300, 1023, 1024, 1025, 2048, 2049, 5000};
  for (uint64_t round = 0; round < test_seeds(60); round++) {
    int64_t num_frames = frames[round % 7];
    size_t most = round % 4 == 0 ? (size_t)num_frames / 2 : 140;
    size_t num_tokens = test_below(&rng, (uint32_t)most + 1);
    if (round % 3 == 0) num_tokens = num_tokens / WF__ALIGN_BLOCK * WF__ALIGN_BLOCK;
    task t = random_task(&rng, num_frames, num_tokens, 40, round % 4 != 1);
    if (round % 2 == 0) make_peaky(&rng, &t, (uint32_t)(round % 5) * 15, round % 4 == 0);
    int *states = malloc((size_t)num_frames * sizeof *states);
    float score;
    fill_table(&t.input, states, &score);
    wf_alignment *got = align(&t.input);
    if (score > -INFINITY)
      assert_path(&t.input, got, states, score);
    else
      assert_int_equal(got->status, WF_ERR_FORMAT);
    wf_alignment_free(got);
    free(states);
    free_task(&t);
  }
}

/* All kernels that this processor has compute the same. */
static void test_kernels(void **unused) {
  (void)unused;
  enum { PLACES = 160, MAX_COLUMNS = 90 };
  _Alignas(64) static float sums[4][PLACES], expected[2][PLACES];
  float scores[MAX_COLUMNS], skip[PLACES];
  int32_t column[PLACES];
  uint8_t back[PLACES], expected_back[PLACES];
  test_rng rng = {9};
  int num_kernels = 0;
  for (uint64_t round = 0; round < test_seeds(2000); round++) {
    wf__align_frame f = {scores,
                         1 + (int32_t)test_below(&rng, MAX_COLUMNS),
                         0,
                         column,
                         skip,
                         {sums[0], sums[1]},
                         {sums[2], sums[3]},
                         -(float)test_below(&rng, 8),
                         NULL};
    size_t begin = 16 * test_below(&rng, 5), end = begin + 16 + 16 * test_below(&rng, 5);
    for (int32_t c = 0; c < f.num_columns; c++) scores[c] = -(float)test_below(&rng, 8) / 8;
    for (int i = 0; i < PLACES; i++) {
      for (int k = 0; k < 2; k++)
        sums[k][i] = test_below(&rng, 9) == 0 ? -INFINITY : -(float)test_below(&rng, 8) / 2;
      skip[i] = test_below(&rng, 3) == 0 ? -INFINITY : 0;
      column[i] = (int32_t)test_below(&rng, (uint32_t)f.num_columns);
    }
    for (int level = 0; level < 3; level++) {
      wf__align_fn advance = wf__align_kernel(level);
      if (advance == NULL) continue;
      num_kernels++;
      memset(sums[2], 0, 2 * sizeof sums[2]);
      memset(back, 0, sizeof back);
      f.back = round % 2 == 0 ? back + begin : NULL;
      advance(&f, begin, end);
      if (level > 0) {
        assert_memory_equal(sums[2], expected, sizeof expected);
        assert_memory_equal(back, expected_back, sizeof back);
      }
      memcpy(expected, sums[2], sizeof expected);
      memcpy(expected_back, back, sizeof back);
    }
  }
  print_message("%d kernels\n", num_kernels / (int)test_seeds(2000));
}

/* --- gaps -------------------------------------------------------------------------------- */

enum { LABEL_BLANK = -1, LABEL_GARBAGE = -2 };

typedef struct gap_task {
  task task;
  size_t ends[MAX_TOKENS], num_words;
  float garbage, skip_words; /* < 0: not allowed */
} gap_task;

static size_t word_of(const gap_task *t, int token) {
  size_t w = 0;
  while (t->ends[w] <= (size_t)token) w++;
  return w;
}

/* Whether two tokens may follow each other with `gap` frames between them, `num_garbage` of which
 * are garbage. -1: the start; the number of tokens: the end. Adds the words between them. */
static bool may_follow(const gap_task *t, int before, int after, int64_t gap, int num_garbage,
                       int *num_skipped) {
  int count = (int)t->task.input.num_tokens;
  const int32_t *tokens = t->task.input.tokens;
  size_t first = before < 0 ? 0 : word_of(t, before) + 1,
         next = after == count ? t->num_words : word_of(t, after);
  bool equal = before >= 0 && after < count && tokens[before] == tokens[after];
  if (before >= 0 && after < count && word_of(t, before) == next)
    return after == before + 1 && num_garbage == 0 && (!equal || gap > 0);
  if (before >= 0 && (size_t)before + 1 != t->ends[first - 1]) return false;
  if (after < count && (size_t)after != (next > 0 ? t->ends[next - 1] : 0)) return false;
  if (num_garbage > 0 && t->garbage < 0) return false;
  if (next > first && (t->skip_words < 0 || gap == 0)) return false;
  *num_skipped += (int)(next - first);
  return !equal || gap > 0;
}

/* The score of a path, given as a label of each frame; -infinity: it is none. */
static float score_of(const gap_task *t, const int *labels) {
  const wf_scores *s = &t->task.input.scores;
  int before = -1, num_garbage = 0, num_skipped = 0;
  int64_t gap = 0;
  float score = 0;
  for (int64_t f = 0; f < s->num_frames; f++) {
    const float *row = t->task.data + f * s->num_columns;
    int label = labels[f];
    if (label >= 0) {
      bool goes_on = f > 0 && labels[f - 1] == label;
      if (!goes_on &&
          (label <= before || !may_follow(t, before, label, gap, num_garbage, &num_skipped)))
        return -INFINITY;
      before = label;
      gap = num_garbage = 0;
      score += row[t->task.input.tokens[label]];
    } else {
      float top = -INFINITY;
      for (int32_t c = 0; c < s->num_columns; c++) top = fmaxf(top, row[c]);
      gap++;
      num_garbage += label == LABEL_GARBAGE;
      score += label == LABEL_GARBAGE ? top - t->garbage : row[BLANK];
    }
  }
  int count = (int)t->task.input.num_tokens;
  if (!may_follow(t, before, count, gap, num_garbage, &num_skipped)) return -INFINITY;
  return num_skipped > 0 ? score - (float)num_skipped * t->skip_words : score;
}

static float best_with_gaps(const gap_task *t, int *labels, int64_t frame) {
  float top = -INFINITY;
  if (frame == t->task.input.scores.num_frames) return score_of(t, labels);
  for (labels[frame] = LABEL_GARBAGE; labels[frame] < (int)t->task.input.num_tokens;
       labels[frame]++)
    top = fmaxf(top, best_with_gaps(t, labels, frame + 1));
  return top;
}

/* The labels of a result. Tokens that were left out have no frames. */
static void labels_of(const wf_alignment *got, int *labels) {
  for (int64_t f = 0; f < got->num_frames; f++) labels[f] = LABEL_BLANK;
  for (size_t i = 0; i < got->num_garbage; i++)
    for (int32_t f = got->garbage[i].start_frame; f < got->garbage[i].end_frame; f++)
      labels[f] = LABEL_GARBAGE;
  for (size_t i = 0; i < got->num_tokens; i++)
    for (int32_t f = got->tokens[i].start_frame; f < got->tokens[i].end_frame; f++)
      labels[f] = (int)i;
}

/* Scores are multiples of 1/8, so sums are exact in any order. */
static void test_gaps(void **unused) {
  (void)unused;
  wf_error err = {0};
  test_rng rng = {10};
  int num_skipping = 0, num_garbage = 0, num_failed = 0;
  for (uint64_t round = 0; round < test_seeds(4000); round++) {
    int64_t num_frames = 1 + test_below(&rng, 5);
    gap_task t = {.garbage = round % 3 == 0 ? -1 : (float)test_below(&rng, 6) / 8,
                  .skip_words = round % 4 == 1 ? -1 : (float)test_below(&rng, 12) / 8};
    t.task = random_task(&rng, num_frames, test_below(&rng, MAX_TOKENS),
                         2 + (int32_t)test_below(&rng, 3), false);
    for (size_t i = 1; i <= t.task.input.num_tokens; i++)
      if (i == t.task.input.num_tokens || test_below(&rng, 2) == 0) t.ends[t.num_words++] = i;
    t.task.input.word_ends = t.ends;
    t.task.input.num_words = t.num_words;
    int labels[MAX_FRAMES];
    float top = best_with_gaps(&t, labels, 0);
    wf_align_options options;
    wf_alignment *got;
    wf_align_options_init(&options);
    options.blank = BLANK;
    options.garbage = t.garbage;
    options.skip_words = t.skip_words;
    assert_ok(wf_align(&t.task.input, 1, &options, &got, &err));
    if (top == -INFINITY) {
      num_failed++;
      assert_int_not_equal(got->status, WF_OK);
    } else {
      assert_int_equal(got->status, WF_OK);
      assert_true(got->log_prob == top);
      labels_of(got, labels);
      assert_true(score_of(&t, labels) == top);
      for (size_t i = 0; i < got->num_tokens; i++)
        num_skipping += got->tokens[i].start_frame == got->tokens[i].end_frame;
      num_garbage += (int)got->num_garbage;
    }
    wf_alignment_free(got);
    free_task(&t.task);
  }
  assert_true(test_many((uint64_t)num_skipping, 100, 4000) &&
              test_many((uint64_t)num_garbage, 100, 4000) &&
              test_many((uint64_t)num_failed, 10, 4000));
}

/* Over several segments: the text has 10 words that were not said, and lacks 10. */
static void test_long_gaps(void **unused) {
  (void)unused;
  enum { COLUMNS = 40, FRAMES = 5000, WORDS = 400, FEW = 10 };
  wf_error err = {0};
  test_rng rng = {11};
  task t = random_task(&rng, FRAMES, WORDS, COLUMNS, true);
  make_peaky(&rng, &t, 0, false);
  memmove(t.tokens + 100, t.tokens + 100 + FEW, (200 - FEW) * sizeof *t.tokens);
  for (int i = 300 - FEW; i < 300; i++) t.tokens[i] = t.tokens[i + 50];
  wf_align_options options;
  wf_alignment *got;
  wf_align_options_init(&options);
  options.blank = BLANK;
  options.garbage = 0.5f;
  options.skip_words = 3;
  assert_ok(wf_align(&t.input, 1, &options, &got, &err));
  assert_int_equal(got->status, WF_OK);
  int num_skipped = 0, num_garbage = 0;
  for (size_t i = 0; i < WORDS; i++) {
    const wf_aligned_token *token = &got->tokens[i];
    num_skipped += token->start_frame == token->end_frame;
    if (i > 0) assert_true(token->start_frame >= token[-1].end_frame);
    if (i < 95 || i > 305) assert_true(token->log_prob >= -0.125f * FRAMES / WORDS);
  }
  for (size_t i = 0; i < got->num_garbage; i++)
    num_garbage += got->garbage[i].end_frame - got->garbage[i].start_frame;
  assert_in_range(num_skipped, FEW - 3, FEW);
  assert_in_range(num_garbage, FRAMES / (2 * WORDS) * (FEW - 3), FRAMES / (2 * WORDS) * (FEW + 5));
  wf_alignment_free(got);
  free_task(&t);
}

/* A batch on several threads, with strides and float16, equals single calls. */
static void test_batch(void **unused) {
  (void)unused;
  enum { COUNT = 50, COLUMNS = 9, STRIDE = 11 };
  wf_error err = {0};
  test_rng rng = {7};
  task tasks[COUNT];
  wf_align_input inputs[COUNT];
  wf_alignment *got[COUNT];
  uint16_t *halves[COUNT];
  for (int i = 0; i < COUNT; i++) {
    int64_t num_frames = 1 + test_below(&rng, 200);
    tasks[i] = random_task(&rng, num_frames, (size_t)num_frames / 4, COLUMNS, true);
    inputs[i] = tasks[i].input;
    halves[i] = malloc((size_t)num_frames * STRIDE * sizeof(uint16_t));
    for (int64_t t = 0; t < num_frames; t++)
      for (int c = 0; c < COLUMNS; c++) {
        uint32_t power = test_below(&rng, 8), fraction = test_below(&rng, 1024);
        halves[i][t * STRIDE + c] = (uint16_t)(0x8000 | (8 + power) << 10 | fraction);
        tasks[i].data[t * COLUMNS + c] = -ldexpf(1 + (float)fraction / 1024, (int)power + 8 - 15);
      }
    inputs[i].scores.data = halves[i];
    inputs[i].scores.dtype = WF_FLOAT16;
    inputs[i].scores.stride = STRIDE;
  }
  wf_align_options options;
  wf_align_options_init(&options);
  options.blank = BLANK;
  options.num_threads = 3;
  assert_ok(wf_align(inputs, COUNT, &options, got, &err));
  for (int i = 0; i < COUNT; i++) {
    wf_alignment *alone = align(&tasks[i].input);
    assert_int_equal(alone->status, got[i]->status);
    assert_true(alone->log_prob == got[i]->log_prob);
    for (size_t k = 0; k < alone->num_tokens; k++)
      assert_memory_equal(&alone->tokens[k], &got[i]->tokens[k], sizeof *alone->tokens);
    wf_alignment_free(alone);
    wf_alignment_free(got[i]);
    free(halves[i]);
    free_task(&tasks[i]);
  }
}

/* --- errors ------------------------------------------------------------------------------ */

static void fails(const wf_align_input *input, wf_status status, const char *message) {
  wf_alignment *got = align(input);
  assert_int_equal(got->status, status);
  assert_string_equal(got->message, message);
  wf_alignment_free(got);
}

static void test_errors(void **unused) {
  (void)unused;
  wf_error err = {0};
  float data[3 * 4] = {0};
  int32_t tokens[] = {2, 2, 3};
  wf_align_input input = {.key = "u",
                          .scores = {data, 3, 4, 4, WF_FLOAT32, false, {0}},
                          .tokens = tokens,
                          .num_tokens = 3};
  fails(&input, WF_ERR_ARGUMENT,
        "utterance u: 3 frames, but 3 tokens with blanks between equal ones need at least 4");
  tokens[0] = 4;
  fails(&input, WF_ERR_ARGUMENT,
        "utterance u: token 0 is column 4, which the scores do not have (4 columns)");
  tokens[0] = BLANK;
  fails(&input, WF_ERR_ARGUMENT, "utterance u: token 0 is column 1, the blank");
  tokens[0] = 3;
  data[4 + 2] = NAN;
  fails(&input, WF_ERR_FORMAT, "utterance u: score nan in frame 1, column 2");
  data[4 + 2] = 0;
  for (int t = 0; t < 3; t++) data[t * 4 + 2] = -INFINITY;
  fails(&input, WF_ERR_FORMAT,
        "utterance u: no alignment: each has a score of -infinity (probability 0) in some frame");
  input.key = NULL;
  input.scores.num_columns = 1;
  fails(&input, WF_ERR_ARGUMENT, "utterance 0: the blank is column 1, the scores have 1 columns");
  input.scores = (wf_scores){0};
  fails(&input, WF_ERR_ARGUMENT, "utterance 0: 0 frames, but 3 tokens need at least 3");
  input.num_tokens = 0;
  wf_alignment *empty = align(&input);
  assert_int_equal(empty->status, WF_OK);
  wf_alignment_free(empty);
  size_t ends[] = {1, 1, 3};
  input.scores = (wf_scores){data, 3, 4, 4, WF_FLOAT32, false, {0}};
  input.word_ends = ends;
  input.num_words = 3;
  tokens[1] = 2;
  tokens[2] = 3;
  input.num_tokens = 3;
  fails(&input, WF_ERR_ARGUMENT, "utterance 0: word 1 has the tokens 1 to 1 of 3");
  ends[0] = 4;
  fails(&input, WF_ERR_ARGUMENT, "utterance 0: word 0 has the tokens 0 to 4 of 3");
  ends[0] = 2;
  input.num_words = 1;
  fails(&input, WF_ERR_ARGUMENT, "utterance 0: the words end at token 2 of 3");
  wf_align_options options;
  wf_align_options_init(&options);
  options.blank = -1;
  assert_int_equal(wf_align(&input, 1, &options, &empty, &err), WF_ERR_ARGUMENT);
  assert_null(empty);
  assert_ok(wf_align(NULL, 0, NULL, NULL, &err));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small),     cmocka_unit_test(test_segments),
      cmocka_unit_test(test_kernels),   cmocka_unit_test(test_gaps),
      cmocka_unit_test(test_long_gaps), cmocka_unit_test(test_batch),
      cmocka_unit_test(test_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
