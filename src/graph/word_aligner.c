/* word_aligner.c - makes word aligners: from models whose phones have word positions, from tokens
 * that mark the start of a word, and from a lexicon over tokens or phones. */
#include "graph/word_aligner.h"

#include <string.h>

#include "fst/symbols.h"
#include "graph/lexicon.h"
#include "graph/token_bytes.h"
#include "graph/token_marks.h"

static void free_spellings(wf__spellings *spellings) {
  wf__vec_free(&spellings->words);
  wf__vec_free(&spellings->index);
  wf__vec_free(&spellings->word_off);
  wf__vec_free(&spellings->spell_off);
  wf__vec_free(&spellings->spelled);
}

wf_word_aligner *wf_word_aligner_ref(const wf_word_aligner *aligner) {
  wf_word_aligner *shared = (wf_word_aligner *)(uintptr_t)aligner;
  if (shared != NULL) atomic_fetch_add(&shared->refs, 1);
  return shared;
}

void wf_word_aligner_free(wf_word_aligner *aligner) {
  while (aligner != NULL && atomic_fetch_sub(&aligner->refs, 1) == 1) {
    wf_word_aligner *base = aligner->base;
    wf_symbols_free(aligner->names);
    free_spellings(&aligner->spellings);
    wf__vec_free(&aligner->places);
    wf__vec_free(&aligner->roles);
    free(aligner);
    aligner = base;
  }
}

const char *wf_word_aligner_unit_text(const wf_word_aligner *aligner, int32_t unit) {
  return wf_symbols_text(aligner->root->names, (int64_t)unit - aligner->root->name_shift);
}

wf_status wf__word_aligner_create(enum wf__aligner_way way, const wf_symbols *names,
                                  int32_t name_shift, wf_word_aligner **out, wf_error *err) {
  wf_word_aligner *aligner = wf__calloc(1, sizeof *aligner);
  *out = aligner;
  if (aligner == NULL) return wf__fail_memory(err, sizeof *aligner, "a word aligner");
  atomic_init(&aligner->refs, 1);
  aligner->root = aligner;
  aligner->way = way;
  aligner->runs = true;
  aligner->names = wf_symbols_ref(names);
  aligner->name_shift = name_shift;
  return WF_OK;
}

/* Returns the aligner in *out, or frees it after a failure. */
static wf_status finish(wf_status status, wf_word_aligner *aligner, wf_word_aligner **out) {
  if (status == WF_OK)
    *out = aligner;
  else
    wf_word_aligner_free(aligner);
  return status;
}

/* --- phones ------------------------------------------------------------------------------ */

static wf_status take_places(wf_word_aligner *aligner, const wf_hmm *hmm, wf_error *err) {
  aligner->runs = false;
  aligner->loops_repeat = hmm->loops_repeat;
  WF__TRY(wf__vec_grow(&aligner->places, hmm->places.size, "a word aligner", err));
  memcpy(aligner->places.data, hmm->places.data, hmm->places.size * sizeof *hmm->places.data);
  aligner->places.size = hmm->places.size;
  return WF_OK;
}

static wf_status take_positions(wf_word_aligner *aligner, const wf_hmm *hmm, wf_error *err) {
  WF__TRY(take_places(aligner, hmm, err));
  WF__TRY(wf__vec_grow(&aligner->roles, (uint64_t)hmm->num_phones + 1, "a word aligner", err));
  memcpy(aligner->roles.data, hmm->word_position, (size_t)hmm->num_phones + 1);
  aligner->roles.size = (uint64_t)hmm->num_phones + 1;
  aligner->roles.data[0] = WF__NO_WORD; /* for labels that the model lacks */
  return WF_OK;
}

