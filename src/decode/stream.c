/* stream.c - the public stream: passes chunks to the backend, and makes words from the paths that
 * it returns.
 *
 * The path of a stream has two parts. `account` holds the words, times and sums of the committed
 * prefix, which cannot change. `part` is the open path from there to the best token or ending,
 * looked up on request. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/callbacks.h"
#include "base/option_tables.h"
#include "decode/decoder.h"
#include "decode/stream.h"
#include "lattice/lattice.h"

enum { FEW_STREAMS = 4 }; /* for this many, one thread is as fast as several */

static wf_status new_result(wf_stream *stream, wf_error *err) {
  stream->result = wf__calloc(1, sizeof *stream->result);
  return stream->result != NULL ? WF_OK : wf__fail_memory(err, sizeof *stream->result, "a stream");
}

wf_status wf_stream_create(wf_decoder *decoder, const wf_stream_options *options, wf_stream **out,
                           wf_error *err) {
  *out = NULL;
  const wf__stream_backend *backend = decoder->backend->streams;
  wf__streams_sweep(decoder);
  if (backend == NULL)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "device %s does not support streams; use device cpu",
                    decoder->options.device);
  wf_stream *stream = wf__calloc(1, sizeof *stream);
  if (stream == NULL) return wf__fail_memory(err, sizeof *stream, "a stream");
  stream->decoder = wf__decoder_ref(decoder);
  stream->graph = wf_graph_ref(decoder->graph);
  stream->backend = backend;
  wf_status status = wf__options_take(wf__stream_table(), options, &stream->options, err);
  if (status == WF_OK)
    status = wf__endpointer_open(&stream->endpointer, decoder->graph, decoder->options.blank,
                                 &stream->options, err);
  if (status == WF_OK) status = new_result(stream, err);
  if (status == WF_OK) status = backend->open(decoder->search, &stream->channel, err);
  if (status == WF_OK)
    status = backend->set_scorer(decoder->search, stream->channel, decoder->scorer, NULL, 0, err);
  if (status == WF_OK) stream->scorer = decoder->scorer;
  if (status != WF_OK) {
    wf_stream_free(stream);
    return status;
  }
  *out = stream;
  return WF_OK;
}

void wf_stream_free(wf_stream *stream) {
  if (stream == NULL) return;
  wf_decoder *decoder = stream->decoder;
  wf__stream_free(stream);
  wf_decoder_free(decoder);
}

void wf_stream_abandon(wf_stream *stream) {
  if (stream == NULL) return;
  wf_decoder *decoder = stream->decoder;
  stream->next = atomic_load(&decoder->abandoned);
  while (!atomic_compare_exchange_weak(&decoder->abandoned, &stream->next, stream)) continue;
  wf_decoder_free(decoder);
}

wf_status wf_stream_reset(wf_stream *stream, wf_error *err) {
  if (stream->result != NULL) stream->start_frame += stream->result->num_frames;
  wf_result_free(stream->result);
  stream->result = NULL;
  WF__TRY(new_result(stream, err));
  stream->backend->reset(stream->decoder->search, stream->channel);
  wf__account_free(&stream->account);
  wf__path_free(&stream->part);
  wf__vec_free(&stream->words);
  stream->num_shown = 0;
  return WF_OK;
}

uint64_t wf_stream_bytes(const wf_stream *stream) {
  const wf__account *account = &stream->account;
  uint64_t decided =
      (account->words.cap + account->placed.cap) * sizeof(wf_word) +
      (account->alignment.cap + account->steps.cap + account->labels.cap) * sizeof(int32_t) +
      account->units.cap * sizeof(wf__unit);
  uint64_t scratch = (stream->part.arcs.cap + stream->part.loglikes.cap + stream->part.frames.cap +
                      stream->part.steps.cap) *
                         4 +
                     stream->words.cap * sizeof(wf_word);
  uint64_t fixed = sizeof *stream + sizeof(wf_result) +
                   (uint64_t)stream->decoder->graph->num_labels * sizeof(bool);
  return fixed + decided + scratch +
         stream->backend->bytes(stream->decoder->search, stream->channel);
}

