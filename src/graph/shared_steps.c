/* shared_steps.c - the steps that several recipes have. */
#include "graph/recipe.h"
#include "graph/word_aligner.h"

wf_status wf__make_l(wf__build *b, wf_error *err) {
  wf_fst *l;
  WF__TRY(b->recipe->make_l(b, &l, err));
  wf__slot_set(&b->runner, &b->first, l);
  return wf__slot_sort_olabels(&b->runner, &b->first, err);
}

wf_status wf__make_g(wf__build *b, wf_error *err) {
  wf_fst *g;
  WF__TRY(wf__lg_make_g(&b->lg, b->options.backoff, &g, err));
  wf__slot_set(&b->runner, &b->g, g);
  return WF_OK;
}

wf_status wf__make_lg(wf__build *b, wf_error *err) {
  const wf__step_composition how = {
      .phi_label = b->options.backoff == WF_BACKOFF_FAILURE ? b->lg.backoff_word : 0,
      .max_states = b->options.max_states};
  return wf__step_compose(&b->runner, &b->first, &b->g, &how, &b->graph, err);
}

wf_status wf__make_det(wf__build *b, wf_error *err) {
  return wf__slot_determinize(&b->runner, &b->graph, b->options.ambiguous == WF_AMBIGUOUS_BEST,
                              b->options.max_states, err);
}

wf_status wf__make_push(wf__build *b, wf_error *err) {
  return wf__slot_push(&b->runner, &b->graph, err);
}

bool wf__wants_push(const wf__build *b) { return b->options.push == WF_PUSH_LOG; }

wf_status wf__make_min(wf__build *b, wf_error *err) {
  return wf__slot_minimize(&b->runner, &b->graph, b->options.push == WF_PUSH_TROPICAL, err);
}

wf_status wf__make_graph(wf__build *b, wf_error *err) {
  wf_fst *ordered, *graph = NULL;
  wf_symbols *labels = NULL;
  wf_word_aligner *aligner = NULL;
  WF__TRY(wf__slot_epsilons_last(&b->runner, &b->graph, err));
  WF__TRY(wf__slot_finished(&b->runner, &b->graph, &ordered, err));
  wf_status status = b->recipe->labels(b, &labels, err);
  if (status == WF_OK) status = wf_fst_with_symbols(ordered, labels, b->lg.words, &graph, err);
  if (status == WF_OK) status = b->recipe->aligner(b, &aligner, err);
  if (status == WF_OK && aligner != NULL) status = wf__word_aligner_attach(aligner, graph, err);
  wf_word_aligner_free(aligner);
  wf_symbols_free(labels);
  if (status == WF_OK)
    wf__slot_set(&b->runner, &b->graph, graph);
  else
    wf_fst_free(graph);
  return status;
}
