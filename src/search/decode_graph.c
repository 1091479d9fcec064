/* decode_graph.c - checks an fst and makes the search's layout of it. */
#include "search/decode_graph.h"

#include "base/callbacks.h"
#include "base/device.h"
#include "base/interrupt.h"
#include "fst/fst.h"
#include "fstops/scc.h"
#include "graph/tokens.h"
#include "search/graph_device.h"

enum {
  MAX_LABEL = 1 << 26
}; /* tables go up to the largest label: one stray label must not require gigabytes */

static void index_states(wf_graph *graph) {
  const wf_fst_view *view = &graph->view;
  for (uint64_t s = 0; s < view->num_states; s++) {
    uint64_t i = view->arc_off[s];
    while (i < view->arc_off[s + 1] && view->arcs[i].ilabel != 0) i++;
    graph->index[s] = (wf__state_index){(uint32_t)view->arc_off[s], (uint32_t)i};
  }
}

static void index_ctc_states(wf_graph *graph) {
  const wf__ctc_states *ctc = graph->ctc;
  for (uint64_t v = 0; v < ctc->num_states; v++)
    graph->index[v] =
        (wf__state_index){ctc->states[v].first_arc, wf__ctc_first_epsilon(ctc->states[v])};
}

static wf_status make_index(wf_graph *graph, wf_error *err) {
  const uint64_t n = graph->num_states;
  graph->index = wf__alloc(n + 1, sizeof *graph->index);
  if (graph->index == NULL)
    return wf__fail_memory(err, (n + 1) * sizeof *graph->index, "a decoding graph");
  if (graph->ctc != NULL)
    index_ctc_states(graph);
  else
    index_states(graph);
  graph->index[n] = (wf__state_index){(uint32_t)graph->num_arcs, (uint32_t)graph->num_arcs};
  return WF_OK;
}

/* Weights that are too large could make sums of floats -infinity or NaN. An arc of weight +infinity
 * is never taken. */
static wf_status fail_weight(const wf_fst_view *view, uint64_t arc, wf_error *err) {
  return wf__fail(err, WF_ERR_ARGUMENT, "decoding graph: arc %llu has weight %g, beyond 1e20",
                  (unsigned long long)arc, (double)view->arcs[arc].weight);
}

static wf_status check_weights(const wf_fst_view *view, wf_error *err) {
  for (uint64_t i = 0; i < view->num_arcs; i++) {
    float weight = view->arcs[i].weight;
    if (weight == INFINITY || fabsf(weight) <= 1e20f) continue;
    return fail_weight(view, i, err);
  }
  return WF_OK;
}

static int32_t find_largest_label(const wf_fst_view *view) {
  int32_t largest = 0;
  for (uint64_t i = 0; i < view->num_arcs; i++)
    if (view->arcs[i].ilabel > largest) largest = view->arcs[i].ilabel;
  return largest;
}

/* largest: the largest input label. */
static wf_status make_columns(wf_graph *graph, int32_t largest, const int32_t *columns,
                              size_t num_entries, wf_error *err) {
  if (graph->classes != NULL && graph->classes->first_label - 1 > largest)
    largest = graph->classes->first_label - 1; /* added words may have every token */
  if (largest > MAX_LABEL)
    return wf__fail(err, WF_ERR_LIMIT,
                    "input label %d is too large for a decoding graph, at most %d", largest,
                    MAX_LABEL);
  if (columns != NULL && (size_t)largest >= num_entries)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the graph has input label %d, the column table ends at label %lld", largest,
                    (long long)num_entries - 1);
  graph->num_labels = largest + 1;
  graph->columns = wf__alloc((uint64_t)largest + 1, sizeof *graph->columns);
  if (graph->columns == NULL)
    return wf__fail_memory(err, ((uint64_t)largest + 1) * 4, "the column table");
  graph->columns[0] = -1;
  graph->columns_follow = true;
  for (int32_t label = 1; label <= largest; label++) {
    int32_t column = columns != NULL ? columns[label] : label - 1;
    if (column < 0 || column == INT32_MAX)
      return wf__fail(err, WF_ERR_ARGUMENT, "column table: label %d has column %d", label, column);
    graph->columns[label] = column;
    graph->columns_follow = graph->columns_follow && column == label - 1;
    if (column >= graph->min_columns) graph->min_columns = column + 1;
  }
  return WF_OK;
}

