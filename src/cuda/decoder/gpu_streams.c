/* gpu_streams.c - streams on GPUs: the stream operations of the backend. Histories are those of
 * the CPU's streams (search/frame/channel.h). */
#include "cuda/decoder/gpu_streams.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cuda/decoder/cuda_backend.h"
#include "cuda/decoder/stream_memory.h"
#include "cuda/decoder/stream_outcomes.h"
#include "cuda/decoder/stream_rnn_scoring.h"
#include "cuda/decoder/stream_rounds.h"
#include "cuda/decoder/stream_transfer.h"
#include "math/cost.h"

/* --- opening and closing ----------------------------------------------------------------- */

static void begin_channel(wf__gpu_channel *channel) {
  channel->num_tokens = channel->usual_size = 0;
  channel->best = channel->ending = UINT32_MAX;
  channel->on_cpu = channel->stale = channel->collected = false;
  channel->item_number = 0;
  channel->base.trace.keeps_loglikes = true;
}

static void channel_reset(void *self, void *opaque) {
  wf__channel_reset(opaque);
  begin_channel(opaque);
}

static void channel_close(void *opaque, void *opaque_channel) {
  wf__gpu_channel *channel = opaque_channel;
  if (channel == NULL) return;
  wf__streams_return_slot(channel->worker, channel->tokens);
  wf__streams_return_slot(channel->worker, channel->contexts);
  if (wf__channel_kind(channel) != WF__SEARCH_PLAIN) {
    const int caller = wf__callers_device();
    (void)cudaSetDevice(channel->worker->device);
    if (channel->scorer != NULL && channel->scorer->rnn_scoring != NULL)
      wf__rnn_scoring_leave(channel->scorer->rnn_scoring, channel);
    wf__gpu_release_scorer(channel->worker, &channel->scorer);
    wf__gpu_release_words(&channel->worker->words, &channel->words);
    wf__restore_device(caller);
  }
  channel->worker->streams->num_channels--;
  wf__channel_close(&channel->base.stream); /* frees it: base is its first member */
}

/* The worker with the fewest streams. */
static wf__gpu_worker *choose_worker(struct wf__cuda_backend *self) {
  wf__gpu_worker *best = &self->workers[0];
  for (int i = 1; i < self->num_workers; i++) {
    const wf__gpu_streams *streams = self->workers[i].streams;
    if ((streams != NULL ? streams->num_channels : 0) <
        (best->streams != NULL ? best->streams->num_channels : 0))
      best = &self->workers[i];
  }
  return best;
}

static wf_status make_room_for_contexts(const struct wf__cuda_backend *self,
                                        wf__gpu_channel *channel, wf_error *err) {
  return wf__streams_reserve_contexts(
      channel, wf__devices_sharing(&self->devices, channel->worker->device), err);
}

static wf_status change_graph(struct wf__cuda_backend *self, wf__gpu_channel *channel,
                              const wf_graph *graph, wf_error *err) {
  wf__gpu_worker *worker = channel->worker;
  wf__shared_words *words = NULL, *old = channel->words;
  WF__CUDA_TRY(cudaSetDevice(worker->device), "choosing the GPU");
  if (graph->added != NULL) WF__TRY(make_room_for_contexts(self, channel, err));
  if (channel->scorer != NULL && channel->scorer->rnn_scoring != NULL)
    WF__TRY(wf__rnn_scoring_fit(channel->scorer->rnn_scoring, graph, err));
  const wf__words_upload upload = {worker->graph, &worker->options, worker->copy_stream};
  WF__TRY(wf__gpu_acquire_words(&worker->words, &upload, graph, &words, err));
  channel->words = words;
  channel->base.stream.graph = graph;
  wf__gpu_release_words(&worker->words, &old);
  return WF_OK;
}

static wf_status open_on(struct wf__cuda_backend *self, wf__gpu_worker *worker, void **out,
                         wf_error *err) {
  WF__CUDA_TRY(cudaSetDevice(worker->device), "choosing the GPU");
  WF__TRY(
      wf__streams_reserve(worker, wf__devices_sharing(&self->devices, worker->device), false, err));
  wf__gpu_channel *channel = wf__calloc(1, sizeof *channel);
  if (channel == NULL) return wf__fail_memory(err, sizeof *channel, "a stream");
  wf__channel_init(&channel->base, &wf__frame_searcher, self->graph);
  channel->worker = worker;
  worker->streams->num_channels++;
  wf_status status = wf__streams_take_slot(worker, (void **)&channel->tokens, err);
  if (status == WF_OK) status = change_graph(self, channel, self->graph, err);
  if (status != WF_OK) {
    channel_close(self, channel);
    return status;
  }
  begin_channel(channel);
  *out = channel;
  return WF_OK;
}

static wf_status channel_open(void *opaque, void **out, wf_error *err) {
  struct wf__cuda_backend *self = opaque;
  *out = NULL;
  const int caller = wf__callers_device();
  const wf_status status = open_on(self, choose_worker(self), out, err);
  wf__restore_device(caller);
  return status;
}

