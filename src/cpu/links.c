/* links.c - a closed frame of the search as tokens and links of the lattice's history.
 *
 * Emitting links were noted when their candidates were met; epsilon links are looked up now that the costs stand. A link whose excess alone is above
 * lattice_beam can be in no lattice and is dropped at once. */
#include "cpu/links.h"

#include <math.h>

#define NONE UINT32_MAX

/* Cost of a candidate above the token it leads to. Negative only within the slack of the closure. */
static float excess(float cost, float target_cost) { return cost > target_cost ? cost - target_cost : 0; }

static wf_status add_emitting(wf__search *search, wf_error *err) {
  wf__link_vec *links = &search->history.links;
  WF__TRY(wf__vec_grow(links, search->candidates.size, "the lattice", err));
  for (uint64_t i = 0; i < search->candidates.size; i++) {
    wf__link link = search->candidates.data[i];
    link.excess = excess(link.excess, search->tokens.data[link.to].cost);
    if (link.excess <= search->history.beam) links->data[links->size++] = link;
  }
  return WF_OK;
}

/* Epsilon arcs behind each token since the frame's score, along the way it came. */
static wf_status count_depths(wf__search *search, wf_error *err) {
  const wf__token *tokens = search->tokens.data;
  uint64_t size = search->tokens.size;
  search->depths.size = 0;
  WF__TRY(wf__vec_grow(&search->depths, size, "the lattice", err));
  uint32_t *depths = search->depths.data;
  for (uint64_t i = 0; i < size; i++) depths[i] = tokens[i].round == 0 ? 0 : NONE;
  for (uint64_t i = 0; i < size; i++) {
    uint32_t at = (uint32_t)i, steps = 0;
    for (; depths[at] == NONE; at = tokens[at].prev)
      if (++steps > size) return wf__fail(err, WF_ERR_NEGATIVE_CYCLE, "epsilon arcs of negative cost go round");
    uint32_t depth = depths[at] + steps;
    for (at = (uint32_t)i; depths[at] == NONE; at = tokens[at].prev) depths[at] = depth--;
  }
  return WF_OK;
}

/* May the link be in an acyclic lattice? Only between states that an epsilon cycle goes through both does the direction matter. */
static bool leads_on(const wf__search *search, const wf__link *link) {
  const uint32_t *components = search->graph->epsilon_components;
  if (components == NULL || components[search->tokens.data[link->from].state] != components[search->tokens.data[link->to].state]) return true;
  return search->depths.data[link->from] < search->depths.data[link->to];
}

/* Epsilon links out of one token. */
static wf_status find_epsilons(wf__search *search, uint32_t from, float cutoff, wf_error *err) {
  const wf_graph *graph = search->graph;
  wf__token source = search->tokens.data[from];
  for (uint32_t a = graph->index[source.state].first_epsilon; a < graph->index[source.state + 1].first_arc; a++) {
    const wf_arc *arc = &graph->view.arcs[a];
    float cost = source.cost + arc->weight;
    if (arc->olabel != 0) cost -= search->options.word_score;
    if (cost > cutoff) continue;
    uint32_t to = wf__search_find(search, arc->nextstate);
    if (to == NONE) continue;
    wf__link link = {from, to, a, excess(cost, search->tokens.data[to].cost)};
    if (link.excess <= search->history.beam && leads_on(search, &link)) WF__TRY(wf__vec_push(&search->epsilons, link, "the lattice", err));
  }
  return WF_OK;
}

/* Puts the epsilon links, sorted by source, into topological order (Kahn 1962): those of a token come when all links into it have. */
static wf_status sort_epsilons(wf__search *search, wf_error *err) {
  const wf__link_vec *epsilons = &search->epsilons;
  wf__link_vec *links = &search->history.links;
  uint64_t size = search->tokens.size, tail = 0;
  search->degrees.size = search->firsts.size = search->queue.size = 0;
  WF__TRY(wf__vec_grow(&search->degrees, size, "the lattice", err));
  WF__TRY(wf__vec_grow(&search->firsts, size + 1, "the lattice", err));
  WF__TRY(wf__vec_grow(&search->queue, size, "the lattice", err));
  WF__TRY(wf__vec_grow(links, epsilons->size, "the lattice", err));
  uint32_t *degrees = search->degrees.data, *queue = search->queue.data;
  uint64_t *firsts = search->firsts.data;
  for (uint64_t i = 0; i < size; i++) degrees[i] = 0;
  for (uint64_t i = 0, token = 0; token <= size; token++) {
    while (i < epsilons->size && epsilons->data[i].from < token) degrees[epsilons->data[i++].to]++;
    firsts[token] = i;
  }
  for (uint64_t i = 0; i < size; i++)
    if (degrees[i] == 0 && firsts[i] < firsts[i + 1]) queue[tail++] = (uint32_t)i;
  for (uint64_t head = 0; head < tail; head++) {
    for (uint64_t i = firsts[queue[head]]; i < firsts[queue[head] + 1]; i++) {
      wf__link link = epsilons->data[i];
      links->data[links->size++] = link;
      if (--degrees[link.to] == 0 && firsts[link.to] < firsts[link.to + 1]) queue[tail++] = link.to;
    }
  }
  return WF_OK;
}

static wf_status add_epsilons(wf__search *search, float cutoff, wf_error *err) {
  if (!search->graph->has_epsilons) return WF_OK;
  search->epsilons.size = 0;
  if (search->graph->epsilon_components != NULL) WF__TRY(count_depths(search, err));
  for (uint64_t i = 0; i < search->tokens.size; i++) WF__TRY(find_epsilons(search, (uint32_t)i, cutoff, err));
  return search->epsilons.size > 0 ? sort_epsilons(search, err) : WF_OK;
}

wf_status wf__search_remember(wf__search *search, float cutoff, wf_error *err) {
  wf__history *history = &search->history;
  uint64_t size = search->tokens.size;
  WF__TRY(wf__history_begin_frame(history, err));
  WF__TRY(add_emitting(search, err));
  wf__history_begin_epsilons(history);
  WF__TRY(add_epsilons(search, cutoff, err));
  WF__TRY(wf__vec_grow(&history->tokens, size, "the lattice", err));
  for (uint64_t i = 0; i < size; i++) history->tokens.data[history->tokens.size++] = (wf__past_token){search->tokens.data[i].state, 0};
  if ((history->frames.size - 1) % (uint64_t)search->options.lattice_prune_interval != 0) return WF_OK;
  return wf__history_prune(history, err);
}

wf_status wf__search_endings(wf__search *search, bool final, wf_error *err) {
  wf__history *history = &search->history;
  uint64_t first = history->frames.data[history->frames.size - 1].first_token, size = history->tokens.size - first;
  const float *final_cost = search->graph->view.final_cost;
  float least = INFINITY;
  history->endings.size = 0;
  WF__TRY(wf__vec_grow(&history->endings, size, "the lattice", err));
  float *endings = history->endings.data;
  for (uint64_t i = 0; i < size; i++) endings[i] = INFINITY;
  for (uint64_t i = 0; i < search->tokens.size; i++) {
    const wf__token *token = &search->tokens.data[i];
    float cost = final ? token->cost + final_cost[token->state] : token->cost;
    endings[search->died ? token->prev - search->trace_base : i] = cost;
    if (cost < least) least = cost;
  }
  for (uint64_t i = 0; i < size; i++)
    if (endings[i] != INFINITY) endings[i] -= least;
  history->endings.size = size;
  return WF_OK;
}
