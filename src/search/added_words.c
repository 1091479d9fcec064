/* added_words.c - graphs with words added at run time: made from a base and phrase trees,
 * addressed by number, converted to an fst. */
#include <math.h>
#include <string.h>

#include "search/decode_graph.h"
#include "fst/fst.h"

/* --- by number --------------------------------------------------------------------------- */

static uint32_t num_sites(const wf_graph *graph, int32_t c) {
  return graph->classes->first_ranked[c + 1] - graph->classes->first_ranked[c];
}

static const wf__class_site *site_at(const wf_graph *graph, int32_t c, uint32_t rank) {
  return &graph->classes->sites
              .data[graph->classes->ranked[graph->classes->first_ranked[c] + rank]];
}

/* The class whose tree copies contain the state (or arc): the last class with words that starts at
 * or before it. */
static int32_t class_of_state(const wf_graph *graph, uint32_t state) {
  int32_t c = graph->classes->count - 1;
  while (graph->added[c].tree == NULL || graph->added[c].first_state > state) c--;
  return c;
}
static int32_t class_of_arc(const wf_graph *graph, uint32_t a) {
  int32_t c = graph->classes->count - 1;
  while (graph->added[c].tree == NULL || graph->added[c].first_arc > a) c--;
  return c;
}

wf__arc_run wf__added_run(const wf_graph *graph, uint32_t state, bool epsilons) {
  const wf__added *added = &graph->added[class_of_state(graph, state)];
  const wf__phrase_tree *tree = added->tree;
  uint32_t size = (uint32_t)tree->view.num_states, site = (state - added->first_state) / size,
           own = (state - added->first_state) % size;
  uint32_t first_arc = added->first_arc + site * (uint32_t)tree->view.num_arcs,
           middle = tree->first_epsilon[own];
  uint32_t first = epsilons ? middle : (uint32_t)tree->view.arc_off[own],
           end = epsilons ? (uint32_t)tree->view.arc_off[own + 1] : middle;
  return (wf__arc_run){.arcs = tree->view.arcs + first,
                       .first = first_arc + first,
                       .end = first_arc + end,
                       .shift = added->first_state + site * size,
                       .owner = state,
                       .held = -1};
}

static int compare_sites(const void *a, const void *b) {
  uint32_t x = ((const wf__class_site *)a)->arc, y = ((const wf__class_site *)b)->arc;
  return (x > y) - (x < y);
}

const wf__class_site *wf__class_site_of(const wf__classes *classes, uint32_t arc) {
  const wf__class_site wanted = {.arc = arc};
  return bsearch(&wanted, classes->sites.data, classes->sites.size, sizeof wanted, compare_sites);
}

wf_arc wf__added_arc(const wf_graph *graph, uint32_t a) {
  if (a < graph->first_added_arc) {
    wf_arc arc = graph->view.arcs[a];
    const wf__class_site *site = wf__class_site_of(graph->classes, a);
    if (site == NULL || graph->added[site->word_class].tree == NULL)
      return arc; /* an ordinary arc of weight +infinity */
    const wf__added *added = &graph->added[site->word_class];
    arc.weight = site->weight;
    arc.nextstate = added->first_state + site->rank * (uint32_t)added->tree->view.num_states;
    return arc;
  }
  int32_t c = class_of_arc(graph, a);
  const wf__added *added = &graph->added[c];
  uint32_t size = (uint32_t)added->tree->view.num_arcs, rank = (a - added->first_arc) / size;
  wf_arc arc = added->tree->view.arcs[(a - added->first_arc) % size];
  if (arc.nextstate == 0)
    arc.nextstate = site_at(graph, c, rank)->target;
  else
    arc.nextstate += added->first_state + rank * (uint32_t)added->tree->view.num_states;
  return arc;
}

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
  if (num_sites(graph, c) == 0)
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
                    "added words: the graph has neither topology compact nor transducer: states "
                    "before a class do not all loop on one label, the blank");
  *out = c;
  return WF_OK;
}

/* Updates the graph's epsilon properties. For other graphs decode_graph.c computes them from the
 * arcs. */
static void add_class_properties(wf_graph *graph, int32_t c) {
  const wf__phrase_tree *tree = graph->added[c].tree;
  graph->has_negative_epsilons = graph->has_negative_epsilons || tree->has_negative_epsilons;
  graph->has_epsilon_words = graph->has_epsilon_words || tree->has_epsilon_words;
  for (uint32_t rank = 0; rank < num_sites(graph, c); rank++)
    graph->has_negative_epsilons =
        graph->has_negative_epsilons || site_at(graph, c, rank)->weight < 0;
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
    graph->num_states += num_sites(graph, c) * added->tree->view.num_states;
    graph->num_arcs += num_sites(graph, c) * added->tree->view.num_arcs;
    if (graph->num_states > WF__MAX_STATES || graph->num_arcs >= UINT32_MAX)
      return wf__fail(err, WF_ERR_LIMIT,
                      "added words: %llu states in each of %u places of class %.80s make more than "
                      "2^31 states or 2^32 arcs; add fewer words, or prune the language model",
                      (unsigned long long)added->tree->view.num_states, num_sites(graph, c),
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

static wf_status add_phrases(const wf_graph *graph, int32_t c, const wf_added_phrase *phrases,
                             size_t count, wf_graph **out, wf_error *err) {
  const wf__classes *classes = graph->classes;
  wf__phrase_tree *tree;
  WF__TRY(wf__phrase_tree_create(phrases, count, graph->num_labels, classes->blank,
                                 classes->separator, !classes->once, &tree, err));
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
  if (graph->ctc != NULL) return wf__ctc_explicit(graph->ctc, graph->fst, out, err);
  if (graph->added == NULL) {
    *out = wf_fst_ref(graph->fst);
    return WF_OK;
  }
  wf__csr csr = {0};
  wf_status status = write_states(graph, &csr, err);
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
