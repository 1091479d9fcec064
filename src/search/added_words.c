/* added_words.c - graphs with words added at run time: made from a base and phrase trees, and
 * converted to an fst. */
#include <math.h>
#include <string.h>

#include "search/decode_graph.h"

#include "base/interrupt.h"
#include "fst/fst.h"

/* --- making the graph -------------------------------------------------------------------- */

wf_status wf__graph_find_class(const wf_graph *graph, const char *word_class, int32_t *out,
                               wf_error *err) {
  const wf__classes *classes = graph->classes;
  if (classes == NULL)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the graph has no place for added words: build it with the option `classes`, "
                    "and keep its symbol tables");
  if (word_class == NULL && classes->count > 1)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "added words: no class is given, and the graph has %d (%.80s is the first)",
                    (int)classes->count, classes->names[0]);
  int32_t c = 0;
  while (word_class != NULL && c < classes->count && strcmp(classes->names[c], word_class) != 0)
    c++;
  if (c == classes->count)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "added words: the graph has no class '%.80s'; its first class is %.80s",
                    word_class, classes->names[0]);
  if (wf__num_sites(graph, c) == 0)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "added words: no path of the graph goes through the class %.80s",
                    classes->names[c]);
  if (graph->added != NULL && graph->added[c].tree != NULL)
    return wf__fail(
        err, WF_ERR_ARGUMENT,
        "added words: the class %.80s has words already; start from the graph without them",
        classes->names[c]);
  if (classes->blank == 0)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "added words: the graph has none of the topologies correct, compact and "
                    "transducer: states before a class do not all loop on one label, the blank");
  *out = c;
  return WF_OK;
}

/* Updates the graph's epsilon properties. For other graphs decode_graph.c computes them from the
 * arcs. */
static void add_class_properties(wf_graph *graph, int32_t c) {
  const wf__phrase_tree *tree = graph->added[c].tree;
  graph->has_negative_epsilons = graph->has_negative_epsilons || tree->has_negative_epsilons;
  graph->has_epsilon_words = graph->has_epsilon_words || tree->has_epsilon_words;
  for (uint32_t rank = 0; rank < wf__num_sites(graph, c); rank++)
    graph->has_negative_epsilons =
        graph->has_negative_epsilons || wf__site_at(graph, c, rank)->weight < 0;
}

/* Assigns numbers of states and arcs, class by class. */
static wf_status number(wf_graph *graph, wf_error *err) {
  graph->num_states = graph->first_added_state;
  graph->num_arcs = graph->first_added_arc;
  for (int32_t c = 0; c < graph->classes->count; c++) {
    wf__added *added = &graph->added[c];
    if (added->tree == NULL) continue;
    added->first_state = (uint32_t)graph->num_states;
    added->first_arc = (uint32_t)graph->num_arcs;
    graph->num_states += wf__num_sites(graph, c) * added->tree->num_states;
    graph->num_arcs += wf__num_sites(graph, c) * added->tree->num_arcs;
    if (graph->num_states > WF__MAX_STATES || graph->num_arcs >= UINT32_MAX)
      return wf__fail(err, WF_ERR_LIMIT,
                      "added words: %llu states in each of %u places of class %.80s make more than "
                      "2^31 states or 2^32 arcs; add fewer words, or prune the language model",
                      (unsigned long long)added->tree->num_states, wf__num_sites(graph, c),
                      graph->classes->names[c]);
  }
  return WF_OK;
}

/* Takes over the tree, also after an error. */
static wf_status fill(wf_graph *graph, const wf_graph *given, int32_t c, wf__phrase_tree *tree,
                      wf_error *err) {
  graph->added = wf__calloc((uint64_t)graph->classes->count, sizeof *graph->added);
  if (graph->added == NULL) {
    wf__phrase_tree_free(tree);
    return wf__fail_memory(err, (uint64_t)graph->classes->count * sizeof *graph->added,
                           "added words");
  }
  for (int32_t i = 0; i < graph->classes->count && given->added != NULL; i++)
    graph->added[i].tree = wf__phrase_tree_ref(given->added[i].tree);
  graph->added[c].tree = tree;
  add_class_properties(graph, c);
  return number(graph, err);
}

