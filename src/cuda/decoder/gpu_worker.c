/* gpu_worker.c - a GPU's share of a batch, chunk after chunk: scores, search, results. Several
 * chunks are in flight at a time.
 *
 * An utterance that does not fit the plan (its trace or path is longer than planned) is decoded
 * again by the CPU, with the same result. One whose frames do not fit the lane is left to the
 * next round, with larger lanes. */
#ifdef WARPFST_CUDA
#include "cuda/decoder/gpu_worker.h"

#include <string.h>
#include <time.h>

#include "base/callbacks.h"
#include "base/interrupt.h"

enum {
  LOOK_AGAIN_NS = 10000, /* between polls of the chunks in flight */
};

/* --- taking ------------------------------------------------------------------------------ */

void wf__gpu_take(wf__gpu_worker *worker, wf__batch_chunk *chunk, wf__work_queue *work) {
  uint32_t *numbers = wf__chunk_transfer(chunk, WF__TRANSFER_NUMBERS);
  chunk->count = 0;
  if (atomic_load(&work->failed) != 0) return;
  pthread_mutex_lock(&work->mutex);
  for (int q = 0; q < work->num_queues && chunk->count == 0; q++) {
    if (work->queues[q].device != worker->device && work->queues[q].device >= 0) continue;
    chunk->on_device = work->queues[q].device >= 0;
    while (chunk->count < worker->plan.chunk_size && work->queues[q].next < work->queues[q].end)
      numbers[chunk->count++] = work->utterances[work->queues[q].next++];
  }
  pthread_mutex_unlock(&work->mutex);
}

/* --- results ----------------------------------------------------------------------------- */