/* A CTC graph has a table of tokens on its input side, and a blank: one of the usual names, or the
 * label of the loop at the start. If these differ, the loop is right: a table may have a `<pad>`
 * that nothing uses. The word aligner knows it from the lexicon. */
static void find_blank(wf_graph *graph, bool has_column_table) {
  const wf_symbols *table = wf_fst_isymbols(graph->fst);
  int32_t named = 0, loop = graph->ctc != NULL
                                ? graph->ctc->blank
                                : wf__loop_label(&graph->view, (uint64_t)graph->view.start);
  wf__tokens tokens;
  graph->blank_column = graph->ctc != NULL ? graph->columns[graph->ctc->blank] : -1;
  graph->blank_is_stored = graph->ctc != NULL;
  if (table == NULL || wf__tokens_take(table, &tokens, NULL) != WF_OK) return;
  if (wf__tokens_blank(&tokens, NULL, &named, NULL) != WF_OK) named = 0;
  int32_t given = graph->ctc != NULL       ? graph->ctc->blank
                  : graph->aligner != NULL ? graph->aligner->root->blank
                                           : 0,
          blank = given > 0 && given < graph->num_labels ? given
                  : loop > 0                             ? loop
                                                         : named;
  if (blank <= 0 || blank >= graph->num_labels) return;
  graph->blank_column = graph->columns[blank];
  graph->blank_is_stored = blank == given;
  if (!has_column_table) graph->num_tokens = tokens.num_tokens;
}

/* --- cycles of epsilons with negative cost ----------------------------------------------- */

struct epsilon_check {
  const wf_graph *graph;
  uint32_t *degree; /* epsilon arcs into the state from states not yet peeled */
  double *distance; /* cost of the best epsilon path found that ends here, at most 0 */
  uint32_t *hops;   /* arcs on that path */
  uint32_t *queue;  /* ring of states to relax from */
  uint8_t *queued;
};

/* Epsilon arcs of a state of the fst. With ctc, those of a state that nothing enters do not count:
 * the graph with all arcs has none of them. */
