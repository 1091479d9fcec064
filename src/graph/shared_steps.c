/* shared_steps.c - the steps that several recipes have. */
#include "base/callbacks.h"
#include "graph/emitting_only.h"
#include "graph/push_even.h"
#include "graph/recipe.h"
#include "graph/word_aligner.h"

wf_status wf__take_garbage(wf__build *b, int32_t count,
                           bool (*is_token)(const wf__build *b, int32_t label,
                                            const wf__lexicon_shape *shape),
                           float scale, wf__lexicon_shape *shape, wf_error *err) {
  if (!b->lg.garbage) return WF_OK;
  b->garbage = wf__alloc((uint64_t)count, sizeof *b->garbage);
  if (b->garbage == NULL)
    return wf__fail_memory(err, (uint64_t)count * sizeof *b->garbage, "tokens of garbage");
  for (int32_t label = 1; label <= count; label++)
    if (is_token(b, label, shape)) b->garbage[shape->num_garbage++] = label;
  if (shape->num_garbage == 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "garbage: there are no tokens that it can consist of");
  shape->garbage = b->garbage;
  shape->garbage_cost = scale * b->options.garbage;
  shape->garbage_word = b->lg.unk;
  return WF_OK;
}

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
  const wf_tally *missing = &b->lg.lm_words_missing;
  char names[300];
  wf_error own = {0};
  wf_status status = wf__step_compose(&b->runner, &b->first, &b->g, &how, &b->graph, &own);
  if (status == WF_OK) return WF_OK;
  wf__tally_list(missing, names, sizeof names);
  if (status != WF_ERR_ARGUMENT || missing->count == 0)
    return wf__fail(err, status, "%s", own.message);
  return wf__fail(err, status, "%s; it lacks %s", own.message, names);
}

static wf_status determinize_gpu(const wf__gpu_batch *in, const void *user, wf__gpu_batch **out,
                                 wf_error *err) {
  return wf__gpu_fstops()->determinize(in, user, out, err);
}
static wf_status determinize_cpu(const wf_fst *in, const void *user, wf_fst **out, wf_error *err) {
  return wf_determinize(in, user, out, err);
}

wf_status wf__make_det(wf__build *b, wf_error *err) {
  static const wf__slot_operation operation = {determinize_gpu, determinize_cpu, false};
  wf_determinize_options o;
  wf_determinize_options_init(&o);
  o.rmepsilon = true;
  o.allow_nonfunctional = b->options.ambiguous == WF_AMBIGUOUS_BEST;
  o.max_states = b->options.max_states;
  return wf__slot_apply(&b->runner, &b->graph, &operation, &o, err);
}

static wf_status push_cpu(const wf_fst *in, const void *user, wf_fst **out, wf_error *err) {
  (void)user;
  return wf__push_even(in, out, err);
}

wf_status wf__make_push(wf__build *b, wf_error *err) {
  static const wf__slot_operation operation = {NULL, push_cpu, false};
  return wf__slot_apply(&b->runner, &b->graph, &operation, NULL, err);
}

bool wf__wants_push(const wf__build *b) { return b->options.push == WF_PUSH_LOG; }

static wf_status minimize_gpu(const wf__gpu_batch *in, const void *user, wf__gpu_batch **out,
                              wf_error *err) {
  return wf__gpu_fstops()->minimize(in, user, out, err);
}
static wf_status minimize_cpu(const wf_fst *in, const void *user, wf_fst **out, wf_error *err) {
  return wf_minimize(in, user, out, err);
}

wf_status wf__make_min(wf__build *b, wf_error *err) {
  static const wf__slot_operation operation = {minimize_gpu, minimize_cpu, false};
  wf_minimize_options o;
  wf_minimize_options_init(&o);
  o.push_weights = b->options.push == WF_PUSH_TROPICAL;
  o.allow_nondet = true; /* determinization may leave several epsilon arcs in a state, which write
                            delayed outputs */
  return wf__slot_apply(&b->runner, &b->graph, &operation, &o, err);
}

/* Memory, and arcs to look at, are bounded: real graphs grow 1.1 to 1.8 times. */
enum { MOST_GROWTH = 2 };

static wf_status emitting_only_cpu(const wf_fst *in, const void *user, wf_fst **out,
                                   wf_error *err) {
  const wf__build *b = user;
  wf_error own = {0};
  const wf_status status = wf__emitting_only(in, (uint64_t)b->options.max_states,
                                             MOST_GROWTH * wf_fst_get_view(in).num_arcs, out, &own);
  if (status == WF_ERR_LIMIT || status == WF_ERR_UNSUPPORTED) {
    wf__log(WF_LOG_INFO, "the graph keeps its epsilon arcs: %s", own.message);
    *out = wf_fst_ref(in);
    return WF_OK;
  }
  return status == WF_OK ? WF_OK : wf__fail(err, status, "%s", own.message);
}

wf_status wf__make_emitting_only(wf__build *b, wf_error *err) {
  static const wf__slot_operation operation = {NULL, emitting_only_cpu, false};
  return wf__slot_apply(&b->runner, &b->graph, &operation, b, err);
}

bool wf__wants_emitting_only(const wf__build *b) { return !b->options.epsilon; }

static wf_status epsilons_last_gpu(const wf__gpu_batch *in, const void *user, wf__gpu_batch **out,
                                   wf_error *err) {
  (void)user;
  return wf__gpu_fstops()->epsilons_last(in, out, err);
}
static wf_status epsilons_last_cpu(const wf_fst *in, const void *user, wf_fst **out,
                                   wf_error *err) {
  (void)user;
  return wf_epsilons_last(in, out, err);
}

wf_status wf__make_graph(wf__build *b, wf_error *err) {
  static const wf__slot_operation order = {epsilons_last_gpu, epsilons_last_cpu, false};
  wf_fst *ordered, *graph = NULL;
  wf_symbols *labels = NULL;
  wf_word_aligner *aligner = NULL;
  WF__TRY(wf__slot_apply(&b->runner, &b->graph, &order, NULL, err));
  WF__TRY(wf__slot_finished(&b->runner, &b->graph, &ordered, err));
  wf_status status = b->recipe->labels != NULL ? b->recipe->labels(b, &labels, err) : WF_OK;
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
