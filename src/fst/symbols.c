/* symbols.c - symbol tables: hash tables from text to key and from key to text.
 *
 *   entries  [count]  {text, key} in the order in which they were added; an arena holds the texts
 *   by_text, by_key   open-addressing hash tables of entry index + 1; 0: free slot
 */
#include <stdatomic.h>
#include <string.h>

#include "base/input.h"
#include "base/memory.h"
#include "base/output.h"
#include "fst/symbols.h"
#include "math/hash.h"

struct entry {
  const char *text;
  int64_t key;
};

struct wf_symbols {
  atomic_uint_fast32_t refs;
  char *name;
  WF__VEC(struct entry) entries;
  uint32_t *by_text, *by_key;
  uint32_t mask; /* slots - 1, the same for both tables; 0: no tables yet */
  int64_t next_key;
  wf__arena texts;
};

static uint64_t hash_text(const char *text, size_t size) {
  uint64_t hash = 0xcbf29ce484222325ULL; /* FNV-1a, then a final mix */
  for (size_t i = 0; i < size; i++) hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3ULL;
  return wf__mix64(hash);
}

wf_status wf_symbols_create(const char *name, wf_symbols **out, wf_error *err) {
  *out = NULL;
  wf_symbols *symbols = wf__calloc(1, sizeof *symbols);
  if (symbols == NULL) return wf__fail_memory(err, sizeof *symbols, "a symbol table");
  atomic_init(&symbols->refs, 1);
  symbols->name = wf__strndup(name != NULL ? name : "", name != NULL ? strlen(name) : 0);
  if (symbols->name == NULL) {
    free(symbols);
    return wf__fail_memory(err, 1, "a symbol table");
  }
  *out = symbols;
  return WF_OK;
}

/* Slot of the text in by_text, or the free slot where it would be inserted. */
static uint32_t text_slot(const wf_symbols *symbols, const char *text, size_t size) {
  uint32_t slot = (uint32_t)hash_text(text, size) & symbols->mask;
  for (;; slot = (slot + 1) & symbols->mask) {
    uint32_t at = symbols->by_text[slot];
    if (at == 0) return slot;
    const char *have = symbols->entries.data[at - 1].text;
    if (strncmp(have, text, size) == 0 && have[size] == '\0') return slot;
  }
}

static uint32_t key_slot(const wf_symbols *symbols, int64_t key) {
  uint32_t slot = (uint32_t)wf__mix64((uint64_t)key) & symbols->mask;
  for (;; slot = (slot + 1) & symbols->mask) {
    uint32_t at = symbols->by_key[slot];
    if (at == 0 || symbols->entries.data[at - 1].key == key) return slot;
  }
}

static wf_status grow(wf_symbols *symbols, wf_error *err) {
  uint64_t slots = symbols->mask != 0 ? ((uint64_t)symbols->mask + 1) * 2 : 64;
  if (slots > (uint64_t)1 << 31)
    return wf__fail(err, WF_ERR_LIMIT, "symbol table %s: more than 2^30 symbols", symbols->name);
  uint32_t *by_text = wf__calloc(slots, sizeof *by_text),
           *by_key = wf__calloc(slots, sizeof *by_key);
  if (by_text == NULL || by_key == NULL) {
    free(by_text);
    free(by_key);
    return wf__fail_memory(err, slots * 8, "a symbol table");
  }
  free(symbols->by_text);
  free(symbols->by_key);
  symbols->by_text = by_text;
  symbols->by_key = by_key;
  symbols->mask = (uint32_t)(slots - 1);
  for (uint64_t i = 0; i < symbols->entries.size; i++) {
    const struct entry *entry = &symbols->entries.data[i];
    by_text[text_slot(symbols, entry->text, strlen(entry->text))] = (uint32_t)i + 1;
    by_key[key_slot(symbols, entry->key)] = (uint32_t)i + 1;
  }
  return WF_OK;
}

wf_status wf__symbols_add_bytes(wf_symbols *symbols, const char *text, size_t size, int64_t key,
                                int64_t *out_key, wf_error *err) {
  if (key > INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "symbol table %s: key %lld of '%.*s' is above 2^31-1",
                    symbols->name, (long long)key, (int)size, text);
  if (symbols->entries.size * 2 >= symbols->mask) WF__TRY(grow(symbols, err));
  uint32_t slot = text_slot(symbols, text, size), at = symbols->by_text[slot];
  if (at != 0) {
    int64_t have = symbols->entries.data[at - 1].key;
    if (key >= 0 && key != have)
      return wf__fail(err, WF_ERR_FORMAT, "symbol table %s: '%.*s' has keys %lld and %lld",
                      symbols->name, (int)size, text, (long long)have, (long long)key);
    if (out_key != NULL) *out_key = have;
    return WF_OK;
  }
  if (key < 0) key = symbols->next_key;
  if (key > INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "symbol table %s: keys above 2^31-1", symbols->name);
  uint32_t by_key = key_slot(symbols, key);
  if (symbols->by_key[by_key] != 0)
    return wf__fail(err, WF_ERR_FORMAT, "symbol table %s: key %lld is both '%s' and '%.*s'",
                    symbols->name, (long long)key,
                    symbols->entries.data[symbols->by_key[by_key] - 1].text, (int)size, text);
  char *copy = wf__arena_alloc(&symbols->texts, size + 1);
  if (copy == NULL) return wf__fail_memory(err, size + 1, "a symbol");
  memcpy(copy, text, size);
  copy[size] = '\0';
  WF__TRY(wf__vec_grow(&symbols->entries, 1, "symbols", err));
  symbols->entries.data[symbols->entries.size++] = (struct entry){copy, key};
  symbols->by_text[slot] = symbols->by_key[by_key] = (uint32_t)symbols->entries.size;
  if (key >= symbols->next_key) symbols->next_key = key + 1;
  if (out_key != NULL) *out_key = key;
  return WF_OK;
}

