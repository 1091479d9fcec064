/* ctc_graph.c - the pipeline from lexicon, grammar and topology to a decoding graph for CTC.
 *
 *   L, G --compose--> L o G --determinize--> det --(push)--> --minimize--> LG      T, LG --compose--> T o LG --> graph
 *
 * Each step is a row of `steps`: it makes one fst, which is counted, timed and shown to the caller. L and G are dropped once
 * composed, and so on: at most the inputs and the result of one step are in memory. */
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/map64.h"
#include "base/option_tables.h"
#include "fst/fst.h"
#include "graph/lexicon_fst.h"
#include "graph/push_even.h"

enum { BACKOFF_EPSILON, BACKOFF_FAILURE };
enum { PUSH_NONE, PUSH_TROPICAL, PUSH_LOG };

struct build {
  const wf_ctc_graph_parts *parts;
  wf_ctc_graph_options options;
  wf_lexicon *lexicon; /* the entries whose words the grammar uses */
  wf_symbols *words;
  int32_t backoff_word; /* label of #0 among the words */
  int32_t unk; /* label of the LM's unknown word; -1: the model has none */
  int32_t num_disambig;
  wf_fst *l, *g, *lg, *t, *graph;
  const wf_fst *made; /* by the step just done; one of the above */
  uint64_t lm_words_missing, lexicon_words_missing;
};

void wf_ctc_graph_parts_init(wf_ctc_graph_parts *parts) {
  memset(parts, 0, sizeof *parts);
  parts->struct_size = sizeof *parts;
}

void wf_ctc_graph_result_free(wf_ctc_graph_result *result) {
  if (result == NULL) return;
  wf_fst_free(result->graph);
  wf_symbols_free(result->words);
  *result = (wf_ctc_graph_result){0};
}

static void replace(struct build *build, wf_fst **slot, wf_fst *fst) {
  wf_fst_free(*slot);
  *slot = fst;
  build->made = fst;
}
static void drop(wf_fst **slot) {
  wf_fst_free(*slot);
  *slot = NULL;
}

/* --- the word table, and which words lexicon and grammar share ----------------------------------------------------------- */

static wf_status add_backoff_word(const wf_symbols *from, wf_symbols *to, wf_error *err) {
  const char *text;
  int64_t key;
  for (size_t i = 0; (text = wf_symbols_at(from, i, &key)) != NULL; i++) WF__TRY(wf_symbols_add(to, text, key, NULL, err));
  return wf_symbols_add(to, "#0", -1, NULL, err);
}

static wf_status take_words(struct build *build, wf_error *err) {
  const wf_ctc_graph_parts *parts = build->parts;
  const wf_symbols *words = parts->words;
  if (parts->lm != NULL) words = wf_lm_words(parts->lm);
  else if (words == NULL) words = wf_fst_osymbols(parts->grammar) != NULL ? wf_fst_osymbols(parts->grammar) : wf_fst_isymbols(parts->grammar);
  if (words == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "the grammar has no symbol table and no word table is given");
  if (wf_symbols_text(words, 0) != NULL && strcmp(wf_symbols_text(words, 0), "<eps>") != 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "word table %s: label 0 is '%.80s'; it must be <eps>", wf_symbols_name(words), wf_symbols_text(words, 0));
  if (wf_symbols_find(words, "#0") > 0) {
    build->words = wf_symbols_ref(words);
  } else {
    WF__TRY(wf_symbols_create(wf_symbols_name(words), &build->words, err));
    WF__TRY(add_backoff_word(words, build->words, err));
  }
  build->backoff_word = (int32_t)wf_symbols_find(build->words, "#0");
  build->unk = -1;
  if (parts->lm == NULL) return WF_OK;
  wf_lm_info info;
  wf_lm_info_init(&info);
  WF__TRY(wf_lm_get_info(parts->lm, &info, err));
  if (info.has_unk) build->unk = info.unk;
  return WF_OK;
}

static wf_status collect_grammar_words(const wf_fst *grammar, wf__map64 *used, wf_error *err) {
  wf_fst_view view = wf_fst_get_view(grammar);
  uint32_t stands;
  for (uint64_t i = 0; i < view.num_arcs; i++) WF__TRY(wf__map64_insert(used, (uint64_t)view.arcs[i].ilabel, 1, &stands, NULL, "words of a grammar", err));
  return WF_OK;
}

static bool is_used(const struct build *build, const wf__map64 *used, int64_t label) {
  if (label <= 0 || label == build->backoff_word) return false;
  if (build->parts->lm == NULL) return wf__map64_find(used, (uint64_t)label) != WF__MAP64_NONE;
  return label == build->unk || wf_lm_knows(build->parts->lm, (int32_t)label);
}

