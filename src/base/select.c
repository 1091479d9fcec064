/* select.c - quickselect with median-of-three pivots; sorts what is left when that is little, or
 * when the pivots are bad. */
#include "base/select.h"

#include <stdlib.h>

static int compare(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static uint64_t median(uint64_t a, uint64_t b, uint64_t c) {
  if (a > b) {
    uint64_t swap = a;
    a = b;
    b = swap;
  }
  return c <= a ? a : c >= b ? b : c;
}

static void insertion_sort(uint64_t *keys, uint64_t count) {
  for (uint64_t i = 1; i < count; i++) {
    const uint64_t key = keys[i];
    uint64_t at = i;
    for (; at > 0 && keys[at - 1] > key; at--) keys[at] = keys[at - 1];
    keys[at] = key;
  }
}

enum { FEW = 32 };

uint64_t wf__select_smallest(uint64_t *keys, uint64_t count, uint64_t k) {
  uint64_t low = 0, high = count, want = k - 1; /* the answer is in [low, high) */
  for (int depth = 0; high - low > FEW; depth++) {
    if (depth > 64) break;
    uint64_t pivot = median(keys[low], keys[low + (high - low) / 2], keys[high - 1]);
    uint64_t i = low - 1, j = high;
    for (;;) { /* Hoare: ends with [low, j] <= pivot <= (j, high), and j < high - 1 because some key
                  before the last is >= pivot */
      do i++;
      while (keys[i] < pivot);
      do j--;
      while (keys[j] > pivot);
      if (i >= j) break;
      uint64_t swap = keys[i];
      keys[i] = keys[j];
      keys[j] = swap;
    }
    uint64_t split = j + 1;
    if (want < split)
      high = split;
    else
      low = split;
  }
  if (high - low <= FEW)
    insertion_sort(keys + low, high - low);
  else
    qsort(keys + low, high - low, sizeof *keys, compare);
  return keys[want];
}
