/* compose_states.h - numbers the states of a composition, which are triples (state of a, state of
 * b, filter state), in order of discovery.
 *
 *   pairs   id -> triple, packed into 64 bits; also the queue of the breadth-first search
 *   table   triple -> id. First a hash table with open addressing, 8 bytes per slot (the triple
 *           itself is in `pairs`). When it would outgrow a plain array over all triples, the array
 *           replaces it, which happens early in dense compositions.
 *
 * Nearly every look-up misses the cache, so wf__compose_intern_arcs prefetches: first the slots
 * of triples far ahead, then the triples of nearer ones. */
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
  struct wf__compose_slot *slots; /* 2^bits slots; NULL once `array` is used */
  int bits;
  uint32_t *array; /* id + 1; 0: unknown triple */
  uint64_t num_b, num_cells;
  uint32_t num_filters;
  uint64_t max_states;
} wf__compose_states;

wf_status wf__compose_states_init(wf__compose_states *states, uint64_t num_a, uint64_t num_b,
                                  uint32_t num_filters, uint64_t max_states, wf_error *err);
void wf__compose_states_free(wf__compose_states *states);
wf_status wf__compose_states_grow(wf__compose_states *states, wf_error *err);
wf_status wf__compose_states_full(const wf__compose_states *states, wf_error *err);

static inline uint64_t wf__compose_states_bytes(const wf__compose_states *states) {
  return (states->array != NULL ? states->num_cells * sizeof *states->array
                                : sizeof *states->slots << states->bits) +
         states->pairs.cap * sizeof *states->pairs.data;
}

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

/* Prefetches the triple that wf__compose_intern will compare with, if the first slot holds it. */
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

/* Sets `*id` to the id of a triple. A new triple gets the next id. */
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

/* Sets the targets of `count` arcs to the ids of their triples, with prefetching. */
static inline wf_status wf__compose_intern_arcs(wf__compose_states *states, const uint64_t *triples,
                                                wf_arc *arcs, uint64_t count, wf_error *err) {
  enum { AHEAD = 16 };
  for (uint64_t i = 0; i < count; i++) {
    if (i + 2 * AHEAD < count) wf__compose_prefetch(states, triples[i + 2 * AHEAD]);
    if (i + AHEAD < count) wf__compose_prefetch_pair(states, triples[i + AHEAD]);
    WF__TRY(wf__compose_intern(states, triples[i], &arcs[i].nextstate, err));
  }
  return WF_OK;
}

#endif
