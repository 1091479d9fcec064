/* source.c - the window over an archive: mapped, or read and inflated as it arrives. */
#include "base/source.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/gunzip.h"
#include "base/interrupt.h"
#include "base/platform.h"

enum { CHUNK_BYTES = 1 << 16 };

struct wf__stream {
  int fd;
  bool ended, gzip, started;
  wf__gunzip gunzip;
  uint8_t *buffer; /* [cap] contains the window */
  uint64_t cap;
  const uint8_t *raw_at, *raw_end; /* gzip: bytes read but not inflated yet */
  uint8_t raw[CHUNK_BYTES];
};

static wf_status name_source(wf__source *source, const char *path, wf_error *err) {
  *source = (wf__source){0};
  const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
  source->path = wf__strndup(name, strlen(name));
  return source->path != NULL ? WF_OK : wf__fail_memory(err, strlen(name) + 1, "a path");
}

wf_status wf__source_memory(const void *data, size_t size, const char *path, wf__source *out,
                            wf_error *err) {
  WF__TRY(name_source(out, path, err));
  out->at = data;
  out->end = size != 0 ? out->at + size : out->at;
  out->end_offset = out->size = size;
  return WF_OK;
}

static bool is_plain_file(int fd) {
  uint64_t size;
  uint8_t magic[2] = {0, 0};
  if (wf__file_kind_of(fd, &size) != WF__FILE_REGULAR) return false;
  return wf__file_read_at(fd, magic, 2, 0) != 2 || !wf__is_gzip(magic, 2);
}

static wf_status open_source(const char *path, bool may_map, wf__source *out, wf_error *err) {
  WF__TRY(name_source(out, path, err));
  bool is_stdin = strcmp(path, "-") == 0;
  int fd = is_stdin ? WF__STDIN : wf__file_read_only(path);
  if (fd < 0) {
    wf_status status =
        wf__fail(err, wf__io_status(errno), "%s: cannot open: %s", path, strerror(errno));
    wf__source_close(out);
    return status;
  }
  if (may_map && !is_stdin && is_plain_file(fd)) {
    wf__file_close(fd);
    wf_status status = wf__input_open(path, &out->input, err);
    if (status != WF_OK) {
      wf__source_close(out);
      return status;
    }
    out->at = out->input.data;
    out->size = out->end_offset = out->input.size;
    out->end = out->size != 0 ? out->at + out->size : out->at;
    return WF_OK;
  }
  out->stream = wf__calloc(1, sizeof *out->stream);
  if (out->stream == NULL) {
    if (!is_stdin) wf__file_close(fd);
    wf__source_close(out);
    return wf__fail_memory(err, sizeof *out->stream, "an input stream");
  }
  out->stream->fd = fd;
  return WF_OK;
}

wf_status wf__source_open(const char *path, wf__source *out, wf_error *err) {
  return open_source(path, true, out, err);
}

wf_status wf__source_open_stream(const char *path, wf__source *out, wf_error *err) {
  return open_source(path, false, out, err);
}

void wf__source_close(wf__source *source) {
  struct wf__stream *stream = source->stream;
  if (stream != NULL) {
    if (stream->gzip) wf__gunzip_free(&stream->gunzip);
    if (stream->fd != WF__STDIN) wf__file_close(stream->fd);
    free(stream->buffer);
    free(stream);
  }
  wf__input_close(&source->input);
  free(source->path);
  *source = (wf__source){0};
}

static wf_status read_some(const wf__source *source, uint8_t *to, size_t size, size_t *got,
                           wf_error *err) {
  for (;;) {
    int64_t n = wf__file_read(source->stream->fd, to, size);
    if (n < 0 && errno == EINTR) wf__interrupt_poll();
    WF__TRY(wf__interrupted(err));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return wf__fail(err, wf__io_status(errno), "%s: cannot read: %s", source->path,
                      strerror(errno));
    *got = (size_t)n;
    return WF_OK;
  }
}

/* Inflates at least one byte to `to`, or sets stream->ended. */
static wf_status inflate_some(wf__source *source, uint8_t *to, size_t size, size_t *got,
                              wf_error *err) {
  struct wf__stream *stream = source->stream;
  *got = 0;
  while (*got == 0) {
    if (stream->raw_at == stream->raw_end) {
      size_t raw = 0;
      WF__TRY(read_some(source, stream->raw, CHUNK_BYTES, &raw, err));
      stream->raw_at = stream->raw;
      stream->raw_end = stream->raw + raw;
      stream->ended = raw == 0;
      if (raw == 0) return wf__gunzip_end(&stream->gunzip, err);
    }
    wf_status status =
        wf__gunzip_some(&stream->gunzip, &stream->raw_at, stream->raw_end, to, size, got, err);
    if (status != WF_OK) stream->ended = true;
    WF__TRY(status);
  }
  return WF_OK;
}

