/* stream_rounds.c - searches chunks of streams on the GPU, round by round, and adds the outcomes
 * to the channels.
 *
 *   check    values of scores in host memory, by the pool's threads; the kernel checks others
 *   round    pack and describe the scores | submit | wait | into the channels, by the pool's
 *            threads
 *   rest     streams that did not fit the GPU, by the CPU's code */
#include "cuda/decoder/stream_rounds.h"

#include <string.h>

#include "base/callbacks.h"
#include "base/interrupt.h"
#include "cuda/decoder/gpu_pipeline.h"
#include "cuda/decoder/move_scores.h"
#include "cuda/decoder/rnn_scoring.h"
#include "cuda/decoder/stream_memory.h"
#include "cuda/decoder/stream_outcomes.h"
#include "cuda/decoder/stream_rnn_scoring.h"
#include "cuda/decoder/stream_transfer.h"

enum {
  PACK_TOGETHER =
      1 << 17, /* up to this many bytes of scores, one thread packs as fast as several */
};

static void *transfer_at(const wf__gpu_streams *streams, wf__transfer_part part) {
  return wf__search_room_part(&streams->room, part);
}
static wf__lane_advance *outcomes(const wf__gpu_streams *streams) {
  return wf__streams_out(streams, WF__STREAM_ADVANCES);
}

/* --- a round ----------------------------------------------------------------------------- */

struct round {
  wf__gpu_worker *worker;
  const wf__batch *batch;
  const uint64_t *score_off; /* of each item in the transfer block; NULL except for packing */
};

static bool is_on_gpu(const wf__stream_item *item, const wf__batch *batch) {
  return batch->scores[item->index].on_device;
}

/* Moves pending items to this round. *bytes: of their packed scores. */
static wf_status choose_items(wf__gpu_worker *worker, const wf__batch *batch, uint64_t *bytes,
                              wf_error *err) {
  wf__gpu_streams *streams = worker->streams;
  uint64_t kept = 0;
  streams->items.size = 0;
  *bytes = 0;
  WF__TRY(wf__vec_grow(&streams->items, streams->pending.size, "streams", err));
  for (uint64_t i = 0; i < streams->pending.size; i++) {
    wf__stream_item item = streams->pending.data[i];
    const wf_scores *scores = &batch->scores[item.index];
    const int64_t left = scores->num_frames - item.from;
    item.rows = (int32_t)(left < WF__STREAM_FRAMES ? left : WF__STREAM_FRAMES);
    const uint64_t more = wf__gpu_packed_bytes(scores, item.rows, worker->graph->min_columns);
    if (streams->items.size < streams->plan.chunk_size &&
        *bytes + more <= streams->plan.window_bytes) {
      streams->items.data[streams->items.size++] = item;
      *bytes += more;
    } else {
      streams->pending.data[kept++] = item;
    }
  }
  streams->pending.size = kept;
  return WF_OK;
}

/* Blocks a lane, as bits: for the expected tokens, at least what an item requires, and more if
 * there are few items and large frames. */
static int choose_bits(const wf__gpu_worker *worker, bool scored) {
  const wf__gpu_streams *streams = worker->streams;
  const uint64_t room = wf__lane_tokens(worker->limits.profile.shared_kb, scored),
                 usual = streams->usual_tokens,
                 expected = wf__gpu_expected_tokens(&worker->options, streams->usual_tokens);
  int bits = streams->least_bits;
  while (bits < WF__MAX_RANK_BITS && room << bits < expected) bits++;
  for (uint64_t i = 0; i < streams->items.size; i++)
    if (streams->items.data[i].bits > bits) bits = streams->items.data[i].bits;
  if (usual > 0)
    bits = wf__gpu_spread_lanes(bits, (uint64_t)streams->lanes[0], streams->items.size, usual);
  while (bits > 0 && (streams->lanes[bits] < 1 || streams->plan.parts >> bits < 1)) bits--;
  return bits;
}

