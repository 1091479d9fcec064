/* transducer_stream.c - streams with a transducer. An utterance has a search of its own. With GPUs,
 * each stream is on one of them. */
#include <stdlib.h>
#include <string.h>

#include "search/transducer/transducer_shared.h"

enum {
  MOST_FLOATS = 1 << 18, /* of a stream's predictor contexts that are not in use */
  COLLECT = 4096         /* records after which they are collected */
};

struct stream {
  wf__stream_state base;
  wf__transducer_shared *shared;
  wf__transducer_search *search; /* NULL: the utterance has not begun */
  wf_scorer *scorer;             /* of the next utterance; NULL: none */
};

wf_status wf__transducer_stream_open(const wf__search_setup *setup, wf__stream_state **out,
                                     wf_error *err) {
  wf__transducer_shared *shared = setup->shared;
  struct stream *stream = wf__calloc(1, sizeof *stream);
  *out = NULL;
  if (stream == NULL) return wf__fail_memory(err, sizeof *stream, "a stream");
  stream->base.ops = setup->ops;
  stream->base.graph = setup->graph;
  stream->shared = shared;
  for (size_t d = 1; d < shared->num_gpus; d++) /* the GPU with the fewest */
    if (shared->num_streams[d] < shared->num_streams[stream->base.place]) stream->base.place = d;
  shared->num_streams[stream->base.place]++;
  *out = &stream->base;
  return WF_OK;
}

void wf__transducer_stream_reset(wf__stream_state *state) {
  struct stream *stream = (struct stream *)state;
  wf__transducer_shared *shared = stream->shared;
  if (stream->search != NULL && shared->num_gpus > 0)
    wf__gpu_transducers()->group_release(shared->stream_groups[state->place],
                                         &stream->search->predictions);
  if (stream->search != NULL) wf__transducer_search_free(&stream->search->base);
  stream->search = NULL;
  state->begun = false;
}

void wf__transducer_stream_close(wf__stream_state *state) {
  struct stream *stream = (struct stream *)state;
  wf__transducer_stream_reset(state);
  stream->shared->num_streams[state->place]--;
  wf_scorer_free(stream->scorer);
  free(stream);
}

uint64_t wf__transducer_stream_bytes(const wf__stream_state *state) {
  const struct stream *stream = (const struct stream *)state;
  return sizeof *stream +
         (stream->search != NULL ? wf__transducer_search_bytes(stream->search) : 0);
}

wf_status wf__transducer_stream_set_scorer(wf__stream_state *state, const wf_scorer *given,
                                           wf_error *err) {
  struct stream *stream = (struct stream *)state;
  wf_scorer *old = stream->scorer;
  stream->scorer = wf_scorer_ref(wf__scorer_for_transducer(given));
  wf_scorer_free(old);
  return WF_OK;
}

/* --- between chunks ---------------------------------------------------------------------- */

static wf_status begin(const wf__search_setup *setup, struct stream *stream, wf_error *err) {
  wf__searcher *searcher;
  WF__TRY(wf__transducer_search_create(setup, true, &searcher, err));
  stream->search = (wf__transducer_search *)searcher;
  stream->search->predictions.most_floats = MOST_FLOATS;
  wf__searcher_set_graph(searcher, stream->base.graph);
  WF__TRY(wf__searcher_set_scorer(searcher, stream->scorer, err));
  return wf__transducer_search_begin(searcher, err);
}

wf_status wf__transducer_stream_enter(const wf__search_setup *setup, wf__stream_state *state,
                                      wf__searcher *threads, wf__searcher **out, wf_error *err) {
  struct stream *stream = (struct stream *)state;
  *out = NULL;
  if (!state->begun) WF__TRY(begin(setup, stream, err));
  state->begun = true;
  *out = &stream->search->base;
  return WF_OK;
}

/* The scorer may have been replaced. An utterance that could not begin leaves no search. */
wf_status wf__transducer_stream_leave(wf__stream_state *state, wf__searcher *searcher,
                                      wf_status status, wf_error *err) {
  if (searcher == NULL)
    wf__transducer_stream_reset(state);
  else if (status == WF_OK)
    return wf__transducer_stream_set_scorer(state, searcher->scoring.scorer, err);
  return status;
}

wf_status wf__transducer_stream_collect(wf__searcher *searcher, bool now, wf_error *err) {
  wf__transducer_search *search = (wf__transducer_search *)searcher;
  return now || search->records.size > 2 * search->num_live + COLLECT
             ? wf__transducer_collect(search, err)
             : WF_OK;
}

wf_status wf__transducer_stream_take_committed(wf__stream_state *state, wf__path *out,
                                               wf_error *err) {
  wf__transducer_search *search = ((struct stream *)state)->search;
  wf__path_clear(out);
  if (search == NULL) return WF_OK;
  wf__vec_swap(&out->arcs, &search->committed.arcs);
  wf__vec_swap(&out->loglikes, &search->committed.loglikes);
  wf__vec_swap(&out->steps, &search->committed.steps);
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
  const wf__path *path = &search->base.path;
  saved->num_records = search->records.size;
  memcpy(saved->counts, (uint64_t[]){path->num_tokens, path->num_expanded, path->num_arcs},
         sizeof saved->counts);
  saved->waiting = wf__calloc(count, sizeof *saved->waiting);
  saved->links = wf__calloc(count, sizeof *saved->links);
  if (saved->waiting == NULL || saved->links == NULL)
    return wf__fail_memory(err, count * sizeof *saved->waiting, "a lattice");
  WF__TRY(wf__history_copy(&search->base.history, &saved->history, err));
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
  const wf__history history = search->base.history;
  search->base.history = saved->history;
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
  wf__path *path = &search->base.path;
  exchange(search, saved);
  wf__transducer_set_clear(&search->now);
  search->records.size = saved->num_records;
  search->sources.size = 0;
  search->stage = WF__TRANSDUCER_BETWEEN;
  search->base.ended = false;
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

/* Ends the utterance here. */
static wf_status end_anywhere(wf__transducer_search *search, wf_lattice **out, wf_error *err) {
  wf__searcher *base = &search->base;
  search->defers = false; /* no context is evicted */
  wf_status status = wf__transducer_search_go_to_end(base, err);
  search->defers = true;
  base->path.flags |= WF_RESULT_NOT_FINAL;
  base->path.num_decoded = base->ended ? search->num_frames : search->last_frame;
  return status == WF_OK ? wf__transducer_lattice_make(base, NULL, out, err) : status;
}

wf_status wf__transducer_partial_lattice(wf__searcher *searcher, wf_lattice **out, wf_error *err) {
  wf__transducer_search *search = (wf__transducer_search *)searcher;
  struct saved saved = {0};
  wf_status status = save(search, &saved, err);
  if (status == WF_OK) {
    status = end_anywhere(search, out, err);
    restore(search, &saved);
  }
  free_saved(&saved, search->num_waiting);
  return status;
}
