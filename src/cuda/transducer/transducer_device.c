/* transducer_device.c - a transducer on a GPU (search/transducer/transducer_device.h): groups, their
 * slots, and their submissions. */
#include "cuda/device/gpu_profile.h"
#include "cuda/transducer/transducer_group.h"
#include "cuda/transducer/transducer_lane_rounds.h"
#include "search/transducer/network.h"

/* --- groups ------------------------------------------------------------------------------ */

static wf_status open_group(wf__transducer_group *g, wf_error *err) {
  const wf_transducer *model = g->weights->model;
  WF__CUDA_TRY(cudaSetDevice(g->weights->number), "choosing the GPU");
  WF__CUDA_TRY(cudaEventCreateWithFlags(&g->caller, cudaEventDisableTiming), "an event");
  atomic_store(&g->num_slots, WF__FIRST_SLOT);
  g->max_slots = WF__TRANSDUCER_SLOTS;
  if (g->weights->lstm != NULL) {
    WF__TRY(wf__gpu_rnn()->open(g->weights->lstm, g->max_slots - 1, &g->lstm, err));
    g->stream = wf__gpu_rnn()->stream(g->lstm);
  } else {
    WF__CUDA_TRY(cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking), "a stream");
  }
  return wf__device_reserve(&g->rows, g->max_slots * model->width * sizeof(float),
                            "predictor contexts", err);
}

static void group_close(wf__transducer_group *g) {
  if (g == NULL) return;
  const int caller = wf__callers_device();
  cudaSetDevice(g->weights->number);
  wf__device_buffer *buffers[] = {&g->rows,   &g->encoder, &g->frames, &g->raw,  &g->x,     &g->y,
                                  &g->slices, &g->block,   &g->logits, &g->done, &g->answer};
  if (g->stream != NULL) cudaStreamSynchronize(g->stream);
  wf__launch_graphs_free(&g->graphs);
  if (g->stream != NULL && g->lstm == NULL) cudaStreamDestroy(g->stream);
  wf__gpu_rnn()->close(g->lstm);
  if (g->caller != NULL) cudaEventDestroy(g->caller);
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) cudaFree(buffers[i]->data);
  cudaFreeHost(g->host_frames.data);
  cudaFreeHost(g->host_block.data);
  cudaFreeHost(g->host_answer.data);
  (void)cudaGetLastError(); /* of freeing: all other errors have been reported */
  wf__restore_device(caller);
  wf__vec_free(&g->first_frame);
  wf__vec_free(&g->begins);
  wf__vec_free(&g->where);
  wf__vec_free(&g->free_slots);
  pthread_mutex_destroy(&g->mutex);
  wf__vec_free(&g->asking);
  free(g);
}

static wf_status group_open(wf__transducer_weights *weights, wf__transducer_group **out,
                            wf_error *err) {
  *out = NULL;
  wf__transducer_group *g = wf__calloc(1, sizeof *g);
  if (g == NULL) return wf__fail_memory(err, sizeof *g, "a transducer");
  g->weights = weights;
  pthread_mutex_init(&g->mutex, NULL);
  const int caller = wf__callers_device();
  wf_status status = open_group(g, err);
  wf__restore_device(caller);
  if (status == WF_OK)
    *out = g;
  else
    group_close(g);
  return status;
}

static wf_status begin(wf__transducer_group *g, uint64_t num_frames, void *stream, wf_error *err) {
  static const char what[] = "encoder outputs";
  WF__CUDA_TRY(cudaSetDevice(g->weights->number), "choosing the GPU");
  WF__CUDA_TRY(cudaEventRecord(g->caller, stream), what);
  WF__CUDA_TRY(cudaStreamWaitEvent(g->stream, g->caller, 0), what);
  return wf__device_reserve(&g->encoder, num_frames * g->weights->model->width * sizeof(float),
                            what, err);
}

static wf_status group_begin(wf__transducer_group *g, const wf__score_cut *cut,
                             const int64_t *num_frames, size_t num_lanes, void *stream,
                             wf_error *err) {
  uint64_t all = 0;
  g->cut = *cut;
  atomic_store(&g->num_rows, 0); /* of a batch that failed */
  atomic_store(&g->num_contexts, 0);
  g->first_frame.size = g->begins.size = g->where.size = g->asking.size = 0;
  for (size_t i = 0; i < num_lanes; i++) {
    WF__TRY(wf__vec_push(&g->first_frame, (uint32_t)all, "encoder outputs", err));
    WF__TRY(wf__vec_push(&g->begins, NULL, "encoder outputs", err));
    WF__TRY(wf__vec_push(&g->where, -1, "encoder outputs", err));
    WF__TRY(wf__vec_push(&g->asking, NULL, "encoder outputs", err));
    all += (uint64_t)num_frames[i];
  }
  if (all > UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "the longest %zu utterances have 2^32 frames or more",
                    num_lanes);
  const int caller = wf__callers_device();
  wf_status status = begin(g, all, stream, err);
  wf__restore_device(caller);
  return status;
}

