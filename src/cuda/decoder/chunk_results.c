/* chunk_results.c - results of a chunk: copied to host memory, then made by the worker's threads.
 *
 * An utterance that does not fit the plan (its trace or path is longer than planned) is decoded
 * again by the CPU, with the same result. One whose frames do not fit the lane is left to the
 * next round, with larger lanes. */
#include "cuda/decoder/chunk_results.h"

#include "base/callbacks.h"
#include "cuda/decoder/batch_rnn_scoring.h"
#include "cuda/decoder/gpu_pipeline.h"
#include "cuda/decoder/gpu_worker.h"
#include "cuda/decoder/read_lattice.h"

/* --- one utterance ----------------------------------------------------------------------- */

/* Decodes an utterance that does not fit the plan on the CPU. */
static wf_status decode_on_cpu(wf__gpu_worker *worker, wf__batch_chunk *chunk,
                               const wf_graph *graph, const wf_scores *scores,
                               const wf_scorer *scorer, int thread, wf_result *result,
                               wf_error *err) {
  const wf__search_setup setup = {
      .ops = &wf__frame_searcher, .graph = worker->graph, .options = worker->options};
  wf__searcher **place = &worker->threads.searches[thread];
  if (*place == NULL) WF__TRY(setup.ops->create(&setup, false, place, err));
  wf__searcher *search = *place;
  wf_scores host;
  void *copy;
  wf_status status = wf__gpu_scores_to_host(scores, 0, chunk->stream, &host, &copy, err);
  wf__searcher_set_graph(search, graph);
  if (status == WF_OK) status = wf__searcher_set_scorer(search, scorer, err);
  if (status == WF_OK) status = setup.ops->begin(search, err);
  if (status == WF_OK) status = wf__searcher_advance(search, &host, err);
  if (status == WF_OK) status = wf__searcher_finish(search, &host, err);
  if (status == WF_OK)
    status = wf__result_fill(result, graph, &worker->options, &search->path, err);
  if (status == WF_OK && worker->options.lattice_beam > 0)
    status = setup.ops->lattice(search, &host, &result->lattice, err);
  free(copy);
  return status;
}

/* Adds up the scorer's costs along the path, as the CPU search does. */
static wf_status sum_scorer_costs(const wf_graph *graph, const wf_scorer *scorer,
                                  wf__scoring *scoring, wf__path *path, wf_error *err) {
  WF__TRY(wf__scoring_set(scoring, scorer, err));
  WF__TRY(wf__scoring_begin(scoring, err));
  wf__score_sum sum = {scoring->start, 0};
  wf_status status =
      wf__path_score(path, 0, graph, scoring, (path->flags & WF_RESULT_NOT_FINAL) == 0, &sum, err);
  path->scorer_cost = sum.cost;
  return status;
}

/* Makes words, times and costs from the path that the GPU found. */
static wf_status fill_from_path(const wf__gpu_worker *worker, const wf_graph *graph,
                                const wf__lane_found *found, const wf_scorer *scorer, int thread,
                                wf_result *result, wf_error *err) {
  const wf__lane_outcome *outcome = found->outcome;
  const wf__lane_step *steps = found->path;
  wf__path path = {.final_cost = outcome->final_cost,
                   .flags = outcome->flags,
                   .num_decoded = outcome->num_decoded,
                   .num_tokens = outcome->num_tokens,
                   .num_expanded = outcome->num_expanded,
                   .num_arcs = outcome->num_arcs,
                   .num_narrowed = outcome->num_narrowed};
  wf_status status = wf__vec_grow(&path.arcs, outcome->path_size, "a path", err);
  if (status == WF_OK)
    status = wf__vec_grow(&path.loglikes, (uint64_t)outcome->num_decoded, "a path", err);
  const bool skips = worker->launches.params.rules.skip_above < INFINITY;
  uint32_t state = 0;
  if (status == WF_OK && skips)
    status = wf__vec_grow(&path.frames, (uint64_t)outcome->num_decoded, "a path", err);
  for (uint32_t k = 0; k < outcome->path_size && status == WF_OK; k++) {
    path.arcs.data[path.arcs.size++] = steps[k].arc;
    if (wf__graph_arc_along(graph, &state, steps[k].arc).ilabel == 0) continue;
    path.loglikes.data[path.loglikes.size++] = steps[k].loglike;
    if (skips) path.frames.data[path.frames.size++] = (int32_t)steps[k].frame;
  }
  if (status == WF_OK && scorer != NULL)
    status = sum_scorer_costs(
        graph, worker->limits.deferred ? wf__batch_rnn_cpu_scorer(worker, scorer) : scorer,
        &worker->threads.scorings[thread], &path, err);
  if (status == WF_OK) status = wf__result_fill(result, graph, &worker->options, &path, err);
  wf__path_free(&path);
  return status;
}

