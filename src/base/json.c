/* json.c - see json.h. */
#include "base/json.h"

#include <math.h>
#include <string.h>

#include "base/utf8.h"

enum { MAX_DEPTH = 64 };

/* --- writing ----------------------------------------------------------------------------- */

void wf__json_string(wf__output *output, const char *text) {
  const uint8_t *at = (const uint8_t *)text, *end = at + strlen(text);
  char bytes[8];
  wf__write(output, "\"", 1);
  while (at < end) {
    size_t size = wf__json_escape(&at, end, bytes);
    wf__write(output, bytes, size);
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

wf__json wf__json_of(const char *text, size_t size) {
  return (wf__json){.at = text, .end = text + size};
}

bool wf__json_fail(wf__json *json, const char *problem) {
  if (json->problem == NULL) json->problem = problem;
  return false;
}

char wf__json_peek(wf__json *json) {
  while (json->at < json->end &&
         (*json->at == ' ' || *json->at == '\t' || *json->at == '\n' || *json->at == '\r'))
    json->at++;
  return json->at < json->end ? *json->at : '\0';
}

static bool take(wf__json *json, char c) {
  if (json->problem != NULL || wf__json_peek(json) != c) return false;
  json->at++;
  return true;
}

bool wf__json_end(wf__json *json) {
  wf__json_peek(json);
  return json->problem == NULL &&
         (json->at == json->end || wf__json_fail(json, "text after the object"));
}

bool wf__json_open(wf__json *json, char bracket) {
  json->first = true;
  return take(json, bracket) ||
         wf__json_fail(json, bracket == '{' ? "expected '{'" : "expected '['");
}

/* Takes the comma before a member or an element, or the closing bracket: false. */
static bool more(wf__json *json, char close, const char *problem) {
  const bool first = json->first;
  json->first = false;
  if (json->problem != NULL || take(json, close)) return false;
  return first || take(json, ',') || wf__json_fail(json, problem);
}

bool wf__json_key(wf__json *json, wf__span *key) {
  return more(json, '}', "expected ',' or '}'") && wf__json_text(json, key) &&
         (take(json, ':') || wf__json_fail(json, "expected ':'"));
}

bool wf__json_item(wf__json *json) { return more(json, ']', "expected ',' or ']'"); }

/* --- strings ----------------------------------------------------------------------------- */

/* The value of four hexadecimal digits; -1: they are not. */
static int32_t hex_of(const char *text) {
  int32_t code = 0;
  for (int i = 0; i < 4; i++) {
    const char c = text[i];
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
    if (digit < 0) return -1;
    code = code * 16 + digit;
  }
  return code;
}

/* Takes an escape sequence, after the backslash. */
static bool take_escape(wf__json *json) {
  if (json->at == json->end) return wf__json_fail(json, "ends inside a string");
  const char c = *json->at;
  if (c == '\0' || strchr("\"\\/bfnrtu", c) == NULL)
    return wf__json_fail(json, "unknown escape in a string");
  if (c == 'u') {
    if (json->end - json->at < 5) return wf__json_fail(json, "ends inside \\u");
    if (hex_of(json->at + 1) < 0) return wf__json_fail(json, "malformed \\u");
  }
  json->at += c == 'u' ? 5 : 1;
  return true;
}

bool wf__json_text(wf__json *json, wf__span *out) {
  if (!take(json, '"')) return wf__json_fail(json, "expected a string");
  const char *begin = json->at;
  while (json->at < json->end && *json->at != '"')
    if (*json->at++ == '\\' && !take_escape(json)) return false;
  if (json->at == json->end) return wf__json_fail(json, "ends inside a string");
  *out = (wf__span){begin, (size_t)(json->at++ - begin)};
  return true;
}

/* Resolves the first character or byte of a string. Returns the bytes in `out`. */
static size_t next_character(wf__span *rest, char out[4]) {
  static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
  const char *at = rest->data;
  size_t taken = at[0] != '\\' ? 1 : at[1] != 'u' ? 2 : 6, size = 1;
  if (taken == 1) {
    out[0] = at[0];
  } else if (taken == 2) {
    out[0] = values[strchr(names, at[1]) - names];
  } else {
    uint32_t code = (uint32_t)hex_of(at + 2);
    if (code >= 0xD800 && code < 0xDC00 && rest->size >= 12 && at[6] == '\\' && at[7] == 'u') {
      const uint32_t low = (uint32_t)hex_of(at + 8);
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        taken = 12;
      }
    }
    size = wf__utf8_encode(code == 0 || (code >= 0xD800 && code < 0xE000) ? 0xFFFD : code, out);
  }
  rest->data += taken;
  rest->size -= taken;
  return size;
}

bool wf__json_is(wf__span string, const char *text) {
  char bytes[4];
  size_t left = strlen(text);
  while (string.size > 0) {
    size_t size = next_character(&string, bytes);
    if (size > left || memcmp(bytes, text, size) != 0) return false;
    text += size;
    left -= size;
  }
  return left == 0;
}

wf_status wf__json_unescape(wf__span string, wf__json_chars *out, wf_error *err) {
  out->size = 0;
  WF__TRY(wf__vec_grow(out, string.size + 1, "a JSON string", err)); /* escapes only shrink */
  while (string.size > 0) {
    char bytes[4];
    size_t size = next_character(&string, bytes);
    memcpy(out->data + out->size, bytes, size);
    out->size += size;
  }
  out->data[out->size] = '\0';
  return WF_OK;
}

/* --- any value --------------------------------------------------------------------------- */

static bool is_of_scalar(char c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '+' ||
         c == '-' || c == '.';
}

static void skip(wf__json *json, int depth) {
  const char c = wf__json_peek(json), *begin = json->at;
  wf__span span;
  if (depth == MAX_DEPTH) {
    wf__json_fail(json, "nested too deeply");
  } else if (c == '"') {
    wf__json_text(json, &span);
  } else if (c == '{') {
    wf__json_open(json, c);
    while (wf__json_key(json, &span)) skip(json, depth + 1);
  } else if (c == '[') {
    wf__json_open(json, c);
    while (wf__json_item(json)) skip(json, depth + 1);
  } else {
    while (json->at < json->end && is_of_scalar(*json->at)) json->at++;
    if (json->at == begin) wf__json_fail(json, "expected a value");
  }
}

bool wf__json_value(wf__json *json, wf__span *out) {
  wf__json_peek(json);
  const char *begin = json->at;
  if (json->problem == NULL) skip(json, 0);
  *out = (wf__span){begin, (size_t)(json->at - begin)};
  return json->problem == NULL;
}
