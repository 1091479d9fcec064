/* recipe.c - wf_graph_build: runs the recipes of decoding graphs. */
#include "graph/recipe.h"

#include <string.h>

#include "base/callbacks.h"
#include "base/clock.h"
#include "base/option_tables.h"
#include "base/platform.h"
#include "graph/hmm.h"

/* --- running ---------------------------------------------------------------------------- */

/* Sets the sizes in the report. *out_fst NULL: the fst is only on the GPU. */
static wf_status look_at(wf__slot *made, bool copy, wf_graph_step *report, wf_fst **out_fst,
                         wf_error *err) {
  *out_fst = made->fst;
  if (made->fst == NULL && copy) WF__TRY(wf__slot_fst(made, out_fst, err));
  if (made->fst != NULL) {
    wf_fst_view view = wf_fst_get_view(made->fst);
    report->num_states = view.num_states;
    report->num_arcs = view.num_arcs;
    return WF_OK;
  }
  wf_fst_batch_view view;
  wf__gpu_fstops()->view(made->gpu, &view);
  report->num_states = view.num_states;
  report->num_arcs = view.num_arcs;
  return WF_OK;
}

static wf_status run_step(wf__build *b, const wf__step *step, double progress, wf_error *err) {
  wf__step_runner *runner = &b->runner;
  wf_fst *fst;
  WF__TRY(wf__progress(runner->progress, step->stage, progress, err));
  runner->stage = step->stage;
  double begin = wf__now_s();
  wf_status status = step->run(b, err);
  if (status != WF_OK) return wf__fail_prefix(err, status, "%s", step->stage);
  if (runner->step_fn == NULL) return WF_OK;
  wf_graph_step report = {.name = step->name,
                          .file = step->file,
                          .seconds = wf__now_s() - begin,
                          .peak_bytes = wf__peak_bytes()};
  WF__TRY(look_at(runner->made, runner->copy_steps, &report, &fst, err));
  if (runner->step_fn(runner->step_user, &report, fst)) return WF_OK;
  return wf__fail(err, WF_ERR_CANCELLED, "cancelled after %s", step->stage);
}

/* --- the inputs -------------------------------------------------------------------------- */

static wf_status check_inputs(const wf_graph_inputs *in, wf_error *err) {
  if (in->lm != NULL && in->grammar != NULL)
    return wf__fail(err, WF_ERR_ARGUMENT, "graph: a language model and a grammar are given");
  if (in->grammar != NULL && wf_fst_get_view(in->grammar).semiring != WF_TROPICAL)
    return wf__fail(err, WF_ERR_ARGUMENT, "the grammar is not tropical; convert it");
  if (in->lexicon_fst != NULL && wf_fst_get_view(in->lexicon_fst).semiring != WF_TROPICAL)
    return wf__fail(err, WF_ERR_ARGUMENT, "L is not tropical; convert it");
  return WF_OK;
}

static wf_status take_words(wf__build *b, wf_error *err) {
  WF__TRY(wf__lg_take(&b->lg, err));
  if (b->options.missing_words == WF_MISSING_WORDS_SKIP) return WF_OK;
  return wf__lg_need_words(&b->lg, err);
}

static wf_status run(wf__build *b, wf_error *err) {
  WF__TRY(b->recipe->take(b, err));
  if (b->recipe->words) WF__TRY(take_words(b, err));
  const size_t count = b->recipe->num_steps;
  for (size_t i = 0; i < count; i++) {
    const wf__step *step = &b->recipe->steps[i];
    if (step->wanted == NULL || step->wanted(b))
      WF__TRY(run_step(b, step, (double)i / (double)count, err));
  }
  return wf__progress(&b->inputs->progress, "graph built", 1, err);
}

/* --- the result -------------------------------------------------------------------------- */

void wf_graph_result_clear(wf_graph_result *result) {
  if (result == NULL) return;
  wf_fst_free(result->graph);
  wf_symbols_free(result->words);
  wf__tally_free(&result->words_not_spelled);
  wf__tally_free(&result->lm_words_missing);
  wf__tally_free(&result->lexicon_words_missing);
  wf__tally_free(&result->hmm_substituted);
  wf__tally_free(&result->hmm_dropped);
  *result = (wf_graph_result){0};
}

static void move_tally(wf_tally *from, wf_tally *to) {
  *to = *from;
  *from = (wf_tally){0};
}

static void give(wf__build *b, wf_graph_result *out) {
  out->graph = b->graph.fst;
  b->graph.fst = NULL;
  out->words = wf_symbols_ref(b->lg.words);
  out->topology = (wf_graph_topology)b->topology.type;
  if (b->spelled != NULL) move_tally(&b->spelled->skipped, &out->words_not_spelled);
  move_tally(&b->lg.lm_words_missing, &out->lm_words_missing);
  move_tally(&b->lg.lexicon_words_missing, &out->lexicon_words_missing);
  if (b->inputs->hmm != NULL) move_tally(&b->inputs->hmm->substituted, &out->hmm_substituted);
  move_tally(&b->dropped, &out->hmm_dropped);
}

static void end(wf__build *b) {
  wf__slot_clear(&b->first);
  wf__slot_clear(&b->g);
  wf__slot_clear(&b->graph);
  wf__step_runner_end(&b->runner);
  free(b->garbage);
  free(b->fillers);
  wf__tally_free(&b->dropped);
  wf__lg_free(&b->lg);
  wf_lexicon_free(b->spelled);
}

wf_status wf_graph_build(const wf_graph_inputs *given, const wf_graph_options *options,
                         wf_graph_result *out, wf_error *err) {
  static const wf__recipe *const recipes[] = {
      [WF_GRAPH_CTC] = &wf__ctc_recipe,
      [WF_GRAPH_HMM] = &wf__hmm_recipe,
      [WF_GRAPH_TOKENS] = &wf__tokens_recipe,
  };
  *out = (wf_graph_result){0};
  wf_graph_inputs own = {0}, *in = &own;
  wf__build b = {.inputs = in};
  WF__TRY(wf__struct_check("wf_graph_inputs", given, sizeof own, err));
  wf__struct_take(given, in, sizeof own);
  WF__TRY(wf__options_take(wf__graph_table(), options, &b.options, err));
  WF__TRY(check_inputs(in, err));
  b.recipe = recipes[b.options.kind];
  if (b.options.push == WF_PUSH_AUTO) b.options.push = b.recipe->push;
  wf_topology_options_init(&b.topology);
  b.runner = (wf__step_runner){.step_fn = in->step_fn,
                               .step_user = in->step_user,
                               .progress = &in->progress,
                               .copy_steps = in->copy_steps,
                               .keep_on_device = in->keep_on_device};
  b.lg = (wf__lg){.given_lexicon = in->lexicon,
                  .lm = in->lm,
                  .grammar = in->grammar,
                  .given_words = in->words,
                  .check_words = b.options.check_words,
                  .garbage = b.options.garbage >= 0};
  wf_status status = wf__step_runner_begin(&b.runner, b.options.device, err);
  if (status == WF_OK) status = run(&b, err);
  if (status == WF_OK) give(&b, out);
  end(&b);
  return status;
}
