/* transducer_group.c - groups of searches (transducer_group.h): their slots, and their submissions. */
#include "cuda/transducer/transducer_group.h"

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
  WF__TRY(wf__device_reserve(&g->rows, g->max_slots * model->width * sizeof(float),
                             "predictor contexts", err));
  /* Initialised, because growing copies all slots, also unused ones. */
  WF__CUDA_TRY(cudaMemsetAsync(g->rows.data, 0, g->rows.bytes, g->stream), "predictor contexts");
  return WF_OK;
}

void wf__transducer_group_close(wf__transducer_group *g) {
  if (g == NULL) return;
  const int caller = wf__callers_device();
  cudaSetDevice(g->weights->number);
  wf__device_buffer *buffers[] = {&g->rows,   &g->encoder, &g->frames, &g->raw,  &g->x,
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

wf_status wf__transducer_group_open(wf__transducer_weights *weights, wf__transducer_group **out,
                                    wf_error *err) {
  *out = NULL;
  wf__transducer_group *g = wf__calloc(1, sizeof *g);
  if (g == NULL) return wf__fail_memory(err, sizeof *g, "a transducer");
  g->weights = weights;
  g->has_entries = true;
  pthread_mutex_init(&g->mutex, NULL);
  const int caller = wf__callers_device();
  wf_status status = open_group(g, err);
  wf__restore_device(caller);
  if (status == WF_OK)
    *out = g;
  else
    wf__transducer_group_close(g);
  return status;
}

/* Answers are elsewhere then. */
void wf__transducer_search_there(wf__transducer_group *g, bool there, bool has_entries) {
  if (there != g->searches_there) g->most_answers = 0;
  g->searches_there = there;
  g->has_entries = has_entries;
}

static wf_status begin(wf__transducer_group *g, uint64_t num_frames, void *stream, wf_error *err) {
  static const char what[] = "encoder outputs";
  WF__CUDA_TRY(cudaSetDevice(g->weights->number), "choosing the GPU");
  WF__CUDA_TRY(cudaEventRecord(g->caller, stream), what);
  WF__CUDA_TRY(cudaStreamWaitEvent(g->stream, g->caller, 0), what);
  return wf__device_reserve(&g->encoder, num_frames * g->weights->model->width * sizeof(float),
                            what, err);
}

wf_status wf__transducer_group_begin(wf__transducer_group *g, const wf__score_cut *cut,
                                     const int64_t *num_frames, size_t num_lanes, void *stream,
                                     wf_error *err) {
  uint64_t all = 0;
  wf__transducer_search_there(g, false, true);
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

/* One that another search has released, or a new one. */
uint32_t wf__transducer_take_slot(wf__transducer_group *g) {
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

void wf__transducer_release_slots(wf__transducer_group *g, const uint32_t *slots, uint64_t count) {
  pthread_mutex_lock(&g->mutex);
  for (uint64_t i = 0; i < count; i++) release_slot(g, slots[i]);
  atomic_store(&g->num_free, g->free_slots.size);
  pthread_mutex_unlock(&g->mutex);
}

void wf__transducer_group_release(wf__transducer_group *g, wf__predictions *p) {
  if (g == NULL) return;
  wf__transducer_release_slots(g, p->slots.data, p->slots.size);
  wf__transducer_release_slots(g, p->free_slots.data, p->free_slots.size);
  p->slots.size = p->free_slots.size = 0;
}

void wf__transducer_group_put(wf__transducer_group *g, size_t lane, const wf_scores *begins,
                              int where, wf__predictions *p) {
  for (uint64_t i = 0; i < p->pending.size; i++) {
    const uint32_t number = p->pending.data[i];
    p->slots.data[number] = p->free_slots.size > 0 ? p->free_slots.data[--p->free_slots.size]
                                                   : wf__transducer_take_slot(g);
    p->done.data[number] = true;
  }
  g->begins.data[lane] = begins;
  g->where.data[lane] = where;
  g->asking.data[lane] = p;
  wf__transducer_write_request(g, lane);
}

wf_status wf__transducer_group_submit(wf__transducer_group *g, wf__transducer_counts *counts,
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

wf_status wf__transducer_group_wait(wf__transducer_group *g, wf_error *err) {
  WF__CUDA_TRY(cudaStreamSynchronize(g->stream), "the transducer");
  return WF_OK;
}
