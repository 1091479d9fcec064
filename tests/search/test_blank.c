/* test_blank.c - blank_penalty and blank_skip_threshold (docs/reference/semantics.md, Blank).
 *
 * First examples by hand. Then random tasks: the test applies both options to a copy of the scores
 * and decodes the copy with the oracle. */
#include "decode_oracle.h"
#include "decode_tasks.h"
#include "example.h"
#include "lattice_oracle.h"

/* --- examples by hand -------------------------------------------------------------------- */

/* CTC with one token A, which is word 1. Column 0 is the blank, column 1 is A.
 *
 *   blank +-+         A:1         +-+ A
 *         v |  --------------->   v |
 *        ((0))                   ((1))
 *              <---------------
 *                   blank                */
#define ONE_TOKEN "0 0 1 0\n0 1 2 1\n1 1 2 0\n1 0 1 0\n0\n1\n"

/* The blank costs 0.5 and A costs 1: no word. A penalty of 1 makes the blank cost 1.5. */
static void test_example_penalty(void **state) {
  (void)state;
  static const float scores[] = {-0.5f, -1};
  struct example e = example_of(ONE_TOKEN, scores, 1, 2);
  e.options.blank = 0;
  example_expect(&e, NULL, "", 0.5, 0);
  e.options.blank_penalty = 1;
  example_expect(&e, NULL, "1[0,1)", 1, 0);
}

/* The penalty changes the log-likelihood, so acoustic_scale applies to it: 0.5 * (0.5 + 0.25). */
static void test_example_penalty_is_scaled(void **state) {
  (void)state;
  static const float scores[] = {-0.5f, -1};
  struct example e = example_of(ONE_TOKEN, scores, 1, 2);
  e.options.blank = 0;
  e.options.blank_penalty = 0.25f;
  e.options.acoustic_scale = 0.5f;
  example_expect(&e, NULL, "", 0.375, 0);
}

/* Three frames are blank with certainty (e^-0.125 = 0.88 is above 0.5), then comes A. The first
 * frame of the run is searched, the others are skipped: 0.125 + 0.25. Frames keep their numbers. */
static void test_example_skipped_frames(void **state) {
  (void)state;
  static const float scores[] = {-0.125f, -4, -0.125f, -4, -0.125f, -4, -4, -0.25f};
  struct example e = example_of(ONE_TOKEN, scores, 4, 2);
  e.options.blank = 0;
  e.options.blank_skip_threshold = 0.5f;
  example_expect(&e, NULL, "1[3,4)", 0.375, 0);
  wf_result *result = example_decode(&e, NULL);
  const int32_t alignment[] = {1, 0, 0, 2}; /* labels: column + 1; 0 where a frame was skipped */
  assert_memory_equal(result->alignment, alignment, sizeof alignment);
  wf_result_free(result);
}

/* --- random tasks ------------------------------------------------------------------------- */

static wf_error err;

/* The rows that are searched, with the blank penalty applied. number[k] is the original frame of
 * row k. */
struct reduced {
  float *data;
  wf_scores scores;
  int64_t number[64];
};

static struct reduced reduce(const struct decode_task *task) {
  const wf_decoder_options *o = &task->options;
  const wf_scores *scores = &task->scores;
  struct reduced out = {
      .data = malloc((size_t)(scores->num_frames * scores->num_columns + 1) * sizeof *out.data)};
  float limit = (float)log((double)o->blank_skip_threshold);
  bool before = false;
  int64_t kept = 0;
  assert_true(scores->num_frames < 64);
  for (int64_t t = 0; t < scores->num_frames; t++) {
    const float *row = (const float *)scores->data + t * scores->stride;
    bool blank = o->blank_skip_threshold < 1 && row[o->blank] > limit, skipped = blank && before;
    before = blank;
    if (skipped) continue;
    memcpy(out.data + kept * scores->num_columns, row, (size_t)scores->num_columns * sizeof *row);
    out.data[kept * scores->num_columns + o->blank] -= o->blank_penalty;
    out.number[kept++] = t;
  }
  out.scores = (wf_scores){.data = out.data,
                           .num_frames = kept,
                           .num_columns = scores->num_columns,
                           .stride = scores->num_columns};
  return out;
}

static struct decode_task blank_task(uint64_t seed) {
  static const float thresholds[] = {1, 0, 0.05f, 0.3f, 0.7f}, penalties[] = {0, 0.5f, -1.25f, 3};
  struct decode_task task = test_random_task(seed);
  int32_t num_columns = wf_graph_min_columns(task.graph);
  task.options.blank = num_columns > 0 ? (int32_t)(seed % (uint64_t)num_columns) : 0;
  task.options.blank_skip_threshold = thresholds[seed / 7 % 5];
  task.options.blank_penalty = penalties[seed % 4];
  if (seed % 2 == 0) task.options.lattice_beam = (float)(seed % 9) / 2 + 0.25f;
  return task;
}

/* Checks starts and ends of words, derived from the alignment by the rules of "What is reported".
 */
