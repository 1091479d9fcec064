/* gpu_worker.c - a GPU's share of a batch, chunk after chunk: scores, search, results, several flights at a time.
 *
 * An utterance that does not fit the plan (a trace or a path longer than its room) is decoded again by the CPU search, whose answer is the
 * same; one whose frames do not fit the lane is left to the next round, in larger lanes. */
#ifdef WARPFST_CUDA
#include "cuda/decoder/gpu_worker.h"

#include <string.h>
#include <time.h>

#include "base/callbacks.h"
#include "base/interrupt.h"

enum {
  OFTEN = 8,              /* lanes too small for one in so many utterances are too small */
  LOOK_AGAIN_NS = 10000, /* for flights that have come back */
};

/* --- taking ----------------------------------------------------------------------------------------------------------- */

void wf__gpu_take(wf__gpu_worker *worker, wf__flight *flight, wf__deal *deal) {
  uint32_t *which = wf__flight_box(worker, flight, WF__BOX_WHICH);
  flight->count = 0;
  if (atomic_load(&deal->failed) != 0) return;
  pthread_mutex_lock(&deal->mutex);
  for (int q = 0; q < deal->num_queues && flight->count == 0; q++) {
    if (deal->queues[q].device != worker->device && deal->queues[q].device >= 0) continue;
    flight->on_device = deal->queues[q].device >= 0;
    while (flight->count < worker->plan.chunk && deal->queues[q].next < deal->queues[q].end) which[flight->count++] = deal->which[deal->queues[q].next++];
  }
  pthread_mutex_unlock(&deal->mutex);
}

/* --- searching --------------------------------------------------------------------------------------------------------- */

void wf__gpu_fill_options(wf__lane_params *p, const wf_graph *graph, const wf_decoder_options *options) {
  p->num_states = (uint32_t)graph->view.num_states;
  p->num_arcs = (uint32_t)graph->view.num_arcs;
  p->start = (uint32_t)graph->view.start;
  p->num_columns = graph->min_columns;
  p->has_epsilons = graph->has_epsilons;
  p->beam = options->beam;
  p->acoustic_scale = options->acoustic_scale;
  p->word_score = options->word_score;
  p->epsilon_slack = wf__epsilon_slack(graph, options, false);
  p->scored_slack = wf__epsilon_slack(graph, options, true);
  p->context_bits = wf__gpu_context_bits(graph);
  p->by_state = (uint32_t)(options->recombine == 1);
  p->blank = options->blank;
  p->blank_penalty = options->blank_penalty;
  p->skip_above = wf__skip_above(options);
  p->max_active = (uint32_t)options->max_active;
  p->min_active = (uint32_t)options->min_active;
  p->max_tokens = (uint32_t)options->max_tokens;
  p->lattice_beam = options->lattice_beam;
}

static wf__lane_params flight_params(const wf__gpu_worker *worker, const wf__flight *flight) {
  const wf__gpu_plan *plan = &worker->plan;
  char *box = wf__flight_array(worker, flight, WF__ARRAY_BOX);
  wf__lane_params p = worker->params;
  p.stop = worker->stop;
  p.utterances = (const wf__lane_utterance *)(box + plan->box_off[WF__BOX_UTTERANCES]);
  p.order = (const uint32_t *)(box + plan->box_off[WF__BOX_ORDER]);
  p.num_utterances = flight->count;
  p.steps_used = (uint64_t *)(box + plan->box_off[WF__BOX_COUNTERS]);
  p.queue = (uint32_t *)(p.steps_used + 1);
  p.pages_used = p.queue + 1;
  p.outcomes = (wf__lane_outcome *)(box + plan->box_off[WF__BOX_OUTCOMES]);
  p.steps = wf__flight_array(worker, flight, WF__ARRAY_STEPS);
  p.steps_cap = plan->steps_cap;
  p.num_lanes = plan->lanes < flight->count ? plan->lanes : flight->count;
  p.ranks = plan->ranks;
  p.costs = wf__flight_array(worker, flight, WF__ARRAY_COSTS);
  p.agenda = wf__flight_array(worker, flight, WF__ARRAY_AGENDA);
  p.trace = wf__flight_array(worker, flight, WF__ARRAY_TRACE);
  p.path_scratch = wf__flight_array(worker, flight, WF__ARRAY_PATH_SCRATCH);
  p.frame_off = wf__flight_array(worker, flight, WF__ARRAY_FRAME_OFF);
  p.index = wf__flight_array(worker, flight, WF__ARRAY_INDEX);
  p.contexts = wf__flight_array(worker, flight, WF__ARRAY_CONTEXTS);
  p.word_log = wf__flight_array(worker, flight, WF__ARRAY_WORD_LOG);
  p.listed = wf__flight_array(worker, flight, WF__ARRAY_LISTED);
  p.entries = wf__flight_array(worker, flight, WF__ARRAY_ENTRIES);
  p.sources = wf__flight_array(worker, flight, WF__ARRAY_SOURCES);
  p.asked = wf__flight_array(worker, flight, WF__ARRAY_ASKED);
  p.memo = wf__flight_array(worker, flight, WF__ARRAY_MEMO);
  p.trace_cap = plan->trace_cap;
  p.trace_room = plan->trace_room;
  p.frames_cap = plan->frames_cap;
  p.path_cap = plan->path_cap;
  p.past = wf__flight_array(worker, flight, WF__ARRAY_PAST);
  p.records = wf__flight_array(worker, flight, WF__ARRAY_RECORDS);
  p.pages = wf__flight_array(worker, flight, WF__ARRAY_PAGES);
  p.page_contexts = wf__flight_array(worker, flight, WF__ARRAY_PAGE_CONTEXTS);
  p.pages_cap = plan->pages_cap;
  return p;
}

