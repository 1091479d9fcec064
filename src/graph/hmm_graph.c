/* hmm_graph.c - the pipeline from lexicon, grammar and acoustic model to a decoding graph for
 * hybrid HMM models.
 *
 *     L, G     --> L o G --> det --> (push) --> min --> LG
 *     C, LG    --> C o LG --> det --> min --> CLG
 *     H, CLG   --> H o CLG --> det --> min --> remove disambiguation symbols --> add self-loops
 *              --> epsilons last --> graph
 *
 * At most the inputs and the result of one step are in memory. H contains only the HMM types that C
 * o LG uses. (Mohri, Pereira, Riley 2002.) */
#include <string.h>

#include "base/callbacks.h"
#include "base/option_tables.h"
#include "graph/emitting_only.h"
#include "graph/graph_steps.h"
#include "graph/hmm.h"
#include "graph/lexicon_fst.h"
#include "graph/lg.h"
#include "graph/ready_l.h"
#include "graph/word_aligner.h"

enum { BACKOFF_EPSILON, BACKOFF_FAILURE };
enum { PUSH_NONE, PUSH_TROPICAL, PUSH_LOG };
enum { SILENCE_TOOLKIT, SILENCE_OPTIONAL, SILENCE_EDGES };

struct build {
  const wf_hmm_graph_parts *parts;
  wf_hmm_graph_options options;
  float scale; /* 1 / lm_weight */
  wf__step_runner runner;
  wf__lg inputs;
  wf_tally dropped;
  int32_t *fillers;        /* their input labels in L */
  wf__slot l, g, h, graph; /* graph holds first LG, then CLG, then HCLG */
};

void wf_hmm_graph_result_free(wf_hmm_graph_result *result) {
  if (result == NULL) return;
  wf_fst_free(result->graph);
  wf_symbols_free(result->words);
  wf__tally_free(&result->lm_words_missing);
  wf__tally_free(&result->lexicon_words_missing);
  wf__tally_free(&result->hmm_substituted);
  wf__tally_free(&result->hmm_dropped);
  *result = (wf_hmm_graph_result){0};
}

/* --- L and G ----------------------------------------------------------------------------- */

static float cost_of(const struct build *build, float given, float toolkit) {
  float p = given > 0 ? given : toolkit;
  return p != 1 ? build->scale * -logf(p) : 0;
}

/* Maps a phone of lexicons that is not part of a word to a phone of windows. */
static int32_t alone(const wf_hmm *hmm, int32_t phone) {
  if (phone == 0 || hmm->position_of == NULL) return phone;
  int64_t same = wf_symbols_find(
      hmm->phones, wf_symbols_text(hmm->lexicon_phones, phone)); /* Kaldi has SIL as well as SIL_B,
                                                                    SIL_I, SIL_E, SIL_S */
  return same > 0 ? (int32_t)same : hmm->position_of[phone][WF__SINGLE];
}

static wf_status take_silence(struct build *build, wf__lexicon_shape *shape, wf_error *err) {
  const wf_hmm *hmm = build->parts->hmm;
  const wf_hmm_graph_options *o = &build->options;
  int32_t phone = hmm->silence;
  if (o->silence != NULL)
    phone = o->silence[0] != '\0' ? (int32_t)wf_symbols_find(hmm->lexicon_phones, o->silence) : 0;
  if (phone < 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "%s: no phone '%.80s' (given as silence)", hmm->name,
                    o->silence);
  if (o->silence_style == SILENCE_EDGES && phone == 0)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "silence at the edges of utterances needs a silence phone, and there is none");
  shape->silence = alone(hmm, phone);
  shape->edge_silence = phone != 0 && (o->silence_style == SILENCE_EDGES ||
                                       (o->silence_style == SILENCE_TOOLKIT && hmm->edge_silence));
  shape->silence_cost = cost_of(build, o->silence_prob, hmm->silence_prob);
  if (phone != 0 && !shape->edge_silence) {
    float p = o->silence_prob > 0 ? o->silence_prob : hmm->silence_prob;
    if (p >= 1)
      return wf__fail(err, WF_ERR_ARGUMENT, "silence_prob is %g; it must be below 1", (double)p);
    shape->other_cost = cost_of(build, 1 - p, 1);
  }
  if (!o->fillers) return WF_OK;
  build->fillers = wf__alloc(hmm->fillers.size, sizeof *build->fillers);
  if (build->fillers == NULL)
    return wf__fail_memory(err, hmm->fillers.size * sizeof *build->fillers, "noises");
  for (uint64_t i = 0; i < hmm->fillers.size; i++)
    build->fillers[i] = alone(hmm, hmm->fillers.data[i]);
  shape->fillers = build->fillers;
  shape->num_fillers = (size_t)hmm->fillers.size;
  shape->filler_cost = cost_of(build, o->filler_prob, hmm->filler_prob);
  return WF_OK;
}