static wf_status fill_result(wf__readback *readback, uint32_t i, int thread, wf_result *result,
                             wf_error *err) {
  wf__gpu_worker *worker = readback->worker;
  wf__batch_chunk *chunk = readback->chunk;
  const wf__lane_outcome *outcome =
      (const wf__lane_outcome *)wf__chunk_transfer(chunk, WF__TRANSFER_OUTCOMES) + i;
  const uint64_t bad = ((const uint64_t *)wf__chunk_transfer(chunk, WF__TRANSFER_BAD))[i];
  const uint32_t u = ((const uint32_t *)wf__chunk_transfer(chunk, WF__TRANSFER_NUMBERS))[i];
  const wf_scores *scores = &readback->work->batch->scores[u];
  const wf_scorer *scorer =
      readback->work->batch->scorers != NULL ? readback->work->batch->scorers[u] : NULL;
  const wf_graph *graph = wf__batch_graph(readback->work->batch, u, worker->graph);
  const wf__lane_found found = {outcome, readback->steps + outcome->path_off, &readback->pages};
  if (bad != UINT64_MAX)
    return wf__gpu_report_bad_score(scores, bad, 0, chunk->stream, result, err);
  switch (outcome->status) {
    case WF__LANE_OK:
      WF__TRY(fill_from_path(worker, graph, &found, scorer, thread, result, err));
      return worker->options.lattice_beam > 0
                 ? wf__gpu_lattice(&worker->threads, thread, graph, &worker->options, &found,
                                   scorer != NULL, readback->work->batch->determinizers,
                                   &result->lattice, err)
                 : WF_OK;
    case WF__LANE_CLOSURE:
    case WF__LANE_CYCLE: return wf__gpu_outcome_error(outcome->status, &worker->options, err);
    case WF__LANE_TABLE_FULL:
      if (wf__gpu_next_size(&worker->plan, &worker->limits) == 0) break;
      atomic_fetch_sub(&readback->work->num_done, 1);
      pthread_mutex_lock(&readback->work->mutex);
      readback->work->retry[readback->work->num_retry++] = u;
      pthread_mutex_unlock(&readback->work->mutex);
      return WF_OK;
    default: break;
  }
  wf__log(WF_LOG_DEBUG,
          "utterance %u of %lld frames did not fit the GPU's plan and is decoded on the CPU", u,
          (long long)scores->num_frames);
  return decode_on_cpu(worker, chunk, graph, scores, scorer, thread, result, err);
}

static void fill_one(void *user, uint64_t item, int thread) {
  wf__readback *readback = user;
  wf__gpu_worker *worker = readback->worker;
  if (atomic_load(&readback->work->failed) != 0) return;
  wf_error *err = &worker->threads.errors[thread];
  const uint32_t u =
      ((const uint32_t *)wf__chunk_transfer(readback->chunk, WF__TRANSFER_NUMBERS))[item];
  wf_result *result = readback->work->batch->results[u];
  wf_status status = cudaSetDevice(worker->device) == cudaSuccess
                         ? WF_OK
                         : wf__fail(err, WF_ERR_DEVICE, "CUDA: choosing the GPU");
  if (status == WF_OK) status = fill_result(readback, (uint32_t)item, thread, result, err);
  const wf__batch *batch = readback->work->batch;
  if (status == WF_OK)
    status = wf__result_determinize(batch, wf__batch_graph(batch, u, worker->graph), result, err);
  if (status == WF_OK) return;
  if (status == WF_ERR_MEMORY || status == WF_ERR_DEVICE || status == WF_ERR_CANCELLED) {
    int none = 0;
    if (atomic_compare_exchange_strong(&readback->work->failed, &none, (int)status))
      readback->error = *err;
    return;
  }
  wf__result_fail(result, status, err); /* the other utterances have results */
}

/* --- a chunk ----------------------------------------------------------------------------- */

/* Statistics of these utterances for the next plan. */
static void update_estimates(wf__gpu_worker *worker, const wf__batch_chunk *chunk) {
  const wf__lane_outcome *outcomes = wf__chunk_transfer(chunk, WF__TRANSFER_OUTCOMES);
  wf__search_tally tally = {0};
  for (uint32_t i = 0; i < chunk->count; i++)
    wf__search_tally_add(&tally, outcomes[i].status, outcomes[i].num_tokens,
                         (uint64_t)outcomes[i].num_decoded);
  if (tally.frames > 0) worker->limits.usual_tokens = wf__search_tally_usual(&tally, 0);
  if (wf__search_tally_too_small(&tally) && wf__gpu_next_size(&worker->plan, &worker->limits) > 0)
    worker->experience.usual_size = wf__gpu_next_size(&worker->plan, &worker->limits);
}

/* The window of a readback; NULL: it has none. */
static char *window_of(const wf__readback_windows *windows, const wf__readback *readback) {
  return readback->window >= 0 ? windows->memory + (uint64_t)readback->window * windows->bytes
                               : NULL;
}

