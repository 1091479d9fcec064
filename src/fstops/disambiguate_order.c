/* disambiguate_order.c - the arcs of a label by the head of their next state (disambiguate.h).
 * Acceptors have them in this order; arcs of one label with different outputs may not be. */
#include "fstops/disambiguate.h"

struct place {
  int32_t label;
  uint32_t head;
  uint64_t arc;
};

static int compare_places(const void *x, const void *y) {
  const struct place *a = x, *b = y;
  if (a->label != b->label) return a->label < b->label ? -1 : 1;
  if (a->head != b->head) return a->head < b->head ? -1 : 1;
  return (a->arc > b->arc) - (a->arc < b->arc);
}

static bool in_order(const wf__arc_order *o, uint64_t num_states) {
  for (uint64_t s = 0; s < num_states; s++)
    for (uint64_t i = o->arc_off[s] + 1; i < o->arc_off[s + 1]; i++)
      if (o->arcs[i].ilabel == o->arcs[i - 1].ilabel && wf__head_at(o, i) < wf__head_at(o, i - 1))
        return false;
  return true;
}

wf_status wf__arc_order_find(wf__arc_order *o, uint64_t num_states, wf_error *err) {
  o->order = NULL;
  if (in_order(o, num_states)) return WF_OK;
  uint64_t most = 0, m = o->arc_off[num_states];
  for (uint64_t s = 0; s < num_states; s++)
    if (o->arc_off[s + 1] - o->arc_off[s] > most) most = o->arc_off[s + 1] - o->arc_off[s];
  struct place *places = wf__alloc(most, sizeof *places);
  uint64_t *order = wf__alloc(m, sizeof *order);
  if (places == NULL || order == NULL) {
    free(places);
    free(order);
    return wf__fail_memory(err, m * sizeof *order + most * sizeof *places, "order of arcs");
  }
  for (uint64_t s = 0; s < num_states; s++) {
    uint64_t first = o->arc_off[s], size = o->arc_off[s + 1] - first;
    for (uint64_t i = 0; i < size; i++)
      places[i] = (struct place){o->arcs[first + i].ilabel, wf__head_at(o, first + i), first + i};
    if (size > 1) qsort(places, size, sizeof *places, compare_places);
    for (uint64_t i = 0; i < size; i++) order[first + i] = places[i].arc;
  }
  free(places);
  o->order = order;
  return WF_OK;
}