static wf_status send_results(const wf__gpu_worker *worker, wf__flight *flight, cudaStream_t stream, wf_error *err) {
  const uint64_t from = worker->plan.box_off[WF__BOX_COUNTERS], end = worker->plan.box_off[WF__BOX_WHICH];
  const char *box = wf__flight_array(worker, flight, WF__ARRAY_BOX);
  WF__CUDA_TRY(cudaMemcpyAsync(flight->box + from, box + from, end - from, cudaMemcpyDeviceToHost, stream), "results from the GPU");
  return WF_OK;
}

static const wf__search_kernels *kernels_of(const wf__gpu_worker *worker) {
  return &wf__search_kernels_of[worker->facts.asks ? WF__SEARCH_DEFERRED : worker->plan.scored ? WF__SEARCH_SCORED : WF__SEARCH_PLAIN];
}

static wf_status make_lattices(const wf__gpu_worker *worker, wf__flight *flight, wf__backward_tables tables, wf_error *err) {
  wf__lane_params p = flight_params(worker, flight);
  p.global_tables = flight->global_tables;
  WF__CUDA_TRY(kernels_of(worker)->backward(&p, tables, flight->back_stream), "the kernel of lattices");
  return send_results(worker, flight, flight->back_stream, err);
}

/* Puts everything on the flight's streams: nothing here waits, but for a recurrent scorer's answers. */
static wf_status launch(wf__gpu_worker *worker, wf__flight *flight, wf_error *err) {
  const uint64_t *off = worker->plan.box_off;
  wf__lane_params p = flight_params(worker, flight);
  char *box = wf__flight_array(worker, flight, WF__ARRAY_BOX);
  uint32_t *order = wf__flight_box(worker, flight, WF__BOX_ORDER);
  uint64_t *bad = (uint64_t *)(box + off[WF__BOX_BAD]);
  for (uint32_t i = 0; i < flight->count; i++) order[i] = i; /* taken longest first */
  memset(flight->box + off[WF__BOX_COUNTERS], 0, 16);
  memset(flight->box + off[WF__BOX_OUTCOMES], 0, off[WF__BOX_WHICH] - off[WF__BOX_OUTCOMES]);
  WF__CUDA_TRY(cudaMemcpyAsync(box, flight->box, off[WF__BOX_WHICH], cudaMemcpyHostToDevice, flight->stream), "utterances to the GPU");
  if (flight->on_device) WF__CUDA_TRY(wf__check_scores_launch(p.utterances, flight->count, bad, flight->stream), "checking scores");
  if (worker->facts.asks) WF__TRY(wf__gpu_asking_search(worker, &p, wf__flight_box(worker, flight, WF__BOX_UTTERANCES), flight->stream, err));
  else WF__CUDA_TRY(kernels_of(worker)->launch(&p, flight->stream), "the search kernel");
  if (p.lattice_beam == 0) return send_results(worker, flight, flight->stream, err);
  WF__CUDA_TRY(cudaEventRecord(flight->searched, flight->stream), "the search kernel");
  WF__CUDA_TRY(cudaStreamWaitEvent(flight->back_stream, flight->searched, 0), "the search kernel");
  return make_lattices(worker, flight, WF__BACKWARD_SMALL, err);
}

