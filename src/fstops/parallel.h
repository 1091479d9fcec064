/* parallel.h - how operations share work among threads.
 *
 * States are processed in pieces of WF__PIECE_STATES, each by one thread at a time. The bits of a
 * piece in a bitmap are whole words that no other piece uses. The result of a piece does not depend
 * on the thread, and results are combined in the order of pieces. So results do not depend on the
 * number of threads. */
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

/* Creates the thread pool of an operation. It has only one thread if the fst is too small for more
 * to be faster. */
static inline wf_status wf__pool_for_fst(int32_t num_threads, const wf_fst_view *view,
                                         wf__pool **out, wf_error *err) {
  if (num_threads == 0)
    num_threads = wf__num_cpus() < WF__AUTO_THREADS ? wf__num_cpus() : WF__AUTO_THREADS;
  return wf__pool_create(view->num_arcs < WF__SERIAL_ARCS ? 1 : num_threads, out, err);
}

#endif
