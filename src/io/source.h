/* source.h - bytes of an archive, in memory or as they arrive.
 *
 * A source shows a window [at, end) of the stream. In memory (a mapped file, a fuzzer's buffer) the
 * window is all that is left; on a pipe or gzip stream wf__source_need moves it on and grows it as
 * bytes really arrive, never by a count that a header claims.
 *
 *     stream   |... read ...|at ======= window ======= end|... not read yet ...
 */
#ifndef WF_IO_SOURCE_H
#define WF_IO_SOURCE_H

#include "base/input.h"
#include "base/memory.h"

typedef struct wf__source {
  const uint8_t *at, *end;
  uint64_t end_offset; /* of `end` in the stream */
  char *path;          /* for messages, owned */
  /* in memory */
  wf__input input; /* what is mapped; empty if the bytes are borrowed or streamed */
  uint64_t size;
  /* streamed */
  struct wf__stream *stream; /* NULL: in memory */
} wf__source;

/* Borrows the bytes. */
wf_status wf__source_memory(const void *data, size_t size, const char *path, wf__source *out,
                            wf_error *err);
/* A plain regular file is mapped; pipes, devices, "-" and gzip files are streamed. */
wf_status wf__source_open(const char *path, wf__source *out, wf_error *err);
void wf__source_close(wf__source *source);

/* Reads on until the window holds `size` bytes or the stream ends. WF_OK in both cases: look at
 * wf__source_left. Errors: I/O, memory, gzip. */
wf_status wf__source_need(wf__source *source, uint64_t size, wf_error *err);
static inline uint64_t wf__source_left(const wf__source *source) {
  return (uint64_t)(source->end - source->at);
}
static inline uint64_t wf__source_offset(const wf__source *source) {
  return source->end_offset - wf__source_left(source);
}
/* Next byte without taking it, or -1 at the end. */
wf_status wf__source_peek(wf__source *source, int *byte, wf_error *err);
/* Points at the next `size` bytes and takes them; valid until the next call. Error WF_ERR_FORMAT if
 * there are fewer. */
wf_status wf__source_take(wf__source *source, uint64_t size, const char *what, const uint8_t **out,
                          wf_error *err);
/* wf__fail with "path: byte OFFSET: " in front. */
wf_status wf__source_fail(const wf__source *source, wf_error *err, wf_status code,
                          const char *format, ...) WF__PRINTF(4, 5);
/* Share read, [0, 1]; negative if not known. */
double wf__source_fraction(const wf__source *source);

#endif
