/* ctc_recipe.c - the decoding graph for CTC models.
 *
 *     L, G   --> LG (recipe.h)
 *     T, LG  --compose--> T o LG --> graph
 *
 * With topology `correct`, LG itself is the graph, and the search knows CTC (fst/ctc_states.h):
 * there is no T, unless disambiguation symbols are kept. */
#include <string.h>

#include "base/option_tables.h"
#include "fst/ctc_states.h"
#include "graph/lexicon_fst.h"
#include "graph/recipe.h"
#include "graph/token_marks.h"
#include "graph/topology.h"
#include "graph/word_aligner.h"

static bool has_t(const wf__build *b) {
  return b->topology.type != WF_TOPOLOGY_CORRECT || b->options.keep_disambig;
}
static bool is_kept(const wf__build *b) { return !has_t(b); }

/* T repeats an arc for each token before it, so there arcs without epsilons double. With classes,
 * each arc of a class that is repeated would get the added words again. */
static bool wants_emitting_only(const wf__build *b) {
  return is_kept(b) && b->lg.classes.size == 0 && wf__wants_emitting_only(b);
}

/* --- the inputs -------------------------------------------------------------------------- */

/* The words but the classes, which are not spelled. */
static wf_status copy_words(const wf_symbols *words, const char *classes, wf_symbols **out,
                            wf_error *err) {
  const char *text;
  int64_t key;
  WF__TRY(wf_symbols_create(wf_symbols_name(words), out, err));
  for (size_t i = 0; (text = wf_symbols_at(words, i, &key)) != NULL; i++)
    if (!wf__lg_has_class(classes, text)) WF__TRY(wf_symbols_add(*out, text, key, NULL, err));
  return WF_OK;
}

/* Makes the lexicon that is not given: the words as they are spelled. */
static wf_status spell(wf__build *b, wf_error *err) {
  const wf_graph_inputs *in = b->inputs;
  const wf_symbols *words = in->words;
  wf_symbols *spelled = NULL;
  if (in->tokens == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "graph: no lexicon and no tokens");
  if (words == NULL && in->lm != NULL) words = wf_lm_words(in->lm);
  if (words == NULL && in->grammar != NULL) words = wf_fst_osymbols(in->grammar);
  if (words == NULL && in->grammar != NULL)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the grammar has no symbol table and no word table is given");
  if (words == NULL)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "graph: no lexicon and no words (a language model, a grammar or a word table)");
  wf_status status = copy_words(words, b->options.classes, &spelled, err);
  if (status == WF_OK)
    status = wf_lexicon_spell(spelled, in->tokens, in->lexicon_options, &b->spelled, err);
  wf_symbols_free(spelled);
  return status;
}

static wf_status take(wf__build *b, wf_error *err) {
  if (b->inputs->lexicon_fst != NULL)
    return wf__fail(err, WF_ERR_ARGUMENT, "graph: a ready-made L is for HMMs");
  if (b->lg.given_lexicon == NULL) WF__TRY(spell(b, err));
  if (b->spelled != NULL) b->lg.given_lexicon = b->spelled;
  WF__TRY(wf__need_blank(b->lg.given_lexicon->blank, err));
  b->lg.given_classes = b->options.classes;
  b->options.ambiguous = WF_AMBIGUOUS_ERROR;
  b->topology.type =
      b->options.topology != WF_TOPOLOGY_AUTO ? b->options.topology : (int32_t)WF_TOPOLOGY_CORRECT;
  b->topology.keep_disambig = b->options.keep_disambig;
  return WF_OK;
}

/* --- the steps --------------------------------------------------------------------------- */

static wf_status shape_of_l(const wf__build *b, wf__lexicon_shape *out, wf_error *err) {
  wf_lexicon_fst_options o;
  wf_lexicon_fst_options_init(&o);
  o.silence = b->options.silence;
  o.silence_prob = b->options.silence_prob;
  return wf__lexicon_plain_shape(b->lg.lexicon, &o, out, err);
}

/* The table of input labels: tokens, `num_disambig` disambiguation symbols, classes. */
static wf_status make_labels(const wf__build *b, int32_t num_disambig, wf_symbols **out,
                             wf_error *err) {
  int32_t num_tokens;
  WF__TRY(wf_token_labels(b->lg.lexicon->table, num_disambig, out, &num_tokens, err));
  return wf__lg_add_class_labels(&b->lg, b->topology.type == WF_TOPOLOGY_TRANSDUCER,
                                 num_tokens + num_disambig + 1, *out, err);
}

