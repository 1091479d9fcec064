/* temp_file.c - files without a name. */
#include "base/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

wf_status wf__temp_folder(const char *given, const char *output, char **out, wf_error *err) {
  const char *usual = getenv("TMPDIR"), *folder = given != NULL ? given : output;
  if (folder == NULL) folder = usual != NULL && usual[0] != '\0' ? usual : P_tmpdir;
  size_t size = strlen(folder);
  if (given == NULL && output != NULL) {
    const char *slash = strrchr(output, '/');
    if (slash == NULL) folder = ".";
    size = slash == NULL || slash == output ? 1 : (size_t)(slash - output);
  }
  *out = wf__strndup(folder, size);
  return *out != NULL ? WF_OK : wf__fail_memory(err, size + 1, "a path");
}

/* Opens an unnamed file if the file system supports it. Creating and then unlinking a file would
 * leave it behind if the process is killed in between. */
static int open_unnamed(const char *folder, char *path) {
#if defined(O_TMPFILE)
  int unnamed = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
  if (unnamed >= 0) return unnamed;
#endif
  int fd = mkstemp(path);
  if (fd >= 0) unlink(path);
  return fd;
}

wf_status wf__temp_open(const char *folder, int *fd, wf_error *err) {
  size_t size = strlen(folder) + 32;
  char *path = wf__alloc(size, 1);
  if (path == NULL) return wf__fail_memory(err, size, "a path");
  snprintf(path, size, "%s/.warpfst.XXXXXX", folder);
  *fd = open_unnamed(folder, path);
  wf_status status =
      *fd >= 0 ? WF_OK
               : wf__fail(err, wf__io_status(errno), "%s: cannot make a temporary file: %s", folder,
                          strerror(errno));
  free(path);
  return status;
}

wf_status wf__temp_write(int fd, const char *folder, uint64_t offset, const void *data,
                         uint64_t size, wf_error *err) {
  for (const char *at = data; size > 0;) {
    ssize_t put = pwrite(fd, at, size < (1u << 30) ? size : 1u << 30, (off_t)offset);
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
    ssize_t got = pread(fd, at, size < (1u << 30) ? size : 1u << 30, (off_t)offset);
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