/* Decodes an utterance that does not fit the plan on the CPU. */
static wf_status decode_on_cpu(wf__gpu_worker *worker, wf__batch_chunk *chunk,
                               const wf_graph *graph, const wf_scores *scores,
                               const wf_scorer *scorer, int thread, wf_result *result,
                               wf_error *err) {
  const wf__search_setup setup = {
      .ops = &wf__frame_searcher, .graph = worker->graph, .options = worker->options};
  if (worker->searches[thread] == NULL)
    WF__TRY(setup.ops->create(&setup, false, &worker->searches[thread], err));
  wf__searcher *search = worker->searches[thread];
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
                                const wf__lane_outcome *outcome, const wf__lane_step *steps,
                                const wf_scorer *scorer, int thread, wf_result *result,
                                wf_error *err) {
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
  const bool skips = worker->params.rules.skip_above < INFINITY;
  if (status == WF_OK && skips)
    status = wf__vec_grow(&path.frames, (uint64_t)outcome->num_decoded, "a path", err);
  for (uint32_t k = 0; k < outcome->path_size && status == WF_OK; k++) {
    path.arcs.data[path.arcs.size++] = steps[k].arc;
    if (wf__graph_arc(graph, steps[k].arc).ilabel == 0) continue;
    path.loglikes.data[path.loglikes.size++] = steps[k].loglike;
    if (skips) path.frames.data[path.frames.size++] = (int32_t)steps[k].frame;
  }
  if (status == WF_OK && scorer != NULL)
    status = sum_scorer_costs(
        graph, worker->limits.deferred ? wf__batch_rnn_cpu_scorer(worker, scorer) : scorer,
        &worker->scorings[thread], &path, err);
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
  const wf__lane_step *path = readback->steps + outcome->path_off;
  if (bad != UINT64_MAX)
    return wf__gpu_report_bad_score(scores, bad, 0, chunk->stream, result, err);
  switch (outcome->status) {
    case WF__LANE_OK:
      WF__TRY(fill_from_path(worker, graph, outcome, path, scorer, thread, result, err));
      return worker->options.lattice_beam > 0
                 ? wf__gpu_lattice(worker, graph, outcome, path, &readback->pages, scorer != NULL,
                                   readback->work->batch->determinizers, thread, &result->lattice,
                                   err)
                 : WF_OK;
    case WF__LANE_CLOSURE:
    case WF__LANE_CYCLE: return wf__gpu_outcome_error(outcome->status, &worker->options, err);
    case WF__LANE_TABLE_FULL:
      if (wf__gpu_next_size(worker) == 0) break;
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
  wf_error *err = &worker->errors[thread];
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

int wf__gpu_next_size(const wf__gpu_worker *worker) {
  const wf__gpu_plan *plan = &worker->plan;
  const int least = plan->size - (plan->least_ranks < plan->ranks);
  return plan->smallest ? 0 : wf__gpu_larger_size(&worker->limits, least);
}

/* Statistics of these utterances for the next plan. */
static void update_estimates(wf__gpu_worker *worker, const wf__batch_chunk *chunk) {
  const wf__lane_outcome *outcomes = wf__chunk_transfer(chunk, WF__TRANSFER_OUTCOMES);
  wf__search_tally tally = {0};
  for (uint32_t i = 0; i < chunk->count; i++)
    wf__search_tally_add(&tally, outcomes[i].status, outcomes[i].num_tokens,
                         (uint64_t)outcomes[i].num_decoded);
  if (tally.frames > 0) worker->limits.usual_tokens = wf__search_tally_usual(&tally, 0);
  if (wf__search_tally_too_small(&tally) && wf__gpu_next_size(worker) > 0)
    worker->usual_size = wf__gpu_next_size(worker);
}

static char *readback_window(const wf__gpu_worker *worker, const wf__readback *readback) {
  return readback->window >= 0
             ? worker->readback_windows + (uint64_t)readback->window * worker->plan.readback_bytes
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
  char *window = readback_window(worker, &chunk->readback);
  const bool fits =
      window != NULL &&
      *used + bytes <= worker->plan.readback_bytes; /* copies to memory that is not page-locked are
                                                       several times slower */
  *out = fits ? window + *used : wf__alloc(bytes, 1);
  if (*out == NULL) return wf__fail_memory(err, bytes, what);
  if (fits) *used = (*used + bytes + 255) / 256 * 256;
  WF__CUDA_TRY(cudaMemcpyAsync(*out, wf__chunk_array(worker, chunk, array), bytes,
                               cudaMemcpyDeviceToHost, results_stream(worker, chunk)),
               what);
  return WF_OK;
}

static void free_array(const wf__gpu_worker *worker, const wf__readback *readback, void *array) {
  const uintptr_t at = (uintptr_t)array, window = (uintptr_t)readback_window(worker, readback);
  if (window == 0 || at < window || at - window >= worker->plan.readback_bytes) free(array);
}

static uint32_t count_outcomes(const wf__batch_chunk *chunk, const wf__lane_outcome *outcomes,
                               int32_t status) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < chunk->count; i++) count += outcomes[i].status == status;
  return count;
}

static void free_global_tables(wf__batch_chunk *chunk) {
  if (chunk->global_tables != NULL) cudaFree(chunk->global_tables);
  chunk->global_tables = NULL;
  chunk->global_bytes = 0;
}

/* Room for the tables of `count` lattices in device memory; false if there is none. They are kept
 * for later passes, since freeing them would wait for all kernels. */
static bool reserve_global_tables(const wf__gpu_worker *worker, wf__batch_chunk *chunk,
                                  uint32_t count) {
  const uint64_t bytes = wf__search_kernels_of[wf__gpu_kind_of(worker)].global_bytes(count);
  if (bytes <= chunk->global_bytes) return true;
  free_global_tables(chunk);
  if (cudaMalloc(&chunk->global_tables, bytes) != cudaSuccess) {
    (void)cudaGetLastError(); /* otherwise the next launch would report it as its own error */
    chunk->global_tables = NULL;
    return false;
  }
  chunk->global_bytes = bytes;
  return true;
}

