/* spool.h - bytes in the order of writing, in memory up to a limit and beyond it in an unnamed
 * file; then read from the first on, once or again. */
#ifndef WF_BASE_SPOOL_H
#define WF_BASE_SPOOL_H

#include "base/memory.h"

typedef struct wf__spool {
  WF__VEC(uint8_t) buffer; /* the newest bytes */
  uint64_t in_file;        /* bytes before them */
  uint64_t limit;
  const char *folder;
  int fd; /* -1: no file yet */
} wf__spool;

/* `folder` is borrowed. */
wf__spool wf__spool_of(uint64_t limit, const char *folder);
wf_status wf__spool_write(wf__spool *spool, const void *data, uint64_t size, wf_error *err);
static inline uint64_t wf__spool_size(const wf__spool *spool) {
  return spool->in_file + spool->buffer.size;
}
/* Bytes [offset, offset + size), which have been written. */
wf_status wf__spool_read(const wf__spool *spool, uint64_t offset, void *data, uint64_t size,
                         wf_error *err);
void wf__spool_free(wf__spool *spool);

#endif
