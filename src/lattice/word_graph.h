/* word_graph.h - a lattice pruned to the beam, in the layout of determinization: arcs without
 * words are separate, and costs include the best path to the end.
 *
 *   states [num_states + 1]   those of the lattice, in its order, without what is beyond the beam
 *                             or in the middle of a chain
 *   hops   [states[s].hops, states[s + 1].hops)      arcs of s without a word, in the lattice's
 *          order
 *   exits  [states[s].exits, states[s + 1].exits)    arcs of s with one
 *
 * The cost of a hop or an exit is the cost of the best path through it above the best path from
 * its state. So their sum along a path, plus the best cost from its beginning, is the cost of
 * the best path that continues it. */
#ifndef WF_LATTICE_WORD_GRAPH_H
#define WF_LATTICE_WORD_GRAPH_H

#include "base/map64.h"
#include "lattice/exact_lattice.h"

/* Part of an alignment: labels [first, first + count) of the graph. */
typedef struct wf__word_part {
  uint32_t first, count;
} wf__word_part;

typedef struct wf__word_hop {
  int64_t cost;
  uint32_t nextstate;
  int64_t graph;
} wf__word_hop;

typedef struct wf__word_exit {
  int64_t cost, graph;
  uint32_t nextstate;
  int32_t word;
  uint32_t word_number;
  wf__word_part part;
} wf__word_exit;

typedef struct wf__word_end {
  wf__exact_cost cost; /* graph WF__NEVER: not final */
  wf__word_part part;
} wf__word_end;

/* A state, with its data in the current closure. */
typedef struct wf__word_state {
  int64_t cost;  /* of the best path through it and an element; WF__NEVER: not reached */
  int64_t graph; /* graph cost of the best path here */
  uint64_t came; /* (1 + last hop of the best path) << 32 | its source state; or 0 << 32 | string
                    for an element */
  uint32_t hops, exits; /* its first hop and exit */
} wf__word_state;

/* A state of the lattice while the graph is made. */
typedef struct wf__word_place {
  int64_t backward;  /* cost of the best path to the end; WF__NEVER: none */
  int64_t forward;   /* cost of the best path here within the beam; WF__NEVER: none */
  uint32_t num_in;   /* arcs within the beam that lead here */
  uint32_t only_out; /* the only arc that leaves; UINT32_MAX: there is not exactly one, or the state
                        is final */
  uint32_t number;   /* in the graph; UINT32_MAX: none */
  bool after_word;   /* in a chain, after a word */
} wf__word_place;

/* One of 64 bits for each word. */
static inline uint64_t wf__word_bit(int32_t word) {
  return (uint64_t)1 << ((uint32_t)word * 0x9e3779b9U >> 26);
}

/* One exit beyond the last may be read. */
typedef struct wf__word_graph {
  double unit;                    /* nats of cost 1 */
  int64_t width;                  /* width of the beam */
  uint64_t num_states;            /* 0: no path */
  uint64_t first_final;           /* no state before it is final */
  WF__VEC(wf__word_place) places; /* [states of the lattice] */
  WF__VEC(int64_t) backward;      /* [num_states] cost of the best path to the end */
  WF__VEC(wf__word_state) memory; /* of `states` */
  wf__word_state
      *states; /* each in one cache line; the one after the last has the ends of hops and exits */
  WF__VEC(uint64_t)
  words; /* [num_states; during construction: number of the lattice's states] bits of possible next
            words */
  WF__VEC(wf__word_hop) hops;
  WF__VEC(wf__word_part) parts; /* [hops] */
  WF__VEC(wf__word_exit) exits;
  WF__VEC(wf__word_end) ends; /* of states from first_final on */
  wf__label_vec labels;
  wf__map64 numbers; /* of words, from 0 */
} wf__word_graph;

/* Prunes to `beam` nats. `*fits` false: the costs need a unit other than 2^-40, or are invalid,
 * and the lattice must be made exact first. Memory is reused between lattices; zero-initialise
 * it at first. */
wf_status wf__word_graph_from_lattice(wf__word_graph *graph, const wf_lattice *lattice, double beam,
                                      bool *fits, wf_error *err);
wf_status wf__word_graph_from_exact(wf__word_graph *graph, const wf__exact_lattice *lattice,
                                    int64_t width, wf_error *err);
void wf__word_graph_free(wf__word_graph *graph);

#endif
