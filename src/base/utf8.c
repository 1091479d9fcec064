/* utf8.c - see utf8.h. */
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

size_t wf__utf8_length(const uint8_t *at, const uint8_t *end) {
  if (at == end) return 0;
  uint32_t code = *at, least;
  size_t size;
  if (code < 0x80) return 1;
  if (code >= 0xC2 && code < 0xE0)
    size = 2, code &= 0x1F, least = 0x80;
  else if (code >= 0xE0 && code < 0xF0)
    size = 3, code &= 0x0F, least = 0x800;
  else if (code >= 0xF0 && code < 0xF5)
    size = 4, code &= 0x07, least = 0x10000;
  else
    return 0;
  if ((size_t)(end - at) < size) return 0;
  for (size_t i = 1; i < size; i++) {
    if ((at[i] & 0xC0) != 0x80) return 0;
    code = code << 6 | (at[i] & 0x3F);
  }
  return code < least || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) ? 0 : size;
}

size_t wf__utf8_encode(uint32_t code, char out[4]) {
  static const uint8_t lead[5] = {0, 0, 0xC0, 0xE0, 0xF0};
  const size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = size; i-- > 1; code >>= 6) out[i] = (char)(0x80 | (code & 0x3F));
  out[0] = (char)(lead[size] | code);
  return size;
}

size_t wf__json_escape(const uint8_t **at, const uint8_t *end, char out[8]) {
  const uint8_t c = **at;
  const size_t size = wf__utf8_length(*at, end);
  const char *from = (const char *)*at;
  *at += size != 0 ? size : 1;
  if (size == 0 || c < 0x20 || c == 0x7f)
    return (size_t)snprintf(out, 8, "\\u%04x", size == 0 ? 0xFFFDu : c);
  const size_t escaped = c == '"' || c == '\\';
  out[0] = '\\';
  memcpy(out + escaped, from, size);
  return size + escaped;
}