wf_status wf_word_aligner_from_hmm(const wf_hmm *hmm, wf_word_aligner **out, wf_error *err) {
  *out = NULL;
  if (hmm->word_position == NULL || hmm->places.size == 0)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "%s: word times need phones with word positions: a Kaldi model "
                    "whose lang folder has phones/word_boundary.txt",
                    hmm->name);
  wf_word_aligner *aligner;
  wf_status status = wf__word_aligner_create(WF__BY_POSITION, hmm->phones, 0, &aligner, err);
  if (status == WF_OK) status = take_positions(aligner, hmm, err);
  return finish(status, aligner, out);
}

/* --- marked tokens ----------------------------------------------------------------------- */

struct marks {
  wf__byte_alphabet alphabet;
  bool starts; /* U+2581 begins words */
  bool rests;  /* some token is marked as the rest of a word */
};

static void find_marks(const wf_symbols *table, struct marks *marks) {
  const char *name, *plain;
  wf__byte_alphabet_of(table, &marks->alphabet);
  marks->starts = wf__start_is_mark(table, wf__token_separator(table, &marks->alphabet));
  marks->rests = false;
  if (marks->alphabet.kind != WF__NO_BYTES) return;
  for (size_t i = 0; (name = wf_symbols_at(table, i, NULL)) != NULL; i++)
    marks->rests =
        marks->rests || (wf__token_mark_of(name, &plain) == WF__TOKEN_RESTS && plain[0] != '\0');
}

/* Tokens begin words if they begin with U+2581, or with a space in an alphabet of bytes, or if they
 * lack the ## of the others. */
static bool begins_word(const struct marks *marks, const char *name) {
  const wf__token_mark mark = wf__token_mark_of(name, NULL);
  if (mark == WF__TOKEN_SPECIAL) return false;
  return (marks->starts && mark == WF__TOKEN_STARTS) || (marks->rests && mark == WF__TOKEN_PLAIN) ||
         wf__begins_with_space(&marks->alphabet, name);
}

static wf_status fill_marks(wf_word_aligner *aligner, const wf__tokens *tokens, wf_error *err) {
  struct marks marks;
  bool any = false;
  find_marks(tokens->table, &marks);
  WF__TRY(wf__vec_grow(&aligner->roles, (uint64_t)tokens->num_tokens + 1, "a word aligner", err));
  for (int32_t label = 0; label <= tokens->num_tokens; label++) {
    const char *text = wf_word_aligner_unit_text(aligner, label);
    bool marked = text != NULL && begins_word(&marks, text);
    aligner->roles.data[aligner->roles.size++] = label == 0 || label == aligner->blank ? WF__NO_WORD
                                                 : marked                              ? WF__BEGIN
                                                          : WF__INTERNAL;
    any = any || marked;
  }
  if (any) return WF_OK;
  return wf__fail(err, WF_ERR_ARGUMENT,
                  "%s: no token has a mark of a word's start (U+2581, Ġ of byte-level BPE, or ## "
                  "at the others); "
                  "word times need a lexicon",
                  wf__symbols_shown(tokens->table));
}

wf_status wf_word_aligner_from_tokens(const wf_symbols *table, const char *blank,
                                      wf_word_aligner **out, wf_error *err) {
  *out = NULL;
  wf__tokens tokens;
  wf_word_aligner *aligner = NULL;
  int32_t blank_label;
  WF__TRY(wf__tokens_take(table, &tokens, err));
  WF__TRY(wf__tokens_blank(&tokens, blank, &blank_label, err));
  wf_status status = wf__word_aligner_create(WF__BY_MARK, table, tokens.shift, &aligner, err);
  if (status == WF_OK) {
    aligner->blank = blank_label;
    status = fill_marks(aligner, &tokens, err);
  }
  return finish(status, aligner, out);
}

/* --- lexicon ----------------------------------------------------------------------------- */

/* A pronunciation that will be stored in wf__spellings. */
struct entry {
  int32_t word;
  const int32_t *units;
  uint64_t num_units, order;
};

typedef WF__VEC(struct entry) entry_list;

static int compare_entries(const void *left, const void *right) {
  const struct entry *a = left, *b = right;
  if (a->word != b->word) return a->word < b->word ? -1 : 1;
  return a->order < b->order ? -1 : a->order > b->order;
}

