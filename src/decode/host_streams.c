/* host_streams.c - streams on the CPU, with searches of any kind. */
#include <stdatomic.h>
#include <stdlib.h>

#include "decode/host_backend.h"

static wf_status open_channel(void *opaque, void **out, wf_error *err) {
  wf__host *self = opaque;
  wf__stream_state *state;
  *out = NULL;
  WF__TRY(self->setup.ops->open_stream(&self->setup, &state, err));
  *out = state;
  return WF_OK;
}

static void close_channel(void *self, void *channel) {
  wf__stream_state *state = channel;
  if (state != NULL) state->ops->close_stream(state);
}

static void reset(void *self, void *channel) {
  wf__stream_state *state = channel;
  state->ops->reset(state);
}

static uint64_t bytes(const void *self, const void *channel) {
  const wf__stream_state *state = channel;
  return state->ops->bytes(state);
}

static wf_status set_graph(void *self, void *channel, const wf_graph *graph, wf_error *err) {
  wf__stream_state *state = channel;
  state->graph = graph;
  return WF_OK;
}

/* The stream's utterance in a search. `leave` must follow. */
static wf_status enter(wf__host *self, wf__stream_state *state, int thread, wf__searcher **out,
                       wf_error *err) {
  wf__searcher *threads = NULL;
  *out = NULL;
  if (!state->ops->owns_search)
    WF__TRY(wf__host_searcher(self, (size_t)thread, false, &threads, err));
  return state->ops->enter(&self->setup, state, threads, out, err);
}

/* `searcher` NULL: it could not be had. */
static wf_status leave(wf__stream_state *state, wf__searcher *searcher, wf_status status,
                       wf_error *err) {
  return searcher != NULL || state->ops->owns_search
             ? state->ops->leave(state, searcher, status, err)
             : status;
}

static wf_status set_scorer(void *self, void *channel, const wf_scorer *scorer,
                            const wf_word *words, size_t num_words, wf_error *err) {
  wf__stream_state *state = channel;
  wf__searcher *searcher;
  if (!state->begun) return state->ops->set_scorer(state, scorer, err);
  wf_status status = enter(self, state, 0, &searcher, err);
  if (status == WF_OK) status = state->ops->replace_scorer(searcher, scorer, words, num_words, err);
  return leave(state, searcher, status, err);
}

/* --- a batch of chunks ------------------------------------------------------------------- */

struct step {
  wf__host *self;
  const wf__batch *batch;
  void *const *channels;
  const uint32_t *order; /* longest first */
  atomic_int failed;     /* 0, WF_ERR_MEMORY or WF_ERR_CANCELLED */
  wf_error *errors;      /* [pool size], scratch of each worker */
};

static wf_status consume(wf__host *self, wf__stream_state *state, const wf_scores *chunk,
                         int thread, wf_error *err) {
  wf__searcher *searcher;
  wf_status status = enter(self, state, thread, &searcher, err);
  if (status == WF_OK) status = wf__searcher_advance(searcher, chunk, err);
  if (status == WF_OK) status = state->ops->collect(searcher, false, err);
  return leave(state, searcher, status, err);
}

static void run_item(void *user, uint64_t item, int worker) {
  struct step *step = user;
  uint32_t i = step->order[item];
  wf_result *result = step->batch->results[i];
  wf_error *err = &step->errors[worker];
  const wf_scores *chunk = &step->batch->scores[i];
  bool good;
  wf_status status =
      wf__host_check_scores(step->self, chunk, result->num_frames, result, &good, err);
  if (!good || result->status != WF_OK) return; /* it has failed, now or before */
  if (status == WF_OK) status = consume(step->self, step->channels[i], chunk, worker, err);
  if (status == WF_OK) return;
  wf__result_fail(result, status, err);
  if (status == WF_ERR_MEMORY || status == WF_ERR_CANCELLED)
    atomic_store(&step->failed, (int)status);
}

/* The caller's functions are called in its own thread. */
static void run_items(struct step *step, uint32_t count) {
  if (!step->self->setup.on_one_thread) {
    wf__pool_run(step->self->pool, count, run_item, step);
    return;
  }
  for (uint32_t i = 0; i < count; i++) run_item(step, i, 0);
}

static wf_status advance_in_threads(wf__host *self, const wf__batch *batch, void *const *channels,
                                    wf_error *err) {
  uint32_t *order = wf__alloc(batch->count, sizeof *order), count = 0;
  wf_error *errors = wf__calloc((uint64_t)wf__pool_size(self->pool), sizeof *errors);
  wf_status status = order != NULL && errors != NULL
                         ? wf__longest_first(batch, order, &count, err)
                         : wf__fail_memory(err, batch->count * 4, "a batch");
  if (status == WF_OK) {
    struct step step = {
        .self = self, .batch = batch, .channels = channels, .order = order, .errors = errors};
    atomic_init(&step.failed, 0);
    run_items(&step, count);
    status = (wf_status)atomic_load(&step.failed);
    if (status != WF_OK)
      wf__fail(err, status, "%s in some streams; see the errors of those streams",
               wf_status_text(status));
  }
  free(order);
  free(errors);
  return status;
}