static wf_status make_l(void *user, wf_error *err) {
  struct build *build = user;
  const wf_hmm *hmm = build->parts->hmm;
  wf_fst *l;
  if (build->parts->lexicon_fst != NULL) {
    WF__TRY(wf__ready_l(hmm, build->parts->lexicon_fst, build->scale, &l, err));
    wf__slot_set(&build->runner, &build->l, l);
    return wf__slot_sort_olabels(&build->runner, &build->l, err);
  }
  wf__lexicon_shape shape = {
      .num_labels = hmm->num_phones, .disambig = true, .pron_scale = build->scale};
  wf_symbols *labels;
  shape.position_of = (const int32_t(*)[WF__NUM_POSITIONS])hmm->position_of;
  shape.backoff_loop = build->options.backoff == BACKOFF_EPSILON;
  shape.word_cost = cost_of(build, build->options.word_prob, hmm->word_prob);
  WF__TRY(take_silence(build, &shape, err));
  WF__TRY(wf_token_labels(hmm->phones, build->inputs.num_disambig, &labels, NULL, err));
  wf_status status =
      wf__lexicon_to_fst(build->inputs.lexicon, build->inputs.words, &shape, labels, &l, NULL, err);
  wf_symbols_free(labels);
  WF__TRY(status);
  wf__slot_set(&build->runner, &build->l, l);
  return wf__slot_sort_olabels(&build->runner, &build->l, err);
}

static wf_status make_g(void *user, wf_error *err) {
  struct build *build = user;
  wf_fst *g;
  WF__TRY(wf__lg_make_g(&build->inputs, build->options.backoff, &g, err));
  wf__slot_set(&build->runner, &build->g, g);
  return WF_OK;
}

static wf_status make_lg(void *user, wf_error *err) {
  struct build *build = user;
  const wf__step_composition how = {
      .phi_label = build->options.backoff == BACKOFF_FAILURE ? build->inputs.backoff_word : 0,
      .max_states = build->options.max_states};
  return wf__step_compose(&build->runner, &build->l, &build->g, &how, &build->graph, err);
}

/* --- C and H ----------------------------------------------------------------------------- */

static wf_status expand_gpu(const wf__gpu_batch *lg, const void *user, wf__gpu_batch **out,
                            wf_error *err) {
  struct build *build = *(struct build *const *)user;
  return wf__hmm_expand_on_gpu(build->parts->hmm, lg, build->inputs.num_disambig,
                               build->options.missing_hmm, (uint64_t)build->options.max_states,
                               &build->dropped, out, err);
}

static wf_status expand_cpu(const wf_fst *lg, const void *user, wf_fst **out, wf_error *err) {
  struct build *build = *(struct build *const *)user;
  return wf__hmm_expand(build->parts->hmm, lg, build->inputs.num_disambig,
                        build->options.missing_hmm, (uint64_t)build->options.max_states,
                        &build->dropped, out, err);
}

static wf_status make_clg(void *user, wf_error *err) {
  static const wf__slot_operation operation = {expand_gpu, expand_cpu, true};
  struct build *build = user;
  WF__TRY(wf__slot_apply(&build->runner, &build->graph, &operation, &build, err));
  if (!wf__slot_is_empty(&build->graph)) return WF_OK;
  return wf__fail(
      err, WF_ERR_ARGUMENT,
      "the result is empty: every sentence needs a phone in a context that was left out");
}

