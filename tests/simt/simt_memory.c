/* simt_memory.c - shared memory of the imitated GPU's blocks: placement, addresses, and
 * asynchronous copies into it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "simt.h"

/* --- shared memory ----------------------------------------------------------------------- */

void *simt_dynamic_shared(void) {
  return simt.current->block->window + SIMT_DYNAMIC_END - simt.launch->shared_bytes;
}

void *simt_static_shared(uint32_t *offset, size_t bytes, size_t align) {
  if (*offset == 0) {
    simt.static_used =
        (simt.static_used + (uint32_t)align + 15) / (uint32_t)align * (uint32_t)align;
    *offset = simt.static_used;
    simt.static_used += (uint32_t)bytes;
    if (simt.static_used > SIMT_STATIC_BYTES)
      simt_fail((struct simt_place){0},
                "the kernels together use more than %d bytes of static shared memory",
                SIMT_STATIC_BYTES);
  }
  return simt.current->block->window + *offset;
}

void *simt_shared_of(const void *own, uint32_t rank) {
  const struct simt_block *block = simt.current->block;
  const ptrdiff_t offset = (const unsigned char *)own - block->window;
  if (offset < 0 || offset >= SIMT_DYNAMIC_END || rank >= simt.launch->cluster)
    simt_fail((struct simt_place){0}, "rank %u, offset %td is not in shared memory", rank, offset);
  return block->cluster[rank].window + offset;
}

uint32_t simt_shared_address(const void *own) {
  const struct simt_block *block = simt.current->block;
  return (block->rank + 1) * SIMT_WINDOW_BYTES +
         (uint32_t)((const unsigned char *)own - block->window);
}

uint32_t simt_address_of_rank(uint32_t address, uint32_t rank) {
  if (rank >= simt.launch->cluster)
    simt_fail((struct simt_place){0}, "rank %u of a cluster of %u blocks", rank,
              simt.launch->cluster);
  return (rank + 1) * SIMT_WINDOW_BYTES + address % SIMT_WINDOW_BYTES;
}

void *simt_at_address(uint32_t address, uint32_t bytes, bool own) {
  const struct simt_block *block = simt.current->block;
  const uint32_t rank = address / SIMT_WINDOW_BYTES - 1, offset = address % SIMT_WINDOW_BYTES;
  const bool is_static = offset + bytes <= simt.static_used,
             is_dynamic = offset >= SIMT_DYNAMIC_END - simt.launch->shared_bytes &&
                          offset + bytes <= SIMT_DYNAMIC_END;
  if (rank >= simt.launch->cluster || (own && rank != block->rank) || !(is_static || is_dynamic) ||
      offset % bytes != 0)
    simt_fail((struct simt_place){0},
              "%u bytes of shared memory at address %x (rank %d, offset %x)", bytes, address,
              (int)rank, offset);
  if (block->cluster[rank].num_left == 0)
    simt_fail((struct simt_place){0}, "shared memory of block %u of the cluster, which has ended",
              rank);
  return block->cluster[rank].window + offset;
}

bool simt_is_foreign_shared(const void *pointer) {
  const unsigned char *own = simt.current->block->window, *at = pointer;
  return at >= simt.windows && at < simt.windows + (size_t)SIMT_MOST_HERE * SIMT_WINDOW_BYTES &&
         (at < own || at >= own + SIMT_WINDOW_BYTES);
}

/* --- asynchronous copies ----------------------------------------------------------------- */

struct simt_copies {
  uint32_t size, room, groups; /* groups: number of committed groups */
  struct copy {
    void *to;
    const void *from;
    size_t bytes;
    uint32_t group;
  } * data;
};

void simt_copy_later(void *to, const void *from, size_t bytes) {
  struct simt_thread *self = simt.current;
  if (self->copies == NULL) self->copies = calloc(1, sizeof *self->copies);
  struct simt_copies *copies = self->copies;
  if (copies != NULL && copies->size == copies->room) {
    copies->room = copies->room * 2 + 4;
    copies->data = realloc(copies->data, copies->room * sizeof *copies->data);
  }
  if (copies == NULL || copies->data == NULL) abort();
  copies->data[copies->size++] = (struct copy){to, from, bytes, copies->groups};
  memset(to, 0xa5, bytes);
}

void simt_copies_commit(void) {
  if (simt.current->copies != NULL) simt.current->copies->groups++;
}

void simt_copies_wait(unsigned but) {
  struct simt_copies *copies = simt.current->copies;
  if (copies == NULL) return;
  if (but == UINT32_MAX && copies->size > 0)
    simt_fail((struct simt_place){0}, "the thread ends with %u asynchronous copies under way",
              copies->size);
  uint32_t done = 0;
  while (done < copies->size &&
         (but == UINT32_MAX || copies->data[done].group + but < copies->groups)) {
    memcpy(copies->data[done].to, copies->data[done].from, copies->data[done].bytes);
    done++;
  }
  copies->size -= done;
  if (copies->size > 0)
    memmove(copies->data, copies->data + done, copies->size * sizeof *copies->data);
  if (but != UINT32_MAX) return;
  free(copies->data);
  free(copies);
  simt.current->copies = NULL;
}

bool simt_keeps_limit(const void *kernel, int bytes) {
  enum { KERNELS = 256 };
  static struct {
    const void *kernel;
    int bytes;
  } limits[KERNELS];
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  int i = 0;
  pthread_mutex_lock(&mutex);
  while (i < KERNELS && limits[i].kernel != NULL && limits[i].kernel != kernel) i++;
  if (i < KERNELS && limits[i].kernel == NULL) {
    limits[i].kernel = kernel;
    limits[i].bytes = bytes;
  }
  const bool same = i < KERNELS && limits[i].bytes == bytes;
  pthread_mutex_unlock(&mutex);
  return same;
}
