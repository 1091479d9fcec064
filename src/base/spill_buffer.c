/* spill_buffer.c - a buffer that spills to a file. */
#include "base/spill_buffer.h"

#include <string.h>

#include "base/temp_file.h"

wf__spill_buffer wf__spill_buffer_of(uint64_t limit, const char *folder) {
  return (wf__spill_buffer){.limit = limit < 65536 ? 65536 : limit, .folder = folder, .fd = -1};
}

void wf__spill_buffer_free(wf__spill_buffer *spill) {
  wf__vec_free(&spill->buffer);
  if (spill->fd > 0) wf__temp_close(spill->fd);
  spill->fd = -1;
}

static wf_status overflow(wf__spill_buffer *spill, wf_error *err) {
  if (spill->fd < 0) WF__TRY(wf__temp_open(spill->folder, &spill->fd, err));
  WF__TRY(wf__temp_write(spill->fd, spill->folder, spill->in_file, spill->buffer.data,
                         spill->buffer.size, err));
  spill->in_file += spill->buffer.size;
  spill->buffer.size = 0;
  return WF_OK;
}

wf_status wf__spill_buffer_write(wf__spill_buffer *spill, const void *data, uint64_t size,
                                 wf_error *err) {
  if (size == 0) return WF_OK;
  if (spill->buffer.size + size > spill->limit) WF__TRY(overflow(spill, err));
  WF__TRY(wf__vec_grow(&spill->buffer, size, "a temporary file", err));
  memcpy(spill->buffer.data + spill->buffer.size, data, size);
  spill->buffer.size += size;
  return WF_OK;
}

wf_status wf__spill_buffer_read(const wf__spill_buffer *spill, uint64_t offset, void *data,
                                uint64_t size, wf_error *err) {
  uint64_t from_file = offset >= spill->in_file         ? 0
                       : spill->in_file - offset < size ? spill->in_file - offset
                                                        : size;
  if (from_file > 0) WF__TRY(wf__temp_read(spill->fd, spill->folder, offset, data, from_file, err));
  if (size > from_file)
    memcpy((char *)data + from_file, spill->buffer.data + (offset + from_file - spill->in_file),
           size - from_file);
  return WF_OK;
}
