/* ctc_tasks.h - random token graphs, as the fst of a CTC graph, with scores and options for them. */
#ifndef TESTS_CTC_TASKS_H
#define TESTS_CTC_TASKS_H

#include "decode_tasks.h"
#include "search/decode_graph.h"

struct ctc_task {
  struct decode_task shared; /* its graph keeps the token graph */
  wf_fst *token_graph;       /* its arcs in any order */
  wf_graph *spelled;         /* the graph of wf_graph_to_fst */
  int32_t num_tokens, blank; /* blank: label */
  int32_t *columns;          /* [num_tokens + 1] or NULL */
};

/* wide: hundreds of tokens or thousands. plain: float32, label 1 reads column 0 and so on, and fewer
 * tokens, so that the slow decoder can be the judge. tied: frames have few different scores, and
 * options let hundreds of sources live. */
struct ctc_shape {
  bool wide, plain, tied;
};

/* The graph with all states and arcs of one that keeps its token graph, under the same numbers: void
 * arcs have the weight +infinity. The caller frees it. */
static inline wf_graph *ctc_explicit(const wf_graph *shared) {
  wf_error err = {0};
  const wf__ctc_states *ctc = shared->ctc;
  wf__csr csr = {0};
  wf_fst *fst;
  wf_graph *whole;
  assert_ok(wf__vec_grow(&csr.arcs, ctc->num_arcs, "arcs", &err));
  for (uint32_t v = 0; v < ctc->num_states; v++) {
    assert_ok(wf__csr_add_state(&csr, wf__graph_final(shared, v), &err));
    csr.arcs.size =
        (uint64_t)(wf__ctc_write_arcs(ctc, v, csr.arcs.data + csr.arcs.size) - csr.arcs.data);
  }
  assert_true(csr.arcs.size == ctc->num_arcs);
  assert_ok(wf__fst_from_csr(&csr, ctc->start, WF_TROPICAL, wf_fst_isymbols(shared->fst),
                             wf_fst_osymbols(shared->fst), &fst, &err));
  wf__fst_copy_boundaries(fst, shared->fst);
  wf__fst_set_ctc_blank(fst, 0);
  assert_ok(wf_graph_create(fst, shared->columns, (size_t)shared->num_labels, &whole, &err));
  whole->blank_column = shared->blank_column;
  whole->num_tokens = shared->num_tokens;
  wf_fst_free(fst);
  return whole;
}

/* --- token graphs ------------------------------------------------------------------------ */

static int32_t g_blank, g_num_tokens; /* of the graph that is being made */

/* No arc reads the blank. */
static inline bool ctc_without_blank(test_rng *rng, uint32_t state, wf_arc *arc) {
  (void)rng, (void)state;
  if (arc->ilabel == g_blank) arc->ilabel = g_blank == g_num_tokens ? 1 : g_num_tokens;
  return true;
}

/* A few states. Labels are few, so that arcs have equal ones and states several tokens that lead
 * there. */
static inline wf_fst *ctc_small_graph(test_rng *rng) {
  static const float epsilon_shares[] = {0, 0.2f, 0.6f};
  test_fst_shape shape = {.num_states = 1 + test_below(rng, 12),
                          .num_ilabels = g_num_tokens,
                          .num_olabels = 4,
                          .final_share = test_unit(rng),
                          .max_weight = test_below(rng, 3) == 0 ? 0 : 2,
                          .epsilon_share = epsilon_shares[test_below(rng, 3)]};
  shape.num_arcs = shape.num_states * (1 + test_below(rng, 4));
  wf_fst *fst = test_changed_fst(test_random_fst(rng, &shape), rng, ctc_without_blank);
  return test_below(rng, 2) == 0 ? test_changed_fst(fst, rng, test_add_potentials) : fst;
}

/* Up to four states, which have an arc for nearly each token, in any order; of many tokens only the
 * first state. Some arcs are twice there, some are impossible. */