/* keep[i]: is the i-th pronunciation's word used by the grammar? Counts words that are missing on either side. */
static wf_status match_words(struct build *build, wf__map64 *used, wf__map64 *spoken, bool *keep, wf_error *err) {
  const wf_lexicon *lexicon = build->parts->lexicon;
  uint64_t num_kept = 0;
  int64_t label;
  if (build->parts->lm == NULL) WF__TRY(collect_grammar_words(build->parts->grammar, used, err));
  for (size_t i = 0; i < wf_lexicon_count(lexicon); i++) {
    const char *word = wf_lexicon_at(lexicon, i).word;
    bool fresh = true;
    uint32_t stands;
    label = wf_symbols_find(build->words, word);
    if (label > 0) WF__TRY(wf__map64_insert(spoken, (uint64_t)label, 1, &stands, &fresh, "words of a lexicon", err));
    keep[i] = is_used(build, used, label);
    if (keep[i]) num_kept++;
    else build->lexicon_words_missing += fresh;
  }
  for (size_t i = 0; wf_symbols_at(build->words, i, &label) != NULL; i++)
    if (label != build->unk && is_used(build, used, label)) build->lm_words_missing += wf__map64_find(spoken, (uint64_t)label) == WF__MAP64_NONE;
  if (num_kept == 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "the lexicon %s and the %s have no word in common; do they agree in upper and lower case?", lexicon->name,
                    build->parts->lm != NULL ? "language model" : "grammar");
  return WF_OK;
}

static wf_status take_lexicon(struct build *build, wf_error *err) {
  wf__map64 used = {0}, spoken = {0};
  size_t count = wf_lexicon_count(build->parts->lexicon);
  bool *keep = wf__alloc(count, sizeof *keep);
  wf_status status = keep != NULL ? match_words(build, &used, &spoken, keep, err) : wf__fail_memory(err, count, "words of a lexicon");
  if (status == WF_OK) status = wf__lexicon_select(build->parts->lexicon, keep, &build->lexicon, err);
  if (status == WF_OK) build->num_disambig = wf_lexicon_num_disambig(build->lexicon);
  free(keep);
  wf__map64_free(&used);
  wf__map64_free(&spoken);
  if (build->lm_words_missing != 0)
    wf__log(WF_LOG_INFO, "%llu words of the language model are not in the lexicon", (unsigned long long)build->lm_words_missing);
  if (build->lexicon_words_missing != 0)
    wf__log(WF_LOG_INFO, "%llu words of the lexicon are not in the language model", (unsigned long long)build->lexicon_words_missing);
  return status;
}

/* --- the steps -------------------------------------------------------------------------------------------------------- */

static wf_status make_l(struct build *build, wf_error *err) {
  wf_lexicon_fst_options o;
  wf_fst *l, *sorted;
  wf_lexicon_fst_options_init(&o);
  o.silence = build->options.silence;
  o.silence_prob = build->options.silence_prob;
  WF__TRY(wf__lexicon_to_fst(build->lexicon, build->words, &o, build->options.backoff == BACKOFF_EPSILON, &l, NULL, err));
  wf_arcsort_options sort;
  wf_arcsort_options_init(&sort);
  sort.sort_type = 1;
  wf_status status = wf_arcsort(l, &sort, &sorted, err);
  wf_fst_free(l);
  if (status == WF_OK) replace(build, &build->l, sorted);
  return status;
}

static wf_status make_g(struct build *build, wf_error *err) {
  wf_fst *g = NULL, *sorted;
  if (build->parts->lm != NULL) {
    wf_lm_fst_options o;
    wf_lm_fst_options_init(&o);
    o.backoff_label = build->backoff_word;
    o.backoff = build->options.backoff;
    WF__TRY(wf_lm_to_fst(build->parts->lm, &o, &g, err));
  } else {
    WF__TRY(wf_fst_with_symbols(build->parts->grammar, build->words, build->words, &g, err));
  }
  wf_status status = wf_arcsort(g, NULL, &sorted, err);
  wf_fst_free(g);
  if (status == WF_OK) replace(build, &build->g, sorted);
  return status;
}

static wf_status check_not_empty(const wf_fst *fst, wf_error *err) {
  if (wf_fst_get_view(fst).num_states != 0) return WF_OK;
  return wf__fail(err, WF_ERR_ARGUMENT, "the result is empty: no sentence of the grammar is made of words that the lexicon has");
}

static wf_status compose(struct build *build, const wf_fst *a, const wf_fst *b, int32_t phi_label, wf_fst **out, wf_error *err) {
  wf_compose_options o;
  wf_compose_options_init(&o);
  o.phi_label = phi_label;
  o.max_states = build->options.max_states;
  WF__TRY(wf_compose(a, b, &o, out, err));
  wf_status status = check_not_empty(*out, err);
  if (status != WF_OK) drop(out);
  return status;
}

static wf_status make_lg(struct build *build, wf_error *err) {
  wf_fst *lg;
  WF__TRY(compose(build, build->l, build->g, build->options.backoff == BACKOFF_FAILURE ? build->backoff_word : 0, &lg, err));
  drop(&build->l);
  drop(&build->g);
  replace(build, &build->lg, lg);
  return WF_OK;
}

static wf_status make_det(struct build *build, wf_error *err) {
  wf_determinize_options o;
  wf_fst *det;
  wf_determinize_options_init(&o);
  o.rmepsilon = true;
  o.max_states = build->options.max_states;
  WF__TRY(wf_determinize(build->lg, &o, &det, err));
  replace(build, &build->lg, det);
  return WF_OK;
}

