/* spell.c - makes lexicons without a file: spells words with the tokens of a character or subword
 * model.
 *
 * The text of a word is word_start + word. It is cut into pieces, each of which must be a token:
 *   chars    one UTF-8 character a piece
 *   longest  from the left, the longest token that fits
 *   bpe      starts from characters and merges the adjacent pair with the best rank in the list of
 *            merges, until no pair is in the list (Sennrich, Haddow, Birch 2016)
 *   all      every way to cut it, as a pronunciation of its own: those with the fewest pieces, at
 *            most MOST_WAYS
 * If the table has tokens ##..., a piece that neither begins the text nor has U+2581 is such a
 * token. A character that is no token is spelled with byte tokens, such as <0xE7>. If the tokens
 * are strings of bytes, the word is written in their alphabet first (token_bytes.h). */
#include <stdio.h>
#include <string.h>

#include "base/option_tables.h"
#include "fst/symbols.h"
#include "graph/lexicon.h"
#include "graph/token_bytes.h"
#include "graph/token_marks.h"

enum { MOST_WAYS = 100 };
enum { MAX_TEXT = 2048 }; /* bytes of word_start + word; a longer word cannot be spelled */

struct speller {
  wf_lexicon *lexicon;
  int32_t method;
  const char *word_start;
  size_t longest_token; /* bytes */
  bool marks_rest;      /* a token begins with ## */
  bool has_bytes;       /* a token is a byte, such as <0xE7> */
  wf__byte_alphabet alphabet;
  wf_symbols *merges; /* "left right" -> rank */
  bool skip_unknown;
};

/* The label of text[at .. at + size) as a token; 0: it is none, or the blank. */
static int32_t token_label(const struct speller *speller, const char *text, size_t at,
                           size_t size) {
  char name[MAX_TEXT + sizeof "##"];
  const wf_lexicon *lexicon = speller->lexicon;
  const char *piece = text + at;
  if (speller->marks_rest && at > 0 && strncmp(piece, wf__token_start, 3) != 0) {
    memcpy(name, wf__token_rest, 2);
    memcpy(name + 2, piece, size);
    piece = name;
    size += 2;
  }
  int32_t label = wf__tokens_label(&lexicon->tokens, piece, size);
  return label != lexicon->blank ? label : 0;
}

/* The label of the byte text[at], if the character that it belongs to is no token; else 0. */
static int32_t byte_label(const struct speller *speller, const char *text, size_t at) {
  static const char *const forms[] = {"<0x%02X>", "<0x%02x>"};
  size_t first = at, end = at + 1;
  int32_t label = 0;
  while (first > 0 && ((uint8_t)text[first] & 0xC0) == 0x80) first--;
  while (((uint8_t)text[end] & 0xC0) == 0x80) end++;
  if (token_label(speller, text, first, end - first) != 0) return 0;
  for (size_t i = 0; i < sizeof forms / sizeof *forms && label == 0; i++) {
    char name[16];
    snprintf(name, sizeof name, forms[i], (unsigned)(uint8_t)text[at]);
    label = token_label(speller, name, 0, 6);
  }
  return label;
}

/* The label of text[at .. at + size) as a piece; 0: it is none. */
static int32_t piece_label(const struct speller *speller, const char *text, size_t at,
                           size_t size) {
  int32_t label = token_label(speller, text, at, size);
  return label == 0 && size == 1 && speller->has_bytes ? byte_label(speller, text, at) : label;
}

/* --- merges ------------------------------------------------------------------------------ */

static wf_status read_merge(wf_symbols *merges, const wf__lines *lines, wf__span rest,
                            wf_error *err) {
  wf__span left, right, extra;
  if (!wf__next_field(&rest, &left)) return WF_OK;
  if (left.size == 8 && memcmp(left.data, "#version", 8) == 0) return WF_OK;
  if (!wf__next_field(&rest, &right) || wf__next_field(&rest, &extra))
    return wf__lines_fail(lines, err, WF_ERR_FORMAT, "expected the two pieces of a merge");
  char key[2 * MAX_TEXT + 2];
  if (left.size + right.size > MAX_TEXT)
    return wf__lines_fail(lines, err, WF_ERR_LIMIT, "the pieces have more than %d bytes",
                          (int)MAX_TEXT);
  if (memchr(left.data, '\0', left.size) != NULL || memchr(right.data, '\0', right.size) != NULL)
    return wf__lines_fail(lines, err, WF_ERR_FORMAT, "a piece contains a NUL byte");
  memcpy(key, left.data, left.size);
  key[left.size] = ' ';
  memcpy(key + left.size + 1, right.data, right.size);
  key[left.size + 1 + right.size] = '\0';
  return wf_symbols_add(merges, key, -1, NULL, err); /* a repeated merge keeps its first, better
                                                        rank */
}

