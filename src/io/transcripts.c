/* transcripts.c - reads transcripts: the words of utterances, from Kaldi text, sclite trn, CTM and
 * JSON lines.
 *
 *     keys         symbol table, key -> index of the utterance
 *     utterances   {key, first word, number of words}
 *     words        pointers into the arena, utterance by utterance
 *
 * The lines of an utterance need not be adjacent in CTM, so its words are collected in the order of
 * the lines and sorted by utterance at the end (stable counting sort). */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "fst/symbols.h"
#include "io/transcripts.h"

typedef struct utterance {
  const char *key;
  uint64_t first_word, num_words;
} utterance;

struct wf_transcripts {
  wf_transcript_format format;
  wf_symbols *keys;
  WF__VEC(utterance) utterances;
  WF__VEC(const char *) words;
  WF__VEC(uint32_t) word_utterance; /* CTM only, while reading */
  wf__arena arena;
};

/* --- building ---------------------------------------------------------------------------- */

static wf_status keep_text(wf_transcripts *t, wf__span text, const char **out, wf_error *err) {
  char *copy = wf__arena_alloc(&t->arena, text.size + 1);
  if (copy == NULL) return wf__fail_memory(err, text.size + 1, "a transcript");
  if (text.size != 0) memcpy(copy, text.data, text.size);
  copy[text.size] = '\0';
  *out = copy;
  return WF_OK;
}

/* Finds or adds the utterance of a key. If `again` is false, the key must be new. */
static wf_status enter_key(wf_transcripts *t, const wf__lines *lines, wf__span key, bool again,
                           uint32_t *index, wf_error *err) {
  if (key.size == 0) return wf__lines_fail(lines, err, WF_ERR_FORMAT, "the utterance key is empty");
  if (memchr(key.data, '\0', key.size) != NULL)
    return wf__lines_fail(lines, err, WF_ERR_FORMAT, "NUL in the utterance key");
  int64_t found = wf__symbols_find_bytes(t->keys, key.data, key.size);
  if (found >= 0) {
    *index = (uint32_t)found;
    return again ? WF_OK
                 : wf__lines_fail(lines, err, WF_ERR_FORMAT, "utterance '%.*s' is given twice",
                                  WF__SPAN_ARG(key));
  }
  utterance fresh = {.first_word = t->words.size};
  WF__TRY(keep_text(t, key, &fresh.key, err));
  WF__TRY(wf_symbols_add(t->keys, fresh.key, (int64_t)t->utterances.size, NULL, err));
  WF__TRY(wf__vec_grow(&t->utterances, 1, "transcripts", err));
  *index = (uint32_t)t->utterances.size;
  t->utterances.data[t->utterances.size++] = fresh;
  return WF_OK;
}

static wf_status add_word(wf_transcripts *t, const wf__lines *lines, uint32_t index, wf__span word,
                          wf_error *err) {
  const char *text;
  if (memchr(word.data, '\0', word.size) != NULL)
    return wf__lines_fail(lines, err, WF_ERR_FORMAT, "NUL in a word");
  WF__TRY(keep_text(t, word, &text, err));
  WF__TRY(wf__vec_grow(&t->words, 1, "transcripts", err));
  t->words.data[t->words.size++] = text;
  t->utterances.data[index].num_words++;
  return WF_OK;
}

static wf_status add_words(wf_transcripts *t, const wf__lines *lines, uint32_t index, wf__span rest,
                           wf_error *err) {
  for (wf__span word; wf__next_field(&rest, &word);) WF__TRY(add_word(t, lines, index, word, err));
  return WF_OK;
}

/* --- one line of each form --------------------------------------------------------------- */

