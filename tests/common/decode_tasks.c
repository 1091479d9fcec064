/* decode_tasks.c - random decoding tasks. */
#include "decode_tasks.h"

#include "fst/fst.h"
#include "lattice_paths.h"

/* --- random tasks ------------------------------------------------------------------------ */

static float potential(uint32_t state) { return (float)(state * 37 % 17) / 8 - 1; }
bool test_add_potentials(test_rng *rng, uint32_t state, wf_arc *arc) {
  arc->weight += potential(arc->nextstate) - potential(state);
  return true;
}

static void random_options(test_rng *rng, struct decode_task *task) {
  wf_decoder_options *o = &task->options;
  wf_decoder_options_init(o);
  static const float beams[] = {0, 0.5f, 2, 100};
  static const int32_t actives[] = {1, 2, 5, 10000}, minima[] = {0, 1, 3, 200};
  o->beam = beams[test_below(rng, 4)];
  o->max_active = actives[test_below(rng, 4)];
  o->min_active = minima[test_below(rng, 4)];
  static const int32_t rooms[] = {1, 3, 8, 28000};
  o->max_tokens = rooms[test_below(rng, 4)];
  o->acoustic_scale = test_below(rng, 4) == 0 ? 0.1f : 1;
  o->word_score = test_below(rng, 3) == 0 ? -0.3f : 0; /* a penalty cannot make a cycle negative */
  o->blank = test_below(rng, 2) == 0 ? 0 : -1;
  o->num_threads = 1;
}

static void random_scores(test_rng *rng, struct decode_task *task, int32_t num_columns) {
  int64_t num_frames = test_below(rng, 12);
  task->scores =
      (wf_scores){.num_frames = num_frames, .num_columns = num_columns, .stride = num_columns + 2};
  task->data = malloc((size_t)(num_frames * task->scores.stride + 1) * sizeof *task->data);
  for (int64_t i = 0; i < num_frames * task->scores.stride; i++) {
    uint32_t kind =
        test_below(rng, 20); /* coarse values make ties common; some scores are impossible */
    task->data[i] = kind == 0   ? -INFINITY
                    : kind < 12 ? -(float)test_below(rng, 9) / 4
                                : -test_unit(rng) * 5;
  }
  task->scores.data = task->data;
}

struct decode_task test_random_task(uint64_t seed) {
  wf_error err = {0};
  test_rng rng = {seed};
  struct decode_task task = {0};
  static const float epsilon_shares[] = {0, 0.2f, 0.6f};
  test_fst_shape shape = {.num_states = 1 + test_below(&rng, 30),
                          .num_olabels = 4,
                          .final_share = test_unit(&rng),
                          .max_weight = seed % 3 == 0 ? 0 : 2,
                          .epsilon_share = epsilon_shares[test_below(&rng, 3)]};
  int32_t num_columns = 1 + (int32_t)test_below(&rng, 5);
  shape.num_ilabels = num_columns;
  shape.num_arcs = shape.num_states * (1 + test_below(&rng, 4));
  wf_fst *fst = test_random_fst(&rng, &shape);
  if (seed % 2 == 0) fst = test_changed_fst(fst, &rng, test_add_potentials);
  assert_ok(wf_graph_create(fst, NULL, 0, &task.graph, &err));
  wf_fst_free(fst);
  random_options(&rng, &task);
  random_scores(&rng, &task, num_columns);
  return task;
}

/* Of a wide state: arcs over all labels but some, with and without words. */
static void add_wide_state(test_rng *rng, wf_builder *builder, uint32_t state, uint32_t num_states,
                           int32_t num_labels) {
  wf_error err = {0};
  const uint32_t spread = test_below(rng, 3) * 16;
  for (int32_t label = 1; label <= num_labels; label++)
    for (uint32_t copies = test_below(rng, 16); copies > 0; copies = copies == 1 ? 0 : 1)
      assert_ok(
          wf_builder_add_arc(builder, state,
                             (wf_arc){.nextstate = test_below(rng, num_states),
                                      .weight = spread > 0 ? (float)test_below(rng, spread) / 8 : 0,
                                      .ilabel = label,
                                      .olabel = (int32_t)test_below(rng, 5)},
                             &err));
}

static wf_fst *wide_fst(test_rng *rng, int32_t num_labels) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *fst;
  const uint32_t num_wide = 1 + test_below(rng, 2), num_states = num_wide + test_below(rng, 6);
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, test_below(rng, num_states), &err));
  for (uint32_t s = 0; s < num_states; s++) {
    if (test_below(rng, 2)) assert_ok(wf_builder_set_final(builder, s, test_unit(rng), &err));
    if (s < num_wide) add_wide_state(rng, builder, s, num_states, num_labels);
    for (uint32_t k = test_below(rng, 3); k > 0; k--)
      assert_ok(wf_builder_add_arc(
          builder, s,
          (wf_arc){.nextstate = test_below(rng, num_states),
                   .weight = (float)test_below(rng, 9) / 8,
                   .ilabel = test_below(rng, 4) > 0             ? 1 + (int32_t)test_below(rng, 6)
                             : s < num_wide && num_labels > 999 ? 1 /* else 83 million arcs */
                                                                : 0,
                   .olabel = (int32_t)test_below(rng, 5)},
          &err));
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  return fst;
}

