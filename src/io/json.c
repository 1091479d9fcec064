/* json.c - writes and reads JSON. The reader scans the text once and counts the nesting depth, so
 * it needs no recursion. */
#include "io/json.h"

#include <math.h>
#include <string.h>

size_t wf__utf8_length(const uint8_t *at, const uint8_t *end) {
  if (at == end) return 0;
  size_t size = *at < 0x80 ? 1 : *at < 0xE0 ? 2 : *at < 0xF0 ? 3 : 4;
  return (size_t)(end - at) >= size && wf__is_utf8((wf__span){(const char *)at, size}) ? size : 0;
}

void wf__json_string(wf__output *output, const char *text) {
  const uint8_t *at = (const uint8_t *)text, *end = at + strlen(text);
  wf__write(output, "\"", 1);
  while (at < end) {
    size_t size = wf__utf8_length(at, end);
    if (size == 0)
      wf__write_text(output, "\\ufffd");
    else if (*at == '"' || *at == '\\')
      wf__printf(output, "\\%c", *at);
    else if (*at < 0x20 || *at == 0x7f)
      wf__printf(output, "\\u%04x", *at);
    else
      wf__write(output, at, size);
    at += size != 0 ? size : 1;
  }
  wf__write(output, "\"", 1);
}

void wf__json_number(wf__output *output, double value) {
  if (isfinite(value))
    wf__printf(output, "%.9g", value);
  else
    wf__write_text(output, "null");
}

/* --- reading ----------------------------------------------------------------------------- */

struct json {
  const char *at, *end;
  const char *problem;
};

static bool fail(struct json *json, const char *problem) {
  json->problem = problem;
  return false;
}

static void skip_blanks(struct json *json) {
  while (json->at < json->end && (*json->at == ' ' || *json->at == '\t')) json->at++;
}

static bool take(struct json *json, char c) {
  skip_blanks(json);
  if (json->at == json->end || *json->at != c) return false;
  json->at++;
  return true;
}

static bool append(struct json *json, wf__text *out, const char *data, size_t size) {
  if (out == NULL) return true;
  if (wf__vec_grow(out, size + 1, "a JSON string", NULL) != WF_OK)
    return fail(json, "out of memory");
  memcpy(out->data + out->size, data, size);
  out->size += size;
  out->data[out->size] = '\0';
  return true;
}

static bool append_code(struct json *json, wf__text *out, uint32_t code) {
  char bytes[4];
  size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  static const uint8_t lead[5] = {0, 0, 0xC0, 0xE0, 0xF0};
  for (size_t i = size; i-- > 1; code >>= 6) bytes[i] = (char)(0x80 | (code & 0x3F));
  bytes[0] = (char)(lead[size] | code);
  return append(json, out, bytes, size);
}

static bool take_hex(struct json *json, uint32_t *code) {
  *code = 0;
  for (int i = 0; i < 4; i++, json->at++) {
    if (json->at == json->end) return fail(json, "ends inside \\u");
    char c = *json->at;
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
    if (digit < 0) return fail(json, "malformed \\u");
    *code = *code * 16 + (uint32_t)digit;
  }
  return true;
}

/* Reads the rest of an escape sequence, after the backslash. Lone surrogates and NUL become U+FFFD.
 */
static bool take_escape(struct json *json, wf__text *out) {
  static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
  if (json->at == json->end) return fail(json, "ends inside a string");
  char c = *json->at++;
  if (c != 'u') {
    const char *found = c != '\0' ? strchr(names, c) : NULL;
    return found != NULL ? append(json, out, values + (found - names), 1)
                         : fail(json, "unknown escape in a string");
  }
  uint32_t code, low;
  if (!take_hex(json, &code)) return false;
  if (code >= 0xD800 && code < 0xDC00 && json->end - json->at >= 6 && json->at[0] == '\\' &&
      json->at[1] == 'u') {
    const char *before = json->at;
    json->at += 2;
    if (!take_hex(json, &low)) return false;
    if (low >= 0xDC00 && low < 0xE000)
      return append_code(json, out, 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00));
    json->at = before;
  }
  return append_code(json, out, code == 0 || (code >= 0xD800 && code < 0xE000) ? 0xFFFD : code);
}

/* Reads a string literal into `out` (NULL: skips it). */
static bool take_string(struct json *json, wf__text *out) {
  if (!take(json, '"')) return fail(json, "expected a string");
  if (!append(json, out, "", 0)) return false;
  while (json->at < json->end && *json->at != '"') {
    const char *from = json->at;
    while (json->at < json->end && *json->at != '"' && *json->at != '\\') json->at++;
    if (!append(json, out, from, (size_t)(json->at - from))) return false;
    if (json->at < json->end && *json->at == '\\') {
      json->at++;
      if (!take_escape(json, out)) return false;
    }
  }
  if (json->at == json->end) return fail(json, "ends inside a string");
  json->at++;
  return true;
}

/* Skips any value. Brackets are counted, but their kinds are not compared. */
static bool skip_value(struct json *json) {
  uint64_t depth = 0;
  const char *start = json->at;
  while (json->at < json->end) {
    char c = *json->at;
    if (c == '"') {
      if (!take_string(json, NULL)) return false;
      continue;
    }
    if (c == '{' || c == '[') depth++;
    if ((c == '}' || c == ']' || c == ',') && depth == 0) break;
    if (c == '}' || c == ']') depth--;
    json->at++;
  }
  return depth == 0 && json->at != start ? true : fail(json, "ends inside a value");
}

static bool take_member(struct json *json, const char *const *names, wf__text *texts, size_t count,
                        wf__text *name) {
  name->size = 0;
  if (!take_string(json, name)) return false;
  if (!take(json, ':')) return fail(json, "expected ':'");
  skip_blanks(json);
  size_t i = 0;
  while (i < count && strcmp(names[i], name->data) != 0) i++;
  if (i == count || json->at == json->end || *json->at != '"') return skip_value(json);
  texts[i].size = 0;
  return take_string(json, &texts[i]);
}

bool wf__json_members(wf__span line, const char *const *names, wf__text *texts, size_t count,
                      const char **problem) {
  struct json json = {line.data, line.data + line.size, NULL};
  wf__text name = {0};
  bool good = take(&json, '{') || fail(&json, "expected '{'");
  if (good && !take(&json, '}')) {
    do {
      good = take_member(&json, names, texts, count, &name);
    } while (good && take(&json, ','));
    good = good && (take(&json, '}') || fail(&json, "expected ',' or '}'"));
  }
  skip_blanks(&json);
  if (good && json.at != json.end) good = fail(&json, "text after the object");
  wf__vec_free(&name);
  *problem = json.problem;
  return good;
}