/* --- the end of the path, as it stands --------------------------------------------------- */

/* Adds the committed prefix to the account; `now`: looks for more of it first. */
static wf_status take_committed_prefix(wf_stream *stream, int thread, bool now, wf_error *err) {
  const wf_decoder *decoder = stream->decoder;
  WF__TRY(stream->backend->committed(decoder->search, stream->channel, thread, now, &stream->part,
                                     err));
  WF__TRY(wf__account_add(&stream->account, stream->graph, &decoder->options, &stream->part, err));
  return wf__account_decide(&stream->account, stream->graph, err);
}

/* The saved state of an account while an open path is in it. */
struct mark {
  uint64_t num_words, num_aligned;
  wf_word last;
  double graph_cost, loglike;
};

static struct mark mark_account(const wf__account *account) {
  struct mark mark = {.num_words = account->words.size,
                      .num_aligned = account->alignment.size,
                      .graph_cost = account->graph_cost,
                      .loglike = account->loglike};
  if (mark.num_words > 0) mark.last = account->words.data[mark.num_words - 1];
  return mark;
}

static void roll_back(wf__account *account, const struct mark *mark) {
  account->words.size = mark->num_words;
  account->alignment.size = mark->num_aligned;
  if (account->by_steps) account->steps.size = mark->num_aligned;
  account->graph_cost = mark->graph_cost;
  account->loglike = mark->loglike;
  if (mark->num_words > 0) account->words.data[mark->num_words - 1] = mark->last;
}

/* Adds the path to the best token to the account. roll_back must follow, also after a failure. */
static wf_status add_open_path(wf_stream *stream, int thread, wf_error *err) {
  const wf_decoder *decoder = stream->decoder;
  WF__TRY(
      stream->backend->path(decoder->search, stream->channel, thread, true, &stream->part, err));
  WF__TRY(wf__account_add(&stream->account, stream->graph, &decoder->options, &stream->part, err));
  return wf__account_close(&stream->account, stream->graph, &decoder->options,
                           wf__account_end(&stream->account, stream->part.num_decoded), err);
}

/* --- chunks ------------------------------------------------------------------------------ */

/* Frames of silence at the end of the account with its open path. */
static wf_status count_silence(const wf_stream *stream, int64_t *out, wf_error *err) {
  const wf__account *account = &stream->account;
  const wf__endpointer *endpointer = &stream->endpointer;
  int64_t num_frames = stream->part.num_decoded;
  int32_t *frames;
  if (!account->by_steps) {
    *out =
        wf__trailing_silence(endpointer, account->alignment.data, (int64_t)account->alignment.size);
    return WF_OK;
  }
  WF__TRY(wf__account_label_frames(account, stream->graph, &stream->decoder->options, num_frames,
                                   &frames, err));
  *out = wf__trailing_silence(endpointer, frames, num_frames);
  free(frames);
  return WF_OK;
}

/* Says once that most rules cannot fire. */
static void warn_without_silence(const wf_stream *stream, int64_t num_frames) {
  if (stream->endpointer.hears_silence || !wf__endpoint_waits(&stream->endpointer, num_frames) ||
      atomic_exchange(&stream->decoder->has_said_no_silence, true))
    return;
  wf__log(WF_LOG_WARNING,
          "no column of the graph counts as silence, so endpoint rules that wait for silence never "
          "fire: name columns with the stream's option silence, or the blank with the decoder's");
}

static wf_status look_for_endpoint(wf_stream *stream, int thread, wf_stream_event *event,
                                   wf_error *err) {
  struct mark mark = mark_account(&stream->account);
  wf_status status = add_open_path(stream, thread, err);
  if (status == WF_OK) {
    const wf__endpointer *endpointer = &stream->endpointer;
    int64_t num_frames = stream->part.num_decoded;
    int64_t silent;
    status = count_silence(stream, &silent, err);
    if (status != WF_OK) silent = 0;
    event->trailing_silence = (double)silent * endpointer->frame_shift;
    event->relative_cost = (double)stream->part.relative_cost;
    event->endpoint = wf__endpoint(endpointer, num_frames, silent, event->relative_cost);
    warn_without_silence(stream, num_frames);
  }
  roll_back(&stream->account, &mark);
  return status;
}

