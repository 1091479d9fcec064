/* ctc_graph.c - the pipeline from lexicon, grammar and topology to a decoding graph for CTC models.
 *
 *     L, G   --compose--> L o G --determinize--> det --(push)--> --minimize--> LG
 *     T, LG  --compose--> T o LG --> graph
 *
 * With topology `correct`, LG itself is the graph, and the search knows CTC (fst/ctc_states.h):
 * there is no T, unless disambiguation symbols are kept.
 *
 * Each step is a row of `steps`. It makes one fst, whose size and time are reported to the caller.
 * The inputs of a step are freed once it is done, so at most the inputs and the result of one step
 * are in memory. */
#include <string.h>

#include "base/callbacks.h"
#include "base/option_tables.h"
#include "fst/ctc_states.h"
#include "graph/graph_steps.h"
#include "graph/lexicon_fst.h"
#include "graph/lg.h"
#include "graph/topology.h"
#include "graph/word_aligner.h"

enum { BACKOFF_EPSILON, BACKOFF_FAILURE };
enum { PUSH_NONE, PUSH_TROPICAL, PUSH_LOG };

struct build {
  const wf_ctc_graph_parts *parts;
  wf_ctc_graph_options options;
  wf__step_runner runner;
  wf__lg inputs;
  int32_t topology; /* never auto */
  wf__slot l, g, lg, t, graph;
};

static bool keeps_lg(const struct build *build) {
  return build->topology == WF__TOPOLOGY_CORRECT && !build->options.keep_disambig;
}

void wf_ctc_graph_result_free(wf_ctc_graph_result *result) {
  if (result == NULL) return;
  wf_fst_free(result->graph);
  wf_symbols_free(result->words);
  *result = (wf_ctc_graph_result){0};
}

static wf_status shape_of_l(const struct build *build, wf__lexicon_shape *out, wf_error *err) {
  wf_lexicon_fst_options o;
  wf_lexicon_fst_options_init(&o);
  o.silence = build->options.silence;
  o.silence_prob = build->options.silence_prob;
  return wf__lexicon_plain_shape(build->inputs.lexicon, &o, out, err);
}

/* The table of input labels: tokens, `num_disambig` disambiguation symbols, classes. */
static wf_status make_labels(const struct build *build, int32_t num_disambig, wf_symbols **out,
                             wf_error *err) {
  int32_t num_tokens;
  WF__TRY(wf_token_labels(build->inputs.lexicon->table, num_disambig, out, &num_tokens, err));
  return wf__lg_add_class_labels(&build->inputs, build->topology == WF__TOPOLOGY_TRANSDUCER,
                                 num_tokens + num_disambig + 1, *out, err);
}

/* --- the steps --------------------------------------------------------------------------- */

static wf_status make_l(void *user, wf_error *err) {
  struct build *build = user;
  wf_lexicon *lexicon = build->inputs.lexicon;
  wf__lexicon_shape shape;
  wf_symbols *labels = NULL;
  wf_fst *l;
  WF__TRY(shape_of_l(build, &shape, err));
  shape.backoff_loop = build->options.backoff == BACKOFF_EPSILON;
  shape.classes = build->inputs.classes.data;
  shape.num_classes = build->inputs.classes.size;
  shape.first_class = lexicon->tokens.num_tokens + build->inputs.num_disambig + 1;
  wf_status status = make_labels(build, build->inputs.num_disambig, &labels, err);
  if (status == WF_OK)
    status = wf__lexicon_to_fst(lexicon, build->inputs.words, &shape, labels, &l, NULL, err);
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
  return wf__step_compose(&build->runner, &build->l, &build->g, &how, &build->lg, err);
}

static wf_status make_det(void *user, wf_error *err) {
  struct build *build = user;
  return wf__slot_determinize(&build->runner, &build->lg, false, build->options.max_states, err);
}

static wf_status make_push(void *user, wf_error *err) {
  struct build *build = user;
  return wf__slot_push(&build->runner, &build->lg, err);
}

static wf_status make_min(void *user, wf_error *err) {
  struct build *build = user;
  return wf__slot_minimize(&build->runner, &build->lg, build->options.push == PUSH_TROPICAL, err);
}

static wf_status make_t(void *user, wf_error *err) {
  struct build *build = user;
  const wf_lexicon *lexicon = build->inputs.lexicon;
  wf_topology_options o;
  wf_fst *t;
  wf_topology_options_init(&o);
  build->runner.topology = o.type = build->topology;
  o.num_disambig = build->inputs.num_disambig;
  o.keep_disambig = build->options.keep_disambig;
  WF__TRY(wf__ctc_topology(lexicon->tokens.num_tokens, lexicon->blank - 1, &o,
                           (int32_t)build->inputs.classes.size, &t, err));
  wf__slot_set(&build->runner, &build->t, t);
  return WF_OK;
}

static wf_status make_tlg(void *user, wf_error *err) {
  struct build *build = user;
  const wf__step_composition how = {.max_states = build->options.max_states, .ordered = true};
  return wf__step_compose(&build->runner, &build->t, &build->lg, &how, &build->graph, err);
}

/* Stores in the graph what word times need: how words are spelled in tokens. */
static wf_status add_boundaries(const struct build *build, wf_fst *graph, wf_error *err) {
  wf_word_aligner *aligner;
  wf__lexicon_shape shape;
  WF__TRY(shape_of_l(build, &shape, err));
  WF__TRY(wf__word_aligner_from_lexicon(build->inputs.lexicon, build->inputs.words, shape.silence,
                                        &aligner, err));
  wf_status status = wf__word_aligner_attach(aligner, graph, err);
  wf_word_aligner_free(aligner);
  return status;
}

