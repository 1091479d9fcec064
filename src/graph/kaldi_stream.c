/* kaldi_stream.c - reads the basic elements of Kaldi's files. See kaldi_stream.h. */
#include "graph/kaldi_stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

wf__kaldi_stream wf__kaldi_open(const wf__input *input) {
  wf__kaldi_stream stream = {wf__cursor_of(input),
                             input->size >= 2 && input->data[0] == '\0' && input->data[1] == 'B'};
  if (stream.binary) stream.cursor.at += 2;
  return stream;
}

wf_status(wf__kaldi_fail)(const wf__kaldi_stream *stream, wf_error *err, wf_status code,
                          const char *format, ...) {
  const wf__cursor *cursor = &stream->cursor;
  uint64_t number = stream->binary ? wf__cursor_offset(cursor) : 1;
  for (const uint8_t *at = cursor->begin; !stream->binary && at < cursor->at; at++)
    number += *at == '\n';
  va_list args;
  va_start(args, format);
  wf__fail_at(err, code, cursor->path, stream->binary ? " byte " : " line ", number, format, args);
  va_end(args);
  return code;
}

/* --- tokens ------------------------------------------------------------------------------ */

static bool is_blank(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }
static bool is_bracket(uint8_t byte) { return byte == '[' || byte == ']'; }

wf_status wf__kaldi_token(wf__kaldi_stream *stream, wf__span *out, wf_error *err) {
  wf__cursor *cursor = &stream->cursor;
  while (cursor->at < cursor->end && is_blank(*cursor->at)) cursor->at++;
  const uint8_t *begin = cursor->at;
  while (cursor->at < cursor->end && !is_blank(*cursor->at)) {
    if (!stream->binary && is_bracket(*cursor->at)) {
      if (cursor->at == begin) cursor->at++;
      break;
    }
    cursor->at++;
  }
  *out = (wf__span){(const char *)begin, (size_t)(cursor->at - begin)};
  if (out->size == 0) return wf__kaldi_fail(stream, err, WF_ERR_FORMAT, "the file ends too early");
  if (stream->binary && cursor->at < cursor->end)
    cursor->at++; /* skips the blank behind the token; the next byte may be anything */
  return WF_OK;
}

bool wf__kaldi_is(wf__span token, const char *text) {
  return token.size == strlen(text) && memcmp(token.data, text, token.size) == 0;
}

/* Quotes the token in the message only if it is printable: in a binary file it may be any bytes. */
static wf_status fail_token(const wf__kaldi_stream *stream, wf__span found, const char *expected,
                            wf_error *err) {
  bool plain = found.size <= 80;
  for (size_t i = 0; i < found.size && plain; i++)
    plain = found.data[i] > ' ' && found.data[i] < 0x7f;
  if (!plain)
    return wf__kaldi_fail(stream, err, WF_ERR_FORMAT, "expected %s, found bytes that are not text",
                          expected);
  return wf__kaldi_fail(stream, err, WF_ERR_FORMAT, "expected %s, found '%.*s'", expected,
                        WF__SPAN_ARG(found));
}

wf_status wf__kaldi_expect(wf__kaldi_stream *stream, const char *text, wf_error *err) {
  wf__span token;
  WF__TRY(wf__kaldi_token(stream, &token, err));
  if (wf__kaldi_is(token, text)) return WF_OK;
  char expected[64];
  snprintf(expected, sizeof expected, "'%s'", text);
  return fail_token(stream, token, expected, err);
}

/* --- numbers ----------------------------------------------------------------------------- */

/* Reads the byte that gives the size of a binary number. */
static wf_status read_size(wf__kaldi_stream *stream, uint8_t *out, const char *what,
                           wf_error *err) {
  return wf__read_bytes(&stream->cursor, out, 1, what, err);
}

static wf_status expect_size(wf__kaldi_stream *stream, uint8_t size, const char *what,
                             wf_error *err) {
  uint8_t found;
  WF__TRY(read_size(stream, &found, what, err));
  if (found != size)
    return wf__kaldi_fail(stream, err, WF_ERR_FORMAT,
                          "%s: the size byte of the number is %u; expected %u", what, found, size);
  return WF_OK;
}

static wf_status text_integer(wf__kaldi_stream *stream, int64_t least, int64_t most, int64_t *out,
                              const char *what, wf_error *err) {
  wf__span token;
  WF__TRY(wf__kaldi_token(stream, &token, err));
  if (wf__parse_i64(token, out) && *out >= least && *out <= most) return WF_OK;
  return fail_token(stream, token, what, err);
}

wf_status wf__kaldi_i32(wf__kaldi_stream *stream, int32_t *out, const char *what, wf_error *err) {
  int64_t value;
  if (stream->binary) {
    WF__TRY(expect_size(stream, 4, what, err));
    return wf__read_i32(&stream->cursor, out, what, err);
  }
  WF__TRY(text_integer(stream, INT32_MIN, INT32_MAX, &value, what, err));
  *out = (int32_t)value;
  return WF_OK;
}