static void pack_item(void *user, uint64_t number, int thread) {
  const struct round *round = user;
  const wf__stream_item *item = &round->worker->streams->items.data[number];
  const wf_scores *scores = &round->batch->scores[item->index];
  const uint64_t element = wf__dtype_bytes(scores->dtype),
                 row = (uint64_t)round->worker->graph->min_columns * element,
                 stride = (uint64_t)scores->stride * element;
  if (scores->on_device || item->rows == 0) return;
  const char *from = (const char *)scores->data + (uint64_t)item->from * stride;
  char *to =
      (char *)transfer_at(round->worker->streams, WF__TRANSFER_SCORES) + round->score_off[number];
  if (stride == row)
    memcpy(to, from, row * (uint64_t)item->rows);
  else
    for (int32_t t = 0; t < item->rows; t++)
      memcpy(to + (uint64_t)t * row, from + (uint64_t)t * stride, row);
}

static void describe_item(const struct round *round, uint64_t number) {
  const wf__gpu_worker *worker = round->worker;
  wf__gpu_streams *streams = worker->streams;
  const wf__stream_item *item = &streams->items.data[number];
  const wf_scores *scores = &round->batch->scores[item->index];
  const wf__gpu_channel *channel = item->channel;
  const char *packed = streams->room.transfer.device +
                       streams->plan.transfer.off[WF__TRANSFER_SCORES] + round->score_off[number];
  wf__lane_utterance *utterance =
      (wf__lane_utterance *)transfer_at(streams, WF__TRANSFER_UTTERANCES) + number;
  *utterance = wf__gpu_describe(scores, item->from, item->rows, worker->graph->min_columns, packed);
  utterance->root = channel->scorer != NULL ? channel->scorer->root : 0;
  utterance->scorer = wf__shared_scorer_there(channel->scorer);
  utterance->words = wf__shared_words_there(channel->words);
  ((wf__lane_chunk *)transfer_at(streams, WF__TRANSFER_CHUNKS))[number] =
      (wf__lane_chunk){.tokens = channel->tokens,
                       .contexts = channel->contexts,
                       .num_tokens = channel->base.stream.begun ? channel->num_tokens : 0,
                       .usual_size = channel->usual_size,
                       .after_blank = channel->base.after_blank,
                       .num_unchecked = item->unchecked ? (uint32_t)scores->num_frames : 0,
                       .only_check = round->batch->results[item->index]->status != WF_OK ||
                                     channel->base.died || channel->on_cpu};
}

static struct wf__rnn_scoring *scoring_of(const wf__stream_item *item) {
  return item->channel->scorer != NULL ? item->channel->scorer->rnn_scoring : NULL;
}

/* Starts a search of some of the round's items. `large`: lanes have the tables of searches with
 * scorers. */
static wf_status submit_items(wf__gpu_worker *worker, wf__search_launch *launch, bool large,
                              wf_error *err) {
  wf__gpu_streams *streams = worker->streams;
  const int bits = streams->round_bits = choose_bits(worker, large);
  const uint32_t lanes = (uint32_t)streams->lanes[bits], room = streams->plan.parts >> bits;
  if (launch->count == 0) return WF_OK;
  launch->max_lanes = lanes < room ? lanes : room;
  launch->ranks = 1u << bits;
  wf__lane_params p = wf__gpu_search_params(&streams->room, &worker->launches.params, launch);
  p.streams.advances = outcomes(streams);
  p.streams.back_pointers = wf__streams_out(streams, WF__STREAM_BACK_POINTERS);
  p.streams.back_pointer_contexts = wf__streams_out(streams, WF__STREAM_BACK_POINTER_CONTEXTS);
  p.streams.chunk_links = wf__streams_out(streams, WF__STREAM_CHUNK_LINKS);
  p.streams.chunk_links_cap = streams->plan.links_cap;
  p.streams.back_pointers_cap = streams->plan.back_pointers_cap;
  p.graph.arc_sources = streams->arc_sources;
  return wf__gpu_submit(&streams->room, launch, &p, streams->stream, err);
}

/* Searches the items with recurrent scorers, one scorer after the other, from place `from` of the
 * order on. Waits. */
static wf_status submit_deferred(wf__gpu_worker *worker, uint32_t from, wf_error *err) {
  wf__gpu_streams *streams = worker->streams;
  const uint32_t *order = transfer_at(streams, WF__TRANSFER_ORDER);
  const uint64_t count = streams->items.size;
  for (uint64_t i = from; i < count;) {
    wf__search_launch launch = {.kind = WF__SEARCH_STREAMS + WF__SEARCH_DEFERRED,
                                .rnn_scoring = scoring_of(&streams->items.data[order[i]]),
                                .first = (uint32_t)i};
    for (; i < count && scoring_of(&streams->items.data[order[i]]) == launch.rnn_scoring; i++)
      launch.num_begun += !streams->items.data[order[i]].channel->base.stream.begun;
    launch.count = (uint32_t)i - launch.first;
    WF__TRY(submit_items(worker, &launch, true, err));
  }
  return WF_OK;
}