static uint64_t channel_bytes(const void *self, const void *opaque) {
  const wf__gpu_channel *channel = opaque;
  const uint64_t slot = channel->worker->streams->plan.slot_bytes;
  return wf__channel_bytes(opaque) + sizeof *channel - sizeof channel->base +
         slot * (channel->contexts != NULL ? 2 : 1);
}

/* --- chunks ------------------------------------------------------------------------------ */

static wf_status advance(void *opaque, const wf__batch *batch, void *const *channels,
                         wf_error *err) {
  struct wf__cuda_backend *self = opaque;
  if (self->broken)
    return wf__fail(err, WF_ERR_DEVICE, "an earlier CUDA error left this decoder unusable");
  const int caller = wf__callers_device();
  const wf_status status = wf__streams_advance(self, batch, channels, err);
  wf__restore_device(caller);
  if (status == WF_ERR_DEVICE) self->broken = true;
  return status;
}

/* Makes the start's tokens if the stream has had no chunk, or finds the best of its tokens. */
static wf_status prepare(void *self, void *opaque_channel, wf_error *err) {
  wf__gpu_channel *channel = opaque_channel;
  if (channel->on_cpu || (channel->base.stream.begun && !channel->stale)) return WF_OK;
  const wf_scores none = {0};
  const bool skip = false;
  wf_result said = {0}, *result = &said;
  void *one = channel;
  const wf__batch batch = {.scores = &none, .skip = &skip, .count = 1, .results = &result};
  WF__TRY(advance(self, &batch, &one, err));
  return said.status == WF_OK ? WF_OK : wf__fail(err, said.status, "%s", said.message);
}

/* --- results ----------------------------------------------------------------------------- */

static wf__pool *pool(void *self) {
  return ((struct wf__cuda_backend *)self)->workers[0].threads.pool;
}

static wf_status committed(void *opaque, void *opaque_channel, int thread, bool now, wf__path *out,
                           wf_error *err) {
  struct wf__cuda_backend *self = opaque;
  wf__gpu_channel *channel = opaque_channel;
  if (channel->on_cpu) return wf__host_streams.committed(self->cpu, channel, thread, now, out, err);
  channel->watched = channel->watched || now;
  if (now && channel->base.stream.begun && !channel->collected)
    WF__TRY(wf__streams_collect(channel, thread, err));
  return wf__channel_take_committed(&channel->base.stream, out, err);
}

static wf_status sum_scorer_costs(wf__channel *base, wf__scoring *scoring, bool final,
                                  wf__path *path, wf_error *err) {
  wf__score_sum sum = base->committed_sum;
  wf__scoring_exchange(scoring, &base->scoring); /* uses the worker's cache */
  wf_status status = wf__scoring_resume(scoring, err);
  if (status == WF_OK)
    status = wf__path_score(path, 0, base->stream.graph, scoring, final, &sum, err);
  wf__scoring_exchange(scoring, &base->scoring);
  path->scorer_cost = sum.cost;
  return status;
}

static wf_status path(void *opaque, void *opaque_channel, int thread, bool goes_on, wf__path *out,
                      wf_error *err) {
  struct wf__cuda_backend *self = opaque;
  wf__gpu_channel *channel = opaque_channel;
  wf__channel *base = &channel->base;
  if (channel->on_cpu) return wf__host_streams.path(self->cpu, channel, thread, goes_on, out, err);
  const bool final = !goes_on && channel->ending != UINT32_MAX;
  wf__path_clear(out);
  WF__TRY(wf__trace_path(&base->trace,
                         (uint32_t)base->trace_base + (final ? channel->ending : channel->best),
                         base->stream.graph, out, err));
  WF__TRY(wf__path_take_frames(&base->path, base->path.frames.size, out, err));
  wf__path_copy_statistics(&base->path, out);
  if (!final) out->flags |= WF_RESULT_NOT_FINAL;
  out->final_cost = final ? channel->final_cost : 0;
  out->relative_cost =
      (channel->ending != UINT32_MAX ? channel->ending_cost : INFINITY) - channel->best_cost;
  out->scorer_cost = base->committed_sum.cost; /* costs that a replaced scorer added remain */
  return base->scoring.scorer != NULL
             ? sum_scorer_costs(base, &channel->worker->threads.scorings[thread], final, out, err)
             : WF_OK;
}

/* --- scorers ----------------------------------------------------------------------------- */

/* Replaces the scorer in mid-utterance. The CPU's code computes the tokens' new contexts and costs.
 * Streams with a recurrent scorer then stay on the CPU until the utterance ends. */
static wf_status exchange_scorer(struct wf__cuda_backend *self, wf__gpu_channel *channel,
                                 const wf__shared_scorer *scorer_there, const wf_word *words,
                                 size_t num_words, wf_error *err) {
  const wf_scorer *scorer = scorer_there != NULL ? scorer_there->on_cpu : NULL;
  if (!channel->base.stream.begun) return wf__scoring_set(&channel->base.scoring, scorer, err);
  if (channel->on_cpu)
    return wf__host_streams.set_scorer(self->cpu, channel, scorer, words, num_words, err);
  WF__TRY(wf__streams_to_cpu(self, channel, err));
  WF__TRY(wf__host_streams.set_scorer(self->cpu, channel, scorer, words, num_words, err));
  channel->collected =
      false; /* tokens may have recombined, so the committed prefix may be longer */
  return channel->base.died || (scorer_there != NULL && scorer_there->rnn_scoring != NULL)
             ? WF_OK
             : wf__streams_to_gpu(channel, err); /* streams that have died need no GPU */
}