/* The stream of the copies of results. */
static cudaStream_t results_stream(const wf__gpu_worker *worker, const wf__batch_chunk *chunk) {
  return worker->options.lattice_beam > 0 ? chunk->backward_stream : chunk->stream;
}

/* Starts the copy of a chunk's array to its readback window, of which *used bytes are in use, or
 * else to memory of its own. No bytes: *out = NULL. */
static wf_status fetch_array(const wf__gpu_worker *worker, wf__batch_chunk *chunk,
                             wf__batch_array array, uint64_t bytes, uint64_t *used, void **out,
                             const char *what, wf_error *err) {
  *out = NULL;
  if (bytes == 0) return WF_OK;
  const wf__readback_windows *windows = &worker->readbacks;
  char *window = window_of(windows, &chunk->readback);
  const bool fits = window != NULL && *used + bytes <= windows->bytes;
  *out = fits ? window + *used : wf__alloc(bytes, 1);
  if (*out == NULL) return wf__fail_memory(err, bytes, what);
  if (fits) *used = (*used + bytes + 255) / 256 * 256;
  WF__CUDA_TRY(cudaMemcpyAsync(*out, wf__chunk_array(&worker->plan, chunk, array), bytes,
                               cudaMemcpyDeviceToHost, results_stream(worker, chunk)),
               what);
  return WF_OK;
}

static void free_array(const wf__readback_windows *windows, const wf__readback *readback,
                       void *array) {
  const uintptr_t at = (uintptr_t)array, window = (uintptr_t)window_of(windows, readback);
  if (window == 0 || at < window || at - window >= windows->bytes) free(array);
}

int wf__readback_free(const wf__readback_windows *windows) {
  for (int i = 0; i < WF__READBACKS; i++)
    if (!windows->taken[i]) return i;
  return -1;
}

wf_status wf__gpu_fetch_results(wf__gpu_worker *worker, wf__batch_chunk *chunk,
                                wf__work_queue *work, int window, wf_error *err) {
  const wf__transfer_counters *used = wf__chunk_transfer(chunk, WF__TRANSFER_COUNTERS);
  const wf__gpu_plan *plan = &worker->plan; /* the kernels' counts include what did not fit */
  const uint64_t num_steps =
      used->steps_used < plan->steps_cap ? used->steps_used : plan->steps_cap;
  const uint64_t num_links =
      (uint64_t)(used->pages_used < plan->pages_cap ? used->pages_used : plan->pages_cap) *
      WF__LANE_PAGE;
  wf__readback *readback = &chunk->readback;
  wf__gpu_pages *pages = &readback->pages;
  uint64_t window_used = 0;
  *readback = (wf__readback){.worker = worker, .chunk = chunk, .work = work, .window = window};
  chunk->stage = WF__CHUNK_COPIED;
  if (window >= 0) worker->readbacks.taken[window] = true;
  WF__TRY(fetch_array(worker, chunk, WF__BATCH_STEPS, num_steps * sizeof *readback->steps,
                      &window_used, (void **)&readback->steps, "paths", err));
  WF__TRY(fetch_array(worker, chunk, WF__BATCH_PAGES, num_links * sizeof *pages->links,
                      &window_used, (void **)&pages->links, "lattices", err));
  if (worker->plan.scored)
    WF__TRY(fetch_array(worker, chunk, WF__BATCH_PAGE_CONTEXTS, num_links * sizeof *pages->contexts,
                        &window_used, (void **)&pages->contexts, "lattices", err));
  return WF_OK;
}

void wf__gpu_fill_results(wf__gpu_worker *worker, wf__batch_chunk *chunk) {
  atomic_fetch_add(&chunk->readback.work->num_done, chunk->count);
  chunk->stage = WF__CHUNK_FILLED;
  wf__pool_start(worker->threads.pool, &chunk->job, chunk->count, fill_one, &chunk->readback);
}

wf_status wf__gpu_release_chunk(wf__gpu_worker *worker, wf__batch_chunk *chunk, wf_error *err) {
  wf__readback *readback = &chunk->readback;
  if (chunk->stage == WF__CHUNK_FILLED) wf__pool_wait(worker->threads.pool, &chunk->job);
  const wf_status status = readback->error.code;
  if (status != WF_OK) wf__fail(err, status, "%s", readback->error.message);
  if (chunk->stage == WF__CHUNK_FILLED) update_estimates(worker, chunk);
  free_array(&worker->readbacks, readback, readback->steps);
  free_array(&worker->readbacks, readback, readback->pages.links);
  free_array(&worker->readbacks, readback, readback->pages.contexts);
  if (readback->window >= 0) worker->readbacks.taken[readback->window] = false;
  chunk->count = 0;
  chunk->stage = WF__CHUNK_SEARCHED;
  return status;
}