/* After the search, or a pass, has ended: starts the next pass, for lattices that need larger
 * tables. *started: there are any. Lattices that no table holds are left to the CPU. */
static wf_status start_pass(const wf__gpu_worker *worker, wf__batch_chunk *chunk, bool *started,
                            wf_error *err) {
  static const int32_t wanted[] = {[WF__BACKWARD_LARGE] = WF__LANE_LARGE_LATTICE,
                                   [WF__BACKWARD_GLOBAL] = WF__LANE_GLOBAL_LATTICE};
  const wf__lane_outcome *outcomes = wf__chunk_transfer(chunk, WF__TRANSFER_OUTCOMES);
  *started = chunk->tables == WF__BACKWARD_SMALL;
  if (*started) return wf__gpu_make_lattices(worker, chunk, WF__BACKWARD_SMALL, err);
  for (; chunk->tables < WF__BACKWARD_LEVELS; chunk->tables++) {
    const uint32_t count = count_outcomes(chunk, outcomes, wanted[chunk->tables]);
    if (count == 0) continue;
    if (chunk->tables == WF__BACKWARD_GLOBAL && !reserve_global_tables(worker, chunk, count))
      continue;
    *started = true;
    return wf__gpu_make_lattices(worker, chunk, chunk->tables, err);
  }
  return WF_OK;
}

/* Waits for the chunk's search, and makes its lattices. */
static wf_status wait_for(const wf__gpu_worker *worker, wf__batch_chunk *chunk, wf_error *err) {
  WF__TRY(wf__gpu_wait(chunk->stream, "the search kernel", err));
  for (bool started = worker->options.lattice_beam > 0; started;) {
    WF__TRY(wf__gpu_wait(chunk->backward_stream, "the kernel of lattices", err));
    WF__TRY(start_pass(worker, chunk, &started, err));
  }
  return WF_OK;
}

/* A free readback window; -1: there is none. */
static int free_window(const wf__gpu_worker *worker) {
  for (int i = 0; i < WF__READBACKS; i++)
    if (!worker->window_taken[i]) return i;
  return -1;
}

/* Starts the copies of paths and lattices. `window`: a free one for them, or -1. */
static wf_status fetch_results(wf__gpu_worker *worker, wf__batch_chunk *chunk, wf__work_queue *work,
                               int window, wf_error *err) {
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
  if (window >= 0) worker->window_taken[window] = true;
  WF__TRY(fetch_array(worker, chunk, WF__BATCH_STEPS, num_steps * sizeof *readback->steps,
                      &window_used, (void **)&readback->steps, "paths", err));
  WF__TRY(fetch_array(worker, chunk, WF__BATCH_PAGES, num_links * sizeof *pages->links,
                      &window_used, (void **)&pages->links, "lattices", err));
  if (worker->plan.scored)
    WF__TRY(fetch_array(worker, chunk, WF__BATCH_PAGE_CONTEXTS, num_links * sizeof *pages->contexts,
                        &window_used, (void **)&pages->contexts, "lattices", err));
  return WF_OK;
}

/* After the copies have arrived: starts the pool's threads, which make the results. */
static void fill(wf__gpu_worker *worker, wf__batch_chunk *chunk) {
  atomic_fetch_add(&chunk->readback.work->num_done, chunk->count);
  chunk->stage = WF__CHUNK_FILLED;
  wf__pool_start(worker->pool, &chunk->job, chunk->count, fill_one, &chunk->readback);
}

