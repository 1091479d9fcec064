/* read_stream_links.c - the history of a stream's lattice, chunk by chunk, from the tokens and
 * links that the kernel emits (stream_links.cuh).
 *
 *   tokens   frame by frame; the row that they read gives the frame; those of the newest frame are
 *            all there, and the next chunk's links count them from 0
 *   links    in no order: sorted by the frame that they lead to, consuming ones first
 *
 * The CPU's streams have the same history (search/lattice_history.h), so the same code prunes it
 * and makes parts and lattices. */
#include "cuda/decoder/read_stream_links.h"

#include <stdlib.h>
#include <string.h>

/* The frames of a chunk, numbered from 0: tokens [first[f], first[f + 1]), links from where[2 f]
 * on, its epsilons from where[2 f + 1] on. */
struct frames {
  uint32_t count;
  uint32_t first[WF__STREAM_FRAMES + 2];
  uint64_t where[2 * (WF__STREAM_FRAMES + 2)];
};

static wf_status find_frames(const wf__chunk_out *out, wf__stream_scratch *scratch,
                             struct frames *frames, wf_error *err) {
  scratch->frame_of.size = 0;
  WF__TRY(wf__vec_grow(&scratch->frame_of, out->num_tokens, "the lattice", err));
  frames->count = 0;
  for (uint32_t i = 0; i < out->num_tokens; i++) {
    if (i == 0 || out->tokens[i].row != out->tokens[i - 1].row) frames->first[frames->count++] = i;
    scratch->frame_of.data[i] = (uint8_t)(frames->count - 1);
  }
  frames->first[frames->count] = out->num_tokens;
  return WF_OK;
}

/* 2 f for links into frame f over consuming arcs, 2 f + 1 over epsilons. */
static uint32_t class_of(const wf__lane_chunk_link *link, const uint8_t *frame_of) {
  const bool stays = (link->from & WF__LANE_OLD) == 0 && frame_of[link->from] == frame_of[link->to];
  return 2u * frame_of[link->to] + stays;
}

static int compare_sources(const void *a, const void *b) {
  const wf__link *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return (x->arc > y->arc) - (x->arc < y->arc);
}

/* Copies the chunk's links to scratch, sorted by frame and kind. Tokens are numbered within their
 * frames. */
static wf_status sort_links(const wf__chunk_out *out, wf__stream_scratch *scratch,
                            struct frames *frames, wf_error *err) {
  const uint8_t *frame_of = scratch->frame_of.data;
  uint64_t next[2 * (WF__STREAM_FRAMES + 2)] = {0}, sum = 0;
  scratch->links.size = scratch->loglikes.size = 0;
  WF__TRY(wf__vec_grow(&scratch->links, out->num_links, "the lattice", err));
  WF__TRY(wf__vec_grow(&scratch->loglikes, out->num_links, "the lattice", err));
  for (uint32_t i = 0; i < out->num_links; i++) next[class_of(&out->links[i], frame_of)]++;
  for (uint32_t c = 0; c < 2 * frames->count; c++) {
    const uint64_t count = next[c];
    frames->where[c] = next[c] = sum;
    sum += count;
  }
  frames->where[2 * frames->count] = sum;
  for (uint32_t i = 0; i < out->num_links; i++) {
    const wf__lane_chunk_link *link = &out->links[i];
    const uint64_t at = next[class_of(link, frame_of)]++;
    const uint32_t from = (link->from & WF__LANE_OLD) != 0
                              ? link->from & ~WF__LANE_OLD
                              : link->from - frames->first[frame_of[link->from]];
    scratch->links.data[at] =
        (wf__link){from, link->to - frames->first[frame_of[link->to]], link->arc, link->excess};
    scratch->loglikes.data[at] = link->loglike;
  }
  return WF_OK;
}

static wf_status add_tokens(const wf__channel *base, const wf__chunk_out *out, uint32_t first,
                            uint32_t end, wf__history *history, wf_error *err) {
  WF__TRY(wf__vec_grow(&history->tokens, end - first, "the lattice", err));
  for (uint32_t i = first; i < end; i++) {
    const uint32_t arc = out->tokens[i].arc;
    const uint32_t state = arc == WF__NO_ARC ? base->stream.graph->start
                                             : wf__graph_arc(base->stream.graph, arc).nextstate;
    history->tokens.data[history->tokens.size++] = (wf__past_token){state, 0};
    if (out->contexts != NULL)
      WF__TRY(wf__vec_push(&history->contexts, out->contexts[i], "the lattice", err));
  }
  return WF_OK;
}

static wf_status add_links(wf__stream_scratch *scratch, const struct frames *frames, uint32_t f,
                           wf_error *err) {
  wf__history *history = &scratch->history;
  const uint64_t begin = frames->where[2 * f], middle = frames->where[2 * f + 1],
                 end = frames->where[2 * f + 2];
  WF__TRY(wf__vec_grow(&history->links, middle - begin, "the lattice", err));
  WF__TRY(wf__vec_grow(&history->loglikes, end - begin, "the lattice", err));
  for (uint64_t i = begin; i < middle; i++) {
    history->links.data[history->links.size++] = scratch->links.data[i];
    history->loglikes.data[history->loglikes.size++] = scratch->loglikes.data[i];
  }
  wf__history_begin_epsilons(history);
  if (end > middle)
    qsort(scratch->links.data + middle, end - middle, sizeof *scratch->links.data, compare_sources);
  WF__TRY(wf__history_add_epsilons(history, scratch->links.data + middle, end - middle,
                                   frames->first[f + 1] - frames->first[f], err));
  while (history->loglikes.size < history->links.size)
    history->loglikes.data[history->loglikes.size++] = 0;
  return WF_OK;
}

static wf_status add_chunk(const wf__gpu_channel *channel, const wf__chunk_out *out, int64_t row,
                           wf__stream_scratch *scratch, wf_error *err) {
  wf__history *history = &scratch->history;
  struct frames frames;
  WF__TRY(find_frames(out, scratch, &frames, err));
  WF__TRY(sort_links(out, scratch, &frames, err));
  for (uint32_t f = 0; f < frames.count; f++) {
    const uint32_t read = out->tokens[frames.first[f]].row;
    WF__TRY(wf__history_begin_frame(history, read == WF__LANE_NO_ROW ? 0 : row + read, err));
    WF__TRY(add_links(scratch, &frames, f, err));
    WF__TRY(add_tokens(&channel->base, out, frames.first[f], frames.first[f + 1], history, err));
  }
  if (history->frames.size - history->num_pruned_frames <
      (uint64_t)channel->worker->options.lattice_prune_interval)
    return WF_OK;
  return wf__history_prune(history, err);
}

wf_status wf__streams_add_history(wf__gpu_channel *channel, const wf__chunk_out *out, int64_t row,
                                  int thread, wf_error *err) {
  wf__stream_scratch *scratch = &channel->worker->streams->scratch[thread];
  wf__history_exchange(&scratch->history, &channel->base.history);
  scratch->history.beam = channel->worker->options.lattice_beam;
  scratch->history.keeps_loglikes = true;
  const wf_status status = add_chunk(channel, out, row, scratch, err);
  wf__history_exchange(&scratch->history, &channel->base.history);
  wf__history_shrink(&channel->base.history);
  return status;
}