/* --- results ----------------------------------------------------------------------------------------------------------- */

/* The same utterance on the CPU, for what the plan has no room for. */
static wf_status decode_on_cpu(wf__gpu_worker *worker, wf__flight *flight, const wf_graph *graph, const wf_scores *scores, const wf_scorer *scorer, int thread,
                               wf_result *result, wf_error *err) {
  if (worker->searches[thread] == NULL) WF__TRY(wf__search_create(worker->graph, &worker->options, &worker->searches[thread], err));
  wf__search *search = worker->searches[thread];
  wf_scores host;
  void *copy;
  wf_status status = wf__gpu_scores_to_host(scores, 0, flight->stream, &host, &copy, err);
  wf__search_set_graph(search, graph);
  if (status == WF_OK) status = wf__search_set_scorer(search, scorer, err);
  if (status == WF_OK) status = wf__search_begin(search, err);
  if (status == WF_OK) status = wf__search_advance(search, &host, err);
  if (status == WF_OK) status = wf__search_finish(search, &host, err);
  if (status == WF_OK) status = wf__result_fill(result, graph, &worker->options, &search->path, err);
  if (status == WF_OK && worker->options.lattice_beam > 0) status = wf__search_lattice(search, &host, &result->lattice, err);
  free(copy);
  return status;
}

/* What the scorer has said along the path, as the CPU search adds it up. */
static wf_status sum_scorer_costs(const wf_graph *graph, const wf_scorer *scorer, wf__scoring *scoring, wf__path *path, wf_error *err) {
  WF__TRY(wf__scoring_set(scoring, scorer, err));
  WF__TRY(wf__scoring_begin(scoring, err));
  wf__score_sum sum = {scoring->start, 0};
  wf_status status = wf__path_score(path, 0, graph, scoring, (path->flags & WF_RESULT_NOT_FINAL) == 0, &sum, err);
  path->scorer_cost = sum.cost;
  return status;
}

/* From the path on the GPU to words, times and costs. */
static wf_status fill_from_path(const wf__gpu_worker *worker, const wf_graph *graph, const wf__lane_outcome *outcome, const wf__lane_step *steps, const wf_scorer *scorer,
                                int thread, wf_result *result, wf_error *err) {
  wf__path path = {.final_cost = outcome->final_cost,
                   .flags = outcome->flags,
                   .num_decoded = outcome->num_decoded,
                   .num_tokens = outcome->num_tokens,
                   .num_expanded = outcome->num_expanded,
                   .num_arcs = outcome->num_arcs,
                   .num_narrowed = outcome->num_narrowed};
  wf_status status = wf__vec_grow(&path.arcs, outcome->path_size, "a path", err);
  if (status == WF_OK) status = wf__vec_grow(&path.loglikes, (uint64_t)outcome->num_decoded, "a path", err);
  const bool skips = worker->params.skip_above < INFINITY;
  if (status == WF_OK && skips) status = wf__vec_grow(&path.frames, (uint64_t)outcome->num_decoded, "a path", err);
  for (uint32_t k = 0; k < outcome->path_size && status == WF_OK; k++) {
    path.arcs.data[path.arcs.size++] = steps[k].arc;
    if (wf__graph_arc(graph, steps[k].arc).ilabel == 0) continue;
    path.loglikes.data[path.loglikes.size++] = steps[k].loglike;
    if (skips) path.frames.data[path.frames.size++] = (int32_t)steps[k].frame;
  }
  if (status == WF_OK && scorer != NULL) status = sum_scorer_costs(graph, worker->facts.asks ? wf__gpu_asking_twin(worker, scorer) : scorer, &worker->scorings[thread], &path, err);
  if (status == WF_OK) status = wf__result_fill(result, graph, &worker->options, &path, err);
  wf__path_free(&path);
  return status;
}

