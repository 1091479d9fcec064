/* gpu_launch.c - launches of a chunk: its searches, in lanes of one size or of several, and the
 * passes that make its lattices. */
#include "cuda/decoder/gpu_launch.h"

#include "cuda/decoder/gpu_worker.h"
#include "cuda/device/device_memory.h"

wf_status wf__gpu_launches_open(wf__gpu_launches *launches, wf_error *err) {
  cudaEvent_t *events[] = {&launches->entered, &launches->between_groups};
  for (int i = 0; i < 2; i++)
    WF__CUDA_TRY(cudaEventCreateWithFlags(events[i], cudaEventDisableTiming), "an event");
  WF__TRY(wf__pinned_alloc((void **)&launches->stop, sizeof *launches->stop, "a decoder", err));
  *launches->stop = 0;
  return WF_OK;
}

wf_status wf__gpu_launches_open_groups(wf__gpu_launches *launches, wf_error *err) {
  for (int i = 0; i < WF__MAX_RANK_BITS; i++)
    if (launches->group_streams[i] == NULL)
      WF__CUDA_TRY(cudaStreamCreateWithFlags(&launches->group_streams[i], cudaStreamNonBlocking),
                   "a stream");
  return WF_OK;
}

void wf__gpu_launches_close(wf__gpu_launches *launches) {
  const cudaEvent_t events[] = {launches->entered, launches->between_groups};
  for (int i = 0; i < 2; i++)
    if (events[i] != NULL) cudaEventDestroy(events[i]);
  for (int i = 0; i < WF__MAX_RANK_BITS; i++)
    if (launches->group_streams[i] != NULL) cudaStreamDestroy(launches->group_streams[i]);
  cudaFreeHost(launches->stop);
}

wf__lane_rules wf__gpu_rules(const wf_decoder_options *options) {
  return (wf__lane_rules){.beam = options->beam,
                          .acoustic_scale = options->acoustic_scale,
                          .word_score = options->word_score,
                          .blank_penalty = options->blank_penalty,
                          .skip_above = wf__skip_above(options),
                          .blank = options->blank,
                          .max_active = (uint32_t)options->max_active,
                          .min_active = (uint32_t)options->min_active,
                          .max_tokens = (uint32_t)options->max_tokens,
                          .lattice_beam = options->lattice_beam,
                          .by_state = (uint32_t)(options->recombine == WF_RECOMBINE_STATE)};
}

wf__search_kind wf__gpu_kind_of(const wf__gpu_worker *worker) {
  if (worker->limits.deferred) return WF__SEARCH_DEFERRED;
  if (worker->plan.scored) return WF__SEARCH_SCORED;
  return worker->limits.boosted ? WF__SEARCH_BOOSTED : WF__SEARCH_PLAIN;
}

/* The search of the whole chunk in lanes of one size. */
static wf__search_launch launch_of(const wf__gpu_worker *worker, const wf__batch_chunk *chunk) {
  return (wf__search_launch){.kind = wf__gpu_kind_of(worker),
                             .rnn_scoring = worker->limits.deferred ? worker->rnn_scoring : NULL,
                             .count = chunk->count,
                             .max_lanes = worker->plan.lanes,
                             .ranks = worker->plan.ranks,
                             .num_begun = chunk->count};
}

/* Parameters of a search of the chunk and of the backward passes after it. */
static wf__lane_params chunk_params(const wf__gpu_worker *worker, const wf__batch_chunk *chunk,
                                    const wf__search_launch *launch) {
  const wf__gpu_plan *plan = &worker->plan;
  wf__lane_params p = wf__gpu_search_params(&chunk->room, &worker->launches.params, launch);
  p.work.stop = worker->launches.stop;
  p.work.steps = wf__chunk_array(&worker->plan, chunk, WF__BATCH_STEPS);
  p.work.steps_cap = plan->steps_cap;
  p.memory.path_scratch =
      (wf__lane_step *)wf__chunk_array(&worker->plan, chunk, WF__BATCH_PATH_SCRATCH) +
      (uint64_t)launch->first * plan->path_cap; /* searches that are not the first have a lane for
                                                   each utterance */
  p.memory.path_cap = plan->path_cap;
  p.lattices.pages = wf__chunk_array(&worker->plan, chunk, WF__BATCH_PAGES);
  p.lattices.page_contexts = wf__chunk_array(&worker->plan, chunk, WF__BATCH_PAGE_CONTEXTS);
  p.lattices.pages_cap = plan->pages_cap;
  return p;
}

