/* select.h - exact selection by rank. */
#ifndef WF_BASE_SELECT_H
#define WF_BASE_SELECT_H

#include <stdint.h>

/* Reorders keys so that the k smallest come first (in any order), 0 < k <= count; returns the k-th
 * smallest. Keys are distinct or not; the value returned does not depend on their order. Linear
 * time on average, O(n log n) at worst. */
uint64_t wf__select_smallest(uint64_t *keys, uint64_t count, uint64_t k);

#endif
