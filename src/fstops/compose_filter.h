/* compose_filter.h - epsilon filters of composition (Allauzen & Mohri 2009, "N-way composition of
 * weighted finite-state transducers").
 *
 * For a pair of states there are four kinds of moves. The filter gives the next filter state for
 * each, or blocks it. That depends on the filter state and on which of the arcs of the two states
 * are epsilons. The searches on the CPU and the GPU share this file. */
#ifndef WF_FSTOPS_COMPOSE_FILTER_H
#define WF_FSTOPS_COMPOSE_FILTER_H

#include <stdbool.h>

#include "math/hash.h" /* WF__HD */
#include "warpfst_fst.h"

enum { WF__BLOCKED = -1 };

/* Which of a state's arcs are epsilons, on the side that is matched. WF__ONLY_EPSILONS: all arcs
 * are epsilons and the state is not final, so waiting there is pointless. WF__DEAD_END: no arcs and
 * not final; some filters treat it like no epsilons, some like only epsilons. */
enum wf__epsilons {
  WF__NO_EPSILONS,
  WF__SOME_EPSILONS,
  WF__ONLY_EPSILONS,
  WF__DEAD_END,
  WF__NUM_EPSILONS
};

static inline WF__HD int wf__epsilons_of(uint64_t num_arcs, uint64_t num_epsilons, bool is_final) {
  if (num_epsilons == 0) return num_arcs == 0 && !is_final ? WF__DEAD_END : WF__NO_EPSILONS;
  return num_epsilons == num_arcs && !is_final ? WF__ONLY_EPSILONS : WF__SOME_EPSILONS;
}

struct wf__moves {
  int a_alone; /* a takes an arc with output epsilon while b waits */
  int b_alone; /* b takes an arc with input epsilon while a waits */
  int both;    /* both take such an arc */
  int label;   /* both take an arc with the same label, which is not epsilon */
};

/* Implements OpenFst's six filters, numbered as the option has them. `both` and `b_alone` do not
 * depend on b. */
static inline WF__HD struct wf__moves wf__moves_of(int filter, int state, int a, int b) {
  struct wf__moves moves = {0, 0, 0, 0};
  switch (filter) {
    case WF_FILTER_AUTO:
    case WF_FILTER_SEQUENCE:
      moves.a_alone = state == 0 ? 0 : WF__BLOCKED;
      moves.b_alone = a >= WF__ONLY_EPSILONS ? WF__BLOCKED : a == WF__NO_EPSILONS ? 0 : 1;
      moves.both = WF__BLOCKED;
      break;
    case WF_FILTER_ALT_SEQUENCE:
      moves.a_alone = b >= WF__ONLY_EPSILONS ? WF__BLOCKED : b == WF__NO_EPSILONS ? 0 : 1;
      moves.b_alone = state == 0 ? 0 : WF__BLOCKED;
      moves.both = WF__BLOCKED;
      break;
    case WF_FILTER_MATCH:
      moves.a_alone = state == 1                             ? 1
                      : state == 2 || b == WF__ONLY_EPSILONS ? WF__BLOCKED
                      : b == WF__SOME_EPSILONS               ? 1
                                                             : 0;
      moves.b_alone = state == 2                             ? 2
                      : state == 1 || a == WF__ONLY_EPSILONS ? WF__BLOCKED
                      : a == WF__SOME_EPSILONS               ? 2
                                                             : 0;
      moves.both = state == 0 ? 0 : WF__BLOCKED;
      break;
    case WF_FILTER_NO_MATCH: moves.both = WF__BLOCKED; break;
    case WF_FILTER_TRIVIAL: break;
    default: moves.a_alone = moves.b_alone = WF__BLOCKED; break;
  }
  return moves;
}

/* Number of filter states that can occur. If one side has no epsilons, there is only one. */
static inline int wf__num_filter_states(int filter, bool a_has_epsilons, bool b_has_epsilons) {
  if (!a_has_epsilons || !b_has_epsilons) return 1;
  if (filter == WF_FILTER_MATCH) return 3;
  return filter == WF_FILTER_AUTO || filter == WF_FILTER_SEQUENCE ||
                 filter == WF_FILTER_ALT_SEQUENCE
             ? 2
             : 1;
}

#endif
