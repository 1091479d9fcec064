/* transducer_lane_rounds.c - see transducer_lane_rounds.h. */
#include "cuda/transducer/transducer_lane_rounds.h"

#include <string.h>

#include "cuda/scorer/scorer_store.h"
#include "cuda/transducer/transducer_added_words.h"
#include "cuda/transducer/transducer_lanes.h"
#include "cuda/transducer/transducer_loading.h"
#include "cuda/transducer/transducer_slots.h"
#include "search/transducer/network.h"

#ifndef WF__DEVICE_LANES /* a test makes these small */
#define WF__DEVICE_LANES 512
#define WF__DEVICE_UTTERANCES (1 << 20) /* the most that are searched at once */
#define WF__DEVICE_OFFERS 256           /* of a frame that there is room for, in the mean */
#endif
enum {
  ROUNDS = 4,       /* that are enqueued by one launch */
  AHEAD = 3,        /* launches that are enqueued and not known to be over */
  CHUNK_ROUNDS = 1, /* the same for chunks of streams, which have few rounds */
  CHUNK_AHEAD = 2,
  MORE_SLOTS = 96,   /* of a lane, for contexts that may come again */
  STEPS_A_FRAME = 4, /* that records have room for; with more, an utterance is searched elsewhere */
  CLOSED = 2,        /* of each source, in the mean, a token and one that an epsilon arc makes */
  FIRST_OFFERS = 32 * WF__DEVICE_OFFERS /* there is room for these besides */
};
#define ROUND_BYTES ((uint64_t)1 << 30) /* of logits and answers */

static const char what[] = "the transducer's search";

/* The host reads the status of a launch's last round. */
_Static_assert((AHEAD + 1) * ROUNDS <= WF__TLANE_STATUSES,
               "statuses are read before they are lost");
_Static_assert(WF__DEVICE_UTTERANCES < 1 << WF__TLANE_DONE_BITS, "the number fits a status");

struct wf__device_search {
  wf__transducer_weights *weights;
  wf__transducer_group *group; /* the model's part; it has the stream */
  bool owns_group;
  wf__device_search_options options;
  wf__device_buffer arcs, states, graph_arcs, places; /* the graph */
  wf__device_buffer utterances, starts, lanes, tokens, contexts, candidates, entries, records,
      offers, results, counters, details;
  wf__pinned_buffer host_utterances, host_starts, host_results, host_counters, host_details,
      statuses;
  wf__frame_loader loader;
  wf__gpu_scorers scorers;
  wf__added_store added;
  wf__slot_store slots;
  cudaEvent_t launches[AHEAD]; /* the ends of the last ones */
  uint32_t num_utterances;
  uint64_t room_bytes; /* for the utterances that are searched at once */
  wf__tlane_work work, recorded;
  uint32_t rounds, recorded_rounds; /* of a launch */
  uint32_t ahead;
  wf__tlane_status status; /* of the last round that is known to be over */
  uint64_t num_launches, num_seen;
};

static uint64_t most_steps(const wf__device_search *s) {
  return s->options.max_symbols + 1 < STEPS_A_FRAME ? s->options.max_symbols + 1 : STEPS_A_FRAME;
}
static uint64_t most_records(const wf__device_search *s, int64_t num_frames) {
  const uint64_t tokens = s->options.max_hypotheses * (s->options.has_epsilons != 0 ? CLOSED : 1);
  return ((uint64_t)num_frames * most_steps(s) + 2) * tokens;
}

static uint64_t most_offers(const wf__device_search *s, int64_t num_frames) {
  const uint64_t most = (uint64_t)num_frames * WF__DEVICE_OFFERS + FIRST_OFFERS;
  return s->options.keeps_offers == 0 ? 0 : most < UINT32_MAX / 2 ? most : UINT32_MAX / 2;
}

/* As on the CPU: one for each duration; without, for this frame and the next. */
static uint32_t num_sets_of(const wf__device_search_options *options) {
  return options->num_durations > 0 ? options->num_durations : 2;
}
static uint32_t num_slots_of(const wf__device_search_options *options) {
  return (num_sets_of(options) + 1) * options->max_hypotheses + MORE_SLOTS;
}
/* That a stream may need, in the mean: those of the next frame's tokens, and with durations more. */
static uint64_t num_spares_of(const wf__device_search *s, const wf__device_batch *batch) {
  return batch->predictions == NULL
             ? 0
             : batch->count * s->options.max_hypotheses * (s->options.num_durations > 0 ? 2 : 1);
}