wf_status wf__graph_add_tree(const wf_graph *graph, int32_t c, wf__phrase_tree *tree,
                             const wf_added_phrase *phrases, size_t count, wf_graph **out,
                             wf_error *err) {
  wf_graph *made = wf__alloc(1, sizeof *made);
  if (made == NULL) {
    wf__phrase_tree_free(tree);
    return wf__fail_memory(err, sizeof *made, "added words");
  }
  *made = *graph;
  atomic_init(&made->refs, 1);
  made->base = wf_graph_ref(graph->base != NULL ? graph->base : graph);
  made->added = NULL;
  made->aligner = NULL;
  wf_status status = fill(made, graph, c, tree, err);
  if (status == WF_OK && graph->aligner != NULL)
    status = wf__word_aligner_add(graph->aligner, phrases, count, &made->aligner, err);
  if (status == WF_OK)
    *out = made;
  else
    wf_graph_free(made);
  return status;
}

/* A list of phrases whose words are those of another, without the separators at both ends: the
 * graph has these around the class. */
struct trimmed {
  wf_added_phrase *phrases;
  wf_spoken_word *words;
};

static wf_spoken_word trim_word(wf_spoken_word word, int32_t separator) {
  for (; word.num_labels > 0 && word.labels[0] == separator; word.num_labels--) word.labels++;
  while (word.num_labels > 0 && word.labels[word.num_labels - 1] == separator) word.num_labels--;
  return word;
}

static wf_status trim(struct trimmed *trimmed, const wf_added_phrase *phrases, size_t count,
                      int32_t separator, wf_error *err) {
  uint64_t num_words = 0;
  for (size_t i = 0; i < count; i++) num_words += phrases[i].num_words;
  trimmed->phrases = wf__alloc(count, sizeof *trimmed->phrases);
  trimmed->words = wf__alloc(num_words, sizeof *trimmed->words);
  if (trimmed->phrases == NULL || trimmed->words == NULL)
    return wf__fail_memory(err, num_words * sizeof *trimmed->words, "added phrases");
  wf_spoken_word *at = trimmed->words;
  for (size_t i = 0; i < count; i++) {
    trimmed->phrases[i] = phrases[i];
    trimmed->phrases[i].words = at;
    for (size_t k = 0; k < phrases[i].num_words; k++)
      *at++ = trim_word(phrases[i].words[k], separator);
  }
  return WF_OK;
}

wf__phrase_task wf__classes_phrase_task(const wf_graph *graph) {
  const wf__classes *classes = graph->classes;
  return (wf__phrase_task){graph->ctc != NULL ? WF__PHRASE_TOKENS
                           : classes->once    ? WF__PHRASE_ONCE
                                              : WF__PHRASE_FRAMES,
                           graph->num_labels, classes->blank, classes->separator};
}

static wf_status add_phrases(const wf_graph *graph, int32_t c, const wf_added_phrase *phrases,
                             size_t count, wf_graph **out, wf_error *err) {
  const wf__phrase_task task = wf__classes_phrase_task(graph);
  wf__phrase_tree *tree;
  WF__TRY(wf__phrase_tree_create(phrases, count, &task, &tree, err));
  return wf__graph_add_tree(graph, c, tree, phrases, count, out, err);
}

wf_status wf_graph_add_phrases(const wf_graph *graph, const char *word_class,
                               const wf_added_phrase *phrases, size_t count, wf_graph **out,
                               wf_error *err) {
  *out = NULL;
  int32_t c;
  struct trimmed trimmed = {0};
  WF__TRY(wf__graph_find_class(graph, word_class, &c, err));
  const int32_t separator = graph->classes->separator;
  if (separator == 0) return add_phrases(graph, c, phrases, count, out, err);
  wf_status status = trim(&trimmed, phrases, count, separator, err);
  if (status == WF_OK) status = add_phrases(graph, c, trimmed.phrases, count, out, err);
  free(trimmed.phrases);
  free(trimmed.words);
  return status;
}

/* --- as an fst --------------------------------------------------------------------------- */

/* The state of the token graph that has the words: after those of the fst, which the dead end is
 * the last of, come those of each copy, without its root. */
static uint32_t token_state(const wf_graph *graph, const wf__class_site *site, uint32_t own) {
  uint64_t number = graph->view.num_states - 1;
  if (own == 0) return site->target;
  for (int32_t c = 0; c < site->word_class; c++)
    if (graph->added[c].tree != NULL)
      number += wf__num_sites(graph, c) * (graph->added[c].tree->view.num_states - 1);
  return (uint32_t)(number +
                    site->rank * (graph->added[site->word_class].tree->view.num_states - 1) + own -
                    1);
}

/* Pushes the arcs of a tree's state in the copy of a site; those of the root instead of the site's
 * own arc. */