static wf_status read_merges(const wf__input *input, wf_symbols **out, wf_error *err) {
  WF__TRY(wf_symbols_create(input->path, out, err));
  wf__lines lines = wf__lines_of(input);
  for (wf__span line; wf__next_line(&lines, &line);) WF__TRY(read_merge(*out, &lines, line, err));
  return WF_OK;
}

/* --- cutting a word into pieces ---------------------------------------------------------- */

struct pieces {
  uint16_t start[MAX_TEXT + 1]; /* start[count] is the end of the text */
  int count;
};

static void cut_characters(const char *text, size_t size, struct pieces *pieces) {
  pieces->count = 0;
  for (size_t i = 0; i < size; i++)
    if (((uint8_t)text[i] & 0xC0) != 0x80 || i == 0) pieces->start[pieces->count++] = (uint16_t)i;
  pieces->start[pieces->count] = (uint16_t)size;
}

/* The rank of merging piece i with the next; -1 if it is not in the list. */
static int64_t merge_rank(const struct speller *speller, const char *text,
                          const struct pieces *pieces, int i) {
  char key[MAX_TEXT + 2];
  size_t left = (size_t)(pieces->start[i + 1] - pieces->start[i]),
         right = (size_t)(pieces->start[i + 2] - pieces->start[i + 1]);
  memcpy(key, text + pieces->start[i], left);
  key[left] = ' ';
  memcpy(key + left + 1, text + pieces->start[i + 1], right);
  return wf__symbols_find_bytes(speller->merges, key, left + 1 + right);
}

static void cut_bpe(const struct speller *speller, const char *text, size_t size,
                    struct pieces *pieces) {
  cut_characters(text, size, pieces);
  for (;;) {
    int best = -1;
    int64_t best_rank = INT64_MAX;
    for (int i = 0; i + 1 < pieces->count; i++) {
      int64_t rank = merge_rank(speller, text, pieces, i);
      if (rank >= 0 && rank < best_rank) best_rank = rank, best = i;
    }
    if (best < 0) return;
    memmove(pieces->start + best + 1, pieces->start + best + 2,
            (size_t)(pieces->count - best - 1) * sizeof *pieces->start);
    pieces->count--;
  }
}

static void cut_longest(const struct speller *speller, const char *text, size_t size,
                        struct pieces *pieces) {
  pieces->count = 0;
  for (size_t at = 0, take; at < size; at += take) {
    pieces->start[pieces->count++] = (uint16_t)at;
    for (take = size - at < speller->longest_token ? size - at : speller->longest_token; take > 1;
         take--)
      if (piece_label(speller, text, at, take) != 0) break;
  }
  pieces->start[pieces->count] = (uint16_t)size;
}

/* --- all ways to cut a word ---------------------------------------------------------------- */

struct cutting {
  const struct speller *speller;
  const char *word, *text;
  size_t size;
  uint16_t fewest[MAX_TEXT + 1]; /* pieces from here to the end; UINT16_MAX: no way */
  int32_t labels[MAX_TEXT];      /* of the pieces so far */
  int num_ways;
};

static size_t longest_piece(const struct cutting *cutting, size_t at) {
  size_t rest = cutting->size - at, longest = cutting->speller->longest_token;
  return rest < longest ? rest : longest;
}

static void find_fewest(struct cutting *cutting) {
  cutting->fewest[cutting->size] = 0;
  for (size_t at = cutting->size; at-- > 0;) {
    cutting->fewest[at] = UINT16_MAX;
    for (size_t take = longest_piece(cutting, at); take > 0; take--) {
      uint16_t rest = cutting->fewest[at + take];
      if (rest + 1 < cutting->fewest[at] &&
          piece_label(cutting->speller, cutting->text, at, take) != 0)
        cutting->fewest[at] = (uint16_t)(rest + 1);
    }
  }
}

/* Adds the ways to cut the text from `at` on into `left` pieces, after `depth` others. */
static wf_status cut_into(struct cutting *cutting, size_t at, size_t depth, size_t left,
                          wf_error *err) {
  wf_lexicon *lexicon = cutting->speller->lexicon;
  if (left < cutting->fewest[at] || left > cutting->size - at || cutting->num_ways == MOST_WAYS)
    return WF_OK;
  if (left > 0) {
    for (size_t take = longest_piece(cutting, at); take > 0; take--) {
      if (cutting->fewest[at + take] >= left) continue;
      cutting->labels[depth] = piece_label(cutting->speller, cutting->text, at, take);
      if (cutting->labels[depth] != 0)
        WF__TRY(cut_into(cutting, at + take, depth + 1, left - 1, err));
    }
    return WF_OK;
  }
  uint64_t label_off = lexicon->labels.size;
  WF__TRY(wf__vec_grow(&lexicon->labels, depth, "lexicon tokens", err));
  memcpy(lexicon->labels.data + label_off, cutting->labels, depth * sizeof *cutting->labels);
  lexicon->labels.size += depth;
  cutting->num_ways++;
  return wf__lexicon_add(lexicon, cutting->word, strlen(cutting->word), 1, label_off, err);
}

