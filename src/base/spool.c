/* spool.c - a buffer that flows over into a file. */
#include "base/spool.h"

#include <string.h>
#include <unistd.h>

#include "base/temp_file.h"

wf__spool wf__spool_of(uint64_t limit, const char *folder) {
  return (wf__spool){.limit = limit < 65536 ? 65536 : limit, .folder = folder, .fd = -1};
}

void wf__spool_free(wf__spool *spool) {
  wf__vec_free(&spool->buffer);
  if (spool->fd > 0) close(spool->fd);
  spool->fd = -1;
}

static wf_status overflow(wf__spool *spool, wf_error *err) {
  if (spool->fd < 0) WF__TRY(wf__temp_open(spool->folder, &spool->fd, err));
  WF__TRY(wf__temp_write(spool->fd, spool->in_file, spool->buffer.data, spool->buffer.size, err));
  spool->in_file += spool->buffer.size;
  spool->buffer.size = 0;
  return WF_OK;
}

wf_status wf__spool_write(wf__spool *spool, const void *data, uint64_t size, wf_error *err) {
  if (size == 0) return WF_OK;
  if (spool->buffer.size + size > spool->limit) WF__TRY(overflow(spool, err));
  WF__TRY(wf__vec_grow(&spool->buffer, size, "a temporary file", err));
  memcpy(spool->buffer.data + spool->buffer.size, data, size);
  spool->buffer.size += size;
  return WF_OK;
}

wf_status wf__spool_read(const wf__spool *spool, uint64_t offset, void *data, uint64_t size,
                         wf_error *err) {
  uint64_t from_file = offset >= spool->in_file         ? 0
                       : spool->in_file - offset < size ? spool->in_file - offset
                                                        : size;
  if (from_file > 0) WF__TRY(wf__temp_read(spool->fd, offset, data, from_file, err));
  if (size > from_file)
    memcpy((char *)data + from_file, spool->buffer.data + (offset + from_file - spool->in_file),
           size - from_file);
  return WF_OK;
}
