/* device_search.c - batches whose search is wholly on GPUs: which utterances that are, and who gets
 * them.
 *
 * Utterances are dealt out to the searches in turn; a stream is on one GPU. Each search takes as many at
 * once as there is room for. The calling thread enqueues rounds for all of them in turn. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/callbacks.h"
#include "base/clock.h"
#include "search/trace.h"
#include "search/transducer/transducer_shared.h"

#define NONE UINT32_MAX

enum { MOST_ARCS = 1 << 26 };

/* --- what the GPUs can search -------------------------------------------------------------- */

/* For tests and measurements: WARPFST_TRANSDUCER_SEARCH=host. */
static bool is_chosen(void) {
  const char *where = getenv("WARPFST_TRANSDUCER_SEARCH");
  return where == NULL || strcmp(where, "host") != 0;
}

static bool is_possible(const wf__transducer_shared *shared, const wf_graph *graph) {
  const wf_decoder_options *o = &shared->options;
  const int32_t num_durations = shared->model->num_durations;
  return shared->num_gpus > 0 && graph->ctc == NULL && graph->added == NULL &&
         (o->greedy || o->max_hypotheses <= WF__DEVICE_MOST_HYPOTHESES) && num_durations != 1 &&
         num_durations <= WF__DEVICE_MOST_DURATIONS && shared->model->num_tokens < MOST_ARCS;
}

/* The state's arcs by column. False: a column has two. */
static bool take_tokens(const wf_transducer *model, const wf_graph *graph,
                        wf__device_search_arc *arcs) {
  const wf__arc_run run = wf__emitting_run(graph, 0);
  for (int32_t c = 0; c < model->num_tokens; c++) arcs[c] = (wf__device_search_arc){NONE, 0, 0};
  for (uint32_t a = run.first; a < run.end; a++) {
    const wf_arc *arc = &run.arcs[a - run.first];
    wf__device_search_arc *own = &arcs[graph->columns[arc->ilabel]];
    if (own->number != NONE) return false;
    *own = (wf__device_search_arc){a - run.first, arc->weight, arc->olabel != 0};
  }
  return true;
}

static uint64_t most_arcs_of_state(const wf_graph *graph) {
  uint64_t most = 0;
  for (uint64_t s = 0; s < graph->view.num_states; s++) {
    const wf__state_index *at = &graph->index[s];
    most = at->first_epsilon - at->first_arc > most ? at->first_epsilon - at->first_arc : most;
  }
  return most;
}

static uint64_t num_places(const wf_graph *graph) {
  return graph->classes != NULL ? graph->classes->sites.size : 0;
}

/* In the order of classes, then of ranks. Other epsilons of weight +infinity lead nowhere. */
static void take_places(const wf_graph *graph, wf__device_place *places,
                        wf__device_graph_arc *arcs) {
  for (uint64_t i = 0; i < num_places(graph); i++) {
    const wf__class_site *site = &graph->classes->sites.data[graph->classes->ranked[i]];
    places[i] =
        (wf__device_place){site->target, site->weight, (uint32_t)site->word_class, site->rank};
    arcs[site->arc].next = (uint32_t)i;
  }
}

static void take_graph(const wf_graph *graph, wf__device_search_state *states,
                       wf__device_graph_arc *arcs, wf__device_place *places) {
  for (uint64_t s = 0; s < graph->view.num_states; s++) {
    const wf__state_index *at = &graph->index[s];
    states[s] = (wf__device_search_state){at->first_arc, at->first_epsilon, at[1].first_arc,
                                          wf__graph_final(graph, (uint32_t)s)};
  }
  for (uint64_t a = 0; a < graph->view.num_arcs; a++) {
    const wf_arc *arc = &graph->view.arcs[a];
    arcs[a] = (wf__device_graph_arc){.next = arc->weight == INFINITY ? NONE : arc->nextstate,
                                     .weight = arc->weight,
                                     .column = (uint32_t)graph->columns[arc->ilabel],
                                     .word = (uint32_t)arc->olabel};
  }
  take_places(graph, places, arcs);
}

