/* cuda_backend.c - the GPU backend of the decoder: workers on one or several GPUs, and how they
 * share a batch.
 *
 * Each GPU has a worker with a host thread of its own. Workers take chunks of utterances from a
 * queue, longest first, so that GPUs of any speed finish together. Scores that lie on a GPU are
 * searched there, but some move first if another GPU has less to do (move_scores.c). Results do not
 * depend on which worker decoded what. */
#include "cuda/decoder/cuda_backend.h"

#include <string.h>

#include "base/callbacks.h"
#include "base/clock.h"
#include "cuda/decoder/gpu_pipeline.h"
#include "cuda/decoder/move_scores.h"
#include "cuda/decoder/rnn_scoring.h"
#include "cuda/decoder/stream_memory.h"
#include "cuda/device/gpu_profile.h"

enum { MAX_THREADS = 32 }; /* threads of a worker: more do not fill page-locked memory faster */

/* --- opening and closing ----------------------------------------------------------------- */

static void close_worker(wf__gpu_worker *worker) {
  (void)cudaSetDevice(worker->device);
  wf__streams_release(worker);
  wf__gpu_close_scorers(&worker->scorers);
  wf__gpu_close_rnn_scorings(worker);
  wf__gpu_close_words(&worker->words);
  wf__gpu_release(worker);
  wf__score_windows_close(&worker->windows);
  wf__gpu_launches_close(&worker->launches);
  if (worker->copy_stream != NULL) cudaStreamDestroy(worker->copy_stream);
  wf__gpu_graph_free(&worker->uploaded);
  wf__gpu_threads_close(&worker->threads);
}

static void cuda_close(void *opaque) {
  struct wf__cuda_backend *self = opaque;
  int caller = wf__callers_device();
  for (int i = 0; i < self->num_workers; i++) close_worker(&self->workers[i]);
  wf__move_scores_close(self);
  wf__pool_free(self->pool);
  if (self->cpu != NULL) wf__host_backend.close(self->cpu);
  free(self->workers);
  free(self);
  wf__restore_device(caller);
}

static wf_status open_worker(struct wf__cuda_backend *self, int device, wf_error *err) {
  wf__gpu_worker *worker = &self->workers[self->num_workers];
  worker->graph = self->graph;
  worker->options = self->options;
  worker->device = device;
  WF__TRY(wf__device_limits_read(device, self->graph->min_columns, &worker->limits, err));
  self->num_workers++; /* from here on the backend must be closed */
  WF__CUDA_TRY(cudaStreamCreateWithFlags(&worker->copy_stream, cudaStreamNonBlocking), "a stream");
  WF__TRY(wf__score_windows_open(&worker->windows, err));
  WF__TRY(wf__gpu_launches_open(&worker->launches, err));
  WF__TRY(wf__gpu_upload_graph(worker->graph, &worker->options, device,
                               wf__gpu_available(&worker->limits, &worker->options),
                               worker->copy_stream, &worker->uploaded, err));
  worker->launches.params.graph = worker->uploaded.there;
  worker->launches.params.rules = wf__gpu_rules(&worker->options);
  worker->launches.params.shared_kb = worker->limits.profile.shared_kb;
  return WF_OK;
}

static wf_status open_threads(struct wf__cuda_backend *self, wf_error *err) {
  WF__TRY(wf__pool_create(self->num_workers, &self->pool, err));
  int threads = (self->options.num_threads > 0 ? self->options.num_threads : wf__num_cpus()) /
                self->num_workers;
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  if (threads < 1) threads = 1;
  for (int i = 0; i < self->num_workers; i++)
    WF__TRY(wf__gpu_threads_open(threads, self->options.lattice_beam > 0, &self->workers[i].threads,
                                 err));
  return WF_OK;
}

static wf_status list_devices(const char *text, wf__devices *out, wf_error *err) {
  WF__TRY(wf__devices_parse(text, out, err));
  if (out->count > 0) return WF_OK;
  WF__TRY(wf__gpu_count(&out->count, err));
  if (out->count > WF__MAX_WORKERS) out->count = WF__MAX_WORKERS;
  for (int i = 0; i < out->count; i++) out->numbers[i] = i;
  return WF_OK;
}

