/* source.h - the bytes of an archive, in memory or streamed.
 *
 * A source has a window [at, end) of the stream. In memory (a mapped file, a fuzzer's buffer) the
 * window is all the rest. For a pipe or gzip stream, wf__source_need moves and grows the window as
 * bytes arrive. It never allocates memory for a count in a header alone.
 *
 *     stream   |... read ...|at ======= window ======= end|... not read yet ...
 */
#ifndef WF_BASE_SOURCE_H
#define WF_BASE_SOURCE_H

#include "base/input.h"
#include "base/memory.h"

typedef struct wf__source {
  const uint8_t *at, *end;
  uint64_t end_offset; /* of `end` in the stream */
  char *path;          /* for messages, owned */
  /* in memory */
  wf__input input; /* the mapped file; empty if the bytes are borrowed or streamed */
  uint64_t size;
  /* streamed */
  struct wf__stream *stream; /* NULL: in memory */
} wf__source;

/* Borrows the bytes. */
wf_status wf__source_memory(const void *data, size_t size, const char *path, wf__source *out,
                            wf_error *err);
/* Maps an uncompressed regular file. Streams pipes, devices, "-" and gzip files. */
wf_status wf__source_open(const char *path, wf__source *out, wf_error *err);
/* Streams every file, so that a large one does not count as memory in use. */
wf_status wf__source_open_stream(const char *path, wf__source *out, wf_error *err);
void wf__source_close(wf__source *source);

/* Reads until the window has `size` bytes or the stream ends. Returns WF_OK in both cases, so check
 * wf__source_left. Errors: I/O, memory, gzip. */
wf_status wf__source_need(wf__source *source, uint64_t size, wf_error *err);
static inline uint64_t wf__source_left(const wf__source *source) {
  return (uint64_t)(source->end - source->at);
}
static inline uint64_t wf__source_offset(const wf__source *source) {
  return source->end_offset - wf__source_left(source);
}
/* Gets the next byte without consuming it, or -1 at the end. */
wf_status wf__source_peek(wf__source *source, int *byte, wf_error *err);
/* Sets `*out` to the next `size` bytes and consumes them. They are valid until the next call.
 * WF_ERR_FORMAT if there are fewer. */
wf_status wf__source_take(wf__source *source, uint64_t size, const char *what, const uint8_t **out,
                          wf_error *err);
/* As wf__fail, with "path: byte OFFSET: " before the message. */
wf_status wf__source_fail(const wf__source *source, wf_error *err, wf_status code,
                          const char *format, ...) WF__PRINTF(4, 5);
/* Fraction read, in [0, 1]; negative if unknown. */
double wf__source_fraction(const wf__source *source);

#endif
