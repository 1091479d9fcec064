/* test_align.c - forced alignment compared with an enumeration of all paths on small inputs, and
 * with a table of all states on inputs of several segments. */
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
  assert_true(num_failed > 0 && num_found > num_failed);
}

static void test_segments(void **unused) {
  (void)unused;
  test_rng rng = {6};
  static const int64_t frames[] = {1023, 1024, 1025, 2048, 2049, 5000};
  for (uint64_t round = 0; round < test_seeds(24); round++) {
    int64_t num_frames = frames[round % 6];
    size_t most = round % 4 == 0 ? (size_t)num_frames / 2 : 300;
    task t =
        random_task(&rng, num_frames, test_below(&rng, (uint32_t)most + 1), 40, round % 3 != 0);
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
  input.scores.on_device = true;
  fails(&input, WF_ERR_UNSUPPORTED,
        "utterance u: the scores are in GPU memory, alignment needs them in host memory");
  input.scores.on_device = false;
  input.key = NULL;
  input.scores.num_columns = 1;
  fails(&input, WF_ERR_ARGUMENT, "utterance 0: the blank is column 1, the scores have 1 columns");
  input.scores = (wf_scores){0};
  fails(&input, WF_ERR_ARGUMENT, "utterance 0: 0 frames, but 3 tokens need at least 3");
  input.num_tokens = 0;
  wf_alignment *empty = align(&input);
  assert_int_equal(empty->status, WF_OK);
  wf_alignment_free(empty);
  wf_align_options options;
  wf_align_options_init(&options);
  options.blank = -1;
  assert_int_equal(wf_align(&input, 1, &options, &empty, &err), WF_ERR_ARGUMENT);
  assert_null(empty);
  assert_ok(wf_align(NULL, 0, NULL, NULL, &err));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_small), cmocka_unit_test(test_segments),
                                     cmocka_unit_test(test_batch), cmocka_unit_test(test_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