static wf_status fill_result(wf__landing *landing, uint32_t i, int thread, wf_result *result, wf_error *err) {
  wf__gpu_worker *worker = landing->worker;
  wf__flight *flight = landing->flight;
  const wf__lane_outcome *outcome = (const wf__lane_outcome *)wf__flight_box(worker, flight, WF__BOX_OUTCOMES) + i;
  const uint64_t bad = ((const uint64_t *)wf__flight_box(worker, flight, WF__BOX_BAD))[i];
  const uint32_t u = ((const uint32_t *)wf__flight_box(worker, flight, WF__BOX_WHICH))[i];
  const wf_scores *scores = &landing->deal->batch->scores[u];
  const wf_scorer *scorer = landing->deal->batch->scorers != NULL ? landing->deal->batch->scorers[u] : NULL;
  const wf_graph *graph = wf__batch_graph(landing->deal->batch, u, worker->graph);
  const wf__lane_step *path = landing->steps + outcome->path_off;
  if (bad != UINT64_MAX) return wf__gpu_tell_bad_score(scores, bad, 0, flight->stream, result, err);
  switch (outcome->status) {
    case WF__LANE_OK:
      WF__TRY(fill_from_path(worker, graph, outcome, path, scorer, thread, result, err));
      return worker->options.lattice_beam > 0 ? wf__gpu_lattice(worker, graph, outcome, path, &landing->pages, scorer != NULL, thread, &result->lattice, err) : WF_OK;
    case WF__LANE_CLOSURE:
    case WF__LANE_CYCLE: return wf__gpu_outcome_error(outcome->status, &worker->options, err);
    case WF__LANE_TABLE_FULL:
      if (wf__gpu_next_size(worker) == 0) break;
      atomic_fetch_sub(&landing->deal->num_done, 1);
      pthread_mutex_lock(&landing->deal->mutex);
      landing->deal->again[landing->deal->num_again++] = u;
      pthread_mutex_unlock(&landing->deal->mutex);
      return WF_OK;
    default: break;
  }
  wf__log(WF_LOG_DEBUG, "utterance %u of %lld frames did not fit the GPU's plan and is decoded on the CPU", u, (long long)scores->num_frames);
  return decode_on_cpu(worker, flight, graph, scores, scorer, thread, result, err);
}

static void land_one(void *user, uint64_t item, int thread) {
  wf__landing *landing = user;
  wf__gpu_worker *worker = landing->worker;
  if (atomic_load(&landing->deal->failed) != 0) return;
  wf_error *err = &worker->errors[thread];
  const uint32_t u = ((const uint32_t *)wf__flight_box(worker, landing->flight, WF__BOX_WHICH))[item];
  wf_result *result = landing->deal->batch->results[u];
  wf_status status = cudaSetDevice(worker->device) == cudaSuccess ? WF_OK : wf__fail(err, WF_ERR_DEVICE, "CUDA: choosing the GPU");
  if (status == WF_OK) status = fill_result(landing, (uint32_t)item, thread, result, err);
  if (status == WF_OK) status = wf__result_determinize(landing->deal->batch, result, err);
  if (status == WF_OK) return;
  if (status == WF_ERR_MEMORY || status == WF_ERR_DEVICE || status == WF_ERR_CANCELLED) {
    int none = 0;
    if (atomic_compare_exchange_strong(&landing->deal->failed, &none, (int)status)) landing->error = *err;
    return;
  }
  wf__result_fail(result, status, err); /* the others stand */
}

int wf__gpu_next_size(const wf__gpu_worker *worker) { return worker->plan.smallest ? 0 : wf__gpu_larger_size(&worker->facts, worker->plan.size); }

/* What the next plan should know of these utterances. */
static void learn(wf__gpu_worker *worker, const wf__flight *flight) {
  const wf__lane_outcome *outcomes = (const wf__lane_outcome *)wf__flight_box(worker, flight, WF__BOX_OUTCOMES);
  uint64_t tokens = 0, frames = 0;
  uint32_t full = 0;
  for (uint32_t i = 0; i < flight->count; i++) {
    full += outcomes[i].status == WF__LANE_TABLE_FULL;
    if (outcomes[i].status != WF__LANE_OK) continue;
    tokens += outcomes[i].num_tokens;
    frames += (uint64_t)outcomes[i].num_decoded;
  }
  if (frames > 0) worker->facts.usual_tokens = (uint32_t)(tokens / frames) + 1;
  if (full * OFTEN > flight->count && wf__gpu_next_size(worker) > 0) worker->usual_size = wf__gpu_next_size(worker);
}

