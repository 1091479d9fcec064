/* temp_file.c - files without a name. */
#include "base/temp_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/platform.h"

wf_status wf__temp_folder(const char *given, const char *output, char **out, wf_error *err) {
  const char *folder = given != NULL ? given : output;
  if (folder == NULL) {
    *out = wf__path_temporary_folder();
    return *out != NULL ? WF_OK : wf__fail_memory(err, 1, "a path");
  }
  size_t size = strlen(folder);
  if (given == NULL) {
    const char *name = wf__path_name(output);
    if (name == output) folder = ".";
    size = name <= output + 1 ? 1 : (size_t)(name - output) - 1;
  }
  *out = wf__strndup(folder, size);
  return *out != NULL ? WF_OK : wf__fail_memory(err, size + 1, "a path");
}

wf_status wf__temp_open(const char *folder, int *fd, wf_error *err) {
  *fd = wf__file_temporary(folder);
  return *fd >= 0 ? WF_OK
                  : wf__fail(err, wf__io_status(errno), "%s: cannot make a temporary file: %s",
                             folder, strerror(errno));
}

void wf__temp_close(int fd) { wf__file_close(fd); }

wf_status wf__temp_write(int fd, const char *folder, uint64_t offset, const void *data,
                         uint64_t size, wf_error *err) {
  for (const char *at = data; size > 0;) {
    int64_t put = wf__file_write_at(fd, at, size < (1u << 30) ? size : 1u << 30, offset);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0)
      return wf__fail(err, WF_ERR_IO, "%s: cannot write a temporary file: %s", folder,
                      strerror(put < 0 ? errno : ENOSPC));
    at += put;
    offset += (uint64_t)put;
    size -= (uint64_t)put;
  }
  return WF_OK;
}

wf_status wf__temp_read(int fd, const char *folder, uint64_t offset, void *data, uint64_t size,
                        wf_error *err) {
  for (char *at = data; size > 0;) {
    int64_t got = wf__file_read_at(fd, at, size < (1u << 30) ? size : 1u << 30, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return wf__fail(err, WF_ERR_IO, "%s: cannot read a temporary file: %s", folder,
                      strerror(got < 0 ? errno : EIO));
    at += got;
    offset += (uint64_t)got;
    size -= (uint64_t)got;
  }
  return WF_OK;
}