enum { MOST_LABELS = 8 }; /* per word, for which an index is made */

wf_status wf__spellings_index(wf__spellings *spellings, wf_error *err) {
  const int32_t *words = spellings->words.data;
  const uint64_t count = spellings->words.size,
                 labels = count > 0 ? (uint64_t)(words[count - 1] - words[0]) + 1 : 0;
  spellings->index.size = 0;
  if (labels > count * MOST_LABELS) return WF_OK;
  WF__TRY(wf__vec_grow(&spellings->index, labels, "a word aligner", err));
  for (uint64_t i = 0; i < count; i++)
    while (spellings->index.size <= (uint64_t)(words[i] - words[0]))
      spellings->index.data[spellings->index.size++] = (uint32_t)i;
  return WF_OK;
}

static wf_status fill_spellings(wf__spellings *out, struct entry *entries, uint64_t count,
                                wf_error *err) {
  uint64_t num_units = 0;
  if (count > 0) qsort(entries, count, sizeof *entries, compare_entries);
  for (uint64_t i = 0; i < count; i++) num_units += entries[i].num_units;
  if (count > INT32_MAX || num_units > INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "a lexicon with more than 2^31 tokens");
  WF__TRY(wf__vec_grow(&out->words, count + 1, "a word aligner", err));
  WF__TRY(wf__vec_grow(&out->word_off, count + 1, "a word aligner", err));
  WF__TRY(wf__vec_grow(&out->spell_off, count + 1, "a word aligner", err));
  WF__TRY(wf__vec_grow(&out->spelled, num_units + 1, "a word aligner", err));
  for (uint64_t i = 0; i < count; i++) {
    const struct entry *entry = &entries[i];
    if (i == 0 || entry->word != entries[i - 1].word) {
      out->words.data[out->words.size++] = entry->word;
      out->word_off.data[out->word_off.size++] = (uint32_t)i;
    }
    out->spell_off.data[out->spell_off.size++] = (uint32_t)out->spelled.size;
    memcpy(out->spelled.data + out->spelled.size, entry->units,
           entry->num_units * sizeof *entry->units);
    out->spelled.size += entry->num_units;
  }
  out->word_off.data[out->word_off.size++] = (uint32_t)count;
  out->spell_off.data[out->spell_off.size++] = (uint32_t)out->spelled.size;
  return wf__spellings_index(out, err);
}

static wf_status take_lexicon(wf_word_aligner *aligner, const wf_lexicon *lexicon,
                              const wf_symbols *words, wf_error *err) {
  struct entry *entries = wf__alloc(lexicon->entries.size, sizeof *entries);
  uint64_t count = 0;
  if (entries == NULL)
    return wf__fail_memory(err, lexicon->entries.size * sizeof *entries, "a word aligner");
  for (uint64_t i = 0; i < lexicon->entries.size; i++) {
    const wf__lexicon_entry *entry = &lexicon->entries.data[i];
    int64_t word = wf_symbols_find(words, entry->word);
    if (word > 0 && word <= INT32_MAX)
      entries[count++] = (struct entry){(int32_t)word, lexicon->labels.data + entry->label_off,
                                        entry->num_labels, i};
  }
  wf_status status = fill_spellings(&aligner->spellings, entries, count, err);
  free(entries);
  return status;
}

/* Sets the roles of units. Units that no pronunciation uses may stand only between words. */
static wf_status find_roles(wf_word_aligner *aligner, int32_t num_units, int32_t silence,
                            wf_error *err) {
  const wf__spellings *spellings = &aligner->spellings;
  WF__TRY(wf__vec_grow(&aligner->roles, (uint64_t)num_units + 1, "a word aligner", err));
  aligner->roles.size = (uint64_t)num_units + 1;
  memset(aligner->roles.data, WF__NO_WORD, aligner->roles.size);
  for (uint64_t i = 0; i < spellings->spelled.size; i++)
    if (spellings->spelled.data[i] <= num_units)
      aligner->roles.data[spellings->spelled.data[i]] = WF__INTERNAL;
  if (silence > 0 && silence <= num_units && aligner->roles.data[silence] == WF__INTERNAL)
    aligner->roles.data[silence] = WF__MAYBE_WORD;
  return WF_OK;
}