static void take_options(wf__transducer_shared *shared, const wf_graph *graph) {
  const wf_decoder_options *o = &shared->options;
  const wf_transducer *model = shared->model;
  const wf__least_weights *least = &shared->arcs.least[0];
  wf__device_search_options *d = &shared->device_options;
  d->acoustic_scale = o->acoustic_scale;
  d->blank_penalty = o->blank_penalty;
  d->beam = o->beam;
  d->word_score = o->word_score;
  d->start = graph->start;
  d->has_epsilons = graph->has_epsilons;
  d->by_label = shared->arcs.by_label;
  d->final_cost = wf__graph_final(graph, 0);
  d->token_weight = fminf(least->token, least->word);
  d->blank_weight = least->blank;
  d->greedy = o->greedy;
  d->keeps_offers = o->lattice_beam > 0;
  d->lattice_beam = fmaxf(o->lattice_beam, 0);
  d->max_hypotheses = wf__most_hypotheses(shared);
  d->max_symbols = (uint32_t)o->max_symbols;
  d->num_tokens = (uint32_t)model->num_tokens;
  d->num_durations = (uint32_t)model->num_durations;
  d->blank = (uint32_t)model->blank;
  d->context_size = (uint32_t)model->context_size;
  d->context_base = wf__context_base(model);
  d->context_high = 1;
  for (int32_t i = 1; i < model->context_size; i++) d->context_high *= d->context_base;
  d->context_start = wf__context_start(model);
  d->first_arc = graph->index[0].first_arc;
  d->num_arcs = graph->index[0].first_epsilon - d->first_arc;
}

static bool fits(const wf__transducer_shared *shared, uint64_t graph_bytes) {
  for (size_t i = 0; i < shared->num_gpus; i++)
    if (!wf__gpu_transducers()->search_fits(shared->weights[i], &shared->device_options,
                                            graph_bytes))
      return false;
  return true;
}

static size_t num_searches(const wf__transducer_shared *shared) {
  return WF__TRANSDUCER_SEARCHES * shared->num_gpus;
}

static void close_set(const wf__transducer_shared *shared, wf__search_set *set) {
  for (size_t i = 0; i < num_searches(shared); i++) {
    if (set->searches[i] != NULL) wf__gpu_transducers()->search_close(set->searches[i]);
    set->searches[i] = NULL;
  }
  set->are_open = false;
}

void wf__device_search_close(wf__transducer_shared *shared) {
  close_set(shared, &shared->of_batches);
  close_set(shared, &shared->of_streams);
}

/* --- opening ------------------------------------------------------------------------------------ */

/* The graph in the form of the kernels, until a GPU has it. */
struct graph_copy {
  wf__device_search_graph graph;
  wf__device_search_arc *tokens; /* [num_tokens] */
  wf__device_search_state *states;
  wf__device_graph_arc *arcs;
  wf__device_place *places;
};

static void free_copy(struct graph_copy *copy) {
  free(copy->tokens);
  free(copy->states);
  free(copy->arcs);
  free(copy->places);
}

static uint64_t graph_bytes(const wf_graph *graph) {
  return graph->view.num_states * sizeof(wf__device_search_state) +
         graph->view.num_arcs * sizeof(wf__device_graph_arc) +
         num_places(graph) * sizeof(wf__device_place);
}

