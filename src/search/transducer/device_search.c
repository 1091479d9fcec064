/* device_search.c - batches whose search is wholly on GPUs: which utterances that are, who gets
 * them, and their paths.
 *
 * The utterances are dealt out to the searches in turn. Each search takes as many at once as there
 * is room for. The calling thread enqueues rounds for all of them in turn. */
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

static wf_status open_set(wf__transducer_shared *shared, wf__search_set *set, wf_error *err) {
  struct graph_copy copy;
  if (set->are_open) return WF_OK;
  wf_status status = copy_graph(shared, &copy, err);
  wf__device_search_options options = shared->device_options;
  if (set == &shared->of_streams) options.keeps_offers = 1;
  for (size_t i = 0; i < num_searches(shared) && status == WF_OK; i++)
    status = wf__gpu_transducers()->search_open(shared->weights[i % shared->num_gpus], &options,
                                                &copy.graph, &set->searches[i], err);
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

/* Those whose predictor has no states: nothing of a stream stays on the GPU. */
bool wf__device_search_covers_chunk(const void *opaque, const wf__searcher *searcher) {
  const wf__transducer_shared *shared = opaque;
  if (shared->device_graph == NULL || shared->model->context_size == 0) return false;
  return searcher == NULL ||
         wf__device_search_covers(shared, searcher->graph, searcher->scoring.scorer);
}

/* --- a batch ------------------------------------------------------------------------------- */

/* A search's utterances: numbers first, first + num_searches, ... of the batch. */
struct work {
  wf__device_search *search;
  size_t num_taken, num_begun; /* of them, so far; of those that are searched now */
  bool is_busy, is_loaded;
  size_t num_done; /* of those that are searched now */
};

struct running {
  wf__transducer_shared *shared;
  wf__search_set *set;
  const wf__whole_batch *batch;
  size_t num_searches;
  struct work work[WF__TRANSDUCER_SEARCHES * WF__TRANSDUCER_GPUS];
  /* Scratch memory, of one search's utterances. */
  const wf_scores **scores;
  const wf_scorer **scorers;
  const wf_graph **graphs;
  int64_t *num_frames;
  int *where;
  uint32_t *items, *first_start;    /* the latter of chunks, ... */
  WF__VEC(wf__device_start) starts; /* ... with these */
  size_t num_done;
};

static const wf_scorer *scorer_of(const wf__whole_batch *batch, size_t item) {
  return batch->scorers != NULL ? wf__scorer_for_transducer(batch->scorers[item]) : NULL;
}

/* How many of the batch are the search's. */
static size_t share_of(const struct running *r, size_t i) {
  return (r->batch->count - i + r->num_searches - 1) / r->num_searches;
}

/* Lists the search's next utterances. Returns their number. */
static size_t list(const struct running *r, size_t i, size_t count) {
  const size_t first = r->work[i].num_taken;
  for (size_t k = 0; k < count; k++) {
    const size_t item = i + (first + k) * r->num_searches;
    r->items[k] = (uint32_t)item;
    r->scores[k] = r->batch->scores[item];
    r->scorers[k] = scorer_of(r->batch, item);
    r->graphs[k] = r->batch->graphs[item];
    r->num_frames[k] = r->scores[k]->num_frames;
  }
  return count;
}

/* Adds the tokens of a set that count. */
static void add_starts(struct running *r, const wf__transducer_set *set, uint32_t number) {
  for (uint64_t i = 0; i < set->tokens.size; i++) {
    const wf__transducer_token *token = &set->tokens.data[i];
    uint32_t rank = 0;
    for (uint64_t k = 0; k < set->tokens.size; k++)
      rank += k != i && wf__transducer_before(&set->tokens.data[k], token);
    if (rank < set->most)
      r->starts.data[r->starts.size++] = (wf__device_start){
          token->predictor, token->context, token->cost, token->state, number, rank};
  }
}

/* Lists the tokens that wait in the streams whose chunks are searched next. */
static wf_status list_starts(struct running *r, size_t count, wf_error *err) {
  r->starts.size = 0;
  for (size_t k = 0; k < count; k++) {
    const wf__transducer_search *search =
        (const wf__transducer_search *)r->batch->searchers[r->items[k]];
    r->first_start[k] = (uint32_t)r->starts.size;
    for (uint32_t w = 0; w < search->num_waiting; w++) {
      const wf__transducer_set *set =
          &search->waiting[(search->next_frame + w) % search->num_waiting];
      WF__TRY(wf__vec_grow(&r->starts, set->tokens.size, "a chunk", err));
      add_starts(r, set, w);
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
  const size_t left = list(r, i, share_of(r, i) - w->num_taken);
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
    WF__TRY(list_starts(r, w->num_begun, err));
    batch.starts = r->starts.data;
    batch.first_start = r->first_start;
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
  const wf__device_result *results;
  const void *details;
  uint64_t num_rounds;
  wf__transducer_counts counts;
  WF__TRY(
      wf__gpu_transducers()->search_end(w->search, &results, &details, &num_rounds, &counts, err));
  stats->num_rounds += num_rounds;
  stats->num_rows += counts.num_rows;
  stats->num_contexts += counts.num_contexts;
  const wf__whole_part part = {
      list(r, i, w->num_begun), r->items, results, details, r->shared, r->batch};
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
  const size_t item = p->search + (r->work[p->search].num_taken + k) * r->num_searches;
  r->batch->look(r->batch->user, (uint32_t)item, frames);
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
  return !r->work[i].is_busy && r->work[i].num_taken == share_of(r, i);
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
  const size_t count = batch->count, most = num_searches(shared);
  struct running r = {.shared = shared,
                      .set = batch->searchers != NULL ? &shared->of_streams : &shared->of_batches,
                      .batch = batch,
                      .num_searches = count < most ? count : most,
                      .scores = wf__alloc(count, sizeof *r.scores),
                      .scorers = wf__alloc(count, sizeof *r.scorers),
                      .graphs = wf__alloc(count, sizeof *r.graphs),
                      .num_frames = wf__alloc(count, sizeof *r.num_frames),
                      .where = wf__alloc(count, sizeof *r.where),
                      .items = wf__alloc(count, sizeof *r.items),
                      .first_start = wf__alloc(count + 1, sizeof *r.first_start)};
  wf_status status = WF_OK;
  if (shared->broken)
    status = wf__fail(err, WF_ERR_DEVICE, "an earlier CUDA error left this decoder unusable");
  else if (r.scores == NULL || r.scorers == NULL || r.graphs == NULL || r.num_frames == NULL ||
           r.where == NULL || r.items == NULL || r.first_start == NULL)
    status = wf__fail_memory(err, count * 24, "a batch");
  if (status == WF_OK) status = open_set(shared, r.set, err);
  if (status == WF_OK) {
    status = run(&r, err);
    if (status != WF_OK) close_set(shared, r.set); /* work is under way, or lost */
    shared->broken = status == WF_ERR_DEVICE;
  }
  free(r.scores);
  free(r.scorers);
  free(r.graphs);
  free(r.num_frames);
  free(r.where);
  free(r.items);
  free(r.first_start);
  wf__vec_free(&r.starts);
  return status;
}

/* --- results ---------------------------------------------------------------------------------- */

static const wf__device_result *result_of(const wf__whole_part *part, size_t k) {
  return &((const wf__device_result *)part->results)[k];
}

/* `first`: number of the first frame that was searched. */
static wf_status check_outcome(const wf__whole_part *part, size_t k, int64_t first, bool *left,
                               wf_error *err) {
  const wf__transducer_shared *shared = part->shared;
  const wf__device_result *result = result_of(part, k);
  *left = result->outcome == WF__DEVICE_NO_ROOM;
  if (*left) wf__log(WF_LOG_DEBUG, "an utterance is searched on the CPU: no room on the GPU");
  return result->outcome == WF__DEVICE_BAD_LOGIT
             ? wf__fail_bad_logit(shared->model, first + result->frame, &result->bad, err)
             : WF_OK;
}

wf_status wf__device_search_follow(const wf__whole_part *part, size_t k, wf__searcher *searcher,
                                   bool *left, wf_error *err) {
  wf__transducer_search *search = (wf__transducer_search *)searcher;
  WF__TRY(check_outcome(part, k, search->num_frames, left, err));
  if (*left) return WF_OK;
  search->offers = (const wf__device_offer *)part->details + result_of(part, k)->first;
  const wf_status status = wf__searcher_advance(searcher, part->batch->scores[part->items[k]], err);
  search->offers = NULL;
  return status;
}

/* --- paths --------------------------------------------------------------------------------- */

static wf_status add_steps(const wf_graph *graph, const wf__path_step *steps, uint64_t size,
                           wf__path *out, wf_error *err) {
  wf__path_clear(out);
  WF__TRY(wf__vec_grow(&out->arcs, size, "a path", err));
  for (uint64_t i = 0; i < size; i++) {
    const wf__transducer_record record = {0, steps[i].arc, steps[i].loglike, steps[i].frame};
    WF__TRY(wf__transducer_add_arc(graph, &record, out, err));
  }
  return WF_OK;
}

/* What the utterance's scorer gives the path. */
static wf_status score_path(const wf_graph *graph, const wf_scorer *scorer, wf__path *path,
                            wf_error *err) {
  wf__scoring scoring = {0};
  wf__score_sum sum = {0, 0};
  path->scorer_cost = 0;
  if (scorer == NULL) return WF_OK;
  wf_status status = wf__scoring_set(&scoring, scorer, err);
  if (status == WF_OK) status = wf__scoring_begin(&scoring, err);
  sum.context = scoring.start;
  if (status == WF_OK)
    status = wf__path_score(path, 0, graph, &scoring, (path->flags & WF_RESULT_NOT_FINAL) == 0,
                            &sum, err);
  path->scorer_cost = sum.cost;
  wf__scoring_free(&scoring);
  return status;
}

wf_status wf__device_search_path(const wf__whole_part *part, size_t k, wf__path *out, bool *left,
                                 wf_error *err) {
  const wf__device_result *result = result_of(part, k);
  const wf_graph *graph = part->batch->graphs[part->items[k]];
  WF__TRY(check_outcome(part, k, 0, left, err));
  if (*left) return WF_OK;
  WF__TRY(add_steps(graph, (const wf__path_step *)part->details + result->first, result->count, out,
                    err));
  const uint32_t end = out->arcs.size > 0
                           ? wf__graph_arc(graph, out->arcs.data[out->arcs.size - 1]).nextstate
                           : graph->start;
  out->flags = result->flags;
  out->final_cost = (result->flags & WF_RESULT_NOT_FINAL) != 0 ? 0 : wf__graph_final(graph, end);
  out->relative_cost = (result->flags & WF_RESULT_DIED) != 0 ? INFINITY : 0;
  out->num_decoded = result->frame;
  out->num_tokens = result->num_tokens;
  out->num_expanded = result->num_expanded;
  out->num_arcs = result->num_arcs;
  out->num_narrowed = 0;
  return score_path(graph, scorer_of(part->batch, part->items[k]), out, err);
}
