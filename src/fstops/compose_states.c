/* compose_states.c - growing the table of a composition's states. */
#include "fstops/compose_states.h"

#include <string.h>

enum { FIRST_BITS = 12, AHEAD = 16 };
#define FREE_ARRAY_CELLS ((uint64_t)1 << 20) /* up to this size, the array is used at once */

static wf_status use_array(wf__compose_states *states, wf_error *err) {
  states->array = wf__calloc(states->num_cells, sizeof *states->array);
  if (states->array == NULL)
    return wf__fail_memory(err, states->num_cells * sizeof *states->array, "a table of states");
  for (uint64_t id = 0; id < states->pairs.size; id++)
    states->array[wf__compose_cell(states, states->pairs.data[id])] = (uint32_t)id + 1;
  free(states->slots);
  states->slots = NULL;
  return WF_OK;
}

static wf_status use_slots(wf__compose_states *states, int bits, wf_error *err) {
  uint64_t num_slots = (uint64_t)1 << bits, mask = num_slots - 1, count = states->pairs.size;
  free(states->slots); /* rebuilt below from `pairs` */
  states->slots = wf__alloc(num_slots, sizeof *states->slots);
  if (states->slots == NULL)
    return wf__fail_memory(err, num_slots * sizeof *states->slots, "a table of states");
  memset(states->slots, 0xff, num_slots * sizeof *states->slots);
  states->bits = bits;
  for (uint64_t id = 0; id < count; id++) {
    if (id + AHEAD < count) wf__compose_prefetch(states, states->pairs.data[id + AHEAD]);
    uint64_t hash = wf__mix64(states->pairs.data[id]), at = hash & mask;
    while (states->slots[at].id != WF__COMPOSE_NO_ID) at = (at + 1) & mask;
    states->slots[at] =
        (struct wf__compose_slot){.tag = (uint32_t)(hash >> 32), .id = (uint32_t)id};
  }
  return WF_OK;
}

wf_status wf__compose_states_init(wf__compose_states *states, uint64_t num_a, uint64_t num_b,
                                  uint32_t num_filters, uint64_t max_states, wf_error *err) {
  *states =
      (wf__compose_states){.num_b = num_b, .num_filters = num_filters, .max_states = max_states};
  states->num_cells = num_a * num_filters <= UINT64_MAX / 8 / (num_b + 1)
                          ? num_a * num_filters * num_b
                          : UINT64_MAX;
  return states->num_cells <= FREE_ARRAY_CELLS ? use_array(states, err)
                                               : use_slots(states, FIRST_BITS, err);
}

wf_status wf__compose_states_grow(wf__compose_states *states, wf_error *err) {
  uint64_t bytes = sizeof *states->slots << (states->bits + 1);
  return states->num_cells <= bytes / sizeof *states->array
             ? use_array(states, err)
             : use_slots(states, states->bits + 1, err);
}

wf_status wf__compose_states_full(const wf__compose_states *states, wf_error *err) {
  return wf__fail(err, WF_ERR_LIMIT, "the composition has more than %llu states (max_states)",
                  (unsigned long long)states->max_states);
}

void wf__compose_states_free(wf__compose_states *states) {
  wf__vec_free(&states->pairs);
  free(states->slots);
  free(states->array);
  *states = (wf__compose_states){0};
}