static wf_status cuda_open(const wf_graph *graph, const wf_transducer *model,
                           const wf_decoder_options *options, void **out, wf_error *err) {
  wf__devices devices;
  *out = NULL;
  WF__TRY(list_devices(options->device, &devices, err));
  WF__TRY(wf__gpu_check_graph(graph, err));
  struct wf__cuda_backend *self = wf__calloc(1, sizeof *self);
  if (self == NULL) return wf__fail_memory(err, sizeof *self, "a decoder");
  int caller = wf__callers_device();
  self->devices = devices;
  self->graph = graph;
  self->options = *options;
  self->options.device = NULL; /* only valid during the call */
  wf__decoder_limits(&self->options, graph);
  self->workers = wf__calloc((uint64_t)devices.count, sizeof *self->workers);
  wf_status status =
      self->workers != NULL
          ? WF_OK
          : wf__fail_memory(err, (uint64_t)devices.count * sizeof *self->workers, "a decoder");
  for (int i = 0; i < devices.count && status == WF_OK; i++)
    status = open_worker(self, devices.numbers[i], err);
  if (status == WF_OK) status = open_threads(self, err);
  wf__restore_device(caller);
  if (status != WF_OK) {
    cuda_close(self);
    return status;
  }
  *out = self;
  return WF_OK;
}

static wf_status cuda_set_stream(void *opaque, void *stream, wf_error *err) {
  struct wf__cuda_backend *self = opaque;
  if (wf__devices_sharing(&self->devices, self->devices.numbers[0]) < self->devices.count)
    return wf__fail(err, WF_ERR_ARGUMENT, "a stream belongs to one GPU, this decoder has several");
  self->stream = stream;
  return WF_OK;
}

/* --- the plan ---------------------------------------------------------------------------- */

/* Memory that the GPU's workers may use together: the free memory and what they have allocated. */
static wf_status read_available(struct wf__cuda_backend *self, wf__gpu_worker *worker,
                                wf_error *err) {
  WF__CUDA_TRY(cudaSetDevice(worker->device), "choosing the GPU");
  WF__TRY(wf__gpu_free_memory(&worker->limits.available, err));
  for (int i = 0; i < self->num_workers; i++)
    if (self->workers[i].device == worker->device)
      worker->limits.available += self->workers[i].uploaded.bytes +
                                  self->workers[i].memory.workspace_bytes +
                                  self->workers[i].limits.scorer_bytes;
  const uint64_t moved = wf__moved_bytes(self, worker->device),
                 limit = (uint64_t)self->options.gpu_memory; /* for the scores that moved as well */
  if (limit > 0 && worker->limits.available > limit - (moved < limit ? moved : limit))
    worker->limits.available = limit - (moved < limit ? moved : limit);
  return WF_OK;
}

static wf_status make_plan(struct wf__cuda_backend *self, wf__gpu_worker *worker,
                           const wf_batch_shape *shape, wf_error *err) {
  const int sharing = wf__devices_sharing(&self->devices, worker->device);
  return wf__gpu_plan_make(self->graph, &self->options, shape, &worker->limits, self->num_workers,
                           sharing, &worker->plan, err);
}

/* Makes the plans of all workers before any of them allocates, so that no plan depends on another
 * worker's allocations. shapes [num_workers] */
static wf_status make_plans(struct wf__cuda_backend *self, const wf_batch_shape *shapes,
                            wf_error *err) {
  for (int i = 0; i < self->num_workers; i++) {
    wf__gpu_worker *worker = &self->workers[i];
    WF__TRY(read_available(self, worker, err));
    WF__TRY(make_plan(self, worker, &shapes[i], err));
  }
  for (int i = 0; i < self->num_workers; i++) {
    WF__CUDA_TRY(cudaSetDevice(self->workers[i].device), "choosing the GPU");
    WF__TRY(wf__gpu_reserve(&self->workers[i], err));
  }
  return WF_OK;
}

static wf_status cuda_plan(const wf_graph *graph, const wf_decoder_options *options,
                           const wf_batch_shape *shape, wf_plan *out, wf_error *err) {
  wf__devices devices;
  WF__TRY(list_devices(options->device, &devices, err));
  int caller = wf__callers_device();
  wf_status status = WF_OK;
  for (int i = 0; i < devices.count && status == WF_OK; i++) { /* the largest, if the GPUs differ */
    wf__device_limits limits = {0};
    wf__gpu_plan plan;
    status = wf__device_limits_read(devices.numbers[i], graph->min_columns, &limits, err);
    if (status == WF_OK)
      status = wf__gpu_plan_make(graph, options, shape, &limits, devices.count,
                                 wf__devices_sharing(&devices, devices.numbers[i]), &plan, err);
    if (status == WF_OK && plan.bytes.total_bytes > out->total_bytes) *out = plan.bytes;
  }
  wf__restore_device(caller);
  if (status != WF_OK) *out = (wf_plan){0};
  return status;
}

