/* input.c - whole files as bytes: mapped, read or inflated. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/input.h"
#include "base/interrupt.h"
#include "base/memory.h"

/* Text, graphs and lattices compress 3 to 50 times. gzip compresses up to 1,032 times, so a small
 * malicious file could fill the memory. Higher ratios are refused. */
enum { MOST_RATIO = 200, UNCHECKED_BYTES = 64 << 20 };

typedef WF__VEC(uint8_t) byte_vec;

static wf_status read_all(int fd, const char *path, byte_vec *bytes, wf_error *err) {
  for (;;) {
    WF__TRY(wf__vec_grow(bytes, (size_t)1 << 16, path, err));
    ssize_t got = read(fd, bytes->data + bytes->size, (size_t)(bytes->cap - bytes->size));
    if (got < 0 && errno == EINTR) wf__interrupt_poll();
    WF__TRY(wf__interrupted(err));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return wf__fail(err, WF_ERR_IO, "%s: cannot read: %s", path, strerror(errno));
    if (got == 0) return WF_OK;
    bytes->size += (uint64_t)got;
  }
}

/* Inflates all members of a gzip file held in memory. */
static wf_status inflate_all(const char *path, const uint8_t *data, size_t size, byte_vec *out,
                             wf_error *err) {
  z_stream stream = {0};
  if (inflateInit2(&stream, 15 + 32) != Z_OK)
    return wf__fail(err, WF_ERR_MEMORY, "%s: cannot start inflating", path);
  wf_status status = WF_OK;
  size_t consumed = 0;
  for (;;) {
    if (stream.avail_in == 0 && consumed < size) {
      size_t chunk = size - consumed < ((size_t)1 << 30) ? size - consumed : (size_t)1 << 30;
      stream.next_in = (Bytef *)(uintptr_t)(data + consumed);
      stream.avail_in = (uInt)chunk;
      consumed += chunk;
    }
    status = wf__interrupted(err);
    if (status == WF_OK) status = wf__vec_grow(out, (size_t)1 << 18, path, err);
    if (status != WF_OK) break;
    uint64_t room = out->cap - out->size;
    stream.next_out = out->data + out->size;
    stream.avail_out = room > ((uint64_t)1 << 30) ? (uInt)1 << 30 : (uInt)room;
    uInt before = stream.avail_out;
    int code = inflate(&stream, Z_NO_FLUSH);
    out->size += before - stream.avail_out;
    if (out->size > UNCHECKED_BYTES && out->size / MOST_RATIO > consumed - stream.avail_in) {
      status = wf__fail(err, WF_ERR_LIMIT,
                        "%s: gzip stream inflates to more than %d times its size; if that is "
                        "meant, inflate it first",
                        path, MOST_RATIO);
      break;
    }
    if (code == Z_STREAM_END) {
      bool more = stream.avail_in > 0 || consumed < size;
      if (!more || inflateReset(&stream) != Z_OK) break;
      if (stream.avail_in > 0 && *stream.next_in != 0x1f)
        break; /* trailing padding, which gzip(1) ignores too */
    } else if (code == Z_BUF_ERROR && stream.avail_in == 0 && consumed == size) {
      status = wf__fail(err, WF_ERR_FORMAT, "%s: gzip stream ends early, after %llu bytes of text",
                        path, (unsigned long long)out->size);
      break;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      status = wf__fail(err, WF_ERR_FORMAT, "%s: gzip stream is damaged near byte %llu: %s", path,
                        (unsigned long long)(consumed - stream.avail_in),
                        stream.msg ? stream.msg : "unknown error");
      break;
    }
  }
  inflateEnd(&stream);
  return status;
}

/* Sets the input's content to `vec`, inflated if it is gzip. Takes ownership of the vector. */
static wf_status adopt(byte_vec *vec, wf__input *out, wf_error *err) {
  if (vec->size >= 2 && vec->data[0] == 0x1f && vec->data[1] == 0x8b) {
    byte_vec plain = {0};
    wf_status status = inflate_all(out->path, vec->data, (size_t)vec->size, &plain, err);
    wf__vec_free(vec);
    if (status != WF_OK) {
      wf__vec_free(&plain);
      return status;
    }
    out->owned = plain.data;
    out->data = plain.data;
    out->size = (size_t)plain.size;
    return WF_OK;
  }
  out->owned = vec->data;
  out->data = vec->data;
  out->size = (size_t)vec->size;
  return WF_OK;
}

static wf_status open_file(const char *path, int fd, wf__input *out, wf_error *err) {
  struct stat info;
  if (fstat(fd, &info) != 0)
    return wf__fail(err, WF_ERR_IO, "%s: cannot stat: %s", path, strerror(errno));
  if (S_ISDIR(info.st_mode)) return wf__fail(err, WF_ERR_IO, "%s: is a directory", path);
  if (S_ISREG(info.st_mode) && info.st_size > 0) {
    void *map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map != MAP_FAILED) {
      const uint8_t *bytes = map;
      size_t size = (size_t)info.st_size;
      if (size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b) {
        byte_vec plain = {0};
        wf_status status = inflate_all(path, bytes, size, &plain, err);
        munmap(map, size);
        if (status != WF_OK) {
          wf__vec_free(&plain);
          return status;
        }
        return adopt(&plain, out, err);
      }
      out->data = bytes;
      out->size = size;
      out->mapped = true;
      return WF_OK;
    }
  }
  byte_vec bytes = {0};
  wf_status status = read_all(fd, path, &bytes, err);
  if (status != WF_OK) {
    wf__vec_free(&bytes);
    return status;
  }
  return adopt(&bytes, out, err);
}

wf_status wf__input_open(const char *path, wf__input *out, wf_error *err) {
  *out = (wf__input){0};
  if (path == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "no path given");
  bool is_stdin = strcmp(path, "-") == 0;
  out->path =
      wf__strndup(is_stdin ? "standard input" : path, strlen(is_stdin ? "standard input" : path));
  if (out->path == NULL) return wf__fail_memory(err, strlen(path), "a path");
  int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
  wf_status status;
  if (fd < 0) {
    status = wf__fail(err, WF_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
  } else {
    status = open_file(out->path, fd, out, err);
    if (!is_stdin) close(fd);
  }
  if (status != WF_OK) wf__input_close(out);
  return status;
}

wf_status wf__input_from_memory(const void *data, size_t size, const char *name, wf__input *out,
                                wf_error *err) {
  *out = (wf__input){0};
  uint8_t *copy = wf__alloc(size, 1);
  out->owned = copy;
  out->path = wf__strndup(name, strlen(name));
  if (copy == NULL || out->path == NULL) {
    wf__input_close(out);
    return wf__fail_memory(err, size, "a copy of the input");
  }
  if (size != 0) memcpy(copy, data, size);
  out->data = copy;
  out->size = size;
  return WF_OK;
}

void wf__input_close(wf__input *input) {
  if (input->mapped) munmap((void *)(uintptr_t)input->data, input->size);
  free(input->owned);
  free((void *)(uintptr_t)input->path);
  *input = (wf__input){0};
}