/* Also finds out whether it is plain. */
static wf_status copy_graph(wf__transducer_shared *shared, struct graph_copy *copy, wf_error *err) {
  const wf_graph *graph = shared->device_graph;
  *copy = (struct graph_copy){
      .tokens = wf__alloc((uint64_t)shared->model->num_tokens, sizeof *copy->tokens),
      .states = wf__alloc(graph->view.num_states, sizeof *copy->states),
      .arcs = wf__alloc(graph->view.num_arcs, sizeof *copy->arcs),
      .places = wf__alloc(num_places(graph), sizeof *copy->places)};
  if (copy->tokens == NULL || copy->states == NULL || copy->arcs == NULL || copy->places == NULL)
    return wf__fail_memory(err, graph_bytes(graph), "a decoder");
  take_graph(graph, copy->states, copy->arcs, copy->places);
  shared->device_options.is_plain =
      shared->arcs.all_alike && take_tokens(shared->model, graph, copy->tokens);
  copy->graph = (wf__device_search_graph){.tokens = copy->tokens,
                                          .states = copy->states,
                                          .arcs = copy->arcs,
                                          .places = copy->places,
                                          .num_states = graph->view.num_states,
                                          .num_arcs = graph->view.num_arcs,
                                          .num_places = num_places(graph)};
  return WF_OK;
}

/* Search i of streams shares the states of contexts with the threads that may have to go on. */
static wf_status open_search(wf__transducer_shared *shared, wf__search_set *set, size_t i,
                             const wf__device_search_options *options,
                             const wf__device_search_graph *graph, wf_error *err) {
  const struct wf__device_transducer *device = wf__gpu_transducers();
  const size_t d = i % shared->num_gpus;
  const bool shares = set == &shared->of_streams;
  if (shares && shared->stream_groups[d] == NULL)
    WF__TRY(device->group_open(shared->weights[d], &shared->stream_groups[d], err));
  return device->search_open(shared->weights[d], shares ? shared->stream_groups[d] : NULL, options,
                             graph, &set->searches[i], err);
}

static wf_status open_set(wf__transducer_shared *shared, wf__search_set *set, wf_error *err) {
  struct graph_copy copy;
  if (set->are_open) return WF_OK;
  wf_status status = copy_graph(shared, &copy, err);
  wf__device_search_options options = shared->device_options;
  if (set == &shared->of_streams) options.keeps_offers = 1;
  for (size_t i = 0; i < num_searches(shared) && status == WF_OK; i++)
    status = open_search(shared, set, i, &options, &copy.graph, err);
  free_copy(&copy);
  set->are_open = status == WF_OK;
  if (status != WF_OK) close_set(shared, set);
  return status;
}

/* Those of batches are opened now, so that the first need not wait for it. */
wf_status wf__device_search_open(wf__transducer_shared *shared, const wf_graph *graph,
                                 wf_error *err) {
  if (!is_possible(shared, graph) || !is_chosen()) return WF_OK;
  take_options(shared, graph);
  if (!fits(shared, graph_bytes(graph)) || most_arcs_of_state(graph) >= MOST_ARCS) {
    wf__log(WF_LOG_INFO,
            "the transducer's search runs in threads of the CPU: it does not fit the GPU");
    return WF_OK;
  }
  shared->device_graph = graph;
  return open_set(shared, &shared->of_batches, err);
}

/* A scorer that subtracts a language model gives no bound, so that all arcs would have to be scored. */
static bool is_flat(const wf_scorer *scorer) {
  wf__flat_scorer flat;
  if (wf__scorer_flatten(scorer, &flat) != NULL) return false;
  for (int i = 0; i < flat.num_parts; i++)
    if (flat.parts[i].kind == WF__FLAT_RECURRENT) return false;
  return flat.least > -INFINITY;
}

/* Do arcs of the added words have numbers that offers have room for? */
static bool are_few(const wf_graph *graph) {
  bool few = true;
  for (int32_t c = 0; graph->added != NULL && c < graph->classes->count; c++)
    few = few && (graph->added[c].tree == NULL || graph->added[c].tree->num_arcs < MOST_ARCS);
  return few;
}

bool wf__device_search_covers(const void *opaque, const wf_graph *graph, const wf_scorer *scorer) {
  const wf__transducer_shared *shared = opaque;
  const wf_graph *base = graph->base != NULL ? graph->base : graph;
  return base == shared->device_graph && are_few(graph) &&
         (scorer == NULL || is_flat(wf__scorer_for_transducer(scorer)));
}

