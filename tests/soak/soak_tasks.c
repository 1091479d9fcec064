/* soak_tasks.c - makes random decoding tasks. The graphs are small ones with unusual structure,
 * token graphs of CTC, graphs with added words, CTC-like and HMM-like word loops, and large ones.
 * All options, the scorers and the scores are random, too. */
#include "random_scorers.h"
#include "soak.h"

/* --- graphs ------------------------------------------------------------------------------ */

struct loop {
  wf_builder *builder;
  test_rng *rng;
  int32_t num_labels; /* label 1 is the blank or silence */
};

static uint32_t add_state(struct loop *l) {
  wf_error err = {0};
  uint32_t state;
  assert_ok(wf_builder_add_states(l->builder, 1, &state, &err));
  return state;
}

static void add_arc(struct loop *l, uint32_t from, uint32_t to, int32_t ilabel, int32_t olabel,
                    float weight) {
  wf_error err = {0};
  assert_ok(wf_builder_add_arc(l->builder, from, (wf_arc){to, weight, ilabel, olabel}, &err));
}

static float cost(struct loop *l) { return (float)test_below(l->rng, 25) / 8; }
static int32_t token(struct loop *l) {
  return 2 + (int32_t)test_below(l->rng, (uint32_t)l->num_labels - 1);
}

/* A word of a CTC graph. Frames may repeat a token; two equal tokens in a row need a blank between
 * them. */
static void add_ctc_word(struct loop *l, int32_t word) {
  uint32_t from = 0, blank = 0;
  int32_t last = 0;
  for (uint32_t k = 1 + test_below(l->rng, 5); k > 0; k--) {
    const int32_t label = token(l);
    const uint32_t to = add_state(l), next = add_state(l);
    const float weight = last == 0 ? cost(l) : 0;
    if (label != last) add_arc(l, from, to, label, last == 0 ? word : 0, weight);
    if (last != 0) add_arc(l, blank, to, label, 0, 0);
    add_arc(l, to, to, label, 0, 0);
    add_arc(l, to, next, 1, 0, 0);
    add_arc(l, next, next, 1, 0, 0);
    from = to;
    blank = next;
    last = label;
  }
  add_arc(l, from, 0, 0, 0, cost(l));
  add_arc(l, blank, 0, 0, 0, 0);
}

/* A word of an HMM graph: phones of three states with self-loops. */
static void add_hmm_word(struct loop *l, int32_t word) {
  uint32_t from = 0;
  for (uint32_t k = 3 * (1 + test_below(l->rng, 3)); k > 0; k--) {
    const int32_t label = token(l);
    const uint32_t to = add_state(l);
    add_arc(l, from, to, label, from == 0 ? word : 0, from == 0 ? cost(l) : 0.25f);
    add_arc(l, to, to, label, 0, 0.5f);
    from = to;
  }
  add_arc(l, from, 0, 0, 0, cost(l));
}

/* A loop of words at state 0. The words' labels begin at 1. */
static wf_fst *word_loop(test_rng *rng, bool ctc, uint32_t num_words, int32_t num_labels) {
  wf_error err = {0};
  wf_fst *fst;
  struct loop l = {.rng = rng, .num_labels = num_labels};
  assert_ok(wf_builder_create(WF_TROPICAL, &l.builder, &err));
  add_state(&l);
  assert_ok(wf_builder_set_start(l.builder, 0, &err));
  assert_ok(wf_builder_set_final(l.builder, 0, cost(&l), &err));
  add_arc(&l, 0, 0, 1, 0, 0.5f);
  for (uint32_t w = 0; w < num_words; w++)
    (ctc ? add_ctc_word : add_hmm_word)(&l, 1 + (int32_t)(w % 50));
  assert_ok(wf_builder_finish(l.builder, NULL, NULL, &fst, &err));
  wf_builder_free(l.builder);
  return fst;
}

/* With `shared_columns`, several labels read the same column of the scores, as with senones. */
static wf_graph *graph_of(test_rng *rng, wf_fst *fst, bool shared_columns, int32_t num_labels) {
  wf_error err = {0};
  wf_graph *graph;
  int32_t *columns = malloc(((size_t)num_labels + 1) * sizeof *columns);
  const int32_t num_columns = 1 + num_labels / 2;
  if (test_below(rng, 2))
    fst = test_changed_fst(fst, rng, test_add_potentials); /* negative weights */
  columns[0] = -1;
  for (int32_t l = 1; l <= num_labels; l++)
    columns[l] = (int32_t)test_below(rng, (uint32_t)num_columns);
  assert_ok(wf_graph_create(fst, shared_columns ? columns : NULL,
                            shared_columns ? (size_t)num_labels + 1 : 0, &graph, &err));
  free(columns);
  wf_fst_free(fst);
  return graph;
}

