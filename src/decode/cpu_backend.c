/* cpu_backend.c - many utterances over the threads of a pool, one search object a thread. */
#include <stdatomic.h>
#include <string.h>

#include "base/callbacks.h"
#include "base/interrupt.h"
#include "decode/cpu_backend.h"

struct job {
  struct wf__cpu_backend *self;
  const wf__batch *batch;
  const uint32_t *order; /* utterances, longest first */
  atomic_uint_fast64_t done;
  atomic_int failed; /* 0 or the status that ends the batch */
  wf_error *errors;  /* [pool size], scratch of each worker */
  wf_error first;    /* of the worker that set `failed` */
};

static void cpu_close(void *opaque) {
  struct wf__cpu_backend *self = opaque;
  for (int i = 0; self->searches != NULL && i < wf__pool_size(self->pool); i++)
    wf__search_free(self->searches[i]);
  free(self->searches);
  wf__cpu_free_transducers(self);
  wf__cpu_close_stream_groups(self);
  free(self->transducer_searches);
  wf__transducer_arcs_free(&self->transducer_arcs);
  for (size_t d = 0; d < self->num_gpus; d++)
    wf__transducer_weights_free(self->transducer_weights[d]);
  wf_transducer_free(self->transducer);
  wf__cpu_free_lanes(self);
  wf__pool_free(self->pool);
  free(self);
}

static wf_status cpu_open(const wf_graph *graph, const wf_decoder_options *options, void **out,
                          wf_error *err) {
  struct wf__cpu_backend *self = wf__calloc(1, sizeof *self);
  if (self == NULL) return wf__fail_memory(err, sizeof *self, "a decoder");
  self->graph = graph;
  self->options = *options;
  wf_status status = wf__pool_create(options->num_threads, &self->pool, err);
  if (status == WF_OK) {
    self->searches = wf__calloc((uint64_t)wf__pool_size(self->pool), sizeof *self->searches);
    if (self->searches == NULL) status = wf__fail_memory(err, sizeof *self, "a decoder");
  }
  if (status != WF_OK) {
    cpu_close(self);
    return status;
  }
  *out = self;
  return WF_OK;
}

/* Sends the model to the GPUs of the list. */
static wf_status send_transducer(struct wf__cpu_backend *self, const wf__devices *devices,
                                 wf_error *err) {
  int count = devices->count;
  if (count == 0) WF__TRY(wf__transducer_count_gpus(&count, err));
  if (count > WF__TRANSDUCER_GPUS)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "device %s: a transducer works on at most %d GPUs",
                    self->options.device, WF__TRANSDUCER_GPUS);
  for (int d = 0; d < count; d++, self->num_gpus++)
    WF__TRY(wf__transducer_weights_send(self->transducer,
                                        devices->count > 0 ? devices->numbers[d] : d,
                                        &self->transducer_weights[d], err));
  return WF_OK;
}

wf_status wf__cpu_open_transducer(const wf_graph *graph, const wf_transducer *model,
                                  const wf_decoder_options *options, const wf__devices *devices,
                                  void **out, wf_error *err) {
  void *opaque;
  WF__TRY(cpu_open(graph, options, &opaque, err));
  struct wf__cpu_backend *self = opaque;
  self->transducer = wf_transducer_ref(model);
  size_t num_threads = (size_t)wf__pool_size(self->pool);
  wf_status status = devices->cuda ? send_transducer(self, devices, err) : WF_OK;
  const size_t num_lanes = WF__TRANSDUCER_LANES * (self->num_gpus > 0 ? self->num_gpus : 1);
  self->num_transducer_searches = num_threads > num_lanes ? num_threads : num_lanes;
  self->transducer_searches =
      wf__calloc(self->num_transducer_searches, sizeof *self->transducer_searches);
  if (status == WF_OK && self->transducer_searches == NULL)
    status = wf__fail_memory(err, sizeof *self, "a decoder");
  if (status == WF_OK)
    status =
        wf__transducer_look_at_arcs(graph, model, options->word_score, &self->transducer_arcs, err);
  if (status != WF_OK) {
    cpu_close(self);
    return status;
  }
  *out = self;
  return WF_OK;
}

