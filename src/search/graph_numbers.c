/* graph_numbers.c - the states and arcs of a graph by number: those of a CTC graph that keeps its
 * token graph, and those of words added at run time, of which memory has one copy. */
#include <math.h>

#include "search/decode_graph.h"

/* --- added words ------------------------------------------------------------------------- */

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

/* The state `own` of a tree's copy, whose numbers begin here. */
struct copy {
  uint32_t site, own, first_state, first_arc;
};

static struct copy copy_at(const wf__added *added, uint32_t site, uint32_t own) {
  return (struct copy){site, own, added->first_state + site * (uint32_t)added->tree->num_states,
                       added->first_arc + site * (uint32_t)added->tree->num_arcs};
}
static struct copy copy_of(const wf__added *added, uint32_t state) {
  const uint32_t size = (uint32_t)added->tree->num_states, place = state - added->first_state;
  return copy_at(added, place / size, place % size);
}

static wf__arc_run ctc_run(const wf__phrase_tree *tree, struct copy copy, bool epsilons) {
  const wf__ctc_states *ctc = tree->ctc;
  const wf__ctc_state state = ctc->states[copy.own];
  const bool passed = state.none == WF__CTC_NONE;
  wf__arc_run run = {.arcs = tree->view.arcs + state.arcs,
                     .first = copy.first_arc + state.first_arc,
                     .shift = copy.first_state,
                     .targets = ctc->targets + state.arcs,
                     .owner = copy.first_state + ctc->first[state.owner],
                     .held = state.held,
                     .none = passed ? WF__CTC_NONE : copy.first_state + state.none,
                     .stay = passed ? WF__CTC_NONE : copy.first_state + state.stay};
  run.end = run.first + state.count;
  if (!epsilons) return run;
  run.first = copy.first_arc + wf__ctc_first_epsilon(state);
  run.end = run.first + state.num_epsilons;
  run.held = -1;
  return run;
}

wf__arc_run wf__added_run(const wf_graph *graph, uint32_t state, bool epsilons) {
  const wf__added *added = &graph->added[class_of_state(graph, state)];
  const wf__phrase_tree *tree = added->tree;
  const struct copy copy = copy_of(added, state);
  if (tree->ctc != NULL) return ctc_run(tree, copy, epsilons);
  const uint32_t middle = tree->first_epsilon[copy.own],
                 first = epsilons ? middle : (uint32_t)tree->view.arc_off[copy.own],
                 end = epsilons ? (uint32_t)tree->view.arc_off[copy.own + 1] : middle;
  return (wf__arc_run){.arcs = tree->view.arcs + first,
                       .first = copy.first_arc + first,
                       .end = copy.first_arc + end,
                       .shift = copy.first_state,
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
    arc.nextstate = added->first_state + site->rank * (uint32_t)added->tree->num_states;
    return arc;
  }
  int32_t c = class_of_arc(graph, a);
  const wf__added *added = &graph->added[c];
  uint32_t size = (uint32_t)added->tree->num_arcs, rank = (a - added->first_arc) / size;
  wf_arc arc = added->tree->view.arcs[(a - added->first_arc) % size];
  if (arc.nextstate == 0)
    arc.nextstate = wf__site_at(graph, c, rank)->target;
  else
    arc.nextstate += added->first_state + rank * (uint32_t)added->tree->num_states;
  return arc;
}

wf_arc wf__opened_arc(const wf_graph *graph, int32_t held, uint32_t a, wf_arc arc) {
  const wf__class_site *site = wf__class_site_of(graph->classes, a);
  if (site == NULL || graph->added[site->word_class].tree == NULL) return arc;
  const wf__added *added = &graph->added[site->word_class];
  arc.weight = site->weight;
  arc.nextstate =
      copy_at(added, site->rank, 0).first_state + wf__ctc_entered(added->tree->ctc, 0, held);
  return arc;
}

wf_arc wf__added_ctc_arc(const wf_graph *graph, uint32_t state, uint32_t a) {
  const int32_t c = class_of_state(graph, state);
  const wf__added *added = &graph->added[c];
  const struct copy copy = copy_of(added, state);
  const wf__ctc_state *at = &added->tree->ctc->states[copy.own];
  wf_arc arc = wf__ctc_arc_at(added->tree->ctc, copy.own, a - copy.first_arc - at->first_arc);
  if (wf__leaves_tree(added->tree, arc))
    arc.nextstate = wf__ctc_entered(graph->ctc, wf__site_at(graph, c, copy.site)->target, at->held);
  else
    arc.nextstate += copy.first_state;
  return arc;
}

uint32_t wf__added_source(const wf_graph *graph, uint32_t a) {
  const wf__added *added = &graph->added[class_of_arc(graph, a)];
  const wf__ctc_states *ctc = added->tree->ctc;
  const uint32_t size = (uint32_t)added->tree->num_arcs, place = a - added->first_arc;
  return copy_at(added, place / size, 0).first_state + wf__ctc_state_of(ctc, place % size);
}

int32_t wf__added_held(const wf_graph *graph, uint32_t state) {
  const wf__added *added = &graph->added[class_of_state(graph, state)];
  return added->tree->ctc->states[copy_of(added, state).own].held;
}

/* --- CTC states -------------------------------------------------------------------------- */

uint32_t wf__ctc_source(const wf_graph *graph, uint32_t a) {
  if (a >= graph->first_added_arc) return wf__added_source(graph, a);
  return wf__ctc_state_of(graph->ctc, a);
}

wf_arc wf__ctc_arc(const wf_graph *graph, uint32_t v, uint32_t a) {
  const wf__ctc_states *ctc = graph->ctc;
  const wf__ctc_state state = ctc->states[v];
  const uint32_t place = a - state.first_arc, stays = wf__ctc_num_stays(state);
  const wf_arc arc = wf__ctc_arc_at(ctc, v, place);
  if (wf__likely(graph->added == NULL) || place < state.count + stays || arc.weight != INFINITY)
    return arc;
  return wf__opened_arc(graph, state.held, state.arcs + place - stays, arc);
}