/* After a chunk: updates the stream's result and account, and fills the event. */
static wf_status after_chunk(wf_stream *stream, int thread, const wf_scores *chunk,
                             wf_stream_event *event, wf_error *err) {
  wf_result *result = stream->result;
  result->num_frames += chunk->num_frames > 0 ? chunk->num_frames : 0;
  if (result->status == WF_OK) WF__TRY(take_committed_prefix(stream, thread, false, err));
  if (event == NULL) return WF_OK;
  *event = (wf_stream_event){.num_frames = result->num_frames, .relative_cost = INFINITY};
  return result->status == WF_OK ? look_for_endpoint(stream, thread, event, err) : WF_OK;
}

static wf_status check_streams(const wf_decoder *decoder, wf_stream *const *streams, size_t count,
                               wf_error *err) {
  wf_status status = WF_OK;
  size_t marked = 0;
  for (; marked < count && status == WF_OK; marked++) {
    if (streams[marked]->decoder != decoder)
      status = wf__fail(err, WF_ERR_ARGUMENT, "stream %zu of the batch belongs to another decoder",
                        marked);
    else if (streams[marked]->in_batch)
      status = wf__fail(err, WF_ERR_ARGUMENT, "stream %zu occurs twice in the batch", marked);
    else if (streams[marked]->result == NULL)
      status =
          wf__fail(err, WF_ERR_STATE, "stream %zu of the batch is finished and not reset", marked);
    if (status != WF_OK) break;
    streams[marked]->in_batch = true;
  }
  for (size_t i = 0; i < marked; i++) streams[i]->in_batch = false;
  return status;
}

static bool is_right(wf_decoder *decoder, const wf_scores *chunk, wf_result *checked) {
  if (decoder->transducer != NULL)
    return wf__check_encoder_outputs(decoder->transducer, chunk, checked);
  return wf__check_scores(decoder, chunk, checked) &&
         wf__scores_look_right(decoder, chunk, checked);
}

/* Is the chunk a valid matrix? After bad scores, no more are read. */
static bool check_chunk(const wf_stream *stream, const wf_scores *chunk) {
  wf_result *result = stream->result, checked = {0};
  if (result->status == WF_ERR_ARGUMENT) return false;
  if (!is_right(stream->decoder, chunk, &checked)) {
    result->status = checked.status;
    snprintf(result->message, sizeof result->message, "from frame %lld: %.200s",
             (long long)result->num_frames, checked.message);
    return false;
  }
  if (result->num_frames + chunk->num_frames <= INT32_MAX) return true;
  result->status = WF_ERR_ARGUMENT;
  snprintf(result->message, sizeof result->message, "2^31 frames without a reset");
  return false;
}

/* The arrays of a batch, by stream. */
struct batch_arrays {
  bool *skip;
  void **channels;
  wf_result **results;
};

/* A step for each stream of a batch, by the threads of the pool. */
struct stream_step {
  wf_stream *const *streams;
  const wf_scores *chunks;
  wf_stream_event *events; /* NULL: not wanted */
  wf_partial *partials;
  atomic_int failed; /* 0, or the code of an error of some stream */
};

/* Prepares the streams that have not failed. */
static wf_status prepare(wf_stream *const *streams, size_t count, wf_error *err) {
  for (size_t i = 0; i < count; i++)
    if (streams[i]->result->status == WF_OK)
      WF__TRY(streams[i]->backend->prepare(streams[i]->decoder->search, streams[i]->channel, err));
  return WF_OK;
}

static void run_step(struct stream_step *step, size_t count, wf__task_fn fn) {
  const wf_decoder *decoder = step->streams[0]->decoder;
  wf__pool *pool = decoder->backend->streams->pool(decoder->search);
  if (count > FEW_STREAMS)
    wf__pool_run(pool, count, fn, step);
  else
    for (size_t i = 0; i < count; i++) fn(step, i, 0);
}