/* Reads the first bytes, which tell how the stream is compressed. */
static wf_status start(wf__source *source, uint8_t *to, size_t size, size_t *got, wf_error *err) {
  enum { MOST_MAGIC_BYTES = 10 };
  struct wf__stream *stream = source->stream;
  size_t have = 0, more = 1;
  while (have < MOST_MAGIC_BYTES && more > 0) {
    WF__TRY(read_some(source, stream->raw + have, CHUNK_BYTES - have, &more, err));
    have += more;
  }
  stream->started = true;
  WF__TRY(wf__refuse_packed(stream->raw, have, source->path, err));
  if (wf__is_gzip(stream->raw, have)) {
    WF__TRY(wf__gunzip_start(source->path, &stream->gunzip, err));
    stream->gzip = true;
    stream->raw_at = stream->raw;
    stream->raw_end = stream->raw + have;
    return inflate_some(source, to, size, got, err);
  }
  memcpy(to, stream->raw, have);
  stream->ended = have == 0;
  *got = have;
  return WF_OK;
}

/* Moves the window to the front of the buffer. Makes room for at least CHUNK_BYTES after it. */
static wf_status make_room(wf__source *source, wf_error *err) {
  struct wf__stream *stream = source->stream;
  uint64_t left = wf__source_left(source);
  if (left > 0 && source->at != stream->buffer) memmove(stream->buffer, source->at, left);
  if (stream->cap - left < CHUNK_BYTES) {
    uint64_t cap = left * 2 + 2 * CHUNK_BYTES;
    uint8_t *grown = realloc(stream->buffer, cap);
    if (grown != NULL) {
      stream->buffer = grown;
      stream->cap = cap;
    }
    source->at = stream->buffer;
    source->end = stream->buffer + left;
    return grown != NULL ? WF_OK : wf__fail_memory(err, cap, source->path);
  }
  source->at = stream->buffer;
  source->end = stream->buffer + left;
  return WF_OK;
}

wf_status wf__source_need(wf__source *source, uint64_t size, wf_error *err) {
  struct wf__stream *stream = source->stream;
  while (wf__source_left(source) < size && stream != NULL && !stream->ended) {
    WF__TRY(make_room(source, err));
    uint64_t left = wf__source_left(source), room = stream->cap - left, got = 0;
    size_t most = room < ((uint64_t)1 << 28) ? (size_t)room : (size_t)1 << 28, part = 0;
    uint8_t *to = stream->buffer + left;
    if (!stream->started) {
      WF__TRY(start(source, to, most, &part, err));
    } else if (stream->gzip) {
      WF__TRY(inflate_some(source, to, most, &part, err));
    } else {
      WF__TRY(read_some(source, to, most, &part, err));
      stream->ended = part == 0;
    }
    got = part;
    source->end += got;
    source->end_offset += got;
  }
  return WF_OK;
}

wf_status wf__source_peek(wf__source *source, int *byte, wf_error *err) {
  *byte = -1;
  if (source->at == source->end) WF__TRY(wf__source_need(source, 1, err));
  if (source->at != source->end) *byte = *source->at;
  return WF_OK;
}

wf_status wf__source_take(wf__source *source, uint64_t size, const char *what, const uint8_t **out,
                          wf_error *err) {
  WF__TRY(wf__source_need(source, size, err));
  if (wf__source_left(source) < size)
    return wf__source_fail(source, err, WF_ERR_FORMAT,
                           "file ends early: %s needs %llu bytes, %llu are left", what,
                           (unsigned long long)size, (unsigned long long)wf__source_left(source));
  *out = source->at;
  source->at += size;
  return WF_OK;
}

wf_status wf__source_fail(const wf__source *source, wf_error *err, wf_status code,
                          const char *format, ...) {
  va_list args;
  va_start(args, format);
  wf__fail_at(err, code, source->path, " byte ", wf__source_offset(source), format, args);
  va_end(args);
  return code;
}

double wf__source_fraction(const wf__source *source) {
  if (source->stream != NULL) return -1;
  return source->size != 0 ? (double)wf__source_offset(source) / (double)source->size : 1;
}