wf_status wf_symbols_add(wf_symbols *symbols, const char *text, int64_t key, int64_t *out_key,
                         wf_error *err) {
  if (*text == '\0')
    return wf__fail(err, WF_ERR_ARGUMENT, "symbol table %s: empty symbol", symbols->name);
  return wf__symbols_add_bytes(symbols, text, strlen(text), key, out_key, err);
}

int64_t wf_symbols_find_bytes(const wf_symbols *symbols, const char *text, size_t size) {
  if (symbols->mask == 0) return -1;
  uint32_t at = symbols->by_text[text_slot(symbols, text, size)];
  return at != 0 ? symbols->entries.data[at - 1].key : -1;
}

int64_t wf_symbols_find(const wf_symbols *symbols, const char *text) {
  return wf_symbols_find_bytes(symbols, text, strlen(text));
}

const char *wf_symbols_text(const wf_symbols *symbols, int64_t key) {
  if (symbols->mask == 0 || key < 0) return NULL;
  uint32_t at = symbols->by_key[key_slot(symbols, key)];
  return at != 0 ? symbols->entries.data[at - 1].text : NULL;
}

size_t wf_symbols_count(const wf_symbols *symbols) { return (size_t)symbols->entries.size; }

const char *wf_symbols_at(const wf_symbols *symbols, size_t i, int64_t *key) {
  if (i >= symbols->entries.size) return NULL;
  if (key != NULL) *key = symbols->entries.data[i].key;
  return symbols->entries.data[i].text;
}

int64_t wf_symbols_next_key(const wf_symbols *symbols) { return symbols->next_key; }
const char *wf_symbols_name(const wf_symbols *symbols) { return symbols->name; }

wf_symbols *wf_symbols_ref(const wf_symbols *symbols) {
  wf_symbols *shared = (wf_symbols *)(uintptr_t)symbols;
  atomic_fetch_add(&shared->refs, 1);
  return shared;
}

void wf_symbols_free(wf_symbols *symbols) {
  if (symbols == NULL || atomic_fetch_sub(&symbols->refs, 1) != 1) return;
  free(symbols->name);
  free(symbols->by_text);
  free(symbols->by_key);
  wf__vec_free(&symbols->entries);
  wf__arena_free(&symbols->texts);
  free(symbols);
}

static wf_status read_line(wf_symbols *symbols, const wf__lines *lines, wf__span line,
                           wf_error *err) {
  wf__span text, number, extra;
  int64_t key;
  if (!wf__next_field(&line, &text)) return WF_OK;
  if (!wf__next_field(&line, &number))
    return wf__lines_fail(lines, err, WF_ERR_FORMAT, "expected 'symbol id', found only '%.*s'",
                          WF__SPAN_ARG(text));
  if (!wf__parse_i64(number, &key) || key < 0)
    return wf__lines_fail(lines, err, WF_ERR_FORMAT,
                          "the symbol id '%.*s' is not a number of at least 0",
                          WF__SPAN_ARG(number));
  if (wf__next_field(&line, &extra))
    return wf__lines_fail(lines, err, WF_ERR_FORMAT,
                          "expected 'symbol id', found a third field '%.*s'", WF__SPAN_ARG(extra));
  if (!wf__is_utf8(text)) return wf__lines_fail(lines, err, WF_ERR_FORMAT, "symbol is not UTF-8");
  if (memchr(text.data, '\0', text.size) != NULL)
    return wf__lines_fail(lines, err, WF_ERR_FORMAT, "symbol holds a NUL byte");
  wf_status status = wf__symbols_add_bytes(symbols, text.data, text.size, key, NULL, err);
  return status == WF_OK ? WF_OK
                         : wf__fail_prefix(err, status, "%s:%llu", lines->path,
                                           (unsigned long long)lines->line_number);
}

wf_status wf__symbols_read_input(const wf__input *input, wf_symbols **out, wf_error *err) {
  *out = NULL;
  wf_symbols *symbols = NULL;
  wf_status status = wf_symbols_create(input->path, &symbols, err);
  wf__lines lines = wf__lines_of(input);
  for (wf__span line; status == WF_OK && wf__next_line(&lines, &line);)
    status = read_line(symbols, &lines, line, err);
  if (status != WF_OK) {
    wf_symbols_free(symbols);
    return status;
  }
  *out = symbols;
  return WF_OK;
}

wf_status wf_symbols_read(const char *path, wf_symbols **out, wf_error *err) {
  *out = NULL;
  wf__input input;
  WF__TRY(wf__input_open(path, &input, err));
  wf_status status = wf__symbols_read_input(&input, out, err);
  wf__input_close(&input);
  return status;
}

wf_status wf_symbols_write(const wf_symbols *symbols, const char *path, wf_error *err) {
  wf__output *output;
  int64_t empty = wf_symbols_find(symbols, "");
  if (empty >= 0)
    return wf__fail(
        err, WF_ERR_ARGUMENT,
        "symbol table %s: the symbol with key %lld is empty; a text file cannot hold it",
        symbols->name, (long long)empty);
  WF__TRY(wf__output_open(path, &output, err));
  for (uint64_t i = 0; i < symbols->entries.size; i++)
    wf__printf(output, "%s\t%lld\n", symbols->entries.data[i].text,
               (long long)symbols->entries.data[i].key);
  return wf__output_close(output, err);
}