static wf_status step_status(struct stream_step *step, wf_error *err) {
  const wf_status status = (wf_status)atomic_load(&step->failed);
  return status == WF_OK ? WF_OK
                         : wf__fail(err, status, "%s in some streams", wf_status_text(status));
}

static void end_chunk(void *user, uint64_t i, int thread) {
  struct stream_step *step = user;
  wf_error err = {0};
  wf_stream_event *event = step->events != NULL ? &step->events[i] : NULL;
  if (after_chunk(step->streams[i], thread, &step->chunks[i], event, &err) == WF_OK) return;
  wf__result_fail(step->streams[i]->result, err.code, &err);
  if (err.code == WF_ERR_MEMORY || err.code == WF_ERR_CANCELLED)
    atomic_store(&step->failed, (int)err.code);
}

static wf_status advance(wf_decoder *decoder, wf_stream *const *streams, const wf_scores *chunks,
                         size_t count, const struct batch_arrays *arrays, wf_stream_event *events,
                         wf_error *err) {
  for (size_t i = 0; i < count; i++) {
    arrays->skip[i] = !check_chunk(streams[i], &chunks[i]);
    arrays->channels[i] = streams[i]->channel;
    arrays->results[i] = streams[i]->result;
  }
  wf__batch batch = {
      .scores = chunks, .skip = arrays->skip, .count = count, .results = arrays->results};
  wf_status status =
      decoder->backend->streams->advance(decoder->search, &batch, arrays->channels, err);
  struct stream_step step = {.streams = streams, .chunks = chunks, .events = events};
  atomic_init(&step.failed, 0);
  if (status == WF_OK) status = prepare(streams, count, err);
  run_step(&step, count, end_chunk);
  return status == WF_OK ? step_status(&step, err) : status;
}

wf_status wf_streams_advance(wf_decoder *decoder, wf_stream *const *streams,
                             const wf_scores *chunks, size_t count, wf_stream_event *events,
                             wf_error *err) {
  wf__streams_sweep(decoder);
  WF__TRY(check_streams(decoder, streams, count, err));
  if (count == 0) return WF_OK;
  struct batch_arrays arrays = {wf__alloc(count, sizeof *arrays.skip),
                                wf__alloc(count, sizeof *arrays.channels),
                                wf__alloc(count, sizeof *arrays.results)};
  wf_status status = arrays.skip != NULL && arrays.channels != NULL && arrays.results != NULL
                         ? advance(decoder, streams, chunks, count, &arrays, events, err)
                         : wf__fail_memory(err, count * 24, "a batch of streams");
  free(arrays.skip);
  free(arrays.channels);
  free(arrays.results);
  return status;
}

wf_status wf_stream_advance(wf_stream *stream, const wf_scores *chunk, wf_stream_event *event,
                            wf_error *err) {
  return wf_streams_advance(stream->decoder, &stream, chunk, 1, event, err);
}

/* --- partials, results ------------------------------------------------------------------- */

static wf_status check_alive(const wf_stream *stream, wf_error *err) {
  if (stream->result == NULL)
    return wf__fail(err, WF_ERR_STATE, "the stream is finished and not reset");
  if (stream->result->status != WF_OK)
    return wf__fail(err, stream->result->status, "%s", stream->result->message);
  return WF_OK;
}

static wf_status copy_words(wf_stream *stream, wf_error *err) {
  uint64_t count = stream->account.words.size;
  stream->words.size = 0;
  WF__TRY(wf__vec_grow(&stream->words, count, "a partial result", err));
  if (count > 0)
    memcpy(stream->words.data, stream->account.words.data, count * sizeof *stream->words.data);
  stream->words.size = count;
  wf__account_time_words(&stream->account, stream->part.num_decoded, stream->words.data, count);
  return WF_OK;
}

static void forget(wf_stream *stream) {
  if (stream->options.forget && stream->num_shown > 0)
    wf__account_forget(&stream->account, stream->graph, stream->num_shown - 1);
  stream->num_shown = 0;
}

/* Frames of the committed prefix; of a transducer those that are complete. */
static int64_t stable_frames(const wf__account *account) {
  if (!account->by_steps) return account->num_forgotten + (int64_t)account->alignment.size;
  return account->steps.size > 0 ? account->steps.data[account->steps.size - 1] : 0;
}

