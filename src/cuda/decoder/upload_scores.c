/* upload_scores.c - scores from host memory to the GPU, while the GPU searches other chunks.
 *
 * The scores of a chunk, one utterance after the other at multiples of 256 bytes, rows packed to
 * the columns that the graph reads, are one range of bytes. It is sent window by window: threads
 * fill a page-locked window, one asynchronous copy sends it, and meanwhile they fill the other
 * one. Values are checked while they are in the cache, so the GPU need not check them. */
#include "cuda/decoder/upload_scores.h"

#include <string.h>

#include "base/interrupt.h"
#include "cuda/decoder/batch_rnn_scoring.h"
#include "cuda/decoder/gpu_worker.h"
#include "cuda/device/cuda_call.h"
#include "math/score.h"

struct window {
  wf__gpu_worker *worker;
  const wf__batch_chunk *chunk;
  const wf__batch *batch;
  char *data;
  uint64_t begin, end; /* of the chunk's range */
};

wf_status wf__score_windows_open(wf__score_windows *windows, wf_error *err) {
  cudaEvent_t *events[] = {&windows->sent[0], &windows->sent[1], &windows->copied};
  for (int i = 0; i < 3; i++)
    WF__CUDA_TRY(cudaEventCreateWithFlags(events[i], cudaEventDisableTiming), "an event");
  return WF_OK;
}

void wf__score_windows_close(wf__score_windows *windows) {
  const cudaEvent_t events[] = {windows->sent[0], windows->sent[1], windows->copied};
  for (int i = 0; i < 3; i++)
    if (events[i] != NULL) cudaEventDestroy(events[i]);
}

/* --- checking ---------------------------------------------------------------------------- */

/* A score is bad if its magnitude's bits are beyond the limit, -infinity excepted. The loops have
 * no branch, so that they vectorise. */
static bool any_bad32(const uint32_t *bits, uint64_t count) {
  uint32_t bad = 0;
  const int32_t limit = 0x60ad78ec; /* 1e20 */
  for (uint64_t i = 0; i < count; i++)
    bad |=
        (uint32_t)((int32_t)(bits[i] & 0x7fffffffu) > limit) & (uint32_t)(bits[i] != 0xff800000u);
  return bad != 0;
}

static bool any_bad16(const uint16_t *bits, uint64_t count, int16_t limit,
                      uint16_t minus_infinity) {
  uint16_t bad = 0;
  for (uint64_t i = 0; i < count; i++)
    bad |= (uint16_t)((int16_t)(bits[i] & 0x7fff) > limit) & (uint16_t)(bits[i] != minus_infinity);
  return bad != 0;
}

static bool any_bad(const void *data, uint64_t count, wf_dtype dtype) {
  if (dtype == WF_FLOAT32) return any_bad32(data, count);
  return dtype == WF_FLOAT16 ? any_bad16(data, count, 0x7bff, 0xfc00)
                             : any_bad16(data, count, 0x60ad, 0xff80); /* 65504; 1e20 */
}

bool wf__gpu_any_bad(const wf_scores *scores, int32_t num_columns) {
  const char *row = scores->data;
  bool bad = false;
  for (int64_t t = 0; t < scores->num_frames && !bad;
       t++, row += (uint64_t)scores->stride * wf__dtype_bytes(scores->dtype))
    bad = any_bad(row, (uint64_t)num_columns, scores->dtype);
  return bad;
}

/* Notes the first bad score among `count` from element `at` of the utterance's packed scores on. */
static void note_bad(const wf_scores *packed, uint64_t at, uint64_t count, uint64_t *bad) {
  uint64_t columns = (uint64_t)packed->num_columns;
  for (uint64_t i = at; i < at + count; i++) {
    wf_scores one = {.data = (const char *)packed->data + (i - at) * wf__dtype_bytes(packed->dtype),
                     .dtype = packed->dtype};
    if (wf__score_usable(wf__score_at(&one, 0, 0))) continue;
    uint64_t place = i / columns << 32 | i % columns,
             known = __atomic_load_n(bad, __ATOMIC_RELAXED);
    while (place < known && !__atomic_compare_exchange_n(bad, &known, place, true, __ATOMIC_RELAXED,
                                                         __ATOMIC_RELAXED))
      continue;
    return;
  }
}

/* --- filling a window -------------------------------------------------------------------- */

/* The utterance whose range holds this byte: the last one that begins at or before it. */
static uint32_t find_utterance(const uint64_t *score_off, uint32_t count, uint64_t at) {
  uint32_t low = 0, high = count;
  while (high - low > 1) {
    uint32_t mid = low + (high - low) / 2;
    if (score_off[mid] <= at)
      low = mid;
    else
      high = mid;
  }
  return low;
}

/* Copies bytes [at, end) of an utterance's packed scores, up to the end of a row or of a step.
 * Returns how many. */
static uint64_t copy_step(const wf_scores *scores, uint64_t columns, uint64_t at, uint64_t end,
                          char *to, uint64_t *bad) {
  const uint64_t element = wf__dtype_bytes(scores->dtype);
  const bool packed = (uint64_t)scores->stride == columns;
  const uint64_t row =
      packed ? columns * (uint64_t)scores->num_frames * element : columns * element;
  const uint64_t frame = at / row, within = at % row;
  uint64_t size = row - within;
  if (size > end - at) size = end - at;
  if (size > WF__STEP_BYTES) size = WF__STEP_BYTES;
  memcpy(to, (const char *)scores->data + frame * (uint64_t)scores->stride * element + within,
         size);
  if (any_bad(to, size / element, scores->dtype)) {
    wf_scores part = {.data = to, .num_columns = (int32_t)columns, .dtype = scores->dtype};
    note_bad(&part, at / element, size / element, bad);
  }
  return size;
}

