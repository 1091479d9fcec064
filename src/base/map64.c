/* map64.c - growth of the 64-bit hash map. */
#include "base/map64.h"

#include <string.h>

enum { FEWEST_BITS = 6 };

wf_status wf__map64_reserve(wf__map64 *map, uint64_t count, const char *what, wf_error *err) {
  int bits = map->bits < FEWEST_BITS ? FEWEST_BITS : map->bits;
  while (count * 2 > (uint64_t)1 << bits) bits++;
  if (map->size * 2 >= (uint64_t)1 << bits) bits++;
  if (bits == map->bits) return WF_OK;
  uint64_t slots = (uint64_t)1 << bits, mask = slots - 1;
  uint64_t *keys = wf__alloc(slots, sizeof *keys);
  uint32_t *values = wf__alloc(slots, sizeof *values);
  if (keys == NULL || values == NULL) {
    free(keys);
    free(values);
    return wf__fail_memory(err, slots * 12, what);
  }
  memset(keys, 0xff, slots * sizeof *keys);
  uint64_t old_slots = map->bits != 0 ? (uint64_t)1 << map->bits : 0;
  for (uint64_t i = 0; i < old_slots; i++) {
    if (map->keys[i] == WF__MAP64_EMPTY) continue;
    uint64_t slot = wf__mix64(map->keys[i]) & mask;
    while (keys[slot] != WF__MAP64_EMPTY) slot = (slot + 1) & mask;
    keys[slot] = map->keys[i];
    values[slot] = map->values[i];
  }
  free(map->keys);
  free(map->values);
  map->keys = keys;
  map->values = values;
  map->bits = bits;
  return WF_OK;
}

void wf__map64_clear(wf__map64 *map) {
  if (map->bits == 0 || map->size == 0) return;
  while (map->bits > FEWEST_BITS && map->size * 16 < (uint64_t)1 << map->bits)
    map->bits--; /* so that clearing does not cost more than filling, also after a larger use */
  memset(map->keys, 0xff, sizeof *map->keys << map->bits);
  map->size = 0;
}

void wf__map64_free(wf__map64 *map) {
  free(map->keys);
  free(map->values);
  *map = (wf__map64){0};
}