/* Does the channel refer to contexts of the scorer from now on? */
static wf_status join_scoring(wf__gpu_channel *channel, const wf__shared_scorer *scorer_there,
                              wf_error *err) {
  if (scorer_there == NULL || scorer_there->rnn_scoring == NULL) return WF_OK;
  WF__TRY(wf__rnn_scoring_fit(scorer_there->rnn_scoring, channel->base.stream.graph, err));
  return wf__rnn_scoring_join(scorer_there->rnn_scoring, channel, err);
}

static wf_status change_scorer(struct wf__cuda_backend *self, wf__gpu_channel *channel,
                               const wf_scorer *scorer, const wf_word *words, size_t num_words,
                               wf_error *err) {
  wf__gpu_worker *worker = channel->worker;
  wf__shared_scorer *scorer_there = NULL;
  WF__CUDA_TRY(cudaSetDevice(worker->device), "choosing the GPU");
  if (scorer != NULL) {
    WF__TRY(make_room_for_contexts(self, channel, err));
    WF__TRY(wf__gpu_acquire_scorer(worker, scorer, &scorer_there, err));
  }
  wf_status status = join_scoring(channel, scorer_there, err);
  const bool joined = status == WF_OK;
  if (status == WF_OK) status = exchange_scorer(self, channel, scorer_there, words, num_words, err);
  wf__shared_scorer *old = status == WF_OK ? channel->scorer : scorer_there;
  if (old != NULL && old->rnn_scoring != NULL && (old != scorer_there || joined))
    wf__rnn_scoring_leave(old->rnn_scoring, channel);
  if (status == WF_OK) channel->scorer = scorer_there;
  wf__gpu_release_scorer(worker, &old);
  return status;
}

static wf_status set_scorer(void *opaque, void *opaque_channel, const wf_scorer *scorer,
                            const wf_word *words, size_t num_words, wf_error *err) {
  wf__gpu_channel *channel = opaque_channel;
  if (scorer == (channel->scorer != NULL ? channel->scorer->scorer : NULL)) return WF_OK;
  const int caller = wf__callers_device();
  const wf_status status = change_scorer(opaque, channel, scorer, words, num_words, err);
  wf__restore_device(caller);
  return status;
}

/* --- added words ------------------------------------------------------------------------- */

static wf_status set_graph(void *opaque, void *opaque_channel, const wf_graph *graph,
                           wf_error *err) {
  const int caller = wf__callers_device();
  const wf_status status = change_graph(opaque, opaque_channel, graph, err);
  wf__restore_device(caller);
  return status;
}

/* --- lattices ---------------------------------------------------------------------------- */

/* The history is that of the CPU's streams, and the same code makes lattices. The ends need the
 * newest tokens, which stay on the GPU as well. */
static wf_status lattice(void *opaque, void *opaque_channel, bool goes_on, wf_lattice **out,
                         wf_error *err) {
  struct wf__cuda_backend *self = opaque;
  wf__gpu_channel *channel = opaque_channel;
  wf__channel *base = &channel->base;
  if (!base->stream.begun) WF__TRY(prepare(opaque, channel, err));
  const bool on_gpu = !channel->on_cpu;
  if (on_gpu) {
    const int caller = wf__callers_device();
    const wf_status status = wf__streams_to_cpu(self, channel, err);
    wf__restore_device(caller);
    WF__TRY(status);
    if (!goes_on && channel->ending == UINT32_MAX) base->path.flags |= WF_RESULT_NOT_FINAL;
  }
  const wf_status status = wf__host_streams.lattice(self->cpu, channel, goes_on, out, err);
  if (!on_gpu) return status;
  wf__vec_free(&base->tokens);
  wf__vec_free(&base->contexts);
  wf__vec_free(&base->past_contexts);
  channel->on_cpu = false;
  return status;
}

static wf_status commit_lattice(void *opaque, void *channel, wf_lattice **out, wf_error *err) {
  struct wf__cuda_backend *self = opaque;
  WF__TRY(wf__streams_open_cpu(self, err));
  return wf__host_streams.commit_lattice(self->cpu, channel, out, err);
}

const wf__stream_backend wf__cuda_streams = {.open = channel_open,
                                             .close = channel_close,
                                             .set_scorer = set_scorer,
                                             .set_graph = set_graph,
                                             .reset = channel_reset,
                                             .bytes = channel_bytes,
                                             .advance = advance,
                                             .pool = pool,
                                             .committed = committed,
                                             .prepare = prepare,
                                             .path = path,
                                             .commit_lattice = commit_lattice,
                                             .lattice = lattice};