/* LG as the search reads it: without disambiguation symbols, arcs in the order of tokens. */
static wf_status take_lg(struct build *build, wf_error *err) {
  wf_fst *lg, *plain, *sorted;
  WF__TRY(wf__slot_fst(&build->lg, &lg, err));
  WF__TRY(wf__ctc_token_graph(lg, build->inputs.lexicon->tokens.num_tokens,
                              build->inputs.num_disambig, &plain, err));
  wf_status status = wf_arcsort(plain, false, &sorted, err);
  wf_fst_free(plain);
  WF__TRY(status);
  wf__slot_clear(&build->lg);
  wf__slot_set(&build->runner, &build->graph, sorted);
  return WF_OK;
}

static wf_status make_graph(void *user, wf_error *err) {
  struct build *build = user;
  wf_fst *ordered, *graph = NULL;
  wf_symbols *labels = NULL;
  if (keeps_lg(build)) WF__TRY(take_lg(build, err));
  WF__TRY(wf__slot_epsilons_last(&build->runner, &build->graph, err));
  WF__TRY(wf__slot_finished(&build->runner, &build->graph, &ordered, err));
  wf_status status = make_labels(
      build, build->options.keep_disambig ? build->inputs.num_disambig : 0, &labels, err);
  if (status == WF_OK)
    status = wf_fst_with_symbols(ordered, labels, build->inputs.words, &graph, err);
  wf_symbols_free(labels);
  if (status == WF_OK) status = add_boundaries(build, graph, err);
  if (status == WF_OK && keeps_lg(build)) {
    build->runner.topology = build->topology;
    wf__fst_set_ctc_blank(graph, build->inputs.lexicon->blank);
  }
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
    {"T", "T", "topology T", make_t},
    {"T o LG", "TLG", "compose T o LG", make_tlg},
    {"graph", "graph", "order arcs", make_graph},
};
enum { NUM_STEPS = sizeof steps / sizeof *steps };

static bool is_left_out(const struct build *build, const wf__step *step) {
  if (step->run == make_push) return build->options.push != PUSH_LOG;
  return (step->run == make_t || step->run == make_tlg) && keeps_lg(build);
}

static wf_status run(struct build *build, wf_error *err) {
  WF__TRY(wf__lg_take(&build->inputs, err));
  build->topology = build->options.topology;
  if (build->topology == WF__TOPOLOGY_AUTO) build->topology = WF__TOPOLOGY_CORRECT;
  for (size_t i = 0; i < NUM_STEPS; i++)
    if (!is_left_out(build, &steps[i]))
      WF__TRY(wf__step_run(&build->runner, &steps[i], i, NUM_STEPS, build, err));
  return wf__progress(&build->parts->progress, "graph built", 1, err);
}

static wf_status check_parts(const wf_ctc_graph_parts *parts, wf_error *err) {
  if (parts->lexicon == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "graph parts: no lexicon");
  WF__TRY(wf__need_blank(parts->lexicon->blank, err));
  if (parts->lm != NULL && parts->grammar != NULL)
    return wf__fail(err, WF_ERR_ARGUMENT, "graph parts: a language model and a grammar are given");
  if (parts->grammar != NULL && wf_fst_get_view(parts->grammar).semiring != WF_TROPICAL)
    return wf__fail(err, WF_ERR_ARGUMENT, "the grammar is not tropical; convert it");
  return WF_OK;
}

wf_status wf_ctc_graph_build(const wf_ctc_graph_parts *given, const wf_ctc_graph_options *options,
                             wf_ctc_graph_result *out, wf_error *err) {
  *out = (wf_ctc_graph_result){0};
  wf_ctc_graph_parts own = {0}, *parts = &own;
  struct build build = {.parts = parts};
  WF__TRY(wf__struct_check("wf_ctc_graph_parts", given, sizeof own, err));
  wf__struct_take(given, parts, sizeof own);
  WF__TRY(wf__options_take(wf__ctc_graph_table(), options, &build.options, err));
  WF__TRY(check_parts(parts, err));
  build.runner = (wf__step_runner){.step_fn = parts->step_fn,
                                   .step_user = parts->step_user,
                                   .progress = &parts->progress,
                                   .copy_steps = parts->copy_steps,
                                   .keep_on_device = parts->keep_on_device};
  build.inputs = (wf__lg){.given_lexicon = parts->lexicon,
                          .lm = parts->lm,
                          .grammar = parts->grammar,
                          .given_words = parts->words,
                          .given_classes = build.options.classes,
                          .check_words = build.options.check_words};
  wf_status status = wf__step_runner_begin(&build.runner, build.options.device, err);
  if (status == WF_OK) status = run(&build, err);
  if (status == WF_OK) {
    *out = (wf_ctc_graph_result){build.graph.fst, wf_symbols_ref(build.inputs.words),
                                 build.inputs.lm_words_missing.count,
                                 build.inputs.lexicon_words_missing.count};
    build.graph.fst = NULL;
  }
  wf__slot_clear(&build.l);
  wf__slot_clear(&build.g);
  wf__slot_clear(&build.lg);
  wf__slot_clear(&build.t);
  wf__slot_clear(&build.graph);
  wf__step_runner_end(&build.runner);
  wf__lg_free(&build.inputs);
  return status;
}
