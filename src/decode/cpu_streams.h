/* cpu_streams.h - the state of a stream between chunks: a channel. Streams on a GPU use it, too,
 * except for the tokens.
 *
 *   tokens           {cost, state, source}   of the newest frame
 *   trace, history   their back-pointers and links
 *   path             statistics, flags, numbers of frames
 *   committed        arcs cut off the trace, until they are read */
#ifndef WF_DECODE_CPU_STREAMS_H
#define WF_DECODE_CPU_STREAMS_H

#include "decode/cpu_backend.h"

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
  bool begun;
  const wf_graph *graph;
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
/* Consumes a chunk with a channel, in a thread of the pool. */
typedef wf_status wf__consume_fn(struct wf__cpu_backend *self, void *channel,
                                 const wf_scores *chunk, int worker, wf_error *err);
/* The operation `advance` of the stream backends. */
wf_status wf__cpu_advance(struct wf__cpu_backend *self, const wf__batch *batch,
                          void *const *channels, int32_t num_columns, wf__consume_fn *consume_chunk,
                          wf_error *err);
/* Copies flags and counts, but not the path. */
void wf__copy_statistics(const wf__path *from, wf__path *to);
/* Copies the numbers of the first num_read frames and of the next one. */
wf_status wf__channel_take_frames(const wf__path *from, uint64_t num_read, wf__path *out,
                                  wf_error *err);
/* Recomputes the contexts of the tokens from the words that lead to them. `self`: the CPU backend.
 */
wf_status wf__channel_find_contexts(void *self, wf__channel *channel, wf_error *err);
/* Moves the committed prefix into `out`, which must be empty. */
wf_status wf__channel_take_committed(wf__channel *channel, wf__path *out, wf_error *err);

#endif