static char *landing_window(const wf__gpu_worker *worker, const wf__landing *landing) {
  return landing->window >= 0 ? worker->landing_windows + (uint64_t)landing->window * worker->plan.landing_bytes : NULL;
}

/* The first bytes of a flight's array, on their way to its landing window, of which *used are in use, or else to memory of their own; none: NULL. */
static wf_status fetch_array(const wf__gpu_worker *worker, wf__flight *flight, wf__array array, uint64_t bytes, uint64_t *used, void **out, const char *what, wf_error *err) {
  *out = NULL;
  if (bytes == 0) return WF_OK;
  char *window = landing_window(worker, &flight->landing);
  const bool fits = window != NULL && *used + bytes <= worker->plan.landing_bytes; /* copies to memory that is not page-locked are several times slower */
  *out = fits ? window + *used : wf__alloc(bytes, 1);
  if (*out == NULL) return wf__fail_memory(err, bytes, what);
  if (fits) *used = (*used + bytes + 255) / 256 * 256;
  WF__CUDA_TRY(cudaMemcpyAsync(*out, wf__flight_array(worker, flight, array), bytes, cudaMemcpyDeviceToHost, flight->stream), what);
  return WF_OK;
}

static void free_array(const wf__gpu_worker *worker, const wf__landing *landing, void *array) {
  const uintptr_t at = (uintptr_t)array, window = (uintptr_t)landing_window(worker, landing);
  if (window == 0 || at < window || at - window >= worker->plan.landing_bytes) free(array);
}

static uint32_t count_outcomes(const wf__flight *flight, const wf__lane_outcome *outcomes, int32_t status) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < flight->count; i++) count += outcomes[i].status == status;
  return count;
}

/* Lattices that asked for these tables. Those in device memory are allocated for as many as need them; if there is no room, the CPU makes these lattices. */
static wf_status make_larger_lattices(const wf__gpu_worker *worker, wf__flight *flight, wf__backward_tables tables, wf_error *err) {
  const wf__lane_outcome *outcomes = wf__flight_box(worker, flight, WF__BOX_OUTCOMES);
  const uint32_t count = count_outcomes(flight, outcomes, tables == WF__BACKWARD_LARGE ? WF__LANE_LARGE_LATTICE : WF__LANE_GLOBAL_LATTICE);
  if (count == 0) return WF_OK;
  if (tables == WF__BACKWARD_GLOBAL && cudaMalloc(&flight->global_tables, kernels_of(worker)->global_bytes(count)) != cudaSuccess) {
    (void)cudaGetLastError(); /* or the next launch takes it for its own error */
    flight->global_tables = NULL;
    return WF_OK;
  }
  WF__TRY(make_lattices(worker, flight, tables, err));
  return wf__gpu_wait(flight->back_stream, "the kernel of lattices", err);
}

/* Of a flight whose kernels have ended. */
static void free_global_tables(wf__flight *flight) {
  if (flight->global_tables != NULL) cudaFree(flight->global_tables);
  flight->global_tables = NULL;
}

/* Waits for the flight, and sees to lattices that need larger tables. */
static wf_status wait_for(const wf__gpu_worker *worker, wf__flight *flight, wf_error *err) {
  WF__TRY(wf__gpu_wait(flight->stream, "the search kernel", err));
  if (worker->options.lattice_beam == 0) return WF_OK;
  WF__TRY(wf__gpu_wait(flight->back_stream, "the kernel of lattices", err));
  for (wf__backward_tables tables = WF__BACKWARD_LARGE; tables < WF__BACKWARD_LEVELS; tables++) WF__TRY(make_larger_lattices(worker, flight, tables, err));
  free_global_tables(flight);
  return WF_OK;
}

/* A landing window that is free; -1: none is. */
static int free_window(const wf__gpu_worker *worker) {
  for (int i = 0; i < WF__LANDINGS; i++)
    if (!worker->landing_taken[i]) return i;
  return -1;
}

