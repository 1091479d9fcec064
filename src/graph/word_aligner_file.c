/* word_aligner_file.c - serializes a word aligner: the section "word boundaries" of native fst
 * files (docs/reference/file-formats.md).
 *
 *   u32 version, 1 | u32 way: 0 by position, 1 by mark, 2 by lexicon | i32 blank | i32 name shift |
 *   u32 flags: 1 units are runs, 2 loops repeat | u32 0
 *   6 x u64: number of places, roles, words, pronunciations, units of all pronunciations; bytes of
 *            the names
 *   places x {i32 phone, u32 flags: 1 loop, 2 first, 4 last}
 *   roles x i32 | words x i32 | (words + 1) x u32 | (pronunciations + 1) x u32 | units x i32
 *   the names of units as a symbol table (symbols.h)
 */
#include <string.h>

#include "fst/symbols.h"
#include "graph/word_aligner.h"

enum {
  FILE_VERSION = 1,
  FLAG_RUNS = 1,
  FLAG_LOOPS_REPEAT = 2,
  PLACE_LOOP = 1,
  PLACE_FIRST = 2,
  PLACE_LAST = 4
};

struct header {
  uint32_t version, way;
  int32_t blank, name_shift;
  uint32_t flags, zero;
  uint64_t num_places, num_roles, num_words, num_spellings, num_units, name_bytes;
};
_Static_assert(sizeof(struct header) == 72, "the header has no padding");

struct file_place {
  int32_t phone;
  uint32_t flags;
};

/* Bytes between the header and the names. Counts are below 2^32. */
static uint64_t array_bytes(const struct header *h) {
  return h->num_places * 8 +
         4 * (h->num_roles + h->num_words + h->num_words + 1 + h->num_spellings + 1 + h->num_units);
}

/* --- writing ----------------------------------------------------------------------------- */

static uint8_t *put(uint8_t *at, const void *data, uint64_t size) {
  if (size > 0) memcpy(at, data, size);
  return at + size;
}

static void put_arrays(const wf_word_aligner *aligner, uint8_t *at) {
  const wf__spellings *s = &aligner->spellings;
  const uint32_t zero = 0;
  for (uint64_t i = 0; i < aligner->places.size; i++) {
    const wf__hmm_place *place = &aligner->places.data[i];
    struct file_place written = {place->phone, (place->loop ? PLACE_LOOP : 0u) |
                                                   (place->first ? PLACE_FIRST : 0u) |
                                                   (place->last ? PLACE_LAST : 0u)};
    at = put(at, &written, sizeof written);
  }
  for (uint64_t i = 0; i < aligner->roles.size; i++)
    at = put(at, &(int32_t){aligner->roles.data[i]}, 4);
  at = put(at, s->words.data, s->words.size * 4);
  at = s->word_off.size > 0 ? put(at, s->word_off.data, s->word_off.size * 4) : put(at, &zero, 4);
  at =
      s->spell_off.size > 0 ? put(at, s->spell_off.data, s->spell_off.size * 4) : put(at, &zero, 4);
  put(at, s->spelled.data, s->spelled.size * 4);
}

/* Encodes the names in a table called "units". The original table is called by the path of its
 * file, which would make otherwise equal graphs differ. */
static wf_status encode_names(const wf_symbols *names, uint8_t **out, uint64_t *size,
                              wf_error *err) {
  wf_symbols *copy;
  WF__TRY(wf_symbols_create("units", &copy, err));
  wf_status status = WF_OK;
  for (size_t i = 0; i < wf_symbols_count(names) && status == WF_OK; i++) {
    int64_t key;
    const char *text = wf_symbols_at(names, i, &key);
    status = wf_symbols_add(copy, text, key, NULL, err);
  }
  if (status == WF_OK) status = wf__symbols_encode(copy, out, size, err);
  wf_symbols_free(copy);
  return status;
}