/* Frees the chunk, after its results are made if that has begun. */
static wf_status release_chunk(wf__gpu_worker *worker, wf__batch_chunk *chunk, wf_error *err) {
  wf__readback *readback = &chunk->readback;
  if (chunk->stage == WF__CHUNK_FILLED) wf__pool_wait(worker->pool, &chunk->job);
  const wf_status status = readback->error.code;
  if (status != WF_OK) wf__fail(err, status, "%s", readback->error.message);
  if (chunk->stage == WF__CHUNK_FILLED) update_estimates(worker, chunk);
  free_array(worker, readback, readback->steps);
  free_array(worker, readback, readback->pages.links);
  free_array(worker, readback, readback->pages.contexts);
  if (readback->window >= 0) worker->window_taken[readback->window] = false;
  chunk->count = 0;
  chunk->stage = WF__CHUNK_SEARCHED;
  return status;
}

/* --- the batch --------------------------------------------------------------------------- */

static wf_status report_progress(const wf__work_queue *work, const wf_progress *progress,
                                 wf_error *err) {
  return wf__progress(progress, "decoding",
                      (double)atomic_load(&work->num_done) / (double)work->num_all, err);
}

/* The state of the chunks in flight: the oldest being searched, the oldest whose search has
 * ended, one whose results are being made, one whose results are complete. */
struct view {
  wf__batch_chunk *oldest, *back, *filling, *filled;
  uint32_t searched, copied;
};

/* Adds one chunk to the view. If its copies have arrived, starts to make its results. */
static wf_status look_at(wf__gpu_worker *worker, wf__batch_chunk *chunk, struct view *view,
                         wf_error *err) {
  bool done = false;
  if (chunk->stage == WF__CHUNK_COPIED) {
    WF__TRY(wf__gpu_is_done(chunk->backward_stream, &done, err));
    if (done)
      fill(worker, chunk);
    else
      view->copied++;
  }
  if (chunk->stage == WF__CHUNK_FILLED) {
    view->filling = chunk;
    if (wf__pool_is_done(worker->pool, &chunk->job)) view->filled = chunk;
  }
  if (chunk->stage != WF__CHUNK_SEARCHED) return WF_OK;
  view->searched++;
  if (view->oldest == NULL || chunk->number < view->oldest->number) view->oldest = chunk;
  bool started = false;
  WF__TRY(wf__gpu_is_done(
      chunk->tables == WF__BACKWARD_SMALL ? chunk->stream : chunk->backward_stream, &done, err));
  if (done) WF__TRY(start_pass(worker, chunk, &started, err));
  if (done && !started && (view->back == NULL || chunk->number < view->back->number))
    view->back = chunk;
  return WF_OK;
}

/* With lattices, which take the host some time: waits until the results of any chunk are made;
 * NULL: none is in flight. Meanwhile reads back others, as their searches end. */
static wf_status next_filled(wf__gpu_worker *worker, wf__work_queue *work, wf__batch_chunk **out,
                             wf_error *err) {
  for (;;) {
    struct view view = {0};
    WF__TRY(wf__interrupted(err));
    for (uint32_t k = 0; k < worker->plan.num_chunks; k++)
      if (worker->chunks[k].count > 0) WF__TRY(look_at(worker, &worker->chunks[k], &view, err));
    const int window = free_window(worker);
    const bool idle = view.filling == NULL && view.copied == 0;
    *out = view.filled;
    if (*out != NULL) return release_chunk(worker, *out, err);
    if (view.searched == 0 && idle) return WF_OK;
    if (view.searched == 1 && idle && view.back == NULL) { /* there is nothing else to do */
      view.back = view.oldest;
      WF__TRY(wait_for(worker, view.back, err));
    }
    if (view.back != NULL && window >= 0) {
      WF__TRY(fetch_results(worker, view.back, work, window, err));
    } else if (!wf__pool_help(worker->pool)) {
      nanosleep(&(struct timespec){.tv_nsec = LOOK_AGAIN_NS}, NULL);
    }
  }
}