/* Adds the ways to cut a word. *out_known is false if there is none. */
static wf_status cut_all(const struct speller *speller, const char *word, const char *text,
                         size_t size, bool *out_known, wf_error *err) {
  struct cutting cutting = {.speller = speller, .word = word, .text = text, .size = size};
  find_fewest(&cutting);
  *out_known = cutting.fewest[0] < UINT16_MAX;
  for (size_t count = cutting.fewest[0]; *out_known && count <= size; count++)
    WF__TRY(cut_into(&cutting, 0, 0, count, err));
  return WF_OK;
}

/* --- words --------------------------------------------------------------------------------- */

/* Appends the label of a piece, or those of its bytes. False: it is neither a token nor bytes. */
static wf_status add_piece(const struct speller *speller, const char *text, size_t at, size_t size,
                           bool *out_known, wf_error *err) {
  wf_lexicon *lexicon = speller->lexicon;
  int32_t label = piece_label(speller, text, at, size);
  const size_t step = label != 0 ? size : 1;
  *out_known = true;
  for (size_t i = 0; i < size && *out_known; i += step) {
    if (step == 1 && size > 1) label = piece_label(speller, text, at + i, 1);
    *out_known = label != 0;
    WF__TRY(wf__vec_grow(&lexicon->labels, 1, "lexicon tokens", err));
    if (*out_known) lexicon->labels.data[lexicon->labels.size++] = label;
  }
  return WF_OK;
}

/* Appends the labels of a word. *out_known is false if a piece is not a token. */
static wf_status spell_text(const struct speller *speller, const char *text, size_t size,
                            bool *out_known, wf_error *err) {
  struct pieces pieces;
  *out_known = false;
  if (speller->method == WF_SPELLING_CHARS)
    cut_characters(text, size, &pieces);
  else if (speller->method == WF_SPELLING_BPE)
    cut_bpe(speller, text, size, &pieces);
  else
    cut_longest(speller, text, size, &pieces);
  *out_known = pieces.count > 0;
  for (int i = 0; i < pieces.count && *out_known; i++)
    WF__TRY(add_piece(speller, text, pieces.start[i],
                      (size_t)(pieces.start[i + 1] - pieces.start[i]), out_known, err));
  return WF_OK;
}

/* Writes the text that is cut, with a NUL. False: it is too long. */
static bool write_text(const struct speller *speller, const char *word, char *text,
                       size_t *out_size) {
  const size_t size = strlen(word), start = strlen(speller->word_start);
  const bool encoded = speller->alphabet.kind != WF__NO_BYTES;
  if (size >= MAX_TEXT || start + (encoded ? 3 : 1) * size >= MAX_TEXT) return false;
  memcpy(text, speller->word_start, start);
  *out_size = start;
  if (encoded)
    *out_size += wf__bytes_to_name(&speller->alphabet, word, size, text + start);
  else
    memcpy(text + start, word, size), *out_size += size;
  text[*out_size] = '\0';
  return true;
}

static wf_status spell_word(const struct speller *speller, const char *word, wf_error *err) {
  wf_lexicon *lexicon = speller->lexicon;
  char text[MAX_TEXT];
  size_t size = strlen(word), text_size;
  if (wf__is_reserved_word(word, size) || (word[0] == '<' && word[size - 1] == '>')) return WF_OK;
  uint64_t label_off = lexicon->labels.size;
  bool known = false;
  if (write_text(speller, word, text, &text_size))
    WF__TRY(speller->method == WF_SPELLING_ALL
                ? cut_all(speller, word, text, text_size, &known, err)
                : spell_text(speller, text, text_size, &known, err));
  if (known && speller->method == WF_SPELLING_ALL) return WF_OK;
  if (known) return wf__lexicon_add(lexicon, word, size, 1, label_off, err);
  lexicon->labels.size = label_off;
  if (!speller->skip_unknown)
    return wf__fail(err, WF_ERR_FORMAT,
                    "the word '%.80s' cannot be spelled with the tokens of the table %s", word,
                    wf__symbols_shown(lexicon->table));
  return wf__tally_add(&lexicon->skipped, word, err);
}