static wf_fst *large_fst(test_rng *rng, int32_t num_labels) {
  const uint32_t states = SOAK_SMALL ? 60 + test_below(rng, 100) : 1000 + test_below(rng, 6000);
  test_fst_shape shape = {.num_states = states,
                          .num_arcs = states * (2 + test_below(rng, 3)),
                          .num_ilabels = num_labels,
                          .num_olabels = 40,
                          .epsilon_share = (float)test_below(rng, 3) / 10,
                          .final_share = 0.1f,
                          .max_weight = 3};
  return test_random_fst(rng, &shape);
}

/* --- options ----------------------------------------------------------------------------- */

#define ANY_OF(rng, ...) (__VA_ARGS__)[test_below(rng, sizeof(__VA_ARGS__) / sizeof *(__VA_ARGS__))]

static void random_limits(test_rng *rng, wf_decoder_options *o) {
  o->beam = ANY_OF(rng, (const float[]){0.5f, 2, 6, 6, 12, 100});
  o->max_active = ANY_OF(rng, (const int32_t[]){1, 7, 60, 1000, 10000});
  o->min_active = ANY_OF(rng, (const int32_t[]){-1, -1, 0, 3, 200});
  o->max_tokens = ANY_OF(rng, (const int32_t[]){1, 50, 600, 5000, 28000, 100000});
  o->acoustic_scale = ANY_OF(rng, (const float[]){1, 1, 0.3f, 0.1f});
  o->word_score = ANY_OF(rng, (const float[]){0, 0, -0.3f, -1});
}

static void random_options(test_rng *rng, struct soak_task *t, bool is_ctc) {
  wf_decoder_options *o = &t->task.options;
  o->num_threads = 1;
  o->check_scores = 2;
  if (wf_graph_min_columns(t->task.graph) > 0 && test_below(rng, 3) == 0) {
    const uint32_t blank =
        test_below(rng, test_below(rng, 2) ? 1 : (uint32_t)wf_graph_min_columns(t->task.graph));
    if (!is_ctc) o->blank = (int32_t)blank; /* a CTC graph knows its blank */
    o->blank_skip_threshold = ANY_OF(rng, (const float[]){1, 0.6f, 0.3f, 0.1f});
    o->blank_penalty = ANY_OF(rng, (const float[]){0, 0, 0.5f, -1.25f});
  }
  o->lattice_beam = test_below(rng, 3) > 0 ? 0 : ANY_OF(rng, (const float[]){0.125f, 1, 3, 8});
  if (t->is_large && o->lattice_beam > 3) o->lattice_beam = 3;
  o->lattice_prune_interval = 1 + (int32_t)test_below(rng, 30);
  o->recombine = o->lattice_beam == 0 && test_below(rng, 4) == 0;
}

/* --- tasks ------------------------------------------------------------------------------- */

static void with_added_words(test_rng *rng, struct soak_task *t) {
  struct added_task added;
  struct phrases others;
  while (!is_fitting(test_next(rng) >> 32, &added)) free_added(&added);
  t->task = added.task;
  random_phrases(rng, added.num_tokens, &others);
  t->graphs[0] = added.with;
  t->graphs[1] = with_phrases(t->task.graph, test_below(rng, 2) ? "<c>" : "<d>", &others);
  t->has_words = true;
  wf_fst_free(added.fst);
}

static void with_graph(test_rng *rng, struct soak_task *t, uint32_t kind) {
  const int32_t num_labels = 3 + (int32_t)test_below(rng, SOAK_SMALL ? 10 : 60);
  const bool shared = kind == 1;
  const uint32_t num_words = 1 + test_below(rng, SOAK_SMALL ? 6 : test_below(rng, 3) ? 20 : 300);
  t->is_large = kind == 2 || num_words > 20;
  wf_fst *fst =
      kind == 2 ? large_fst(rng, num_labels) : word_loop(rng, kind == 0, num_words, num_labels);
  t->task.graph = graph_of(rng, fst, shared, num_labels);
  t->task.scores.num_columns = wf_graph_min_columns(t->task.graph);
  wf_decoder_options_init(&t->task.options);
  random_limits(rng, &t->task.options);
}

void soak_make_task(test_rng *rng, struct soak_task *out) {
  *out = (struct soak_task){.grid = ANY_OF(rng, (const float[]){0, 0, 0.25f, 1})};
  const uint32_t kind = test_below(rng, 12);
  if (kind < 2)
    out->task = test_random_task(test_next(rng) >> 32);
  else if (kind == 2)
    out->task = test_ctc_task(test_next(rng) >> 32);
  else if (kind < 5)
    with_added_words(rng, out);
  else
    with_graph(rng, out, kind == 11 ? 2 : kind < 8 ? 0 : 1);
  random_options(rng, out, kind == 2);
  out->has_scorers = test_below(rng, 2);
  if (!out->has_scorers) return;
  wf_symbols *words = random_scorer_words();
  const bool only_boosts = test_below(rng, 2);
  for (int i = 0; i + 1 < SOAK_SCORERS; i++)
    out->scorers[i] = random_scorer(rng, only_boosts ? NULL : words); /* the last is none */
  wf_symbols_free(words);
}