/* Writes the order of a round: the items of each kind together, those with recurrent scorers last.
 * ends[kind]: place after those of the kind. */
static void order_items(const wf__gpu_worker *worker, uint32_t ends[WF__SEARCH_DEFERRED]) {
  wf__gpu_streams *streams = worker->streams;
  uint32_t *order = transfer_at(streams, WF__TRANSFER_ORDER), at = 0;
  for (int kind = 0; kind < WF__SEARCH_DEFERRED; kind++) {
    for (uint64_t i = 0; i < streams->items.size; i++)
      if (wf__channel_kind(streams->items.data[i].channel) == (wf__search_kind)kind)
        order[at++] = (uint32_t)i;
    ends[kind] = at;
  }
  for (const struct wf__rnn_scoring *rnn_scoring = worker->stream_scorings; rnn_scoring != NULL;
       rnn_scoring = wf__rnn_scoring_next(rnn_scoring))
    for (uint64_t i = 0; i < streams->items.size; i++)
      if (scoring_of(&streams->items.data[i]) == rnn_scoring) order[at++] = (uint32_t)i;
}

/* Packs the round and queues it on the worker's stream. Waits only for recurrent scorers. */
static wf_status launch(struct wf__cuda_backend *self, wf__gpu_worker *worker,
                        const wf__batch *batch, wf_error *err) {
  wf__gpu_streams *streams = worker->streams;
  uint64_t bytes;
  WF__CUDA_TRY(cudaSetDevice(worker->device), "choosing the GPU");
  WF__TRY(wf__streams_reserve(worker, wf__devices_sharing(&self->devices, worker->device), false,
                              err)); /* exists already, unless reserving room for scorers failed */
  WF__TRY(choose_items(worker, batch, &bytes, err));
  const uint64_t count = streams->items.size;
  uint64_t *score_off = wf__alloc(count, sizeof *score_off), at = 0;
  if (score_off == NULL) return wf__fail_memory(err, count * sizeof *score_off, "streams");
  struct round round = {worker, batch, score_off};
  uint32_t ends[WF__SEARCH_DEFERRED], begin = 0;
  bool on_gpu = false;
  order_items(worker, ends);
  for (uint64_t i = 0; i < count; i++) {
    const wf__stream_item *item = &streams->items.data[i];
    score_off[i] = at;
    at += wf__gpu_packed_bytes(&batch->scores[item->index], item->rows, worker->graph->min_columns);
    on_gpu = on_gpu || is_on_gpu(item, batch);
    item->channel->item_number = (uint32_t)i + 1;
    outcomes(streams)[i].num_newest = UINT32_MAX; /* until the chunk was searched */
    describe_item(&round, i);
  }
  if (bytes > PACK_TOGETHER)
    wf__pool_run(worker->threads.pool, count, pack_item, &round);
  else
    for (uint64_t i = 0; i < count; i++) pack_item(&round, i, 0);
  free(score_off);
  if (on_gpu) {
    WF__CUDA_TRY(cudaEventRecord(worker->launches.entered, (cudaStream_t)self->stream),
                 "the caller's stream");
    WF__CUDA_TRY(cudaStreamWaitEvent(streams->stream, worker->launches.entered, 0),
                 "the caller's stream");
  }
  WF__TRY(wf__gpu_send_transfer(&streams->room, bytes, streams->stream, err));
  const bool large = ends[WF__SEARCH_BOOSTED] < count;
  for (int kind = 0; kind < WF__SEARCH_DEFERRED; begin = ends[kind++]) {
    wf__search_launch search = {.kind = WF__SEARCH_STREAMS + kind,
                                .queue = kind,
                                .first = begin,
                                .count = ends[kind] - begin};
    WF__TRY(submit_items(worker, &search, large, err));
  }
  return submit_deferred(worker, begin, err);
}

/* --- outcomes ---------------------------------------------------------------------------- */

static int wider_bits(const wf__gpu_streams *streams) {
  for (int bits = streams->round_bits + 1; bits <= WF__MAX_RANK_BITS; bits++)
    if (streams->lanes[bits] >= 1 && streams->plan.parts >> bits >= 1) return bits;
  return 0;
}

