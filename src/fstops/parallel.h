/* parallel.h - how operations share work among threads.
 *
 * States are worked on in pieces of WF__PIECE_STATES, each by one thread at a time: a piece's bits
 * in a bitmap are whole words, nobody else's. What a piece yields never depends on the thread, and
 * what pieces yield together is put together in the order of pieces, so that results are the same
 * for any number of threads. */
#ifndef WF_FSTOPS_PARALLEL_H
#define WF_FSTOPS_PARALLEL_H

#include "base/threads.h"
#include "warpfst_all.h"

enum { WF__PIECE_STATES = 1 << 15, WF__SERIAL_ARCS = 1 << 16, WF__AUTO_THREADS = 16 };

static inline uint64_t wf__num_pieces(uint64_t num_states) {
  return (num_states + WF__PIECE_STATES - 1) / WF__PIECE_STATES;
}
static inline uint64_t wf__piece_end(uint64_t piece, uint64_t num_states) {
  uint64_t end = (piece + 1) * WF__PIECE_STATES;
  return end < num_states ? end : num_states;
}

/* A pool for an operation on `fst`: of one thread when the fst is too small for more to pay. */
static inline wf_status wf__pool_for_fst(int32_t num_threads, const wf_fst_view *view,
                                         wf__pool **out, wf_error *err) {
  if (num_threads == 0)
    num_threads = wf__num_cpus() < WF__AUTO_THREADS ? wf__num_cpus() : WF__AUTO_THREADS;
  return wf__pool_create(view->num_arcs < WF__SERIAL_ARCS ? 1 : num_threads, out, err);
}

#endif