/* Starts the copy of counters, bad scores and outcomes to host memory. */
static wf_status fetch_outcomes(const wf__gpu_worker *worker, wf__batch_chunk *chunk,
                                cudaStream_t stream, wf_error *err) {
  const uint64_t *off = worker->plan.transfer.off, from = off[WF__TRANSFER_COUNTERS];
  const wf__transfer *block = &chunk->room.transfer;
  WF__CUDA_TRY(cudaMemcpyAsync(block->host + from, block->device + from,
                               off[WF__TRANSFER_SCORES] - from, cudaMemcpyDeviceToHost, stream),
               "results from the GPU");
  return WF_OK;
}

wf_status wf__gpu_make_lattices(const wf__gpu_worker *worker, wf__batch_chunk *chunk,
                                wf__backward_tables tables, wf_error *err) {
  const wf__search_launch launch = launch_of(worker, chunk);
  wf__lane_params p = chunk_params(worker, chunk, &launch);
  p.lattices.global_tables = chunk->global_tables;
  chunk->tables = tables + 1;
  WF__CUDA_TRY(
      wf__search_kernels_of[wf__gpu_kind_of(worker)].backward(&p, tables, chunk->backward_stream),
      "the kernel of lattices");
  return fetch_outcomes(worker, chunk, chunk->backward_stream, err);
}

/* Starts the searches of a chunk in lanes of several sizes, side by side: the first on the chunk's
 * stream, which waits for the others at the end. Each begins when all lanes of the one before run,
 * so that clusters, which need blocks near each other, find room. */
static wf_status launch_groups(const wf__gpu_worker *worker, const wf__batch_chunk *chunk,
                               wf_error *err) {
  wf__lane_group groups[WF__MAX_RANK_BITS + 1];
  const int num_groups =
      wf__gpu_group_lanes(&worker->plan, &worker->limits,
                          wf__chunk_transfer(chunk, WF__TRANSFER_UTTERANCES), chunk->count, groups);
  wf__search_launch launch = launch_of(worker, chunk);
  for (int g = 0; g < num_groups; g++) {
    cudaStream_t stream = g == 0 ? chunk->stream : worker->launches.group_streams[g - 1];
    launch.queue = g;
    launch.count = launch.max_lanes = groups[g].count;
    launch.ranks = groups[g].ranks;
    launch.begun = g + 1 < num_groups ? worker->launches.between_groups : NULL;
    wf__lane_params p = chunk_params(worker, chunk, &launch);
    if (g > 0)
      WF__CUDA_TRY(cudaStreamWaitEvent(stream, worker->launches.between_groups, 0),
                   "the search kernels");
    WF__TRY(wf__gpu_submit(&chunk->room, &launch, &p, stream, err));
    launch.first += groups[g].count;
    launch.first_part += (uint64_t)groups[g].count * groups[g].ranks;
  }
  for (int g = 1; g < num_groups; g++) {
    WF__CUDA_TRY(
        cudaEventRecord(worker->launches.between_groups, worker->launches.group_streams[g - 1]),
        "the search kernels");
    WF__CUDA_TRY(cudaStreamWaitEvent(chunk->stream, worker->launches.between_groups, 0),
                 "the search kernels");
  }
  return WF_OK;
}

wf_status wf__gpu_launch_chunk(const wf__gpu_worker *worker, wf__batch_chunk *chunk,
                               wf_error *err) {
  const wf__search_launch launch = launch_of(worker, chunk);
  wf__lane_params p = chunk_params(worker, chunk, &launch);
  uint32_t *order = wf__chunk_transfer(chunk, WF__TRANSFER_ORDER);
  for (uint32_t i = 0; i < chunk->count; i++) order[i] = i; /* taken longest first */
  WF__TRY(wf__gpu_send_transfer(&chunk->room, 0, chunk->stream, err));
  uint64_t *bad = (uint64_t *)(void *)(chunk->room.transfer.device +
                                       worker->plan.transfer.off[WF__TRANSFER_BAD]);
  if (chunk->on_device)
    WF__CUDA_TRY(wf__check_scores_launch(p.work.utterances, chunk->count, bad, chunk->stream),
                 "checking scores");
  if (worker->plan.most_ranks > worker->plan.ranks)
    WF__TRY(launch_groups(worker, chunk, err));
  else
    WF__TRY(wf__gpu_submit(&chunk->room, &launch, &p, chunk->stream, err));
  chunk->tables = WF__BACKWARD_SMALL;
  return p.rules.lattice_beam == 0 ? fetch_outcomes(worker, chunk, chunk->stream, err) : WF_OK;
}