static wf_status make_push(struct build *build, wf_error *err) {
  wf_fst *pushed;
  WF__TRY(wf__push_even(build->lg, &pushed, err));
  replace(build, &build->lg, pushed);
  return WF_OK;
}

static wf_status make_min(struct build *build, wf_error *err) {
  wf_minimize_options o;
  wf_fst *min;
  wf_minimize_options_init(&o);
  o.push_weights = build->options.push == PUSH_TROPICAL;
  o.allow_nondet = true; /* determinization can leave several epsilon arcs that write the rest of outputs */
  WF__TRY(wf_minimize(build->lg, &o, &min, err));
  replace(build, &build->lg, min);
  return WF_OK;
}

static wf_status make_t(struct build *build, wf_error *err) {
  wf_topology_options o;
  wf_fst *t;
  wf_topology_options_init(&o);
  o.type = build->options.topology;
  o.num_disambig = build->num_disambig;
  o.keep_disambig = build->options.keep_disambig;
  WF__TRY(wf_ctc_topology(build->lexicon->tokens.num_tokens, build->lexicon->blank - 1, &o, &t, err));
  replace(build, &build->t, t);
  return WF_OK;
}

static wf_status make_tlg(struct build *build, wf_error *err) {
  wf_fst *tlg;
  WF__TRY(compose(build, build->t, build->lg, 0, &tlg, err));
  drop(&build->t);
  drop(&build->lg);
  replace(build, &build->graph, tlg);
  return WF_OK;
}

static wf_status make_graph(struct build *build, wf_error *err) {
  wf_fst *ordered, *graph;
  wf_symbols *labels;
  WF__TRY(wf_epsilons_last(build->graph, &ordered, err));
  wf_status status = wf_token_labels(build->lexicon->table, build->options.keep_disambig ? build->num_disambig : 0, &labels, NULL, err);
  if (status == WF_OK) status = wf_fst_with_symbols(ordered, labels, build->words, &graph, err);
  wf_fst_free(ordered);
  wf_symbols_free(labels);
  if (status == WF_OK) replace(build, &build->graph, graph);
  return status;
}

static const struct step {
  const char *name, *file, *stage;
  wf_status (*run)(struct build *, wf_error *);
} steps[] = {
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

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t peak_bytes(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

static wf_status run_step(struct build *build, size_t i, wf_error *err) {
  WF__TRY(wf__progress(&build->parts->progress, steps[i].stage, (double)i / NUM_STEPS, err));
  double begin = now_s();
  wf_status status = steps[i].run(build, err);
  if (status != WF_OK) return wf__fail_prefix(err, status, "%s", steps[i].stage);
  if (build->parts->step_fn == NULL) return WF_OK;
  wf_fst_view view = wf_fst_get_view(build->made);
  wf_graph_step step = {steps[i].name, steps[i].file, view.num_states, view.num_arcs, now_s() - begin, peak_bytes()};
  if (build->parts->step_fn(build->parts->step_user, &step, build->made)) return WF_OK;
  return wf__fail(err, WF_ERR_CANCELLED, "cancelled after %s", steps[i].stage);
}

static wf_status run(struct build *build, wf_error *err) {
  WF__TRY(take_words(build, err));
  WF__TRY(take_lexicon(build, err));
  for (size_t i = 0; i < NUM_STEPS; i++)
    if (steps[i].run != make_push || build->options.push == PUSH_LOG) WF__TRY(run_step(build, i, err));
  return wf__progress(&build->parts->progress, "graph built", 1, err);
}

static wf_status check_parts(const wf_ctc_graph_parts *parts, wf_error *err) {
  if (parts == NULL || parts->struct_size != sizeof *parts) return wf__fail(err, WF_ERR_ARGUMENT, "graph parts: call wf_ctc_graph_parts_init first");
  if (parts->lexicon == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "graph parts: no lexicon");
  if ((parts->lm == NULL) == (parts->grammar == NULL)) return wf__fail(err, WF_ERR_ARGUMENT, "graph parts: either a language model or a grammar is needed");
  if (parts->grammar != NULL && wf_fst_get_view(parts->grammar).semiring != WF_TROPICAL) return wf__fail(err, WF_ERR_ARGUMENT, "the grammar is not tropical; convert it");
  return WF_OK;
}

wf_status wf_ctc_graph_build(const wf_ctc_graph_parts *parts, const wf_ctc_graph_options *options, wf_ctc_graph_result *out, wf_error *err) {
  *out = (wf_ctc_graph_result){0};
  struct build build = {.parts = parts};
  WF__TRY(wf__options_take(wf__ctc_graph_table(), options, &build.options, err));
  WF__TRY(check_parts(parts, err));
  wf_status status = run(&build, err);
  drop(&build.l);
  drop(&build.g);
  drop(&build.lg);
  drop(&build.t);
  wf_lexicon_free(build.lexicon);
  if (status != WF_OK) {
    drop(&build.graph);
    wf_symbols_free(build.words);
    return status;
  }
  *out = (wf_ctc_graph_result){build.graph, build.words, build.lm_words_missing, build.lexicon_words_missing};
  return WF_OK;
}