static wf_status cpu_set_stream(void *opaque, void *stream, wf_error *err) {
  struct wf__cpu_backend *self = opaque;
  if (self->num_gpus == 0)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "a decoder on the CPU has no CUDA stream");
  if (self->num_gpus > 1)
    return wf__fail(err, WF_ERR_ARGUMENT, "a stream belongs to one GPU, this decoder has several");
  self->stream = stream;
  return WF_OK;
}

void wf__cpu_transducer_stats(const void *opaque, wf_transducer_stats *out) {
  const struct wf__cpu_backend *self = opaque;
  *out = self->transducer_stats;
}

static wf_status decode_one(struct job *job, uint32_t i, int worker, wf_error *err) {
  struct wf__cpu_backend *self = job->self;
  if (self->transducer != NULL) return wf__cpu_decode_transducer(self, job->batch, i, worker, err);
  wf__search *search;
  bool good;
  WF__TRY(wf__cpu_search(self, worker, &search, err));
  wf__search_set_graph(search, wf__batch_graph(job->batch, i, self->graph));
  WF__TRY(wf__search_set_scorer(search, job->batch->scorers != NULL ? job->batch->scorers[i] : NULL,
                                err));
  WF__TRY(wf__cpu_begin(self, search, job->batch, i, &good, err));
  if (!good) return WF_OK;
  WF__TRY(wf__search_advance(search, &job->batch->scores[i], err));
  return wf__cpu_end(self, search, job->batch, i, err);
}

static void run_item(void *user, uint64_t item, int worker) {
  struct job *job = user;
  uint32_t i = job->order[item];
  if (atomic_load(&job->failed) != 0) return;
  wf_error *err = &job->errors[worker];
  wf_status status =
      wf__cpu_record_error(job->batch, i, decode_one(job, i, worker, err),
                           err); /* an error of this utterance; the others continue */
  uint64_t done = atomic_fetch_add(&job->done, 1) + 1;
  /* Worker 0 is the calling thread, which may call the caller's functions. */
  if (status == WF_OK && worker == 0)
    status = wf__progress(job->batch->progress, "decoding",
                          (double)done / (double)job->batch->count, err);
  int none = 0;
  if (status != WF_OK && atomic_compare_exchange_strong(&job->failed, &none, (int)status))
    job->first = *err;
}

static wf_status cpu_decode(void *opaque, const wf__batch *batch, wf_error *err) {
  struct wf__cpu_backend *self = opaque;
  uint32_t *order = wf__alloc(batch->count, sizeof *order), count = 0;
  wf_error *errors = wf__calloc((uint64_t)wf__pool_size(self->pool), sizeof *errors);
  wf_status status = order != NULL && errors != NULL
                         ? wf__longest_first(batch, order, &count, err)
                         : wf__fail_memory(err, batch->count * 4, "a batch");
  const bool scores_jointly = status == WF_OK && wf__cpu_can_batch(batch, order, count);
  if (status == WF_OK && self->transducer != NULL &&
      (scores_jointly || self->num_gpus > 0 || self->transducer->network == NULL)) {
    status = wf__cpu_decode_transducers(self, batch, order, count, err);
  } else if (scores_jointly) {
    status = wf__cpu_decode_batch(self, batch, order, count, err);
  } else if (status == WF_OK) {
    struct job job = {.self = self, .batch = batch, .order = order, .errors = errors};
    atomic_init(&job.done, 0);
    atomic_init(&job.failed, 0);
    wf__pool_run(self->pool, count, run_item, &job);
    status = (wf_status)atomic_load(&job.failed);
    if (status != WF_OK && err != NULL) *err = job.first;
    if (status == WF_OK)
      status = wf__interrupted(err); /* otherwise a lattice might lack its determinization */
  }
  free(order);
  free(errors);
  return status;
}

const wf__backend wf__cpu_backend = {.name = "cpu",
                                     .open = cpu_open,
                                     .decode = cpu_decode,
                                     .close = cpu_close,
                                     .set_stream = cpu_set_stream,
                                     .streams = &wf__cpu_streams};