/* Takes one item's outcome and sets item->then, the next action. */
static wf_status read_outcome(const struct round *round, uint64_t number, int thread,
                              wf_error *err) {
  wf__gpu_worker *worker = round->worker;
  wf__gpu_streams *streams = worker->streams;
  wf__stream_item *item = &streams->items.data[number];
  const wf__lane_advance *advance = &outcomes(streams)[number];
  const wf_scores *scores = &round->batch->scores[item->index];
  wf_result *result = round->batch->results[item->index];
  item->then = WF__ITEM_DONE;
  if (item->unchecked && advance->bad != UINT64_MAX)
    return wf__gpu_report_bad_score(scores, advance->bad, result->num_frames, worker->copy_stream,
                                    result, err);
  item->unchecked = false;
  if (result->status != WF_OK || item->channel->base.died) return WF_OK;
  item->then = item->channel->on_cpu ? WF__ITEM_TO_CPU : WF__ITEM_GOES_ON;
  if (item->channel->on_cpu) return WF_OK;
  switch (advance->status) {
    case WF__LANE_OK:
      item->from += item->rows;
      item->then = item->from < scores->num_frames && (advance->flags & WF_RESULT_DIED) == 0
                       ? WF__ITEM_GOES_ON
                       : WF__ITEM_DONE;
      return wf__streams_take_advance(item->channel, advance, thread, err);
    case WF__LANE_NO_BACK_POINTERS: return WF_OK;
    case WF__LANE_TABLE_FULL:
      item->bits = wider_bits(streams);
      if (item->bits == 0)
        item->then =
            wf__channel_kind(item->channel) >= WF__SEARCH_SCORED ? WF__ITEM_TO_CPU : WF__ITEM_LARGE;
      return WF_OK;
    case WF__LANE_CLOSURE:
    case WF__LANE_CYCLE:
      item->then = WF__ITEM_DONE;
      return wf__gpu_outcome_error(advance->status, &worker->options, err);
    default: item->then = WF__ITEM_TO_CPU; return WF_OK;
  }
}

static void finish_item(void *user, uint64_t number, int thread) {
  const struct round *round = user;
  wf__gpu_worker *worker = round->worker;
  wf_error *err = &worker->threads.errors[thread];
  wf__stream_item *item = &worker->streams->items.data[number];
  const wf_status status = read_outcome(round, number, thread, err);
  if (status == WF_OK) return;
  item->then = WF__ITEM_DONE;
  wf__result_fail(round->batch->results[item->index], status, err);
}

/* Statistics of these chunks for the next round. */
static void update_estimates(wf__gpu_streams *streams) {
  wf__search_tally tally = {0};
  for (uint64_t i = 0; i < streams->items.size; i++) {
    const wf__lane_advance *advance = &outcomes(streams)[i];
    const bool counts =
        advance->status != WF__LANE_OK ||
        streams->items.data[i].then != WF__ITEM_TO_CPU; /* items for the CPU were only checked */
    wf__search_tally_add(&tally, counts ? advance->status : WF__LANE_NO_ROOM, advance->num_tokens,
                         advance->num_decoded);
  }
  streams->usual_tokens = wf__search_tally_usual(&tally, streams->usual_tokens);
  if (wf__search_tally_too_small(&tally) && wider_bits(streams) > 0)
    streams->least_bits = wider_bits(streams);
}

/* Waits for the round and takes its outcomes. Items that are for the CPU go to `rest`. */
static wf_status finish_round(const struct wf__cuda_backend *self, wf__gpu_worker *worker,
                              const wf__batch *batch, wf__stream_items *rest, wf_error *err) {
  wf__gpu_streams *streams = worker->streams;
  struct round round = {worker, batch, NULL};
  WF__CUDA_TRY(cudaSetDevice(worker->device), "choosing the GPU");
  WF__TRY(wf__gpu_wait(streams->stream, "the search kernel", err));
  wf__pool_run(worker->threads.pool, streams->items.size, finish_item, &round);
  update_estimates(streams);
  for (uint64_t i = 0; i < streams->items.size; i++) {
    wf__stream_item item = streams->items.data[i];
    item.channel->item_number = 0;
    if (item.then == WF__ITEM_LARGE) {
      item.channel->large =
          wf__streams_reserve_contexts(
              item.channel, wf__devices_sharing(&self->devices, worker->device), NULL) == WF_OK;
      item.then = item.channel->large ? WF__ITEM_GOES_ON : WF__ITEM_TO_CPU;
    }
    if (item.then == WF__ITEM_GOES_ON)
      WF__TRY(wf__vec_push(&streams->pending, item, "streams", err));
    if (item.then == WF__ITEM_TO_CPU) WF__TRY(wf__vec_push(rest, item, "streams", err));
  }
  streams->items.size = 0;
  return WF_OK;
}

