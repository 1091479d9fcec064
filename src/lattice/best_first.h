/* best_first.h - a priority queue of numbers in an order given by the user: a binary heap.
 *
 * `before(user, a, b)` must be a strict total order; else equal entries come in an unspecified,
 * but deterministic, order. */
#ifndef WF_LATTICE_BEST_FIRST_H
#define WF_LATTICE_BEST_FIRST_H

#include "base/memory.h"

typedef struct wf__queued {
  int64_t cost;
  uint32_t id;
} wf__queued;

typedef struct wf__queue {
  WF__VEC(wf__queued) heap;
} wf__queue;

typedef bool wf__before_fn(const void *user, wf__queued a, wf__queued b);

static inline wf_status wf__queue_put(wf__queue *queue, wf__queued item, wf__before_fn *before,
                                      const void *user, wf_error *err) {
  WF__TRY(wf__vec_grow(&queue->heap, 1, "a queue", err));
  wf__queued *heap = queue->heap.data;
  uint64_t at = queue->heap.size++;
  for (; at > 0 && before(user, item, heap[(at - 1) / 2]); at = (at - 1) / 2)
    heap[at] = heap[(at - 1) / 2];
  heap[at] = item;
  return WF_OK;
}

/* The queue must not be empty. */
static inline wf__queued wf__queue_take(wf__queue *queue, wf__before_fn *before, const void *user) {
  wf__queued *heap = queue->heap.data, first = heap[0], item = heap[--queue->heap.size];
  uint64_t size = queue->heap.size, at = 0;
  for (uint64_t child; (child = 2 * at + 1) < size; at = child) {
    if (child + 1 < size && before(user, heap[child + 1], heap[child])) child++;
    if (!before(user, heap[child], item)) break;
    heap[at] = heap[child];
  }
  if (size > 0) heap[at] = item;
  return first;
}

#endif
