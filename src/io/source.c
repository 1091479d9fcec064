/* source.c - the window over an archive: mapped, or read and inflated as it arrives. */
#include "io/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/interrupt.h"

enum { CHUNK_BYTES = 1 << 16 };

struct wf__stream {
  int fd;
  bool ended, gzip, started;
  bool between_members; /* gzip: a member has ended, another may follow */
  z_stream inflate;
  uint8_t *buffer; /* [cap] contains the window */
  uint64_t cap;
  uint8_t raw[CHUNK_BYTES]; /* gzip: bytes read but not inflated yet */
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
  struct stat info;
  uint8_t magic[2] = {0, 0};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  return pread(fd, magic, 2, 0) != 2 || magic[0] != 0x1f || magic[1] != 0x8b;
}

wf_status wf__source_open(const char *path, wf__source *out, wf_error *err) {
  WF__TRY(name_source(out, path, err));
  bool is_stdin = strcmp(path, "-") == 0;
  int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    wf_status status = wf__fail(err, WF_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
    wf__source_close(out);
    return status;
  }
  if (!is_stdin && is_plain_file(fd)) {
    close(fd);
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
    if (!is_stdin) close(fd);
    wf__source_close(out);
    return wf__fail_memory(err, sizeof *out->stream, "an input stream");
  }
  out->stream->fd = fd;
  return WF_OK;
}

void wf__source_close(wf__source *source) {
  struct wf__stream *stream = source->stream;
  if (stream != NULL) {
    if (stream->gzip) inflateEnd(&stream->inflate);
    if (stream->fd != STDIN_FILENO) close(stream->fd);
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
    ssize_t n = read(source->stream->fd, to, size);
    if (n < 0 && errno == EINTR) wf__interrupt_poll();
    WF__TRY(wf__interrupted(err));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return wf__fail(err, WF_ERR_IO, "%s: cannot read: %s", source->path, strerror(errno));
    *got = (size_t)n;
    return WF_OK;
  }
}

/* Inflates at least one byte to `to`, or sets stream->ended. */
static wf_status inflate_some(wf__source *source, uint8_t *to, size_t size, size_t *got,
                              wf_error *err) {
  struct wf__stream *stream = source->stream;
  z_stream *z = &stream->inflate;
  *got = 0;
  while (*got == 0) {
    if (z->avail_in == 0) {
      size_t raw = 0;
      WF__TRY(read_some(source, stream->raw, CHUNK_BYTES, &raw, err));
      if (raw == 0) {
        stream->ended = true;
        if (stream->between_members) return WF_OK;
        return wf__fail(err, WF_ERR_FORMAT, "%s: gzip stream ends early", source->path);
      }
      z->next_in = stream->raw;
      z->avail_in = (uInt)raw;
    }
    if (stream->between_members) {
      if (*z->next_in != 0x1f) { /* padding after the last member */
        stream->ended = true;
        return WF_OK;
      }
      if (inflateReset(z) != Z_OK)
        return wf__fail(err, WF_ERR_FORMAT, "%s: gzip stream is damaged", source->path);
      stream->between_members = false;
    }
    z->next_out = to;
    z->avail_out = (uInt)size;
    int code = inflate(z, Z_NO_FLUSH);
    *got = size - z->avail_out;
    if (code == Z_STREAM_END)
      stream->between_members = true;
    else if (code != Z_OK && code != Z_BUF_ERROR) {
      stream->ended = true;
      return wf__fail(err, WF_ERR_FORMAT, "%s: gzip stream is damaged: %s", source->path,
                      z->msg != NULL ? z->msg : "unknown error");
    }
  }
  return WF_OK;
}

/* Reads the first bytes, which tell whether the stream is gzip. */
static wf_status start(wf__source *source, uint8_t *to, size_t size, size_t *got, wf_error *err) {
  struct wf__stream *stream = source->stream;
  size_t have = 0, more = 1;
  while (have < 2 && more > 0) {
    WF__TRY(read_some(source, stream->raw + have, CHUNK_BYTES - have, &more, err));
    have += more;
  }
  stream->started = true;
  if (have >= 2 && stream->raw[0] == 0x1f && stream->raw[1] == 0x8b) {
    if (inflateInit2(&stream->inflate, 15 + 16) != Z_OK)
      return wf__fail(err, WF_ERR_MEMORY, "%s: cannot start inflating", source->path);
    stream->gzip = true;
    stream->inflate.next_in = stream->raw;
    stream->inflate.avail_in = (uInt)have;
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
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return wf__fail(err, code, "%s: byte %llu: %s", source->path,
                  (unsigned long long)wf__source_offset(source), text);
}

double wf__source_fraction(const wf__source *source) {
  if (source->stream != NULL) return -1;
  return source->size != 0 ? (double)wf__source_offset(source) / (double)source->size : 1;
}