/* --- opening ----------------------------------------------------------------------------- */

static wf_status pin(wf__pinned_buffer *buffer, uint64_t bytes, wf_error *err) {
  return wf__transducer_pin(buffer, bytes + (buffer->data == NULL), err);
}

/* Rounds up: recorded rounds are lost when memory moves. */
static wf_status reserve(wf__device_buffer *buffer, uint64_t bytes, wf_error *err) {
  return bytes <= buffer->bytes && buffer->data != NULL
             ? WF_OK
             : wf__device_reserve(buffer, bytes + bytes / 4, what, err);
}

/* The lanes that there is room for: rows of logits and answers, and slots of contexts. */
static uint32_t most_lanes(const wf__device_search *s) {
  const wf_transducer *model = s->weights->model;
  const uint64_t row = 2 * wf__transducer_num_logits(model) * sizeof(float) +
                       WF__SLICE_DIGITS * model->width +
                       WF__ANSWER_ENTRIES * sizeof(wf__score_entry),
                 slot = (model->width + model->state_floats) * sizeof(float),
                 lane = s->options.max_hypotheses * row + s->work.num_slots * slot +
                        WF__LANE_CANDIDATES * sizeof(wf__tlane_candidate),
                 most = ROUND_BYTES / lane;
  return most < 1 ? 1 : most < WF__DEVICE_LANES ? (uint32_t)most : WF__DEVICE_LANES;
}

static wf_status send(wf__device_search *s, const void *data, uint64_t bytes, wf__device_buffer *to,
                      wf_error *err) {
  WF__TRY(wf__device_reserve(to, bytes, what, err));
  return wf__device_send(to->data, data, bytes, s->group->stream, what, err);
}

static wf_status send_graph(wf__device_search *s, const wf__device_search_graph *graph,
                            wf_error *err) {
  if (s->options.is_plain)
    WF__TRY(send(s, graph->tokens, s->options.num_tokens * sizeof *graph->tokens, &s->arcs, err));
  WF__TRY(send(s, graph->states, graph->num_states * sizeof *graph->states, &s->states, err));
  WF__TRY(send(s, graph->arcs, graph->num_arcs * sizeof *graph->arcs, &s->graph_arcs, err));
  s->work.num_states = (uint32_t)graph->num_states;
  return graph->num_places == 0
             ? WF_OK
             : send(s, graph->places, graph->num_places * sizeof *graph->places, &s->places, err);
}

static wf_status open_search(wf__device_search *s, const wf__device_search_graph *graph,
                             wf_error *err) {
  size_t free_bytes = 0, all_bytes = 0;
  WF__CUDA_TRY(cudaSetDevice(s->weights->number), "choosing the GPU");
  for (int i = 0; i < AHEAD; i++)
    WF__CUDA_TRY(cudaEventCreateWithFlags(&s->launches[i], cudaEventDisableTiming), "an event");
  WF__CUDA_TRY(wf__tlanes_prepare(s->weights->shared_bytes), what);
  WF__TRY(wf__transducer_make_table(s->weights, err));
  WF__TRY(wf__frame_loader_open(&s->loader, s->group, err));
  WF__TRY(send_graph(s, graph, err));
  WF__TRY(wf__device_reserve(&s->counters, sizeof(wf__tlane_counters), what, err));
  WF__TRY(pin(&s->host_counters, sizeof(wf__tlane_counters), err));
  WF__TRY(pin(&s->statuses, WF__TLANE_STATUSES * sizeof(wf__tlane_status), err));
  WF__CUDA_TRY(cudaMemGetInfo(&free_bytes, &all_bytes), what);
  s->room_bytes = free_bytes / 4;
  s->work.table = s->weights->table.data;
  if (s->work.table == NULL) s->work.num_slots = num_slots_of(&s->options);
  return WF_OK;
}

