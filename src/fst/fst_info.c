/* fst_info.c - counts an fst's labels, epsilons, final, accessible and coaccessible states. */
#include <string.h>

#include "base/config.h"
#include "fst/fst.h"

enum { ACCESSIBLE = 1, COACCESSIBLE = 2 };

/* Breadth-first search: marks the states reachable from the first `count` states of `queue`, over
 * arcs whose targets are targets[off[s] .. off[s + 1]), `stride` 32-bit words apart. */
static void spread(const uint64_t *off, const uint32_t *targets, size_t stride, uint8_t mark,
                   uint8_t *marks, uint32_t *queue, uint64_t count) {
  for (uint64_t head = 0; head < count; head++) {
    for (uint64_t i = off[queue[head]]; i < off[queue[head] + 1]; i++) {
      uint32_t next = targets[i * stride];
      if (marks[next] & mark) continue;
      marks[next] |= mark;
      queue[count++] = next;
    }
  }
}

/* Reverses the arcs: the sources of the arcs into s are from[off[s] .. off[s + 1]). On entry, `off`
 * must hold n + 2 zeros. */
static void reverse_arcs(const wf_fst_view *view, uint64_t *off, uint32_t *from) {
  for (uint64_t i = 0; i < view->num_arcs; i++) off[view->arcs[i].nextstate + 2]++;
  for (uint64_t s = 0; s < view->num_states; s++) off[s + 2] += off[s + 1];
  for (uint64_t s = 0; s < view->num_states; s++)
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      from[off[view->arcs[i].nextstate + 1]++] = (uint32_t)s;
}

static wf_status count_reachable(const wf_fst_view *view, wf_fst_info *info, wf_error *err) {
  uint64_t n = view->num_states, m = view->num_arcs, queued = 0;
  if (n == 0) return WF_OK;
  uint8_t *marks = wf__calloc(n, 1);
  uint64_t *off = wf__calloc(n + 2, sizeof *off);
  uint32_t *queue = wf__alloc(n, sizeof *queue), *from = wf__alloc(m, sizeof *from);
  bool fine = marks != NULL && off != NULL && queue != NULL && from != NULL;
  if (fine) {
    queue[0] = (uint32_t)view->start;
    marks[view->start] = ACCESSIBLE;
    spread(view->arc_off, &view->arcs[0].nextstate, sizeof(wf_arc) / sizeof(uint32_t), ACCESSIBLE,
           marks, queue, 1);
    reverse_arcs(view, off, from);
    for (uint64_t s = 0; s < n; s++) {
      if (!wf__is_final(view, s)) continue;
      marks[s] |= COACCESSIBLE;
      queue[queued++] = (uint32_t)s;
    }
    spread(off, from, 1, COACCESSIBLE, marks, queue, queued);
    for (uint64_t s = 0; s < n; s++) {
      info->num_accessible += (marks[s] & ACCESSIBLE) != 0;
      info->num_coaccessible += (marks[s] & COACCESSIBLE) != 0;
      info->num_connected += marks[s] == (ACCESSIBLE | COACCESSIBLE);
    }
  }
  free(marks);
  free(off);
  free(queue);
  free(from);
  return fine ? WF_OK : wf__fail_memory(err, n * 13 + m * 4, "counting states");
}

wf_status wf_fst_get_info(const wf_fst *fst, wf_fst_info *info, wf_error *err) {
  wf_fst_view view = wf_fst_get_view(fst);
  WF__TRY(wf__struct_check("wf_fst_info", info, sizeof *info, err));
  wf_fst_info own = {0};
  for (uint64_t s = 0; s < view.num_states; s++) {
    uint64_t count = view.arc_off[s + 1] - view.arc_off[s];
    own.num_final += wf__is_final(&view, s);
    if (count > own.max_arcs) own.max_arcs = count;
  }
  for (uint64_t i = 0; i < view.num_arcs; i++) {
    const wf_arc *arc = &view.arcs[i];
    own.num_iepsilons += arc->ilabel == 0;
    own.num_oepsilons += arc->olabel == 0;
    own.num_epsilons += (arc->ilabel | arc->olabel) == 0;
    if (arc->ilabel > own.max_ilabel) own.max_ilabel = arc->ilabel;
    if (arc->olabel > own.max_olabel) own.max_olabel = arc->olabel;
  }
  WF__TRY(count_reachable(&view, &own, err));
  wf__struct_give(&own, sizeof own, info);
  return WF_OK;
}
