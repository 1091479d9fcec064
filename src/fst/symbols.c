/* symbols.c - symbol tables: hash tables from text to key and from key to text.
 *
 *   entries  [count]  {text, key} in the order in which they were added; an arena holds the texts
 *   labels            the entries that are alone with a text and a key that a label can have
 *   by_text, by_key   open-addressing hash tables of entry index + 1; 0: free slot
 *
 * In tables that OpenFst wrote, keys may be negative or above 2^31 - 1, and several texts may have
 * one key. Such entries are kept, so that the table is written as it was read. No arc can have such
 * a key: finding texts and numbering labels pass over them.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "fst/symbols.h"
#include "math/hash.h"

enum { NO_KEY = -1 }; /* OpenFst's kNoSymbol */

struct entry {
  const char *text; /* a NUL follows */
  int64_t key;
  uint32_t size;
};

struct wf_symbols {
  atomic_uint_fast32_t refs;
  char *name;
  WF__VEC(struct entry) entries;
  WF__VEC(uint32_t) labels;
  uint32_t *by_text, *by_key;
  uint32_t mask;                /* slots - 1, the same for both tables; 0: no tables yet */
  uint32_t dense;               /* the first entries, whose keys are their places */
  bool has_synonyms;            /* several texts have one key */
  bool has_bad_fields;          /* wf__symbols_field_fault of a text is not NULL */
  int64_t next_label, next_key; /* next_key: at least one more than all keys */
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
    const struct entry *have = &symbols->entries.data[at - 1];
    if (have->size == size && memcmp(have->text, text, size) == 0) return slot;
  }
}

static uint32_t key_slot(const wf_symbols *symbols, int64_t key) {
  uint32_t slot = (uint32_t)wf__mix64((uint64_t)key) & symbols->mask;
  for (;; slot = (slot + 1) & symbols->mask) {
    uint32_t at = symbols->by_key[slot];
    if (at == 0 || symbols->entries.data[at - 1].key == key) return slot;
  }
}

/* Makes an entry findable. Of a text with several keys, the first one counts. Of several texts with
 * one key, that counts which OpenFst's SymbolTable::Find gives: among the dense keys the first
 * text, else the last. Returns true if both text and key are new. */
static bool index_entry(wf_symbols *symbols, uint32_t place) {
  const struct entry *entry = &symbols->entries.data[place];
  if (entry->key == NO_KEY || memchr(entry->text, '\0', entry->size) != NULL) return false;
  uint32_t slot = text_slot(symbols, entry->text, entry->size);
  if (symbols->by_text[slot] != 0) return false;
  symbols->by_text[slot] = place + 1;
  slot = key_slot(symbols, entry->key);
  const uint32_t holder = symbols->by_key[slot];
  symbols->has_synonyms |= holder != 0;
  if (holder == 0 || holder > symbols->dense) symbols->by_key[slot] = place + 1;
  return holder == 0;
}

static wf_status grow(wf_symbols *symbols, wf_error *err) {
  uint64_t slots = symbols->mask != 0 ? ((uint64_t)symbols->mask + 1) * 2 : 64;
  if (slots > (uint64_t)1 << 31)
    return wf__fail(err, WF_ERR_LIMIT, "symbol table %s: more than 2^30 symbols",
                    wf__symbols_shown(symbols));
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
  for (uint64_t i = 0; i < symbols->entries.size; i++) index_entry(symbols, (uint32_t)i);
  return WF_OK;
}

/* The first entry of a text, or NULL. */
static const struct entry *find_entry(const wf_symbols *symbols, const char *text, size_t size) {
  if (symbols->mask == 0) return NULL;
  const uint32_t at = symbols->by_text[text_slot(symbols, text, size)];
  return at != 0 ? &symbols->entries.data[at - 1] : NULL;
}

