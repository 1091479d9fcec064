/* cost_heap.h - binary min-heap of (cost, number of arcs, item).
 *
 * The order is total: by cost, then number of arcs, then item (by number, or by a comparison that
 * the user gives). So the results of a search do not depend on how the heap moves its entries.
 * There is no decrease-key: a search pushes an item again, and skips outdated entries when it pops
 * them. */
#ifndef WF_FSTOPS_COST_HEAP_H
#define WF_FSTOPS_COST_HEAP_H

#include "base/memory.h"

typedef struct wf__heap_entry {
  double cost;
  uint32_t hops; /* arcs on the path */
  uint32_t item; /* state or node */
} wf__heap_entry;

typedef struct wf__heap {
  wf__heap_entry *data;
  uint64_t size, cap;
  /* NULL: items are compared as numbers */
  bool (*item_less)(const void *user, uint32_t a, uint32_t b);
  const void *user;
} wf__heap;

static inline bool wf__heap_less(const wf__heap *heap, const wf__heap_entry *a,
                                 const wf__heap_entry *b) {
  if (a->cost != b->cost) return a->cost < b->cost;
  if (a->hops != b->hops) return a->hops < b->hops;
  return heap->item_less != NULL ? heap->item_less(heap->user, a->item, b->item)
                                 : a->item < b->item;
}

static inline wf_status wf__heap_push(wf__heap *heap, wf__heap_entry entry, wf_error *err) {
  WF__TRY(wf__vec_grow(heap, 1, "a search queue", err));
  uint64_t at = heap->size++;
  while (at > 0) {
    uint64_t up = (at - 1) / 2;
    if (!wf__heap_less(heap, &entry, &heap->data[up])) break;
    heap->data[at] = heap->data[up];
    at = up;
  }
  heap->data[at] = entry;
  return WF_OK;
}

/* The heap must not be empty. */
static inline wf__heap_entry wf__heap_pop(wf__heap *heap) {
  wf__heap_entry top = heap->data[0], last = heap->data[--heap->size];
  uint64_t at = 0, size = heap->size;
  for (uint64_t child = 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size && wf__heap_less(heap, &heap->data[child + 1], &heap->data[child]))
      child++;
    if (!wf__heap_less(heap, &heap->data[child], &last)) break;
    heap->data[at] = heap->data[child];
    at = child;
  }
  heap->data[at] = last;
  return top;
}

#endif