static void fill_piece(void *user, uint64_t item, int thread) {
  const struct window *window = user;
  const wf__gpu_worker *worker = window->worker;
  const uint64_t *score_off = wf__chunk_transfer(window->chunk, WF__TRANSFER_SCORE_OFF);
  const uint32_t *numbers = wf__chunk_transfer(window->chunk, WF__TRANSFER_NUMBERS);
  uint64_t *bad = wf__chunk_transfer(window->chunk, WF__TRANSFER_BAD);
  const uint64_t columns = (uint64_t)worker->graph->min_columns;
  uint64_t at = window->begin + item * WF__PIECE_BYTES,
           end = at + WF__PIECE_BYTES < window->end ? at + WF__PIECE_BYTES : window->end;
  uint32_t u = find_utterance(score_off, window->chunk->count, at);
  while (at < end) {
    const wf_scores *scores = &window->batch->scores[numbers[u]];
    uint64_t last =
        score_off[u] + (uint64_t)scores->num_frames * columns * wf__dtype_bytes(scores->dtype);
    if (last > end) last = end;
    while (at < last)
      at += copy_step(scores, columns, at - score_off[u], last - score_off[u],
                      window->data + (at - window->begin), &bad[u]);
    at = score_off[++u]; /* skips the gap to the next utterance */
  }
}

static wf_status send_range(wf__gpu_worker *worker, wf__batch_chunk *chunk, const wf__batch *batch,
                            uint64_t bytes, wf_error *err) {
  wf__score_windows *windows = &worker->windows;
  char *to = wf__chunk_array(&worker->plan, chunk, WF__BATCH_SCORES);
  for (uint64_t begin = 0; begin < bytes; begin += windows->bytes) {
    const int turn = windows->next;
    WF__TRY(wf__interrupted(err));
    struct window window = {.worker = worker,
                            .chunk = chunk,
                            .batch = batch,
                            .data = windows->memory + (uint64_t)turn * windows->bytes,
                            .begin = begin,
                            .end = bytes - begin < windows->bytes ? bytes : begin + windows->bytes};
    const uint64_t size = window.end - begin;
    WF__CUDA_TRY(cudaEventSynchronize(windows->sent[turn]), "scores to the GPU");
    wf__pool_run(worker->threads.pool, (size + WF__PIECE_BYTES - 1) / WF__PIECE_BYTES, fill_piece,
                 &window);
    WF__CUDA_TRY(
        cudaMemcpyAsync(to + begin, window.data, size, cudaMemcpyHostToDevice, worker->copy_stream),
        "scores to the GPU");
    WF__CUDA_TRY(cudaEventRecord(windows->sent[turn], worker->copy_stream), "scores to the GPU");
    windows->next = 1 - turn;
  }
  WF__CUDA_TRY(cudaEventRecord(windows->copied, worker->copy_stream), "scores to the GPU");
  WF__CUDA_TRY(cudaStreamWaitEvent(chunk->stream, windows->copied, 0), "scores to the GPU");
  return WF_OK;
}

wf_status wf__gpu_send_scores(wf__gpu_worker *worker, wf__batch_chunk *chunk,
                              const wf__batch *batch, wf_error *err) {
  const uint32_t *numbers = wf__chunk_transfer(chunk, WF__TRANSFER_NUMBERS);
  wf__lane_utterance *utterances = wf__chunk_transfer(chunk, WF__TRANSFER_UTTERANCES);
  uint64_t *score_off = wf__chunk_transfer(chunk, WF__TRANSFER_SCORE_OFF),
           *bad = wf__chunk_transfer(chunk, WF__TRANSFER_BAD), bytes = 0;
  const int32_t columns = worker->graph->min_columns;
  for (uint32_t i = 0; i < chunk->count; i++) {
    const wf_scores *scores = &batch->scores[numbers[i]];
    const char *here =
        (const char *)wf__chunk_array(&worker->plan, chunk, WF__BATCH_SCORES) + bytes;
    score_off[i] = bytes;
    bad[i] = UINT64_MAX;
    utterances[i] = wf__gpu_describe(scores, 0, scores->num_frames, columns, here);
    utterances[i].root = wf__batch_rnn_root(worker, batch, numbers[i], i);
    utterances[i].scorer = wf__gpu_scorer_of(&worker->scorers, batch, numbers[i]);
    utterances[i].words =
        wf__gpu_words_of(&worker->words, wf__batch_graph(batch, numbers[i], worker->graph));
    bytes += wf__gpu_packed_bytes(scores, scores->num_frames, columns);
  }
  score_off[chunk->count] = bytes;
  if (!chunk->on_device && bytes > 0) WF__TRY(send_range(worker, chunk, batch, bytes, err));
  for (uint32_t i = 0; i < chunk->count; i++)
    if (bad[i] != UINT64_MAX) utterances[i].num_frames = 0; /* nothing to search */
  return WF_OK;
}