bool wf__device_search_covers_chunk(const void *opaque, const wf__searcher *searcher) {
  const wf__transducer_shared *shared = opaque;
  if (shared->device_graph == NULL) return false;
  return searcher == NULL ||
         wf__device_search_covers(shared, searcher->graph, searcher->scoring.scorer);
}

/* --- a batch ------------------------------------------------------------------------------- */

/* A search's utterances. */
struct work {
  wf__device_search *search;
  const uint32_t *items; /* [count] */
  size_t count;
  size_t num_taken, num_begun; /* of them, so far; of those that are searched now */
  bool is_busy, is_loaded;
  size_t num_done; /* of those that are searched now */
};

struct running {
  wf__transducer_shared *shared;
  wf__search_set *set;
  const wf__whole_batch *batch;
  size_t num_searches;
  uint32_t *items; /* of all searches */
  struct work work[WF__TRANSDUCER_SEARCHES * WF__TRANSDUCER_GPUS];
  /* Scratch memory, of one search's utterances. */
  const wf_scores **scores;
  const wf_scorer **scorers;
  const wf_graph **graphs;
  int64_t *num_frames;
  int *where;
  wf__predictions **predictions;    /* of streams, if they have states */
  uint32_t *first_start;            /* of chunks, ... */
  WF__VEC(wf__device_start) starts; /* ... with these */
  size_t num_done;
};

static bool has_states(const struct running *r) {
  return r->batch->searchers != NULL && r->shared->model->context_size == 0;
}

static void deal_out(struct running *r) {
  uint32_t *next = r->items;
  for (size_t i = 0; i < r->num_searches; i++) {
    r->work[i].items = next;
    for (size_t k = 0; k < r->batch->count; k++)
      if ((r->batch->places != NULL ? r->batch->places[k] : k) % r->num_searches == i)
        *next++ = (uint32_t)k;
    r->work[i].count = (size_t)(next - r->work[i].items);
  }
}

/* The search's next utterances. */
static const uint32_t *next_items(const struct work *work) { return work->items + work->num_taken; }

static void list(const struct running *r, size_t i, size_t count) {
  for (size_t k = 0; k < count; k++) {
    const size_t item = next_items(&r->work[i])[k];
    r->scores[k] = r->batch->scores[item];
    r->scorers[k] = wf__whole_scorer(r->batch, item);
    r->graphs[k] = r->batch->graphs[item];
    r->num_frames[k] = r->scores[k]->num_frames;
    if (has_states(r))
      r->predictions[k] = &((wf__transducer_search *)r->batch->searchers[item])->predictions;
  }
}

/* Where the state of a token's context is, or is to come from. */
static void find_state(const wf__predictions *p, uint32_t number, wf__device_start *start) {
  const uint32_t parent = p->parents.data[number];
  start->label = p->tokens.data[number];
  if (p->done.data[number])
    start->slot = p->slots.data[number];
  else if (parent != NONE)
    start->parent = p->slots.data[parent];
}

/* Adds the tokens of a set that count. */
static void add_starts(struct running *r, const wf__predictions *p, const wf__transducer_set *set,
                       uint32_t number) {
  for (uint64_t i = 0; i < set->tokens.size; i++) {
    const wf__transducer_token *token = &set->tokens.data[i];
    wf__device_start start = {.predictor = token->predictor,
                              .context = token->context,
                              .cost = token->cost,
                              .state = token->state,
                              .set = number,
                              .slot = NONE,
                              .parent = NONE};
    for (uint64_t k = 0; k < set->tokens.size; k++)
      start.number += k != i && wf__transducer_before(&set->tokens.data[k], token);
    if (start.number >= set->most) continue;
    if (has_states(r)) find_state(p, token->number, &start);
    r->starts.data[r->starts.size++] = start;
  }
}