static wf_status cuda_plan_streams(const wf_graph *graph, const wf_decoder_options *options,
                                   const wf_stream_shape *shape, wf_stream_plan *out,
                                   wf_error *err) {
  wf__devices devices;
  WF__TRY(list_devices(options->device, &devices, err));
  int caller = wf__callers_device();
  wf_status status = WF_OK;
  for (int i = 0; i < devices.count && status == WF_OK;
       i++) { /* the one with the least memory, if the GPUs differ */
    wf__device_limits limits = {0};
    wf_stream_plan plan;
    status = wf__device_limits_read(devices.numbers[i], graph->min_columns, &limits, err);
    if (status == WF_OK)
      status = wf__streams_read_lanes(&limits.profile, graph->min_columns, limits.lanes, err);
    if (status == WF_OK)
      status = wf__gpu_plan_streams(graph, options, shape, &limits, devices.count,
                                    wf__devices_sharing(&devices, devices.numbers[i]), &plan, err);
    if (status == WF_OK && (i == 0 || plan.max_streams < out->max_streams)) *out = plan;
  }
  wf__restore_device(caller);
  if (status != WF_OK) *out = (wf_stream_plan){0};
  return status;
}

static void cuda_planned(const void *opaque, wf_plan *out) {
  const struct wf__cuda_backend *self = opaque;
  for (int i = 0; i < self->num_workers; i++)
    if (self->workers[i].memory.largest.total_bytes >= out->total_bytes)
      *out = self->workers[i].memory.largest;
}

static void cuda_lm_stats(const void *opaque, wf_lm_stats *out) {
  const struct wf__cuda_backend *self = opaque;
  int caller = wf__callers_device();
  for (int i = 0; i < self->num_workers; i++) {
    const wf__gpu_worker *worker = &self->workers[i];
    const int num_warps = 32 * worker->limits.lanes[WF__LARGE_LANE];
    if (cudaSetDevice(worker->device) == cudaSuccess)
      wf__gpu_add_lm_stats(&worker->scorers.models, worker->device, num_warps, out);
  }
  out->stall_s /= self->num_workers; /* each worker's is an average over warps */
  wf__restore_device(caller);
}

/* --- a batch ----------------------------------------------------------------------------- */

/* Finds the scores of the `count` utterances in `order`, and moves some to other GPUs. homes
 * [batch->count]: where each utterance's scores then are: in host memory or on one of our GPUs; if
 * neither, the result fails. `moved` [batch->count] replaces batch->scores. */
static wf_status place_scores(struct wf__cuda_backend *self, const wf__batch *batch,
                              const uint32_t *order, uint32_t count, int *homes, wf_scores *moved,
                              wf_error *err) {
  int *targets = wf__alloc(batch->count, sizeof *targets);
  wf_status status =
      targets != NULL ? WF_OK : wf__fail_memory(err, batch->count * sizeof *targets, "a batch");
  for (size_t i = 0; i < batch->count && status == WF_OK; i++) {
    homes[i] = targets[i] = WF__SCORES_NOWHERE;
    moved[i] = batch->scores[i];
  }
  for (uint32_t i = 0; i < count && status == WF_OK; i++) {
    const uint32_t u = order[i];
    status = wf__gpu_find_scores(&batch->scores[u], batch->results[u], &homes[u], err);
    wf__tell_of_moving(self, homes[u]);
  }
  if (status == WF_OK) {
    wf__spread_scores(self, batch->scores, order, count, homes, targets);
    status = wf__move_scores(self, batch->scores, homes, targets, batch->count, moved, err);
    for (size_t i = 0; i < batch->count; i++)
      homes[i] = homes[i] == WF__SCORES_EVERYWHERE ? self->devices.numbers[0] : targets[i];
  }
  free(targets);
  return status;
}

static void add_to_queue(wf__work_queue *work, const uint32_t *order, const int *homes,
                         uint32_t count, int device) {
  const uint32_t from = work->num_utterances;
  for (uint32_t i = 0; i < count; i++)
    if (homes[order[i]] == device) work->utterances[work->num_utterances++] = order[i];
  if (work->num_utterances == from) return;
  work->queues[work->num_queues].device = device;
  work->queues[work->num_queues].next = from;
  work->queues[work->num_queues++].end = work->num_utterances;
}

static void add_to_shape(const wf_scores *scores, wf_batch_shape *shape) {
  shape->num_utterances++;
  shape->sum_frames += scores->num_frames;
  if (scores->num_frames > shape->max_frames) shape->max_frames = scores->num_frames;
  if (scores->dtype == WF_FLOAT32) shape->dtype = WF_FLOAT32;
}

/* Fills the queues with those of the first `count` utterances of `order` that can be decoded.
 * shapes [num_workers]: what each worker plans for: the utterances on its GPU, or all if some are
 * in host memory. */