wf_status wf__word_aligner_encode(const wf_word_aligner *aligner, uint8_t **out, uint64_t *size,
                                  wf_error *err) {
  uint8_t *names;
  const wf__spellings *s = &aligner->spellings;
  struct header h = {
      .version = FILE_VERSION,
      .way = (uint32_t)aligner->way,
      .blank = aligner->blank,
      .name_shift = aligner->name_shift,
      .flags = (aligner->runs ? FLAG_RUNS : 0u) | (aligner->loops_repeat ? FLAG_LOOPS_REPEAT : 0u),
      .num_places = aligner->places.size,
      .num_roles = aligner->roles.size,
      .num_words = s->words.size,
      .num_spellings = s->spell_off.size > 0 ? s->spell_off.size - 1 : 0,
      .num_units = s->spelled.size};
  *out = NULL;
  if (aligner->base != NULL)
    return wf__fail(err, WF_ERR_ARGUMENT, "a word aligner with added words cannot be written");
  WF__TRY(encode_names(aligner->names, &names, &h.name_bytes, err));
  uint64_t arrays = array_bytes(&h);
  *size = sizeof h + arrays + h.name_bytes;
  *out = wf__alloc(*size, 1);
  if (*out != NULL) {
    memcpy(*out, &h, sizeof h);
    put_arrays(aligner, *out + sizeof h);
    memcpy(*out + sizeof h + arrays, names, h.name_bytes);
  }
  free(names);
  return *out != NULL ? WF_OK : wf__fail_memory(err, *size, "word boundaries");
}

/* --- reading ----------------------------------------------------------------------------- */

static wf_status malformed(const char *name, const char *what, wf_error *err) {
  return wf__fail(err, WF_ERR_FORMAT, "%s: word boundaries: %s", name, what);
}

static const uint8_t *get(const uint8_t *at, void *data, uint64_t size) {
  if (size > 0) memcpy(data, at, size);
  return at + size;
}

static wf_status get_units(wf_word_aligner *aligner, const struct header *h, const uint8_t **at,
                           const char *name, wf_error *err) {
  WF__TRY(wf__vec_grow(&aligner->places, h->num_places, "word boundaries", err));
  WF__TRY(wf__vec_grow(&aligner->roles, h->num_roles, "word boundaries", err));
  for (uint64_t i = 0; i < h->num_places; i++) {
    struct file_place place;
    *at = get(*at, &place, sizeof place);
    if (place.phone < 0) return malformed(name, "a negative phone", err);
    aligner->places.data[aligner->places.size++] =
        (wf__hmm_place){place.phone, (place.flags & PLACE_LOOP) != 0,
                        (place.flags & PLACE_FIRST) != 0, (place.flags & PLACE_LAST) != 0};
  }
  for (uint64_t i = 0; i < h->num_roles; i++) {
    int32_t role;
    *at = get(*at, &role, sizeof role);
    if (role < WF__MAYBE_WORD || role >= WF__NUM_POSITIONS)
      return malformed(name, "an unknown role", err);
    aligner->roles.data[aligner->roles.size++] = (int8_t)role;
  }
  return WF_OK;
}

static bool spans(const uint32_t *off, uint64_t count, uint64_t total) {
  if (off[0] != 0 || off[count] != total) return false;
  for (uint64_t i = 0; i < count; i++)
    if (off[i] >= off[i + 1]) return false;
  return true;
}

static wf_status get_spellings(wf__spellings *s, const struct header *h, const uint8_t *at,
                               const char *name, wf_error *err) {
  WF__TRY(wf__vec_grow(&s->words, h->num_words + 1, "word boundaries", err));
  WF__TRY(wf__vec_grow(&s->word_off, h->num_words + 1, "word boundaries", err));
  WF__TRY(wf__vec_grow(&s->spell_off, h->num_spellings + 1, "word boundaries", err));
  WF__TRY(wf__vec_grow(&s->spelled, h->num_units + 1, "word boundaries", err));
  s->words.size = h->num_words;
  s->word_off.size = h->num_words + 1;
  s->spell_off.size = h->num_spellings + 1;
  s->spelled.size = h->num_units;
  at = get(at, s->words.data, h->num_words * 4);
  at = get(at, s->word_off.data, (h->num_words + 1) * 4);
  at = get(at, s->spell_off.data, (h->num_spellings + 1) * 4);
  get(at, s->spelled.data, h->num_units * 4);
  for (uint64_t i = 0; i < h->num_words; i++)
    if (s->words.data[i] <= (i > 0 ? s->words.data[i - 1] : 0))
      return malformed(name, "words are not in ascending order", err);
  if (!spans(s->word_off.data, h->num_words, h->num_spellings) ||
      !spans(s->spell_off.data, h->num_spellings, h->num_units))
    return malformed(name, "the offsets of pronunciations are not ascending", err);
  return wf__spellings_index(s, err);
}

