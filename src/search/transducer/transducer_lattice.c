/* transducer_lattice.c - candidates of a transducer's search become links of the lattice's history.
 */
#include "search/transducer/transducer_lattice.h"

#include <math.h>

#include "search/transducer/transducer_search.h"

#define NONE UINT32_MAX

wf_status wf__transducer_lattice_init(wf__transducer_lattice *lattice, uint32_t num_waiting,
                                      wf_error *err) {
  lattice->waiting = wf__calloc(num_waiting, sizeof *lattice->waiting);
  return lattice->waiting != NULL ? WF_OK : wf__fail_memory(err, 64, "the lattice");
}

void wf__transducer_lattice_free(wf__transducer_lattice *lattice, uint32_t num_waiting) {
  for (uint32_t w = 0; w < num_waiting && lattice->waiting != NULL; w++)
    wf__vec_free(&lattice->waiting[w]);
  free(lattice->waiting);
  wf__vec_free(&lattice->next);
  wf__vec_free(&lattice->epsilons);
}

void wf__transducer_lattice_clear(wf__transducer_search *search) {
  wf__transducer_lattice *lattice = &search->lattice;
  wf__history_clear(&search->base.history, search->base.options.lattice_beam);
  search->base.history.keeps_loglikes = true;
  lattice->next.size = 0;
  for (uint32_t w = 0; w < search->num_waiting; w++) lattice->waiting[w].size = 0;
}

wf_status wf__transducer_note(wf__transducer_search *search, const wf__transducer_token *token,
                              uint32_t from, int32_t duration, wf_error *err) {
  wf__transducer_lattice *lattice = &search->lattice;
  wf__transducer_links *links =
      duration == 0 ? &lattice->next
                    : &lattice->waiting[(search->frame + duration) % search->num_waiting];
  wf__transducer_link link = {lattice->base + from, token->arc,       token->state,  token->cost,
                              token->loglike,       token->predictor, token->context};
  return wf__vec_push(links, link, "the lattice", err);
}

void wf__transducer_lattice_begin_step(wf__transducer_search *search) {
  wf__transducer_lattice *lattice = &search->lattice;
  lattice->next.size = lattice->next.first = 0;
  for (uint32_t w = 0; w < search->num_waiting; w++)
    lattice->waiting[w].first = lattice->waiting[w].size;
}

static void drop_above(wf__transducer_links *links, float cutoff) {
  uint64_t kept = links->first;
  for (uint64_t i = links->first; i < links->size; i++)
    if (links->data[i].cost <= cutoff) links->data[kept++] = links->data[i];
  links->size = kept;
}

void wf__transducer_lattice_end_step(wf__transducer_search *search, float cutoff) {
  wf__transducer_lattice *lattice = &search->lattice;
  drop_above(&lattice->next, cutoff);
  for (uint32_t w = 0; w < search->num_waiting; w++) drop_above(&lattice->waiting[w], cutoff);
}

/* The number of a candidate's token in a set; NONE: it was dropped. */
static uint32_t target_of(const wf__transducer_set *set, const wf__transducer_link *link) {
  return wf__transducer_set_number(set, link->state, link->predictor, link->context);
}

/* Adds the candidates whose tokens are in the set, at `base` in the frame. */
static wf_status add_links(wf__history *history, wf__transducer_links *candidates,
                           const wf__transducer_set *set, uint32_t base, wf_error *err) {
  WF__TRY(wf__vec_grow(&history->links, candidates->size, "the lattice", err));
  WF__TRY(wf__vec_grow(&history->loglikes, candidates->size, "the lattice", err));
  for (uint64_t i = 0; i < candidates->size; i++) {
    const wf__transducer_link *candidate = &candidates->data[i];
    uint32_t to = target_of(set, candidate);
    if (to == NONE) continue;
    float target = set->tokens.data[to].cost,
          excess = candidate->cost > target ? candidate->cost - target : 0;
    if (excess > history->beam) continue;
    history->links.data[history->links.size++] =
        (wf__link){candidate->from, base + to, candidate->arc, excess};
    history->loglikes.data[history->loglikes.size++] = candidate->loglike;
  }
  candidates->size = 0;
  return WF_OK;
}

