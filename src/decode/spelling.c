/* spelling.c - lets a class of a graph stand for every word that tokens can spell, at the cost of a
 * language model over tokens whose sentences are words.
 *
 * The automaton is a phrase tree (phrase_tree.h) with the model's histories for nodes, so it has
 * loops. h, h' are histories, a and b tokens:
 *
 *   root 0 --a:A, cost(a|<s>)--> m(a,h) --a--> m(a,h)      a may begin a word
 *                                m(a,h) --eps--> n(h)      n(h) --blank--> n(h)
 *                                m(a,h) --eps, cost(</s>|h)--> root, which leaves the automaton
 *                                n(h) --b:##B, cost(b|h)--> m(b,h')
 *                                n(h) --eps, back-off--> n(shorter history)
 *
 * In graphs of transducers m has no loop, in those that keep their token graph neither m nor n. The tokens themselves are the words of the result. Their
 * names tell where words begin. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/map64.h"
#include "fst/fst.h"
#include "fst/symbols.h"
#include "graph/token_bytes.h"
#include "graph/token_marks.h"
#include "graph/tokens.h"
#include "search/decode_graph.h"

/* What a token may do in a word. */
struct role {
  bool begins, goes_on, ends;
  int32_t begin_word, rest_word; /* labels of its names in the results */
};

struct making {
  const wf_graph *graph;
  wf_fst_view lm;
  struct role *roles; /* [num_labels] by token label */
  int32_t *token_of;  /* [num_lm_words] token label of a word of the model; 0: no token */
  int64_t num_lm_words;
  float lm_scale, word_cost;
  wf__map64 states; /* (token or 0, history) -> m or n */
  WF__VEC(uint64_t) queue;
  wf_builder *builder;
  wf__phrase_task task;
};

/* --- tokens ------------------------------------------------------------------------------- */

/* Text of a label that may spell words; NULL: blank, <unk>, #0, ... */
static const char *text_of(const wf_graph *graph, int32_t label) {
  const char *text = wf_symbols_text(wf_fst_isymbols(graph->fst), label);
  if (text == NULL || label == graph->classes->blank ||
      wf__token_mark_of(text, NULL) == WF__TOKEN_SPECIAL)
    return NULL;
  size_t size = strlen(text);
  return wf__is_disambig(text, size) || wf__is_class_label(text, size) ? NULL : text;
}

static bool any_has(const wf_graph *graph, wf__token_mark mark) {
  for (int32_t label = 1; label < graph->num_labels; label++) {
    const char *text = text_of(graph, label);
    if (text != NULL && wf__token_mark_of(text, NULL) == mark) return true;
  }
  return false;
}

/* Adds the names under which a token appears in results: with U+2581 where it begins a word, with
 * ## elsewhere. */
static wf_status add_names(struct role *role, const char *text, wf_symbols *words, wf_error *err) {
  char name[1024];
  const char *plain, *const marks[] = {wf__token_start, wf__token_rest};
  int32_t *const labels[] = {&role->begin_word, &role->rest_word};
  wf__token_mark_of(text, &plain);
  for (int i = 0; i < 2; i++) {
    int64_t key;
    if (!(i == 0 ? role->begins : role->goes_on)) continue;
    snprintf(name, sizeof name, "%s%s", marks[i], plain);
    key = wf_symbols_find(words, name);
    WF__TRY(wf_symbols_add(words, name, key, &key, err));
    *labels[i] = (int32_t)key;
  }
  return WF_OK;
}

static wf_status find_roles(struct making *making, const wf_symbols *lm_words, wf_symbols *words,
                            wf_error *err) {
  const wf_graph *graph = making->graph;
  const wf_symbols *tokens = wf_fst_isymbols(graph->fst);
  wf__byte_alphabet alphabet;
  wf__byte_alphabet_of(tokens, &alphabet);
  const bool marks_start = any_has(graph, WF__TOKEN_STARTS) &&
                           wf__start_is_mark(tokens, wf__token_separator(tokens, &alphabet)),
             marks_rest = any_has(graph, WF__TOKEN_RESTS);
  for (int32_t label = 1; label < graph->num_labels; label++) {
    const char *text = text_of(graph, label);
    int64_t word = text != NULL ? wf_symbols_find(lm_words, text) : -1;
    if (word <= 0) continue;
    const char *plain;
    wf__token_mark mark = wf__token_mark_of(text, &plain);
    bool start = marks_start && mark == WF__TOKEN_STARTS, rest = mark == WF__TOKEN_RESTS;
    struct role *role = &making->roles[label];
    role->begins = marks_start ? start : !marks_rest || !rest;
    role->goes_on = marks_start ? !start : !marks_rest || rest;
    role->ends = !start || plain[0] != '\0';
    making->token_of[word] = label;
    WF__TRY(add_names(role, text, words, err));
  }
  return WF_OK;
}

/* --- the automaton ------------------------------------------------------------------------ */

