/* output.c - buffered output under a temporary name, renamed when complete. */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/interrupt.h"
#include "base/memory.h"

enum { BUFFER_BYTES = 1 << 17 };

struct wf__output {
  char *path, *temporary; /* temporary: NULL when writing directly to `path` (standard output,
                             devices, pipes) */
  int fd;
  bool named; /* `temporary` exists; else the file is unnamed and disappears with the process */
  int error;  /* first errno */
  size_t used;
  uint64_t offset; /* of the start of the buffer in the file */
  char buffer[BUFFER_BYTES];
};

static void write_fully(wf__output *output, const char *data, size_t size) {
  while (size > 0 && output->error == 0) {
    ssize_t put = write(output->fd, data, size);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      output->error = errno;
      return;
    }
    data += put;
    size -= (size_t)put;
  }
}

static void flush(wf__output *output) {
  if (output->error == 0 && wf__stopped()) output->error = ECANCELED;
  write_fully(output, output->buffer, output->used);
  output->offset += output->used;
  output->used = 0;
}

/* Opens an unnamed file in the folder of `path`; -1 if the file system does not support it. */
static int open_unnamed(const char *path) {
#if defined(O_TMPFILE)
  if (access("/proc/self/fd", X_OK) != 0) return -1; /* an unnamed file could not be named later */
  const char *slash = strrchr(path, '/');
  if (slash == NULL) return open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  char *folder = wf__strndup(path, slash == path ? 1 : (size_t)(slash - path));
  int fd = folder != NULL ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666) : -1;
  free(folder);
  return fd;
#else
  (void)path;
  return -1;
#endif
}

/* Links the file to its final name if that is free, else to the temporary name. */
static bool name_file(wf__output *output) {
  char link_path[64];
  if (output->named) return true;
  snprintf(link_path, sizeof link_path, "/proc/self/fd/%d", output->fd);
  if (linkat(AT_FDCWD, link_path, AT_FDCWD, output->path, AT_SYMLINK_FOLLOW) == 0) {
    free(output->temporary);
    output->temporary = NULL;
    return true;
  }
  unlink(output->temporary); /* left by an earlier process with this id */
  output->named = linkat(AT_FDCWD, link_path, AT_FDCWD, output->temporary, AT_SYMLINK_FOLLOW) == 0;
  return output->named;
}

static wf_status open_target(wf__output *output, wf_error *err) {
  const char *path = output->path;
  if (strcmp(path, "-") == 0) {
    output->fd = STDOUT_FILENO;
    return WF_OK;
  }
  struct stat info;
  bool special = stat(path, &info) == 0 && !S_ISREG(info.st_mode);
  if (!special) {
    size_t size = strlen(path) + 32;
    output->temporary = wf__alloc(size, 1);
    if (output->temporary == NULL) return wf__fail_memory(err, size, "a path");
    snprintf(output->temporary, size, "%s.tmp.%ld", path, (long)getpid());
  }
  output->fd = special ? -1 : open_unnamed(path);
  output->named = !special && output->fd < 0;
  if (output->fd < 0)
    output->fd =
        open(special ? path : output->temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (special && output->fd < 0) output->fd = open(path, O_WRONLY | O_CLOEXEC);
  if (output->fd < 0)
    return wf__fail(err, WF_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
  return WF_OK;
}

wf_status wf__output_open(const char *path, wf__output **out, wf_error *err) {
  *out = NULL;
  if (path == NULL || path[0] == '\0')
    return wf__fail(err, WF_ERR_ARGUMENT, "no output path given");
  wf__output *output = wf__calloc(1, sizeof *output);
  if (output == NULL) return wf__fail_memory(err, sizeof *output, "an output buffer");
  output->fd = -1;
  output->path = wf__strndup(path, strlen(path));
  wf_status status = output->path != NULL ? open_target(output, err)
                                          : wf__fail_memory(err, strlen(path), "a path");
  if (status != WF_OK) {
    free(output->temporary);
    output->temporary = NULL;
    wf__output_abort(output);
    return status;
  }
  *out = output;
  return WF_OK;
}

void wf__write(wf__output *output, const void *data, size_t size) {
  if (size >= BUFFER_BYTES) {
    flush(output);
    write_fully(output, data, size);
    output->offset += size;
    return;
  }
  if (BUFFER_BYTES - output->used < size) flush(output);
  if (size != 0) memcpy(output->buffer + output->used, data, size);
  output->used += size;
}

void wf__write_text(wf__output *output, const char *text) { wf__write(output, text, strlen(text)); }

void wf__printf(wf__output *output, const char *format, ...) {
  char text[1024];
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int size = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (size >= 0 && (size_t)size < sizeof text) {
    wf__write(output, text, (size_t)size);
  } else if (size >= 0) {
    char *large = wf__alloc((uint64_t)size + 1, 1);
    if (large == NULL) {
      output->error = ENOMEM;
    } else {
      vsnprintf(large, (size_t)size + 1, format, again);
      wf__write(output, large, (size_t)size);
      free(large);
    }
  }
  va_end(again);
}

void wf__output_flush(wf__output *output) { flush(output); }

uint64_t wf__output_offset(const wf__output *output) { return output->offset + output->used; }

void wf__output_patch(wf__output *output, uint64_t offset, const void *data, size_t size) {
  flush(output);
  if (output->error == 0 && pwrite(output->fd, data, size, (off_t)offset) != (ssize_t)size)
    output->error = errno != 0 ? errno : EIO;
}

wf_status wf__output_close(wf__output *output, wf_error *err) {
  flush(output);
  if (output->error == 0 && output->temporary != NULL && !name_file(output)) output->error = errno;
  if (output->fd != STDOUT_FILENO) {
    if (close(output->fd) != 0 && output->error == 0) output->error = errno;
    output->fd = -1;
  }
  wf_status status = WF_OK;
  if (output->error == 0 && output->temporary != NULL) {
    if (rename(output->temporary, output->path) != 0) {
      output->error = errno;
    } else {
      free(output->temporary);
      output->temporary = NULL;
    }
  }
  if (output->error != 0) {
    const char *name = output->fd == STDOUT_FILENO ? "standard output" : output->path;
    status = output->error == ECANCELED
                 ? wf__fail(err, WF_ERR_CANCELLED, "cancelled while writing %s", name)
                 : wf__fail(err, WF_ERR_IO, "%s: cannot write: %s", name, strerror(output->error));
  }
  wf__output_abort(output);
  return status;
}

void wf__output_abort(wf__output *output) {
  if (output == NULL) return;
  if (output->fd >= 0 && output->fd != STDOUT_FILENO) close(output->fd);
  if (output->temporary != NULL && output->named) unlink(output->temporary);
  free(output->temporary);
  free(output->path);
  free(output);
}
