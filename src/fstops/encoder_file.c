/* encoder_file.c - reads and writes the tables of OpenFst's fstencode.
 *
 *   i32 magic 2128178506 | string arc type | u8 flags (1 labels, 2 weights, 4 isymbols, 8 osymbols)
 * | i64 count | count x {i32 ilabel, i32 olabel, weight} | the flagged symbol tables
 *
 * A string is an i32 size and the bytes. A weight is f32, for arc type log64 f64. */
#include <string.h>

#include "base/input.h"
#include "base/output.h"
#include "fst/symbols.h"
#include "fstops/encoder.h"

enum { MAGIC = 2128178506, LABELS = 1, WEIGHTS = 2, ISYMBOLS = 4, OSYMBOLS = 8, ALL_FLAGS = 15 };

static wf_status read_type(wf__cursor *cursor, wf_semiring *semiring, bool *wide, wf_error *err) {
  int32_t size;
  const uint8_t *bytes;
  static const struct {
    const char *name;
    wf_semiring semiring;
  } types[] = {{"standard", WF_TROPICAL}, {"log", WF_LOG}, {"log64", WF_LOG}};
  WF__TRY(wf__read_i32(cursor, &size, "the arc type", err));
  if (size < 0 || size > 256)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "an arc type of %d bytes", size);
  WF__TRY(wf__read_view(cursor, &bytes, (uint64_t)size, "the arc type", err));
  for (size_t k = 0; k < 3; k++) {
    if ((size_t)size != strlen(types[k].name) || memcmp(bytes, types[k].name, (size_t)size) != 0)
      continue;
    *semiring = types[k].semiring;
    *wide = k == 2;
    return WF_OK;
  }
  return wf__cursor_fail(cursor, err, WF_ERR_UNSUPPORTED,
                         "arc type '%.*s'; can read standard, log and log64", (int)size,
                         (const char *)bytes);
}

static wf_status read_code(wf__cursor *cursor, wf_encoder *encoder, bool wide, wf_error *err) {
  wf__code code;
  double weight = 0;
  int32_t label;
  uint64_t expected = encoder->codes.size + 1;
  WF__TRY(wf__read_i32(cursor, &code.ilabel, "a label", err));
  WF__TRY(wf__read_i32(cursor, &code.olabel, "a label", err));
  if (wide)
    WF__TRY(wf__read_f64(cursor, &weight, "a weight", err));
  else
    WF__TRY(wf__read_f32(cursor, &code.weight, "a weight", err));
  if (wide) code.weight = (float)weight;
  bool final = code.ilabel == -1 && code.olabel == -1;
  if (!final && (code.ilabel < 0 || code.olabel < 0))
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "negative label in %d:%d", code.ilabel,
                           code.olabel);
  if (!(code.weight > -INFINITY) || (wide && code.weight == INFINITY && weight != (double)INFINITY))
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT,
                           "a weight is NaN, -infinity or beyond float32");
  WF__TRY(wf__encoder_label(encoder, code, &label, err));
  return (uint64_t)label == expected
             ? WF_OK
             : wf__cursor_fail(cursor, err, WF_ERR_FORMAT,
                               "entry %llu of the table is the same as entry %d",
                               (unsigned long long)expected, label);
}

static wf_status read_table(wf__cursor *cursor, wf_encoder **out, wf_error *err) {
  int32_t magic;
  int64_t count;
  uint8_t flags;
  wf_semiring semiring = WF_TROPICAL;
  bool wide = false;
  WF__TRY(wf__read_i32(cursor, &magic, "the magic number", err));
  if (magic != MAGIC)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "not a table of an encoder (magic %d)",
                           magic);
  WF__TRY(read_type(cursor, &semiring, &wide, err));
  WF__TRY(wf__read_bytes(cursor, &flags, 1, "the flags", err));
  WF__TRY(wf__read_i64(cursor, &count, "the number of labels", err));
  if (flags > ALL_FLAGS || (flags & (LABELS | WEIGHTS)) == 0)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "flags 0x%x", flags);
  if (count < 0 || (uint64_t)count > wf__cursor_left(cursor) / (wide ? 16 : 12))
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT,
                           "%lld labels, more than the file has room for", (long long)count);
  WF__TRY(wf_encoder_create(semiring, flags & LABELS, flags & WEIGHTS, out, err));
  for (int64_t k = 0; k < count; k++) WF__TRY(read_code(cursor, *out, wide, err));
  for (int side = 0; side < 2; side++)
    if (flags & (side == 0 ? ISYMBOLS : OSYMBOLS))
      WF__TRY(wf__symbols_read_binary(cursor, &(*out)->symbols[side], err));
  return wf__cursor_left(cursor) == 0
             ? WF_OK
             : wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "%llu bytes follow the table",
                               (unsigned long long)wf__cursor_left(cursor));
}

wf_status wf__encoder_read_input(const wf__input *input, wf_encoder **out, wf_error *err) {
  wf__cursor cursor = wf__cursor_of(input);
  *out = NULL;
  wf_status status = read_table(&cursor, out, err);
  if (status == WF_OK) return WF_OK;
  wf_encoder_free(*out);
  *out = NULL;
  return status;
}

wf_status wf_encoder_read(const char *path, wf_encoder **out, wf_error *err) {
  wf__input input;
  *out = NULL;
  WF__TRY(wf__input_open(path, &input, err));
  wf_status status = wf__encoder_read_input(&input, out, err);
  wf__input_close(&input);
  return status;
}

static wf_status write_symbols(const wf_symbols *symbols, wf__output *output, wf_error *err) {
  uint8_t *bytes;
  uint64_t size;
  if (symbols == NULL) return WF_OK;
  WF__TRY(wf__symbols_encode(symbols, &bytes, &size, err));
  wf__write(output, bytes, size);
  free(bytes);
  return WF_OK;
}

wf_status wf_encoder_write(const wf_encoder *encoder, const char *path, wf_error *err) {
  wf__output *output;
  const int32_t magic = MAGIC;
  const int64_t count = (int64_t)encoder->codes.size;
  const char *type = encoder->semiring == WF_LOG ? "log" : "standard";
  const int32_t size = (int32_t)strlen(type);
  const uint8_t flags =
      (uint8_t)((encoder->labels ? LABELS : 0) | (encoder->weights ? WEIGHTS : 0) |
                (encoder->symbols[0] != NULL ? ISYMBOLS : 0) |
                (encoder->symbols[1] != NULL ? OSYMBOLS : 0));
  WF__TRY(wf__output_open(path, &output, err));
  wf__write(output, &magic, sizeof magic);
  wf__write(output, &size, sizeof size);
  wf__write(output, type, (size_t)size);
  wf__write(output, &flags, 1);
  wf__write(output, &count, sizeof count);
  if (count != 0) wf__write(output, encoder->codes.data, (size_t)count * sizeof(wf__code));
  wf_status status = write_symbols(encoder->symbols[0], output, err);
  if (status == WF_OK) status = write_symbols(encoder->symbols[1], output, err);
  if (status == WF_OK) return wf__output_close(output, err);
  wf__output_abort(output);
  return status;
}