bool wf__lane_rounds_fits(const wf__transducer_weights *weights,
                          const wf__device_search_options *options, uint64_t graph_bytes) {
  const wf__tlane_work work = {.options = *options,
                               .num_sets = num_sets_of(options),
                               .num_slots = num_slots_of(options),
                               .has_words = 1};
  const int caller = wf__callers_device();
  size_t free_bytes = 0, all_bytes = 0;
  const bool known = cudaSetDevice(weights->number) == cudaSuccess &&
                     cudaMemGetInfo(&free_bytes, &all_bytes) == cudaSuccess;
  (void)cudaGetLastError(); /* the next call has it again */
  wf__restore_device(caller);
  return known && wf__tlanes_shared_bytes(&work) <= weights->shared_bytes &&
         graph_bytes <= free_bytes / 4;
}

wf_status wf__lane_rounds_open(wf__transducer_weights *weights, wf__transducer_group *group,
                               const wf__device_search_options *options,
                               const wf__device_search_graph *graph, wf__device_search **out,
                               wf_error *err) {
  *out = NULL;
  wf__device_search *s = wf__calloc(1, sizeof *s);
  if (s == NULL) return wf__fail_memory(err, sizeof *s, "a search");
  s->weights = weights;
  s->options = *options;
  s->work.num_sets = num_sets_of(options);
  s->work.is_wide = (uint32_t)wf__transducer_is_wide(options->num_tokens, options->num_durations);
  const int caller = wf__callers_device();
  s->group = group;
  s->owns_group = group == NULL;
  wf_status status = s->owns_group ? wf__transducer_group_open(weights, &s->group, err) : WF_OK;
  if (status == WF_OK) status = open_search(s, graph, err);
  wf__restore_device(caller);
  if (status == WF_OK)
    *out = s;
  else
    wf__lane_rounds_close(s);
  return status;
}

void wf__lane_rounds_close(wf__device_search *s) {
  if (s == NULL) return;
  wf__device_buffer *buffers[] = {&s->arcs,    &s->states, &s->graph_arcs, &s->utterances,
                                  &s->lanes,   &s->tokens, &s->contexts,   &s->candidates,
                                  &s->records, &s->offers, &s->results,    &s->counters,
                                  &s->details, &s->starts, &s->places,     &s->entries};
  wf__pinned_buffer *pinned[] = {&s->host_utterances, &s->host_starts,  &s->host_results,
                                 &s->host_counters,   &s->host_details, &s->statuses};
  const int caller = wf__callers_device();
  cudaSetDevice(s->weights->number);
  if (s->owns_group)
    wf__transducer_group_close(s->group); /* waits */
  else
    cudaStreamSynchronize(s->group->stream);
  cudaSetDevice(s->weights->number);
  wf__slot_store_close(&s->slots, s->owns_group ? NULL : s->group);
  wf__frame_loader_close(&s->loader);
  wf__gpu_close_scorers(&s->scorers);
  wf__added_store_close(&s->added);
  for (int i = 0; i < AHEAD; i++)
    if (s->launches[i] != NULL) cudaEventDestroy(s->launches[i]);
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) cudaFree(buffers[i]->data);
  for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++) cudaFreeHost(pinned[i]->data);
  (void)cudaGetLastError(); /* of freeing: all other errors have been reported */
  wf__restore_device(caller);
  free(s);
}

/* --- utterances -------------------------------------------------------------------------- */

wf_status wf__lane_rounds_room(wf__device_search *s, const int64_t *num_frames, size_t count,
                               size_t *room, wf_error *err) {
  const wf_transducer *model = s->weights->model;
  const uint64_t frame =
      (model->width + (uint64_t)model->encoder_size) * sizeof(float) + sizeof(wf__encoder_frame);
  uint64_t bytes = 0;
  *room = 0;
  while (*room < count && *room < WF__DEVICE_UTTERANCES) {
    const int64_t n = num_frames[*room];
    bytes += (uint64_t)n * frame + most_records(s, n) * sizeof(wf__tlane_record) +
             most_offers(s, n) * sizeof(wf__device_offer);
    if (most_records(s, n) > UINT32_MAX / 2)
      return *room > 0 ? WF_OK : wf__fail(err, WF_ERR_LIMIT, "an utterance has too many frames");
    if (*room > 0 && bytes > s->room_bytes) return WF_OK;
    ++*room;
  }
  return WF_OK;
}