static wf_status make_partial(wf_stream *stream, int thread, wf_partial *out, wf_error *err) {
  forget(stream);
  WF__TRY(take_committed_prefix(stream, thread, true, err));
  struct mark mark = mark_account(&stream->account);
  uint64_t num_stable = wf__account_num_stable(&stream->account, stream->graph);
  wf_status status = add_open_path(stream, thread, err);
  if (status == WF_OK) status = copy_words(stream, err);
  roll_back(&stream->account, &mark);
  if (status != WF_OK) return status;
  stream->num_shown = num_stable;
  *out = (wf_partial){.words = stream->words.data,
                      .num_words = stream->words.size,
                      .num_stable = num_stable,
                      .num_estimated = stream->account.num_estimated + stream->account.num_guessed,
                      .num_frames = stream->result->num_frames,
                      .stable_frames = stable_frames(&stream->account),
                      .start_frame = stream->start_frame,
                      .flags = stream->part.flags & (uint32_t)(WF_RESULT_NARROWED | WF_RESULT_DIED |
                                                               WF_RESULT_OVERFLOW)};
  return WF_OK;
}

wf_status wf_stream_partial(wf_stream *stream, wf_partial *out, wf_error *err) {
  *out = (wf_partial){0};
  WF__TRY(check_alive(stream, err));
  WF__TRY(stream->backend->prepare(stream->decoder->search, stream->channel, err));
  return make_partial(stream, 0, out, err);
}

static void run_partial(void *user, uint64_t i, int thread) {
  struct stream_step *step = user;
  wf_stream *stream = step->streams[i];
  wf_error err = {0};
  if (stream->result->status != WF_OK) return;
  if (make_partial(stream, thread, &step->partials[i], &err) != WF_OK)
    atomic_store(&step->failed, (int)err.code);
}

wf_status wf_streams_partial(wf_decoder *decoder, wf_stream *const *streams, size_t count,
                             wf_partial *out, wf_error *err) {
  for (size_t i = 0; i < count; i++) out[i] = (wf_partial){0};
  WF__TRY(check_streams(decoder, streams, count, err));
  if (count == 0) return WF_OK;
  WF__TRY(prepare(streams, count, err));
  struct stream_step step = {.streams = streams, .partials = out};
  atomic_init(&step.failed, 0);
  run_step(&step, count, run_partial);
  return step_status(&step, err);
}

/* Has the utterance taken frames, or failed its checks? */
static bool has_begun(const wf_stream *stream) {
  const wf_result *result = stream->result;
  return result != NULL && (result->num_frames > 0 || result->status == WF_ERR_ARGUMENT);
}

/* An empty chunk or a partial result has made the start's tokens, or failed to, with the graph and
 * the scorer that were set then. Before the first frame, others may be set, and it is made again. A
 * failed utterance cannot go on. */
static void forget_start(wf_stream *stream) {
  wf_result *result = stream->result;
  stream->backend->reset(stream->decoder->search, stream->channel);
  if (result == NULL || has_begun(stream)) return;
  result->status = WF_OK;
  result->message[0] = '\0';
}

wf_status wf_stream_set_scorer(wf_stream *stream, const wf_scorer *scorer, wf_error *err) {
  const wf_decoder *decoder = stream->decoder;
  wf_result *result = stream->result;
  const bool begun = has_begun(stream) && result->status == WF_OK;
  if (begun && scorer == stream->scorer) return WF_OK;
  WF__TRY(wf__check_scorer(decoder, stream->graph, scorer, err));
  if (begun && decoder->options.lattice_beam > 0)
    return wf__fail(
        err, WF_ERR_STATE,
        "with lattices, a scorer is for a whole utterance: set it before the first chunk");
  if (begun)
    WF__TRY(take_committed_prefix(
        stream, 0, true, err)); /* everything committed by now is scored by the old scorer */
  if (!begun) forget_start(stream);
  wf_status status = stream->backend->set_scorer(decoder->search, stream->channel, scorer,
                                                 stream->account.words.data,
                                                 begun ? stream->account.words.size : 0, err);
  if (status == WF_OK) stream->scorer = scorer;
  if (status == WF_OK || !begun) return status;
  result->status = status; /* its contexts belong to neither scorer now */
  snprintf(result->message, sizeof result->message,
           "cannot replace the scorer in mid-utterance: %s", wf_status_text(status));
  return status;
}