/* --- the whole table --------------------------------------------------------------------- */

static const char gpt2_space[] = "\xC4\xA0"; /* U+0120 */

static wf_status prepare(struct speller *speller, const wf_lexicon_options *options,
                         const wf__input *merges, wf_error *err) {
  const wf_symbols *table = speller->lexicon->table;
  const char *text;
  bool marks_start = false, begins_with_space = false;
  wf__byte_alphabet_of(table, &speller->alphabet);
  for (size_t i = 0; (text = wf_symbols_at(table, i, NULL)) != NULL; i++) {
    size_t size = strlen(text);
    if (size > speller->longest_token) speller->longest_token = size;
    const char *plain;
    wf__token_mark mark = wf__token_mark_of(text, &plain);
    marks_start = marks_start || mark == WF__TOKEN_STARTS;
    speller->marks_rest = speller->marks_rest || (mark == WF__TOKEN_RESTS && plain[0] != '\0');
    speller->has_bytes = speller->has_bytes || wf__escapes_to_bytes(text, NULL, NULL);
    begins_with_space = begins_with_space || strncmp(text, gpt2_space, strlen(gpt2_space)) == 0;
  }
  marks_start =
      marks_start && wf__start_is_mark(table, wf__token_separator(table, &speller->alphabet));
  speller->word_start = options->word_start != NULL ? options->word_start
                        : marks_start               ? wf__token_start
                        : begins_with_space && speller->alphabet.kind == WF__GPT2_BYTES ? gpt2_space
                                                                                        : "";
  if (speller->alphabet.kind != WF__NO_BYTES) speller->marks_rest = false;
  speller->skip_unknown = options->unknown == WF_UNKNOWN_SKIP;
  speller->method = options->spelling;
  if (speller->method == WF_SPELLING_AUTO)
    speller->method = merges != NULL ? WF_SPELLING_BPE : WF_SPELLING_LONGEST;
  if (speller->method != WF_SPELLING_BPE) return WF_OK;
  if (merges == NULL)
    return wf__fail(err, WF_ERR_ARGUMENT, "spelling by bpe needs a list of merges");
  return read_merges(merges, &speller->merges, err);
}

wf_status wf__lexicon_spell_all(const wf_symbols *words, const wf_symbols *tokens,
                                const wf_lexicon_options *o, const wf__input *merges,
                                wf_lexicon **out, wf_error *err) {
  *out = NULL;
  if (words == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "no words to spell");
  struct speller speller = {0};
  const char *word;
  char name[256];
  snprintf(name, sizeof name, "spelling of %s", wf__symbols_shown(words));
  WF__TRY(wf__lexicon_create(name, tokens, o->blank, &speller.lexicon, err));
  wf_status status = prepare(&speller, o, merges, err);
  for (size_t i = 0; status == WF_OK && (word = wf_symbols_at(words, i, NULL)) != NULL; i++)
    status = spell_word(&speller, word, err);
  wf_symbols_free(speller.merges);
  if (status == WF_OK)
    *out = speller.lexicon;
  else
    wf_lexicon_free(speller.lexicon);
  return status;
}

wf_status wf__lexicon_spell_input(const wf_symbols *words, const wf_symbols *tokens,
                                  const wf_lexicon_options *o, const wf__input *merges,
                                  wf_lexicon **out, wf_error *err) {
  WF__TRY(wf__lexicon_spell_all(words, tokens, o, merges, out, err));
  wf_status status =
      wf_lexicon_count(*out) == 0 && (*out)->skipped.count == 0
          ? wf__fail(err, WF_ERR_FORMAT,
                     "%s: no words to spell: <eps>, <s>, </s>, other names in angle brackets and "
                     "#0, #1, ... are not spelled",
                     wf__symbols_shown(words))
          : wf__lexicon_close(*out, o->unknown == WF_UNKNOWN_SKIP, err);
  if (status == WF_OK) return WF_OK;
  wf_lexicon_free(*out);
  *out = NULL;
  return status;
}

wf_status wf_lexicon_spell(const wf_symbols *words, const wf_symbols *tokens,
                           const wf_lexicon_options *options, wf_lexicon **out, wf_error *err) {
  *out = NULL;
  wf_lexicon_options o;
  WF__TRY(wf__options_take(wf__lexicon_table(), options, &o, err));
  if (o.merges == NULL) return wf__lexicon_spell_input(words, tokens, &o, NULL, out, err);
  wf__input merges;
  WF__TRY(wf__input_open(o.merges, &merges, err));
  wf_status status = wf__lexicon_spell_input(words, tokens, &o, &merges, out, err);
  wf__input_close(&merges);
  return status;
}