/* --- requests ---------------------------------------------------------------------------- */

/* A slot that another search has released, or a new one. */
static uint32_t take_slot(wf__transducer_group *g) {
  uint32_t slot = WF__NO_SLOT;
  if (atomic_load(&g->num_free) > 0) {
    pthread_mutex_lock(&g->mutex);
    if (g->free_slots.size > 0) slot = g->free_slots.data[--g->free_slots.size];
    atomic_store(&g->num_free, g->free_slots.size);
    pthread_mutex_unlock(&g->mutex);
  }
  return slot != WF__NO_SLOT ? slot : (uint32_t)atomic_fetch_add(&g->num_slots, 1);
}

/* Without memory for the list, a slot stays unused until the group is closed. */
static void release_slot(wf__transducer_group *g, uint32_t slot) {
  if (slot != WF__NO_SLOT) (void)wf__vec_push(&g->free_slots, slot, "predictor contexts", NULL);
}

static void group_release(wf__transducer_group *g, wf__predictions *p) {
  if (g == NULL) return;
  pthread_mutex_lock(&g->mutex);
  for (uint64_t i = 0; i < p->slots.size; i++) release_slot(g, p->slots.data[i]);
  for (uint64_t i = 0; i < p->free_slots.size; i++) release_slot(g, p->free_slots.data[i]);
  atomic_store(&g->num_free, g->free_slots.size);
  pthread_mutex_unlock(&g->mutex);
  p->slots.size = p->free_slots.size = 0;
}

static void group_put(wf__transducer_group *g, size_t lane, const wf_scores *begins, int where,
                      wf__predictions *p) {
  for (uint64_t i = 0; i < p->pending.size; i++) {
    const uint32_t number = p->pending.data[i];
    p->slots.data[number] =
        p->free_slots.size > 0 ? p->free_slots.data[--p->free_slots.size] : take_slot(g);
    p->done.data[number] = true;
  }
  g->begins.data[lane] = begins;
  g->where.data[lane] = where;
  g->asking.data[lane] = p;
  wf__transducer_write_request(g, lane);
}

static wf_status group_submit(wf__transducer_group *g, wf__transducer_counts *counts,
                              wf_error *err) {
  const int caller = wf__callers_device();
  const wf__transducer_round r = wf__transducer_measure(g);
  const cudaError_t code = cudaSetDevice(g->weights->number);
  wf_status status = code == cudaSuccess ? wf__transducer_enqueue(g, &r, err)
                                         : wf__cuda_fail(err, code, "choosing the GPU");
  wf__restore_device(caller);
  for (uint64_t i = 0; i < g->begins.size; i++) {
    g->begins.data[i] = NULL;
    g->asking.data[i] = NULL;
  }
  atomic_store(&g->num_rows, 0);
  atomic_store(&g->num_contexts, 0);
  *counts = (wf__transducer_counts){r.num_rows, r.num_contexts};
  return status;
}

static wf_status group_wait(wf__transducer_group *g, wf_error *err) {
  WF__CUDA_TRY(cudaStreamSynchronize(g->stream), "the transducer");
  return WF_OK;
}

const struct wf__device_transducer wf__cuda_transducer = {
    .count_gpus = wf__gpu_count,
    .weights_send = wf__gpu_transducer_weights_send,
    .weights_free = wf__gpu_transducer_weights_free,
    .scores_where = wf__gpu_transducer_scores_where,
    .group_open = group_open,
    .group_close = group_close,
    .group_begin = group_begin,
    .group_put = group_put,
    .group_release = group_release,
    .group_submit = group_submit,
    .group_wait = group_wait,
    .search_open = wf__lane_rounds_open,
    .search_close = wf__lane_rounds_close,
    .search_room = wf__lane_rounds_room,
    .search_begin = wf__lane_rounds_begin,
    .search_load = wf__lane_rounds_load,
    .search_go_on = wf__lane_rounds_go_on,
    .search_end = wf__lane_rounds_end};
