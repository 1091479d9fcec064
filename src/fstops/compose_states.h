/* compose_states.h - numbers for the states of a composition: triples (state of a, state of b,
 * filter state), in order of discovery.
 *
 *   pairs   id -> triple, packed into 64 bits; it is the breadth-first queue as well
 *   table   triple -> id: open addressing while few triples are known, 8 bytes a slot (the triple
 *           is in `pairs`); a plain array over all of them as soon as the array would be the
 *           smaller of the two, which for dense compositions is soon
 *
 * A lookup misses the cache, nearly always. So callers look ahead: wf__compose_prefetch for a
 * triple far ahead, wf__compose_prefetch_pair for a nearer one, then wf__compose_intern. */
#ifndef WF_FSTOPS_COMPOSE_STATES_H
#define WF_FSTOPS_COMPOSE_STATES_H

#include "fst/fst.h"
#include "math/hash.h"

/* States are below 2^31, so the two bits of the filter state (0, 1, 2) fit above them. */
static inline uint64_t wf__compose_pack(uint32_t a, uint32_t b, uint32_t filter) {
  return (uint64_t)(a | (filter & 1) << 31) << 32 | (b | filter >> 1 << 31);
}
static inline uint32_t wf__compose_a(uint64_t triple) {
  return (uint32_t)(triple >> 32) & 0x7fffffffu;
}
static inline uint32_t wf__compose_b(uint64_t triple) { return (uint32_t)triple & 0x7fffffffu; }
static inline uint32_t wf__compose_filter(uint64_t triple) {
  return (uint32_t)(triple >> 63) | ((uint32_t)triple >> 31) << 1;
}

#define WF__COMPOSE_NO_ID UINT32_MAX

struct wf__compose_slot {
  uint32_t tag; /* the upper half of the triple's hash */
  uint32_t id;  /* WF__COMPOSE_NO_ID: free */
};

typedef struct wf__compose_states {
  WF__VEC(uint64_t) pairs;
  struct wf__compose_slot *slots; /* 2^bits; NULL once `array` is there */
  int bits;
  uint32_t *array; /* id + 1, 0: unknown */
  uint64_t num_b, num_cells;
  uint32_t num_filters;
  uint64_t max_states;
} wf__compose_states;

wf_status wf__compose_states_init(wf__compose_states *states, uint64_t num_a, uint64_t num_b,
                                  uint32_t num_filters, uint64_t max_states, wf_error *err);
void wf__compose_states_free(wf__compose_states *states);
wf_status wf__compose_states_grow(wf__compose_states *states, wf_error *err);
wf_status wf__compose_states_full(const wf__compose_states *states, wf_error *err);

static inline uint64_t wf__compose_cell(const wf__compose_states *states, uint64_t triple) {
  return ((uint64_t)wf__compose_a(triple) * states->num_filters + wf__compose_filter(triple)) *
             states->num_b +
         wf__compose_b(triple);
}

static inline void wf__compose_prefetch(const wf__compose_states *states, uint64_t triple) {
  if (states->array != NULL)
    __builtin_prefetch(&states->array[wf__compose_cell(states, triple)], 1);
  else
    __builtin_prefetch(&states->slots[wf__mix64(triple) & (((uint64_t)1 << states->bits) - 1)], 1);
}

/* What wf__compose_intern will compare the triple with, if it is where it is looked for first. */
static inline void wf__compose_prefetch_pair(const wf__compose_states *states, uint64_t triple) {
  if (states->array != NULL) return;
  uint64_t hash = wf__mix64(triple);
  struct wf__compose_slot slot = states->slots[hash & (((uint64_t)1 << states->bits) - 1)];
  if (slot.id != WF__COMPOSE_NO_ID && slot.tag == hash >> 32)
    __builtin_prefetch(&states->pairs.data[slot.id]);
}

static inline wf_status wf__compose_add(wf__compose_states *states, uint64_t triple,
                                        wf_error *err) {
  if (wf__unlikely(states->pairs.size >= states->max_states))
    return wf__compose_states_full(states, err);
  WF__TRY(wf__vec_grow(&states->pairs, 1, "states", err));
  states->pairs.data[states->pairs.size++] = triple;
  return WF_OK;
}

/* The id of a triple; a new one gets the next. */
static inline wf_status wf__compose_intern(wf__compose_states *states, uint64_t triple,
                                           uint32_t *id, wf_error *err) {
  if (states->array == NULL && wf__unlikely(states->pairs.size * 8 >= (uint64_t)5 << states->bits))
    WF__TRY(wf__compose_states_grow(states, err));
  if (states->array != NULL) {
    uint32_t *cell = &states->array[wf__compose_cell(states, triple)];
    if (*cell == 0) {
      WF__TRY(wf__compose_add(states, triple, err));
      *cell = (uint32_t)states->pairs.size;
    }
    *id = *cell - 1;
    return WF_OK;
  }
  uint64_t mask = ((uint64_t)1 << states->bits) - 1, hash = wf__mix64(triple), at = hash & mask;
  for (;; at = (at + 1) & mask) {
    struct wf__compose_slot slot = states->slots[at];
    *id = slot.id;
    if (slot.id == WF__COMPOSE_NO_ID) break;
    if (slot.tag == hash >> 32 && states->pairs.data[slot.id] == triple) return WF_OK;
  }
  WF__TRY(wf__compose_add(states, triple, err));
  *id = (uint32_t)states->pairs.size - 1;
  states->slots[at] = (struct wf__compose_slot){.tag = (uint32_t)(hash >> 32), .id = *id};
  return WF_OK;
}

#endif
