/* order_queue.h - a queue of states for searches that visit states again.
 *
 * The states have a fixed order, that of a depth-first search (wf__order_states), in which all arcs
 * lead forwards except those that close a cycle. The queue goes round: after a state comes the next
 * one that waits, after the last state the first. So distances along paths that use k such arcs are
 * final after k + 1 rounds. First in, first out would take quadratic time where long paths are
 * better than short ones. */
#ifndef WF_FSTOPS_ORDER_QUEUE_H
#define WF_FSTOPS_ORDER_QUEUE_H

#include "fstops/search_graph.h"

enum { WF__QUEUE_LEVELS = 6 }; /* 64^6 > 2^31 states */

typedef struct wf__order_queue {
  uint32_t *order, *rank; /* [num_states] state by rank, rank by state */
  /* bits[0]: a bit for each rank that waits; bits[k + 1]: one for each word of bits[k] that is not
   * 0. words[k]: their number */
  uint64_t *bits[WF__QUEUE_LEVELS], words[WF__QUEUE_LEVELS];
  int num_levels;
  uint32_t next;  /* rank at which the search for the next state begins */
  uint64_t count; /* states that wait */
} wf__order_queue;

/* An empty queue of the states of a graph, in linear time. */
wf_status wf__order_queue_init(wf__order_queue *queue, const wf__search_graph *graph,
                               wf_error *err);
void wf__order_queue_free(wf__order_queue *queue);

/* Begins a new round. The queue must be empty. */
static inline void wf__order_queue_restart(wf__order_queue *queue) { queue->next = 0; }

static inline bool wf__order_queue_has(const wf__order_queue *queue, uint32_t state) {
  return queue->bits[0][queue->rank[state] / 64] >> (queue->rank[state] % 64) & 1;
}
/* Does nothing if the state waits already. */
void wf__order_queue_put(wf__order_queue *queue, uint32_t state);
/* Takes the next state. The queue must not be empty. */
uint32_t wf__order_queue_take(wf__order_queue *queue);

#endif
