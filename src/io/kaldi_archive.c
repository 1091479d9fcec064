/* kaldi_archive.c - keys and binary matrices of Kaldi archives. */
#include "io/kaldi_archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEY_BYTES = 4096 };

/* --- keys -------------------------------------------------------------------------------- */

static bool is_space(int byte) {
  return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

wf_status wf__kaldi_read_key(wf__source *source, bool lines, char **key, wf_error *err) {
  *key = NULL;
  int byte;
  for (;;) {
    WF__TRY(wf__source_peek(source, &byte, err));
    if (!is_space(byte)) break;
    source->at++;
  }
  if (byte < 0) return WF_OK;
  char text[MAX_KEY_BYTES + 1];
  size_t size = 0;
  while (byte > ' ' && byte != 0x7f && size < MAX_KEY_BYTES) {
    text[size++] = (char)byte;
    source->at++;
    WF__TRY(wf__source_peek(source, &byte, err));
  }
  if (size == MAX_KEY_BYTES || (byte >= 0 && !is_space(byte)) ||
      !wf__is_utf8((wf__span){text, size}))
    return wf__source_fail(source, err, WF_ERR_FORMAT,
                           "not a Kaldi archive: expected an utterance key and a blank");
  bool blank = byte == ' ' || byte == '\t';
  if (!blank && !(lines && (byte == '\n' || byte == '\r')))
    return wf__source_fail(
        source, err, WF_ERR_FORMAT, "%s after the key '%.*s', expected a blank and a value",
        byte < 0 ? "end of file" : "end of line", WF__SPAN_ARG(((wf__span){text, size})));
  if (blank) source->at++;
  size_t mark = size > 3 && memcmp(text, WF__BYTE_ORDER_MARK, 3) == 0
                    ? 3
                    : 0; /* text archives can have one */
  *key = wf__strndup(text + mark, size - mark);
  return *key != NULL ? WF_OK : wf__fail_memory(err, size + 1, "a key");
}

/* --- binary matrices --------------------------------------------------------------------- */

static int32_t i32_at(const uint8_t *bytes) {
  int32_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}
static float f32_at(const uint8_t *bytes) {
  float value;
  memcpy(&value, bytes, sizeof value);
  return value;
}
static uint16_t u16_at(const uint8_t *bytes) { return (uint16_t)(bytes[0] | bytes[1] << 8); }

/* Reads '\4' int32 rows '\4' int32 columns. */
static wf_status read_dimensions(wf__source *source, int32_t *rows, int32_t *columns,
                                 wf_error *err) {
  const uint8_t *bytes;
  WF__TRY(wf__source_take(source, 10, "matrix size", &bytes, err));
  if (bytes[0] != 4 || bytes[5] != 4)
    return wf__source_fail(source, err, WF_ERR_FORMAT, "matrix sizes are not 4-byte integers");
  *rows = i32_at(bytes + 1);
  *columns = i32_at(bytes + 6);
  return WF_OK;
}

static wf_status read_plain(wf__source *source, size_t element, wf_matrix *out, bool *lost,
                            wf_error *err) {
  int32_t rows = 0, columns = 0;
  uint64_t elements = 0;
  const uint8_t *bytes;
  WF__TRY(read_dimensions(source, &rows, &columns, err));
  WF__TRY(wf__matrix_shape(out, rows, columns, &elements, source->path, err));
  WF__TRY(wf__source_take(source, elements * element, "matrix", &bytes, err));
  *lost = false;
  WF__TRY(wf__matrix_allocate(out, rows, columns, source->path, err));
  if (element == sizeof(float)) {
    if (elements != 0) memcpy(out->data, bytes, elements * sizeof(float));
    return WF_OK;
  }
  for (uint64_t i = 0; i < elements; i++) {
    double value;
    memcpy(&value, bytes + i * sizeof value, sizeof value);
    out->data[i] = (float)value;
  }
  return WF_OK;
}

/* Decodes a column of a CM matrix: three linear pieces, over bytes 0..64, 64..192 and 192..255. */
typedef struct cm_line {
  float from[3], step[3];
} cm_line;

static cm_line cm_line_of(const uint8_t *header, float min, float range) {
  float p[4];
  for (int i = 0; i < 4; i++) p[i] = min + range / 65535.0f * (float)u16_at(header + 2 * i);
  return (cm_line){{p[0], p[1], p[2]},
                   {(p[1] - p[0]) * (1.0f / 64.0f), (p[2] - p[1]) * (1.0f / 128.0f),
                    (p[3] - p[2]) * (1.0f / 63.0f)}};
}

/* Converts column-major bytes to row-major floats. Processes a strip of columns at a time, so that
 * writes fill whole cache lines. */
static void expand_cm(const uint8_t *bytes, float min, float range, wf_matrix *out) {
  enum { STRIP = 16 };
  size_t rows = (size_t)out->num_frames, columns = (size_t)out->num_columns;
  const uint8_t *data = bytes + columns * 8;
  static const int first[3] = {0, 64, 192};
  for (size_t start = 0; start < columns; start += STRIP) {
    size_t width = columns - start < STRIP ? columns - start : STRIP;
    cm_line lines[STRIP];
    for (size_t c = 0; c < width; c++) lines[c] = cm_line_of(bytes + (start + c) * 8, min, range);
    for (size_t r = 0; r < rows; r++) {
      float *row = out->data + r * columns + start;
      for (size_t c = 0; c < width; c++) {
        int value = data[(start + c) * rows + r], piece = (value > 64) + (value > 192);
        row[c] = lines[c].from[piece] + lines[c].step[piece] * (float)(value - first[piece]);
      }
    }
  }
}

/* `kind`: 1 for CM, 2 for CM2, 3 for CM3. */
static wf_status read_compressed(wf__source *source, int kind, wf_matrix *out, bool *lost,
                                 wf_error *err) {
  const uint8_t *header, *bytes;
  uint64_t elements = 0;
  WF__TRY(wf__source_take(source, 16, "compressed matrix header", &header, err));
  float min = f32_at(header), range = f32_at(header + 4);
  int32_t rows = i32_at(header + 8), columns = i32_at(header + 12);
  WF__TRY(wf__matrix_shape(out, rows, columns, &elements, source->path, err));
  uint64_t size = kind == 1   ? elements + (uint64_t)columns * 8
                  : kind == 2 ? elements * 2
                              : elements;
  WF__TRY(wf__source_take(source, size, "compressed matrix", &bytes, err));
  *lost = false;
  WF__TRY(wf__matrix_allocate(out, rows, columns, source->path, err));
  if (kind == 1)
    expand_cm(bytes, min, range, out);
  else if (kind == 2)
    for (uint64_t i = 0; i < elements; i++)
      out->data[i] = min + range / 65535.0f * (float)u16_at(bytes + 2 * i);
  else
    for (uint64_t i = 0; i < elements; i++) out->data[i] = min + range / 255.0f * (float)bytes[i];
  return WF_OK;
}

/* Fails, because a vector is not a score matrix, but skips it, so that reading can continue. */
static wf_status skip_vector(wf__source *source, size_t element, bool *lost, wf_error *err) {
  const uint8_t *bytes;
  WF__TRY(wf__source_take(source, 5, "vector size", &bytes, err));
  int32_t size = i32_at(bytes + 1);
  if (bytes[0] != 4 || size < 0)
    return wf__source_fail(source, err, WF_ERR_FORMAT, "malformed vector");
  WF__TRY(wf__source_take(source, (uint64_t)size * element, "vector", &bytes, err));
  *lost = false;
  return wf__source_fail(source, err, WF_ERR_FORMAT,
                         "found a vector of %d values, expected a matrix", size);
}

static wf_status read_binary(wf__source *source, wf_matrix *out, bool *lost, wf_error *err) {
  char token[8] = "";
  for (size_t size = 0;; size++) {
    const uint8_t *byte;
    WF__TRY(wf__source_take(source, 1, "matrix type", &byte, err));
    if (*byte == ' ') break;
    if (size == sizeof token - 1 || *byte < ' ' || *byte > '~')
      return wf__source_fail(source, err, WF_ERR_FORMAT, "no matrix type after the binary mark");
    token[size] = (char)*byte;
  }
  if (strcmp(token, "FM") == 0) return read_plain(source, sizeof(float), out, lost, err);
  if (strcmp(token, "DM") == 0) return read_plain(source, sizeof(double), out, lost, err);
  if (strcmp(token, "CM") == 0) return read_compressed(source, 1, out, lost, err);
  if (strcmp(token, "CM2") == 0) return read_compressed(source, 2, out, lost, err);
  if (strcmp(token, "CM3") == 0) return read_compressed(source, 3, out, lost, err);
  if (strcmp(token, "FV") == 0) return skip_vector(source, sizeof(float), lost, err);
  if (strcmp(token, "DV") == 0) return skip_vector(source, sizeof(double), lost, err);
  return wf__source_fail(source, err, WF_ERR_UNSUPPORTED,
                         "found type '%s', expected a matrix (FM, DM, CM, CM2, CM3)", token);
}

wf_status wf__kaldi_read_value(wf__source *source, float scale, wf_matrix *out, bool *lost,
                               wf_error *err) {
  *lost = true;
  WF__TRY(wf__source_need(source, 2, err));
  bool binary = wf__source_left(source) >= 2 && source->at[0] == '\0' && source->at[1] == 'B';
  if (binary) source->at += 2;
  wf_status status = binary ? read_binary(source, out, lost, err)
                            : wf__kaldi_read_text(source, scale, out, lost, err);
  if (status != WF_OK) {
    free(out->data);
    out->data = NULL;
    out->num_frames = 0;
    out->num_columns = 0;
  } else if (binary) {
    wf__matrix_scale(out, scale);
  }
  return status;
}
