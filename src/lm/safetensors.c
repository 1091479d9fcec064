/* safetensors.c - a strict reader of the subset of JSON in safetensors headers. */
#include "lm/safetensors.h"

#include <string.h>

#include "math/score.h"

typedef struct reader {
  const wf__input *file;
  const char *at, *end;
  const uint8_t *data;
  uint64_t data_size;
  wf_error *err;
} reader;

static wf_status fail(const reader *r, const char *expected) {
  return wf__fail(r->err, WF_ERR_FORMAT,
                  "%s: byte %llu: %s expected in the header of a safetensors file", r->file->path,
                  (unsigned long long)((const uint8_t *)r->at - r->file->data), expected);
}

static char peek(reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
    r->at++;
  return r->at < r->end ? *r->at : '\0';
}

static wf_status expect(reader *r, char what) {
  char name[] = {'\'', what, '\'', '\0'};
  if (peek(r) != what) return fail(r, name);
  r->at++;
  return WF_OK;
}

/* Reads a string literal. `*out` is the text between the quotes, with escapes unresolved. */
static wf_status read_string(reader *r, wf__span *out) {
  WF__TRY(expect(r, '"'));
  const char *begin = r->at;
  while (r->at < r->end && *r->at != '"') r->at += *r->at == '\\' && r->end - r->at > 1 ? 2 : 1;
  if (r->at >= r->end) return fail(r, "the end of a string");
  *out = (wf__span){begin, (size_t)(r->at - begin)};
  r->at++;
  return WF_OK;
}

static bool is(wf__span text, const char *what) {
  return text.size == strlen(what) && memcmp(text.data, what, text.size) == 0;
}

/* Reads the key of the next member of an object, or sets *done at its end. */
static wf_status next_key(reader *r, bool first, wf__span *key, bool *done) {
  *done = peek(r) == '}';
  if (*done) return expect(r, '}');
  if (!first) WF__TRY(expect(r, ','));
  WF__TRY(read_string(r, key));
  return expect(r, ':');
}

static wf_status read_numbers(reader *r, uint64_t *out, size_t max, size_t *count) {
  WF__TRY(expect(r, '['));
  for (*count = 0; peek(r) != ']'; ++*count) {
    if (*count == max) return fail(r, "fewer numbers");
    if (*count > 0) WF__TRY(expect(r, ','));
    peek(r);
    const char *begin = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') r->at++;
    int64_t value;
    if (!wf__parse_i64((wf__span){begin, (size_t)(r->at - begin)}, &value))
      return fail(r, "a number");
    out[*count] = (uint64_t)value;
  }
  return expect(r, ']');
}

/* Reads the metadata; `*out` becomes the value of `name` (NULL: none is wanted). */
static wf_status read_metadata(reader *r, const char *name, wf__span *out) {
  wf__span key, value;
  bool done = false;
  WF__TRY(expect(r, '{'));
  for (bool first = true; !done; first = false) {
    WF__TRY(next_key(r, first, &key, &done));
    if (done) break;
    WF__TRY(read_string(r, &value));
    if (name != NULL && is(key, name)) *out = value;
  }
  return WF_OK;
}

static uint64_t size_of(const char *dtype) {
  static const struct {
    const char *name;
    uint64_t size;
  } types[] = {{"F64", 8},  {"I64", 8}, {"U64", 8}, {"F32", 4}, {"I32", 4}, {"U32", 4}, {"F16", 2},
               {"BF16", 2}, {"I16", 2}, {"U16", 2}, {"I8", 1},  {"U8", 1},  {"BOOL", 1}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, dtype) == 0) return types[i].size;
  return 0;
}

static wf_status place(reader *r, wf__tensor *tensor, const uint64_t *range, size_t num_range) {
  uint64_t size = size_of(tensor->dtype);
  if (size == 0 || num_range != 2) return fail(r, size == 0 ? "a known dtype" : "two data_offsets");
  for (size_t i = 0; i < tensor->num_dims; i++) {
    if (tensor->dims[i] != 0 && size > r->data_size / tensor->dims[i])
      return fail(r, "a shape that fits the file");
    size *= tensor->dims[i];
  }
  if (range[0] > range[1] || range[1] > r->data_size || range[1] - range[0] != size)
    return fail(r, "data_offsets within the file that fit the shape");
  tensor->data = r->data + range[0];
  return WF_OK;
}

static wf_status read_tensor(reader *r, wf__tensor *tensor) {
  uint64_t range[2] = {0, 0};
  size_t num_range = 0;
  bool done = false;
  wf__span key, text;
  WF__TRY(expect(r, '{'));
  for (bool first = true; !done; first = false) {
    WF__TRY(next_key(r, first, &key, &done));
    if (done) break;
    if (is(key, "dtype")) {
      WF__TRY(read_string(r, &text));
      if (text.size >= sizeof tensor->dtype) return fail(r, "a known dtype");
      memcpy(tensor->dtype, text.data, text.size);
      tensor->dtype[text.size] = '\0';
    } else if (is(key, "shape")) {
      WF__TRY(read_numbers(r, tensor->dims, WF__TENSOR_MAX_DIMS, &tensor->num_dims));
    } else if (is(key, "data_offsets")) {
      WF__TRY(read_numbers(r, range, 2, &num_range));
    } else {
      return fail(r, "dtype, shape or data_offsets");
    }
  }
  return place(r, tensor, range, num_range);
}

