/* hmm_recipe.c - the decoding graph for hybrid HMM models.
 *
 *     L, G     --> LG (recipe.h)
 *     C, LG    --> C o LG --> det --> min --> CLG
 *     H, CLG   --> H o CLG --> det --> min --> remove disambiguation symbols --> add self-loops
 *              --> epsilons last --> graph
 *
 * H contains only the HMM types that C o LG uses. (Mohri, Pereira, Riley 2002.) */
#include <string.h>

#include "base/callbacks.h"
#include "graph/emitting_only.h"
#include "graph/hmm.h"
#include "graph/lexicon_fst.h"
#include "graph/ready_l.h"
#include "graph/recipe.h"
#include "graph/word_aligner.h"

/* --- L --------------------------------------------------------------------------------- */

static float cost_of(const wf__build *b, float given, float toolkit) {
  float p = given > 0 ? given : toolkit;
  return p != 1 ? b->scale * -logf(p) : 0;
}

/* Maps a phone of lexicons that is not part of a word to a phone of windows. */
static int32_t alone(const wf_hmm *hmm, int32_t phone) {
  if (phone == 0 || hmm->position_of == NULL) return phone;
  int64_t same = wf_symbols_find(
      hmm->phones, wf_symbols_text(hmm->lexicon_phones, phone)); /* Kaldi has SIL as well as SIL_B,
                                                                    SIL_I, SIL_E, SIL_S */
  return same > 0 ? (int32_t)same : hmm->position_of[phone][WF__SINGLE];
}

static wf_status take_silence(wf__build *b, wf__lexicon_shape *shape, wf_error *err) {
  const wf_hmm *hmm = b->inputs->hmm;
  const wf_graph_options *o = &b->options;
  int32_t phone = hmm->silence;
  if (o->silence != NULL)
    phone = o->silence[0] != '\0' ? (int32_t)wf_symbols_find(hmm->lexicon_phones, o->silence) : 0;
  if (phone < 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "%s: no phone '%.80s' (given as silence)", hmm->name,
                    o->silence);
  if (o->silence_style == WF_SILENCE_EDGES && phone == 0)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "silence at the edges of utterances needs a silence phone, and there is none");
  shape->silence = alone(hmm, phone);
  shape->edge_silence =
      phone != 0 && (o->silence_style == WF_SILENCE_EDGES ||
                     (o->silence_style == WF_SILENCE_TOOLKIT && hmm->edge_silence));
  shape->silence_cost = cost_of(b, o->silence_prob, hmm->silence_prob);
  if (phone != 0 && !shape->edge_silence) {
    float p = o->silence_prob > 0 ? o->silence_prob : hmm->silence_prob;
    if (p >= 1)
      return wf__fail(err, WF_ERR_ARGUMENT, "silence_prob is %g; it must be below 1", (double)p);
    shape->other_cost = cost_of(b, 1 - p, 1);
  }
  if (!o->fillers) return WF_OK;
  b->fillers = wf__alloc(hmm->fillers.size, sizeof *b->fillers);
  if (b->fillers == NULL)
    return wf__fail_memory(err, hmm->fillers.size * sizeof *b->fillers, "noises");
  for (uint64_t i = 0; i < hmm->fillers.size; i++) b->fillers[i] = alone(hmm, hmm->fillers.data[i]);
  shape->fillers = b->fillers;
  shape->num_fillers = (size_t)hmm->fillers.size;
  shape->filler_cost = cost_of(b, o->filler_prob, hmm->filler_prob);
  return WF_OK;
}

/* May the garbage word have this phone of lexicons? In a model with positions, phones that have
 * them. */
static bool is_garbage(const wf__build *b, int32_t phone, const wf__lexicon_shape *shape) {
  const wf_hmm *hmm = b->inputs->hmm;
  if (phone == hmm->silence || phone == shape->silence) return false;
  for (uint64_t i = 0; i < hmm->fillers.size; i++)
    if (hmm->fillers.data[i] == phone) return false;
  return hmm->position_of == NULL ||
         hmm->position_of[phone][WF__BEGIN] != hmm->position_of[phone][WF__SINGLE];
}