static wf_status make_h(void *user, wf_error *err) {
  struct build *build = user;
  wf_fst *h;
  WF__TRY(wf__hmm_to_fst(build->parts->hmm, build->scale * build->options.transition_scale,
                         build->inputs.num_disambig, &h, err));
  wf__slot_set(&build->runner, &build->h, h);
  return wf__slot_sort_olabels(&build->runner, &build->h, err);
}

static wf_status make_hclg(void *user, wf_error *err) {
  struct build *build = user;
  const wf__step_composition how = {.max_states = build->options.max_states};
  return wf__step_compose(&build->runner, &build->h, &build->graph, &how, &build->graph, err);
}

/* --- used for LG, CLG and HCLG ------------------------------------------------------------ */

static wf_status make_det(void *user, wf_error *err) {
  struct build *build = user;
  return wf__slot_determinize(&build->runner, &build->graph, build->options.ambiguous != 0,
                              build->options.max_states, err);
}

static wf_status make_push(void *user, wf_error *err) {
  struct build *build = user;
  return wf__slot_push(&build->runner, &build->graph, err);
}

static wf_status make_min(void *user, wf_error *err) {
  struct build *build = user;
  return wf__slot_minimize(&build->runner, &build->graph, build->options.push == PUSH_TROPICAL,
                           err);
}

/* --- the finished graph ------------------------------------------------------------------ */

/* The disambiguation symbols are all labels from this one on. */
static int32_t first_disambig(const struct build *build) {
  return wf__hmm_num_labels(build->parts->hmm) + 1;
}

static wf_status drop_disambig_gpu(const wf__gpu_batch *in, const void *user, wf__gpu_batch **out,
                                   wf_error *err) {
  return wf__gpu_fstops()->clear_labels(in, first_disambig(user), out, err);
}

static wf_status drop_disambig_cpu(const wf_fst *in, const void *user, wf_fst **out,
                                   wf_error *err) {
  const struct build *build = user;
  int32_t count = build->inputs.num_disambig, *labels = wf__alloc((uint64_t)count, sizeof *labels);
  if (labels == NULL)
    return wf__fail_memory(err, (uint64_t)count * sizeof *labels, "disambiguation symbols");
  for (int32_t k = 0; k < count; k++) labels[k] = first_disambig(build) + k;
  wf_status status = wf_remove_disambig(in, labels, (size_t)count, out, err);
  free(labels);
  return status;
}

/* The scale of self-loops' costs. */
static float loop_scale(const struct build *build) {
  return build->scale * (build->options.self_loop_scale >= 0 ? build->options.self_loop_scale
                                                             : build->parts->hmm->self_loop_scale);
}

static wf_status loops_gpu(const wf__gpu_batch *in, const void *user, wf__gpu_batch **out,
                           wf_error *err) {
  const struct build *build = user;
  wf__loop_table table;
  wf_status status = wf__hmm_loop_table(build->parts->hmm, loop_scale(build), &table, err);
  if (status == WF_OK) status = wf__gpu_fstops()->add_loops(in, &table, out, err);
  wf__hmm_loop_table_free(&table);
  return status;
}

static wf_status loops_cpu(const wf_fst *in, const void *user, wf_fst **out, wf_error *err) {
  const struct build *build = user;
  return wf__hmm_add_loops(build->parts->hmm, in, loop_scale(build), out, err);
}

static wf_status make_loops(void *user, wf_error *err) {
  static const wf__slot_operation drop_disambig = {drop_disambig_gpu, drop_disambig_cpu, false},
                                  add_loops = {loops_gpu, loops_cpu, false};
  struct build *build = user;
  WF__TRY(wf__slot_apply(&build->runner, &build->graph, &drop_disambig, build, err));
  return wf__slot_apply(&build->runner, &build->graph, &add_loops, build, err);
}

static wf_status emitting_only_cpu(const wf_fst *in, const void *user, wf_fst **out,
                                   wf_error *err) {
  const struct build *build = user;
  return wf__emitting_only(in, (uint64_t)build->options.max_states, out, err);
}

static wf_status make_emitting_only(void *user, wf_error *err) {
  static const wf__slot_operation operation = {NULL, emitting_only_cpu, false};
  struct build *build = user;
  return wf__slot_apply(&build->runner, &build->graph, &operation, build, err);
}