/* The state m of a token and a history, or with token 0 the state n of a history. */
static wf_status state_of(struct making *making, int32_t token, uint32_t history, uint32_t *out,
                          wf_error *err) {
  uint64_t key = (uint64_t)(uint32_t)token << 32 | history;
  *out = wf__map64_find(&making->states, key);
  if (*out != WF__MAP64_NONE) return WF_OK;
  WF__TRY(wf_builder_add_states(making->builder, 1, out, err));
  WF__TRY(wf__map64_insert(&making->states, key, *out, out, NULL, "a spelling model", err));
  return wf__vec_push(&making->queue, key, "a spelling model", err);
}

static wf_status add_token(struct making *making, uint32_t from, const wf_arc *arc, float cost,
                           int32_t token, int32_t word, wf_error *err) {
  uint32_t m;
  WF__TRY(state_of(making, token, arc->nextstate, &m, err));
  return wf_builder_add_arc(making->builder, from, (wf_arc){m, cost, token, word}, err);
}

/* The back-off arc of a history; NULL: none. */
static const wf_arc *backoff_of(const wf_fst_view *lm, uint32_t history) {
  for (uint64_t a = lm->arc_off[history]; a < lm->arc_off[history + 1]; a++)
    if (lm->arcs[a].ilabel == 0) return &lm->arcs[a];
  return NULL;
}

/* Arcs from the root: for each token that may begin a word, that of the longest history that has
 * it. */
static wf_status add_beginnings(struct making *making, wf_error *err) {
  const wf_fst_view *lm = &making->lm;
  float backed_off = making->word_cost;
  bool *seen = wf__calloc((uint64_t)making->graph->num_labels, sizeof *seen);
  if (seen == NULL) return wf__fail_memory(err, (uint64_t)making->graph->num_labels, "a word");
  wf_status status = WF_OK;
  for (uint32_t history = (uint32_t)lm->start;; history = backoff_of(lm, history)->nextstate) {
    for (uint64_t a = lm->arc_off[history]; a < lm->arc_off[history + 1] && status == WF_OK; a++) {
      const wf_arc *arc = &lm->arcs[a];
      int32_t token = making->token_of[arc->ilabel];
      if (token == 0 || !making->roles[token].begins || seen[token]) continue;
      seen[token] = true;
      status = add_token(making, 0, arc, backed_off + making->lm_scale * arc->weight, token,
                         making->roles[token].begin_word, err);
    }
    const wf_arc *backoff = backoff_of(lm, history);
    if (status != WF_OK || backoff == NULL) break;
    backed_off += making->lm_scale * backoff->weight;
  }
  free(seen);
  return status;
}

/* Cost of </s> after a history. */
static float cost_of_end(const wf_fst_view *lm, uint32_t history) {
  float cost = 0;
  while (lm->final_cost[history] == INFINITY) {
    const wf_arc *backoff = backoff_of(lm, history);
    if (backoff == NULL) return INFINITY;
    cost += backoff->weight;
    history = backoff->nextstate;
  }
  return cost + lm->final_cost[history];
}

static wf_status add_m(struct making *making, uint32_t m, int32_t token, uint32_t history,
                       wf_error *err) {
  uint32_t n;
  float end = making->lm_scale * cost_of_end(&making->lm, history);
  if (making->task.kind == WF__PHRASE_FRAMES)
    WF__TRY(wf_builder_add_arc(making->builder, m, (wf_arc){m, 0, token, 0}, err));
  WF__TRY(state_of(making, 0, history, &n, err));
  WF__TRY(wf_builder_add_arc(making->builder, m, (wf_arc){n, 0, 0, 0}, err));
  if (!making->roles[token].ends || !(end < INFINITY)) return WF_OK;
  return wf_builder_add_arc(making->builder, m, (wf_arc){0, end, 0, 0}, err);
}

static wf_status add_n(struct making *making, uint32_t n, uint32_t history, wf_error *err) {
  const wf_fst_view *lm = &making->lm;
  if (making->task.kind != WF__PHRASE_TOKENS)
    WF__TRY(wf_builder_add_arc(making->builder, n, (wf_arc){n, 0, making->task.blank, 0}, err));
  for (uint64_t a = lm->arc_off[history]; a < lm->arc_off[history + 1]; a++) {
    const wf_arc *arc = &lm->arcs[a];
    float cost = making->lm_scale * arc->weight;
    int32_t token = making->token_of[arc->ilabel];
    uint32_t shorter;
    if (arc->ilabel == 0) {
      WF__TRY(state_of(making, 0, arc->nextstate, &shorter, err));
      WF__TRY(wf_builder_add_arc(making->builder, n, (wf_arc){shorter, cost, 0, 0}, err));
    } else if (token != 0 && making->roles[token].goes_on) {
      WF__TRY(add_token(making, n, arc, cost, token, making->roles[token].rest_word, err));
    }
  }
  return WF_OK;
}

