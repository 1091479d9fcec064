/* symbols_binary.c - reads and writes symbol tables as OpenFst embeds them in fst files (layout:
 * symbols.h). The native file embeds the same bytes. */
#include <string.h>

#include "base/memory.h"
#include "fst/symbols.h"

/* Reads a string of an OpenFst file: i32 size, then the bytes. */
static wf_status read_string(wf__cursor *cursor, wf__span *out, const char *what, wf_error *err) {
  int32_t size;
  const uint8_t *bytes;
  WF__TRY(wf__read_i32(cursor, &size, what, err));
  if (size < 0) return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "%s of %d bytes", what, size);
  WF__TRY(wf__read_view(cursor, &bytes, (uint64_t)size, what, err));
  *out = (wf__span){(const char *)bytes, (size_t)size};
  return WF_OK;
}

static wf_status read_symbol(wf__cursor *cursor, wf_symbols *symbols, wf_error *err) {
  wf__span text;
  int64_t key;
  WF__TRY(read_string(cursor, &text, "a symbol", err));
  WF__TRY(wf__read_i64(cursor, &key, "the key of a symbol", err));
  wf_status status = wf__symbols_append(symbols, text.data, text.size, key, err);
  return status == WF_OK ? WF_OK
                         : wf__fail_prefix(err, status, "%s: byte %llu", cursor->path,
                                           (unsigned long long)wf__cursor_offset(cursor));
}

static wf_status read_header(wf__cursor *cursor, wf_symbols **out, int64_t *count, wf_error *err) {
  int32_t magic;
  int64_t next_key;
  wf__span name;
  WF__TRY(wf__read_i32(cursor, &magic, "a symbol table", err));
  if (magic != WF__SYMBOLS_MAGIC)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT,
                           "expected a symbol table (magic %d), found %d", WF__SYMBOLS_MAGIC,
                           magic);
  WF__TRY(read_string(cursor, &name, "the name of a symbol table", err));
  WF__TRY(wf__read_i64(cursor, &next_key, "the next key of a symbol table", err));
  WF__TRY(wf__read_i64(cursor, count, "the count of symbols", err));
  if (*count < 0)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "a symbol table has %lld symbols",
                           (long long)*count);
  char *copy = wf__strndup(name.data, name.size);
  if (copy == NULL) return wf__fail_memory(err, name.size, "a name");
  wf_status status = wf_symbols_create(copy, out, err);
  free(copy);
  if (status == WF_OK) wf__symbols_raise_next_key(*out, next_key);
  return status;
}

wf_status wf__symbols_read_binary(wf__cursor *cursor, wf_symbols **out, wf_error *err) {
  *out = NULL;
  wf_symbols *symbols = NULL;
  int64_t count = 0;
  wf_status status = read_header(cursor, &symbols, &count, err);
  for (int64_t i = 0; status == WF_OK && i < count; i++) status = read_symbol(cursor, symbols, err);
  if (status != WF_OK) {
    wf_symbols_free(symbols);
    return status;
  }
  *out = symbols;
  return WF_OK;
}

bool wf__symbols_is_binary(const wf__input *input) {
  const int32_t magic = WF__SYMBOLS_MAGIC;
  return input->size >= sizeof magic && memcmp(input->data, &magic, sizeof magic) == 0;
}

wf_status wf__symbols_read_whole(const wf__input *input, wf_symbols **out, wf_error *err) {
  wf__cursor cursor = wf__cursor_of(input);
  WF__TRY(wf__symbols_read_binary(&cursor, out, err));
  if (wf__cursor_left(&cursor) == 0) return WF_OK;
  wf_symbols_free(*out);
  *out = NULL;
  return wf__cursor_fail(&cursor, err, WF_ERR_FORMAT, "bytes follow the symbol table");
}

static uint8_t *put(uint8_t *to, const void *data, size_t size) {
  if (size != 0) memcpy(to, data, size);
  return to + size;
}

static uint8_t *put_string(uint8_t *to, wf__span text) {
  int32_t size = (int32_t)text.size;
  return put(put(to, &size, sizeof size), text.data, text.size);
}

wf_status wf__symbols_encode(const wf_symbols *symbols, uint8_t **out, uint64_t *size,
                             wf_error *err) {
  const int32_t magic = WF__SYMBOLS_MAGIC;
  int64_t key, next_key = wf__symbols_next_key(symbols);
  const int64_t count = (int64_t)wf_symbols_num_entries(symbols);
  const wf__span name = {wf_symbols_name(symbols), strlen(wf_symbols_name(symbols))};
  uint64_t bytes = 4 + 4 + name.size + 8 + 8;
  for (size_t i = 0; i < (size_t)count; i++) bytes += 4 + wf__symbols_bytes(symbols, i).size + 8;
  *size = 0;
  *out = wf__alloc(bytes, 1);
  if (*out == NULL) return wf__fail_memory(err, bytes, "a symbol table");
  *size = bytes;
  uint8_t *to = put_string(put(*out, &magic, sizeof magic), name);
  to = put(put(to, &next_key, sizeof next_key), &count, sizeof count);
  for (size_t i = 0; i < (size_t)count; i++) {
    (void)wf_symbols_entry(symbols, i, &key);
    to = put_string(to, wf__symbols_bytes(symbols, i));
    to = put(to, &key, sizeof key);
  }
  return WF_OK;
}