static wf_status add_token(wf__transducer_search *search, const wf__transducer_token *token,
                           bool first, wf_error *err) {
  wf__history *history = &search->base.history;
  int32_t last = search->predictions.tokens.data[token->number],
          label = search->labels.data[first ? search->model->blank : last];
  if (search->base.scoring.scorer != NULL)
    WF__TRY(wf__vec_push(&history->contexts, token->context, "the lattice", err));
  WF__TRY(wf__vec_push(&history->labels, label, "the lattice", err));
  return wf__vec_push(&history->tokens, ((wf__past_token){token->state, 0}), "the lattice", err);
}

wf_status wf__transducer_lattice_merge(wf__transducer_search *search, uint32_t from, uint32_t to,
                                       wf_error *err) {
  wf__transducer_links *links = &search->lattice.waiting[from], *all = &search->lattice.waiting[to];
  WF__TRY(wf__vec_grow(all, links->size, "the lattice", err));
  for (uint64_t i = 0; i < links->size; i++) all->data[all->size++] = links->data[i];
  links->size = 0;
  return WF_OK;
}

static uint32_t frame_size(const wf__history *history) {
  return (uint32_t)(history->tokens.size -
                    history->frames.data[history->frames.size - 1].first_token);
}

/* Tokens that wait for a later frame: each gets a token in this one, and a link from there on. */
static wf_status add_waiting(wf__transducer_search *search, uint32_t w, wf_error *err) {
  wf__transducer_lattice *lattice = &search->lattice;
  const wf__transducer_set *set = &search->waiting[w];
  uint32_t base = frame_size(&search->base.history);
  WF__TRY(add_links(&search->base.history, &lattice->waiting[w], set, base, err));
  for (uint64_t i = 0; i < set->tokens.size; i++) {
    const wf__transducer_token *token = &set->tokens.data[i];
    wf__transducer_link link = {base + (uint32_t)i, WF__WAITS,     token->state, token->cost, 0,
                                token->predictor,   token->context};
    WF__TRY(add_token(search, token, true, err));
    WF__TRY(wf__vec_push(&lattice->waiting[w], link, "the lattice", err));
  }
  return WF_OK;
}

wf_status wf__transducer_lattice_frame(wf__transducer_search *search, wf_error *err) {
  wf__transducer_lattice *lattice = &search->lattice;
  wf__history *history = &search->base.history;
  uint32_t own = (uint32_t)(search->frame % search->num_waiting);
  uint64_t num_frames = history->frames.size;
  if (num_frames > 0 && num_frames % (uint64_t)search->base.options.lattice_prune_interval == 0)
    WF__TRY(wf__history_prune(history, err));
  WF__TRY(wf__history_begin_frame(history, search->frame - 1, err));
  for (uint32_t w = 0; w < search->num_waiting; w++)
    if (w != own) WF__TRY(add_waiting(search, w, err));
  lattice->base = frame_size(history);
  WF__TRY(
      add_links(&search->base.history, &lattice->waiting[own], &search->now, lattice->base, err));
  wf__history_begin_epsilons(history);
  return WF_OK;
}

/* Can an epsilon arc be in an acyclic lattice? In a cycle, only if it made its target. */
static bool leads_on(const wf_graph *graph, const wf__transducer_token *tokens, uint32_t from,
                     uint32_t to, uint32_t arc) {
  const uint32_t *components = graph->epsilon_components;
  const uint32_t source = tokens[from].state, target = tokens[to].state;
  if (components == NULL || wf__is_added(graph, source) || wf__is_added(graph, target) ||
      components[source] != components[target])
    return true;
  return tokens[to].round != 0 && tokens[to].prev == from && tokens[to].arc == arc;
}