/* Sends the utterances' scorers; NULL: none has one. */
static wf_status send_scorers(wf__device_search *s, const wf_scorer *const *scorers, size_t count,
                              wf_error *err) {
  const wf__model_room room = {.device = s->weights->number, .stream = s->group->stream};
  wf__gpu_begin_scorers(&s->scorers);
  for (size_t i = 0; i < count && scorers != NULL; i++)
    if (scorers[i] != NULL) WF__TRY(wf__scorer_store_add(&s->scorers.batch, scorers[i], err));
  return wf__gpu_send_scorers(&s->scorers, &room, NULL, err);
}

/* Sends the words that are added to the utterances' graphs. */
static wf_status send_added(wf__device_search *s, const wf__device_batch *batch, wf_error *err) {
  const wf__words_upload upload = {.options = batch->options, .stream = s->group->stream};
  return wf__added_store_begin(&s->added, &upload, batch->graphs, batch->count, err);
}

/* Where the utterances' frames, records, scorers and added words are. */
static wf_status send_utterances(wf__device_search *s, const wf__device_batch *batch,
                                 wf_error *err) {
  const wf_scorer *const *scorers = batch->scorers;
  const size_t count = batch->count;
  const uint64_t bytes = count * sizeof(wf__tlane_utterance);
  WF__TRY(pin(&s->host_utterances, bytes, err));
  wf__tlane_utterance *all = (wf__tlane_utterance *)(void *)s->host_utterances.data;
  uint64_t num_records = 0, num_offers = 0;
  for (size_t i = 0; i < count; i++) {
    all[i] = (wf__tlane_utterance){
        .first_record = num_records,
        .most_records = most_records(s, batch->scores[i]->num_frames),
        .first_offer = num_offers,
        .most_offers = most_offers(s, batch->scores[i]->num_frames),
        .first_frame = s->group->first_frame.data[i],
        .num_frames = (int32_t)batch->scores[i]->num_frames,
        .is_chunk = batch->first_start != NULL,
        .epsilon_slack = wf__epsilon_slack(batch->graphs[i], batch->options,
                                           scorers != NULL && scorers[i] != NULL),
        .words = wf__added_store_find(&s->added, batch->graphs[i]),
        .scorer = wf__gpu_find_scorer(&s->scorers, scorers != NULL ? scorers[i] : NULL)};
    if (batch->first_start != NULL) {
      all[i].first_start = batch->first_start[i];
      all[i].num_starts = batch->first_start[i + 1] - batch->first_start[i];
    }
    num_records += all[i].most_records;
    num_offers += all[i].most_offers;
  }
  WF__TRY(reserve(&s->utterances, bytes, err));
  WF__TRY(reserve(&s->records, num_records * sizeof(wf__tlane_record), err));
  WF__TRY(reserve(&s->offers, num_offers * sizeof(wf__device_offer), err));
  WF__TRY(reserve(&s->results, count * sizeof(wf__device_result), err));
  WF__TRY(pin(&s->host_results, count * sizeof(wf__device_result), err));
  WF__CUDA_TRY(
      cudaMemcpyAsync(s->utterances.data, all, bytes, cudaMemcpyHostToDevice, s->group->stream),
      what);
  return WF_OK;
}

/* The tokens that chunks of streams begin with. */
static wf_status send_starts(wf__device_search *s, const wf__device_batch *batch, wf_error *err) {
  if (batch->first_start == NULL) return WF_OK;
  const uint64_t bytes = batch->first_start[batch->count] * sizeof *batch->starts;
  WF__TRY(pin(&s->host_starts, bytes, err));
  WF__TRY(reserve(&s->starts, bytes, err));
  if (bytes == 0) return WF_OK;
  memcpy(s->host_starts.data, batch->starts, bytes);
  WF__CUDA_TRY(cudaMemcpyAsync(s->starts.data, s->host_starts.data, bytes, cudaMemcpyHostToDevice,
                               s->group->stream),
               what);
  return WF_OK;
}

/* Streams need more slots every now and then. */
static wf_status make_room(wf__device_search *s, uint64_t rows, wf_error *err) {
  const wf__transducer_round round = {.num_rows = rows, .num_contexts = rows};
  uint64_t num_slots = atomic_load(&s->group->num_slots);
  if (!s->owns_group && num_slots > s->group->max_slots) num_slots += num_slots / 4;
  return wf__transducer_make_room(s->group, &round, num_slots, err);
}

