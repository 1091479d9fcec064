/* gunzip.c - the members of a gzip stream, with a limit on their size. */
#include "base/gunzip.h"

#include <string.h>

/* Text, graphs and lattices compress 3 to 50 times. gzip compresses up to 1,032 times, so a small
 * malicious file could fill the memory. Higher ratios are refused. */
enum { MOST_RATIO = 200, UNCHECKED_BYTES = 64 << 20, MOST_PIECE = 1 << 30 };

wf_status wf__refuse_packed(const uint8_t *data, size_t size, const char *path, wf_error *err) {
  static const struct {
    const char *magic;
    size_t size;
    const char *name, *command;
  } kinds[] = {{"\xFD\x37zXZ\0", 6, "xz", "xz -dc"},
               {"BZh", 3, "bzip2 (bz2)", "bzip2 -dc"},
               {"\x28\xB5\x2F\xFD", 4, "zstd", "zstd -dc"},
               {"\x04\x22\x4D\x18", 4, "lz4", "lz4 -dc"},
               {"\x1f\x9d", 2, "compress (.Z)", "uncompress -c"}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (size < kinds[i].size || memcmp(data, kinds[i].magic, kinds[i].size) != 0) continue;
    /* "BZh" could start a text; bzip2 goes on with a digit and the magic number of a block */
    if (i == 1 && (size < 10 || (memcmp(data + 4, "1AY&SY", 6) != 0 &&
                                 memcmp(data + 4, "\x17\x72\x45\x38\x50\x90", 6) != 0)))
      continue;
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "%s: is compressed with %s, and only gzip is read; decompress it first: '%s "
                    "FILE'",
                    path, kinds[i].name, kinds[i].command);
  }
  return WF_OK;
}

wf_status wf__gunzip_start(const char *path, wf__gunzip *out, wf_error *err) {
  *out = (wf__gunzip){.path = path};
  return inflateInit2(&out->stream, 15 + 16) == Z_OK
             ? WF_OK
             : wf__fail(err, WF_ERR_MEMORY, "%s: out of memory for inflating", path);
}

void wf__gunzip_free(wf__gunzip *gunzip) { inflateEnd(&gunzip->stream); }

static wf_status fail_at(const wf__gunzip *gunzip, const char *what, wf_error *err) {
  return wf__fail(err, WF_ERR_FORMAT, "%s: gzip stream is damaged near byte %llu: %s", gunzip->path,
                  (unsigned long long)gunzip->num_in, what);
}

wf_status wf__gunzip_end(const wf__gunzip *gunzip, wf_error *err) {
  if (gunzip->between) return WF_OK;
  return wf__fail(err, WF_ERR_FORMAT, "%s: gzip stream ends early, after %llu bytes of content",
                  gunzip->path, (unsigned long long)gunzip->num_out);
}

/* Between two members: starts the next one, or skips zero bytes up to `end`. */
static wf_status next_member(wf__gunzip *gunzip, const uint8_t **at, const uint8_t *end,
                             wf_error *err) {
  while (*at != end && **at == 0) {
    gunzip->padding = true;
    gunzip->num_in++;
    ++*at;
  }
  if (*at == end) return WF_OK;
  if (gunzip->padding || **at != 0x1f)
    return fail_at(gunzip, "neither another member nor zero bytes follow the last member", err);
  gunzip->between = false;
  return inflateReset(&gunzip->stream) == Z_OK ? WF_OK : fail_at(gunzip, "cannot go on", err);
}

wf_status wf__gunzip_some(wf__gunzip *gunzip, const uint8_t **at, const uint8_t *end, uint8_t *to,
                          size_t room, size_t *got, wf_error *err) {
  z_stream *z = &gunzip->stream;
  *got = 0;
  while (*at != end && *got < room) {
    if (gunzip->between) {
      WF__TRY(next_member(gunzip, at, end, err));
      continue;
    }
    const size_t given = (size_t)(end - *at), wanted = room - *got;
    const uInt in = (uInt)(given < MOST_PIECE ? given : MOST_PIECE),
               out = (uInt)(wanted < MOST_PIECE ? wanted : MOST_PIECE);
    z->next_in = (Bytef *)(uintptr_t)*at;
    z->avail_in = in;
    z->next_out = to + *got;
    z->avail_out = out;
    const int code = inflate(z, Z_NO_FLUSH);
    *at += in - z->avail_in;
    *got += out - z->avail_out;
    gunzip->num_in += in - z->avail_in;
    gunzip->num_out += out - z->avail_out;
    if (code == Z_STREAM_END)
      gunzip->between = true;
    else if (code == Z_MEM_ERROR)
      return wf__fail(err, WF_ERR_MEMORY, "%s: out of memory for inflating", gunzip->path);
    else if (code != Z_OK && code != Z_BUF_ERROR)
      return fail_at(gunzip, z->msg != NULL ? z->msg : "unknown error", err);
    if (gunzip->num_out > UNCHECKED_BYTES && gunzip->num_out / MOST_RATIO > gunzip->num_in)
      return wf__fail(err, WF_ERR_LIMIT,
                      "%s: gzip stream inflates to more than %d times its size; if that is "
                      "meant, inflate it first",
                      gunzip->path, MOST_RATIO);
  }
  return WF_OK;
}