struct decode_task test_ctc_task(uint64_t seed) {
  wf_error err = {0};
  test_rng rng = {seed};
  struct decode_task task = {0};
  const bool wide = seed % 5 == 0;
  const int32_t num_tokens = !wide            ? 1 + (int32_t)test_below(&rng, 5)
                             : seed % 40 == 0 ? 6000
                                              : 140 + (int32_t)test_below(&rng, 400);
  test_fst_shape shape = {.num_states = 1 + test_below(&rng, 12),
                          .num_ilabels = num_tokens,
                          .num_olabels = 4,
                          .final_share = test_unit(&rng),
                          .max_weight = seed % 2 == 0 ? 0 : 2,
                          .epsilon_share = (float)test_below(&rng, 3) / 5};
  shape.num_arcs = shape.num_states * (1 + test_below(&rng, 4));
  wf_fst *fst = wide ? wide_fst(&rng, num_tokens) : test_random_fst(&rng, &shape), *sorted,
         *ordered;
  if (seed % 5 == 0) fst = test_changed_fst(fst, &rng, test_add_potentials);
  assert_ok(wf_arcsort(fst, false, &sorted, &err));
  assert_ok(wf_epsilons_last(sorted, &ordered, &err));
  wf_fst_free(fst);
  assert_ok(wf_fst_with_symbols(ordered, NULL, NULL, &fst, &err));
  wf__fst_set_ctc_blank(fst, num_tokens + 1);
  assert_ok(wf_graph_create(fst, NULL, 0, &task.graph, &err));
  wf_fst_free(sorted);
  wf_fst_free(ordered);
  wf_fst_free(fst);
  random_options(&rng, &task);
  task.options.blank = -1;
  random_scores(&rng, &task, num_tokens + 1);
  return task;
}

void test_free_task(struct decode_task *task) {
  wf_graph_free(task->graph);
  free(task->data);
}

wf_result *test_decode_alone(struct decode_task *task) {
  wf_error err = {0};
  wf_decoder *decoder;
  wf_result *result;
  assert_ok(wf_decoder_create(task->graph, &task->options, &decoder, &err));
  assert_ok(test_decode(decoder, &task->scores, 1, NULL, &result, &err));
  wf_decoder_free(decoder);
  return result;
}

void test_random_batch(struct decode_task *task, wf_scores *batch, float **data, size_t count,
                       uint64_t seed, int64_t max_frames) {
  test_rng rng = {seed};
  for (size_t i = 0; i < count; i++) {
    int64_t num_frames = test_below(&rng, (uint32_t)max_frames);
    batch[i] = (wf_scores){.num_frames = num_frames,
                           .num_columns = task->scores.num_columns,
                           .stride = task->scores.num_columns};
    data[i] = malloc((size_t)(num_frames * batch[i].stride + 1) * sizeof **data);
    for (int64_t k = 0; k < num_frames * batch[i].stride; k++) data[i][k] = -test_unit(&rng) * 4;
    batch[i].data = data[i];
  }
}

void test_short_batch(struct decode_task *task, const wf_scorer *scorer, uint64_t seed) {
  enum { COUNT = 2 };
  wf_error err = {0};
  wf_scores batch[COUNT];
  float *data[COUNT];
  const wf_scorer *scorers[COUNT] = {scorer, NULL};
  wf_decoder *decoders[2];
  wf_result *want[COUNT], *got[COUNT];
  wf_decoder_options on_gpu = task->options;
  on_gpu.device = "cuda";
  test_random_batch(task, batch, data, COUNT, seed, 2);
  assert_ok(wf_decoder_create(task->graph, &task->options, &decoders[0], &err));
  assert_ok(wf_decoder_create(task->graph, &on_gpu, &decoders[1], &err));
  assert_ok(test_decode_scored(decoders[0], batch, scorers, COUNT, NULL, want, &err));
  for (int turn = 0; turn < 2; turn++) {
    assert_ok(test_decode_scored(decoders[1], batch, scorers, COUNT, NULL, got, &err));
    test_assert_same_batch(seed, want, got, COUNT);
    test_free_results(got, COUNT);
  }
  test_free_results(want, COUNT);
  for (int i = 0; i < COUNT; i++) free(data[i]);
  for (int i = 0; i < 2; i++) wf_decoder_free(decoders[i]);
}

