/* first_bytes.c - what a file begins with. */
#include "base/first_bytes.h"

#include "base/platform.h"

size_t wf__first_bytes(const char *path, void *bytes, size_t size) {
  if (wf__path_kind(path) != WF__FILE_REGULAR) return 0;
  const int fd = wf__file_read_only(path);
  if (fd < 0) return 0;
  const int64_t got = wf__file_read(fd, bytes, size);
  wf__file_close(fd);
  return got > 0 ? (size_t)got : 0;
}
