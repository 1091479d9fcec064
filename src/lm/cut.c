/* cut.c - the n largest of many floats, by radix selection: four passes, one byte a pass, from the
 * highest byte. */
#include <string.h>

#include "lm/lm_prune.h"

/* Maps floats to unsigned integers of the same order. */
static uint32_t ordered(float value) {
  uint32_t bits;
  value += 0.0f; /* -0 is 0 */
  memcpy(&bits, &value, sizeof bits);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static float unordered(uint32_t key) {
  uint32_t bits = key & 0x80000000u ? key & 0x7fffffffu : ~key;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

wf__cut wf__cut_at(const float *values, uint64_t num, uint64_t n) {
  if (n >= num) return (wf__cut){-INFINITY, UINT64_MAX};
  if (n == 0) return (wf__cut){INFINITY, 0};
  uint32_t prefix = 0, mask = 0;
  uint64_t room = n; /* number of values to select among those with the prefix so far */
  for (int shift = 24; shift >= 0; shift -= 8) {
    uint64_t counts[256] = {0};
    for (uint64_t i = 0; i < num; i++) {
      uint32_t key = ordered(values[i]);
      if ((key & mask) == prefix) counts[key >> shift & 255]++;
    }
    uint32_t byte = 255;
    for (; counts[byte] < room; byte--) room -= counts[byte];
    prefix |= byte << shift;
    mask |= 255u << shift;
  }
  return (wf__cut){unordered(prefix), room};
}