static const char *field_fault(const char *text, size_t size) {
  if (size == 0) return "is empty";
  for (size_t i = 0; i < size; i++)
    if (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\0')
      return "holds a blank, a tab, a line end or a NUL byte";
  return NULL;
}

static bool is_label(int64_t key) { return key >= 0 && key <= INT32_MAX; }

wf_status wf__symbols_append(wf_symbols *symbols, const char *text, size_t size, int64_t key,
                             wf_error *err) {
  if (symbols->entries.size * 2 >= symbols->mask) WF__TRY(grow(symbols, err));
  WF__TRY(wf__vec_grow(&symbols->entries, 1, "symbols", err));
  WF__TRY(wf__vec_grow(&symbols->labels, 1, "symbols", err));
  char *copy = wf__arena_alloc(&symbols->texts, size + 1);
  if (copy == NULL) return wf__fail_memory(err, size + 1, "a symbol");
  if (size != 0) memcpy(copy, text, size);
  copy[size] = '\0';
  symbols->entries.data[symbols->entries.size++] = (struct entry){copy, key, (uint32_t)size};
  symbols->has_bad_fields |= field_fault(text, size) != NULL;
  const uint32_t place = (uint32_t)symbols->entries.size - 1;
  if (index_entry(symbols, place)) {
    symbols->dense += key == place && place == symbols->dense;
    if (is_label(key)) symbols->labels.data[symbols->labels.size++] = place;
    if (is_label(key) && key >= symbols->next_label) symbols->next_label = key + 1;
  }
  wf__symbols_raise_next_key(symbols, key < INT64_MAX ? key + 1 : key);
  return WF_OK;
}

void wf__symbols_raise_next_key(wf_symbols *symbols, int64_t key) {
  if (key > symbols->next_key) symbols->next_key = key;
}

int64_t wf__symbols_next_key(const wf_symbols *symbols) { return symbols->next_key; }

wf_status wf__symbols_add_bytes(wf_symbols *symbols, const char *text, size_t size, int64_t key,
                                int64_t *out_key, wf_error *err) {
  if (key != NO_KEY && !is_label(key))
    return wf__fail(err, key < 0 ? WF_ERR_ARGUMENT : WF_ERR_LIMIT,
                    "symbol table %s: key %lld of '%.*s' is outside 0 .. 2^31-1",
                    wf__symbols_shown(symbols), (long long)key, (int)size, text);
  const struct entry *have = find_entry(symbols, text, size);
  if (have != NULL) {
    if (key != NO_KEY && key != have->key)
      return wf__fail(err, WF_ERR_FORMAT, "symbol table %s: '%.*s' has keys %lld and %lld",
                      wf__symbols_shown(symbols), (int)size, text, (long long)have->key,
                      (long long)key);
    if (!is_label(have->key))
      return wf__fail(err, WF_ERR_FORMAT,
                      "symbol table %s: '%.*s' has the key %lld, which is outside 0 .. 2^31-1",
                      wf__symbols_shown(symbols), (int)size, text, (long long)have->key);
    if (out_key != NULL) *out_key = have->key;
    return WF_OK;
  }
  if (key == NO_KEY) key = symbols->next_label;
  if (key > INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "symbol table %s: keys above 2^31-1",
                    wf__symbols_shown(symbols));
  const char *other = wf_symbols_text(symbols, key);
  if (other != NULL)
    return wf__fail(err, WF_ERR_FORMAT, "symbol table %s: key %lld is both '%s' and '%.*s'",
                    wf__symbols_shown(symbols), (long long)key, other, (int)size, text);
  WF__TRY(wf__symbols_append(symbols, text, size, key, err));
  if (out_key != NULL) *out_key = key;
  return WF_OK;
}

wf_status wf_symbols_add(wf_symbols *symbols, const char *text, int64_t key, int64_t *out_key,
                         wf_error *err) {
  if (*text == '\0')
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "symbol table %s: empty symbol; a blank may be called <blk>",
                    wf__symbols_shown(symbols));
  return wf__symbols_add_bytes(symbols, text, strlen(text), key, out_key, err);
}

int64_t wf__symbols_find_bytes(const wf_symbols *symbols, const char *text, size_t size) {
  const struct entry *entry = find_entry(symbols, text, size);
  return entry != NULL && is_label(entry->key) ? entry->key : -1;
}

int64_t wf_symbols_find(const wf_symbols *symbols, const char *text) {
  return wf__symbols_find_bytes(symbols, text, strlen(text));
}

const char *wf_symbols_text(const wf_symbols *symbols, int64_t key) {
  if (symbols->mask == 0) return NULL;
  uint32_t at = symbols->by_key[key_slot(symbols, key)];
  return at != 0 ? symbols->entries.data[at - 1].text : NULL;
}

size_t wf_symbols_count(const wf_symbols *symbols) { return (size_t)symbols->labels.size; }

const char *wf_symbols_at(const wf_symbols *symbols, size_t i, int64_t *key) {
  if (i >= symbols->labels.size) return NULL;
  const struct entry *entry = &symbols->entries.data[symbols->labels.data[i]];
  if (key != NULL) *key = entry->key;
  return symbols->has_synonyms ? wf_symbols_text(symbols, entry->key) : entry->text;
}

size_t wf_symbols_num_entries(const wf_symbols *symbols) { return (size_t)symbols->entries.size; }

const char *wf_symbols_entry(const wf_symbols *symbols, size_t i, int64_t *key) {
  if (i >= symbols->entries.size) return NULL;
  if (key != NULL) *key = symbols->entries.data[i].key;
  return symbols->entries.data[i].text;
}

int64_t wf_symbols_next_key(const wf_symbols *symbols) { return symbols->next_label; }
const char *wf_symbols_name(const wf_symbols *symbols) { return symbols->name; }

const char *wf__symbols_shown(const wf_symbols *symbols) {
  return symbols->name[0] != '\0' ? symbols->name : "(no name)";
}

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
  wf__vec_free(&symbols->labels);
  wf__arena_free(&symbols->texts);
  free(symbols);
}

wf__span wf__symbols_bytes(const wf_symbols *symbols, size_t i) {
  const struct entry *entry = &symbols->entries.data[i];
  return (wf__span){entry->text, entry->size};
}

bool wf__is_class_label(const char *text, size_t size) {
  const size_t at = size > 1 && text[1] == '1' ? 2 : 1;
  if (size < at + 3 || text[0] != '#') return false;
  return (text[at] == '<' && text[size - 1] == '>') || (text[at] == '{' && text[size - 1] == '}');
}

const char *wf__symbols_field_fault(const wf_symbols *symbols, wf__span text) {
  return symbols->has_bad_fields ? field_fault(text.data, text.size) : NULL;
}