/* Without lattices: waits until the oldest chunk's results are made; NULL: none is in flight. */
static wf_status oldest_filled(wf__gpu_worker *worker, wf__work_queue *work, wf__batch_chunk **out,
                               wf_error *err) {
  *out = NULL;
  for (uint32_t k = 0; k < worker->plan.num_chunks; k++)
    if (worker->chunks[k].count > 0 && (*out == NULL || worker->chunks[k].number < (*out)->number))
      *out = &worker->chunks[k];
  if (*out == NULL) return WF_OK;
  WF__TRY(wait_for(worker, *out, err));
  WF__TRY(fetch_results(worker, *out, work, -1, err));
  WF__TRY(wf__gpu_wait((*out)->stream, "results from the GPU", err));
  fill(worker, *out);
  return release_chunk(worker, *out, err);
}

static wf__batch_chunk *free_chunk(wf__gpu_worker *worker) {
  for (uint32_t k = 0; k < worker->plan.num_chunks; k++)
    if (worker->chunks[k].count == 0) return &worker->chunks[k];
  return NULL;
}

static wf_status run_chunks(wf__gpu_worker *worker, wf__work_queue *work,
                            const wf_progress *progress, wf_error *err) {
  uint64_t num_launched = 0;
  for (wf__batch_chunk *chunk = &worker->chunks[0];
       ;) { /* the chunk that is launched next, if it has utterances */
    if (chunk->count > 0) {
      chunk->number = num_launched++;
      WF__TRY(wf__gpu_send_scores(worker, chunk, work->batch, err));
      WF__TRY(wf__gpu_launch_chunk(worker, chunk, err));
    }
    chunk = free_chunk(worker);
    if (chunk != NULL) wf__gpu_take(worker, chunk, work);
    if (chunk != NULL && chunk->count > 0) continue;
    WF__TRY((worker->options.lattice_beam > 0 ? next_filled : oldest_filled)(worker, work, &chunk,
                                                                             err));
    if (chunk == NULL) return WF_OK;
    WF__TRY(report_progress(work, progress, err));
    wf__gpu_take(worker, chunk, work);
  }
}

wf_status wf__gpu_work(wf__gpu_worker *worker, wf__work_queue *work, void *caller_stream,
                       const wf_progress *progress, wf_error *err) {
  WF__CUDA_TRY(cudaSetDevice(worker->device), "choosing the GPU");
  if (worker->chunks[0].count == 0) return WF_OK;
  wf__gpu_fill_options(&worker->params, worker->graph, &worker->options);
  WF__CUDA_TRY(cudaEventRecord(worker->entered, (cudaStream_t)caller_stream),
               "the caller's stream");
  for (uint32_t k = 0; k < worker->plan.num_chunks; k++)
    WF__CUDA_TRY(cudaStreamWaitEvent(worker->chunks[k].stream, worker->entered, 0),
                 "the caller's stream");
  wf_status status = run_chunks(worker, work, progress, err);
  if (status !=
      WF_OK) { /* nothing may be in flight when the call returns, as the scores are the caller's */
    __atomic_store_n(worker->stop, 1, __ATOMIC_SEQ_CST);
    for (uint32_t k = 0; k < worker->plan.num_chunks; k++) {
      cudaStreamSynchronize(worker->chunks[k].stream);
      if (worker->chunks[k].backward_stream != NULL)
        cudaStreamSynchronize(worker->chunks[k].backward_stream);
      if (worker->chunks[k].stage != WF__CHUNK_SEARCHED)
        release_chunk(worker, &worker->chunks[k], NULL);
      worker->chunks[k].count = 0;
    }
    for (int i = 0; i < WF__MAX_RANK_BITS; i++)
      if (worker->group_streams[i] != NULL) cudaStreamSynchronize(worker->group_streams[i]);
    cudaStreamSynchronize(worker->copy_stream);
    wf__gpu_drain_rnn_scorings(worker);
    __atomic_store_n(worker->stop, 0, __ATOMIC_SEQ_CST);
  }
  for (uint32_t k = 0; k < worker->plan.num_chunks; k++) free_global_tables(&worker->chunks[k]);
  return status;
}

#endif
