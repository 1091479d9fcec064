/* map64.h - hash map from 64-bit keys to 32-bit values: open addressing, linear probing,
 * power-of-two size.
 *
 * Keys may be anything but WF__MAP64_EMPTY. There is no removal; wf__map64_clear keeps the memory.
 * There is no iteration, so that results cannot depend on its order. */
#ifndef WF_BASE_MAP64_H
#define WF_BASE_MAP64_H

#include "base/memory.h"
#include "math/hash.h"

#define WF__MAP64_EMPTY UINT64_MAX
#define WF__MAP64_NONE UINT32_MAX

typedef struct wf__map64 {
  uint64_t *keys;
  uint32_t *values;
  uint64_t size;
  int bits; /* 2^bits slots; 0: nothing allocated */
} wf__map64;

/* Reserves space for `count` keys in total. */
wf_status wf__map64_reserve(wf__map64 *map, uint64_t count, const char *what, wf_error *err);
void wf__map64_clear(wf__map64 *map);
void wf__map64_free(wf__map64 *map);

/* Value of a key, or WF__MAP64_NONE. */
static inline uint32_t wf__map64_find(const wf__map64 *map, uint64_t key) {
  if (map->size == 0) return WF__MAP64_NONE;
  uint64_t mask = ((uint64_t)1 << map->bits) - 1;
  for (uint64_t slot = wf__mix64(key) & mask;; slot = (slot + 1) & mask) {
    if (map->keys[slot] == key) return map->values[slot];
    if (map->keys[slot] == WF__MAP64_EMPTY) return WF__MAP64_NONE;
  }
}

/* Fetches the slot of a key into the cache, ahead of an insert. */
static inline void wf__map64_prefetch(const wf__map64 *map, uint64_t key) {
  if (map->bits == 0) return;
  uint64_t slot = wf__mix64(key) & (((uint64_t)1 << map->bits) - 1);
  __builtin_prefetch(&map->keys[slot], 1);
  __builtin_prefetch(&map->values[slot], 1);
}

/* Inserts key -> value unless the map has the key. If the value is an index into an array, reserve
 * its element first: without memory a key would stay that has no element. `*out_value` is the
 * stored value; `*out_new` (may be NULL) is true if the key was inserted. */
static inline wf_status wf__map64_insert(wf__map64 *map, uint64_t key, uint32_t value,
                                         uint32_t *out_value, bool *out_new, const char *what,
                                         wf_error *err) {
  if (wf__unlikely(map->bits == 0 || map->size * 2 >= (uint64_t)1 << map->bits))
    WF__TRY(wf__map64_reserve(map, map->size + 1, what, err));
  uint64_t mask = ((uint64_t)1 << map->bits) - 1, slot = wf__mix64(key) & mask;
  while (map->keys[slot] != key && map->keys[slot] != WF__MAP64_EMPTY) slot = (slot + 1) & mask;
  bool fresh = map->keys[slot] == WF__MAP64_EMPTY;
  if (fresh) {
    map->keys[slot] = key;
    map->values[slot] = value;
    map->size++;
  }
  *out_value = map->values[slot];
  if (out_new != NULL) *out_new = fresh;
  return WF_OK;
}

#endif