static wf_status make_l(wf__build *b, wf_fst **out, wf_error *err) {
  const wf_hmm *hmm = b->inputs->hmm;
  if (b->inputs->lexicon_fst != NULL)
    return wf__ready_l(hmm, b->inputs->lexicon_fst, b->scale, out, err);
  wf__lexicon_shape shape = {
      .num_labels = hmm->num_phones, .disambig = true, .pron_scale = b->scale};
  wf_symbols *labels;
  shape.position_of = (const int32_t(*)[WF__NUM_POSITIONS])hmm->position_of;
  shape.backoff_loop = b->options.backoff == WF_BACKOFF_EPSILON;
  shape.word_cost = cost_of(b, b->options.word_prob, hmm->word_prob);
  WF__TRY(take_silence(b, &shape, err));
  WF__TRY(wf__take_garbage(b, b->lg.lexicon->tokens.num_tokens, is_garbage, b->scale, &shape, err));
  WF__TRY(wf_token_labels(hmm->phones, b->lg.num_disambig, &labels, NULL, err));
  wf_status status = wf__lexicon_to_fst(b->lg.lexicon, b->lg.words, &shape, labels, out, NULL, err);
  wf_symbols_free(labels);
  return status;
}

/* --- C and H ----------------------------------------------------------------------------- */

static wf_status expand_gpu(const wf__gpu_batch *lg, const void *user, wf__gpu_batch **out,
                            wf_error *err) {
  wf__build *b = *(wf__build *const *)user;
  return wf__hmm_expand_on_gpu(b->inputs->hmm, lg, b->lg.num_disambig, b->options.missing_hmm,
                               (uint64_t)b->options.max_states, &b->dropped, out, err);
}

static wf_status expand_cpu(const wf_fst *lg, const void *user, wf_fst **out, wf_error *err) {
  wf__build *b = *(wf__build *const *)user;
  return wf__hmm_expand(b->inputs->hmm, lg, b->lg.num_disambig, b->options.missing_hmm,
                        (uint64_t)b->options.max_states, &b->dropped, out, err);
}

static wf_status make_clg(wf__build *b, wf_error *err) {
  static const wf__slot_operation operation = {expand_gpu, expand_cpu, true};
  WF__TRY(wf__slot_apply(&b->runner, &b->graph, &operation, &b, err));
  if (!wf__slot_is_empty(&b->graph)) return WF_OK;
  return wf__fail(
      err, WF_ERR_ARGUMENT,
      "the result is empty: every sentence needs a phone in a context that was left out");
}

static wf_status make_h(wf__build *b, wf_error *err) {
  wf_fst *h;
  WF__TRY(wf__hmm_to_fst(b->inputs->hmm, b->scale * b->options.transition_scale, b->lg.num_disambig,
                         &h, err));
  wf__slot_set(&b->runner, &b->first, h);
  return wf__slot_sort_olabels(&b->runner, &b->first, err);
}

static wf_status make_hclg(wf__build *b, wf_error *err) {
  const wf__step_composition how = {.max_states = b->options.max_states};
  return wf__step_compose(&b->runner, &b->first, &b->graph, &how, &b->graph, err);
}

/* --- the finished graph ------------------------------------------------------------------ */

/* The disambiguation symbols are all labels from this one on. */
static int32_t first_disambig(const wf__build *b) { return wf__hmm_num_labels(b->inputs->hmm) + 1; }

static wf_status drop_disambig_gpu(const wf__gpu_batch *in, const void *user, wf__gpu_batch **out,
                                   wf_error *err) {
  return wf__gpu_fstops()->clear_labels(in, first_disambig(user), out, err);
}

static wf_status drop_disambig_cpu(const wf_fst *in, const void *user, wf_fst **out,
                                   wf_error *err) {
  const wf__build *b = user;
  int32_t count = b->lg.num_disambig, *labels = wf__alloc((uint64_t)count, sizeof *labels);
  if (labels == NULL)
    return wf__fail_memory(err, (uint64_t)count * sizeof *labels, "disambiguation symbols");
  for (int32_t k = 0; k < count; k++) labels[k] = first_disambig(b) + k;
  wf_status status = wf_remove_disambig(in, labels, (size_t)count, out, err);
  free(labels);
  return status;
}

/* The scale of self-loops' costs. */
static float loop_scale(const wf__build *b) {
  return b->scale * (b->options.self_loop_scale >= 0 ? b->options.self_loop_scale
                                                     : b->inputs->hmm->self_loop_scale);
}