/* --- formats of scores ------------------------------------------------------------------- */

size_t test_score_size(wf_dtype dtype) { return dtype == WF_FLOAT32 ? 4 : 2; }

/* Rounds to a value that every format holds: a sign and three fraction bits. */
static uint32_t bits_of(float value, wf_dtype dtype) {
  float coarse = isfinite(value) ? roundf(value * 8) / 8 : value;
  if (coarse < -15) coarse = isfinite(coarse) ? -15 : coarse;
  uint32_t bits;
  memcpy(&bits, &coarse, 4);
  if (dtype == WF_FLOAT32) return bits;
  if (dtype == WF_BFLOAT16) return bits >> 16;
  uint32_t sign = bits >> 16 & 0x8000, exponent = bits >> 23 & 255;
  if (exponent == 255) return sign | 0x7c00 | (bits >> 13 & 0x3ff);
  return exponent == 0 ? sign : sign | ((exponent - 112) << 10) | (bits >> 13 & 0x3ff);
}

void test_put_score(void *data, int64_t i, float value, wf_dtype dtype) {
  uint32_t bits = bits_of(value, dtype);
  if (dtype == WF_FLOAT32)
    ((uint32_t *)data)[i] = bits;
  else
    ((uint16_t *)data)[i] = (uint16_t)bits;
}

/* --- results ----------------------------------------------------------------------------- */

static bool same(const wf_result *a, const wf_result *b) {
  return a->status == b->status && a->flags == b->flags && a->num_words == b->num_words &&
         a->num_frames == b->num_frames && a->num_decoded == b->num_decoded && a->cost == b->cost &&
         a->graph_cost == b->graph_cost && a->acoustic_cost == b->acoustic_cost &&
         a->scorer_cost == b->scorer_cost && a->num_tokens == b->num_tokens &&
         a->num_arcs == b->num_arcs && a->num_expanded == b->num_expanded &&
         a->num_narrowed == b->num_narrowed &&
         (a->num_words == 0 || memcmp(a->words, b->words, a->num_words * sizeof *a->words) == 0) &&
         (a->alignment == NULL) ==
             (b->alignment == NULL) && /* a stream that forgets has no alignment */
         (a->num_decoded == 0 || a->alignment == NULL ||
          memcmp(a->alignment, b->alignment, (size_t)a->num_decoded * sizeof *a->alignment) == 0);
}

static void print_result(const char *name, const wf_result *r) {
  print_message(
      "%s: status %d (%s) flags %u decoded %lld of %lld, cost %.9g = %.9g + %.9g + %.9g, words %zu "
      "tokens %llu arcs %llu expanded %llu narrowed %llu\n",
      name, r->status, r->message, r->flags, (long long)r->num_decoded, (long long)r->num_frames,
      r->cost, r->graph_cost, r->acoustic_cost, r->scorer_cost, r->num_words,
      (unsigned long long)r->num_tokens, (unsigned long long)r->num_arcs,
      (unsigned long long)r->num_expanded, (unsigned long long)r->num_narrowed);
}

void test_assert_same_result(const wf_result *a, const wf_result *b) {
  if (same(a, b)) return;
  print_result("one", a);
  print_result("other", b);
  fail_msg("the results differ");
}

static bool same_lattice(const wf_lattice *a, const wf_lattice *b) {
  return a != NULL && b != NULL ? test_same_raw(a, b) : a == b;
}

void test_assert_same_with_lattice(const wf_result *a, const wf_result *b) {
  test_assert_same_result(a, b);
  if (same_lattice(a->lattice, b->lattice)) return;
  for (int k = 0; k < 2; k++) {
    const wf_lattice *lattice = (k == 0 ? a : b)->lattice;
    if (lattice == NULL)
      print_message("no lattice\n");
    else
      print_message("a lattice of %llu states, %llu arcs\n",
                    (unsigned long long)wf_lattice_get_view(lattice).num_states,
                    (unsigned long long)wf_lattice_get_view(lattice).num_arcs);
  }
  fail_msg("the lattices differ");
}

void test_assert_same_batch(uint64_t seed, wf_result **a, wf_result **b, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (!same(a[i], b[i]) || !same_lattice(a[i]->lattice, b[i]->lattice))
      print_message("seed %llu, utterance %zu of %zu\n", (unsigned long long)seed, i, count);
    test_assert_same_with_lattice(a[i], b[i]);
  }
}

/* --- streams ----------------------------------------------------------------------------- */

wf_scores test_rows(const wf_scores *scores, int64_t first, int64_t count) {
  wf_scores part = *scores;
  part.data = (const char *)scores->data +
              (size_t)(first * scores->stride) * test_score_size(scores->dtype);
  part.num_frames = count;
  return count == 0 ? (wf_scores){0} : part;
}

