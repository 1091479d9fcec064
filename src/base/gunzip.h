/* gunzip.h - inflates gzip streams piece by piece: one or more members, then zero bytes, which
 * tapes and block devices add. Anything else after a member is an error: it may be a damaged
 * member. */
#ifndef WF_BASE_GUNZIP_H
#define WF_BASE_GUNZIP_H

#include <zlib.h>

#include "base/error.h"

typedef struct wf__gunzip {
  z_stream stream;
  const char *path; /* for messages, borrowed */
  bool between;     /* a member has ended, another may follow */
  bool padding;     /* only zero bytes may follow */
  uint64_t num_in, num_out;
} wf__gunzip;

/* True if the bytes start as a gzip stream does. */
static inline bool wf__is_gzip(const uint8_t *data, size_t size) {
  return size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
}
/* Error: the bytes are the start of an xz, bzip2, zstd, lz4 or compress file. */
wf_status wf__refuse_packed(const uint8_t *data, size_t size, const char *path, wf_error *err);

wf_status wf__gunzip_start(const char *path, wf__gunzip *out, wf_error *err);
/* Inflates bytes of [*at, end) to `to`, which has room for `room` > 0 bytes. Moves *at past the
 * bytes used, and sets *got to the number of bytes written. Uses all input or fills `to`. Errors: a
 * damaged stream; more than 64 MB and 200 times the size of the input. */
wf_status wf__gunzip_some(wf__gunzip *gunzip, const uint8_t **at, const uint8_t *end, uint8_t *to,
                          size_t room, size_t *got, wf_error *err);
/* Error: the input ends inside a member. */
wf_status wf__gunzip_end(const wf__gunzip *gunzip, wf_error *err);
void wf__gunzip_free(wf__gunzip *gunzip);

#endif