static uint64_t first_epsilon(const wf_graph *graph, uint64_t s) {
  const wf__ctc_states *ctc = graph->ctc;
  if (ctc == NULL) return graph->index[s].first_epsilon;
  return ctc->first_entered[s] < ctc->end[s] ? ctc->first_epsilon[s] : ctc->view.arc_off[s + 1];
}
#define FOR_EPSILONS(graph, s, arc)                                                   \
  for (const wf_arc *arc = (graph)->view.arcs + first_epsilon(graph, s),              \
                    *arc##_end = (graph)->view.arcs + (graph)->view.arc_off[(s) + 1]; \
       arc < arc##_end; arc++)

/* Peels states that no epsilon cycle can lead into; returns how many are left (degree > 0). */
static uint64_t peel(struct epsilon_check *check) {
  uint64_t n = check->graph->view.num_states, head = 0, tail = 0;
  for (uint64_t s = 0; s < n; s++)
    FOR_EPSILONS(check->graph, s, arc) check->degree[arc->nextstate]++;
  for (uint64_t s = 0; s < n; s++)
    if (check->degree[s] == 0) check->queue[tail++] = (uint32_t)s;
  for (; head < tail; head++) FOR_EPSILONS(check->graph, check->queue[head], arc) {
      if (--check->degree[arc->nextstate] == 0) check->queue[tail++] = arc->nextstate;
    }
  return n - tail;
}

/* Label-correcting shortest paths from all remaining states at once, each at distance 0. A path
 * with as many arcs as there are states visits a state twice, at a lower cost. */
static wf_status relax(struct epsilon_check *check, uint64_t left, wf_error *err) {
  const wf_graph *graph = check->graph;
  uint64_t n = graph->view.num_states, head = 0, size = 0;
  for (uint64_t s = 0; s < n; s++)
    if (check->degree[s] > 0) check->queue[size++] = (uint32_t)s, check->queued[s] = 1;
  for (uint64_t step = 0; size > 0; step++) {
    WF__TRY(wf__interrupted_at(step, err));
    uint32_t s = check->queue[head];
    head = head + 1 == n ? 0 : head + 1;
    size--;
    check->queued[s] = 0;
    FOR_EPSILONS(graph, s, arc) {
      uint32_t next = arc->nextstate;
      double distance = check->distance[s] + (double)arc->weight;
      if (check->degree[next] == 0 || distance >= check->distance[next] - 1e-9) continue;
      check->distance[next] = distance;
      check->hops[next] = check->hops[s] + 1;
      if (check->hops[next] > left)
        return wf__fail(
            err, WF_ERR_NEGATIVE_CYCLE,
            "decoding graph: a cycle of epsilon arcs through state %u has negative cost", next);
      if (check->queued[next]) continue;
      check->queued[next] = 1;
      check->queue[(head + size++) % n] = next;
    }
  }
  return WF_OK;
}

static void look_at_epsilons(wf_graph *graph) {
  for (uint64_t s = 0; s < graph->view.num_states; s++) FOR_EPSILONS(graph, s, arc) {
      graph->has_epsilons = true;
      graph->has_negative_epsilons = graph->has_negative_epsilons || arc->weight < 0;
      graph->has_epsilon_words = graph->has_epsilon_words || arc->olabel != 0;
    }
}

static wf_status find_components(wf_graph *graph, wf_error *err) {
  wf__scc scc;
  WF__TRY(wf__scc_find(&graph->view, WF__ARCS_INPUT_EPSILON, &scc, err));
  graph->epsilon_components = scc.component;
  scc.component = NULL;
  wf__scc_free(&scc);
  return WF_OK;
}

static wf_status check_epsilons(wf_graph *graph, wf_error *err) {
  uint64_t n = graph->view.num_states;
  look_at_epsilons(graph);
  if (!graph->has_epsilons) return WF_OK;
  struct epsilon_check check = {.graph = graph,
                                .degree = wf__calloc(n, sizeof(uint32_t)),
                                .distance = wf__calloc(n, sizeof(double)),
                                .hops = wf__calloc(n, sizeof(uint32_t)),
                                .queue = wf__alloc(n, sizeof(uint32_t)),
                                .queued = wf__calloc(n, 1)};
  wf_status status = WF_OK;
  if (check.degree == NULL || check.distance == NULL || check.hops == NULL || check.queue == NULL ||
      check.queued == NULL) {
    status = wf__fail_memory(err, n * 21, "the check for negative epsilon cycles");
  } else {
    uint64_t left = peel(&check);
    graph->has_epsilon_cycles = left > 0;
    if (left > 0 && graph->has_negative_epsilons) status = relax(&check, left, err);
    if (left > 0 && status == WF_OK) status = find_components(graph, err);
  }
  free(check.degree);
  free(check.distance);
  free(check.hops);
  free(check.queue);
  free(check.queued);
  return status;
}

float wf__epsilon_slack(const wf_graph *graph, const wf_decoder_options *options, bool scored) {
  bool negative = graph->has_negative_epsilons ||
                  ((options->word_score > 0 || scored) && graph->has_epsilon_words);
  return graph->has_epsilon_cycles && negative ? 0x1p-10f : 0;
}

static void free_index(wf_graph *graph) {
  if (graph->device >= 0)
    wf__device_found()->graph->index_free(graph->index);
  else
    free(graph->index);
  graph->index = NULL;
  graph->device = -1;
}

/* --- public ------------------------------------------------------------------------------ */

static void take_fst(wf_graph *graph, wf_fst *fst) {
  graph->fst = fst;
  graph->view = wf_fst_get_view(fst);
  graph->start = (uint32_t)graph->view.start;
  graph->num_states = graph->first_added_state = graph->view.num_states;
  graph->num_arcs = graph->first_added_arc = graph->view.num_arcs;
}

/* The blank of a token graph; 0: the fst reads frames. One that no builder has marked has a table of
 * tokens with a blank, which no arc reads: such as a token graph that was composed with a language
 * model. `closed`: the fst without the arcs of classes. */
static int32_t blank_of_token_graph(const wf_graph *graph, const wf_fst *fst,
                                    const wf_fst *closed) {
  const wf_fst_view view = wf_fst_get_view(closed);
  const wf_symbols *table = wf_fst_isymbols(fst);
  int32_t blank = wf__fst_ctc_blank(fst);
  wf__tokens tokens;
  if (blank != 0 || table == NULL || view.start < 0) return blank;
  if (wf__loop_label(&view, (uint64_t)view.start) != 0) return 0; /* another label is the blank */
  if (graph->aligner != NULL) blank = graph->aligner->root->blank;
  if (blank == 0 && (wf__tokens_take(table, &tokens, NULL) != WF_OK ||
                     wf__tokens_blank(&tokens, NULL, &blank, NULL) != WF_OK))
    return 0;
  for (uint64_t a = 0; a < view.num_arcs; a++)
    if (view.arcs[a].ilabel == blank) return 0;
  return blank;
}

typedef WF__VEC(uint32_t) place_vec;
enum { ARCS_IN_RANGE = 2 }; /* of labels, on average at least */

/* Indexes the `count` arcs of a wide state by ranges of labels. */
static wf_status index_labels(const wf_arc *arcs, uint32_t count, place_vec *places,
                              wf__wide_state *state, wf_error *err) {
  const uint32_t first = (uint32_t)arcs[0].ilabel, last = (uint32_t)arcs[count - 1].ilabel;
  state->shift = 0;
  while ((last >> state->shift) - (first >> state->shift) >= count / ARCS_IN_RANGE) state->shift++;
  const uint32_t num_ranges = (last >> state->shift) - (first >> state->shift) + 1;
  state->places = places->size;
  WF__TRY(wf__vec_grow(places, (uint64_t)num_ranges + 1, "a decoding graph", err));
  for (uint32_t a = 0, k = 0; k <= num_ranges; k++) {
    while (a < count && ((uint32_t)arcs[a].ilabel >> state->shift) - (first >> state->shift) < k)
      a++;
    places->data[places->size++] = a;
  }
  return WF_OK;
}

static wf_status find_wide_states(wf_graph *graph, wf_error *err) {
  const wf__ctc_states *ctc = graph->ctc;
  uint64_t shared = 0;
  WF__VEC(wf__wide_state) wide = {0};
  place_vec places = {0};
  for (uint64_t g = 0; g < ctc->view.num_states; g++) {
    if (wf__ctc_num_tokens(ctc, (uint32_t)g) < WF__WIDE_ARCS) continue;
    wf__wide_state state = {.owner = (uint32_t)g, .least = INFINITY, .most = -INFINITY};
    for (uint64_t a = ctc->view.arc_off[g]; a < ctc->first_epsilon[g]; a++) {
      const float weight = ctc->view.arcs[a].weight;
      if (weight == INFINITY) continue;
      if (weight < state.least) state.least = weight;
      if (weight > state.most) state.most = weight;
    }
    if (state.least == INFINITY) state.least = state.most = 0;
    const uint64_t num_tokens = wf__ctc_num_tokens(ctc, (uint32_t)g);
    if (ctc->first[g] >= ctc->first_wide) { /* it has no epsilon arcs */
      graph->num_wide_arcs += num_tokens;
      shared += num_tokens * (ctc->end[g] - ctc->first[g]);
    }
    wf_status status = index_labels(ctc->view.arcs + ctc->view.arc_off[g], (uint32_t)num_tokens,
                                    &places, &state, err);
    if (status == WF_OK) status = wf__vec_push(&wide, state, "a decoding graph", err);
    graph->wide = wide.data;
    graph->num_wide = wide.size;
    graph->wide_places = places.data;
    WF__TRY(status);
  }
  graph->num_wide_others = ctc->num_arcs - ctc->first_wide_arc - shared;
  return WF_OK;
}

/* Added words may end with any token. */
static wf_status make_ctc_states(wf_graph *graph, int32_t blank, wf_error *err) {
  const wf__classes *classes = graph->classes;
  if (classes == NULL) return wf__ctc_states_create(graph->fst, blank, NULL, &graph->ctc, err);
  uint32_t *targets = wf__alloc(classes->sites.size, sizeof *targets);
  if (targets == NULL)
    return wf__fail_memory(err, classes->sites.size * sizeof *targets, "word classes");
  for (uint64_t i = 0; i < classes->sites.size; i++) targets[i] = classes->sites.data[i].target;
  const wf__ctc_entries entries = {targets, classes->sites.size, classes->first_label};
  const wf_status status = wf__ctc_states_create(graph->fst, blank, &entries, &graph->ctc, err);
  free(targets);
  return status;
}

static void count_site_arcs(wf_graph *graph) {
  wf__classes *classes = graph->classes;
  classes->num_arcs = 0;
  for (uint64_t i = 0; i < classes->sites.size; i++)
    classes->num_arcs += wf__site_end(graph->ctc, &classes->sites.data[i]) -
                         wf__site_first(graph->ctc, &classes->sites.data[i]);
}

static wf_status look_at_ctc(wf_graph *graph, const wf_fst *fst, int32_t blank,
                             int32_t *out_largest, wf_error *err) {
  wf_fst *ordered;
  WF__TRY(wf__ctc_order_arcs(fst, &ordered, err));
  take_fst(graph, ordered);
  if (graph->classes != NULL) WF__TRY(wf__classes_number(graph->classes, &graph->view, blank, err));
  WF__TRY(check_weights(&graph->view, err));
  WF__TRY(make_ctc_states(graph, blank, err));
  if (graph->classes != NULL) count_site_arcs(graph);
  graph->start = graph->ctc->start;
  graph->num_states = graph->first_added_state = graph->ctc->num_states;
  graph->num_arcs = graph->first_added_arc = graph->ctc->num_arcs;
  *out_largest = graph->ctc->num_labels - 1;
  WF__TRY(find_wide_states(graph, err));
  WF__TRY(make_index(graph, err));
  WF__TRY(wf__interrupted(err));
  return check_epsilons(graph, err);
}

/* Orders the arcs, and looks at them. */
static wf_status look_at_arcs(wf_graph *graph, const wf_fst *given, int32_t *out_largest,
                              wf_error *err) {
  wf_fst *fst;
  WF__TRY(wf_epsilons_last(given, &fst, err));
  take_fst(graph, fst);
  if (graph->classes != NULL) WF__TRY(wf__classes_number(graph->classes, &graph->view, 0, err));
  WF__TRY(wf__interrupted(err));
  WF__TRY(check_weights(&graph->view, err));
  WF__TRY(make_index(graph, err));
  WF__TRY(wf__interrupted(err));
  *out_largest = find_largest_label(&graph->view);
  return check_epsilons(graph, err);
}

/* The same on the GPU that has the fst. *out_done: false if the CPU must do it, because arcs must
 * be ordered or the GPU has no room; the log says so. */
static wf_status look_on_gpu(wf_graph *graph, const wf_fst *fst, int32_t *out_largest,
                             bool *out_done, wf_error *err) {
  const wf_fst_view view = wf_fst_get_view(fst);
  wf__graph_facts facts;
  wf_error own = {0};
  const wf_status status =
      wf__device_found()->graph->look(&view, wf__fst_device(fst), &facts, &graph->index, &own);
  if (status == WF_ERR_MEMORY) {
    wf__log(WF_LOG_WARNING, "decoding graph: on the CPU: %s", own.message);
    return WF_OK;
  }
  if (status != WF_OK) return wf__fail(err, status, "%s", own.message);
  graph->device = wf__fst_device(fst);
  *out_done = facts.is_unordered == 0;
  if (!*out_done) {
    wf__log(WF_LOG_INFO, "decoding graph: on the CPU: arcs are ordered there, epsilons last");
    free_index(graph);
    return WF_OK;
  }
  take_fst(graph, wf_fst_ref(fst));
  if (facts.bad_arc != WF__NO_BAD_ARC) return fail_weight(&view, facts.bad_arc, err);
  *out_largest = (int32_t)facts.largest_label;
  graph->has_epsilons = facts.has_epsilons != 0;
  graph->has_negative_epsilons = facts.has_negative_epsilons != 0;
  graph->has_epsilon_words = facts.has_epsilon_words != 0;
  return facts.num_acyclic < view.num_states ? check_epsilons(graph, err) : WF_OK;
}

static wf_status look(wf_graph *graph, const wf_fst *fst, int32_t *out_largest, wf_error *err) {
  bool done = false;
  wf_fst *closed;
  WF__TRY(wf__classes_find(fst, &graph->classes, &closed, err));
  const wf_fst *used = closed != NULL ? closed : fst;
  const int32_t blank = blank_of_token_graph(graph, fst, used);
  wf_status status = WF_OK;
  if (blank == 0 && closed == NULL && wf__fst_device(fst) >= 0)
    status = look_on_gpu(graph, fst, out_largest, &done, err);
  if (status == WF_OK && blank != 0)
    status = look_at_ctc(graph, used, blank, out_largest, err);
  else if (status == WF_OK && !done)
    status = look_at_arcs(graph, used, out_largest, err);
  wf_fst_free(closed);
  return status;
}

static wf_status fill(wf_graph *graph, const wf_fst *fst, const int32_t *columns,
                      size_t num_entries, wf_error *err) {
  wf_fst_view view = wf_fst_get_view(fst);
  if (view.start < 0) return wf__fail(err, WF_ERR_ARGUMENT, "decoding graph: the fst is empty");
  if (view.num_arcs >= UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "decoding graph: %llu arcs, at most 2^32-2",
                    (unsigned long long)view.num_arcs);
  uint64_t boundaries;
  int32_t largest = 0;
  if (wf__fst_boundaries(fst, &boundaries) != NULL)
    WF__TRY(wf_word_aligner_from_fst(fst, &graph->aligner, err));
  WF__TRY(look(graph, fst, &largest, err));
  WF__TRY(wf__interrupted(err));
  WF__TRY(make_columns(graph, largest, columns, num_entries, err));
  find_blank(graph, columns != NULL);
  if (graph->classes != NULL)
    wf__classes_separate(graph->classes, &graph->view, wf_fst_isymbols(fst), graph->aligner);
  return WF_OK;
}

wf_status wf_graph_create(const wf_fst *fst, const int32_t *columns, size_t num_columns_entries,
                          wf_graph **out, wf_error *err) {
  *out = NULL;
  wf_graph *graph = wf__calloc(1, sizeof *graph);
  if (graph == NULL) return wf__fail_memory(err, sizeof *graph, "a decoding graph");
  atomic_init(&graph->refs, 1);
  graph->device = -1;
  wf_status status = fill(graph, fst, columns, num_columns_entries, err);
  if (status != WF_OK) {
    wf_graph_free(graph);
    return status;
  }
  *out = graph;
  return WF_OK;
}

const wf_fst *wf_graph_fst(const wf_graph *graph) { return graph->fst; }
const wf_word_aligner *wf_graph_word_aligner(const wf_graph *graph) { return graph->aligner; }
int32_t wf_graph_min_columns(const wf_graph *graph) { return graph->min_columns; }

wf_graph *wf_graph_ref(const wf_graph *graph) {
  wf_graph *shared = (wf_graph *)(uintptr_t)graph;
  atomic_fetch_add(&shared->refs, 1);
  return shared;
}

void wf_graph_free(wf_graph *graph) {
  if (graph == NULL || atomic_fetch_sub(&graph->refs, 1) != 1) return;
  wf_word_aligner_free(graph->aligner);
  if (graph->base != NULL) { /* everything else belongs to the base */
    for (int32_t c = 0; c < graph->classes->count && graph->added != NULL; c++)
      wf__phrase_tree_free(graph->added[c].tree);
    free(graph->added);
    wf_graph_free(graph->base);
    free(graph);
    return;
  }
  wf__classes_free(graph->classes);
  wf__ctc_states_free(graph->ctc);
  free(graph->wide);
  free(graph->wide_places);
  wf_fst_free(graph->fst);
  free_index(graph);
  free(graph->columns);
  free(graph->epsilon_components);
  free(graph);
}