/* out NULL: only the metadata is read. */
static wf_status read_header(reader *r, wf__tensors *out, const char *name, wf__span *value) {
  bool done = false;
  wf__span key;
  WF__TRY(expect(r, '{'));
  for (bool first = true; !done; first = false) {
    WF__TRY(next_key(r, first, &key, &done));
    if (done) break;
    if (is(key, "__metadata__")) {
      WF__TRY(read_metadata(r, name, value));
      continue;
    }
    wf__tensor tensor = {.name = key};
    WF__TRY(read_tensor(r, &tensor));
    if (out == NULL) continue;
    WF__TRY(wf__vec_grow(out, 1, "tensors", r->err));
    out->data[out->size++] = tensor;
  }
  return peek(r) == '\0' ? WF_OK : fail(r, "the end");
}

static wf_status read_file(const wf__input *file, wf__tensors *out, const char *name,
                           wf__span *value, wf_error *err) {
  wf__cursor cursor = wf__cursor_of(file);
  uint64_t size;
  const uint8_t *header;
  WF__TRY(wf__read_u64(&cursor, &size, "size of the header", err));
  WF__TRY(wf__read_view(&cursor, &header, size, "header of a safetensors file", err));
  reader r = {file,          (const char *)header,     (const char *)header + size,
              header + size, wf__cursor_left(&cursor), err};
  return read_header(&r, out, name, value);
}

wf_status wf__safetensors_read(const wf__input *file, wf__tensors *out, wf_error *err) {
  return read_file(file, out, NULL, NULL, err);
}

wf_status wf__safetensors_metadata(const wf__input *file, const char *name, wf__span *out,
                                   wf_error *err) {
  *out = (wf__span){NULL, 0};
  return read_file(file, NULL, name, out, err);
}

wf__tensor *wf__tensor_find(const wf__tensors *tensors, const char *name) {
  for (uint64_t i = 0; i < tensors->size; i++)
    if (is(tensors->data[i].name, name)) return &tensors->data[i];
  return NULL;
}

float wf__tensor_at(const wf__tensor *tensor, uint64_t i) {
  float value;
  uint16_t half;
  if (tensor->dtype[0] == 'F' && tensor->dtype[1] == '3') {
    memcpy(&value, tensor->data + i * sizeof value, sizeof value);
    return value;
  }
  memcpy(&half, tensor->data + i * sizeof half, sizeof half);
  return tensor->dtype[0] == 'F' ? wf__float_of_half(half)
                                 : wf__float_of_bits((uint32_t)half << 16);
}

wf_status wf__tensor_check(const wf__input *file, const wf__tensor *tensor, uint64_t rows,
                           uint64_t cols, wf_error *err) {
  if (strcmp(tensor->dtype, "F32") != 0 && strcmp(tensor->dtype, "F16") != 0 &&
      strcmp(tensor->dtype, "BF16") != 0)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "%s: %.*s is of type %s, expected F32, F16 or BF16",
                    file->path, WF__SPAN_ARG(tensor->name), tensor->dtype);
  bool fits = cols == 0
                  ? tensor->num_dims == 1 && tensor->dims[0] == rows
                  : tensor->num_dims == 2 && tensor->dims[0] == rows && tensor->dims[1] == cols;
  if (fits) return WF_OK;
  return wf__fail(err, WF_ERR_FORMAT,
                  "%s: %.*s has %zu dimensions [%llu, %llu]; [%llu, %llu] expected (0: a vector)",
                  file->path, WF__SPAN_ARG(tensor->name), tensor->num_dims,
                  (unsigned long long)(tensor->num_dims > 0 ? tensor->dims[0] : 0),
                  (unsigned long long)(tensor->num_dims > 1 ? tensor->dims[1] : 0),
                  (unsigned long long)rows, (unsigned long long)cols);
}

wf_status wf__tensor_copy(const wf__input *file, const wf__tensor *tensor, uint64_t first,
                          uint64_t count, float *out, wf_error *err) {
  for (uint64_t i = 0; i < count; i++) {
    out[i] = wf__tensor_at(tensor, first + i);
    if (!isfinite(out[i]))
      return wf__fail(err, WF_ERR_FORMAT, "%s: %.*s holds %g at element %llu", file->path,
                      WF__SPAN_ARG(tensor->name), (double)out[i], (unsigned long long)(first + i));
  }
  return WF_OK;
}