/* Has what the flight has brought copied. `window`: for it, or -1. */
static wf_status fetch_results(wf__gpu_worker *worker, wf__flight *flight, wf__deal *deal, int window, wf_error *err) {
  const uint64_t *steps_used = wf__flight_box(worker, flight, WF__BOX_COUNTERS);
  const uint32_t *pages_used = (const uint32_t *)(steps_used + 1) + 1;
  const uint64_t num_steps = *steps_used < worker->plan.steps_cap ? *steps_used : worker->plan.steps_cap;
  const uint64_t num_links = (uint64_t)(*pages_used < worker->plan.pages_cap ? *pages_used : worker->plan.pages_cap) * WF__LANE_PAGE;
  wf__landing *landing = &flight->landing;
  wf__gpu_pages *pages = &landing->pages;
  uint64_t used = 0;
  *landing = (wf__landing){.worker = worker, .flight = flight, .deal = deal, .window = window};
  flight->stage = WF__COPIED;
  if (window >= 0) worker->landing_taken[window] = true;
  WF__TRY(fetch_array(worker, flight, WF__ARRAY_STEPS, num_steps * sizeof *landing->steps, &used, (void **)&landing->steps, "paths", err));
  WF__TRY(fetch_array(worker, flight, WF__ARRAY_PAGES, num_links * sizeof *pages->links, &used, (void **)&pages->links, "lattices", err));
  if (worker->plan.scored)
    WF__TRY(fetch_array(worker, flight, WF__ARRAY_PAGE_CONTEXTS, num_links * sizeof *pages->contexts, &used, (void **)&pages->contexts, "lattices", err));
  return WF_OK;
}

/* The copies are there: the pool's threads fill the results in. */
static void fill(wf__gpu_worker *worker, wf__flight *flight) {
  atomic_fetch_add(&flight->landing.deal->num_done, flight->count);
  flight->stage = WF__FILLED;
  wf__pool_start(worker->pool, &flight->job, flight->count, land_one, &flight->landing);
}

/* Waits until the flight's results are filled in, if they are about to be; then it is free. */
static wf_status settle(wf__gpu_worker *worker, wf__flight *flight, wf_error *err) {
  wf__landing *landing = &flight->landing;
  if (flight->stage == WF__FILLED) wf__pool_wait(worker->pool, &flight->job);
  const wf_status status = landing->error.code;
  if (status != WF_OK) wf__fail(err, status, "%s", landing->error.message);
  if (flight->stage == WF__FILLED) learn(worker, flight);
  free_array(worker, landing, landing->steps);
  free_array(worker, landing, landing->pages.links);
  free_array(worker, landing, landing->pages.contexts);
  if (landing->window >= 0) worker->landing_taken[landing->window] = false;
  flight->count = 0;
  flight->stage = WF__IN_THE_AIR;
  return status;
}

/* --- the batch --------------------------------------------------------------------------------------------------------- */

static wf_status tell_progress(const wf__deal *deal, const wf_progress *progress, wf_error *err) {
  return wf__progress(progress, "decoding", (double)atomic_load(&deal->num_done) / (double)deal->num_all, err);
}

/* What the flights wait for: the oldest in the air, the oldest that has come back, one whose results are being filled in, one whose are. */
struct view {
  wf__flight *oldest, *back, *filling, *filled;
  uint32_t in_the_air, copied;
};

/* Looks at one flight; if its copies are there, they are filled in from now on. */
static wf_status look_at(wf__gpu_worker *worker, wf__flight *flight, struct view *view, wf_error *err) {
  bool done = false;
  if (flight->stage == WF__COPIED) {
    WF__TRY(wf__gpu_is_done(flight->stream, &done, err));
    if (done) fill(worker, flight);
    else view->copied++;
  }
  if (flight->stage == WF__FILLED) {
    view->filling = flight;
    if (wf__pool_is_done(worker->pool, &flight->job)) view->filled = flight;
  }
  if (flight->stage != WF__IN_THE_AIR) return WF_OK;
  view->in_the_air++;
  if (view->oldest == NULL || flight->number < view->oldest->number) view->oldest = flight;
  WF__TRY(wf__gpu_is_done(flight->back_stream, &done, err));
  if (done && (view->back == NULL || flight->number < view->back->number)) view->back = flight;
  return WF_OK;
}

/* With lattices, over which the host takes its time: waits until some flight's results are filled in, which makes it free; NULL if none is under way. Meanwhile others land, in the order in which
 * they come back. */