static void fill_queue(const struct wf__cuda_backend *self, wf__work_queue *work,
                       const uint32_t *order, uint32_t count, const int *homes,
                       wf_batch_shape *shapes) {
  const wf_scores *scores = work->batch->scores;
  bool any_on_host = false;
  for (uint32_t i = 0; i < count; i++)
    any_on_host = any_on_host || homes[order[i]] == WF__SCORES_ON_HOST;
  work->num_utterances = 0;
  work->num_queues = 0;
  for (int i = 0; i < self->num_workers; i++) {
    const int device = self->workers[i].device;
    bool known = false;
    for (int k = 0; k < i; k++) known = known || self->workers[k].device == device;
    if (!known) add_to_queue(work, order, homes, count, device);
    shapes[i] = (wf_batch_shape){.dtype = WF_FLOAT16, .on_device = !any_on_host};
    for (uint32_t k = 0; k < count; k++)
      if (homes[order[k]] == device || (any_on_host && homes[order[k]] != WF__SCORES_NOWHERE))
        add_to_shape(&scores[order[k]], &shapes[i]);
  }
  add_to_queue(work, order, homes, count, WF__SCORES_ON_HOST);
}

struct job {
  struct wf__cuda_backend *self;
  wf__work_queue *work;
  wf_error error; /* of the worker that set work->failed */
};

static void run_worker(void *user, uint64_t item, int thread) {
  struct job *job = user;
  wf_error err = {0};
  wf__work_queue *work = job->work;
  /* Thread 0 is the calling thread, which may call the caller's functions. */
  wf__gpu_worker *worker = &job->self->workers[item];
  wf_status status = wf__moved_wait(job->self, worker->device, &err);
  if (status == WF_OK)
    status = wf__gpu_work(worker, work, job->self->stream,
                          thread == 0 ? work->batch->progress : NULL, &err);
  int none = 0;
  worker->experience.finished = wf__now_s();
  if (status == WF_OK) return;
  atomic_compare_exchange_strong(&work->failed, &none, (int)status);
  pthread_mutex_lock(&work->mutex);
  if (job->error.code == WF_OK) job->error = err;
  pthread_mutex_unlock(&work->mutex);
}

/* Memory of all GPUs and the page-locked memory. */
static uint64_t all_bytes(const struct wf__cuda_backend *self) {
  uint64_t bytes = 0;
  for (int i = 0; i < self->num_workers; i++)
    bytes += self->workers[i].memory.workspace_bytes + self->workers[i].memory.pinned_bytes +
             wf__moved_bytes(self, self->workers[i].device);
  return bytes;
}

/* Notes how fast the GPUs were, if all had enough to do that the time grows with the frames, and
 * if no memory was allocated, which takes long. The next batch is shared accordingly: GPUs may
 * differ, and scores take time to move. bytes: all_bytes before the batch. */
static void update_speeds(struct wf__cuda_backend *self, const wf_batch_shape *shapes, double began,
                          uint64_t bytes) {
  bool good = all_bytes(self) == bytes;
  for (int i = 0; i < self->num_workers; i++)
    good =
        good && shapes[i].on_device && shapes[i].num_utterances >= 2 * self->workers[i].plan.lanes;
  for (int i = 0; i < self->num_workers && good; i++) {
    wf__gpu_worker *worker = &self->workers[i];
    const double speed =
        (double)shapes[i].sum_frames / (worker->experience.finished - began + 1e-6);
    worker->experience.frames_per_s = worker->experience.frames_per_s == 0
                                          ? speed
                                          : (worker->experience.frames_per_s + speed) / 2;
  }
}

static wf_status decode_queued(struct wf__cuda_backend *self, wf__work_queue *work,
                               const wf_batch_shape *shapes, wf_error *err) {
  struct job job = {.self = self, .work = work};
  WF__TRY(make_plans(self, shapes, err));
  for (int i = 0; i < self->num_workers; i++)
    wf__gpu_take(&self->workers[i], &self->workers[i].chunks[0],
                 work); /* each worker gets one before any gets a second */
  wf__pool_run(self->pool, (uint64_t)self->num_workers, run_worker, &job);
  if (job.error.code == WF_OK) return WF_OK;
  if (err != NULL) *err = job.error;
  return job.error.code;
}

/* Decodes the `count` utterances in `order`, then those whose frames were too large for their lanes
 * in larger lanes. Changes `order`. homes: of each utterance of the batch. began, bytes: when
 * the batch did, seconds, and all_bytes then. */
