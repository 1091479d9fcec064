/* npy.c - the .npy header and the conversion of its element types. */
#include "io/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/kaldi_archive.h"

static const char magic[] = "\x93NUMPY";
enum { MAGIC_BYTES = 6, MAX_DIMENSIONS = 4 };

bool wf__is_npy(const uint8_t *data, size_t size) {
  return size >= MAGIC_BYTES && memcmp(data, magic, MAGIC_BYTES) == 0;
}

/* --- header ------------------------------------------------------------------------------ */

typedef struct npy_header {
  char descr[8];
  bool fortran;
  int64_t shape[MAX_DIMENSIONS];
  int num_dimensions;
  bool has_descr, has_order, has_shape;
} npy_header;

static void skip_blanks(wf__cursor *text) {
  while (text->at < text->end && (*text->at == ' ' || *text->at == '\n' || *text->at == '\t'))
    text->at++;
}

static bool take(wf__cursor *text, char c) {
  skip_blanks(text);
  if (text->at == text->end || *text->at != (uint8_t)c) return false;
  text->at++;
  return true;
}

static wf_status expect(wf__cursor *text, char c, wf_error *err) {
  return take(text, c) ? WF_OK
                       : wf__cursor_fail(text, err, WF_ERR_FORMAT, "npy header: expected '%c'", c);
}

/* Reads a quoted string without escapes into `out`. Fails if it does not fit. */
static wf_status take_string(wf__cursor *text, char *out, size_t cap, wf_error *err) {
  char quote = take(text, '\'') ? '\'' : '"';
  if (quote == '"') WF__TRY(expect(text, '"', err));
  size_t size = 0;
  while (text->at < text->end && *text->at != (uint8_t)quote && size + 1 < cap)
    out[size++] = (char)*text->at++;
  out[size] = '\0';
  return expect(text, quote, err);
}

static bool take_word(wf__cursor *text, const char *word) {
  skip_blanks(text);
  size_t size = strlen(word);
  if (wf__cursor_left(text) < size || memcmp(text->at, word, size) != 0) return false;
  text->at += size;
  return true;
}

static wf_status take_shape(wf__cursor *text, npy_header *header, wf_error *err) {
  WF__TRY(expect(text, '(', err));
  header->num_dimensions = 0;
  while (!take(text, ')')) {
    skip_blanks(text);
    wf__span digits = {(const char *)text->at, 0};
    while (text->at < text->end && *text->at >= '0' && *text->at <= '9') text->at++, digits.size++;
    int64_t size = 0;
    if (digits.size == 0 || !wf__parse_i64(digits, &size))
      return wf__cursor_fail(text, err, WF_ERR_FORMAT,
                             "npy header: expected a dimension of the shape");
    if (header->num_dimensions == MAX_DIMENSIONS)
      return wf__cursor_fail(text, err, WF_ERR_FORMAT, "npy array of more than %d dimensions",
                             MAX_DIMENSIONS);
    header->shape[header->num_dimensions++] = size;
    take(text, 'L'); /* suffix of Python 2's long integers */
    if (!take(text, ',')) {
      WF__TRY(expect(text, ')', err));
      break;
    }
  }
  return WF_OK;
}

static wf_status take_entry(wf__cursor *text, npy_header *header, wf_error *err) {
  char key[16];
  WF__TRY(take_string(text, key, sizeof key, err));
  WF__TRY(expect(text, ':', err));
  bool *seen = strcmp(key, "descr") == 0           ? &header->has_descr
               : strcmp(key, "fortran_order") == 0 ? &header->has_order
                                                   : &header->has_shape;
  if (*seen || (seen == &header->has_shape && strcmp(key, "shape") != 0))
    return wf__cursor_fail(text, err, WF_ERR_FORMAT, "npy header: unexpected key");
  *seen = true;
  if (seen == &header->has_shape) return take_shape(text, header, err);
  if (seen == &header->has_order) {
    header->fortran = take_word(text, "True");
    if (!header->fortran && !take_word(text, "False"))
      return wf__cursor_fail(text, err, WF_ERR_FORMAT,
                             "npy header: fortran_order is neither True nor False");
    return WF_OK;
  }
  if (take(text, '['))
    return wf__cursor_fail(text, err, WF_ERR_UNSUPPORTED,
                           "npy array of structures, expected numbers");
  return take_string(text, header->descr, sizeof header->descr, err);
}

static wf_status parse_header(wf__cursor *text, npy_header *header, wf_error *err) {
  WF__TRY(expect(text, '{', err));
  while (!take(text, '}')) {
    WF__TRY(take_entry(text, header, err));
    if (!take(text, ',')) {
      WF__TRY(expect(text, '}', err));
      break;
    }
  }
  skip_blanks(text);
  if (text->at != text->end)
    return wf__cursor_fail(text, err, WF_ERR_FORMAT, "npy header: text after '}'");
  if (!header->has_descr || !header->has_order || !header->has_shape)
    return wf__cursor_fail(text, err, WF_ERR_FORMAT, "npy header lacks %s",
                           !header->has_descr   ? "'descr'"
                           : !header->has_order ? "'fortran_order'"
                                                : "'shape'");
  return WF_OK;
}

