/* stream_outcomes.c - adds the outcome of a chunk's search to the channel. */
#include "cuda/decoder/stream_outcomes.h"

#include <math.h>

#include "cuda/decoder/read_stream_links.h"

wf_status wf__streams_collect(wf__gpu_channel *channel, int thread, wf_error *err) {
  wf__channel *base = &channel->base;
  wf__stream_scratch *scratch = &channel->worker->streams->scratch[thread];
  wf__scoring *scoring = &channel->worker->threads.scorings[thread];
  base->trace.renumber = scratch->renumber;
  base->trace.renumber_cap = scratch->cap;
  wf_status status = wf__trace_collect(&base->trace, &base->trace_base, true, base->stream.graph,
                                       &base->committed, err);
  scratch->renumber = base->trace.renumber;
  scratch->cap = base->trace.renumber_cap;
  base->trace.renumber = NULL;
  base->trace.renumber_cap = 0;
  wf__vec_shrink(&base->trace.records);
  wf__vec_shrink(&base->trace.loglikes);
  channel->collected = status == WF_OK;
  if (status != WF_OK) return status;
  if (base->scoring.scorer != NULL) {
    wf__scoring_exchange(scoring, &base->scoring); /* its cache is the thread's */
    status = wf__scoring_resume(scoring, err);
    if (status == WF_OK)
      status = wf__path_score(&base->committed, base->num_summed, base->stream.graph, scoring,
                              false, &base->committed_sum, err);
    wf__scoring_exchange(scoring, &base->scoring);
  }
  base->num_summed = base->committed.arcs.size;
  return status;
}

/* Adds the numbers of the frames that the emitted tokens have read. */
static wf_status add_frames(wf__channel *base, const wf__back_pointer *from, uint32_t count,
                            wf_error *err) {
  int64_t last = -1;
  for (uint32_t i = 0; i < count; i++) {
    if (from[i].arc == WF__NO_ARC || wf__graph_arc(base->stream.graph, from[i].arc).ilabel == 0 ||
        from[i].row == last)
      continue;
    last = from[i].row;
    WF__TRY(
        wf__vec_push(&base->path.frames, (int32_t)(base->path.num_decoded + last), "a path", err));
  }
  return WF_OK;
}

static wf_status add_back_pointers(wf__channel *base, const wf__back_pointer *from,
                                   const wf__lane_advance *advance, wf_error *err) {
  const uint64_t size = base->trace.records.size, count = advance->num_back_pointers;
  WF__TRY(wf__vec_grow(&base->trace.records, count, "the token history", err));
  WF__TRY(wf__vec_grow(&base->trace.loglikes, count, "the token history", err));
  wf__trace_record *records = base->trace.records.data + size;
  float *loglikes = base->trace.loglikes.data + size;
  for (uint64_t i = 0; i < count; i++) {
    const uint32_t prev = from[i].prev;
    records[i].arc = from[i].arc;
    loglikes[i] = from[i].loglike;
    if (prev == WF__LANE_NO_PREV)
      records[i].prev = WF__TRACE_ROOT;
    else
      records[i].prev =
          (uint32_t)((prev & WF__LANE_OLD) != 0 ? base->trace_base + (prev & ~WF__LANE_OLD)
                                                : size + prev);
  }
  base->trace.records.size = base->trace.loglikes.size = size + count;
  base->trace_base = size + count - advance->num_newest;
  return WF_OK;
}

static wf_status begin_scoring(wf__gpu_channel *channel, int thread, wf_error *err) {
  wf__scoring *scoring = &channel->worker->threads.scorings[thread];
  wf__scoring_exchange(scoring, &channel->base.scoring); /* the cache is the thread's */
  const wf_status status = wf__scoring_begin(scoring, err);
  wf__scoring_exchange(scoring, &channel->base.scoring);
  channel->base.committed_sum = (wf__score_sum){channel->base.scoring.start, 0};
  return status;
}

static wf__chunk_out emitted(const wf__gpu_channel *channel, const wf__lane_advance *advance) {
  const wf__gpu_streams *streams = channel->worker->streams;
  return (wf__chunk_out){
      .tokens = (const wf__back_pointer *)wf__streams_out(streams, WF__STREAM_BACK_POINTERS) +
                advance->back_pointers_off,
      .contexts = channel->scorer != NULL ? (const uint64_t *)wf__streams_out(
                                                streams, WF__STREAM_BACK_POINTER_CONTEXTS) +
                                                advance->back_pointers_off
                                          : NULL,
      .links = (const wf__lane_chunk_link *)wf__streams_out(streams, WF__STREAM_CHUNK_LINKS) +
               advance->links_off,
      .num_tokens = advance->num_back_pointers,
      .num_links = advance->num_links};
}

wf_status wf__streams_take_advance(wf__gpu_channel *channel, const wf__lane_advance *advance,
                                   int thread, wf_error *err) {
  wf__channel *base = &channel->base;
  const wf__chunk_out out = emitted(channel, advance);
  wf__path *path = &base->path;
  if (!base->stream.begun && channel->scorer != NULL) WF__TRY(begin_scoring(channel, thread, err));
  base->stream.begun = true;
  channel->stale = false;
  if (channel->worker->launches.params.rules.skip_above < INFINITY)
    WF__TRY(add_frames(base, out.tokens, out.num_tokens, err));
  if (out.num_tokens > 0 && channel->worker->options.lattice_beam > 0)
    WF__TRY(wf__streams_add_history(channel, &out, path->num_decoded, thread, err));
  if (out.num_tokens > 0) WF__TRY(add_back_pointers(base, out.tokens, advance, err));
  path->flags |= advance->flags;
  path->num_decoded += (int64_t)advance->num_decoded;
  path->num_tokens += advance->num_tokens;
  path->num_expanded += advance->num_expanded;
  path->num_arcs += advance->num_arcs;
  path->num_narrowed += advance->num_narrowed;
  base->after_blank = advance->after_blank != 0;
  base->died = (advance->flags & WF_RESULT_DIED) != 0;
  channel->num_tokens = advance->num_newest;
  channel->usual_size = advance->usual_size;
  channel->best = advance->best;
  channel->ending = advance->ending;
  channel->best_cost = advance->best_cost;
  channel->ending_cost = advance->ending_cost;
  channel->final_cost = advance->final_cost;
  channel->select_key = advance->select_key;
  channel->select_context = advance->select_context;
  /* Without new back-pointers the tokens are unchanged, and the committed prefix may have been
   * read already. */
  if (advance->num_back_pointers == 0) return WF_OK;
  channel->collected = false;
  const bool full = base->trace.records.size > 2 * base->trace.live + WF__CHANNEL_COLLECT;
  return full || channel->watched ? wf__streams_collect(channel, thread, err) : WF_OK;
}
