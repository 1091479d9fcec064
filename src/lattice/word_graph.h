/* word_graph.h - a lattice pruned to the beam, in the layout of determinization: arcs without
 * words are separate, and costs include the best path to the end.
 *
 *   states [num_states + 1]   those of the lattice, in its order, without what is beyond the beam
 *                             or folded into the state before it
 *   hops   [states[s].hops, states[s + 1].hops)      paths from s without a word, in any order
 *   exits  [states[s].exits, states[s + 1].exits)    paths from s with one
 *   labels                                           alignments as lists, last label first
 *
 * A state that only one arc leads to, without a word, is folded: its arcs become hops and exits of
 * the state before it. So closures visit fewer states and no more arcs.
 *
 * The cost of a hop or an exit is the cost of the best path through it above the best path from
 * its state. So their sum along a path, plus the best cost from its beginning, is the cost of
 * the best path that continues it.
 *
 * Among equally good paths to a state, the one whose last hop has the lowest rank wins, and among
 * equally good exits the lowest rank. The rank is the number of an arc of the lattice: of the
 * last arc of the path, or of the first in the chain of states with one arc in and one out that
 * ends with it. */
#ifndef WF_LATTICE_WORD_GRAPH_H
#define WF_LATTICE_WORD_GRAPH_H

#include "base/map64.h"
#include "lattice/exact_lattice.h"

/* A label of an alignment. Number 0 stands for the empty alignment. */
typedef struct wf__word_label {
  uint32_t before; /* number of the label before it */
  int32_t label;
  uint32_t closure; /* number of the last closure in which a path through it became a string */
  uint32_t string;  /* in that closure: the string up to here */
} wf__word_label;

typedef struct wf__word_hop {
  int64_t cost, graph;
  uint64_t key; /* (1 + rank) << 32 | next state */
} wf__word_hop;

typedef struct wf__word_exit {
  int64_t cost, graph;
  uint32_t nextstate, word_number;
  int32_t word;
  uint32_t rank;
  uint32_t alignment; /* its last label */
} wf__word_exit;

typedef struct wf__word_end {
  wf__exact_cost cost; /* graph WF__NEVER: not final */
  uint32_t alignment;
} wf__word_end;

/* A state, with its data in the current closure. */
typedef struct wf__word_state {
  int64_t cost;         /* of the best path through it and an element; WF__NEVER: not reached */
  uint64_t graph;       /* graph cost of the best path here, plus 2^63 */
  uint64_t came;        /* (1 + rank of the last hop of the best path) << 32 | its source state; or
                           0 << 32 | string for an element */
  uint32_t hops, exits; /* its first hop and exit */
} wf__word_state;

/* An arc of the lattice while the graph is made. */
typedef struct wf__word_source_arc {
  int64_t graph, total;
  uint32_t source;
  uint32_t nextstate;  /* UINT32_MAX: beyond the beam */
  int32_t word, label; /* label: 0 if the lattice has alignments of several labels per arc */
} wf__word_source_arc;

/* A state of the lattice while the graph is made. */
typedef struct wf__word_place {
  int64_t backward; /* cost of the best path to the end; WF__NEVER: none */
  int64_t forward;  /* cost of the best path here within the beam; WF__NEVER: none */
  union {           /* first: arcs within the beam, those with words << 32, in and out */
    struct {
      uint64_t in, out;
    };
    struct {
      int64_t cost;  /* of the path here from state `number`, above the best path from there */
      int64_t graph; /* graph cost of that path */
    };
  };
  uint64_t words;     /* bits of possible next words */
  uint32_t alignment; /* of that path */
  uint32_t number;    /* of the state of the graph that has its arcs */
  uint32_t last_in;   /* the last arc within the beam that leads here */
  uint32_t rank;      /* of its arcs; UINT32_MAX: their own numbers */
  uint32_t only_out; /* in a chain after a word: the arc that continues the exit; else UINT32_MAX */
  bool folded;
} wf__word_place;

/* One of 64 bits for each word. */
static inline uint64_t wf__word_bit(int32_t word) {
  return (uint64_t)1 << ((uint32_t)word * 0x9e3779b9U >> 26);
}

typedef struct wf__word_graph {
  double unit;                       /* nats of cost 1 */
  int64_t width;                     /* width of the beam */
  uint64_t num_states;               /* 0: no path */
  uint64_t first_final;              /* no state before it is final */
  WF__VEC(wf__word_place) places;    /* [states of the lattice] */
  WF__VEC(double) sizes;             /* [states of the lattice] largest absolute cost of an arc */
  WF__VEC(uint32_t) sources;         /* [arcs of the lattice] */
  WF__VEC(wf__word_source_arc) arcs; /* [arcs of the lattice] */
  WF__VEC(int64_t) backward;         /* [num_states] cost of the best path to the end */
  WF__VEC(wf__word_state) memory;    /* of `states` */
  wf__word_state
      *states; /* each in one cache line; the one after the last has the ends of hops and exits */
  WF__VEC(uint64_t) words; /* [num_states] bits of possible next words */
  WF__VEC(wf__word_hop) hops;
  WF__VEC(uint32_t) alignments; /* [arcs of the lattice] of the hop of this rank: its last label */
  WF__VEC(wf__word_exit) exits;
  WF__VEC(wf__word_end) ends; /* of states from first_final on */
  WF__VEC(wf__word_label) labels;
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
