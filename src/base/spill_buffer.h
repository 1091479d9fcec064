/* spill_buffer.h - a sequential buffer of bytes: in memory up to a limit, then in an unnamed file.
 */
#ifndef WF_BASE_SPILL_BUFFER_H
#define WF_BASE_SPILL_BUFFER_H

#include "base/memory.h"

typedef struct wf__spill_buffer {
  WF__VEC(uint8_t) buffer; /* newest bytes, not in the file */
  uint64_t in_file;        /* number of bytes in the file, before the buffer */
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
/* Reads bytes [offset, offset + size), which must have been written. */
wf_status wf__spill_buffer_read(const wf__spill_buffer *spill, uint64_t offset, void *data,
                                uint64_t size, wf_error *err);
void wf__spill_buffer_free(wf__spill_buffer *spill);

#endif