wf_status wf_stream_set_graph(wf_stream *stream, const wf_graph *graph, wf_error *err) {
  const wf_decoder *decoder = stream->decoder;
  if (has_begun(stream))
    return wf__fail(err, WF_ERR_STATE,
                    "added words are for a whole utterance: set the graph before its first chunk, "
                    "or after finish or reset");
  WF__TRY(wf__check_graph(decoder, graph, err));
  if (graph == NULL) graph = decoder->graph;
  WF__TRY(wf__check_scorer(decoder, graph, stream->scorer, err));
  forget_start(stream);
  WF__TRY(stream->backend->set_graph(decoder->search, stream->channel, graph, err));
  wf_graph *old = stream->graph;
  stream->graph = wf_graph_ref(graph);
  wf_graph_free(old);
  return WF_OK;
}

wf_status wf_stream_partial_lattice(wf_stream *stream, wf_lattice **out, wf_error *err) {
  *out = NULL;
  WF__TRY(check_alive(stream, err));
  if (stream->decoder->options.lattice_beam <= 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "the decoder makes no lattices: lattice_beam is 0");
  WF__TRY(stream->backend->lattice(stream->decoder->search, stream->channel, true, out, err));
  wf__lattice_limit(*out, stream->decoder->options.lattice_beam);
  return WF_OK;
}

wf_status wf_stream_commit_lattice(wf_stream *stream, wf_lattice **out, wf_error *err) {
  *out = NULL;
  WF__TRY(check_alive(stream, err));
  if (stream->decoder->options.lattice_beam <= 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "the decoder makes no lattices: lattice_beam is 0");
  WF__TRY(stream->backend->commit_lattice(stream->decoder->search, stream->channel, out, err));
  wf__lattice_limit(*out, stream->decoder->options.lattice_beam);
  return WF_OK;
}

static wf_status finish(wf_stream *stream, wf_error *err) {
  const wf_decoder *decoder = stream->decoder;
  wf_result *result = stream->result;
  forget(stream);
  WF__TRY(take_committed_prefix(stream, 0, false, err));
  WF__TRY(stream->backend->prepare(decoder->search, stream->channel, err));
  WF__TRY(stream->backend->path(decoder->search, stream->channel, 0, false, &stream->part, err));
  WF__TRY(wf__account_add(&stream->account, stream->graph, &decoder->options, &stream->part, err));
  WF__TRY(wf__account_finish(&stream->account, result, stream->graph, &decoder->options,
                             &stream->part, err));
  if (stream->options.forget) {
    free(result->alignment);
    result->alignment = NULL;
  }
  if (decoder->options.lattice_beam <= 0) return WF_OK;
  WF__TRY(stream->backend->lattice(decoder->search, stream->channel, false, &result->lattice, err));
  wf__lattice_limit(result->lattice, decoder->options.lattice_beam);
  return WF_OK;
}

wf_status wf_stream_finish(wf_stream *stream, wf_result **out, wf_error *err) {
  *out = NULL;
  if (stream->result == NULL)
    return wf__fail(err, WF_ERR_STATE, "the stream is finished and not reset");
  wf_result *result = stream->result;
  wf_error own = {0};
  wf_status status = result->status == WF_OK ? finish(stream, &own) : WF_OK;
  if (status == WF_ERR_MEMORY) {
    if (err != NULL) *err = own;
    return status;
  }
  if (status != WF_OK) wf__result_fail(result, status, &own);
  if (own.code == WF_ERR_CANCELLED) {
    if (err != NULL) *err = own;
    return status;
  }
  wf__check_search(stream->decoder, result);
  stream->start_frame += result->num_frames;
  stream->result = NULL;
  stream->backend->reset(stream->decoder->search, stream->channel);
  *out = result;
  return WF_OK;
}
