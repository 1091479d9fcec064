/* hub.c - sorts the arcs of a hub by bounds of their costs: a counting sort by ranges of bounds,
 * since a frame has no time for more. */
#include "search/frame/hub.h"

#include <float.h>
#include <string.h>

enum { NUM_RANGES = 64 };
static const float RANGE = 0.5f; /* nats */

static int range_of(float bound, float least) {
  float range = (bound - least) / RANGE; /* -infinity if no least cost of the word is known */
  return range < 0 ? 0 : range < NUM_RANGES - 1 ? (int)range : NUM_RANGES - 1;
}

wf_status wf__hub_sort(wf__search *search, wf__arc_run run, wf_error *err) {
  wf__hub *hub = &search->step.hub;
  uint32_t size = run.end - run.first, first[NUM_RANGES + 1] = {0};
  float least = INFINITY;
  WF__TRY(wf__vec_grow(&hub->bounds, size, "a search", err));
  WF__TRY(wf__vec_grow(&hub->arcs, size, "a search", err));
  for (uint32_t i = 0; i < size; i++) {
    hub->bounds.data[i] = wf__arc_bound(search, true, &run.arcs[i]);
    if (hub->bounds.data[i] < least) least = hub->bounds.data[i];
  }
  if (least == -INFINITY) least = -FLT_MAX;
  for (uint32_t i = 0; i < size; i++)
    if (hub->bounds.data[i] < INFINITY) first[range_of(hub->bounds.data[i], least) + 1]++;
  for (int r = 0; r < NUM_RANGES; r++) first[r + 1] += first[r];
  hub->arcs.size = first[NUM_RANGES];
  for (uint32_t i = 0; i < size; i++) {
    float own = hub->bounds.data[i];
    if (!(own < INFINITY)) continue;
    int range = range_of(own, least);
    float from = range == 0 ? -INFINITY : least + ((float)range - 0.01f) * RANGE;
    hub->arcs.data[first[range]++] = (wf__hub_arc){own, from, i};
  }
  hub->ready = true;
  return WF_OK;
}
