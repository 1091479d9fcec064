/* gpu_worker.c - a GPU's share of a batch, chunk after chunk: scores, search, results. Several
 * chunks are in flight at a time. */
#include "cuda/decoder/gpu_worker.h"

#include <time.h>

#include "base/callbacks.h"
#include "base/interrupt.h"
#include "cuda/decoder/gpu_pipeline.h"
#include "cuda/decoder/rnn_scoring.h"

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

/* --- passes that make lattices ----------------------------------------------------------- */

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
      wf__gpu_fill_results(worker, chunk);
    else
      view->copied++;
  }
  if (chunk->stage == WF__CHUNK_FILLED) {
    view->filling = chunk;
    if (wf__pool_is_done(worker->threads.pool, &chunk->job)) view->filled = chunk;
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
    const int window = wf__readback_free(&worker->readbacks);
    const bool idle = view.filling == NULL && view.copied == 0;
    *out = view.filled;
    if (*out != NULL) return wf__gpu_release_chunk(worker, *out, err);
    if (view.searched == 0 && idle) return WF_OK;
    if (view.searched == 1 && idle && view.back == NULL) { /* there is nothing else to do */
      view.back = view.oldest;
      WF__TRY(wait_for(worker, view.back, err));
    }
    if (view.back != NULL && window >= 0) {
      WF__TRY(wf__gpu_fetch_results(worker, view.back, work, window, err));
    } else if (!wf__pool_help(worker->threads.pool)) {
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
  WF__TRY(wf__gpu_fetch_results(worker, *out, work, -1, err));
  WF__TRY(wf__gpu_wait((*out)->stream, "results from the GPU", err));
  wf__gpu_fill_results(worker, *out);
  return wf__gpu_release_chunk(worker, *out, err);
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
  WF__CUDA_TRY(cudaEventRecord(worker->launches.entered, (cudaStream_t)caller_stream),
               "the caller's stream");
  for (uint32_t k = 0; k < worker->plan.num_chunks; k++)
    WF__CUDA_TRY(cudaStreamWaitEvent(worker->chunks[k].stream, worker->launches.entered, 0),
                 "the caller's stream");
  wf_status status = run_chunks(worker, work, progress, err);
  if (status !=
      WF_OK) { /* nothing may be in flight when the call returns, as the scores are the caller's */
    __atomic_store_n(worker->launches.stop, 1, __ATOMIC_SEQ_CST);
    for (uint32_t k = 0; k < worker->plan.num_chunks; k++) {
      cudaStreamSynchronize(worker->chunks[k].stream);
      if (worker->chunks[k].backward_stream != NULL)
        cudaStreamSynchronize(worker->chunks[k].backward_stream);
      if (worker->chunks[k].stage != WF__CHUNK_SEARCHED)
        wf__gpu_release_chunk(worker, &worker->chunks[k], NULL);
      worker->chunks[k].count = 0;
    }
    for (int i = 0; i < WF__MAX_RANK_BITS; i++)
      if (worker->launches.group_streams[i] != NULL)
        cudaStreamSynchronize(worker->launches.group_streams[i]);
    cudaStreamSynchronize(worker->copy_stream);
    wf__gpu_drain_rnn_scorings(worker);
    __atomic_store_n(worker->launches.stop, 0, __ATOMIC_SEQ_CST);
  }
  for (uint32_t k = 0; k < worker->plan.num_chunks; k++) free_global_tables(&worker->chunks[k]);
  return status;
}