static inline wf_fst *ctc_wide_graph(test_rng *rng) {
  static const float spreads[] = {0, 0.5f, 6};
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *fst;
  const uint32_t n = 1 + test_below(rng, 4), keep = 1 + test_below(rng, 8);
  const float spread = spreads[test_below(rng, 3)], base = (float)test_below(rng, 5) - 2;
  const bool epsilons = test_below(rng, 2) == 0, shuffled = test_below(rng, 2) == 0;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, n, NULL, &err));
  assert_ok(wf_builder_set_start(builder, test_below(rng, n), &err));
  for (uint32_t s = 0; s < n; s++) {
    const uint32_t shift = shuffled ? test_below(rng, (uint32_t)g_num_tokens) : 0;
    if (test_below(rng, 2) == 0)
      assert_ok(wf_builder_set_final(builder, s, (float)test_below(rng, 8) / 8, &err));
    const int32_t num_labels = s == 0 || (g_num_tokens < 600 && test_below(rng, 4) != 0)
                                   ? g_num_tokens
                                   : 1 + (int32_t)test_below(rng, 5);
    for (int32_t i = 0; i < num_labels; i++) {
      const int32_t label = 1 + (int32_t)(((uint32_t)i + shift) % (uint32_t)g_num_tokens);
      if (label == g_blank || (keep < 8 && test_below(rng, 8) >= keep)) continue;
      for (uint32_t copies = test_below(rng, 16) == 0 ? 2 : 1; copies > 0; copies--) {
        wf_arc arc = {.nextstate = test_below(rng, n),
                      .weight = base + spread * (float)test_below(rng, 64) / 64,
                      .ilabel = label,
                      .olabel = test_below(rng, 3) == 0 ? (int32_t)test_below(rng, 5) : 0};
        if (test_below(rng, 50) == 0) arc.weight = INFINITY;
        assert_ok(wf_builder_add_arc(builder, s, arc, &err));
      }
    }
    if (epsilons && s + 1 < n)
      assert_ok(wf_builder_add_arc(builder, s, (wf_arc){s + 1, 0.25f, 0, (int32_t)s % 2}, &err));
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  return fst;
}

/* --- scores ------------------------------------------------------------------------------ */

/* Frames of several kinds: all alike, all impossible, nearly all impossible, peaks, ties, noise. */
static inline void ctc_fill_frame(test_rng *rng, float *row, int64_t count) {
  const uint32_t kind = test_below(rng, 40);
  const float scale = test_below(rng, 2) == 0 ? 1 : 8;
  for (int64_t i = 0; i < count; i++) {
    const uint32_t one = test_below(rng, 20);
    row[i] = kind == 0   ? -INFINITY
             : kind < 4  ? -1.25f
             : kind < 8  ? (one == 0 ? -test_unit(rng) : -INFINITY)
             : kind < 18 ? (one == 0 ? -scale * test_unit(rng) : -scale * (2 + test_unit(rng)))
                         : (one == 0   ? -INFINITY
                            : one < 12 ? -scale * (float)test_below(rng, 9) / 4
                                       : -scale * test_unit(rng) * 5);
  }
}

/* Noise; a slope; peaks above a floor, which may have levels; one to four values. */
static inline void ctc_fill_tied_frame(test_rng *rng, float *row, int64_t count) {
  const uint32_t kind = test_below(rng, 10), num_values = 1 + test_below(rng, 4),
                 peaks = 1 + test_below(rng, 40), peak = test_below(rng, (uint32_t)count);
  float values[4];
  for (uint32_t v = 0; v < 4; v++)
    values[v] = test_below(rng, 8) == 0 ? -INFINITY : -(float)test_below(rng, 12) / 3;
  for (int64_t i = 0; i < count; i++)
    row[i] = kind == 0   ? -test_unit(rng)
             : kind == 1 ? -3 + (float)i / (float)count
             : kind < 4  ? (i == peak ? 0 : -40)
             : kind < 6  ? (i == peak ? 0 : -23 - (float)test_below(rng, 12) / 3)
             : kind < 7  ? (test_below(rng, 400) < peaks ? -test_unit(rng) : -23.02585f)
                         : values[test_below(rng, num_values)];
}

static inline void ctc_random_scores(test_rng *rng, struct ctc_shape shape, struct ctc_task *task) {
  const int64_t num_frames = test_below(rng, 12), num_columns = task->num_tokens;
  wf_scores *scores = &task->shared.scores;
  *scores =
      (wf_scores){.num_frames = num_frames, .num_columns = num_columns, .stride = num_columns + 2};
  const int64_t size = num_frames * scores->stride;
  task->shared.data = malloc((size_t)(size + 1) * sizeof *task->shared.data);
  assert_non_null(task->shared.data);
  for (int64_t t = 0; t < num_frames; t++)
    (shape.tied ? ctc_fill_tied_frame : ctc_fill_frame)(rng, task->shared.data + t * scores->stride,
                                                        scores->stride);
  scores->data = task->shared.data;
  if (shape.plain || test_below(rng, 4) != 0) return;
  scores->dtype = test_below(rng, 2) == 0 ? WF_FLOAT16 : WF_BFLOAT16;
  float *floats = task->shared.data;
  void *halves = malloc((size_t)(size + 1) * 4);
  for (int64_t i = 0; i < size; i++) test_put_score(halves, i, floats[i], scores->dtype);
  free(floats);
  task->shared.data = halves;
  scores->data = halves;
}

