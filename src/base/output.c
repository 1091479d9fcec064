/* output.c - buffered output to a target or to memory, compressed on request. */
#include "base/output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/interrupt.h"
#include "base/kaldi_prefix.h"
#include "base/memory.h"
#include "base/output_target.h"
#include "base/platform.h"

enum { BUFFER_BYTES = 1 << 17, PACKED_BYTES = 1 << 15 };

struct gzip {
  z_stream stream;
  uint8_t packed[PACKED_BYTES];
};

struct wf_output {
  char *path; /* as given, for messages */
  wf__target target;
  bool is_memory; /* the bytes go to `memory`, and there is no target */
  WF__VEC(uint8_t) memory;
  struct gzip *gzip; /* NULL: plain */
  int error;         /* first errno */
  size_t used;
  uint64_t offset; /* of the start of the buffer, before compression */
  char buffer[BUFFER_BYTES];
};

/* --- bytes to the target -------------------------------------------------------------------- */

static int append(wf__output *output, const void *data, size_t size) {
  wf_error err;
  if (size == 0) return 0;
  if (wf__vec_grow(&output->memory, size, output->path, &err) != WF_OK) return ENOMEM;
  memcpy(output->memory.data + output->memory.size, data, size);
  output->memory.size += size;
  return 0;
}

static void write_plain(wf__output *output, const void *data, size_t size) {
  if (output->error != 0) return;
  output->error = output->is_memory ? append(output, data, size)
                                    : wf__target_write(&output->target, data, size);
}

/* Compresses the bytes. `mode` is zlib's: Z_NO_FLUSH, or Z_FINISH to end the stream. */
static void write_gzip(wf__output *output, const void *data, size_t size, int mode) {
  struct gzip *gzip = output->gzip;
  const uint8_t *at = data;
  do { /* zlib counts in 32 bits */
    const size_t part = size < ((size_t)1 << 30) ? size : (size_t)1 << 30;
    gzip->stream.next_in = (Bytef *)(uintptr_t)at;
    gzip->stream.avail_in = (uInt)part;
    do {
      gzip->stream.next_out = gzip->packed;
      gzip->stream.avail_out = PACKED_BYTES;
      (void)deflate(&gzip->stream, mode); /* fails only for a wrong state */
      write_plain(output, gzip->packed, PACKED_BYTES - gzip->stream.avail_out);
      if (output->error == 0 && wf__stopped()) output->error = ECANCELED;
    } while (gzip->stream.avail_out == 0 && output->error == 0);
    at += part;
    size -= part;
  } while (size > 0 && output->error == 0);
}

static void write_through(wf__output *output, const void *data, size_t size) {
  if (output->gzip != NULL)
    write_gzip(output, data, size, Z_NO_FLUSH);
  else
    write_plain(output, data, size);
  output->offset += size;
}

static void flush(wf__output *output) {
  if (output->error == 0 && wf__stopped()) output->error = ECANCELED;
  if (output->error == 0)
    write_through(output, output->buffer, output->used);
  else
    output->offset += output->used;
  output->used = 0;
}

/* --- opening -------------------------------------------------------------------------------- */

static bool is_gzip_name(const char *path) {
  size_t size = strlen(path);
  return size > 3 && strcmp(path + size - 3, ".gz") == 0;
}