static wf_status loops_gpu(const wf__gpu_batch *in, const void *user, wf__gpu_batch **out,
                           wf_error *err) {
  const wf__build *b = user;
  wf__loop_table table;
  wf_status status = wf__hmm_loop_table(b->inputs->hmm, loop_scale(b), &table, err);
  if (status == WF_OK) status = wf__gpu_fstops()->add_loops(in, &table, out, err);
  wf__hmm_loop_table_free(&table);
  return status;
}

static wf_status loops_cpu(const wf_fst *in, const void *user, wf_fst **out, wf_error *err) {
  const wf__build *b = user;
  return wf__hmm_add_loops(b->inputs->hmm, in, loop_scale(b), out, err);
}

static wf_status make_loops(wf__build *b, wf_error *err) {
  static const wf__slot_operation drop_disambig = {drop_disambig_gpu, drop_disambig_cpu, false},
                                  add_loops = {loops_gpu, loops_cpu, false};
  WF__TRY(wf__slot_apply(&b->runner, &b->graph, &drop_disambig, b, err));
  return wf__slot_apply(&b->runner, &b->graph, &add_loops, b, err);
}

static wf_status aligner_of_graph(const wf__build *b, wf_word_aligner **out, wf_error *err) {
  const wf_hmm *hmm = b->inputs->hmm;
  *out = NULL;
  if (hmm->places.size == 0) return WF_OK;
  if (hmm->word_position != NULL) return wf_word_aligner_from_hmm(hmm, out, err);
  if (b->lg.lexicon == NULL) return WF_OK;
  return wf_word_aligner_from_hmm_lexicon(hmm, b->lg.lexicon, b->lg.words, out, err);
}

static const wf__step steps[] = {
    WF__LG_STEPS,
    {"C o LG", "CLG", "compose C o LG", make_clg, NULL},
    {"det", "CLG.det", "determinize CLG", wf__make_det, NULL},
    {"min", "CLG.min", "minimize CLG", wf__make_min, NULL},
    {"H", "H", "HMMs to H", make_h, NULL},
    {"H o CLG", "HCLG", "compose H o CLG", make_hclg, NULL},
    {"det", "HCLG.det", "determinize HCLG", wf__make_det, NULL},
    {"min", "HCLG.min", "minimize HCLG", wf__make_min, NULL},
    {"loops", "HCLG.loops", "add self-loops", make_loops, NULL},
    {"rmeps", "HCLG.rmeps", "remove epsilons", wf__make_emitting_only, wf__wants_emitting_only},
    {"graph", "graph", "order arcs", wf__make_graph, NULL},
};

/* --- the inputs -------------------------------------------------------------------------- */

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

static wf_status check(const wf__build *b, wf_error *err) {
  const wf_graph_inputs *in = b->inputs;
  if (in->hmm == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "graph: no acoustic model");
  if (in->hmm->width == 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "graph: %s was read without its tree", in->hmm->name);
  if ((in->lexicon == NULL) == (in->lexicon_fst == NULL))
    return wf__fail(err, WF_ERR_ARGUMENT, "graph: either a lexicon or a ready-made L is needed");
  if (in->lexicon != NULL && in->lexicon->table != in->hmm->lexicon_phones)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "graph: the lexicon was not read with the symbol table of wf_hmm_phones");
  if (in->lm == NULL && in->grammar == NULL && in->lexicon == NULL)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "graph: a ready-made L needs a language model or a grammar");
  if (b->lg.garbage && in->lexicon == NULL)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "garbage: not with a ready-made L");
  return WF_OK;
}

static wf_status take(wf__build *b, wf_error *err) {
  const wf_graph_inputs *in = b->inputs;
  WF__TRY(check(b, err));
  b->scale = 1 / (b->options.lm_weight > 0 ? b->options.lm_weight : in->hmm->lm_weight);
  b->lg.given_l = in->lexicon_fst;
  b->lg.always_marked = short_words(in->hmm);
  if (in->lexicon_fst != NULL) b->lg.num_disambig = (int32_t)in->hmm->ready_disambig.size;
  wf__tally_free(&in->hmm->substituted);
  return WF_OK;
}

const wf__recipe wf__hmm_recipe = {
    .push = WF_PUSH_TROPICAL,
    .words = true,
    .take = take,
    .make_l = make_l,
    .aligner = aligner_of_graph,
    .steps = steps,
    .num_steps = sizeof steps / sizeof *steps,
};
