/* channel.c - a stream's utterance between chunks. For a chunk, its state is moved into a thread's
 * search and afterwards out of it.
 *
 * Long arrays are moved by exchanging pointers. Tables and scratch are larger still and stay with
 * the search, so thousands of channels can be open. */
#include "search/frame/channel.h"

#include <stdlib.h>
#include <string.h>

void wf__channel_init(wf__channel *channel, const wf__searcher_ops *ops, const wf_graph *graph) {
  channel->stream = (wf__stream_state){.ops = ops, .graph = graph};
}

wf_status wf__channel_open(const wf__search_setup *setup, wf__stream_state **out, wf_error *err) {
  wf__channel *channel = wf__calloc(1, sizeof *channel);
  *out = NULL;
  if (channel == NULL) return wf__fail_memory(err, sizeof *channel, "a stream");
  wf__channel_init(channel, setup->ops, setup->graph);
  *out = &channel->stream;
  return WF_OK;
}

void wf__channel_reset(wf__stream_state *state) {
  wf__channel *channel = (wf__channel *)state;
  wf__vec_free(&channel->tokens);
  wf__trace_free(&channel->trace);
  wf__history_free(&channel->history);
  wf__path_free(&channel->path);
  wf__path_free(&channel->committed);
  wf__vec_free(&channel->contexts);
  wf__vec_free(&channel->past_contexts);
  *channel = (wf__channel){.stream = channel->stream, .scoring = channel->scoring};
  state->begun = false;
}

void wf__channel_close(wf__stream_state *state) {
  wf__channel *channel = (wf__channel *)state;
  wf__channel_reset(state);
  wf__scoring_free(&channel->scoring);
  free(channel);
}

wf_status wf__channel_set_scorer(wf__stream_state *state, const wf_scorer *scorer, wf_error *err) {
  return wf__scoring_set(&((wf__channel *)state)->scoring, scorer, err);
}

uint64_t wf__channel_bytes(const wf__stream_state *state) {
  const wf__channel *channel = (const wf__channel *)state;
  const wf__history *history = &channel->history;
  uint64_t trace = channel->trace.records.cap * sizeof(wf__trace_record) +
                   channel->trace.loglikes.cap * sizeof(float);
  uint64_t past = history->frames.cap * sizeof(wf__past_frame) +
                  history->tokens.cap * sizeof(wf__past_token) +
                  history->links.cap * sizeof(wf__link) + history->loglikes.cap * sizeof(float);
  uint64_t paths = (channel->path.frames.cap + channel->committed.arcs.cap +
                    channel->committed.loglikes.cap + channel->committed.frames.cap) *
                   4;
  uint64_t contexts = (channel->contexts.cap + channel->past_contexts.cap + history->contexts.cap) *
                      sizeof(uint64_t);
  return sizeof *channel + channel->tokens.cap * sizeof(wf__saved_token) + trace + past + paths +
         contexts;
}

void wf__history_exchange(wf__history *a, wf__history *b) {
  wf__vec_swap(&a->frames, &b->frames);
  wf__vec_swap(&a->tokens, &b->tokens);
  wf__vec_swap(&a->contexts, &b->contexts);
  wf__vec_swap(&a->links, &b->links);
  wf__vec_swap(&a->loglikes, &b->loglikes);
  const uint64_t pruned = a->num_pruned_frames;
  a->num_pruned_frames = b->num_pruned_frames;
  b->num_pruned_frames = pruned;
  a->endings.size = b->endings.size = 0; /* they belong to the end of another stream */
}

void wf__history_shrink(wf__history *history) {
  wf__vec_shrink(&history->frames);
  wf__vec_shrink(&history->tokens);
  wf__vec_shrink(&history->contexts);
  wf__vec_shrink(&history->links);
  wf__vec_shrink(&history->loglikes);
}

/* --- into a lane and out of it ----------------------------------------------------------- */

static void exchange(wf__search *search, wf__channel *channel) {
  wf__vec_swap(&search->trace.records, &channel->trace.records);
  wf__vec_swap(&search->trace.loglikes, &channel->trace.loglikes);
  uint64_t live = search->trace.live;
  search->trace.live = channel->trace.live;
  channel->trace.live = live;
  wf__history_exchange(&search->base.history, &channel->history);
  wf__vec_swap(&search->base.path.frames, &channel->path.frames);
  wf__vec_swap(&search->contexts, &channel->contexts);
  if (channel->died) wf__vec_swap(&search->past_contexts, &channel->past_contexts);
  wf__scoring_exchange(&search->base.scoring, &channel->scoring);
}

