/* word_determinizer.h - pruned determinization of a lattice over its words: subsets, and arcs
 * between them.
 *
 *   wf__word_graph --wf__word_determinizer_run--> wf__exact_lattice, deterministic
 *
 * A state of the result is a subset: elements (state of the input; cost; string) sorted by
 * state. Cost and string are residuals: relative to the cost of the cheapest element and to the
 * common prefix of all strings, which the arcs of the result already have. Elements are the
 * targets of arcs with words. States reached from there without a word are found when the subset
 * is expanded (word_closure.c). Subsets are expanded best first, by the exact cost of the best
 * path through them. So each is expanded once, with its least cost from the start, and if memory
 * runs out, only the worst are missing. */
#ifndef WF_LATTICE_WORD_DETERMINIZER_H
#define WF_LATTICE_WORD_DETERMINIZER_H

#include "lattice/best_first.h"
#include "lattice/exact_lattice.h"
#include "lattice/label_strings.h"
#include "lattice/word_graph.h"

typedef struct wf__word_element {
  wf__exact_cost cost;
  uint32_t state, string;
} wf__word_element;

typedef struct wf__word_arc {
  wf__exact_cost cost;
  int32_t word;
  uint32_t string, nextstate;
} wf__word_arc;

typedef struct wf__word_subset {
  uint64_t first_element, first_arc;
  uint32_t num_elements, num_arcs;
  int64_t forward;    /* cost of the best path from the start found so far */
  int64_t onward;     /* cost of the best path to the end */
  wf__exact_cost end; /* graph WF__NEVER: not final */
  uint32_t end_string;
  bool expanded;
} wf__word_subset;

/* A path that leaves the closure by an exit. */
typedef struct wf__way_out {
  int64_t cost;  /* of the best path through it */
  int64_t graph; /* graph cost of the path including the exit */
  uint32_t nextstate, word_number, from, exit;
} wf__way_out;

/* The paths of a subset that have one word. */
typedef struct wf__word_found {
  uint64_t closure; /* number of the last closure that found the word worth an arc; the other fields
                       belong to that closure */
  int64_t through;  /* cost of the best path with the word */
  uint64_t first;   /* first of its paths in `ways`; while they are filled in, the next free one */
  uint32_t num_ways;
  int32_t word;
} wf__word_found;

/* The closure of one subset. The tables are reused for all subsets. */
typedef struct wf__word_closure {
  WF__VEC(uint64_t) waiting;  /* [states / 64 + 1] states to expand, one bit for each */
  WF__VEC(uint32_t) reached;  /* states, for the next closure to clear */
  WF__VEC(wf__way_out) found; /* all paths that leave */
  WF__VEC(uint64_t)
  ways, spare;                   /* grouped by words worth an arc, in the order of `alive`, and
                                    sorted: state << 32 | number in `found` */
  WF__VEC(wf__word_found) words; /* [words of the graph] */
  WF__VEC(uint64_t) alive;       /* word << 32 | number of words worth an arc, sorted */
  WF__VEC(int64_t) stack;        /* of wf__word_closure_string; there is room for every path */
  WF__VEC(uint32_t) kept;        /* those of `found` that are in `ways` */
  uint64_t count;                /* closures so far */
  wf__exact_cost end; /* cost of the best end, from state `end_state`; graph WF__NEVER: none */
  uint32_t end_state;
} wf__word_closure;

/* Hash table of subsets: hash << 32 | subset; UINT64_MAX: free. The size is a power of 2. */
typedef WF__VEC(uint64_t) wf__word_slots;

typedef struct wf__word_determinizer {
  wf__word_graph graph; /* to be filled first */
  int64_t cutoff;
  int bin; /* costs are compared without their lowest `bin` bits, rounded */
  uint64_t max_bytes;
  wf__labels strings;
  wf__word_closure closure;
  WF__VEC(wf__word_element) elements;
  WF__VEC(wf__word_subset) subsets;
  WF__VEC(wf__word_arc) arcs;
  wf__queue queue;
  wf__word_slots slots, spare_slots;
  int64_t reached_cutoff; /* the result is complete up to this cost */
  bool complete;          /* a best path was completed */
} wf__word_determinizer;

/* The outcome of determinization. */
typedef struct wf__word_outcome {
  int64_t width; /* the lattice is complete up to this width */
  bool narrowed;
  uint64_t num_subsets, num_bytes;
} wf__word_outcome;

/* Determinizes `graph`. `delta` is in units of cost. The memory is reused for the next lattice;
 * zero-initialise it at first. */
wf_status wf__word_determinizer_run(wf__word_determinizer *det, int64_t delta, uint64_t max_bytes,
                                    wf__exact_lattice *out, wf__word_outcome *outcome,
                                    wf_error *err);
void wf__word_determinizer_free(wf__word_determinizer *det);
/* Approximate memory in use. */
uint64_t wf__word_determinizer_bytes(const wf__word_determinizer *det);
/* Determinizes one lattice, pruned to `width` of its best path. */
wf_status wf__determinize_words(const wf__exact_lattice *in, int64_t width, int64_t delta,
                                uint64_t max_bytes, wf__exact_lattice *out,
                                wf__word_outcome *outcome, wf_error *err);

/* --- word_closure.c ---------------------------------------------------------------------- */

wf_status wf__word_closure_begin(wf__word_closure *closure, const wf__word_graph *graph,
                                 wf_error *err);
void wf__word_closure_free(wf__word_closure *closure);
/* Finds the states that the elements reach without a word and whose best path to the end costs at
 * most `limit`. Sets the end. Collects the paths by words that have a path of cost `worth` or less,
 * except those beyond the beam of the word's best. */
void wf__word_closure_find(wf__word_determinizer *det, const wf__word_subset *subset, int64_t limit,
                           int64_t worth);
/* The string of the best path to a state that was reached, with an alignment behind it. */
wf_status wf__word_closure_string(wf__word_determinizer *det, uint32_t state, uint32_t alignment,
                                  uint32_t *out, wf_error *err);

#endif