/* Lists the tokens that wait in the streams whose chunks are searched next. */
static wf_status list_starts(struct running *r, const uint32_t *items, size_t count,
                             wf_error *err) {
  r->starts.size = 0;
  for (size_t k = 0; k < count; k++) {
    const wf__transducer_search *search =
        (const wf__transducer_search *)r->batch->searchers[items[k]];
    r->first_start[k] = (uint32_t)r->starts.size;
    for (uint32_t w = 0; w < search->num_waiting; w++) {
      const wf__transducer_set *set =
          &search->waiting[(search->next_frame + w) % search->num_waiting];
      WF__TRY(wf__vec_grow(&r->starts, set->tokens.size, "a chunk", err));
      add_starts(r, &search->predictions, set, w);
    }
  }
  r->first_start[count] = (uint32_t)r->starts.size;
  return WF_OK;
}

static wf_status begin(struct running *r, size_t i, wf_error *err) {
  wf__transducer_shared *shared = r->shared;
  const struct wf__device_transducer *device = wf__gpu_transducers();
  struct work *w = &r->work[i];
  const wf__score_cut cut = wf__gpu_score_cut(shared);
  wf__transducer_weights *weights = shared->weights[i % shared->num_gpus];
  const size_t left = w->count - w->num_taken;
  list(r, i, left);
  w->search = r->set->searches[i];
  WF__TRY(device->search_room(w->search, r->num_frames, left, &w->num_begun, err));
  for (size_t k = 0; k < w->num_begun; k++)
    WF__TRY(device->scores_where(weights, r->scores[k], shared->stream, &r->where[k], err));
  wf__device_batch batch = {.scores = r->scores,
                            .scorers = r->batch->scorers != NULL ? r->scorers : NULL,
                            .graphs = r->graphs,
                            .options = &shared->options,
                            .where = r->where,
                            .count = w->num_begun};
  if (r->batch->searchers != NULL) {
    WF__TRY(list_starts(r, next_items(w), w->num_begun, err));
    batch.starts = r->starts.data;
    batch.first_start = r->first_start;
    batch.predictions = has_states(r) ? r->predictions : NULL;
  }
  WF__TRY(device->search_begin(w->search, &cut, &batch, shared->stream, err));
  w->is_busy = true;
  w->is_loaded = false;
  w->num_done = 0;
  return WF_OK;
}

static wf_status end(struct running *r, size_t i, wf_error *err) {
  wf_transducer_stats *stats = &r->shared->stats;
  struct work *w = &r->work[i];
  wf__searched found;
  WF__TRY(wf__gpu_transducers()->search_end(w->search, &found, err));
  stats->num_rounds += found.num_rounds;
  stats->num_rows += found.counts.num_rows;
  stats->num_contexts += found.counts.num_contexts;
  const wf__whole_part part = {.count = w->num_begun,
                               .items = next_items(w),
                               .results = found.results,
                               .details = found.details,
                               .kept = found.kept,
                               .shared = r->shared,
                               .batch = r->batch};
  const double began = wf__now_s();
  WF__TRY(r->batch->done(r->batch->user, &part, err));
  stats->search_s += wf__now_s() - began;
  w->num_taken += w->num_begun;
  w->is_busy = false;
  return WF_OK;
}

/* What packs the scores of a search. */
struct packing {
  const struct running *running;
  size_t search;
};

static void run_items(void *user, uint64_t num_items,
                      void (*fn)(void *data, uint64_t item, int worker), void *data) {
  wf__pool_run(((const struct packing *)user)->running->batch->pool, num_items, fn, data);
}

static void look(void *user, uint32_t k, const wf_scores *frames) {
  const struct packing *p = user;
  const struct running *r = p->running;
  r->batch->look(r->batch->user, next_items(&r->work[p->search])[k], frames);
}

