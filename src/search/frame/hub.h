/* hub.h - the arcs of a state that many tokens of a frame share, in the order of a lower bound of
 * their costs.
 *
 * In a graph of tokens, every context of the language model has a token on the state that all
 * tokens leave from, with hundreds of arcs. Few of them are within the beam. So the bounds are
 * computed and sorted once a frame, and a token stops at the first that is too high. */
#ifndef WF_SEARCH_FRAME_HUB_H
#define WF_SEARCH_FRAME_HUB_H

#include <float.h>

#include "search/frame/search.h"

enum { HUB_ARCS = 32 }; /* with fewer, the order does not pay */

/* No frame has a hub before a second source has its state. */
static inline void wf__hub_clear(wf__hub *hub) {
  hub->state = UINT32_MAX;
  hub->arcs.size = 0;
  hub->ready = false;
}

/* Sorts the arcs of `run`, that of hub->state. Arcs that this frame's scores make impossible are
 * left out. */
wf_status wf__hub_sort(wf__search *search, wf__arc_run run, wf_error *err);

/* Is a source with HUB_ARCS or more arcs on the hub? The state of the first two sources in a row
 * that share one becomes the hub. */
static inline wf_status wf__hub_find(wf__search *search, wf__arc_run run, bool *out,
                                     wf_error *err) {
  wf__hub *hub = &search->step.hub;
  *out = hub->state == run.owner;
  if (hub->ready) return WF_OK;
  hub->state = run.owner;
  return *out ? wf__hub_sort(search, run, err) : WF_OK;
}

/* The arc adds at least this to the cost of a source, whatever its context. */
static inline float wf__arc_bound(const wf__search *search, bool scored, const wf_arc *arc) {
  const float acoustic = wf__label_cost(search, arc->ilabel),
              word_score = search->base.options.word_score;
  float word = 0;
  if (acoustic > FLT_MAX) return INFINITY;
  if (arc->olabel != 0)
    word = (scored ? wf__scorer_least(search->base.scoring.scorer, arc->olabel) : 0) - word_score;
  const float size = fabsf(arc->weight) + fabsf(acoustic) + fabsf(word) + fabsf(word_score);
  return (arc->weight + acoustic + word) - 2e-6f * size; /* less than any rounding of the sum */
}

/* No arc from a source of this cost on costs less than the returned cost plus the arc's bound. */
static inline float wf__hub_base(float cost) { return cost - 1e-6f * fabsf(cost); }

#endif