wf_status wf__word_aligner_from_lexicon(const wf_lexicon *lexicon, const wf_symbols *words,
                                        int32_t silence, wf_word_aligner **out, wf_error *err) {
  *out = NULL;
  wf_word_aligner *aligner;
  wf_status status =
      wf__word_aligner_create(WF__BY_LEXICON, lexicon->table, lexicon->tokens.shift, &aligner, err);
  if (status == WF_OK) aligner->blank = lexicon->blank;
  if (status == WF_OK) status = take_lexicon(aligner, lexicon, words, err);
  if (status == WF_OK) status = find_roles(aligner, lexicon->tokens.num_tokens, silence, err);
  return finish(status, aligner, out);
}

wf_status wf_word_aligner_from_lexicon(const wf_lexicon *lexicon, const wf_symbols *words,
                                       wf_word_aligner **out, wf_error *err) {
  return wf__word_aligner_from_lexicon(lexicon, words, 0, out, err);
}

/* Replaces the phones of windows (AH_b) in `places` by phones of lexicons (AH), which
 * pronunciations use. */
static wf_status use_lexicon_phones(wf_word_aligner *aligner, const wf_hmm *hmm, wf_error *err) {
  if (hmm->position_of == NULL) return WF_OK;
  int32_t *base_of = wf__calloc((uint64_t)hmm->num_phones + 1, sizeof *base_of);
  if (base_of == NULL)
    return wf__fail_memory(err, (uint64_t)hmm->num_phones * sizeof *base_of, "a word aligner");
  for (int64_t p = 1; p < wf_symbols_next_key(hmm->lexicon_phones); p++)
    for (int at = 0; at < WF__NUM_POSITIONS; at++) base_of[hmm->position_of[p][at]] = (int32_t)p;
  for (uint64_t l = 0; l < aligner->places.size; l++)
    aligner->places.data[l].phone = base_of[aligner->places.data[l].phone];
  free(base_of);
  return WF_OK;
}

wf_status wf_word_aligner_from_hmm_lexicon(const wf_hmm *hmm, const wf_lexicon *lexicon,
                                           const wf_symbols *words, wf_word_aligner **out,
                                           wf_error *err) {
  *out = NULL;
  if (hmm->places.size == 0)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "%s: phones of the model share senones, so labels do not identify phones",
                    hmm->name);
  if (lexicon->table != hmm->lexicon_phones)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "%s: the lexicon was not read with the symbol table of wf_hmm_phones",
                    lexicon->name);
  wf_word_aligner *aligner;
  wf_status status = wf__word_aligner_create(WF__BY_LEXICON, hmm->lexicon_phones, 0, &aligner, err);
  if (status == WF_OK) status = take_places(aligner, hmm, err);
  if (status == WF_OK) status = use_lexicon_phones(aligner, hmm, err);
  if (status == WF_OK) status = take_lexicon(aligner, lexicon, words, err);
  if (status == WF_OK)
    status = find_roles(aligner, (int32_t)wf_symbols_next_key(hmm->lexicon_phones) - 1,
                        hmm->silence, err);
  return finish(status, aligner, out);
}

/* --- words added at run time ------------------------------------------------------------- */

/* Copies the roles of `base`. Tokens that added words use may be part of a word, even if its
 * lexicon uses them only between words. */
static wf_status take_roles(wf_word_aligner *aligner, const wf_word_aligner *base, wf_error *err) {
  const wf__spellings *spellings = &aligner->spellings;
  WF__TRY(wf__vec_grow(&aligner->roles, base->roles.size, "a word aligner", err));
  aligner->roles.size = base->roles.size;
  memcpy(aligner->roles.data, base->roles.data, base->roles.size);
  for (uint64_t i = 0; i < spellings->spelled.size; i++) {
    int32_t unit = spellings->spelled.data[i];
    if ((uint64_t)unit < aligner->roles.size && aligner->roles.data[unit] == WF__NO_WORD)
      aligner->roles.data[unit] = WF__MAYBE_WORD;
  }
  return WF_OK;
}