/* Stores in the graph what word times need, if the model and the lexicon provide it. */
static wf_status add_boundaries(const struct build *build, wf_fst *graph, wf_error *err) {
  const wf_hmm *hmm = build->parts->hmm;
  wf_word_aligner *aligner;
  if (hmm->places.size == 0 || (hmm->word_position == NULL && build->inputs.lexicon == NULL))
    return WF_OK;
  WF__TRY(hmm->word_position != NULL
              ? wf_word_aligner_from_hmm(hmm, &aligner, err)
              : wf_word_aligner_from_hmm_lexicon(hmm, build->inputs.lexicon, build->inputs.words,
                                                 &aligner, err));
  wf_status status = wf__word_aligner_attach(aligner, graph, err);
  wf_word_aligner_free(aligner);
  return status;
}

static wf_status make_graph(void *user, wf_error *err) {
  struct build *build = user;
  wf_fst *ordered, *graph = NULL;
  WF__TRY(wf__slot_epsilons_last(&build->runner, &build->graph, err));
  WF__TRY(wf__slot_finished(&build->runner, &build->graph, &ordered, err));
  wf_status status = wf_fst_with_symbols(ordered, NULL, build->inputs.words, &graph, err);
  if (status == WF_OK) status = add_boundaries(build, graph, err);
  if (status == WF_OK)
    wf__slot_set(&build->runner, &build->graph, graph);
  else
    wf_fst_free(graph);
  return status;
}

static const wf__step steps[] = {
    {"L", "L", "lexicon to L", make_l},
    {"G", "G", "language model to G", make_g},
    {"L o G", "LG", "compose L o G", make_lg},
    {"det", "LG.det", "determinize LG", make_det},
    {"push", "LG.push", "push LG", make_push},
    {"min", "LG.min", "minimize LG", make_min},
    {"C o LG", "CLG", "compose C o LG", make_clg},
    {"det", "CLG.det", "determinize CLG", make_det},
    {"min", "CLG.min", "minimize CLG", make_min},
    {"H", "H", "HMMs to H", make_h},
    {"H o CLG", "HCLG", "compose H o CLG", make_hclg},
    {"det", "HCLG.det", "determinize HCLG", make_det},
    {"min", "HCLG.min", "minimize HCLG", make_min},
    {"loops", "HCLG.loops", "add self-loops", make_loops},
    {"rmeps", "HCLG.rmeps", "remove epsilons", make_emitting_only},
    {"graph", "graph", "order arcs", make_graph},
};
enum { NUM_STEPS = sizeof steps / sizeof *steps };

static bool is_wanted(const struct build *build, const wf__step *step) {
  if (step->run == make_push) return build->options.push == PUSH_LOG;
  return step->run != make_emitting_only || !build->options.epsilon;
}

/* Returns the length in phones of the words that always need a disambiguation symbol.
 *
 * If phones wait for their right context and silence does not (context.c), the waiting starts again
 * after each silence. A #0 before or after the first phones of the next word would then leave the
 * same inputs, so two copies of one path would differ only in their costs and determinization would
 * not end. A #k after each word that is no longer than the wait tells the two apart. */
static uint32_t short_words(const wf_hmm *hmm) {
  bool restarts = false;
  for (int32_t phone = 1; phone <= hmm->num_phones; phone++)
    restarts = restarts || hmm->context_free[phone];
  return restarts ? (uint32_t)(hmm->width - hmm->central - 1) : 0;
}

static wf_status take_inputs(struct build *build, wf_error *err) {
  build->inputs.always_marked = short_words(build->parts->hmm);
  WF__TRY(wf__lg_take(&build->inputs, err));
  const wf_tally *missing = &build->inputs.lm_words_missing;
  if (build->options.missing_words == 0 || missing->count == 0) return WF_OK;
  return wf__fail(err, WF_ERR_ARGUMENT,
                  "%llu words of the %s have no pronunciation, the first of them '%.80s'",
                  (unsigned long long)missing->count,
                  build->parts->lm != NULL ? "language model" : "grammar", missing->names[0]);
}

static wf_status run(struct build *build, wf_error *err) {
  WF__TRY(take_inputs(build, err));
  for (size_t i = 0; i < NUM_STEPS; i++)
    if (is_wanted(build, &steps[i]))
      WF__TRY(wf__step_run(&build->runner, &steps[i], i, NUM_STEPS, build, err));
  return wf__progress(&build->parts->progress, "graph built", 1, err);
}

