/* order_queue.c - a queue that gives states in a fixed order, round after round. */
#include "fstops/order_queue.h"

#include <stdlib.h>

#include "base/memory.h"

static wf_status make_bits(wf__order_queue *queue, uint64_t count, wf_error *err) {
  do {
    count = (count + 63) / 64;
    uint64_t *bits = wf__calloc(count, sizeof *bits);
    if (bits == NULL) return wf__fail_memory(err, count * sizeof *bits, "a search queue");
    queue->bits[queue->num_levels] = bits;
    queue->words[queue->num_levels++] = count;
  } while (count > 1);
  return WF_OK;
}

wf_status wf__order_queue_init(wf__order_queue *queue, const wf__search_graph *graph,
                               wf_error *err) {
  uint64_t n = graph->num_states, begin;
  bool acyclic;
  *queue = (wf__order_queue){wf__alloc(n, sizeof *queue->order),
                             .rank = wf__alloc(n, sizeof *queue->rank)};
  wf_status status = queue->order == NULL || queue->rank == NULL
                         ? wf__fail_memory(err, n * 8, "a search queue")
                         : make_bits(queue, n, err);
  if (status == WF_OK) status = wf__order_states(graph, true, queue->order, &begin, &acyclic, err);
  if (status != WF_OK) {
    wf__order_queue_free(queue);
    return status;
  }
  for (uint64_t i = 0; i < n; i++) queue->rank[queue->order[i]] = (uint32_t)i;
  return WF_OK;
}

void wf__order_queue_free(wf__order_queue *queue) {
  free(queue->order);
  free(queue->rank);
  for (int k = 0; k < queue->num_levels; k++) free(queue->bits[k]);
  *queue = (wf__order_queue){0};
}

void wf__order_queue_put(wf__order_queue *queue, uint32_t state) {
  if (wf__order_queue_has(queue, state)) return;
  uint64_t at = queue->rank[state];
  for (int k = 0; k < queue->num_levels; k++, at /= 64)
    queue->bits[k][at / 64] |= (uint64_t)1 << (at % 64);
  queue->count++;
}

/* The first rank from `at` on that waits; UINT32_MAX if none does. */
static uint32_t find_from(const wf__order_queue *queue, uint64_t at) {
  for (int k = 0; k < queue->num_levels && at / 64 < queue->words[k]; k++) {
    uint64_t found = queue->bits[k][at / 64] >> (at % 64);
    if (found == 0) { /* a later word of this level, by the level above */
      at = at / 64 + 1;
      continue;
    }
    at += (uint64_t)__builtin_ctzll(found);
    while (k-- > 0) at = at * 64 + (uint64_t)__builtin_ctzll(queue->bits[k][at]);
    return (uint32_t)at;
  }
  return UINT32_MAX;
}

uint32_t wf__order_queue_take(wf__order_queue *queue) {
  uint32_t rank = find_from(queue, queue->next);
  if (rank == UINT32_MAX) rank = find_from(queue, 0);
  uint64_t at = rank;
  for (int k = 0; k < queue->num_levels; k++, at /= 64)
    if ((queue->bits[k][at / 64] &= ~((uint64_t)1 << (at % 64))) != 0) break;
  queue->next = rank + 1;
  queue->count--;
  return queue->order[rank];
}
