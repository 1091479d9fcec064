/* memory.c - checked allocation, growable arrays, arenas. */
#include "base/memory.h"

#include <string.h>

#include "base/platform.h"

enum { HUGE_MIN_BYTES = 1 << 22, HUGE_BYTES = 1 << 21 };
/* malloc gives a block of at least this size a mapping of its own (the most that glibc's threshold
 * can be), and MALLOC_HEADER bytes of it are malloc's. */
enum { MAPPED_MIN_BYTES = 1 << 25, MALLOC_HEADER = 32 };

/* The size to request for a block of `bytes`. A mapping of whole huge pages is aligned to them, on
 * Linux also when realloc moves it. Otherwise moving would break its huge pages into small ones. */
static size_t whole_huge_pages(size_t bytes) {
  const size_t mask = HUGE_BYTES - 1;
  return bytes < MAPPED_MIN_BYTES ? bytes
                                  : ((bytes + MALLOC_HEADER + mask) & ~mask) - MALLOC_HEADER;
}

/* Requests huge pages for a large block: fewer page faults on writing and fewer TLB misses on
 * random reads. The range is extended to whole pages, so that a block with its own mapping stays
 * one mapping, which realloc can move. Failure is ignored. */
static void *prefer_huge_pages(void *memory, size_t bytes) {
  if (memory != NULL && bytes >= HUGE_MIN_BYTES) wf__prefer_huge_pages(memory, bytes);
  return memory;
}

void *wf__alloc(uint64_t num, size_t size) {
  if (size != 0 && num > SIZE_MAX / 2 / size) return NULL;
  size_t bytes = whole_huge_pages((size_t)num * size);
  return prefer_huge_pages(malloc(bytes != 0 ? bytes : 1), bytes);
}

void *wf__calloc(uint64_t num, size_t size) {
  if (size != 0 && num > SIZE_MAX / 2 / size) return NULL;
  size_t bytes = whole_huge_pages((size_t)num * size);
  return prefer_huge_pages(calloc(bytes != 0 ? bytes : 1, 1), bytes);
}

char *wf__strndup(const char *text, size_t size) {
  char *copy = wf__alloc((uint64_t)size + 1, 1);
  if (copy == NULL) return NULL;
  if (size != 0) memcpy(copy, text, size);
  copy[size] = '\0';
  return copy;
}

/* realloc of a block of `have` bytes that keeps the first `used`. Blocks on malloc's heap are
 * copied here, so that the new one has huge pages before it is written. */
static void *resize(void *data, size_t have, size_t used, size_t bytes) {
  if (bytes < HUGE_MIN_BYTES || have >= HUGE_MIN_BYTES)
    return prefer_huge_pages(realloc(data, bytes), bytes);
  void *moved = prefer_huge_pages(malloc(bytes), bytes);
  if (moved == NULL) return NULL;
  if (used != 0) memcpy(moved, data, used);
  free(data);
  return moved;
}

wf_status wf__vec_grow_bytes(void **data, uint64_t *cap, uint64_t size, uint64_t extra,
                             size_t element, const char *what, wf_error *err) {
  uint64_t limit = SIZE_MAX / 2 / element;
  if (extra > limit || size > limit - extra)
    return wf__fail(err, WF_ERR_LIMIT, "%s would exceed the address space", what);
  uint64_t want = size + extra, grown = *cap < 16 ? 16 : *cap + *cap / 2;
  if (grown < want) grown = want;
  if (grown > limit) grown = limit;
  size_t bytes = (size_t)grown * element;
  /* A growing array leaves the heap early: what is freed there can stay with the process. Its
   * mapping is larger than it needs, but memory that is never written takes no room, so it does not
   * count as the array's. */
  const bool early = bytes >= HUGE_MIN_BYTES && bytes < MAPPED_MIN_BYTES;
  if (early && *data != NULL && wf__usable_bytes(*data) >= bytes) {
    *cap = grown;
    return WF_OK;
  }
  bytes = whole_huge_pages(early ? MAPPED_MIN_BYTES : bytes);
  void *moved = resize(*data, (size_t)*cap * element, (size_t)size * element, bytes);
  if (moved == NULL) return wf__fail_memory(err, bytes, what);
  *data = moved;
  *cap = early ? grown : bytes / element;
  return WF_OK;
}

struct wf__arena_block {
  struct wf__arena_block *next;
  size_t pad; /* keeps the payload aligned to 16 */
};

void *wf__arena_alloc(wf__arena *arena, size_t size) {
  if (size > SIZE_MAX / 4) return NULL;
  size = (size + 15) & ~(size_t)15;
  if (arena->blocks == NULL || arena->cap - arena->used < size) {
    size_t cap = arena->blocks == NULL ? 4096 : arena->cap * 2;
    if (cap > (size_t)1 << 24) cap = (size_t)1 << 24;
    if (cap < size) cap = size;
    struct wf__arena_block *block = malloc(sizeof *block + cap);
    if (block == NULL) return NULL;
    block->next = arena->blocks;
    arena->blocks = block;
    arena->used = 0;
    arena->cap = cap;
    arena->total_bytes += cap;
  }
  void *memory = (char *)(arena->blocks + 1) + arena->used;
  arena->used += size;
  return memory;
}

void wf__arena_free(wf__arena *arena) {
  for (struct wf__arena_block *block = arena->blocks; block != NULL;) {
    struct wf__arena_block *next = block->next;
    free(block);
    block = next;
  }
  *arena = (wf__arena){0};
}