static wf_status read_header(wf__cursor *file, npy_header *header, wf_error *err) {
  const uint8_t *start, *text;
  uint32_t size = 0;
  WF__TRY(wf__read_view(file, &start, MAGIC_BYTES + 2, "npy magic", err));
  if (!wf__is_npy(start, MAGIC_BYTES))
    return wf__fail(err, WF_ERR_FORMAT, "%s: not an npy file", file->path);
  uint8_t version = start[MAGIC_BYTES];
  if (version < 1 || version > 3)
    return wf__cursor_fail(file, err, WF_ERR_UNSUPPORTED, "npy version %u, expected 1, 2 or 3",
                           version);
  WF__TRY(wf__read_bytes(file, &size, version == 1 ? 2 : 4, "npy header size", err));
  WF__TRY(wf__read_view(file, &text, size, "npy header", err));
  wf__cursor inside = {.begin = file->begin, .at = text, .end = text + size, .path = file->path};
  return parse_header(&inside, header, err);
}

/* --- values ------------------------------------------------------------------------------ */

/* Converts an IEEE half to a single; exact. */
static float half_to_float(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31,
           fraction = half & 1023, bits;
  if (exponent == 0) { /* zero or subnormal: fraction * 2^-24 */
    float value = (float)fraction * (1.0f / 16777216.0f);
    return sign != 0 ? -value : value;
  }
  bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* X(type in 'descr', size, C type, value as float) */
#define ELEMENT_TYPES(X)                      \
  X("<f4", 4, float, value)                   \
  X("<f2", 2, uint16_t, half_to_float(value)) \
  X("<f8", 8, double, (float)value)           \
  X("|i1", 1, int8_t, (float)value)           \
  X("|u1", 1, uint8_t, (float)value)          \
  X("<i2", 2, int16_t, (float)value)          \
  X("<u2", 2, uint16_t, (float)value)         \
  X("<i4", 4, int32_t, (float)value)          \
  X("<u4", 4, uint32_t, (float)value)

static size_t element_size(const char *descr) {
#define SIZE_ROW(name, size, type, convert) \
  if (strcmp(descr, name) == 0) return size;
  ELEMENT_TYPES(SIZE_ROW)
#undef SIZE_ROW
  return 0;
}

/* Element i of the file goes to index i; in Fortran order (frames vary fastest) it goes to its
 * index in row-major order. */
#define CONVERT_ROW(name, size, type, convert)                                        \
  if (strcmp(header->descr, name) == 0) {                                             \
    for (uint64_t outer = 0, i = 0; outer < num_outer; outer++) {                     \
      for (uint64_t inner = 0; inner < num_inner; inner++, i++) {                     \
        type value;                                                                   \
        memcpy(&value, bytes + i * sizeof value, sizeof value);                       \
        out->data[header->fortran ? inner * num_outer + outer : i] = (convert)*scale; \
      }                                                                               \
    }                                                                                 \
  }

static void convert_values(const npy_header *header, const uint8_t *bytes, float scale,
                           wf_matrix *out) {
  uint64_t rows = (uint64_t)out->num_frames, columns = (uint64_t)out->num_columns;
  uint64_t num_outer = header->fortran ? columns : rows,
           num_inner = header->fortran ? rows : columns;
  ELEMENT_TYPES(CONVERT_ROW)
}

wf_status wf__npy_read(const uint8_t *data, size_t size, const char *path, float scale,
                       wf_matrix *out, wf_error *err) {
  wf__cursor file = {
      .begin = data, .at = data, .end = size != 0 ? data + size : data, .path = path};
  npy_header header = {0};
  WF__TRY(read_header(&file, &header, err));
  size_t element = element_size(header.descr);
  if (element == 0)
    return wf__fail(
        err, WF_ERR_UNSUPPORTED,
        "%s: npy elements are '%s', expected one of <f4 <f2 <f8 |i1 |u1 <i2 <u2 <i4 <u4", path,
        header.descr);
  int batch = header.num_dimensions == 3 && header.shape[0] == 1;
  if (header.num_dimensions - batch != 2)
    return wf__fail(
        err, WF_ERR_FORMAT,
        "%s: npy array of %d dimensions, expected [frames, columns] or [1, frames, columns]", path,
        header.num_dimensions);
  uint64_t elements = 0;
  WF__TRY(
      wf__matrix_shape(out, header.shape[batch], header.shape[batch + 1], &elements, path, err));
  if (wf__cursor_left(&file) != elements * element)
    return wf__cursor_fail(
        &file, err, WF_ERR_FORMAT, "[%lld, %d] of '%s' takes %llu bytes, the file has %llu",
        (long long)out->num_frames, out->num_columns, header.descr,
        (unsigned long long)(elements * element), (unsigned long long)wf__cursor_left(&file));
  WF__TRY(wf__matrix_allocate(out, out->num_frames, out->num_columns, path, err));
  convert_values(&header, file.at, scale, out);
  return WF_OK;
}

size_t wf__npy_header(const wf_matrix *matrix, char header[192]) {
  char dict[128];
  int size =
      snprintf(dict, sizeof dict, "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %d), }",
               (long long)matrix->num_frames, matrix->num_columns);
  size_t total = ((size_t)(MAGIC_BYTES + 4 + size + 1) + 63) / 64 *
                 64; /* values start on a multiple of 64 bytes */
  memset(header, ' ', total);
  memcpy(header, "\x93NUMPY\x01\x00", MAGIC_BYTES + 2);
  header[8] = (char)((total - 10) & 255);
  header[9] = (char)((total - 10) >> 8);
  memcpy(header + 10, dict, (size_t)size);
  header[total - 1] = '\n';
  return total;
}
