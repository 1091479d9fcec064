/* memory.h - checked allocation, growable arrays, arenas.
 *
 * Nothing here aborts: failure returns NULL or a status. Products of sizes are checked for
 * overflow.
 */
#ifndef WF_BASE_MEMORY_H
#define WF_BASE_MEMORY_H

#include <stdlib.h>

#include "base/error.h"

/* Allocate num * size bytes, uninitialised or zeroed. NULL on overflow or lack of memory. num == 0
 * gives a valid pointer. */
void *wf__alloc(uint64_t num, size_t size);
void *wf__calloc(uint64_t num, size_t size);
char *wf__strndup(const char *text, size_t size);

/* A growable array of T: `WF__VEC(uint32_t) queue = {0};`. Zero-initialised is empty; free with
 * wf__vec_free. */
#define WF__VEC(T) \
  struct {         \
    T *data;       \
    uint64_t size; \
    uint64_t cap;  \
  }

/* Reserves space for `extra` more elements (amortised doubling). */
#define wf__vec_grow(vec, extra, what, err)                                                     \
  (wf__likely((vec)->cap - (vec)->size >= (uint64_t)(extra))                                    \
       ? WF_OK                                                                                  \
       : wf__vec_grow_bytes((void **)&(vec)->data, &(vec)->cap, (vec)->size, (uint64_t)(extra), \
                            sizeof *(vec)->data, what, err))
#define wf__vec_free(vec) (free((vec)->data), (vec)->data = NULL, (vec)->size = (vec)->cap = 0)
/* Exchanges two arrays of one element type. */
#define wf__vec_swap(a, b)                                                         \
  do {                                                                             \
    void *wf__swap_data = (a)->data;                                               \
    uint64_t wf__swap_size = (a)->size, wf__swap_cap = (a)->cap;                   \
    (a)->data = (b)->data, (a)->size = (b)->size, (a)->cap = (b)->cap;             \
    (b)->data = wf__swap_data, (b)->size = wf__swap_size, (b)->cap = wf__swap_cap; \
  } while (0)
/* Appends one element; evaluates to a wf_status. `value` may not contain bare commas outside
 * parentheses. */
#define wf__vec_push(vec, value, what, err)                                                 \
  (wf__vec_grow(vec, 1, what, err) == WF_OK ? ((vec)->data[(vec)->size++] = (value), WF_OK) \
                                            : WF_ERR_MEMORY)

#define wf__likely(x) __builtin_expect(!!(x), 1)
#define wf__unlikely(x) __builtin_expect(!!(x), 0)

wf_status wf__vec_grow_bytes(void **data, uint64_t *cap, uint64_t size, uint64_t extra,
                             size_t element, const char *what, wf_error *err);

/* Arena: many small blocks, freed together. Zero-initialised is empty. Blocks are aligned to 16
 * bytes. */
typedef struct wf__arena {
  struct wf__arena_block *blocks;
  size_t used, cap; /* of the newest block */
  uint64_t total_bytes;
} wf__arena;
void *wf__arena_alloc(wf__arena *arena, size_t size);
void wf__arena_free(wf__arena *arena);

#endif