static void check_words(const wf_result *result, const struct reduced *reduced,
                        const oracle_result *expected, const struct decode_task *task) {
  const wf_arc *arcs = wf_fst_get_view(wf_graph_fst(task->graph)).arcs;
  int32_t label_of[64] = {0}; /* by original frame */
  wf_word words[512];
  int64_t k = 0,
          end = expected->flags & WF_RESULT_DIED ? reduced->number[expected->num_decoded]
                                                 : task->scores.num_frames,
          next = 0;
  int count = 0;
  for (int i = 0; i < expected->num_arcs; i++) {
    const wf_arc *arc = &arcs[expected->arcs[i]];
    bool more = k < expected->num_decoded;
    if (arc->olabel != 0)
      words[count++] = (wf_word){arc->olabel, (int32_t)(more ? reduced->number[k] : next), 0};
    if (arc->ilabel != 0) {
      label_of[reduced->number[k]] = arc->ilabel;
      next = reduced->number[k++] + 1;
    }
  }
  assert_int_equal(result->num_decoded, end);
  assert_memory_equal(result->alignment, label_of, (size_t)end * sizeof *label_of);
  assert_int_equal(result->num_words, count);
  for (int w = 0; w < count; w++) {
    int64_t stop = w + 1 < count ? words[w + 1].start_frame : end;
    while (stop > words[w].start_frame + 1 &&
           (label_of[stop - 1] == 0 || label_of[stop - 1] == task->options.blank + 1))
      stop--;
    words[w].end_frame = (int32_t)stop;
    assert_memory_equal(&result->words[w], &words[w], sizeof *words);
  }
}

static void check_lattice(const wf_result *result, const struct reduced *reduced,
                          wf_decoder_options plain, const struct decode_task *task, uint64_t seed) {
  wf_lattice_view expected, lattice = wf_lattice_get_view(result->lattice);
  assert_true(oracle_lattice(wf_graph_fst(task->graph), &plain, &reduced->scores, &expected));
  int32_t *frames = (int32_t *)(uintptr_t)expected.frames,
          last = expected.num_states > 0 ? frames[expected.num_states - 1] : 0;
  for (uint64_t s = 0; s < expected.num_states; s++)
    frames[s] =
        frames[s] == last ? (int32_t)result->num_decoded : (int32_t)reduced->number[frames[s]];
  if (!oracle_same_lattice(&lattice, &expected, seed)) fail();
  oracle_free_view(&expected);
}

static void test_against_oracle(void **state) {
  (void)state;
  oracle_result *expected = malloc(sizeof *expected);
  int skipping = 0, dead = 0, worded = 0, lattices = 0, tasks = 0;
  for (uint64_t seed = 1; seed <= 5000; seed++) {
    struct decode_task task = blank_task(seed);
    if (wf_graph_min_columns(task.graph) == 0) { /* the graph reads no frames */
      test_free_task(&task);
      continue;
    }
    struct reduced reduced = reduce(&task);
    wf_decoder_options plain = task.options;
    plain.blank = -1;
    plain.blank_penalty = 0;
    plain.blank_skip_threshold = 1;
    oracle_decode(wf_graph_fst(task.graph), &plain, &reduced.scores, expected, NULL);
    wf_result *result = test_decode_alone(&task);
    assert_int_equal(result->status, expected->fits ? WF_OK : WF_ERR_LIMIT);
    if (expected->fits) {
      assert_int_equal(result->flags, expected->flags);
      assert_true(result->graph_cost == expected->graph_cost &&
                  result->acoustic_cost == expected->acoustic_cost);
      check_words(result, &reduced, expected, &task);
      if (result->lattice != NULL) check_lattice(result, &reduced, plain, &task, seed);
      tasks++;
      skipping += reduced.scores.num_frames < task.scores.num_frames;
      dead += (result->flags & WF_RESULT_DIED) != 0;
      worded += result->num_words > 1;
      lattices += result->lattice != NULL && result->num_decoded > 3;
    }
    wf_result_free(result);
    free(reduced.data);
    test_free_task(&task);
  }
  free(expected);
  assert_true(tasks > 3000 && skipping > 800 && dead > 100 && worded > 500 && lattices > 500);
}

static void test_rejected_options(void **state) {
  (void)state;
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 0 3 0 0;0 0 1 1 0;0 0");
  wf_graph *graph;
  wf_decoder *decoder;
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  for (int k = 0; k < 2; k++) {
    options.blank_penalty = k == 0 ? 1 : 0;
    options.blank_skip_threshold = k == 0 ? 1 : 0.99f;
    static const int32_t bad[] = {-1, 3, 1000000};
    for (int i = 0; i < 3; i++) {
      options.blank = bad[i];
      assert_int_equal(wf_decoder_create(graph, &options, &decoder, &err), WF_ERR_ARGUMENT);
      assert_null(decoder);
    }
    options.blank = 0;
    assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
    wf_decoder_free(decoder);
  }
  wf_graph_free(graph);
  wf_fst_free(fst);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_example_penalty), cmocka_unit_test(test_example_penalty_is_scaled),
      cmocka_unit_test(test_example_skipped_frames), cmocka_unit_test(test_against_oracle),
      cmocka_unit_test(test_rejected_options)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
