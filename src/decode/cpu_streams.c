/* cpu_streams.c - streams on the CPU. Each worker's search is a lane. For a chunk, a channel's
 * state is moved into the lane and afterwards out of it.
 *
 * Long arrays are moved by exchanging pointers. Tables and scratch are larger still and stay with
 * the lane, so thousands of channels can be open. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/cpu_streams.h"

static wf_status channel_open(void *self, void **out, wf_error *err) {
  wf__channel *channel = wf__calloc(1, sizeof *channel);
  *out = channel;
  if (channel == NULL) return wf__fail_memory(err, sizeof *channel, "a stream");
  channel->graph = ((const struct wf__cpu_backend *)self)->graph;
  return WF_OK;
}

/* Frees all arrays: an idle stream keeps no memory. */
static void channel_reset(void *self, void *opaque) {
  wf__channel *channel = opaque;
  wf__vec_free(&channel->tokens);
  wf__trace_free(&channel->trace);
  wf__history_free(&channel->history);
  wf__path_free(&channel->path);
  wf__path_free(&channel->committed);
  wf__vec_free(&channel->contexts);
  wf__vec_free(&channel->past_contexts);
  *channel = (wf__channel){.scoring = channel->scoring, .graph = channel->graph};
}

static wf_status set_graph(void *self, void *channel, const wf_graph *graph, wf_error *err) {
  ((wf__channel *)channel)->graph = graph;
  return WF_OK;
}

static void channel_close(void *self, void *opaque) {
  if (opaque == NULL) return;
  channel_reset(self, opaque);
  wf__scoring_free(&((wf__channel *)opaque)->scoring);
  free(opaque);
}

static uint64_t channel_bytes(const void *self, const void *opaque) {
  const wf__channel *channel = opaque;
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
  wf__history_exchange(&search->history, &channel->history);
  wf__vec_swap(&search->path.frames, &channel->path.frames);
  wf__vec_swap(&search->contexts, &channel->contexts);
  if (channel->died) wf__vec_swap(&search->past_contexts, &channel->past_contexts);
  wf__scoring_exchange(&search->scoring, &channel->scoring);
}

void wf__copy_statistics(const wf__path *from, wf__path *to) {
  to->flags = from->flags;
  to->num_decoded = from->num_decoded;
  to->num_tokens = from->num_tokens;
  to->num_expanded = from->num_expanded;
  to->num_arcs = from->num_arcs;
  to->num_narrowed = from->num_narrowed;
}