static wf_status next_filled(wf__gpu_worker *worker, wf__deal *deal, wf__flight **out, wf_error *err) {
  for (;;) {
    struct view view = {0};
    WF__TRY(wf__interrupted(err));
    for (uint32_t k = 0; k < worker->plan.num_flights; k++)
      if (worker->flights[k].count > 0) WF__TRY(look_at(worker, &worker->flights[k], &view, err));
    const int window = free_window(worker);
    const bool idle = view.filling == NULL && view.copied == 0;
    if (view.in_the_air == 1 && idle) view.back = view.oldest; /* nothing to do but wait for it */
    *out = view.filled;
    if (*out != NULL) return settle(worker, *out, err);
    if (view.in_the_air == 0 && idle) return WF_OK;
    if (view.back != NULL && window >= 0) {
      WF__TRY(wait_for(worker, view.back, err));
      WF__TRY(fetch_results(worker, view.back, deal, window, err));
    } else if (!wf__pool_help(worker->pool)) {
      nanosleep(&(struct timespec){.tv_nsec = LOOK_AGAIN_NS}, NULL);
    }
  }
}

/* Without lattices: waits for the oldest flight; NULL if none is in the air. */
static wf_status oldest_filled(wf__gpu_worker *worker, wf__deal *deal, wf__flight **out, wf_error *err) {
  *out = NULL;
  for (uint32_t k = 0; k < worker->plan.num_flights; k++)
    if (worker->flights[k].count > 0 && (*out == NULL || worker->flights[k].number < (*out)->number)) *out = &worker->flights[k];
  if (*out == NULL) return WF_OK;
  WF__TRY(wait_for(worker, *out, err));
  WF__TRY(fetch_results(worker, *out, deal, -1, err));
  WF__TRY(wf__gpu_wait((*out)->stream, "results from the GPU", err));
  fill(worker, *out);
  return settle(worker, *out, err);
}

static wf__flight *free_flight(wf__gpu_worker *worker) {
  for (uint32_t k = 0; k < worker->plan.num_flights; k++)
    if (worker->flights[k].count == 0) return &worker->flights[k];
  return NULL;
}

static wf_status fly(wf__gpu_worker *worker, wf__deal *deal, const wf_progress *progress, wf_error *err) {
  uint64_t num_launched = 0;
  for (wf__flight *flight = &worker->flights[0];;) { /* has taken, but is not on its way yet */
    if (flight->count > 0) {
      flight->number = num_launched++;
      WF__TRY(wf__gpu_send_scores(worker, flight, deal->batch, err));
      WF__TRY(launch(worker, flight, err));
    }
    flight = free_flight(worker);
    if (flight != NULL) wf__gpu_take(worker, flight, deal);
    if (flight != NULL && flight->count > 0) continue;
    WF__TRY((worker->options.lattice_beam > 0 ? next_filled : oldest_filled)(worker, deal, &flight, err));
    if (flight == NULL) return WF_OK;
    WF__TRY(tell_progress(deal, progress, err));
    wf__gpu_take(worker, flight, deal);
  }
}

wf_status wf__gpu_work(wf__gpu_worker *worker, wf__deal *deal, void *caller_stream, const wf_progress *progress, wf_error *err) {
  WF__CUDA_TRY(cudaSetDevice(worker->device), "choosing the GPU");
  if (worker->flights[0].count == 0) return WF_OK;
  wf__gpu_fill_options(&worker->params, worker->graph, &worker->options);
  WF__CUDA_TRY(cudaEventRecord(worker->entered, (cudaStream_t)caller_stream), "the caller's stream");
  for (uint32_t k = 0; k < worker->plan.num_flights; k++)
    WF__CUDA_TRY(cudaStreamWaitEvent(worker->flights[k].stream, worker->entered, 0), "the caller's stream");
  wf_status status = fly(worker, deal, progress, err);
  if (status != WF_OK) { /* nothing may be in the air when the caller gets its scores back */
    __atomic_store_n(worker->stop, 1, __ATOMIC_SEQ_CST);
    for (uint32_t k = 0; k < worker->plan.num_flights; k++) {
      cudaStreamSynchronize(worker->flights[k].stream);
      if (worker->flights[k].back_stream != NULL) cudaStreamSynchronize(worker->flights[k].back_stream);
      free_global_tables(&worker->flights[k]);
      if (worker->flights[k].stage != WF__IN_THE_AIR) settle(worker, &worker->flights[k], NULL);
      worker->flights[k].count = 0;
    }
    cudaStreamSynchronize(worker->copy_stream);
    __atomic_store_n(worker->stop, 0, __ATOMIC_SEQ_CST);
  }
  return status;
}

#endif