static wf_status make_automaton(struct making *making, wf_fst **out, wf_error *err) {
  uint32_t root;
  WF__TRY(wf_builder_create(WF_TROPICAL, &making->builder, err));
  WF__TRY(wf_builder_add_states(making->builder, 1, &root, err));
  WF__TRY(wf_builder_set_start(making->builder, root, err));
  if (making->task.kind != WF__PHRASE_TOKENS)
    WF__TRY(wf_builder_set_final(making->builder, root, 0, err));
  WF__TRY(add_beginnings(making, err));
  for (uint64_t head = 0; head < making->queue.size; head++) {
    uint64_t key = making->queue.data[head];
    uint32_t state = wf__map64_find(&making->states, key), history = (uint32_t)key;
    int32_t token = (int32_t)(key >> 32);
    WF__TRY(token != 0 ? add_m(making, state, token, history, err)
                       : add_n(making, state, history, err));
  }
  if (making->queue.size == 0)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "spelling model: it has no token of the graph that begins a word");
  return wf_builder_finish(making->builder, NULL, NULL, out, err);
}

/* --- the graph ---------------------------------------------------------------------------- */

/* The names as phrases of one word of one token, for the word aligner. */
struct names {
  WF__VEC(int32_t) labels;
  WF__VEC(wf_spoken_word) words;
  WF__VEC(wf_added_phrase) phrases;
};

static wf_status list_names(const struct making *making, struct names *names, wf_error *err) {
  uint64_t most = 2 * (uint64_t)making->graph->num_labels;
  WF__TRY(wf__vec_grow(&names->labels, most, "a spelling model", err));
  WF__TRY(wf__vec_grow(&names->words, most, "a spelling model", err));
  WF__TRY(wf__vec_grow(&names->phrases, most, "a spelling model", err));
  for (int32_t label = 1; label < making->graph->num_labels; label++) {
    const struct role *role = &making->roles[label];
    const int32_t texts[] = {role->begin_word, role->rest_word};
    for (int i = 0; i < 2; i++) {
      if (texts[i] == 0) continue;
      int32_t *token = &names->labels.data[names->labels.size++];
      wf_spoken_word *word = &names->words.data[names->words.size++];
      *token = label;
      *word = (wf_spoken_word){.word = texts[i], .labels = token, .num_labels = 1};
      names->phrases.data[names->phrases.size++] = (wf_added_phrase){word, 1, 0};
    }
  }
  return WF_OK;
}

static wf_status make(struct making *making, int32_t c, const wf_symbols *lm_words,
                      wf_symbols *words, struct names *names, wf_graph **out, wf_error *err) {
  wf_fst *fst;
  wf__phrase_tree *tree;
  uint64_t num_labels = (uint64_t)making->graph->num_labels;
  making->roles = wf__calloc(num_labels, sizeof *making->roles);
  making->token_of = wf__calloc((uint64_t)making->num_lm_words, sizeof *making->token_of);
  if (making->roles == NULL || making->token_of == NULL)
    return wf__fail_memory(err, num_labels * sizeof *making->roles, "a spelling model");
  WF__TRY(find_roles(making, lm_words, words, err));
  WF__TRY(list_names(making, names, err));
  WF__TRY(make_automaton(making, &fst, err));
  wf_status status = wf__phrase_tree_of_fst(fst, &making->task, &tree, err);
  wf_fst_free(fst);
  WF__TRY(status);
  return wf__graph_add_tree(making->graph, c, tree, names->phrases.data, names->phrases.size, out,
                            err);
}

wf_status wf_graph_add_spelling(const wf_graph *graph, const char *word_class, const wf_lm *lm,
                                float lm_scale, float word_cost, wf_symbols *words, wf_graph **out,
                                wf_error *err) {
  *out = NULL;
  int32_t c;
  WF__TRY(wf__graph_find_class(graph, word_class, &c, err));
  if (!(lm_scale > 0 && lm_scale <= 1e6f) || !(fabsf(word_cost) <= 1e6f))
    return wf__fail(err, WF_ERR_ARGUMENT, "spelling model: scale %g, cost of a word %g",
                    (double)lm_scale, (double)word_cost);
  wf_fst *grammar;
  WF__TRY(wf_lm_to_fst(lm, NULL, &grammar, err));
  struct making making = {.graph = graph,
                          .lm = wf_fst_get_view(grammar),
                          .num_lm_words = wf_symbols_next_key(wf_lm_words(lm)),
                          .lm_scale = lm_scale,
                          .word_cost = word_cost,
                          .task = wf__classes_phrase_task(graph)};
  struct names names = {0};
  wf_status status = make(&making, c, wf_lm_words(lm), words, &names, out, err);
  wf_fst_free(grammar);
  free(making.roles);
  free(making.token_of);
  wf__map64_free(&making.states);
  wf__vec_free(&making.queue);
  wf_builder_free(making.builder);
  wf__vec_free(&names.labels);
  wf__vec_free(&names.words);
  wf__vec_free(&names.phrases);
  return status;
}