static wf_status note_epsilons(wf__transducer_search *search, uint32_t from, float cutoff,
                               wf_error *err) {
  const wf_graph *graph = search->base.graph;
  const wf__transducer_token *tokens = search->now.tokens.data, *source = &tokens[from];
  wf__arc_run run = wf__epsilon_run(graph, source->state);
  for (uint32_t a = run.first; a < run.end; a++) {
    wf_arc arc = wf__graph_arc(graph, a);
    wf__transducer_link link = {.state = arc.nextstate,
                                .cost = source->cost + arc.weight,
                                .predictor = source->predictor,
                                .context = source->context};
    if (arc.olabel != 0) link.cost -= search->base.options.word_score;
    if (arc.olabel != 0 && search->base.scoring.scorer != NULL)
      WF__TRY(wf__scoring_add(&search->base.scoring, arc.olabel, &link.cost, &link.context, err));
    uint32_t to = target_of(&search->now, &link);
    if (to == NONE || !(link.cost <= cutoff) || !leads_on(graph, tokens, from, to, a)) continue;
    float excess = link.cost > tokens[to].cost ? link.cost - tokens[to].cost : 0;
    if (excess > search->base.history.beam) continue;
    wf__link out = {search->lattice.base + from, search->lattice.base + to, a, excess};
    WF__TRY(wf__vec_push(&search->lattice.epsilons, out, "the lattice", err));
  }
  return WF_OK;
}

wf_status wf__transducer_lattice_set(wf__transducer_search *search, float cutoff, bool first,
                                     wf_error *err) {
  wf__transducer_lattice *lattice = &search->lattice;
  wf__history *history = &search->base.history;
  lattice->base = frame_size(history);
  if (!first)
    WF__TRY(add_links(&search->base.history, &lattice->next, &search->now, lattice->base, err));
  lattice->epsilons.size = 0;
  for (uint64_t i = 0; i < search->now.tokens.size; i++) {
    WF__TRY(add_token(search, &search->now.tokens.data[i], first, err));
    if (search->base.graph->has_epsilons) WF__TRY(note_epsilons(search, (uint32_t)i, cutoff, err));
  }
  WF__TRY(wf__history_add_epsilons(history, lattice->epsilons.data, lattice->epsilons.size,
                                   frame_size(history), err));
  WF__TRY(wf__vec_grow(&history->loglikes, lattice->epsilons.size, "the lattice", err));
  while (history->loglikes.size < history->links.size)
    history->loglikes.data[history->loglikes.size++] = 0;
  return WF_OK;
}

/* Costs of ending in the tokens of the newest frame: those of A(0), or after dying its sources. */
static wf_status set_endings(wf__transducer_search *search, bool final, wf_error *err) {
  wf__history *history = &search->base.history;
  uint32_t size = frame_size(history);
  float least = INFINITY;
  history->endings.size = 0;
  WF__TRY(wf__vec_grow(&history->endings, size, "the lattice", err));
  for (uint32_t i = 0; i < size; i++) history->endings.data[i] = INFINITY;
  for (uint64_t i = 0; i < search->ends.size; i++) {
    const wf__transducer_source *end = &search->ends.data[i];
    float cost = end->token.cost;
    if (final) WF__TRY(wf__transducer_ending_cost(search, &end->token, &cost, err));
    history->endings.data[end->number] = cost;
    least = cost < least ? cost : least;
  }
  for (uint32_t i = 0; i < size; i++)
    if (history->endings.data[i] != INFINITY) history->endings.data[i] -= least;
  history->endings.size = size;
  return WF_OK;
}

wf_status wf__transducer_lattice_make(wf__searcher *searcher, const wf_scores *scores,
                                      wf_lattice **out, wf_error *err) {
  const bool final = (searcher->path.flags & WF_RESULT_NOT_FINAL) == 0;
  WF__TRY(set_endings((wf__transducer_search *)searcher, final, err));
  WF__TRY(wf__history_end(&searcher->history, err));
  return wf__history_lattice(&searcher->history, searcher->graph, &searcher->options, NULL,
                             &searcher->scoring, searcher->path.num_decoded, final, out, err);
}
