/* path_sampler.c - draws random paths arc by arc. Only arcs from which a final state can be reached
 * within the length limit are considered. */
#include "fstops/path_sampler.h"

#include "fstops/best_paths.h"
#include "math/hash.h"

static const uint32_t never = UINT32_MAX;

/* Computes to_final: a breadth-first search from the final states over reversed arcs. */
static wf_status measure(wf__path_sampler *sampler, wf_error *err) {
  const wf_fst_view *view = &sampler->view;
  uint64_t n = view->num_states, tail = 0;
  wf__incoming incoming;
  WF__TRY(wf__incoming_find(view, &incoming, err));
  sampler->to_final = wf__alloc(n, sizeof *sampler->to_final);
  uint32_t *queue = wf__alloc(n, sizeof *queue);
  wf_status status = WF_OK;
  if (sampler->to_final == NULL || queue == NULL) {
    status = wf__fail_memory(err, n * 8, "distances to final states");
    goto done;
  }
  for (uint64_t s = 0; s < n; s++) {
    sampler->to_final[s] = wf__is_final(view, s) ? 0 : never;
    if (sampler->to_final[s] == 0) queue[tail++] = (uint32_t)s;
  }
  for (uint64_t head = 0; head < tail; head++) {
    for (uint64_t i = incoming.off[queue[head]]; i < incoming.off[queue[head] + 1]; i++) {
      uint32_t from = incoming.arcs[i].nextstate;
      if (incoming.arcs[i].weight == INFINITY || sampler->to_final[from] != never) continue;
      sampler->to_final[from] = sampler->to_final[queue[head]] + 1;
      queue[tail++] = from;
    }
  }
done:
  free(queue);
  wf__incoming_free(&incoming);
  return status;
}

wf_status wf__path_sampler_init(wf__path_sampler *sampler, const wf_fst *fst, uint64_t seed,
                                uint32_t max_length, bool by_probability, wf_error *err) {
  *sampler = (wf__path_sampler){.view = wf_fst_get_view(fst),
                                .random = seed,
                                .max_length = max_length,
                                .by_probability = by_probability};
  WF__TRY(measure(sampler, err));
  if (!wf__path_sampler_any(sampler) || sampler->to_final[sampler->view.start] <= max_length)
    return WF_OK;
  uint32_t shortest = sampler->to_final[sampler->view.start];
  wf__path_sampler_free(sampler);
  return wf__fail(err, WF_ERR_ARGUMENT,
                  "no path has at most %u arcs (max_length); the shortest has %u", max_length,
                  shortest);
}

bool wf__path_sampler_any(const wf__path_sampler *sampler) {
  return sampler->view.start >= 0 && sampler->to_final[sampler->view.start] != never;
}

/* A random number in [0, 1), a multiple of 2^-53. */
static double unit(wf__path_sampler *sampler) {
  sampler->random += 0x9e3779b97f4a7c15ULL;
  return (double)(wf__mix64(sampler->random) >> 11) * 0x1p-53;
}

static bool allowed(const wf__path_sampler *sampler, const wf_arc *arc, uint32_t left) {
  return arc->weight != INFINITY && sampler->to_final[arc->nextstate] < left;
}

/* Relative probability of a choice; `least` is the least cost of all choices. */
static double share(const wf__path_sampler *sampler, float cost, float least) {
  return sampler->by_probability ? exp((double)least - (double)cost) : 1;
}

/* Chooses an arc out of s, or UINT64_MAX to stop, if at most `left` more arcs are allowed. There is
 * always a choice. */
static uint64_t choose(wf__path_sampler *sampler, uint32_t s, uint32_t left) {
  const wf_fst_view *view = &sampler->view;
  uint64_t begin = view->arc_off[s], end = view->arc_off[s + 1], last = UINT64_MAX;
  float least = view->final_cost[s];
  for (uint64_t i = begin; i < end; i++)
    if (allowed(sampler, &view->arcs[i], left) && view->arcs[i].weight < least)
      least = view->arcs[i].weight;
  double sum = wf__is_final(view, s) ? share(sampler, view->final_cost[s], least) : 0;
  for (uint64_t i = begin; i < end; i++)
    if (allowed(sampler, &view->arcs[i], left)) sum += share(sampler, view->arcs[i].weight, least);
  double drawn = unit(sampler) * sum;
  if (wf__is_final(view, s)) drawn -= share(sampler, view->final_cost[s], least);
  if (drawn < 0) return UINT64_MAX;
  for (uint64_t i = begin; i < end; i++) {
    if (!allowed(sampler, &view->arcs[i], left)) continue;
    last = i;
    drawn -= share(sampler, view->arcs[i].weight, least);
    if (drawn < 0) return i;
  }
  return last; /* `drawn` is still not below 0 because of rounding */
}

wf_status wf__path_sampler_draw(wf__path_sampler *sampler, wf__sampled_path *path, wf_error *err) {
  path->arcs.size = 0;
  path->end = (uint32_t)sampler->view.start;
  for (uint32_t left = sampler->max_length;; left--) {
    uint64_t arc = choose(sampler, path->end, left);
    if (arc == UINT64_MAX) return WF_OK;
    WF__TRY(wf__vec_push(&path->arcs, arc, "a path", err));
    path->end = sampler->view.arcs[arc].nextstate;
  }
}

void wf__path_sampler_free(wf__path_sampler *sampler) {
  free(sampler->to_final);
  sampler->to_final = NULL;
}