static wf_status get_names(const struct header *h, const uint8_t *at, const char *name,
                           wf_symbols **out, wf_error *err) {
  wf__cursor cursor = {at, at, at + h->name_bytes, name};
  WF__TRY(wf__symbols_read_binary(&cursor, out, err));
  if (cursor.at == cursor.end) return WF_OK;
  wf_symbols_free(*out);
  return malformed(name, "bytes follow the names", err);
}

static wf_status check_header(const struct header *h, uint64_t size, const char *name,
                              wf_error *err) {
  if (h->version != FILE_VERSION)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "%s: word boundaries of version %u; this program reads version %d", name,
                    h->version, FILE_VERSION);
  if (h->way >= WF__NUM_WAYS || (h->flags & ~(uint32_t)(FLAG_RUNS | FLAG_LOOPS_REPEAT)) != 0 ||
      h->zero != 0 || h->name_shift < 0 || h->name_shift > 1)
    return malformed(name, "a damaged header", err);
  const uint64_t counts[] = {h->num_places,    h->num_roles, h->num_words,
                             h->num_spellings, h->num_units, h->name_bytes};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    if (counts[i] > size) return malformed(name, "a count is larger than the data", err);
  return sizeof *h + array_bytes(h) + h->name_bytes == size
             ? WF_OK
             : malformed(name, "the counts do not add up to the size", err);
}

wf_status wf__word_aligner_decode(const void *bytes, uint64_t size, const char *name,
                                  wf_word_aligner **out, wf_error *err) {
  struct header h;
  wf_symbols *names;
  wf_word_aligner *aligner;
  *out = NULL;
  if (size < sizeof h || size > INT32_MAX) return malformed(name, "a damaged size", err);
  const uint8_t *at = get(bytes, &h, sizeof h);
  WF__TRY(check_header(&h, size, name, err));
  WF__TRY(get_names(&h, (const uint8_t *)bytes + size - h.name_bytes, name, &names, err));
  wf_status status =
      wf__word_aligner_create((enum wf__aligner_way)h.way, names, h.name_shift, &aligner, err);
  wf_symbols_free(names);
  WF__TRY(status);
  aligner->blank = h.blank;
  aligner->runs = (h.flags & FLAG_RUNS) != 0;
  aligner->loops_repeat = (h.flags & FLAG_LOOPS_REPEAT) != 0;
  status = get_units(aligner, &h, &at, name, err);
  if (status == WF_OK) status = get_spellings(&aligner->spellings, &h, at, name, err);
  if (status == WF_OK)
    *out = aligner;
  else
    wf_word_aligner_free(aligner);
  return status;
}

/* --- fsts -------------------------------------------------------------------------------- */

wf_status wf__word_aligner_attach(const wf_word_aligner *aligner, wf_fst *fst, wf_error *err) {
  uint8_t *bytes;
  uint64_t size;
  WF__TRY(wf__word_aligner_encode(aligner, &bytes, &size, err));
  wf_status status = wf__fst_set_boundaries(fst, bytes, size, err);
  free(bytes);
  return status;
}

wf_status wf_fst_with_word_aligner(const wf_fst *fst, const wf_word_aligner *aligner, wf_fst **out,
                                   wf_error *err) {
  WF__TRY(wf_fst_with_symbols(fst, wf_fst_isymbols(fst), wf_fst_osymbols(fst), out, err));
  wf_status status = aligner != NULL ? wf__word_aligner_attach(aligner, *out, err)
                                     : wf__fst_set_boundaries(*out, NULL, 0, err);
  if (status == WF_OK) return WF_OK;
  wf_fst_free(*out);
  *out = NULL;
  return status;
}

wf_status wf_word_aligner_from_fst(const wf_fst *fst, wf_word_aligner **out, wf_error *err) {
  uint64_t size;
  const void *bytes = wf__fst_boundaries(fst, &size);
  *out = NULL;
  if (bytes == NULL)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "the graph does not tell how its words are made of tokens; give a lexicon or "
                    "the acoustic model");
  return wf__word_aligner_decode(bytes, size, "graph", out, err);
}