/* --- on the CPU -------------------------------------------------------------------------- */

static wf_status go_on_by_cpu(struct wf__cuda_backend *self, const wf__batch *batch,
                              const wf__stream_item *item, wf_error *err) {
  wf_scores host;
  void *copy = NULL, *channel = &item->channel->base;
  const bool skip = false;
  if (!item->channel->on_cpu) {
    wf__log(WF_LOG_DEBUG, "a stream did not fit the GPU's plan and goes on on the CPU");
    WF__TRY(wf__streams_to_cpu(self, item->channel, err));
  }
  wf_status status = wf__gpu_scores_to_host(&batch->scores[item->index], item->from,
                                            item->channel->worker->copy_stream, &host, &copy, err);
  wf__batch one = {
      .scores = &host, .skip = &skip, .count = 1, .results = &batch->results[item->index]};
  if (status == WF_OK) status = wf__host_streams.advance(self->cpu, &one, &channel, err);
  free(copy);
  return status;
}

/* --- a batch ----------------------------------------------------------------------------- */

static void check_item(void *user, uint64_t i, int thread) {
  const struct round *round = user;
  const wf_scores *scores = &round->batch->scores[i];
  if (round->batch->skip[i] || scores->on_device || scores->num_frames == 0) return;
  const int32_t columns = round->worker->graph->min_columns;
  wf_result *result = round->batch->results[i];
  if (wf__gpu_any_bad(scores, columns))
    (void)wf__check_values(scores, columns, result->num_frames, result);
}

/* Finds the scores; those on another GPU than that of their stream are copied. `moved`
 * [batch->count] then replaces batch->scores, if *any. */
static wf_status place_scores(struct wf__cuda_backend *self, const wf__batch *batch,
                              void *const *channels, wf_scores *moved, bool *any, wf_error *err) {
  int *homes = wf__alloc(2 * batch->count, sizeof *homes), *targets = homes + batch->count;
  if (homes == NULL) return wf__fail_memory(err, batch->count * 8, "chunks of streams");
  wf_status status = WF_OK;
  *any = false;
  for (size_t i = 0; i < batch->count && status == WF_OK; i++) {
    const wf__gpu_channel *channel = channels[i];
    targets[i] = channel->worker->device;
    homes[i] = WF__SCORES_NOWHERE;
    if (batch->skip[i]) continue;
    status = wf__gpu_find_scores(&batch->scores[i], batch->results[i], &homes[i], err);
    *any = *any || (homes[i] >= 0 && homes[i] != targets[i]);
    wf__tell_of_moving(self, homes[i]);
  }
  if (status == WF_OK && *any)
    status = wf__move_scores(self, batch->scores, homes, targets, batch->count, moved, err);
  free(homes);
  return status;
}

/* Gives items that have scores to search or to check to their workers. `rest`: for the CPU. */
static wf_status assign_items(struct wf__cuda_backend *self, const wf__batch *batch,
                              void *const *channels, wf__stream_items *rest, wf_error *err) {
  struct round round = {&self->workers[0], batch, NULL};
  wf__pool_run(self->workers[0].threads.pool, batch->count, check_item, &round);
  for (size_t i = 0; i < batch->count; i++) {
    wf__gpu_channel *channel = channels[i];
    const wf_scores *scores = &batch->scores[i];
    if (batch->skip[i]) continue;
    const bool unchecked =
        scores->on_device && scores->num_frames > 0 && batch->results[i]->status != WF_ERR_ARGUMENT;
    const bool searches = batch->results[i]->status == WF_OK && !channel->base.died &&
                          (scores->num_frames > 0 || !channel->base.stream.begun || channel->stale);
    const wf__stream_item item = {.channel = channel, .index = (uint32_t)i, .unchecked = unchecked};
    if (!unchecked && !searches) continue;
    WF__TRY(wf__vec_push(!unchecked && channel->on_cpu ? rest : &channel->worker->streams->pending,
                         item, "streams", err));
  }
  return wf__interrupted(err); /* then not all values were checked */
}