static wf_status make_lanes(wf__device_search *s, const wf__device_batch *batch, wf_error *err) {
  wf__tlane_work *w = &s->work;
  const uint32_t most = most_lanes(s);
  size_t count = batch->count;
  /* Of streams each call has another number, and recorded rounds are for one. */
  while (batch->first_start != NULL && (count & (count - 1)) != 0) count += count & -count;
  const uint64_t lanes = count < most ? count : most, rows = lanes * s->options.max_hypotheses;
  WF__TRY(wf__slot_store_grow(&s->slots, s->group, lanes * w->num_slots, err));
  WF__TRY(wf__slot_store_spare(&s->slots, s->group, batch->predictions,
                               batch->predictions != NULL ? batch->count : 0,
                               num_spares_of(s, batch), err));
  WF__TRY(make_room(s, rows, err));
  WF__TRY(wf__slot_store_send(&s->slots, s->group, err));
  WF__TRY(reserve(&s->lanes, lanes * sizeof(wf__tlane), err));
  WF__TRY(reserve(&s->tokens, (w->num_sets + 1) * rows * sizeof(wf__tlane_token), err));
  WF__TRY(reserve(&s->contexts, lanes * w->num_slots * sizeof(uint64_t), err));
  if (w->has_words)
    WF__TRY(
        reserve(&s->candidates, lanes * WF__LANE_CANDIDATES * sizeof(wf__tlane_candidate), err));
  else
    WF__TRY(reserve(&s->entries, lanes * WF__LANE_MORE_ENTRIES * sizeof(wf__tlane_entry), err));
  w->num_lanes = (uint32_t)lanes;
  return WF_OK;
}

static void fill_work(wf__device_search *s) {
  const wf__transducer_group *g = s->group;
  wf__tlane_work *w = &s->work;
  w->options = s->options;
  w->start_slot = WF__ZERO_SLOT;
  w->slots = s->slots.lanes_there.data;
  w->spares = s->slots.spares_there.data;
  w->kept = s->slots.kept_there.data;
  w->utterances = s->utterances.data;
  w->lanes = s->lanes.data;
  w->tokens = s->tokens.data;
  w->contexts = s->contexts.data;
  w->records = s->records.data;
  w->offers = s->offers.data;
  w->starts = s->starts.data;
  w->results = s->results.data;
  w->counters = s->counters.data;
  w->statuses = (wf__tlane_status *)(void *)s->statuses.data;
  w->arcs = s->arcs.data;
  w->states = s->states.data;
  w->graph_arcs = s->graph_arcs.data;
  w->places = s->places.data;
  w->candidates = s->candidates.data;
  w->entries = s->entries.data;
  w->block = g->block.data;
  w->layout = g->layout;
  w->answer = wf__transducer_answers_of(g);
  w->answer.count = wf__rows(0);
}

static wf_status begin(wf__device_search *s, const wf__device_batch *batch, wf_error *err) {
  wf__transducer_group *g = s->group;
  WF__CUDA_TRY(cudaSetDevice(s->weights->number), "choosing the GPU");
  WF__CUDA_TRY(cudaStreamSynchronize(g->stream), what); /* of a call that was cancelled */
  WF__TRY(wf__frame_loader_begin(&s->loader, batch->scores, batch->where, batch->count, err));
  s->work.has_words = !s->options.is_plain || batch->scorers != NULL;
  s->rounds = batch->first_start != NULL ? CHUNK_ROUNDS : ROUNDS;
  s->ahead = batch->first_start != NULL ? CHUNK_AHEAD : AHEAD;
  WF__TRY(send_scorers(s, batch->scorers, batch->count, err));
  WF__TRY(send_added(s, batch, err));
  WF__TRY(send_utterances(s, batch, err));
  WF__TRY(send_starts(s, batch, err));
  WF__TRY(make_lanes(s, batch, err));
  fill_work(s);
  s->num_utterances = (uint32_t)batch->count;
  memset(s->statuses.data, 0, WF__TLANE_STATUSES * sizeof(wf__tlane_status));
  WF__CUDA_TRY(
      wf__tlanes_begin(&s->work, s->num_utterances, (uint32_t)s->slots.spares.size, g->stream),
      what);
  return WF_OK;
}

