/* transducer_streams.c - streams with a transducer. Each has a search of its own. With GPUs, each
 * stream is on one of them, and the chunks of a batch are searched together, as in
 * transducer_lanes.c. */
#include <stdlib.h>
#include <string.h>

#include "decode/cpu_rounds.h"
#include "decode/cpu_streams.h"
#include "search/transducer/transducer_search.h"

#define NONE UINT32_MAX
enum {
  MOST_FLOATS = 1 << 18, /* of a stream's predictor contexts that are not in use */
  COLLECT = 4096         /* records after which they are collected */
};

struct channel {
  wf__transducer_search *search; /* NULL: the utterance has not begun */
  wf_scorer *scorer;             /* of the utterance; NULL: none */
  const wf_graph *graph;
  size_t gpu;
};

static wf_status channel_open(void *opaque, void **out, wf_error *err) {
  struct wf__cpu_backend *self = opaque;
  struct channel *channel = *out = wf__calloc(1, sizeof *channel);
  if (channel == NULL) return wf__fail_memory(err, sizeof *channel, "a stream");
  channel->graph = self->graph;
  for (size_t d = 1; d < self->num_gpus; d++) /* the GPU with the fewest */
    if (self->num_channels[d] < self->num_channels[channel->gpu]) channel->gpu = d;
  self->num_channels[channel->gpu]++;
  return WF_OK;
}

/* An idle stream keeps no memory. */
static void channel_reset(void *opaque, void *opaque_channel) {
  struct wf__cpu_backend *self = opaque;
  struct channel *channel = opaque_channel;
  if (channel->search != NULL && self->num_gpus > 0)
    wf__transducer_group_release(self->stream_groups[channel->gpu], &channel->search->predictions);
  wf__transducer_search_free(channel->search);
  channel->search = NULL;
}

static void channel_close(void *opaque, void *opaque_channel) {
  struct channel *channel = opaque_channel;
  if (channel == NULL) return;
  channel_reset(opaque, channel);
  ((struct wf__cpu_backend *)opaque)->num_channels[channel->gpu]--;
  wf_scorer_free(channel->scorer);
  free(channel);
}

static wf_status set_scorer(void *self, void *opaque, const wf_scorer *given, const wf_word *words,
                            size_t num_words, wf_error *err) {
  struct channel *channel = opaque;
  const wf_scorer *scorer = wf__scorer_for_transducer(given);
  const bool begun = channel->search != NULL && channel->search->num_frames > 0;
  if (begun && scorer != channel->scorer)
    WF__TRY(wf__transducer_replace_scorer(channel->search, scorer, words, num_words, err));
  wf_scorer *old = channel->scorer;
  channel->scorer = wf_scorer_ref(scorer);
  wf_scorer_free(old);
  if (!begun) channel_reset(self, channel);
  return WF_OK;
}

static wf_status set_graph(void *self, void *opaque, const wf_graph *graph, wf_error *err) {
  struct channel *channel = opaque;
  channel->graph = graph;
  channel_reset(self, channel);
  return WF_OK;
}

static uint64_t channel_bytes(const void *self, const void *opaque) {
  const struct channel *channel = opaque;
  return sizeof *channel +
         (channel->search != NULL ? wf__transducer_search_bytes(channel->search) : 0);
}

/* Begins the utterance, if there was no chunk yet. */
static wf_status prepare(void *opaque, void *opaque_channel, wf_error *err) {
  const struct wf__cpu_backend *self = opaque;
  struct channel *channel = opaque_channel;
  if (channel->search != NULL) return WF_OK;
  WF__TRY(wf__transducer_search_create(self->graph, self->transducer, &self->options,
                                       &self->transducer_arcs, self->num_gpus > 0, &channel->search,
                                       err));
  channel->search->predictions.most_floats = MOST_FLOATS;
  wf__transducer_search_set_graph(channel->search, channel->graph);
  wf_status status = wf__transducer_search_set_scorer(channel->search, channel->scorer, err);
  if (status == WF_OK) status = wf__transducer_search_begin(channel->search, err);
  if (status != WF_OK) channel_reset(opaque, channel);
  return status;
}

/* After a chunk. */
static wf_status collect(wf__transducer_search *search, wf_error *err) {
  return search->records.size > 2 * search->num_live + COLLECT ? wf__transducer_collect(search, err)
                                                               : WF_OK;
}

static wf_status consume(struct wf__cpu_backend *self, void *opaque, const wf_scores *chunk,
                         int worker, wf_error *err) {
  struct channel *channel = opaque;
  WF__TRY(prepare(self, channel, err));
  WF__TRY(wf__transducer_search_advance(channel->search, chunk, err));
  return collect(channel->search, err);
}

/* --- with GPUs --------------------------------------------------------------------------- */