/* --- tasks ------------------------------------------------------------------------------- */

static inline void ctc_random_options(test_rng *rng, bool wide, struct ctc_task *task) {
  static const float beams[] = {0, 0.5f, 2, 8, 100};
  static const int32_t actives[] = {1, 2, 5, 40, 10000}, minima[] = {0, 1, 3, 20, 200, 2000},
                       rooms[] = {1, 3, 8, 100, 28000};
  wf_decoder_options *o = &task->shared.options;
  wf_decoder_options_init(o);
  o->beam = beams[test_below(rng, 5)];
  o->max_active = actives[test_below(rng, 5)];
  o->min_active = minima[test_below(rng, wide ? 6 : 5)];
  o->max_tokens = rooms[test_below(rng, 5)];
  o->acoustic_scale = (float[]){1, 1, 1, 0.1f, 0}[test_below(rng, 5)];
  o->word_score = test_below(rng, 3) == 0 ? -0.3f : 0;
  if (wide && test_below(rng, 4) == 0) o->word_score = 0.75f; /* without words on epsilon cycles */
  o->blank = task->columns != NULL ? task->columns[task->blank] : task->blank - 1;
  o->num_threads = 1;
  o->check_scores = 2;
  if (test_below(rng, 3) == 0) o->lattice_beam = 0.25f * (float)(1 + test_below(rng, 40));
  o->lattice_prune_interval = 1 + (int32_t)test_below(rng, 7);
}

/* Sets what a frame holds; some of these are just too small for the tokens of a tied frame. */
static inline void ctc_let_live(test_rng *rng, wf_decoder_options *o) {
  o->beam = (float[]){0, 2, 8, 30}[test_below(rng, 4)];
  o->max_active = test_below(rng, 3) == 0 ? 170 : 10000;
  o->min_active = (int32_t[]){0, 20, 150, 150}[test_below(rng, 4)];
  o->max_tokens = test_below(rng, 2) == 0 ? 200 : 28000; /* 10000 with that max_active */
}

/* A column for each label, the same for some of them. */
static inline int32_t *ctc_random_columns(test_rng *rng, int32_t num_tokens) {
  int32_t *columns = malloc(((size_t)num_tokens + 1) * sizeof *columns);
  assert_non_null(columns);
  columns[0] = -1;
  for (int32_t label = 1; label <= num_tokens; label++)
    columns[label] = (int32_t)test_below(rng, (uint32_t)num_tokens);
  return columns;
}

static inline void ctc_make_graphs(struct ctc_task *task, wf_fst *fst) {
  wf_error err = {0};
  const size_t entries = (size_t)task->num_tokens + 1;
  wf__fst_set_ctc_blank(fst, task->blank);
  assert_ok(wf_graph_create(fst, task->columns, entries, &task->shared.graph, &err));
  assert_non_null(task->shared.graph->ctc);
  wf_fst *spelled;
  assert_ok(wf_graph_to_fst(task->shared.graph, &spelled, &err));
  assert_int_equal(wf__fst_ctc_blank(spelled), 0);
  assert_ok(wf_graph_create(spelled, task->columns, entries, &task->spelled, &err));
  wf_fst_free(spelled);
}

static inline int32_t ctc_random_size(test_rng *rng, struct ctc_shape shape) {
  if (!shape.wide) return 2 + (int32_t)test_below(rng, 4);
  if (shape.plain) return 129 + (int32_t)test_below(rng, 60);
  return 300 + (int32_t)(test_below(rng, 16) == 0 ? test_below(rng, 2700) : test_below(rng, 150));
}

static inline void ctc_random_task(uint64_t seed, struct ctc_shape shape, struct ctc_task *task) {
  test_rng rng = {seed * 0x51ed + shape.wide};
  *task = (struct ctc_task){.num_tokens = ctc_random_size(&rng, shape)};
  task->blank = 1 + (int32_t)test_below(&rng, (uint32_t)task->num_tokens);
  g_blank = task->blank;
  g_num_tokens = task->num_tokens;
  wf_fst *fst = shape.wide ? ctc_wide_graph(&rng) : ctc_small_graph(&rng);
  if (!shape.plain && test_below(&rng, 4) == 0)
    task->columns = ctc_random_columns(&rng, task->num_tokens);
  ctc_make_graphs(task, fst);
  task->token_graph = fst;
  ctc_random_options(&rng, shape.wide, task);
  if (shape.tied) ctc_let_live(&rng, &task->shared.options);
  ctc_random_scores(&rng, shape, task);
}

static inline void ctc_free_task(struct ctc_task *task) {
  wf_graph_free(task->spelled);
  wf_fst_free(task->token_graph);
  test_free_task(&task->shared);
  free(task->columns);
}

#endif