wf_status wf__lane_rounds_begin(wf__device_search *s, const wf__score_cut *cut,
                                const wf__device_batch *batch, void *stream, wf_error *err) {
  const size_t count = batch->count;
  int64_t *num_frames = wf__alloc(count, sizeof *num_frames);
  if (num_frames == NULL) return wf__fail_memory(err, count * sizeof *num_frames, "a batch");
  for (size_t i = 0; i < count; i++) num_frames[i] = batch->scores[i]->num_frames;
  wf_status status = wf__transducer_group_begin(s->group, cut, num_frames, count, stream, err);
  free(num_frames);
  wf__transducer_search_there(s->group, true, s->work.is_wide != 0);
  const int caller = wf__callers_device();
  if (status == WF_OK) status = begin(s, batch, err);
  wf__restore_device(caller);
  s->num_launches = s->num_seen = 0;
  s->status = wf__tlane_status_of(0, s->work.num_lanes, 0);
  return status;
}

/* Memory has its place when all is loaded. */
static wf_status load(wf__device_search *s, const wf__packing_crew *crew, bool *is_loaded,
                      wf_error *err) {
  wf__transducer_group *g = s->group;
  WF__CUDA_TRY(cudaSetDevice(s->weights->number), "choosing the GPU");
  WF__TRY(wf__frame_loader_next(&s->loader, crew, is_loaded, err));
  if (!*is_loaded) return WF_OK;
  wf__transducer_check_graphs(g);
  if (memcmp(&s->work, &s->recorded, sizeof s->work) != 0 || s->rounds != s->recorded_rounds)
    wf__launch_graphs_clear(&g->graphs);
  memcpy(&s->recorded, &s->work, sizeof s->work); /* they are compared as bytes */
  s->recorded_rounds = s->rounds;
  return WF_OK;
}

wf_status wf__lane_rounds_load(wf__device_search *s, const wf__packing_crew *crew, bool *is_loaded,
                               wf_error *err) {
  const int caller = wf__callers_device();
  const wf_status status = load(s, crew, is_loaded, err);
  wf__restore_device(caller);
  return status;
}

/* --- rounds ------------------------------------------------------------------------------ */

static wf_status enqueue_round(wf__device_search *s, wf_error *err) {
  wf__transducer_group *g = s->group;
  const wf_transducer *model = s->weights->model;
  const wf__tlane_joiner joiner = {.encoder = g->encoder.data,
                                   .stride = (uint32_t)model->width,
                                   .relu = model->network->relu,
                                   .to = wf__transducer_hidden_of(g)};
  WF__CUDA_TRY(wf__tlanes_step(&s->work, &joiner, g->stream), what);
  if (s->work.table == NULL) {
    WF__TRY(wf__transducer_contexts(g, err));
    WF__TRY(wf__transducer_hidden_rows(g, err));
  }
  WF__TRY(wf__transducer_logits(g, err));
  return s->work.is_wide != 0 ? wf__transducer_entries(g, err) : WF_OK;
}

static wf_status enqueue_rounds(void *user, wf_error *err) {
  wf__device_search *s = user;
  for (uint32_t i = 0; i < s->rounds; i++) WF__TRY(enqueue_round(s, err));
  return WF_OK;
}

/* Reads the status of the next launch, if its last step is over. */
static bool see_launch(wf__device_search *s) {
  const wf__tlane_status *all = (const wf__tlane_status *)(const void *)s->statuses.data;
  const uint32_t round = (uint32_t)(s->num_seen + 1) * s->rounds;
  if (s->num_seen == s->num_launches) return false;
  const wf__tlane_status status =
      __atomic_load_n(&all[round % WF__TLANE_STATUSES], __ATOMIC_ACQUIRE);
  if (wf__tlane_status_round(status) != round) return false;
  s->status = status;
  s->num_seen++;
  return true;
}

static wf_status enqueue(wf__device_search *s, wf_error *err) {
  wf__transducer_group *g = s->group;
  /* No lane becomes busy again, so later rounds have no more rows. */
  g->launch_rows = wf__transducer_launch_size((uint64_t)wf__tlane_status_busy(s->status) *
                                              s->options.max_hypotheses);
  g->launch_contexts = s->work.table == NULL ? g->launch_rows : 0;
  WF__TRY(wf__launch_graphs_run(&g->graphs, g->launch_rows, g->stream, enqueue_rounds, s, err));
  WF__CUDA_TRY(cudaEventRecord(s->launches[s->num_launches % AHEAD], g->stream), what);
  s->num_launches++;
  return WF_OK;
}