/* Adds the words of the phrases with their pronunciations. */
static wf_status take_phrases(wf_word_aligner *aligner, const wf_added_phrase *phrases,
                              size_t count, wf_error *err) {
  entry_list entries = {0};
  wf_status status = WF_OK;
  for (size_t i = 0; i < count && status == WF_OK; i++)
    for (size_t w = 0; w < phrases[i].num_words && status == WF_OK; w++)
      status = wf__vec_push(&entries,
                            ((struct entry){phrases[i].words[w].word, phrases[i].words[w].labels,
                                            phrases[i].words[w].num_labels, entries.size}),
                            "a word aligner", err);
  if (status == WF_OK)
    status = fill_spellings(&aligner->spellings, entries.data, entries.size, err);
  wf__vec_free(&entries);
  return status;
}

wf_status wf__word_aligner_add(const wf_word_aligner *base, const wf_added_phrase *phrases,
                               size_t count, wf_word_aligner **out, wf_error *err) {
  *out = NULL;
  if (base->root->way != WF__BY_LEXICON) {
    *out = wf_word_aligner_ref(base);
    return WF_OK;
  }
  wf_word_aligner *aligner = wf__calloc(1, sizeof *aligner);
  if (aligner == NULL) return wf__fail_memory(err, sizeof *aligner, "a word aligner");
  atomic_init(&aligner->refs, 1);
  aligner->base = wf_word_aligner_ref(base);
  aligner->root = base->root;
  wf_status status = take_phrases(aligner, phrases, count, err);
  if (status == WF_OK) status = take_roles(aligner, base, err);
  return finish(status, aligner, out);
}

static wf_status take_all_spellings(const wf_word_aligner *aligner, entry_list *entries,
                                    wf_error *err) {
  for (; aligner != NULL; aligner = aligner->base) {
    const wf__spellings *from = &aligner->spellings;
    for (uint64_t w = 0; w < from->words.size; w++)
      for (uint32_t p = from->word_off.data[w]; p < from->word_off.data[w + 1]; p++) {
        uint32_t first = from->spell_off.data[p];
        WF__TRY(wf__vec_push(entries,
                             ((struct entry){from->words.data[w], from->spelled.data + first,
                                             from->spell_off.data[p + 1] - first, entries->size}),
                             "a word aligner", err));
      }
  }
  return WF_OK;
}

wf_status wf__word_aligner_flatten(const wf_word_aligner *aligner, wf_word_aligner **out,
                                   wf_error *err) {
  const wf_word_aligner *root = aligner->root;
  entry_list entries = {0};
  wf_word_aligner *whole;
  *out = NULL;
  WF__TRY(wf__word_aligner_create(root->way, root->names, root->name_shift, &whole, err));
  whole->blank = root->blank;
  whole->runs = root->runs;
  whole->loops_repeat = root->loops_repeat;
  wf_status status = wf__vec_grow(&whole->places, root->places.size, "a word aligner", err);
  if (status == WF_OK)
    status = wf__vec_grow(&whole->roles, aligner->roles.size, "a word aligner", err);
  if (status == WF_OK) {
    if (root->places.size > 0)
      memcpy(whole->places.data, root->places.data, root->places.size * sizeof *root->places.data);
    if (aligner->roles.size > 0)
      memcpy(whole->roles.data, aligner->roles.data, aligner->roles.size);
    whole->places.size = root->places.size;
    whole->roles.size = aligner->roles.size;
    status = take_all_spellings(aligner, &entries, err);
  }
  if (status == WF_OK) status = fill_spellings(&whole->spellings, entries.data, entries.size, err);
  wf__vec_free(&entries);
  return finish(status, whole, out);
}