static wf__span trim(wf__span text) {
  while (text.size > 0 && (*text.data == ' ' || *text.data == '\t')) text.data++, text.size--;
  while (text.size > 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
    text.size--;
  return text;
}

static wf_status read_text_line(wf_transcripts *t, const wf__lines *lines, wf__span line,
                                wf_error *err) {
  wf__span key;
  uint32_t index;
  wf__next_field(&line, &key);
  WF__TRY(enter_key(t, lines, key, false, &index, err));
  return add_words(t, lines, index, line, err);
}

/* Splits "words (key)". */
static bool split_trn(wf__span line, wf__span *words, wf__span *key) {
  line = trim(line);
  if (line.size < 3 || line.data[line.size - 1] != ')') return false;
  const char *open = wf__find_last(line, '(');
  if (open == NULL || (open > line.data && open[-1] != ' ' && open[-1] != '\t')) return false;
  *words = (wf__span){line.data, (size_t)(open - line.data)};
  *key = (wf__span){open + 1, line.size - words->size - 2};
  return key->size > 0 && memchr(key->data, ' ', key->size) == NULL &&
         memchr(key->data, '\t', key->size) == NULL;
}

static wf_status read_trn_line(wf_transcripts *t, const wf__lines *lines, wf__span line,
                               wf_error *err) {
  wf__span words, key, rest;
  uint32_t index;
  if (!split_trn(line, &words, &key))
    return wf__lines_fail(lines, err, WF_ERR_FORMAT, "expected (key) at the end of the line");
  rest = words;
  for (wf__span word; wf__next_field(&rest, &word);)
    if (word.size == 1 && *word.data == '{')
      return wf__lines_fail(lines, err, WF_ERR_UNSUPPORTED,
                            "alternatives '{ a / b }' are not supported");
  WF__TRY(enter_key(t, lines, key, false, &index, err));
  return add_words(t, lines, index, words, err);
}

/* Splits `key channel start duration word [confidence]`. */
static bool split_ctm(wf__span line, wf__span fields[6]) {
  int count = 0;
  double number;
  for (wf__span field; wf__next_field(&line, &field); count++) {
    if (count == 6) return false;
    fields[count] = field;
  }
  return count >= 5 && wf__parse_f64(fields[2], &number) && wf__parse_f64(fields[3], &number) &&
         (count == 5 || wf__parse_f64(fields[5], &number));
}

static wf_status read_ctm_line(wf_transcripts *t, const wf__lines *lines, wf__span line,
                               wf_error *err) {
  wf__span fields[6];
  uint32_t index;
  if (!split_ctm(line, fields))
    return wf__lines_fail(lines, err, WF_ERR_FORMAT,
                          "expected `key channel start duration word [confidence]`");
  WF__TRY(enter_key(t, lines, fields[0], true, &index, err));
  WF__TRY(add_word(t, lines, index, fields[4], err));
  return wf__vec_push(&t->word_utterance, index, "transcripts", err);
}

/* Reads those members "key", "text" and "error" of an object that are strings. */
static wf_status read_members(const wf__lines *lines, wf__span line, wf__json_chars texts[3],
                              wf_error *err) {
  static const char *const names[] = {"key", "text", "error"};
  wf__json json = wf__json_of(line.data, line.size);
  wf__span key, value;
  wf__json_open(&json, '{');
  while (wf__json_key(&json, &key)) {
    size_t i = 0;
    while (i < 3 && !wf__json_is(key, names[i])) i++;
    if (i == 3 || wf__json_peek(&json) != '"')
      wf__json_value(&json, &value);
    else if (wf__json_text(&json, &value))
      WF__TRY(wf__json_unescape(value, &texts[i], err));
  }
  if (wf__json_end(&json)) return WF_OK;
  return wf__lines_fail(lines, err, WF_ERR_FORMAT, "not a JSON object: %s", json.problem);
}

static wf_status read_json_line(wf_transcripts *t, const wf__lines *lines, wf__span line,
                                wf_error *err) {
  wf__json_chars texts[3] = {0};
  uint32_t index;
  wf_status status = read_members(lines, line, texts, err);
  if (status == WF_OK && texts[0].size == 0)
    status = wf__lines_fail(lines, err, WF_ERR_FORMAT, "the object has no string \"key\"");
  else if (status == WF_OK && texts[1].data == NULL && texts[2].data == NULL)
    status = wf__lines_fail(lines, err, WF_ERR_FORMAT, "the object has no string \"text\"");
  if (status == WF_OK && texts[1].data != NULL) {
    status =
        enter_key(t, lines, (wf__span){texts[0].data, (size_t)texts[0].size}, false, &index, err);
    if (status == WF_OK)
      status = add_words(t, lines, index, (wf__span){texts[1].data, (size_t)texts[1].size}, err);
  }
  for (size_t i = 0; i < 3; i++) wf__vec_free(&texts[i]);
  return status;
}

/* --- files ------------------------------------------------------------------------------- */

static bool is_comment(wf_transcript_format format, wf__span line) {
  return (format == WF_TRANSCRIPT_CTM || format == WF_TRANSCRIPT_TRN) && line.size >= 2 &&
         line.data[0] == ';' && line.data[1] == ';';
}

/* The first of JSON, trn and CTM that all lines match; else text. */
static wf_transcript_format guess_format(wf__lines lines) {
  bool json = true, trn = true, ctm = true, any = false;
  for (wf__span line; (json || trn || ctm) && wf__next_line(&lines, &line);) {
    wf__span a, b, fields[6];
    line = trim(line);
    if (line.size == 0 || is_comment(WF_TRANSCRIPT_CTM, line)) continue;
    any = true;
    json = json && line.data[0] == '{' && line.data[line.size - 1] == '}';
    trn = trn && split_trn(line, &a, &b);
    ctm = ctm && split_ctm(line, fields);
  }
  return !any   ? WF_TRANSCRIPT_TEXT
         : json ? WF_TRANSCRIPT_JSON
         : trn  ? WF_TRANSCRIPT_TRN
         : ctm  ? WF_TRANSCRIPT_CTM
                : WF_TRANSCRIPT_TEXT;
}

static wf_status read_line(wf_transcripts *t, const wf__lines *lines, wf__span line,
                           wf_error *err) {
  if (!wf__is_utf8(line)) return wf__lines_fail(lines, err, WF_ERR_FORMAT, "the line is not UTF-8");
  switch (t->format) {
    case WF_TRANSCRIPT_TRN: return read_trn_line(t, lines, line, err);
    case WF_TRANSCRIPT_CTM: return read_ctm_line(t, lines, line, err);
    case WF_TRANSCRIPT_JSON: return read_json_line(t, lines, line, err);
    default: return read_text_line(t, lines, line, err);
  }
}

/* CTM: sorts the words by utterance; those of an utterance stay in the order of the lines. */
static wf_status group_words(wf_transcripts *t, wf_error *err) {
  const char **grouped = wf__alloc(t->words.size, sizeof *grouped);
  if (grouped == NULL) return wf__fail_memory(err, t->words.size * sizeof *grouped, "transcripts");
  uint64_t next = 0;
  for (uint64_t i = 0; i < t->utterances.size; i++) {
    t->utterances.data[i].first_word = next;
    next += t->utterances.data[i].num_words;
    t->utterances.data[i].num_words = 0;
  }
  for (uint64_t i = 0; i < t->words.size; i++) {
    utterance *u = &t->utterances.data[t->word_utterance.data[i]];
    grouped[u->first_word + u->num_words++] = t->words.data[i];
  }
  free(t->words.data);
  t->words.data = grouped;
  t->words.cap = t->words.size;
  wf__vec_free(&t->word_utterance);
  return WF_OK;
}

wf_status wf__transcripts_parse(wf__lines lines, wf_transcript_format format, wf_transcripts **out,
                                wf_error *err) {
  *out = NULL;
  wf_transcripts *t = wf__calloc(1, sizeof *t);
  if (t == NULL) return wf__fail_memory(err, sizeof *t, "transcripts");
  t->format = format != WF_TRANSCRIPT_AUTO ? format : guess_format(lines);
  wf_status status = wf_symbols_create("transcripts", &t->keys, err);
  for (wf__span line; status == WF_OK && wf__next_line(&lines, &line);)
    if (trim(line).size > 0 && !is_comment(t->format, line))
      status = read_line(t, &lines, line, err);
  if (status == WF_OK && t->format == WF_TRANSCRIPT_CTM) status = group_words(t, err);
  if (status != WF_OK) {
    wf_transcripts_free(t);
    return status;
  }
  *out = t;
  return WF_OK;
}

wf_status wf_transcripts_read(const char *path, wf_transcript_format format, wf_transcripts **out,
                              wf_error *err) {
  if (out == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "out is NULL");
  *out = NULL;
  if ((int)format < WF_TRANSCRIPT_AUTO || format > WF_TRANSCRIPT_JSON)
    return wf__fail(err, WF_ERR_ARGUMENT, "unknown transcript format %d", (int)format);
  wf__input input;
  WF__TRY(wf__input_open(path, &input, err));
  wf_status status = wf__transcripts_parse(wf__lines_of(&input), format, out, err);
  wf__input_close(&input);
  return status;
}

wf_transcript_format wf_transcripts_format(const wf_transcripts *transcripts) {
  return transcripts->format;
}
size_t wf_transcripts_count(const wf_transcripts *transcripts) {
  return (size_t)transcripts->utterances.size;
}

wf_transcript wf_transcripts_at(const wf_transcripts *transcripts, size_t i) {
  const utterance *u = &transcripts->utterances.data[i];
  return (wf_transcript){u->key, u->num_words != 0 ? transcripts->words.data + u->first_word : NULL,
                         (size_t)u->num_words};
}

int64_t wf_transcripts_find(const wf_transcripts *transcripts, const char *key) {
  return wf_symbols_find(transcripts->keys, key);
}

void wf_transcripts_free(wf_transcripts *transcripts) {
  if (transcripts == NULL) return;
  wf_symbols_free(transcripts->keys);
  wf__vec_free(&transcripts->utterances);
  wf__vec_free(&transcripts->words);
  wf__vec_free(&transcripts->word_utterance);
  wf__arena_free(&transcripts->arena);
  free(transcripts);
}