/* May the garbage word have this token? */
static bool is_garbage(const wf__build *b, int32_t label, const wf__lexicon_shape *shape) {
  const wf_lexicon *lexicon = b->lg.lexicon;
  const char *text = wf_symbols_text(lexicon->table, label - lexicon->tokens.shift);
  return label != lexicon->blank && label != shape->silence && text != NULL &&
         wf__token_mark_of(text, NULL) != WF__TOKEN_SPECIAL;
}

static wf_status make_l(wf__build *b, wf_fst **out, wf_error *err) {
  wf__lexicon_shape shape;
  wf_symbols *labels = NULL;
  WF__TRY(shape_of_l(b, &shape, err));
  shape.backoff_loop = b->options.backoff == WF_BACKOFF_EPSILON;
  shape.classes = b->lg.classes.data;
  shape.num_classes = b->lg.classes.size;
  shape.first_class = b->lg.lexicon->tokens.num_tokens + b->lg.num_disambig + 1;
  WF__TRY(wf__take_garbage(b, b->lg.lexicon->tokens.num_tokens, is_garbage, 1, &shape, err));
  wf_status status = make_labels(b, b->lg.num_disambig, &labels, err);
  if (status == WF_OK)
    status = wf__lexicon_to_fst(b->lg.lexicon, b->lg.words, &shape, labels, out, NULL, err);
  wf_symbols_free(labels);
  return status;
}

static wf_status make_t(wf__build *b, wf_error *err) {
  const wf_lexicon *lexicon = b->lg.lexicon;
  wf_fst *t;
  b->topology.num_disambig = b->lg.num_disambig;
  WF__TRY(wf__ctc_topology(lexicon->tokens.num_tokens, lexicon->blank - 1, &b->topology,
                           (int32_t)b->lg.classes.size, &t, err));
  wf__slot_set(&b->runner, &b->first, t);
  return WF_OK;
}

static wf_status make_tlg(wf__build *b, wf_error *err) {
  const wf__step_composition how = {.max_states = b->options.max_states, .ordered = true};
  return wf__step_compose(&b->runner, &b->first, &b->graph, &how, &b->graph, err);
}

/* LG as the search reads it: without disambiguation symbols, arcs in the order of tokens. */
static wf_status take_lg(wf__build *b, wf_error *err) {
  wf_fst *lg, *plain, *sorted;
  WF__TRY(wf__slot_fst(&b->graph, &lg, err));
  WF__TRY(
      wf__ctc_token_graph(lg, b->lg.lexicon->tokens.num_tokens, b->lg.num_disambig, &plain, err));
  wf_status status = wf_arcsort(plain, NULL, &sorted, err);
  wf_fst_free(plain);
  WF__TRY(status);
  wf__slot_set(&b->runner, &b->graph, sorted);
  return WF_OK;
}

static wf_status make_graph(wf__build *b, wf_error *err) {
  WF__TRY(wf__make_graph(b, err));
  if (is_kept(b)) wf__fst_set_ctc_blank(b->graph.fst, b->lg.lexicon->blank);
  return WF_OK;
}

static wf_status labels_of_graph(const wf__build *b, wf_symbols **out, wf_error *err) {
  return make_labels(b, b->options.keep_disambig ? b->lg.num_disambig : 0, out, err);
}

static wf_status aligner_of_graph(const wf__build *b, wf_word_aligner **out, wf_error *err) {
  wf__lexicon_shape shape;
  WF__TRY(shape_of_l(b, &shape, err));
  return wf__word_aligner_from_lexicon(b->lg.lexicon, b->lg.words, shape.silence, out, err);
}

static const wf__step steps[] = {
    WF__LG_STEPS,
    {"T", "T", "topology T", make_t, has_t},
    {"T o LG", "TLG", "compose T o LG", make_tlg, has_t},
    {"tokens", "LG.tokens", "token graph", take_lg, is_kept},
    {"rmeps", "LG.rmeps", "remove epsilons", wf__make_emitting_only, wants_emitting_only},
    {"graph", "graph", "order arcs", make_graph, NULL},
};

const wf__recipe wf__ctc_recipe = {
    .push = WF_PUSH_NONE,
    .words = true,
    .take = take,
    .make_l = make_l,
    .labels = labels_of_graph,
    .aligner = aligner_of_graph,
    .steps = steps,
    .num_steps = sizeof steps / sizeof *steps,
};
