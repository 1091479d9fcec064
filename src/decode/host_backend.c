/* host_backend.c - many utterances over the threads of a pool, a search for each thread. */
#include "decode/host_backend.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/callbacks.h"
#include "base/interrupt.h"
#include "decode/job_error.h"

struct job {
  wf__host *self;
  const wf__batch *batch;
  const uint32_t *order; /* utterances, longest first */
  atomic_uint_fast64_t done;
  wf__job_error failed;
  wf_error *errors; /* [pool size], scratch of each worker */
};

static void host_close(void *opaque) {
  wf__host *self = opaque;
  for (size_t i = 0; self->searchers != NULL && i < self->num_searchers; i++)
    self->setup.ops->free(self->searchers[i]);
  free(self->searchers);
  if (self->setup.ops->close != NULL) self->setup.ops->close(&self->setup);
  wf__pool_free(self->pool);
  free(self);
}

static wf_status open_searchers(wf__host *self, const wf_transducer *model, wf_error *err) {
  WF__TRY(self->setup.ops->open(model, &self->setup, err));
  WF__TRY(wf__pool_create(self->setup.options.num_threads, &self->pool, err));
  const size_t num_threads = (size_t)wf__pool_size(self->pool), lanes = wf__host_most_lanes(self);
  self->first_follower = num_threads > lanes ? num_threads : lanes;
  self->num_searchers = self->first_follower + num_threads;
  self->searchers = wf__calloc(self->num_searchers, sizeof *self->searchers);
  return self->searchers != NULL
             ? WF_OK
             : wf__fail_memory(err, self->num_searchers * sizeof *self->searchers, "a decoder");
}

static wf_status host_open(const wf_graph *graph, const wf_transducer *model,
                           const wf_decoder_options *options, void **out, wf_error *err) {
  wf__host *self = wf__calloc(1, sizeof *self);
  if (self == NULL) return wf__fail_memory(err, sizeof *self, "a decoder");
  self->setup =
      (wf__search_setup){.ops = model != NULL ? &wf__transducer_searcher : &wf__frame_searcher,
                         .graph = graph,
                         .options = *options};
  const wf_status status = open_searchers(self, model, err);
  if (status != WF_OK) {
    host_close(self);
    return status;
  }
  *out = self;
  return WF_OK;
}

static wf_status host_set_stream(void *opaque, void *stream, wf_error *err) {
  wf__host *self = opaque;
  return self->setup.on_device
             ? self->setup.ops->set_stream(self->setup.shared, stream, err)
             : wf__fail(err, WF_ERR_UNSUPPORTED, "a decoder on the CPU has no CUDA stream");
}

static void host_transducer_stats(const void *opaque, wf_transducer_stats *out) {
  const wf__host *self = opaque;
  if (self->setup.ops->stats != NULL) self->setup.ops->stats(self->setup.shared, out);
}

/* --- a batch ----------------------------------------------------------------------------- */

static wf_status decode_one(const struct job *job, uint32_t i, int worker, wf_error *err) {
  wf__host *self = job->self;
  wf__searcher *searcher;
  bool good;
  WF__TRY(wf__host_searcher(self, (size_t)worker, false, &searcher, err));
  if (searcher->scoring.joined) /* other threads would use its memory, too */
    WF__TRY(wf__scoring_set(&searcher->scoring, NULL, err));
  WF__TRY(wf__utterance_begin(self, searcher, job->batch, i, &good, err));
  if (!good) return WF_OK;
  WF__TRY(wf__searcher_advance(searcher, &job->batch->scores[i], err));
  return wf__utterance_end(self, searcher, job->batch, i, err);
}

static void run_item(void *user, uint64_t item, int worker) {
  struct job *job = user;
  uint32_t i = job->order[item];
  if (wf__job_failed(&job->failed)) return;
  wf_error *err = &job->errors[worker];
  wf_status status = wf__record_error(job->self, job->batch, i, decode_one(job, i, worker, err),
                                      err); /* an error of this utterance; the others continue */
  uint64_t done = atomic_fetch_add(&job->done, 1) + 1;
  /* Worker 0 is the calling thread, which may call the caller's functions. */
  if (status == WF_OK && worker == 0)
    status = wf__progress(job->batch->progress, "decoding",
                          (double)done / (double)job->batch->count, err);
  wf__job_error_note(&job->failed, status, err);
}

/* Each thread decodes one utterance after another. */
static wf_status decode_in_threads(wf__host *self, const wf__batch *batch, const uint32_t *order,
                                   uint32_t count, wf_error *err) {
  wf_error *errors = wf__calloc((uint64_t)wf__pool_size(self->pool), sizeof *errors);
  if (errors == NULL) return wf__fail_memory(err, sizeof *errors, "a batch");
  struct job job = {.self = self, .batch = batch, .order = order, .errors = errors};
  atomic_init(&job.done, 0);
  wf__job_error_init(&job.failed);
  wf__pool_run(self->pool, count, run_item, &job);
  const wf_status status = wf__job_error_end(&job.failed, err);
  free(errors);
  /* Otherwise a lattice might lack its determinization. */
  return status == WF_OK ? wf__interrupted(err) : status;
}

static wf_status host_decode(void *opaque, const wf__batch *batch, wf_error *err) {
  wf__host *self = opaque;
  uint32_t *order = wf__alloc(batch->count, sizeof *order), count = 0;
  wf_status status = order != NULL ? wf__longest_first(batch, order, &count, err)
                                   : wf__fail_memory(err, batch->count * 4, "a batch");
  if (status == WF_OK) status = wf__whole_decode(self, batch, order, &count, err);
  if (status == WF_OK)
    status = self->setup.answers != NULL || wf__scores_jointly(batch, order, count)
                 ? wf__lanes_decode(self, batch, order, count, err)
                 : decode_in_threads(self, batch, order, count, err);
  free(order);
  return status;
}

const wf__backend wf__host_backend = {.name = "cpu",
                                      .open = host_open,
                                      .decode = host_decode,
                                      .close = host_close,
                                      .set_stream = host_set_stream,
                                      .transducer_stats = host_transducer_stats,
                                      .streams = &wf__host_streams};