struct together {
  struct wf__cpu_backend *self;
  const wf__batch *batch;
  void *const *channels;
  uint32_t *order; /* [num_lanes] lane i is on GPU i % num_gpus; NONE: idle */
  size_t num_lanes;
};

static wf_status begin_chunk(struct together *t, uint32_t stream, bool *good, wf_error *err) {
  struct channel *channel = t->channels[stream];
  const wf_scores *chunk = &t->batch->scores[stream];
  wf_result *result = t->batch->results[stream];
  *good = result->status == WF_OK; /* else it failed before */
  if (*good && !chunk->on_device)
    *good =
        wf__cpu_check_values(chunk, t->self->transducer->encoder_size, result->num_frames, result);
  if (!*good) return WF_OK;
  WF__TRY(prepare(t->self, channel, err));
  channel->search->predictions.first_frame = channel->search->num_frames;
  channel->search->defers = true;
  return wf__transducer_search_feed(channel->search, chunk, err);
}

/* Goes on until the GPU has to answer. The search scores its own requests to the scorer: streams
 * have scorers of their own. */
static wf_status go_to_model(wf__transducer_search *search, bool *waits, wf_error *err) {
  bool asks = true;
  *waits = false;
  while (asks && !*waits) {
    WF__TRY(wf__transducer_search_go_on(search, &asks, err));
    if (search->scorer_waits) WF__TRY(wf__transducer_score_requests(&search, 1, NULL, err));
    *waits = asks && search->stage == WF__TRANSDUCER_STEP;
  }
  return WF_OK;
}

static wf_status run_lane(void *user, size_t i, uint32_t stream, bool begins, bool *waits,
                          wf_error *err) {
  struct together *t = user;
  struct wf__cpu_backend *self = t->self;
  struct channel *channel = t->channels[stream];
  const wf_scores *chunk = &t->batch->scores[stream];
  int where = -1;
  if (begins) {
    bool good;
    WF__TRY(wf__transducer_scores_where(self->transducer_weights[channel->gpu], chunk, self->stream,
                                        &where, err));
    WF__TRY(begin_chunk(t, stream, &good, err));
    if (!good) return WF_OK;
  }
  WF__TRY(go_to_model(channel->search, waits, err));
  if (!*waits) return collect(channel->search, err);
  wf__transducer_group_put(self->stream_groups[channel->gpu], i / self->num_gpus,
                           begins ? chunk : NULL, where, &channel->search->predictions);
  return WF_OK;
}

static wf_status submit(void *user, size_t group, const bool *lanes_wait, wf_error *err) {
  struct together *t = user;
  (void)lanes_wait; /* they have put their requests */
  return wf__cpu_submit(t->self, t->self->stream_groups[group], err);
}

static wf_status wait_for_gpu(void *user, size_t group, wf_error *err) {
  const struct together *t = user;
  return wf__transducer_group_wait(t->self->stream_groups[group], err);
}

static wf_status begin_groups(struct together *t, wf_error *err) {
  struct wf__cpu_backend *self = t->self;
  const wf__score_cut cut = wf__cpu_score_cut(self);
  int64_t *num_frames = wf__alloc(t->num_lanes, sizeof *num_frames);
  wf_status status = num_frames != NULL ? WF_OK : wf__fail_memory(err, t->num_lanes * 8, "a batch");
  for (size_t d = 0; d < self->num_gpus && status == WF_OK; d++) {
    size_t count = 0;
    for (size_t i = d; i < t->num_lanes; i += self->num_gpus)
      num_frames[count++] = t->order[i] != NONE ? t->batch->scores[t->order[i]].num_frames : 0;
    if (self->stream_groups[d] == NULL)
      status = wf__transducer_group_open(self->transducer_weights[d], &self->stream_groups[d], err);
    if (status == WF_OK)
      status = wf__transducer_group_begin(self->stream_groups[d], &cut, num_frames, count,
                                          self->stream, err);
  }
  free(num_frames);
  return status;
}

static wf_status search_together(struct together *t, wf_error *err) {
  struct wf__cpu_backend *self = t->self;
  wf__rounds rounds = {.pool = self->pool,
                       .batch = t->batch,
                       .num_lanes = t->num_lanes,
                       .num_groups = self->num_gpus,
                       .user = t,
                       .run = run_lane,
                       .score = submit,
                       .wait = wait_for_gpu};
  WF__TRY(begin_groups(t, err));
  const wf_status status = wf__cpu_rounds(&rounds, t->order, (uint32_t)t->num_lanes, err);
  wf__cpu_count_rounds(self, &rounds);
  return status;
}

/* Takes streams from `order`, which become NONE there, as lanes of their GPUs; false: none is left.
 */