static wf_status start_gzip(wf__output *output, wf_error *err) {
  output->gzip = wf__calloc(1, sizeof *output->gzip);
  if (output->gzip != NULL && deflateInit2(&output->gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                                           15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK)
    return WF_OK;
  free(output->gzip);
  output->gzip = NULL;
  return wf__fail_memory(err, sizeof *output->gzip, "a gzip stream");
}

static wf_status make_output(const char *path, wf__output **out, wf_error *err) {
  *out = wf__calloc(1, sizeof **out);
  if (*out == NULL) return wf__fail_memory(err, sizeof **out, "an output buffer");
  (*out)->target.fd = -1;
  (*out)->path = wf__strndup(path, strlen(path));
  return (*out)->path != NULL ? WF_OK : wf__fail_memory(err, strlen(path), "a path");
}

wf_status wf__output_open(const char *path, wf__output **out, wf_error *err) {
  *out = NULL;
  if (path == NULL || path[0] == '\0')
    return wf__fail(err, WF_ERR_ARGUMENT, "no output path given");
  WF__TRY(wf__kaldi_refuse(path, err));
  wf_status status = make_output(path, out, err);
  if (status == WF_OK && is_gzip_name(path)) status = start_gzip(*out, err);
  if (status == WF_OK) status = wf__target_open(path, &(*out)->target, err);
  if (status == WF_OK) return WF_OK;
  wf__output_abort(*out);
  *out = NULL;
  return status;
}

wf_status wf__output_open_memory(wf__output **out, wf_error *err) {
  wf_status status = make_output("memory", out, err);
  if (status == WF_OK) {
    (*out)->is_memory = true;
    return WF_OK;
  }
  wf__output_abort(*out);
  *out = NULL;
  return status;
}

wf_status wf__output_needs_offsets(const char *path, const char *what, wf_error *err) {
  const bool is_gzip = path != NULL && is_gzip_name(path);
  if (path == NULL || (!is_gzip && wf__target_is_file(path))) return WF_OK; /* open reports NULL */
  return wf__fail(err, WF_ERR_ARGUMENT, "%s must be a plain file, but %s is %s", what,
                  strcmp(path, "-") == 0 ? "standard output" : path, is_gzip ? "gzip" : "a stream");
}

/* --- writing -------------------------------------------------------------------------------- */

void wf__write(wf__output *output, const void *data, size_t size) {
  if (size >= BUFFER_BYTES) {
    flush(output);
    write_through(output, data, size);
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

void wf__output_flush(wf__output *output) {
  if (wf__target_is_stream(&output->target)) flush(output);
}

uint64_t wf__output_offset(const wf__output *output) { return output->offset + output->used; }

void wf__output_patch(wf__output *output, uint64_t offset, const void *data, size_t size) {
  flush(output);
  for (const char *at = data; size > 0 && output->error == 0;) {
    const int64_t put = wf__file_write_at(output->target.fd, at, size, offset);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      output->error = put < 0 ? errno : EIO;
      continue;
    }
    at += put;
    offset += (uint64_t)put;
    size -= (size_t)put;
  }
}

/* --- closing -------------------------------------------------------------------------------- */

static wf_status status_of(const wf__output *output, const char *name, wf_error *err) {
  if (output->error == 0) return WF_OK;
  if (output->error == ECANCELED)
    return wf__fail(err, WF_ERR_CANCELLED, "cancelled while writing %s", name);
  if (output->is_memory) return wf__fail_memory(err, output->memory.size, name);
  return wf__fail(err, wf__io_status(output->error), "%s: cannot write: %s", name,
                  strerror(output->error));
}

wf_status wf__output_close(wf__output *output, wf_error *err) {
  flush(output);
  if (output->gzip != NULL && output->error == 0) write_gzip(output, NULL, 0, Z_FINISH);
  const bool is_standard = output->target.is_standard;
  if (output->error == 0) output->error = wf__target_finish(&output->target);
  wf_status status = status_of(output, is_standard ? "standard output" : output->path, err);
  wf__output_abort(output);
  return status;
}

wf_status wf__output_take(wf__output *output, void **data, size_t *size, wf_error *err) {
  flush(output);
  wf_status status = status_of(output, "an output in memory", err);
  if (status == WF_OK) {
    *size = (size_t)output->memory.size;
    *data = output->memory.data;
    output->memory.data = NULL;
  }
  wf__output_abort(output);
  return status;
}

void wf__output_abort(wf__output *output) {
  if (output == NULL) return;
  wf__target_discard(&output->target);
  if (output->gzip != NULL) deflateEnd(&output->gzip->stream);
  free(output->gzip);
  wf__vec_free(&output->memory);
  free(output->path);
  free(output);
}

/* --- public functions ----------------------------------------------------------------------- */

wf_status wf_output_open(const char *path, wf_output **out, wf_error *err) {
  if (out == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "out is NULL");
  return wf__output_open(path, out, err);
}

void wf_output_write(wf_output *output, const void *data, size_t size) {
  wf__write(output, data, size);
}

wf_status wf_output_close(wf_output *output, wf_error *err) {
  return wf__output_close(output, err);
}

void wf_output_abort(wf_output *output) { wf__output_abort(output); }