static wf_status advance(void *opaque, const wf__batch *batch, void *const *channels,
                         wf_error *err) {
  wf__host *self = opaque;
  const wf__answer_ops *answers = self->setup.answers;
  wf_error own = {0};
  if (answers == NULL || answers->num_places == NULL)
    return advance_in_threads(self, batch, channels, err);
  const wf_status status = wf__lanes_advance(self, batch, channels, &own);
  for (size_t i = 0; i < batch->count && status != WF_OK; i++)
    wf__result_fail(batch->results[i], status, &own);
  if (err != NULL && status != WF_OK) *err = own;
  return status;
}

/* --- paths and lattices ------------------------------------------------------------------ */

static wf__pool *pool(void *self) { return ((wf__host *)self)->pool; }

/* An utterance begins in the thread that uses the decoder, if it has a search of its own: that may
 * call the caller's functions. */
static wf_status prepare(void *self, void *channel, wf_error *err) {
  wf__stream_state *state = channel;
  wf__searcher *searcher;
  if (state->begun || !state->ops->owns_search) return WF_OK;
  const wf_status status = enter(self, state, 0, &searcher, err);
  return leave(state, searcher, status, err);
}

static wf_status committed(void *self, void *channel, int thread, bool now, wf__path *out,
                           wf_error *err) {
  wf__stream_state *state = channel;
  wf__searcher *searcher;
  if (now && state->begun) {
    wf_status status = enter(self, state, thread, &searcher, err);
    if (status == WF_OK) status = state->ops->collect(searcher, true, err);
    WF__TRY(leave(state, searcher, status, err));
  }
  return state->ops->take_committed(state, out, err);
}

static wf_status take_path(wf__searcher *searcher, bool goes_on, wf__path *out, wf_error *err) {
  wf__path *path = &searcher->path;
  const uint32_t flags = path->flags;
  WF__TRY(goes_on ? searcher->ops->partial(searcher, err)
                  : wf__searcher_finish(searcher, NULL, err));
  wf__path_clear(out);
  wf__vec_swap(&out->arcs, &path->arcs);
  wf__vec_swap(&out->loglikes, &path->loglikes);
  wf__vec_swap(&out->steps, &path->steps);
  WF__TRY(wf__path_take_frames(path, path->frames.size, out, err));
  wf__path_copy_statistics(path, out);
  out->final_cost = path->final_cost;
  out->scorer_cost = path->scorer_cost;
  out->relative_cost = path->relative_cost;
  if (goes_on) path->flags = flags;
  return WF_OK;
}

static wf_status path(void *self, void *channel, int thread, bool goes_on, wf__path *out,
                      wf_error *err) {
  wf__stream_state *state = channel;
  wf__searcher *searcher;
  wf_status status = enter(self, state, thread, &searcher, err);
  if (status == WF_OK) status = take_path(searcher, goes_on, out, err);
  return leave(state, searcher, status, err);
}

static wf_status lattice(void *self, void *channel, bool goes_on, wf_lattice **out, wf_error *err) {
  wf__stream_state *state = channel;
  wf__searcher *searcher;
  wf_status status = enter(self, state, 0, &searcher, err);
  if (status == WF_OK)
    status = goes_on ? state->ops->partial_lattice(searcher, out, err)
                     : state->ops->lattice(searcher, NULL, out, err);
  return leave(state, searcher, status, err);
}

static wf_status commit_lattice(void *self, void *channel, wf_lattice **out, wf_error *err) {
  wf__stream_state *state = channel;
  wf__searcher *searcher;
  if (!state->begun) return WF_OK;
  wf_status status = enter(self, state, 0, &searcher, err);
  if (status == WF_OK)
    status = wf__history_commit(&searcher->history, searcher->graph, &searcher->options,
                                &searcher->scoring, out, err);
  return leave(state, searcher, status, err);
}

const wf__stream_backend wf__host_streams = {.open = open_channel,
                                             .close = close_channel,
                                             .set_scorer = set_scorer,
                                             .set_graph = set_graph,
                                             .reset = reset,
                                             .bytes = bytes,
                                             .advance = advance,
                                             .pool = pool,
                                             .prepare = prepare,
                                             .committed = committed,
                                             .path = path,
                                             .commit_lattice = commit_lattice,
                                             .lattice = lattice};