void test_assert_same_partials(wf_stream *const *streams) {
  wf_error err = {0};
  wf_partial partial[2];
  const wf_status status = wf_stream_partial(streams[0], &partial[0], &err);
  assert_int_equal(wf_stream_partial(streams[1], &partial[1], &err), status);
  if (status != WF_OK) return;
  assert_int_equal(partial[0].num_words, partial[1].num_words);
  assert_int_equal(partial[0].num_frames, partial[1].num_frames);
  assert_int_equal(partial[0].start_frame, partial[1].start_frame);
  assert_int_equal(partial[0].flags, partial[1].flags);
  assert_int_equal(partial[0].num_stable,
                   partial[1].num_stable); /* both calls have just computed the stable words */
  assert_int_equal(partial[0].stable_frames, partial[1].stable_frames);
  for (size_t i = 0; i < partial[0].num_words; i++)
    assert_memory_equal(&partial[0].words[i], &partial[1].words[i], sizeof(wf_word));
}

void test_assert_partials(wf_decoder *decoder, wf_stream *const *streams, size_t count,
                          size_t *num_words) {
  wf_error err = {0};
  wf_partial *partials = malloc(count * sizeof *partials);
  assert_non_null(partials);
  assert_int_equal(wf_streams_partial(decoder, streams, count, partials, &err), WF_OK);
  for (size_t i = 0; i < count; i++) {
    const size_t size = partials[i].num_words;
    wf_word *words = malloc(size * sizeof *words + 1);
    assert_non_null(words);
    if (size > 0) memcpy(words, partials[i].words, size * sizeof *words);
    wf_partial again;
    assert_int_equal(wf_stream_partial(streams[i], &again, &err), WF_OK);
    assert_int_equal(again.num_words, size);
    assert_int_equal(again.num_frames, partials[i].num_frames);
    assert_int_equal(again.num_stable, partials[i].num_stable);
    assert_int_equal(again.stable_frames, partials[i].stable_frames);
    assert_int_equal(again.flags, partials[i].flags);
    if (size > 0) assert_memory_equal(again.words, words, size * sizeof *words);
    *num_words += size;
    free(words);
  }
  free(partials);
}

void test_assert_same_event(const wf_stream_event *a, const wf_stream_event *b) {
  assert_int_equal(a->num_frames, b->num_frames);
  assert_int_equal(a->endpoint, b->endpoint);
  assert_true(a->trailing_silence == b->trailing_silence && a->relative_cost == b->relative_cost);
}

void test_free_results(wf_result **results, size_t count) {
  for (size_t i = 0; i < count; i++) wf_result_free(results[i]);
}

void test_decode_on(const char *device, const wf_graph *graph, wf_decoder_options options,
                    const wf_scores *batch, size_t count, wf_result **results) {
  wf_error err = {0};
  wf_decoder *decoder;
  options.device = device;
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  assert_ok(test_decode(decoder, batch, count, NULL, results, &err));
  wf_decoder_free(decoder);
}

bool test_no_gpu(void) {
  wf_error err = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 0 1 1 0;0 0");
  wf_graph *graph;
  wf_decoder *decoder;
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  options.device = "cuda";
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  bool missing = wf_decoder_create(graph, &options, &decoder, &err) != WF_OK &&
                 strstr(err.message, "no GPU") != NULL;
  if (missing) printf("skipped: %s\n", err.message);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  wf_fst_free(fst);
  return missing;
}

struct decode_task test_large_task(void) {
  test_rng rng = {9};
  wf_error err = {0};
  test_fst_shape shape = {.num_states = 60000,
                          .num_arcs = 240000,
                          .num_ilabels = 50,
                          .num_olabels = 2000,
                          .epsilon_share = 0.12f,
                          .final_share = 0.1f,
                          .max_weight = 3};
  wf_fst *fst = test_random_fst(&rng, &shape);
  struct decode_task task = {.scores = {.num_columns = 50}};
  assert_ok(wf_graph_create(fst, NULL, 0, &task.graph, &err));
  wf_fst_free(fst);
  return task;
}

void test_set_large_limits(struct decode_task *task, size_t k) {
  static const int32_t actives[] = {500, 7000, 20000},
                       tokens[] = {1000, 14000, 28000, 60000, 110000};
  wf_decoder_options_init(&task->options);
  task->options.beam = k % 2 == 0 ? 6 : 9;
  task->options.max_active = actives[k % 3];
  task->options.max_tokens = tokens[k % 5];
}

void test_listen(void *user, wf_log_level level, const char *text) {
  (void)level;
  struct test_heard *heard = user;
  heard->times += strstr(text, heard->text) != NULL;
}
