/* links.c - a closed frame of the search as tokens and links of the lattice's history.
 *
 * The search recorded the candidates of each token. Now that the tokens' costs are final, the
 * candidates become links. A link whose excess alone is above lattice_beam can be in no lattice
 * and is dropped at once. */
#include "search/frame/links.h"

#include <string.h>

#define NONE UINT32_MAX

/* Cost of a candidate above the token it leads to. Negative only within the slack of the closure.
 */
static float excess(float cost, float target_cost) {
  return cost > target_cost ? cost - target_cost : 0;
}

static wf_status add_emitting(wf__search *search, float cutoff, wf_error *err) {
  uint64_t size = search->links.candidates.size;
  WF__TRY(wf__vec_grow(&search->base.history.links, size, "the lattice", err));
  wf__link *out = search->base.history.links.data + search->base.history.links.size;
  const uint32_t *moved = search->links.moved.size > 0 ? search->links.moved.data : NULL;
  float beam = search->base.history.beam;
  for (uint64_t i = 0; i < size; i++) {
    wf__link link = search->links.candidates.data[i];
    bool let_in = link.excess <= cutoff;
    if (moved != NULL) link.to = moved[link.to];
    link.excess = excess(link.excess, search->tokens.data[link.to].cost);
    *out = link; /* without a branch, which would be unpredictable */
    out += let_in && link.excess <= beam;
  }
  search->base.history.links.size = (uint64_t)(out - search->base.history.links.data);
  return WF_OK;
}

/* Number of epsilon arcs on each token's path since the frame's score. */
static wf_status count_depths(wf__search *search, wf_error *err) {
  const wf__token *tokens = search->tokens.data;
  uint64_t size = search->tokens.size;
  search->links.depths.size = 0;
  WF__TRY(wf__vec_grow(&search->links.depths, size, "the lattice", err));
  uint32_t *depths = search->links.depths.data;
  for (uint64_t i = 0; i < size; i++) depths[i] = tokens[i].round == 0 ? 0 : NONE;
  for (uint64_t i = 0; i < size; i++) {
    uint32_t at = (uint32_t)i, steps = 0;
    for (; depths[at] == NONE; at = tokens[at].prev)
      if (++steps > size) return wf__fail_cycle(err);
    uint32_t depth = depths[at] + steps;
    for (at = (uint32_t)i; depths[at] == NONE; at = tokens[at].prev) depths[at] = depth--;
  }
  return WF_OK;
}

/* Can the link be in an acyclic lattice? The direction matters only between states of the same
 * epsilon cycle. */
static bool leads_on(const wf__search *search, const wf__link *link) {
  const wf_graph *graph = search->base.graph;
  uint32_t from = search->tokens.data[link->from].state, to = search->tokens.data[link->to].state;
  if (graph->epsilon_components == NULL || wf__is_added(graph, from) || wf__is_added(graph, to) ||
      wf__epsilon_component(graph, from) != wf__epsilon_component(graph, to))
    return true;
  return search->links.depths.data[link->from] < search->links.depths.data[link->to];
}

/* Keeps the epsilon candidates of each token's last visit by the closure, at the token's final
 * cost: one for each arc, still in runs by source. */
static void choose_epsilons(wf__search *search) {
  wf__link *epsilons = search->links.epsilons.data;
  uint64_t num_rounds = search->links.rounds.size, kept = 0;
  for (uint64_t round = 0; round < num_rounds; round++) {
    uint64_t end =
        round + 1 < num_rounds ? search->links.rounds.data[round + 1] : search->links.epsilons.size;
    for (uint64_t i = search->links.rounds.data[round]; i < end; i++) {
      wf__link link = epsilons[i];
      if (search->tokens.data[link.from].round != round)
        continue; /* its cost decreased in a later round */
      link.excess = excess(link.excess, search->tokens.data[link.to].cost);
      if (link.excess <= search->base.history.beam && leads_on(search, &link))
        epsilons[kept++] = link;
    }
  }
  search->links.epsilons.size = kept;
}

static wf_status add_epsilons(wf__search *search, wf_error *err) {
  if (!search->base.graph->has_epsilons) return WF_OK;
  if (search->base.graph->epsilon_components != NULL) WF__TRY(count_depths(search, err));
  choose_epsilons(search);
  if (search->links.epsilons.size > UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "2^32 epsilon arcs in a frame");
  return wf__history_add_epsilons(&search->base.history, search->links.epsilons.data,
                                  search->links.epsilons.size, search->tokens.size, err);
}

/* Keeps the scores that the frame's links read, for streams. */
static wf_status keep_loglikes(wf__search *search, wf_error *err) {
  wf__history *history = &search->base.history;
  const wf_graph *graph = search->base.graph;
  uint64_t first_epsilon = history->frames.data[history->frames.size - 1].first_epsilon;
  WF__TRY(wf__vec_grow(&history->loglikes, history->links.size - history->loglikes.size,
                       "the lattice", err));
  for (uint64_t i = history->loglikes.size; i < history->links.size; i++) {
    const wf__link *link = &history->links.data[i];
    const int32_t label =
        wf__label_read(graph, link->arc, search->tokens.data[link->to].state, i >= first_epsilon);
    history->loglikes.data[i] = label == 0 ? 0
                                           : wf__loglike(&search->base.options, search->step.scores,
                                                         search->step.frame, graph->columns[label]);
  }
  history->loglikes.size = history->links.size;
  return WF_OK;
}

wf_status wf__search_keep_links(wf__search *search, float cutoff, wf_error *err) {
  wf__history *history = &search->base.history;
  uint64_t size = search->tokens.size;
  WF__TRY(wf__history_begin_frame(history, search->base.path.num_decoded, err));
  WF__TRY(add_emitting(search, cutoff, err));
  wf__history_begin_epsilons(history);
  WF__TRY(add_epsilons(search, err));
  if (history->keeps_loglikes) WF__TRY(keep_loglikes(search, err));
  WF__TRY(wf__vec_grow(&history->tokens, size, "the lattice", err));
  for (uint64_t i = 0; i < size; i++)
    history->tokens.data[history->tokens.size++] =
        (wf__past_token){search->tokens.data[i].state, 0};
  if (search->base.scoring.scorer != NULL) {
    WF__TRY(wf__vec_grow(&history->contexts, size, "the lattice", err));
    memcpy(history->contexts.data + history->contexts.size, search->contexts.data,
           size * sizeof *search->contexts.data);
    history->contexts.size += size;
  }
  if ((history->frames.size - 1) % (uint64_t)search->base.options.lattice_prune_interval != 0)
    return WF_OK;
  return wf__history_prune(history, err);
}
