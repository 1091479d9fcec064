/* word_determinizer.h - pruned determinization of an exact lattice over its words: subsets, and what leads from one to the next.
 *
 *   wf__exact_lattice, reduced --wf__determinize_words--> wf__exact_lattice, deterministic
 *
 * A state of the result is a subset: elements (state of the input; cost; string) sorted by state. Cost and string are what the way there still
 * owes: what is beyond the cost of its cheapest element and beyond the labels that all share, which the arcs of the result have already. Elements are where
 * arcs with words lead to; what can be reached from there without a word is worked out when the subset is expanded (word_closure.c). Subsets are expanded best first, by
 * the cost of the best path through them, which is exact: so each is expanded once, with its least cost from the start, and what memory does not suffice for is the worst. */
#ifndef WF_LATTICE_WORD_DETERMINIZER_H
#define WF_LATTICE_WORD_DETERMINIZER_H

#include "lattice/best_first.h"
#include "lattice/exact_lattice.h"
#include "lattice/label_strings.h"

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
  int64_t forward; /* cost of the best way from the start so far */
  int64_t onward;  /* of the best way on */
  wf__exact_cost end; /* graph WF__NEVER: not final */
  uint32_t end_string;
  bool expanded;
} wf__word_subset;

/* A state reached within a closure. */
typedef struct wf__reached {
  wf__exact_cost cost;
  uint32_t state;
  uint32_t string; /* WF__STRING_LATER: that of `from` and the labels of `arc` */
  uint32_t from, arc;
} wf__reached;
#define WF__STRING_LATER UINT32_MAX

/* An arc with a word that leaves the closure. */
typedef struct wf__way_out {
  uint64_t key; /* word << 32 | next state */
  uint32_t from, arc;
} wf__way_out;

/* The closure of one subset; its tables serve all of them. */
typedef struct wf__word_closure {
  WF__VEC(wf__reached) reached;
  WF__VEC(wf__way_out) ways, spare;
  WF__VEC(uint32_t) stack;
  uint32_t *place;  /* [states] place in `reached` + 1; 0: not reached */
  uint64_t *waiting; /* [states] a bit for each state that is to be passed on */
  uint32_t end;      /* place of the best state to end in; UINT32_MAX: none */
} wf__word_closure;

typedef struct wf__word_determinizer {
  const wf__exact_lattice *in;
  int64_t *backward; /* [states] */
  int64_t width, cutoff;
  int bin;           /* costs are compared without their lowest `bin` bits, rounded */
  uint64_t max_bytes;
  wf__labels strings;
  wf__word_closure closure;
  WF__VEC(wf__word_element) elements;
  WF__VEC(wf__word_subset) subsets;
  WF__VEC(wf__word_arc) arcs;
  wf__queue queue;
  uint64_t *slots; /* hash << 32 | subset; UINT64_MAX: free */
  int slot_bits;
  int64_t reached_cutoff; /* everything up to this cost is there */
  bool complete;          /* a best path was completed */
} wf__word_determinizer;

/* What came of it. */
typedef struct wf__word_outcome {
  int64_t width; /* the lattice is complete up to it */
  bool narrowed;
  uint64_t num_subsets, num_bytes;
} wf__word_outcome;

/* `in` is reduced to `width` and has a path. `delta` in units of cost. */
wf_status wf__determinize_words(const wf__exact_lattice *in, int64_t width, int64_t delta, uint64_t max_bytes, wf__exact_lattice *out, wf__word_outcome *outcome, wf_error *err);

/* --- word_closure.c --- */

wf_status wf__word_closure_init(wf__word_closure *closure, uint64_t num_states, wf_error *err);
void wf__word_closure_free(wf__word_closure *closure);
/* Finds what the elements reach without a word at a cost that, with the best way on from there, is at most `limit`: fills reached, end, and ways, sorted. */
wf_status wf__word_closure_find(wf__word_determinizer *det, const wf__word_subset *subset, int64_t limit, wf_error *err);
/* String of a place in `reached`. */
wf_status wf__word_closure_string(wf__word_determinizer *det, uint32_t place, uint32_t *out, wf_error *err);
/* String with labels [first, first + count) of the input behind it. */
wf_status wf__word_append(wf__word_determinizer *det, uint32_t string, uint32_t first, uint32_t count, uint32_t *out, wf_error *err);

#endif