static wf_status push_copied(const wf_graph *graph, const wf__class_site *site, uint32_t own,
                             wf__csr *csr, wf_error *err) {
  const wf_fst_view *tree = &graph->added[site->word_class].tree->view;
  for (uint64_t a = tree->arc_off[own]; a < tree->arc_off[own + 1]; a++) {
    wf_arc arc = tree->arcs[a];
    arc.nextstate = token_state(graph, site, arc.nextstate);
    if (own == 0) arc.weight += site->weight;
    WF__TRY(wf__csr_push(csr, arc, err));
  }
  return WF_OK;
}

static wf_status push_site(const wf_graph *graph, uint32_t a, wf__csr *csr, wf_error *err) {
  const wf__class_site *site = wf__class_site_of(graph->classes, a);
  if (graph->added[site->word_class].tree != NULL) return push_copied(graph, site, 0, csr, err);
  const wf_arc arc = {site->target, site->weight, graph->classes->first_label + site->word_class,
                      graph->view.arcs[a].olabel};
  return wf__csr_push(csr, arc, err);
}

/* A token graph with the words at its sites. */
static wf_status write_token_graph(const wf_graph *graph, wf__csr *csr, wf_error *err) {
  const wf_fst_view *view = &graph->view;
  const uint64_t dead = view->num_states - 1;
  for (uint64_t s = 0; s < dead; s++) {
    WF__TRY(wf__interrupted_at(s, err));
    WF__TRY(wf__csr_add_state(csr, view->final_cost[s], err));
    for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++)
      WF__TRY(view->arcs[a].nextstate == dead ? push_site(graph, (uint32_t)a, csr, err)
                                              : wf__csr_push(csr, view->arcs[a], err));
  }
  for (int32_t c = 0; c < graph->classes->count; c++) {
    const wf__phrase_tree *tree = graph->added[c].tree;
    for (uint32_t rank = 0; tree != NULL && rank < wf__num_sites(graph, c); rank++)
      for (uint32_t own = 1; own < tree->view.num_states; own++) {
        WF__TRY(wf__interrupted_at(own, err));
        WF__TRY(wf__csr_add_state(csr, INFINITY, err));
        WF__TRY(push_copied(graph, wf__site_at(graph, c, rank), own, csr, err));
      }
  }
  return WF_OK;
}

static wf_status write_states(const wf_graph *graph, wf__csr *csr, wf_error *err) {
  WF__TRY(wf__vec_grow(&csr->arcs, graph->num_arcs, "a graph with added words", err));
  for (uint64_t s = 0; s < graph->num_states; s++) {
    wf__arc_run emitting = wf__emitting_run(graph, (uint32_t)s),
                epsilons = wf__epsilon_run(graph, (uint32_t)s);
    WF__TRY(wf__csr_add_state(csr, wf__graph_final(graph, (uint32_t)s), err));
    for (uint32_t a = emitting.first; a < epsilons.end; a++)
      WF__TRY(wf__csr_push(csr, wf__graph_arc(graph, a), err));
  }
  return WF_OK;
}

wf_status wf_graph_to_fst(const wf_graph *graph, wf_fst **out, wf_error *err) {
  *out = NULL;
  if (graph->added == NULL) {
    if (graph->ctc != NULL) return wf__ctc_explicit(graph->ctc, graph->fst, out, err);
    *out = wf_fst_ref(graph->fst);
    return WF_OK;
  }
  wf__csr csr = {0};
  wf_status status =
      graph->ctc != NULL ? write_token_graph(graph, &csr, err) : write_states(graph, &csr, err);
  if (status == WF_OK)
    status = wf__fst_from_csr(&csr, graph->view.start, graph->view.semiring,
                              wf_fst_isymbols(graph->fst), wf_fst_osymbols(graph->fst), out, err);
  wf__csr_free(&csr);
  wf_word_aligner *whole = NULL;
  if (status == WF_OK && graph->aligner != NULL) {
    status = wf__word_aligner_flatten(graph->aligner, &whole, err);
    if (status == WF_OK) status = wf__word_aligner_attach(whole, *out, err);
    wf_word_aligner_free(whole);
  }
  if (status == WF_OK && graph->ctc != NULL) wf__fst_set_ctc_blank(*out, graph->ctc->blank);
  if (status != WF_OK) {
    wf_fst_free(*out);
    *out = NULL;
  }
  return status;
}

int32_t wf_graph_num_classes(const wf_graph *graph) {
  return graph->classes != NULL ? graph->classes->count : 0;
}
const char *wf_graph_class(const wf_graph *graph, int32_t i) {
  return i >= 0 && i < wf_graph_num_classes(graph) ? graph->classes->names[i] : NULL;
}