static wf_status decode_rounds(struct wf__cuda_backend *self, wf__work_queue *work, uint32_t *order,
                               uint32_t count, const int *homes, double began, uint64_t bytes,
                               wf_error *err) {
  work->num_all = count;
  for (int i = 0; i < self->num_workers; i++) {
    self->workers[i].limits.least_size = self->workers[i].experience.usual_size;
  }
  while (count > 0) {
    wf_batch_shape shapes[WF__MAX_WORKERS];
    fill_queue(self, work, order, count, homes, shapes);
    if (work->num_utterances == 0) break;
    WF__TRY(decode_queued(self, work, shapes, err));
    if (work->num_utterances == work->num_all) update_speeds(self, shapes, began, bytes);
    count = work->num_retry; /* none if no lane can be larger */
    memcpy(order, work->retry, count * sizeof *order);
    work->num_retry = 0;
    if (count > 0)
      wf__log(WF_LOG_DEBUG,
              "%u utterances do not fit their lanes and are searched again in larger ones", count);
    for (int i = 0; i < self->num_workers && count > 0; i++) {
      const int size = wf__gpu_next_size(&self->workers[i].plan, &self->workers[i].limits);
      if (size > 0) self->workers[i].limits.least_size = size;
    }
  }
  return wf__progress(work->batch->progress, "decoding", 1, err);
}

static wf_status take_scorers(struct wf__cuda_backend *self, const wf__batch *batch,
                              wf_error *err) {
  for (int i = 0; i < self->num_workers; i++) {
    wf__gpu_worker *worker = &self->workers[i];
    uint64_t word_bytes;
    WF__CUDA_TRY(cudaSetDevice(worker->device), "choosing the GPU");
    WF__TRY(wf__gpu_take_scorers(worker, batch, err));
    const wf__words_upload upload = {worker->graph, &worker->options, worker->copy_stream};
    WF__TRY(wf__gpu_take_words(&worker->words, &upload, batch, &word_bytes, err));
    worker->limits.scorer_bytes += word_bytes;
    worker->limits.scored = worker->limits.scored || word_bytes > 0;
  }
  return WF_OK;
}

static wf_status cuda_decode(void *opaque, const wf__batch *given, wf_error *err) {
  struct wf__cuda_backend *self = opaque;
  if (self->broken)
    return wf__fail(err, WF_ERR_DEVICE, "an earlier CUDA error left this decoder unusable");
  const size_t n = given->count;
  const double began = wf__now_s();
  const uint64_t bytes = all_bytes(self);
  wf__batch batch = *given; /* with scores where they are searched */
  wf__work_queue work = {.batch = &batch,
                         .utterances = wf__alloc(n, sizeof *work.utterances),
                         .retry = wf__alloc(n, sizeof *work.retry)};
  uint32_t *order = wf__alloc(n, sizeof *order), count;
  int *homes = wf__alloc(n, sizeof *homes);
  wf_scores *moved = wf__alloc(n, sizeof *moved);
  pthread_mutex_init(&work.mutex, NULL);
  wf_status status = work.utterances != NULL && work.retry != NULL && order != NULL &&
                             homes != NULL && moved != NULL
                         ? WF_OK
                         : wf__fail_memory(err, n * 64, "a batch");
  int caller = wf__callers_device();
  if (status == WF_OK) status = wf__longest_first(given, order, &count, err);
  if (status == WF_OK) status = place_scores(self, given, order, count, homes, moved, err);
  batch.scores = moved;
  if (status == WF_OK) status = take_scorers(self, &batch, err);
  if (status == WF_OK) status = decode_rounds(self, &work, order, count, homes, began, bytes, err);
  (void)wf__moved_wait(self, -1, NULL); /* the scores are the caller's */
  wf__restore_device(caller);
  if (status == WF_ERR_DEVICE) self->broken = true;
  pthread_mutex_destroy(&work.mutex);
  free(work.utterances);
  free(work.retry);
  free(order);
  free(homes);
  free(moved);
  return status;
}

const wf__backend wf__cuda_backend = {.name = "cuda",
                                      .open = cuda_open,
                                      .decode = cuda_decode,
                                      .close = cuda_close,
                                      .set_stream = cuda_set_stream,
                                      .check_graph = wf__gpu_check_graph,
                                      .check_scorer = wf__gpu_check_scorer,
                                      .plan = cuda_plan,
                                      .plan_streams = cuda_plan_streams,
                                      .planned = cuda_planned,
                                      .lm_stats = cuda_lm_stats,
                                      .copy_scores = wf__gpu_copy_scores,
                                      .scores_to_host = wf__gpu_fetch_scores,
                                      .streams = &wf__cuda_streams};
