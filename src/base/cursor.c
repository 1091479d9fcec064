/* cursor.c - bounds-checked reading of binary scalars, lines, fields and numbers. */
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "base/utf8.h"

wf__cursor wf__cursor_of(const wf__input *input) {
  return (wf__cursor){.begin = input->data,
                      .at = input->data,
                      .end = input->data + input->size,
                      .path = input->path};
}

size_t wf__cursor_left(const wf__cursor *cursor) { return (size_t)(cursor->end - cursor->at); }
uint64_t wf__cursor_offset(const wf__cursor *cursor) {
  return (uint64_t)(cursor->at - cursor->begin);
}

wf_status(wf__cursor_fail)(const wf__cursor *cursor, wf_error *err, wf_status code,
                           const char *format, ...) {
  va_list args;
  va_start(args, format);
  wf__fail_at(err, code, cursor->path, " byte ", wf__cursor_offset(cursor), format, args);
  va_end(args);
  return code;
}

wf_status wf__read_view(wf__cursor *cursor, const uint8_t **out, uint64_t size, const char *what,
                        wf_error *err) {
  if (size > wf__cursor_left(cursor))
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT,
                           "file ends early: %s needs %llu bytes, %llu are left", what,
                           (unsigned long long)size, (unsigned long long)wf__cursor_left(cursor));
  *out = cursor->at;
  cursor->at += size;
  return WF_OK;
}

wf_status wf__read_bytes(wf__cursor *cursor, void *out, size_t size, const char *what,
                         wf_error *err) {
  const uint8_t *bytes;
  WF__TRY(wf__read_view(cursor, &bytes, size, what, err));
  if (size != 0) memcpy(out, bytes, size);
  return WF_OK;
}

/* The file formats are little-endian and are read in place, so the build needs a little-endian
 * platform. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "warpfst reads little-endian files in place and needs a little-endian machine"
#endif
wf_status wf__read_i32(wf__cursor *cursor, int32_t *out, const char *what, wf_error *err) {
  return wf__read_bytes(cursor, out, 4, what, err);
}
wf_status wf__read_u32(wf__cursor *cursor, uint32_t *out, const char *what, wf_error *err) {
  return wf__read_bytes(cursor, out, 4, what, err);
}
wf_status wf__read_i64(wf__cursor *cursor, int64_t *out, const char *what, wf_error *err) {
  return wf__read_bytes(cursor, out, 8, what, err);
}
wf_status wf__read_u64(wf__cursor *cursor, uint64_t *out, const char *what, wf_error *err) {
  return wf__read_bytes(cursor, out, 8, what, err);
}
wf_status wf__read_f32(wf__cursor *cursor, float *out, const char *what, wf_error *err) {
  return wf__read_bytes(cursor, out, 4, what, err);
}
wf_status wf__read_f64(wf__cursor *cursor, double *out, const char *what, wf_error *err) {
  return wf__read_bytes(cursor, out, 8, what, err);
}

wf__lines wf__lines_of(const wf__input *input) {
  const char *text = (const char *)input->data;
  return (wf__lines){.at = text, .end = text + input->size, .path = input->path};
}

bool wf__next_line(wf__lines *lines, wf__span *line) {
  if (lines->at == lines->end) return false;
  size_t left = (size_t)(lines->end - lines->at);
  const char *stop = memchr(lines->at, '\n', left);
  line->data = lines->at;
  line->size = stop != NULL ? (size_t)(stop - lines->at) : left;
  lines->at = stop != NULL ? stop + 1 : lines->end;
  if (line->size > 0 && line->data[line->size - 1] == '\r') line->size--;
  if (++lines->line_number == 1 && line->size >= 3 &&
      memcmp(line->data, WF__BYTE_ORDER_MARK, 3) == 0) {
    line->data += 3;
    line->size -= 3;
  }
  return true;
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

const char *wf__find_last(wf__span text, char c) {
  while (text.size > 0)
    if (text.data[--text.size] == c) return text.data + text.size;
  return NULL;
}

bool wf__next_field(wf__span *rest, wf__span *field) {
  while (rest->size > 0 && is_blank(*rest->data)) rest->data++, rest->size--;
  if (rest->size == 0) return false;
  field->data = rest->data;
  while (rest->size > 0 && !is_blank(*rest->data)) rest->data++, rest->size--;
  field->size = (size_t)(rest->data - field->data);
  return true;
}

wf_status(wf__lines_fail)(const wf__lines *lines, wf_error *err, wf_status code, const char *format,
                          ...) {
  va_list args;
  va_start(args, format);
  wf__fail_at(err, code, lines->path, "", lines->line_number, format, args);
  va_end(args);
  return code;
}

bool wf__parse_i64(wf__span text, int64_t *out) {
  size_t i = 0;
  bool negative = false;
  if (i < text.size && (text.data[i] == '-' || text.data[i] == '+'))
    negative = text.data[i++] == '-';
  if (i == text.size || text.size - i > 19) return false;
  uint64_t value = 0;
  for (; i < text.size; i++) {
    if (text.data[i] < '0' || text.data[i] > '9') return false;
    value = value * 10 + (uint64_t)(text.data[i] - '0'); /* 19 digits fit 64 bits unsigned */
  }
  if (value > (uint64_t)INT64_MAX) return false;
  *out = negative ? -(int64_t)value : (int64_t)value;
  return true;
}

/* Fast path: a decimal without exponent, of at most 19 digits and 22 decimal places, whose digits
 * as an integer are below 2^53. Integer and power of ten are then exact, so the division rounds
 * once. Numbers of ARPA and FST texts usually take it. Other numbers and special values go through
 * strtod on a NUL-terminated copy, with the decimal point of the current locale. (The library never
 * calls setlocale, but the program may.) */
bool wf__parse_f64(wf__span text, double *out) {
  static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  size_t i = 0;
  bool negative = false;
  if (i < text.size && (text.data[i] == '-' || text.data[i] == '+'))
    negative = text.data[i++] == '-';
  uint64_t mantissa = 0;
  int digits = 0, scale = 0;
  bool point = false;
  for (; i < text.size; i++) {
    char c = text.data[i];
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      if (++digits > 19) break;
      mantissa = mantissa * 10 + (uint64_t)(c - '0');
      scale -= point;
    } else {
      break;
    }
  }
  if (i == text.size && digits > 0 && mantissa < ((uint64_t)1 << 53) && scale >= -22) {
    double value = (double)mantissa / power[-scale];
    *out = negative ? -value : value;
    return true;
  }
  char copy[512], *stop;
  if (text.size == 0 || text.size >= sizeof copy || is_blank(text.data[0])) return false;
  memcpy(copy, text.data, text.size);
  copy[text.size] = '\0';
  const char *locale_point = localeconv()->decimal_point;
  char *dot = strchr(copy, '.');
  if (dot != NULL && locale_point[0] != '.' && locale_point[1] == '\0') *dot = locale_point[0];
  *out = strtod(copy, &stop);
  return stop == copy + text.size;
}

bool wf__is_utf8(wf__span text) {
  const uint8_t *at = (const uint8_t *)text.data, *end = at + text.size;
  for (size_t size; at < end; at += size)
    if ((size = wf__utf8_length(at, end)) == 0) return false;
  return true;
}