wf_status wf__channel_enter(const wf__search_setup *setup, wf__stream_state *state,
                            wf__searcher *threads, wf__searcher **out, wf_error *err) {
  wf__search *search = (wf__search *)threads;
  wf__channel *channel = (wf__channel *)state;
  *out = threads;
  exchange(search, channel);
  search->committed = &channel->committed;
  search->trace.keeps_loglikes = true;
  threads->history.keeps_loglikes = threads->keeps_lattice;
  threads->ended = false;
  threads->graph = state->graph;
  threads->epsilon_slack =
      wf__epsilon_slack(threads->graph, &threads->options, threads->scoring.scorer != NULL);
  if (!state->begun) {
    WF__TRY(wf__search_begin(threads, err));
    state->begun = true;
    return WF_OK;
  }
  search->base.history.beam = search->base.options.lattice_beam;
  wf__path_copy_statistics(&channel->path, &search->base.path);
  search->base.committed_sum = channel->committed_sum;
  WF__TRY(wf__scoring_resume(&search->base.scoring, err));
  search->trace_base = channel->trace_base;
  search->step.after_blank = channel->after_blank;
  search->died = channel->died;
  uint64_t size = channel->tokens.size;
  search->tokens.size = 0;
  WF__TRY(wf__vec_grow(&search->tokens, size, "tokens", err));
  for (uint64_t i = 0; i < size; i++) {
    const wf__saved_token *token = &channel->tokens.data[i];
    search->tokens.data[i] = (wf__token){.cost = token->cost,
                                         .state = token->state,
                                         .prev = (uint32_t)search->trace_base + token->source};
  }
  search->tokens.size = size;
  return WF_OK;
}

static wf_status save_tokens(wf__search *search, wf__channel *channel, wf_error *err) {
  uint64_t size = search->tokens.size;
  channel->tokens.size = 0;
  WF__TRY(wf__vec_grow(&channel->tokens, size, "tokens", err));
  for (uint64_t i = 0; i < size; i++) {
    const wf__token *token = &search->tokens.data[i];
    channel->tokens.data[i] = (wf__saved_token){
        token->cost, token->state, search->died ? token->prev - (uint32_t)search->trace_base : 0};
  }
  channel->tokens.size = size;
  wf__vec_shrink(&channel->tokens);
  return WF_OK;
}

wf_status wf__channel_leave(wf__stream_state *state, wf__searcher *searcher, wf_status status,
                            wf_error *err) {
  wf__search *search = (wf__search *)searcher;
  wf__channel *channel = (wf__channel *)state;
  if (status == WF_OK) status = save_tokens(search, channel, err);
  if (status == WF_OK)
    status = wf__path_score(&channel->committed, channel->num_summed, search->base.graph,
                            &search->base.scoring, false, &search->base.committed_sum, err);
  channel->num_summed = channel->committed.arcs.size;
  channel->committed_sum = search->base.committed_sum;
  wf__path_copy_statistics(&search->base.path, &channel->path);
  channel->trace_base = search->trace_base;
  channel->after_blank = search->step.after_blank;
  channel->died = search->died;
  search->committed = NULL;
  search->trace.keeps_loglikes = search->base.history.keeps_loglikes = false;
  exchange(search, channel);
  wf__vec_shrink(&channel->trace.records);
  wf__vec_shrink(&channel->trace.loglikes);
  wf__vec_shrink(&channel->contexts);
  wf__history_shrink(&channel->history);
  return status;
}

wf_status wf__channel_collect(wf__searcher *searcher, bool now, wf_error *err) {
  wf__search *search = (wf__search *)searcher;
  const uint64_t base = search->trace_base;
  if (!now && search->trace.records.size <= 2 * search->trace.live + WF__CHANNEL_COLLECT)
    return WF_OK;
  WF__TRY(wf__trace_collect(&search->trace, &search->trace_base, true, searcher->graph,
                            search->committed, err));
  for (uint64_t i = 0; i < search->tokens.size && search->died; i++)
    search->tokens.data[i].prev -= (uint32_t)(base - search->trace_base);
  return WF_OK;
}

/* Making the lattice destroys the history, so while the stream continues it is made from a copy. */
wf_status wf__channel_partial_lattice(wf__searcher *searcher, wf_lattice **out, wf_error *err) {
  uint32_t flags = searcher->path.flags;
  wf__history copy = {0}, original = searcher->history;
  wf_status status = wf__history_copy(&original, &copy, err);
  if (status == WF_OK) {
    searcher->history = copy;
    searcher->path.flags |= WF_RESULT_NOT_FINAL;
    status = wf__search_lattice(searcher, NULL, out, err);
    searcher->path.flags = flags;
    copy = searcher->history;
    searcher->history = original;
  }
  wf__history_free(&copy);
  return status;
}

/* --- paths ------------------------------------------------------------------------------- */

wf_status wf__channel_take_committed(wf__stream_state *state, wf__path *out, wf_error *err) {
  wf__channel *channel = (wf__channel *)state;
  wf__path_clear(out);
  wf__vec_swap(&out->arcs, &channel->committed.arcs);
  wf__vec_swap(&out->loglikes, &channel->committed.loglikes);
  wf__path_clear(&channel->committed);
  channel->num_summed = 0;
  wf__path *path = &channel->path;
  if (path->frames.size == 0) return WF_OK;
  uint64_t num_read = out->loglikes.size;
  WF__TRY(wf__path_take_frames(path, num_read, out, err));
  memmove(path->frames.data, path->frames.data + num_read,
          (path->frames.size - num_read) * sizeof *path->frames.data);
  path->frames.size -= num_read;
  return WF_OK;
}