static wf_status check_parts(const wf_hmm_graph_parts *parts, wf_error *err) {
  if (parts->hmm == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "graph parts: no acoustic model");
  if (parts->hmm->width == 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "graph parts: %s was read without its tree",
                    parts->hmm->name);
  if ((parts->lexicon == NULL) == (parts->lexicon_fst == NULL))
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "graph parts: either a lexicon or a ready-made L is needed");
  if (parts->lexicon_fst != NULL && wf_fst_get_view(parts->lexicon_fst).semiring != WF_TROPICAL)
    return wf__fail(err, WF_ERR_ARGUMENT, "L is not tropical; convert it");
  if (parts->lexicon != NULL && parts->lexicon->table != parts->hmm->lexicon_phones)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "graph parts: the lexicon was not read with the symbol table of wf_hmm_phones");
  if (parts->lm != NULL && parts->grammar != NULL)
    return wf__fail(err, WF_ERR_ARGUMENT, "graph parts: a language model and a grammar are given");
  if (parts->lm == NULL && parts->grammar == NULL && parts->lexicon == NULL)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "graph parts: a ready-made L needs a language model or a grammar");
  if (parts->grammar != NULL && wf_fst_get_view(parts->grammar).semiring != WF_TROPICAL)
    return wf__fail(err, WF_ERR_ARGUMENT, "the grammar is not tropical; convert it");
  return WF_OK;
}

static void move_tally(wf_tally *from, wf_tally *to) {
  *to = *from;
  *from = (wf_tally){0};
}

wf_status wf_hmm_graph_build(const wf_hmm_graph_parts *given, const wf_hmm_graph_options *options,
                             wf_hmm_graph_result *out, wf_error *err) {
  *out = (wf_hmm_graph_result){0};
  wf_hmm_graph_parts own = {0}, *parts = &own;
  struct build build = {.parts = parts};
  WF__TRY(wf__struct_check("wf_hmm_graph_parts", given, sizeof own, err));
  wf__struct_take(given, parts, sizeof own);
  WF__TRY(wf__options_take(wf__hmm_graph_table(), options, &build.options, err));
  WF__TRY(check_parts(parts, err));
  build.scale = 1 / (build.options.lm_weight > 0 ? build.options.lm_weight : parts->hmm->lm_weight);
  build.runner = (wf__step_runner){.step_fn = parts->step_fn,
                                   .step_user = parts->step_user,
                                   .progress = &parts->progress,
                                   .copy_steps = parts->copy_steps,
                                   .keep_on_device = parts->keep_on_device};
  build.inputs = (wf__lg){.given_lexicon = parts->lexicon,
                          .given_l = parts->lexicon_fst,
                          .lm = parts->lm,
                          .grammar = parts->grammar,
                          .given_words = parts->words,
                          .check_words = build.options.check_words};
  if (parts->lexicon_fst != NULL)
    build.inputs.num_disambig = (int32_t)parts->hmm->ready_disambig.size;
  wf__tally_free(&parts->hmm->substituted);
  wf_status status = wf__step_runner_begin(&build.runner, build.options.device, err);
  if (status == WF_OK) status = run(&build, err);
  if (status == WF_OK) {
    *out = (wf_hmm_graph_result){.graph = build.graph.fst,
                                 .words = wf_symbols_ref(build.inputs.words)};
    build.graph.fst = NULL;
    move_tally(&build.inputs.lm_words_missing, &out->lm_words_missing);
    move_tally(&build.inputs.lexicon_words_missing, &out->lexicon_words_missing);
    move_tally(&parts->hmm->substituted, &out->hmm_substituted);
    move_tally(&build.dropped, &out->hmm_dropped);
  }
  wf__slot_clear(&build.l);
  wf__slot_clear(&build.g);
  wf__slot_clear(&build.h);
  wf__slot_clear(&build.graph);
  wf__step_runner_end(&build.runner);
  free(build.fillers);
  wf__tally_free(&build.dropped);
  wf__lg_free(&build.inputs);
  return status;
}