void soak_free_task(struct soak_task *t) {
  for (int i = 0; i < SOAK_GRAPHS; i++) wf_graph_free((wf_graph *)(uintptr_t)t->graphs[i]);
  for (int i = 0; i < SOAK_SCORERS; i++) wf_scorer_free(t->scorers[i]);
  test_free_task(&t->task);
}

const wf_graph *soak_any_graph(const struct soak_task *t, test_rng *rng) {
  return t->has_words ? t->graphs[test_below(rng, SOAK_GRAPHS)] : NULL;
}
const wf_scorer *soak_any_scorer(const struct soak_task *t, test_rng *rng) {
  return t->has_scorers ? t->scorers[test_below(rng, SOAK_SCORERS)] : NULL;
}

/* --- scores ------------------------------------------------------------------------------ */

enum { EXTRA_COLUMNS = 3, GAP = 5 }; /* columns that no graph reads; unused values between frames */

size_t soak_score_bytes(const struct soak_task *t, int64_t max_frames) {
  return (size_t)max_frames * (size_t)(t->task.scores.num_columns + EXTRA_COLUMNS + GAP) * 4 + 4;
}

static float one_score(const struct soak_task *t, test_rng *rng, bool peak, uint32_t style) {
  const float drawn = style == 0   ? 4 * test_unit(rng)
                      : style == 1 ? (peak ? 0 : 5 + 6 * test_unit(rng))
                                   : (float)test_below(rng, 9) / 4;
  return t->grid == 0 ? -drawn : -floorf(drawn / t->grid) * t->grid;
}

/* Scores of three styles: flat, peaked, or coarse. One column may be impossible (-inf) throughout,
 * a frame is impossible once in 400, and one utterance in 300 has a NaN. */
wf_scores soak_scores(const struct soak_task *t, test_rng *rng, int64_t max_frames, wf_dtype dtype,
                      void *data) {
  const int32_t columns = t->task.scores.num_columns;
  wf_scores s = {.data = data,
                 .num_frames = test_below(rng, (uint32_t)max_frames + 1),
                 .num_columns = columns + (int32_t)test_below(rng, EXTRA_COLUMNS + 1),
                 .dtype = dtype};
  const uint32_t style = test_below(rng, 3), barred = test_below(rng, 6) > 0
                                                          ? UINT32_MAX
                                                          : test_below(rng, (uint32_t)columns + 1);
  const bool bad = test_below(rng, 300) == 0;
  s.stride = s.num_columns + (int64_t)test_below(rng, GAP + 1);
  uint32_t peak = 0;
  for (int64_t f = 0; f < s.num_frames; f++) {
    if (test_below(rng, 3) == 0)
      peak = test_below(rng, (uint32_t)columns + 1); /* the peak stays for about 3 frames */
    const bool dead = test_below(rng, 400) == 0;
    for (int32_t c = 0; c < s.stride; c++) {
      const bool impossible =
          dead || (uint32_t)c == barred || (style == 2 && test_below(rng, 30) == 0);
      const float value = c >= columns ? NAN
                          : impossible ? -INFINITY
                                       : one_score(t, rng, (uint32_t)c == peak, style);
      if (dtype == WF_FLOAT32)
        ((float *)data)[f * s.stride + c] = value;
      else
        test_put_score(data, f * s.stride + c, value, dtype);
    }
    if (bad && columns > 0 && f == s.num_frames / 2) test_put_score(data, f * s.stride, NAN, dtype);
  }
  return s;
}

int64_t soak_max_frames(const struct soak_task *t, test_rng *rng) {
  if (SOAK_SMALL) return 1 + test_below(rng, 9);
  return 1 + test_below(rng, t->is_large ? 30 : test_below(rng, 20) == 0 ? 300 : 50);
}

/* --- decoders ---------------------------------------------------------------------------- */

wf_decoder *soak_decoder(const struct soak_task *t, const char *device, bool again) {
  wf_error err = {0};
  wf_decoder *decoder;
  wf_decoder_options options = t->task.options;
  options.device = device;
  options.gpu_memory = (int64_t)1 << (SOAK_SMALL ? 28
                                      : again    ? 32
                                                 : 29); /* the threads' decoders share the GPU */
  assert_ok(wf_decoder_create(t->task.graph, &options, &decoder, &err));
  return decoder;
}