wf_status wf__kaldi_u32(wf__kaldi_stream *stream, uint32_t *out, const char *what, wf_error *err) {
  int64_t value;
  if (stream->binary) {
    WF__TRY(expect_size(stream, 0xfc, what, err));
    return wf__read_u32(&stream->cursor, out, what, err);
  }
  WF__TRY(text_integer(stream, 0, UINT32_MAX, &value, what, err));
  *out = (uint32_t)value;
  return WF_OK;
}

static wf_status text_float(wf__kaldi_stream *stream, wf__span token, float *out, const char *what,
                            wf_error *err) {
  double value;
  if (!wf__parse_f64(token, &value)) return fail_token(stream, token, what, err);
  *out = (float)value;
  return WF_OK;
}

static wf_status read_real(wf__kaldi_stream *stream, uint8_t size, float *out, const char *what,
                           wf_error *err) {
  if (size == 4) return wf__read_f32(&stream->cursor, out, what, err);
  double value;
  WF__TRY(wf__read_f64(&stream->cursor, &value, what, err));
  *out = (float)value;
  return WF_OK;
}

wf_status wf__kaldi_f32(wf__kaldi_stream *stream, float *out, const char *what, wf_error *err) {
  wf__span token;
  uint8_t size;
  if (stream->binary) {
    WF__TRY(read_size(stream, &size, what, err));
    if (size != 4 && size != 8)
      return wf__kaldi_fail(stream, err, WF_ERR_FORMAT,
                            "%s: the number has %u bytes; expected 4 or 8", what, size);
    return read_real(stream, size, out, what, err);
  }
  WF__TRY(wf__kaldi_token(stream, &token, err));
  return text_float(stream, token, out, what, err);
}

/* --- sequences --------------------------------------------------------------------------- */

static wf_status check_count(const wf__kaldi_stream *stream, int32_t count, uint64_t size,
                             const char *what, wf_error *err) {
  if (count >= 0 && (uint64_t)count * size <= wf__cursor_left(&stream->cursor)) return WF_OK;
  return wf__kaldi_fail(stream, err, WF_ERR_FORMAT,
                        "%s: the count is %d, with %zu bytes left in the file", what, (int)count,
                        wf__cursor_left(&stream->cursor));
}

wf_status wf__kaldi_i32s(wf__kaldi_stream *stream, wf__ints *out, const char *what, wf_error *err) {
  int32_t count;
  int64_t value;
  if (stream->binary) {
    WF__TRY(expect_size(stream, 4, what, err));
    WF__TRY(wf__read_i32(&stream->cursor, &count, what, err));
    WF__TRY(check_count(stream, count, 4, what, err));
    WF__TRY(wf__vec_grow(out, count, what, err));
    for (int32_t i = 0; i < count; i++)
      WF__TRY(wf__read_i32(&stream->cursor, &out->data[out->size++], what, err));
    return WF_OK;
  }
  wf__span token;
  WF__TRY(wf__kaldi_expect(stream, "[", err));
  for (;;) {
    WF__TRY(wf__kaldi_token(stream, &token, err));
    if (wf__kaldi_is(token, "]")) return WF_OK;
    if (!wf__parse_i64(token, &value) || value < INT32_MIN || value > INT32_MAX)
      return fail_token(stream, token, what, err);
    WF__TRY(wf__vec_push(out, (int32_t)value, what, err));
  }
}

wf_status wf__kaldi_vector(wf__kaldi_stream *stream, wf__floats *out, const char *what,
                           wf_error *err) {
  wf__span token;
  int32_t count;
  float value;
  WF__TRY(wf__kaldi_token(stream, &token, err));
  if (stream->binary) {
    uint8_t size = wf__kaldi_is(token, "FV") ? 4 : wf__kaldi_is(token, "DV") ? 8 : 0;
    if (size == 0) return fail_token(stream, token, "a vector (FV or DV)", err);
    WF__TRY(wf__kaldi_i32(stream, &count, what, err));
    WF__TRY(check_count(stream, count, size, what, err));
    WF__TRY(wf__vec_grow(out, count, what, err));
    for (int32_t i = 0; i < count; i++)
      WF__TRY(read_real(stream, size, &out->data[out->size++], what, err));
    return WF_OK;
  }
  if (!wf__kaldi_is(token, "[")) return fail_token(stream, token, "'['", err);
  for (;;) {
    WF__TRY(wf__kaldi_token(stream, &token, err));
    if (wf__kaldi_is(token, "]")) return WF_OK;
    WF__TRY(text_float(stream, token, &value, what, err));
    WF__TRY(wf__vec_push(out, value, what, err));
  }
}
