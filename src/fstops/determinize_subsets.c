/* determinize_subsets.c - the table of distinct subsets: a hash table with open addressing over one
 * pool of elements. No allocation per subset. */
#include <string.h>

#include "fstops/determinize.h"

#define SINGLE 0x80000000u

wf_status wf__det_subsets_init(wf__det_subsets *subsets, uint64_t num_states, double delta,
                               uint64_t max_states, wf_error *err) {
  *subsets =
      (wf__det_subsets){.inverse_delta = delta > 0 ? 1 / delta : 0, .max_states = max_states};
  subsets->single = wf__alloc(num_states, sizeof *subsets->single);
  if (subsets->single == NULL)
    return wf__fail_memory(err, num_states * sizeof *subsets->single, "subsets");
  memset(subsets->single, 0xff, num_states * sizeof *subsets->single);
  return WF_OK;
}

void wf__det_subsets_free(wf__det_subsets *subsets) {
  wf__vec_free(&subsets->where);
  wf__vec_free(&subsets->off);
  wf__vec_free(&subsets->elements);
  free(subsets->single);
  free(subsets->slots);
  subsets->single = NULL;
  subsets->slots = NULL;
}

static inline const wf__det_element *several(const wf__det_subsets *subsets, uint32_t id,
                                             uint32_t *size) {
  const uint64_t *off = subsets->off.data + subsets->where.data[id];
  *size = (uint32_t)(off[1] - off[0]);
  return subsets->elements.data + off[0];
}

const wf__det_element *wf__det_subsets_get(const wf__det_subsets *subsets, uint32_t id,
                                           wf__det_element *single, uint32_t *size) {
  uint32_t where = subsets->where.data[id];
  if (!(where & SINGLE)) return several(subsets, id, size);
  *size = 1;
  *single = (wf__det_element){.state = where & ~SINGLE};
  return single;
}

static inline uint32_t bin(const wf__det_subsets *subsets, float cost) {
  return wf__cost_bin(subsets->inverse_delta, cost);
}

uint32_t wf__det_hash(double inverse_delta, const wf__det_element *elements, uint32_t size) {
  uint64_t hash = size;
  for (uint32_t i = 0; i < size; i++) {
    hash =
        (hash ^ ((uint64_t)elements[i].string << 32 | elements[i].state)) * 0x9e3779b97f4a7c15ULL;
    hash =
        (hash ^ hash >> 29 ^ wf__cost_bin(inverse_delta, elements[i].cost)) * 0xbf58476d1ce4e5b9ULL;
    hash ^= hash >> 32;
  }
  return (uint32_t)wf__mix64(hash);
}

static bool same(const wf__det_subsets *subsets, uint32_t id, const wf__det_element *elements,
                 uint32_t size) {
  uint32_t have_size;
  const wf__det_element *have = several(subsets, id, &have_size);
  if (have_size != size) return false;
  for (uint32_t i = 0; i < size; i++)
    if (have[i].state != elements[i].state || have[i].string != elements[i].string ||
        bin(subsets, have[i].cost) != bin(subsets, elements[i].cost))
      return false;
  return true;
}

static wf_status grow_slots(wf__det_subsets *subsets, wf_error *err) {
  int bits = subsets->bits == 0 ? 10 : subsets->bits + 1;
  uint64_t count = (uint64_t)1 << bits, *slots = wf__alloc(count, sizeof *slots);
  if (slots == NULL) return wf__fail_memory(err, count * sizeof *slots, "subsets");
  memset(slots, 0xff, count * sizeof *slots);
  for (uint64_t i = 0; subsets->bits != 0 && i < (uint64_t)1 << subsets->bits; i++) {
    if (subsets->slots[i] == UINT64_MAX) continue;
    uint64_t slot = (subsets->slots[i] >> 32) & (count - 1);
    while (slots[slot] != UINT64_MAX) slot = (slot + 1) & (count - 1);
    slots[slot] = subsets->slots[i];
  }
  free(subsets->slots);
  subsets->slots = slots;
  subsets->bits = bits;
  return WF_OK;
}

static wf_status append(wf__det_subsets *subsets, uint32_t where, uint32_t *out, wf_error *err) {
  if (subsets->where.size >= subsets->max_states) return WF_ERR_NOT_DETERMINIZABLE;
  WF__TRY(wf__vec_grow(&subsets->where, 1, "subsets", err));
  *out = (uint32_t)subsets->where.size;
  subsets->where.data[subsets->where.size++] = where;
  return WF_OK;
}

wf_status wf__det_subsets_add_single(wf__det_subsets *subsets, uint32_t state, uint32_t *out,
                                     wf_error *err) {
  *out = subsets->single[state];
  if (*out != WF__MAP64_NONE) return WF_OK;
  WF__TRY(append(subsets, SINGLE | state, out, err));
  subsets->single[state] = *out;
  return WF_OK;
}

wf_status wf__det_subsets_add(wf__det_subsets *subsets, const wf__det_element *elements,
                              uint32_t size, uint32_t hash, uint32_t *out, wf_error *err) {
  if (subsets->bits == 0 || subsets->num_hashed * 2 >= (uint64_t)1 << subsets->bits)
    WF__TRY(grow_slots(subsets, err));
  uint64_t mask = ((uint64_t)1 << subsets->bits) - 1, slot = hash & mask;
  for (; subsets->slots[slot] != UINT64_MAX; slot = (slot + 1) & mask) {
    if (subsets->slots[slot] >> 32 != hash ||
        !same(subsets, (uint32_t)subsets->slots[slot], elements, size))
      continue;
    *out = (uint32_t)subsets->slots[slot];
    return WF_OK;
  }
  WF__TRY(wf__vec_grow(&subsets->elements, size, "subsets", err));
  WF__TRY(wf__vec_grow(&subsets->off, 2, "subsets", err));
  if (subsets->off.size == 0) subsets->off.data[subsets->off.size++] = 0;
  WF__TRY(append(subsets, (uint32_t)subsets->off.size - 1, out, err));
  memcpy(subsets->elements.data + subsets->elements.size, elements, size * sizeof *elements);
  subsets->elements.size += size;
  subsets->off.data[subsets->off.size++] = subsets->elements.size;
  subsets->slots[slot] = (uint64_t)hash << 32 | *out;
  subsets->num_hashed++;
  return WF_OK;
}