static wf_status run_rounds(struct wf__cuda_backend *self, const wf__batch *batch,
                            wf__stream_items *rest, wf_error *err) {
  for (bool any = true; any;) {
    any = false;
    for (int i = 0; i < self->num_workers; i++)
      if (self->workers[i].streams != NULL && self->workers[i].streams->pending.size > 0)
        WF__TRY(launch(self, &self->workers[i], batch, err));
    for (int i = 0; i < self->num_workers; i++) {
      if (self->workers[i].streams == NULL || self->workers[i].streams->items.size == 0) continue;
      WF__TRY(finish_round(self, &self->workers[i], batch, rest, err));
      any = any || self->workers[i].streams->pending.size > 0;
    }
    if (any) WF__TRY(wf__interrupted(err));
  }
  return WF_OK;
}

/* Fails the chunks that the call did not finish. */
static void fail_all(const wf__batch *batch, const wf__stream_items *items, const wf_error *why) {
  for (uint64_t i = 0; i < items->size; i++)
    wf__result_fail(batch->results[items->data[i].index], why->code, why);
}

/* Waits for all rounds: nothing may be in flight when the call returns, as the scores are the
 * caller's. */
static void abandon(struct wf__cuda_backend *self, const wf__batch *batch, wf_status status) {
  const wf_error why = {.code = status, .message = "cancelled"};
  for (int i = 0; i < self->num_workers; i++) {
    wf__gpu_streams *streams = self->workers[i].streams;
    if (streams == NULL) continue;
    if (streams->stream != NULL) cudaStreamSynchronize(streams->stream);
    wf__gpu_drain_rnn_scorings(&self->workers[i]);
    for (uint64_t k = 0; k < streams->items.size; k++)
      streams->items.data[k].channel->item_number = 0;
    if (status == WF_ERR_CANCELLED) fail_all(batch, &streams->pending, &why);
    if (status == WF_ERR_CANCELLED) fail_all(batch, &streams->items, &why);
    streams->pending.size = streams->items.size = 0;
  }
}

static wf_status advance(struct wf__cuda_backend *self, const wf__batch *batch,
                         void *const *channels, wf_error *err) {
  wf__stream_items rest = {0};
  wf_status status = assign_items(self, batch, channels, &rest, err);
  if (status == WF_OK) status = run_rounds(self, batch, &rest, err);
  if (status != WF_OK) abandon(self, batch, status);
  if (status == WF_ERR_CANCELLED)
    fail_all(batch, &rest, &(wf_error){.code = status, .message = "cancelled"});
  for (uint64_t i = 0; i < rest.size && status == WF_OK; i++) {
    wf_error own = {0};
    const wf_status said = go_on_by_cpu(self, batch, &rest.data[i], &own);
    if (said == WF_ERR_DEVICE) status = said;
    if (said == WF_ERR_DEVICE && err != NULL) *err = own;
    if (said != WF_OK) wf__result_fail(batch->results[rest.data[i].index], said, &own);
  }
  wf__vec_free(&rest);
  for (size_t i = 0; i < batch->count && status == WF_OK; i++) {
    const wf_status own = batch->skip[i] ? WF_OK : batch->results[i]->status;
    if (own == WF_ERR_MEMORY || own == WF_ERR_CANCELLED)
      status = wf__fail(err, own, "%s for streams; those that failed say so", wf_status_text(own));
  }
  return status;
}

wf_status wf__streams_advance(struct wf__cuda_backend *self, const wf__batch *given,
                              void *const *channels, wf_error *err) {
  wf__batch batch = *given;
  bool any = false;
  wf_scores *moved = wf__alloc(batch.count, sizeof *moved);
  if (moved == NULL) return wf__fail_memory(err, batch.count * sizeof *moved, "chunks of streams");
  wf_status status = place_scores(self, given, channels, moved, &any, err);
  if (any) { /* the copies are short, and few decoders need them */
    const wf_status waited = wf__moved_wait(self, -1, status == WF_OK ? err : NULL);
    if (status == WF_OK) status = waited;
    batch.scores = moved;
  }
  if (status == WF_OK) status = advance(self, &batch, channels, err);
  free(moved);
  return status;
}