static bool fill_lanes(struct together *t, uint32_t *order, uint32_t count, size_t most) {
  const size_t num_gpus = t->self->num_gpus;
  size_t used[WF__TRANSDUCER_GPUS] = {0};
  bool any = false;
  t->num_lanes = 0;
  for (size_t i = 0; i < most * num_gpus; i++) t->order[i] = NONE;
  for (uint32_t i = 0; i < count; i++) {
    if (order[i] == NONE) continue;
    const size_t d = ((const struct channel *)t->channels[order[i]])->gpu;
    if (used[d] == most) continue;
    t->order[used[d]++ * num_gpus + d] = order[i];
    if (used[d] * num_gpus > t->num_lanes) t->num_lanes = used[d] * num_gpus;
    order[i] = NONE;
    any = true;
  }
  return any;
}

void wf__cpu_close_stream_groups(struct wf__cpu_backend *self) {
  for (size_t d = 0; d < self->num_gpus; d++) {
    wf__transducer_group_close(self->stream_groups[d]);
    self->stream_groups[d] = NULL;
  }
}

/* After an error, ends what is under way. Groups stay, because other streams have contexts in their
 * memory; after an error of CUDA, nothing there can be used. */
static void end_groups(struct wf__cpu_backend *self, wf_status status) {
  for (size_t d = 0; d < self->num_gpus && status != WF_ERR_DEVICE; d++)
    if (self->stream_groups[d] != NULL &&
        wf__transducer_group_wait(self->stream_groups[d], NULL) != WF_OK)
      status = WF_ERR_DEVICE;
  self->broken = status == WF_ERR_DEVICE;
  if (self->broken) wf__cpu_close_stream_groups(self);
}

static wf_status advance_together(struct together *t, wf_error *err) {
  struct wf__cpu_backend *self = t->self;
  const size_t most = wf__cpu_most_lanes(self);
  uint32_t *order = wf__alloc(t->batch->count, sizeof *order), count = 0;
  t->order = wf__alloc(most * self->num_gpus, sizeof *t->order);
  wf_status status = order != NULL && t->order != NULL
                         ? wf__longest_first(t->batch, order, &count, err)
                         : wf__fail_memory(err, t->batch->count * 4, "a batch");
  while (status == WF_OK && fill_lanes(t, order, count, most)) status = search_together(t, err);
  if (status != WF_OK) end_groups(self, status);
  free(order);
  free(t->order);
  return status;
}

static wf_status advance(void *opaque, const wf__batch *batch, void *const *channels,
                         wf_error *err) {
  struct wf__cpu_backend *self = opaque;
  struct together t = {.self = self, .batch = batch, .channels = channels};
  wf_error own = {0};
  if (self->num_gpus == 0)
    return wf__cpu_advance(self, batch, channels, self->transducer->encoder_size, consume, err);
  const wf_status status =
      self->broken
          ? wf__fail(&own, WF_ERR_DEVICE, "an earlier CUDA error left this decoder unusable")
          : advance_together(&t, &own);
  for (size_t i = 0; i < batch->count && status != WF_OK; i++)
    wf__result_fail(batch->results[i], status, &own);
  if (err != NULL && status != WF_OK) *err = own;
  return status;
}

/* --- results ----------------------------------------------------------------------------- */

/* Moves the arcs of a path, and what belongs to them, to an empty one. */
static void take_path(wf__path *from, wf__path *to) {
  wf__vec_swap(&to->arcs, &from->arcs);
  wf__vec_swap(&to->loglikes, &from->loglikes);
  wf__vec_swap(&to->steps, &from->steps);
}

static wf__pool *pool(void *self) { return ((struct wf__cpu_backend *)self)->pool; }

static wf_status committed(void *self, void *opaque, int thread, bool now, wf__path *out,
                           wf_error *err) {
  wf__transducer_search *search = ((struct channel *)opaque)->search;
  wf__path_clear(out);
  if (search == NULL) return WF_OK;
  if (now) WF__TRY(wf__transducer_collect(search, err));
  take_path(&search->committed, out);
  return WF_OK;
}

static wf_status path(void *self, void *opaque, int thread, bool goes_on, wf__path *out,
                      wf_error *err) {
  wf__transducer_search *search = ((struct channel *)opaque)->search;
  WF__TRY(goes_on ? wf__transducer_search_partial(search, err)
                  : wf__transducer_search_finish(search, err));
  wf__path_clear(out);
  take_path(&search->path, out);
  wf__copy_statistics(&search->path, out);
  out->final_cost = search->path.final_cost;
  out->scorer_cost = search->path.scorer_cost;
  out->relative_cost = search->path.relative_cost;
  return WF_OK;
}

/* --- lattices ---------------------------------------------------------------------------- */

/* What the end of an utterance changes. */
struct saved {
  wf__history history;
  wf__transducer_set *waiting; /* [num_waiting] */
  wf__transducer_links *links; /* [num_waiting] */
  uint64_t num_records;
  uint64_t counts[3]; /* of the path */
};

