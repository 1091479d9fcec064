/* spill_buffer.h - a sequential buffer of bytes: in memory up to a limit, beyond it in an
 * unnamed file. */
#ifndef WF_BASE_SPILL_BUFFER_H
#define WF_BASE_SPILL_BUFFER_H

#include "base/memory.h"

typedef struct wf__spill_buffer {
  WF__VEC(uint8_t) buffer; /* the newest bytes */
  uint64_t in_file;        /* bytes before them */
  uint64_t limit;
  const char *folder;
  int fd; /* -1: no file yet */
} wf__spill_buffer;

/* `folder` is borrowed. */
wf__spill_buffer wf__spill_buffer_of(uint64_t limit, const char *folder);
wf_status wf__spill_buffer_write(wf__spill_buffer *spill, const void *data, uint64_t size,
                                 wf_error *err);
static inline uint64_t wf__spill_buffer_size(const wf__spill_buffer *spill) {
  return spill->in_file + spill->buffer.size;
}
/* Bytes [offset, offset + size), which have been written. */
wf_status wf__spill_buffer_read(const wf__spill_buffer *spill, uint64_t offset, void *data,
                                uint64_t size, wf_error *err);
void wf__spill_buffer_free(wf__spill_buffer *spill);

#endif