static wf_status go_on(wf__device_search *s, wf_error *err) {
  if (s->num_launches - s->num_seen == s->ahead)
    WF__CUDA_TRY(cudaEventSynchronize(s->launches[s->num_seen % AHEAD]), what);
  while (see_launch(s)) continue;
  WF__CUDA_TRY(cudaSetDevice(s->weights->number), "choosing the GPU");
  while (s->num_launches - s->num_seen < s->ahead && wf__tlane_status_busy(s->status) > 0) {
    WF__TRY(enqueue(s, err));
    while (see_launch(s)) continue;
  }
  return WF_OK;
}

wf_status wf__lane_rounds_go_on(wf__device_search *s, size_t *num_done, wf_error *err) {
  wf_status status = WF_OK;
  if (wf__tlane_status_busy(s->status) > 0) {
    const int caller = wf__callers_device();
    status = go_on(s, err);
    wf__restore_device(caller);
  }
  *num_done = wf__tlane_status_done(s->status);
  return status;
}

static wf_status fetch(wf__device_search *s, const wf__device_buffer *from, uint64_t bytes,
                       wf__pinned_buffer *to, wf_error *err) {
  if (bytes > 0)
    WF__CUDA_TRY(
        cudaMemcpyAsync(to->data, from->data, bytes, cudaMemcpyDeviceToHost, s->group->stream),
        what);
  return WF_OK;
}

static const wf__tlane_counters *counters_of(const wf__device_search *s) {
  return (const wf__tlane_counters *)(const void *)s->host_counters.data;
}

static const wf__device_result *results_of(const wf__device_search *s) {
  return (const wf__device_result *)(const void *)s->host_results.data;
}

static uint64_t bytes_of_detail(const wf__device_search *s) {
  return s->options.keeps_offers != 0 ? sizeof(wf__device_offer) : sizeof(wf__path_step);
}

static wf_status end(wf__device_search *s, wf_error *err) {
  cudaStream_t stream = s->group->stream;
  WF__CUDA_TRY(cudaSetDevice(s->weights->number), "choosing the GPU");
  WF__CUDA_TRY(wf__tlanes_measure(&s->work, s->num_utterances, stream), what);
  WF__TRY(
      fetch(s, &s->results, s->num_utterances * sizeof(wf__device_result), &s->host_results, err));
  WF__TRY(fetch(s, &s->counters, sizeof(wf__tlane_counters), &s->host_counters, err));
  WF__CUDA_TRY(cudaStreamSynchronize(stream), what);
  const uint64_t bytes = counters_of(s)->num_details * bytes_of_detail(s);
  WF__TRY(reserve(&s->details, bytes, err));
  WF__TRY(pin(&s->host_details, bytes, err));
  WF__CUDA_TRY(s->options.keeps_offers != 0
                   ? wf__tlanes_gather(&s->work, s->num_utterances, s->details.data, stream)
                   : wf__tlanes_trace(&s->work, s->num_utterances, s->details.data, stream),
               what);
  WF__TRY(fetch(s, &s->details, bytes, &s->host_details, err));
  WF__TRY(wf__slot_store_fetch(&s->slots, s->group, counters_of(s)->num_kept, err));
  WF__CUDA_TRY(cudaStreamSynchronize(stream), what);
  wf__slot_store_take(&s->slots, s->group, results_of(s), s->num_utterances);
  return WF_OK;
}

wf_status wf__lane_rounds_end(wf__device_search *s, wf__searched *out, wf_error *err) {
  const int caller = wf__callers_device();
  const wf_status status = end(s, err);
  wf__restore_device(caller);
  *out = (wf__searched){.results = results_of(s),
                        .details = s->host_details.data,
                        .kept = (const wf__device_kept *)(const void *)s->slots.host_kept.data};
  if (status != WF_OK) return status;
  out->num_rounds = counters_of(s)->round;
  out->counts = (wf__transducer_counts){counters_of(s)->all_rows, counters_of(s)->all_contexts};
  return WF_OK;
}