static wf_status save(const wf__transducer_search *search, struct saved *saved, wf_error *err) {
  const uint32_t count = search->num_waiting;
  const wf__path *path = &search->path;
  saved->num_records = search->records.size;
  memcpy(saved->counts, (uint64_t[]){path->num_tokens, path->num_expanded, path->num_arcs},
         sizeof saved->counts);
  saved->waiting = wf__calloc(count, sizeof *saved->waiting);
  saved->links = wf__calloc(count, sizeof *saved->links);
  if (saved->waiting == NULL || saved->links == NULL)
    return wf__fail_memory(err, count * sizeof *saved->waiting, "a lattice");
  WF__TRY(wf__history_copy(&search->lattice.history, &saved->history, err));
  for (uint32_t w = 0; w < count; w++) {
    const wf__transducer_links *links = &search->lattice.waiting[w];
    WF__TRY(wf__transducer_set_copy(&search->waiting[w], &saved->waiting[w], err));
    WF__TRY(wf__vec_grow(&saved->links[w], links->size, "a lattice", err));
    for (uint64_t i = 0; i < links->size; i++) saved->links[w].data[i] = links->data[i];
    saved->links[w].size = links->size;
  }
  return WF_OK;
}

static void exchange(wf__transducer_search *search, struct saved *saved) {
  const wf__history history = search->lattice.history;
  search->lattice.history = saved->history;
  saved->history = history;
  for (uint32_t w = 0; w < search->num_waiting; w++) {
    const wf__transducer_set set = search->waiting[w];
    const wf__transducer_links links = search->lattice.waiting[w];
    search->waiting[w] = saved->waiting[w];
    search->lattice.waiting[w] = saved->links[w];
    saved->waiting[w] = set;
    saved->links[w] = links;
  }
}

static void restore(wf__transducer_search *search, struct saved *saved) {
  wf__path *path = &search->path;
  exchange(search, saved);
  wf__transducer_set_clear(&search->now);
  search->records.size = saved->num_records;
  search->sources.size = 0;
  search->stage = WF__TRANSDUCER_BETWEEN;
  search->ended = false;
  path->num_tokens = saved->counts[0];
  path->num_expanded = saved->counts[1];
  path->num_arcs = saved->counts[2];
}

static void free_saved(struct saved *saved, uint32_t count) {
  for (uint32_t w = 0; w < count && saved->waiting != NULL; w++)
    wf__transducer_set_free(&saved->waiting[w]);
  for (uint32_t w = 0; w < count && saved->links != NULL; w++) wf__vec_free(&saved->links[w]);
  free(saved->waiting);
  free(saved->links);
  wf__history_free(&saved->history);
}

/* The lattice as if the utterance ended here, in any state. */
static wf_status end_anywhere(wf__transducer_search *search, wf_lattice **out, wf_error *err) {
  const bool defers = search->defers;
  bool waits;
  search->defers = false; /* no context is evicted */
  wf_status status = wf__transducer_search_go_to_end(search, &waits, err);
  search->defers = defers;
  search->path.flags |= WF_RESULT_NOT_FINAL;
  search->path.num_decoded = search->ended ? search->num_frames : search->last_frame;
  return status == WF_OK ? wf__transducer_lattice_make(search, out, err) : status;
}

static wf_status lattice(void *self, void *opaque, bool goes_on, wf_lattice **out, wf_error *err) {
  struct channel *channel = opaque;
  WF__TRY(prepare(self, channel, err));
  wf__transducer_search *search = channel->search;
  if (!goes_on) return wf__transducer_lattice_make(search, out, err);
  struct saved saved = {0};
  wf_status status = save(search, &saved, err);
  if (status == WF_OK) {
    status = end_anywhere(search, out, err);
    restore(search, &saved);
  }
  free_saved(&saved, search->num_waiting);
  return status;
}

static wf_status commit_lattice(void *self, void *opaque, wf_lattice **out, wf_error *err) {
  wf__transducer_search *search = ((struct channel *)opaque)->search;
  (void)self;
  return search == NULL ? WF_OK
                        : wf__history_commit(&search->lattice.history, search->graph,
                                             &search->options, &search->scoring, out, err);
}

const wf__stream_backend wf__cpu_transducer_streams = {.open = channel_open,
                                                       .close = channel_close,
                                                       .set_scorer = set_scorer,
                                                       .set_graph = set_graph,
                                                       .reset = channel_reset,
                                                       .bytes = channel_bytes,
                                                       .advance = advance,
                                                       .pool = pool,
                                                       .prepare = prepare,
                                                       .committed = committed,
                                                       .path = path,
                                                       .commit_lattice = commit_lattice,
                                                       .lattice = lattice};