static wf_status load(struct running *r, size_t i, wf_error *err) {
  struct work *w = &r->work[i];
  struct packing packing = {r, i};
  const wf__packing_crew crew = {run_items, look, &packing};
  const double began = wf__now_s();
  if (!w->is_busy) WF__TRY(begin(r, i, err));
  WF__TRY(wf__gpu_transducers()->search_load(w->search, &crew, &w->is_loaded, err));
  r->shared->stats.submit_s += wf__now_s() - began;
  return WF_OK;
}

static wf_status go_on(struct running *r, size_t i, wf_error *err) {
  struct work *w = &r->work[i];
  const double began = wf__now_s();
  size_t num_done;
  WF__TRY(wf__gpu_transducers()->search_go_on(w->search, &num_done, err));
  r->shared->stats.wait_s += wf__now_s() - began;
  r->num_done += num_done - w->num_done;
  w->num_done = num_done;
  return num_done == w->num_begun ? end(r, i, err) : WF_OK;
}

static bool is_over(const struct running *r, size_t i) {
  return !r->work[i].is_busy && r->work[i].num_taken == r->work[i].count;
}

/* A window of one search at a time is loaded; searches that are loaded have rounds ahead. */
static wf_status run(struct running *r, wf_error *err) {
  size_t num_over = 0, next = 0;
  while (num_over < r->num_searches) {
    num_over = 0;
    for (size_t i = 0; i < r->num_searches; i++) {
      if (r->work[i].is_busy && r->work[i].is_loaded) WF__TRY(go_on(r, i, err));
      num_over += is_over(r, i);
    }
    for (size_t k = 0; k < r->num_searches; k++) {
      const size_t i = (next + k) % r->num_searches;
      if (is_over(r, i) || (r->work[i].is_busy && r->work[i].is_loaded)) continue;
      WF__TRY(load(r, i, err));
      next = i + (r->work[i].is_loaded ? 1 : 0); /* one search is complete before the next */
      break;
    }
    WF__TRY(r->batch->progress(r->batch->user, r->num_done, err));
  }
  return WF_OK;
}

wf_status wf__device_search_decode(void *opaque, const wf__whole_batch *batch, wf_error *err) {
  wf__transducer_shared *shared = opaque;
  const size_t count = batch->count;
  struct running r = {.shared = shared,
                      .set = batch->searchers != NULL ? &shared->of_streams : &shared->of_batches,
                      .batch = batch,
                      .num_searches = num_searches(shared),
                      .scores = wf__alloc(count, sizeof *r.scores),
                      .scorers = wf__alloc(count, sizeof *r.scorers),
                      .graphs = wf__alloc(count, sizeof *r.graphs),
                      .num_frames = wf__alloc(count, sizeof *r.num_frames),
                      .where = wf__alloc(count, sizeof *r.where),
                      .predictions = wf__alloc(count, sizeof *r.predictions),
                      .items = wf__alloc(count, sizeof *r.items),
                      .first_start = wf__alloc(count + 1, sizeof *r.first_start)};
  wf_status status = WF_OK;
  if (shared->broken)
    status = wf__fail(err, WF_ERR_DEVICE, "an earlier CUDA error left this decoder unusable");
  else if (r.scores == NULL || r.scorers == NULL || r.graphs == NULL || r.num_frames == NULL ||
           r.where == NULL || r.predictions == NULL || r.items == NULL || r.first_start == NULL)
    status = wf__fail_memory(err, count * 24, "a batch");
  if (status == WF_OK) status = open_set(shared, r.set, err);
  if (status == WF_OK) {
    deal_out(&r);
    status = run(&r, err);
    if (status != WF_OK) close_set(shared, r.set); /* work is under way, or lost */
  }
  shared->broken = status == WF_ERR_DEVICE;
  free(r.scores);
  free(r.scorers);
  free(r.graphs);
  free(r.num_frames);
  free(r.where);
  free(r.predictions);
  free(r.items);
  free(r.first_start);
  wf__vec_free(&r.starts);
  return status;
}
