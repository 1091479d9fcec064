/* input.c - whole files as bytes: mapped, read or inflated. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/gunzip.h"
#include "base/input.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/platform.h"

typedef WF__VEC(uint8_t) byte_vec;

static wf_status read_all(int fd, const char *path, byte_vec *bytes, wf_error *err) {
  for (;;) {
    WF__TRY(wf__vec_grow(bytes, (size_t)1 << 16, path, err));
    int64_t got = wf__file_read(fd, bytes->data + bytes->size, (size_t)(bytes->cap - bytes->size));
    if (got < 0 && errno == EINTR) wf__interrupt_poll();
    WF__TRY(wf__interrupted(err));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return wf__fail(err, wf__io_status(errno), "%s: cannot read: %s", path, strerror(errno));
    if (got == 0) return WF_OK;
    bytes->size += (uint64_t)got;
  }
}

static wf_status inflate_all(wf__gunzip *gunzip, const uint8_t *at, size_t size, byte_vec *out,
                             wf_error *err) {
  enum { PIECE_BYTES = 1 << 24 }; /* so that a long file can be interrupted */
  for (const uint8_t *end = at + size; at != end;) {
    size_t got;
    WF__TRY(wf__interrupted(err));
    WF__TRY(wf__vec_grow(out, (size_t)1 << 18, gunzip->path, err));
    const uint64_t room = out->cap - out->size;
    WF__TRY(wf__gunzip_some(gunzip, &at, end, out->data + out->size,
                            room < PIECE_BYTES ? (size_t)room : PIECE_BYTES, &got, err));
    out->size += got;
  }
  return wf__gunzip_end(gunzip, err);
}

/* Sets the input's content to the bytes inflated. The content is not inflated again. */
static wf_status inflate_input(const uint8_t *data, size_t size, wf__input *out, wf_error *err) {
  wf__gunzip gunzip;
  byte_vec plain = {0};
  WF__TRY(wf__gunzip_start(out->path, &gunzip, err));
  wf_status status = inflate_all(&gunzip, data, size, &plain, err);
  wf__gunzip_free(&gunzip);
  if (status != WF_OK) {
    wf__vec_free(&plain);
    return status;
  }
  out->owned = plain.data;
  out->data = plain.data;
  out->size = (size_t)plain.size;
  return WF_OK;
}

/* Sets the input's content to `vec`, inflated if it is gzip. Takes ownership of the vector. */
static wf_status adopt(byte_vec *vec, wf__input *out, wf_error *err) {
  if (wf__is_gzip(vec->data, (size_t)vec->size)) {
    wf_status status = inflate_input(vec->data, (size_t)vec->size, out, err);
    wf__vec_free(vec);
    return status;
  }
  out->owned = vec->data;
  out->data = vec->data;
  out->size = (size_t)vec->size;
  return wf__refuse_packed(out->data, out->size, out->path, err);
}

static wf_status open_file(const char *path, int fd, wf__input *out, wf_error *err) {
  uint64_t file_size = 0;
  const wf__file_kind kind = wf__file_kind_of(fd, &file_size);
  if (kind == WF__FILE_NONE)
    return wf__fail(err, wf__io_status(errno), "%s: cannot stat: %s", path, strerror(errno));
  if (kind == WF__FILE_FOLDER) return wf__fail(err, WF_ERR_IO, "%s: is a directory", path);
  if (kind == WF__FILE_REGULAR && file_size > 0) {
    void *map = wf__file_map(fd, file_size);
    if (map != NULL) {
      const size_t size = (size_t)file_size;
      if (wf__is_gzip(map, size)) {
        wf_status status = inflate_input(map, size, out, err);
        wf__file_unmap(map, size);
        return status;
      }
      out->data = map;
      out->size = size;
      out->mapped = true;
      return wf__refuse_packed(out->data, size, path, err);
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
  int fd = is_stdin ? WF__STDIN : wf__file_read_only(path);
  wf_status status;
  if (fd < 0) {
    status = wf__fail(err, wf__io_status(errno), "%s: cannot open: %s", path, strerror(errno));
  } else {
    status = open_file(out->path, fd, out, err);
    if (!is_stdin) wf__file_close(fd);
  }
  if (status != WF_OK) wf__input_close(out);
  return status;
}

static wf_status copy_input(const void *data, size_t size, wf__input *out, wf_error *err) {
  WF__TRY(wf__refuse_packed(data, size, out->path, err));
  out->owned = wf__alloc(size, 1);
  if (out->owned == NULL) return wf__fail_memory(err, size, "a copy of the input");
  if (size != 0) memcpy(out->owned, data, size);
  out->data = out->owned;
  out->size = size;
  return WF_OK;
}

wf_status wf__input_from_memory(const void *data, size_t size, const char *name, wf__input *out,
                                wf_error *err) {
  *out = (wf__input){0};
  out->path = wf__strndup(name, strlen(name));
  if (out->path == NULL) return wf__fail_memory(err, strlen(name), "a name");
  wf_status status = wf__is_gzip(data, size) ? inflate_input(data, size, out, err)
                                             : copy_input(data, size, out, err);
  if (status != WF_OK) wf__input_close(out);
  return status;
}

void wf__input_close(wf__input *input) {
  if (input->mapped) wf__file_unmap((void *)(uintptr_t)input->data, input->size);
  free(input->owned);
  free((void *)(uintptr_t)input->path);
  *input = (wf__input){0};
}
