/* channel.h - the state of a stream between chunks: a channel. Streams on a GPU use it, too,
 * except for the tokens.
 *
 *   tokens           {cost, state, source}   of the newest frame
 *   trace, history   their back-pointers and links
 *   path             statistics, flags, numbers of frames
 *   committed        arcs cut off the trace, until they are read */
#ifndef WF_SEARCH_FRAME_CHANNEL_H
#define WF_SEARCH_FRAME_CHANNEL_H

#include "search/frame/search.h"

enum {
  WF__CHANNEL_COLLECT = 8192
}; /* the trace is collected when it has this many records more than twice the live ones: few enough
      for thousands of channels */

typedef struct wf__saved_token {
  float cost;
  uint32_t state;
  uint32_t source; /* after dying: number of its record among those of the last frame */
} wf__saved_token;

typedef struct wf__channel {
  wf__stream_state stream;
  WF__VEC(wf__saved_token) tokens;
  wf__trace trace; /* without scratch */
  uint64_t trace_base;
  wf__history history; /* without scratch */
  wf__path path;       /* statistics, flags and frames only; its arcs and loglikes are not used */
  wf__path committed;
  uint64_t num_summed; /* arcs of `committed` that are in committed_sum */
  wf__score_sum committed_sum;
  wf__scoring scoring;             /* without cache */
  WF__VEC(uint64_t) contexts;      /* of the tokens */
  WF__VEC(uint64_t) past_contexts; /* after dying: of all tokens of the last frame */
  bool after_blank, died;
} wf__channel;

/* Frees memory that a long chunk took and that the stream will not need soon. */
#define wf__vec_shrink(vec)                                                                    \
  do {                                                                                         \
    uint64_t wf__cap = (vec)->size + (vec)->size / 2 + 64;                                     \
    void *wf__data =                                                                           \
        (vec)->cap > 2 * wf__cap ? realloc((vec)->data, wf__cap * sizeof *(vec)->data) : NULL; \
    if (wf__data != NULL) (vec)->data = wf__data, (vec)->cap = wf__cap;                        \
  } while (0)

/* Exchanges everything except scratch and beam, and drops endings. Used to move a stream's history
 * to a thread's search and back. */
void wf__history_exchange(wf__history *a, wf__history *b);
void wf__history_shrink(wf__history *history);
/* Makes an empty channel. */
void wf__channel_init(wf__channel *channel, const wf__searcher_ops *ops, const wf_graph *graph);

/* Operations of wf__frame_searcher. */
wf_status wf__channel_open(const wf__search_setup *setup, wf__stream_state **out, wf_error *err);
void wf__channel_close(wf__stream_state *state);
void wf__channel_reset(wf__stream_state *state);
uint64_t wf__channel_bytes(const wf__stream_state *state);
wf_status wf__channel_set_scorer(wf__stream_state *state, const wf_scorer *scorer, wf_error *err);
wf_status wf__channel_enter(const wf__search_setup *setup, wf__stream_state *state,
                            wf__searcher *threads, wf__searcher **out, wf_error *err);
wf_status wf__channel_leave(wf__stream_state *state, wf__searcher *searcher, wf_status status,
                            wf_error *err);
wf_status wf__channel_collect(wf__searcher *searcher, bool now, wf_error *err);
wf_status wf__channel_take_committed(wf__stream_state *state, wf__path *out, wf_error *err);
wf_status wf__channel_partial_lattice(wf__searcher *searcher, wf_lattice **out, wf_error *err);
/* channel_scorer.c: the same. */
wf_status wf__channel_replace_scorer(wf__searcher *searcher, const wf_scorer *scorer,
                                     const wf_word *words, size_t num_words, wf_error *err);
/* Recomputes the contexts of the tokens from the words that lead to them. */
wf_status wf__channel_find_contexts(wf__searcher *searcher, wf_error *err);

#endif
