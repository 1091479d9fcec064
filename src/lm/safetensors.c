/* safetensors.c - reads the header, which must have nothing but what the format has. */
#include "lm/safetensors.h"

#include <string.h>

#include "base/json.h"
#include "math/score.h"

typedef struct reader {
  wf__json json;
  const uint8_t *data;
  uint64_t data_size;
} reader;

static void read_numbers(reader *r, uint64_t *out, size_t max, size_t *count) {
  wf__span number;
  int64_t value;
  *count = 0;
  wf__json_open(&r->json, '[');
  while (wf__json_item(&r->json) && wf__json_value(&r->json, &number)) {
    if (*count == max)
      wf__json_fail(&r->json, "too many numbers");
    else if (!wf__parse_i64(number, &value) || value < 0)
      wf__json_fail(&r->json, "expected a number from 0 on");
    else
      out[(*count)++] = (uint64_t)value;
  }
}

/* `*out` becomes the value of `name` (NULL: none is wanted). */
static void read_metadata(reader *r, const char *name, wf__span *out) {
  wf__span key, value;
  wf__json_open(&r->json, '{');
  while (wf__json_key(&r->json, &key))
    if (wf__json_text(&r->json, &value) && name != NULL && wf__json_is(key, name)) *out = value;
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

static bool place(reader *r, wf__tensor *tensor, const uint64_t *range, size_t num_range) {
  uint64_t size = size_of(tensor->dtype);
  if (size == 0) return wf__json_fail(&r->json, "expected a known dtype");
  if (num_range != 2) return wf__json_fail(&r->json, "expected two data_offsets");
  for (size_t i = 0; i < tensor->num_dims; i++) {
    if (tensor->dims[i] != 0 && size > r->data_size / tensor->dims[i])
      return wf__json_fail(&r->json, "expected a shape that fits the file");
    size *= tensor->dims[i];
  }
  if (range[0] > range[1] || range[1] > r->data_size || range[1] - range[0] != size)
    return wf__json_fail(&r->json, "expected data_offsets within the file that fit the shape");
  tensor->data = r->data + range[0];
  return true;
}

static bool read_tensor(reader *r, wf__tensor *tensor) {
  uint64_t range[2] = {0, 0};
  size_t num_range = 0;
  wf__span key, text;
  wf__json_open(&r->json, '{');
  while (wf__json_key(&r->json, &key)) {
    if (wf__json_is(key, "dtype")) {
      if (!wf__json_text(&r->json, &text)) break;
      if (text.size >= sizeof tensor->dtype)
        return wf__json_fail(&r->json, "expected a known dtype");
      memcpy(tensor->dtype, text.data, text.size);
      tensor->dtype[text.size] = '\0';
    } else if (wf__json_is(key, "shape")) {
      read_numbers(r, tensor->dims, WF__TENSOR_MAX_DIMS, &tensor->num_dims);
    } else if (wf__json_is(key, "data_offsets")) {
      read_numbers(r, range, 2, &num_range);
    } else {
      return wf__json_fail(&r->json, "expected dtype, shape or data_offsets");
    }
  }
  return r->json.problem == NULL && place(r, tensor, range, num_range);
}

/* out NULL: only the metadata is read. */
static wf_status read_header(reader *r, wf__tensors *out, const char *name, wf__span *value,
                             wf_error *err) {
  wf__span key;
  wf__json_open(&r->json, '{');
  while (wf__json_key(&r->json, &key)) {
    if (wf__json_is(key, "__metadata__")) {
      read_metadata(r, name, value);
      continue;
    }
    wf__tensor tensor = {.name = key};
    if (read_tensor(r, &tensor) && out != NULL) WF__TRY(wf__vec_push(out, tensor, "tensors", err));
  }
  wf__json_end(&r->json);
  return WF_OK;
}

static wf_status read_file(const wf__input *file, wf__tensors *out, const char *name,
                           wf__span *value, wf_error *err) {
  wf__cursor cursor = wf__cursor_of(file);
  uint64_t size;
  const uint8_t *header;
  WF__TRY(wf__read_u64(&cursor, &size, "size of the header", err));
  WF__TRY(wf__read_view(&cursor, &header, size, "header of a safetensors file", err));
  reader r = {wf__json_of((const char *)header, size), header + size, wf__cursor_left(&cursor)};
  WF__TRY(read_header(&r, out, name, value, err));
  if (r.json.problem == NULL) return WF_OK;
  return wf__fail(err, WF_ERR_FORMAT, "%s: byte %llu: %s in the header of a safetensors file",
                  file->path, (unsigned long long)((const uint8_t *)r.json.at - file->data),
                  r.json.problem);
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
    if (wf__json_is(tensors->data[i].name, name)) return &tensors->data[i];
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