/* Moves the channel's state into the lane. store() must follow in every case. */
static wf_status load(wf__search *search, wf__channel *channel, wf_error *err) {
  exchange(search, channel);
  search->committed = &channel->committed;
  search->trace.keeps_loglikes = true;
  search->history.keeps_loglikes = search->keeps_lattice;
  search->goes_on = false;
  wf__search_set_graph(search, channel->graph);
  search->epsilon_slack =
      wf__epsilon_slack(search->graph, &search->options, search->scoring.scorer != NULL);
  if (!channel->begun) {
    WF__TRY(wf__search_begin(search, err));
    channel->begun = true;
    return WF_OK;
  }
  search->history.beam = search->options.lattice_beam;
  wf__copy_statistics(&channel->path, &search->path);
  search->committed_sum = channel->committed_sum;
  WF__TRY(wf__scoring_resume(&search->scoring, err));
  search->trace_base = channel->trace_base;
  search->after_blank = channel->after_blank;
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

static wf_status store(wf__search *search, wf__channel *channel, wf_status status, wf_error *err) {
  if (status == WF_OK) status = save_tokens(search, channel, err);
  if (status == WF_OK)
    status = wf__path_score(&channel->committed, channel->num_summed, search->graph,
                            &search->scoring, false, &search->committed_sum, err);
  channel->num_summed = channel->committed.arcs.size;
  channel->committed_sum = search->committed_sum;
  wf__copy_statistics(&search->path, &channel->path);
  channel->trace_base = search->trace_base;
  channel->after_blank = search->after_blank;
  channel->died = search->died;
  search->committed = NULL;
  search->trace.keeps_loglikes = search->history.keeps_loglikes = search->goes_on = false;
  exchange(search, channel);
  wf__vec_shrink(&channel->trace.records);
  wf__vec_shrink(&channel->trace.loglikes);
  wf__vec_shrink(&channel->contexts);
  wf__history_shrink(&channel->history);
  return status;
}

static wf_status collect(wf__search *search, wf_error *err) {
  uint64_t base = search->trace_base;
  WF__TRY(wf__trace_collect(&search->trace, &search->trace_base, true, search->graph,
                            search->committed, err));
  for (uint64_t i = 0; i < search->tokens.size && search->died; i++)
    search->tokens.data[i].prev -= (uint32_t)(base - search->trace_base);
  return WF_OK;
}

/* --- another scorer ---------------------------------------------------------------------- */

/* Computes the contexts after the records of the newest frame and those that they lead back to:
 * that of the predecessor, advanced by the word of the arc. */
static wf_status follow_words(wf__search *search, uint64_t *contexts, uint32_t *way,
                              wf_error *err) {
  const wf__trace *trace = &search->trace;
  uint8_t *known = wf__calloc(trace->records.size, 1);
  wf_status status =
      known != NULL ? WF_OK : wf__fail_memory(err, trace->records.size, "a scorer's contexts");
  for (uint64_t i = search->trace_base; i < trace->records.size && status == WF_OK; i++) {
    uint64_t length = 0, context = search->committed_sum.context;
    uint32_t at = (uint32_t)i;
    for (; at != WF__TRACE_ROOT && !known[at] && length < trace->records.size;
         at = trace->records.data[at].prev)
      way[length++] = at;
    if (at != WF__TRACE_ROOT && known[at]) context = contexts[at];
    while (length > 0 && status == WF_OK) {
      at = way[--length];
      uint32_t arc = trace->records.data[at].arc;
      int32_t word = arc == WF__NO_ARC ? 0 : wf__graph_arc(search->graph, arc).olabel;
      float cost;
      if (word != 0)
        status = wf__scoring_step(&search->scoring, context, word, &cost, &context, err);
      contexts[at] = context;
      known[at] = 1;
    }
  }
  free(known);
  return status;
}

/* Computes the contexts of the newest frame's tokens. */
static wf_status find_contexts(wf__search *search, wf_error *err) {
  uint64_t size = search->trace.records.size, count = size - search->trace_base;
  uint64_t *contexts = wf__calloc(size, sizeof *contexts);
  uint32_t *way = wf__alloc(size, sizeof *way);
  wf_status status = contexts != NULL && way != NULL
                         ? WF_OK
                         : wf__fail_memory(err, size * 12, "a scorer's contexts");
  const bool has_contexts = search->scoring.scorer->context_bits > 0; /* else all are 0 */
  if (status == WF_OK && has_contexts) status = follow_words(search, contexts, way, err);
  search->contexts.size = search->past_contexts.size = 0;
  if (status == WF_OK) status = wf__vec_grow(&search->contexts, count, "a scorer's contexts", err);
  if (status == WF_OK)
    status = wf__vec_grow(&search->past_contexts, count, "a scorer's contexts", err);
  if (status == WF_OK) {
    memcpy(search->contexts.data, contexts + search->trace_base, count * sizeof *contexts);
    memcpy(search->past_contexts.data, contexts + search->trace_base, count * sizeof *contexts);
    search->contexts.size = search->past_contexts.size = count;
  }
  free(contexts);
  free(way);
  return status;
}

static wf_status restart_scorer(wf__search *search, const wf_word *words, size_t num_words,
                                wf_error *err) {
  if (search->scoring.scorer == NULL) return WF_OK;
  float cost;
  WF__TRY(wf__scoring_begin(&search->scoring, err));
  search->committed_sum.context = search->scoring.start;
  const size_t needed = search->scoring.scorer->context_words;
  for (size_t i = num_words > needed ? num_words - needed : 0; i < num_words; i++)
    WF__TRY(wf__scoring_step(&search->scoring, search->committed_sum.context, words[i].label, &cost,
                             &search->committed_sum.context, err));
  return find_contexts(search, err);
}

wf_status wf__channel_find_contexts(void *self, wf__channel *channel, wf_error *err) {
  wf__search *search;
  WF__TRY(wf__cpu_search(self, 0, &search, err));
  wf_status status = load(search, channel, err);
  if (status == WF_OK) status = find_contexts(search, err);
  return store(search, channel, status, err);
}

/* Refunds the pending boosts of the old scorer (sign 1), and adds those of the new one (-1). */
static void add_pending(wf__search *search, float sign) {
  const wf__scoring *scoring = &search->scoring;
  for (uint64_t i = 0; i < search->tokens.size && scoring->scorer != NULL; i++)
    search->tokens.data[i].cost +=
        sign * wf__scorer_pending(scoring->scorer, scoring->memory, wf__search_context(search, i));
}

/* After dying, tokens keep the numbers of their records and contexts. */
static void keep_dead_tokens(wf__search *search, const bool *stays) {
  uint64_t kept = 0;
  for (uint64_t i = 0; i < search->tokens.size; i++)
    if (stays[i]) search->tokens.data[kept++] = search->tokens.data[i];
  search->tokens.size = kept;
}

/* Appends copies of the records of the tokens that stay, in their order. The old records stay,
 * because they may be predecessors of others. */
static wf_status keep_tokens(wf__search *search, const bool *stays, wf_error *err) {
  const uint64_t count = search->tokens.size, base = search->trace_base,
                 size = search->trace.records.size;
  const bool scored = search->scoring.scorer != NULL;
  uint64_t kept = 0;
  WF__TRY(wf__vec_grow(&search->trace.records, count, "the token history", err));
  WF__TRY(wf__vec_grow(&search->trace.loglikes, count, "the token history", err));
  for (uint64_t i = 0; i < count; i++) {
    if (!stays[i]) continue;
    search->trace.records.data[size + kept] = search->trace.records.data[base + i];
    search->trace.loglikes.data[size + kept] = search->trace.loglikes.data[base + i];
    search->tokens.data[kept] = search->tokens.data[i];
    if (scored) search->contexts.data[kept] = search->contexts.data[i];
    kept++;
  }
  search->trace.records.size = search->trace.loglikes.size = size + kept;
  search->tokens.size = kept;
  if (scored) search->contexts.size = kept;
  search->trace_base = size;
  return WF_OK;
}

/* The new scorer's context of a token; 0 without a scorer. */
static uint64_t new_context(const wf__search *search, uint64_t i) {
  return search->scoring.scorer != NULL ? wf__search_context(search, i) : 0;
}

/* Sets stays[i] for the best of the tokens that have the same state and, with the new scorer, the
 * same context: among equal ones, for the one whose old context is the smallest. `slots`: 2^bits
 * zeros, for token numbers plus one. Returns the number of tokens that stay. */
static uint64_t choose_tokens(const wf__search *search, const uint64_t *old_contexts,
                              uint32_t *slots, int bits, bool *stays) {
  const wf__token *tokens = search->tokens.data;
  const uint32_t mask = ((uint32_t)1 << bits) - 1;
  uint64_t kept = 0;
  for (uint64_t i = 0; i < search->tokens.size; i++) {
    const uint64_t context = new_context(search, i);
    uint32_t at = wf__spread64(tokens[i].state + wf__mix64(context), bits);
    while (slots[at] != 0 && (tokens[slots[at] - 1].state != tokens[i].state ||
                              new_context(search, slots[at] - 1) != context))
      at = (at + 1) & mask;
    if (slots[at] == 0) {
      kept++;
    } else {
      const uint32_t other = slots[at] - 1;
      if (tokens[other].cost < tokens[i].cost ||
          (tokens[other].cost == tokens[i].cost && old_contexts[other] < old_contexts[i]))
        continue;
      stays[other] = false;
    }
    slots[at] = (uint32_t)i + 1;
    stays[i] = true;
  }
  return kept;
}

/* Keeps one of the tokens that have become equal. */
static wf_status recombine(wf__search *search, const uint64_t *old_contexts, wf_error *err) {
  const uint64_t count = search->tokens.size;
  int bits = 1;
  while (count * 2 > (uint64_t)1 << bits) bits++;
  uint32_t *slots = wf__calloc((uint64_t)1 << bits, sizeof *slots);
  bool *stays = wf__calloc(count, sizeof *stays);
  wf_status status = slots != NULL && stays != NULL
                         ? WF_OK
                         : wf__fail_memory(err, sizeof *slots << bits, "tokens");
  const uint64_t kept =
      status == WF_OK ? choose_tokens(search, old_contexts, slots, bits, stays) : count;
  if (kept < count && search->died)
    keep_dead_tokens(search, stays);
  else if (kept < count)
    status = keep_tokens(search, stays, err);
  free(slots);
  free(stays);
  return status;
}

static wf_status set_scorer(void *opaque, void *opaque_channel, const wf_scorer *scorer,
                            const wf_word *words, size_t num_words, wf_error *err) {
  wf__channel *channel = opaque_channel;
  if (!channel->begun) return wf__scoring_set(&channel->scoring, scorer, err);
  if (scorer == channel->scoring.scorer) return WF_OK;
  wf__search *search;
  WF__TRY(wf__cpu_search(opaque, 0, &search, err));
  wf_status status = load(search, channel, err);
  const uint64_t count = search->tokens.size;
  uint64_t *old_contexts = wf__calloc(count, sizeof *old_contexts);
  if (status == WF_OK && old_contexts == NULL)
    status = wf__fail_memory(err, count * sizeof *old_contexts, "a scorer's contexts");
  if (status == WF_OK) {
    for (uint64_t i = 0; i < count && search->scoring.scorer != NULL; i++)
      old_contexts[i] = wf__search_context(search, i);
    add_pending(search, 1);
    status = wf__search_set_scorer(search, scorer, err);
  }
  if (status == WF_OK) status = restart_scorer(search, words, num_words, err);
  if (status == WF_OK) add_pending(search, -1);
  if (status == WF_OK) status = recombine(search, old_contexts, err);
  free(old_contexts);
  return store(search, channel, status, err);
}

/* --- a batch of chunks ------------------------------------------------------------------- */

struct step {
  struct wf__cpu_backend *self;
  const wf__batch *batch;
  void *const *channels;
  const uint32_t *order; /* longest first */
  int32_t num_columns;   /* that chunks need */
  wf__consume_fn *consume;
  atomic_int failed; /* 0, WF_ERR_MEMORY or WF_ERR_CANCELLED */
  wf_error *errors;  /* [pool size], scratch of each worker */
};

static wf_status consume(struct wf__cpu_backend *self, void *opaque, const wf_scores *chunk,
                         int worker, wf_error *err) {
  wf__search *search;
  WF__TRY(wf__cpu_search(self, worker, &search, err));
  wf__channel *channel = opaque;
  wf_status status = load(search, channel, err);
  if (status == WF_OK) status = wf__search_advance(search, chunk, err);
  bool full = search->trace.records.size > 2 * search->trace.live + WF__CHANNEL_COLLECT;
  if (status == WF_OK && full) status = collect(search, err);
  return store(search, channel, status, err);
}

static void run_item(void *user, uint64_t item, int worker) {
  struct step *step = user;
  uint32_t i = step->order[item];
  wf_result *result = step->batch->results[i];
  wf_error *err = &step->errors[worker];
  const wf_scores *chunk = &step->batch->scores[i];
  wf_status status = WF_OK;
  if (chunk->on_device)
    status =
        wf__fail(err, WF_ERR_ARGUMENT, "scores in device memory need a decoder on that device");
  else if (!wf__cpu_check_values(chunk, step->num_columns, result->num_frames, result))
    return;
  if (result->status != WF_OK) return; /* failed before */
  if (status == WF_OK) status = step->consume(step->self, step->channels[i], chunk, worker, err);
  if (status == WF_OK) return;
  wf__result_fail(result, status, err);
  if (status == WF_ERR_MEMORY || status == WF_ERR_CANCELLED)
    atomic_store(&step->failed, (int)status);
}

wf_status wf__cpu_advance(struct wf__cpu_backend *self, const wf__batch *batch,
                          void *const *channels, int32_t num_columns, wf__consume_fn *consume_chunk,
                          wf_error *err) {
  uint32_t *order = wf__alloc(batch->count, sizeof *order), count = 0;
  wf_error *errors = wf__calloc((uint64_t)wf__pool_size(self->pool), sizeof *errors);
  wf_status status = order != NULL && errors != NULL
                         ? wf__longest_first(batch, order, &count, err)
                         : wf__fail_memory(err, batch->count * 4, "a batch");
  if (status == WF_OK) {
    struct step step = {.self = self,
                        .batch = batch,
                        .channels = channels,
                        .order = order,
                        .num_columns = num_columns,
                        .consume = consume_chunk,
                        .errors = errors};
    atomic_init(&step.failed, 0);
    wf__cpu_run(self, count, run_item, &step);
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
  struct wf__cpu_backend *self = opaque;
  return wf__cpu_advance(self, batch, channels, self->graph->min_columns, consume, err);
}

/* --- paths, partials and lattices -------------------------------------------------------- */

/* Copies the numbers of the frames that the part reads, and of the next one. */
wf_status wf__channel_take_frames(const wf__path *from, uint64_t num_read, wf__path *out,
                                  wf_error *err) {
  uint64_t count = num_read < from->frames.size ? num_read + 1 : from->frames.size;
  WF__TRY(wf__vec_grow(&out->frames, count, "a path", err));
  if (count > 0) memcpy(out->frames.data, from->frames.data, count * sizeof *from->frames.data);
  out->frames.size = count;
  return WF_OK;
}

wf_status wf__channel_take_committed(wf__channel *channel, wf__path *out, wf_error *err) {
  wf__path_clear(out);
  wf__vec_swap(&out->arcs, &channel->committed.arcs);
  wf__vec_swap(&out->loglikes, &channel->committed.loglikes);
  wf__path_clear(&channel->committed);
  channel->num_summed = 0;
  wf__path *path = &channel->path;
  if (path->frames.size == 0) return WF_OK;
  uint64_t num_read = out->loglikes.size;
  WF__TRY(wf__channel_take_frames(path, num_read, out, err));
  memmove(path->frames.data, path->frames.data + num_read,
          (path->frames.size - num_read) * sizeof *path->frames.data);
  path->frames.size -= num_read;
  return WF_OK;
}

static wf__pool *pool(void *self) { return ((struct wf__cpu_backend *)self)->pool; }

static wf_status prepare(void *self, void *channel, wf_error *err) { return WF_OK; }

static wf_status committed(void *opaque, void *opaque_channel, int thread, bool now, wf__path *out,
                           wf_error *err) {
  wf__channel *channel = opaque_channel;
  if (now && channel->begun) {
    wf__search *search;
    WF__TRY(wf__cpu_search(opaque, thread, &search, err));
    wf_status status = load(search, channel, err);
    if (status == WF_OK) status = collect(search, err);
    WF__TRY(store(search, channel, status, err));
  }
  return wf__channel_take_committed(channel, out, err);
}

static wf_status finish(wf__search *search, bool goes_on, wf__path *out, wf_error *err) {
  uint32_t flags = search->path.flags;
  search->goes_on = goes_on;
  WF__TRY(wf__search_finish(search, NULL, err));
  wf__path_clear(out);
  wf__vec_swap(&out->arcs, &search->path.arcs);
  wf__vec_swap(&out->loglikes, &search->path.loglikes);
  WF__TRY(wf__channel_take_frames(&search->path, search->path.frames.size, out, err));
  wf__copy_statistics(&search->path, out);
  out->final_cost = search->path.final_cost;
  out->scorer_cost = search->path.scorer_cost;
  out->relative_cost = search->path.relative_cost;
  if (goes_on) search->path.flags = flags;
  return WF_OK;
}

static wf_status path(void *opaque, void *opaque_channel, int thread, bool goes_on, wf__path *out,
                      wf_error *err) {
  wf__search *search;
  WF__TRY(wf__cpu_search(opaque, thread, &search, err));
  wf_status status = load(search, opaque_channel, err);
  if (status == WF_OK) status = finish(search, goes_on, out, err);
  return store(search, opaque_channel, status, err);
}

/* Making the lattice destroys the history, so while the stream continues it is made from a copy. */
static wf_status partial_lattice(wf__search *search, wf_lattice **out, wf_error *err) {
  uint32_t flags = search->path.flags;
  wf__history copy = {0}, original = search->history;
  wf_status status = wf__history_copy(&original, &copy, err);
  if (status == WF_OK) {
    search->history = copy;
    search->path.flags |= WF_RESULT_NOT_FINAL;
    status = wf__search_lattice(search, NULL, out, err);
    search->path.flags = flags;
    copy = search->history;
    search->history = original;
  }
  wf__history_free(&copy);
  return status;
}

static wf_status lattice(void *opaque, void *opaque_channel, bool goes_on, wf_lattice **out,
                         wf_error *err) {
  wf__search *search;
  WF__TRY(wf__cpu_search(opaque, 0, &search, err));
  wf_status status = load(search, opaque_channel, err);
  if (status == WF_OK)
    status =
        goes_on ? partial_lattice(search, out, err) : wf__search_lattice(search, NULL, out, err);
  return store(search, opaque_channel, status, err);
}

static wf_status commit_lattice(void *opaque, void *opaque_channel, wf_lattice **out,
                                wf_error *err) {
  wf__search *search;
  if (!((const wf__channel *)opaque_channel)->begun) return WF_OK;
  WF__TRY(wf__cpu_search(opaque, 0, &search, err));
  wf_status status = load(search, opaque_channel, err);
  if (status == WF_OK)
    status = wf__history_commit(&search->history, search->graph, &search->options, &search->scoring,
                                out, err);
  return store(search, opaque_channel, status, err);
}

const wf__stream_backend wf__cpu_streams = {.open = channel_open,
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
