/* word_reader.c - words in the window of a source. */
#include "lm/word_reader.h"

#include <string.h>

enum { MOST_WORD_BYTES = 1 << 16 };

static wf_status skip_mark(wf__word_reader *reader, wf_error *err) {
  wf__source *source = &reader->source;
  WF__TRY(wf__source_need(source, 3, err));
  if (wf__source_left(source) >= 3 && memcmp(source->at, WF__BYTE_ORDER_MARK, 3) == 0)
    source->at += 3;
  return WF_OK;
}

wf_status wf__word_reader_open(wf__word_reader *reader, const char *path, bool ids, wf_error *err) {
  *reader = (wf__word_reader){.ids = ids, .line = 1};
  WF__TRY(wf__source_open_stream(path, &reader->source, err));
  const wf_status status = skip_mark(reader, err);
  if (status != WF_OK) wf__word_reader_close(reader);
  return status;
}

void wf__word_reader_close(wf__word_reader *reader) { wf__source_close(&reader->source); }

wf_status(wf__word_reader_fail)(const wf__word_reader *reader, wf_error *err, wf_status code,
                                const char *format, ...) {
  va_list args;
  va_start(args, format);
  wf__fail_at(err, code, reader->source.path, "", reader->line, format, args);
  va_end(args);
  return code;
}

wf_status wf__word_reader_check(const wf__word_reader *reader, wf__span word, wf_error *err) {
  if (memchr(word.data, '\0', word.size) != NULL)
    return wf__word_reader_fail(reader, err, WF_ERR_FORMAT, "a word holds a NUL byte");
  if (!wf__is_utf8(word))
    return wf__word_reader_fail(reader, err, WF_ERR_FORMAT, "a word is not UTF-8");
  return WF_OK;
}

static bool is_blank(uint8_t byte) { return byte == ' ' || byte == '\t' || byte == '\r'; }
static bool ends_word(uint8_t byte) { return is_blank(byte) || byte == '\n'; }

/* Moves to the next byte that is not blank. False at the end of the text. */
static wf_status skip_blanks(wf__word_reader *reader, bool *more, wf_error *err) {
  wf__source *source = &reader->source;
  for (;;) {
    const uint8_t *at = source->at;
    while (at != source->end && is_blank(*at)) at++;
    reader->begun |= at != source->at;
    source->at = at;
    *more = at != source->end;
    if (*more) return WF_OK;
    WF__TRY(wf__source_need(source, 1, err));
    if (source->at == source->end) return WF_OK;
  }
}

/* Takes the word at the start of the window. */
static wf_status take_word(wf__word_reader *reader, wf__span *word, wf_error *err) {
  wf__source *source = &reader->source;
  for (size_t size = 0;;) {
    const size_t left = (size_t)wf__source_left(source);
    while (size < left && !ends_word(source->at[size])) size++;
    if (size > MOST_WORD_BYTES)
      return wf__word_reader_fail(reader, err, WF_ERR_LIMIT, "a word is longer than %d bytes",
                                  MOST_WORD_BYTES);
    if (size == left) WF__TRY(wf__source_need(source, left + 1, err));
    if (size < left || wf__source_left(source) == left) {
      *word = (wf__span){(const char *)source->at, size};
      source->at += size;
      return WF_OK;
    }
  }
}

wf_status wf__word_reader_next(wf__word_reader *reader, wf__span *word, bool *more, wf_error *err) {
  *word = (wf__span){NULL, 0};
  if (reader->ended) {
    reader->begun = reader->ended = false;
    reader->words = 0;
    reader->line++;
  }
  for (;;) {
    WF__TRY(skip_blanks(reader, more, err));
    if (!*more || *reader->source.at == '\n') break;
    reader->begun = true;
    WF__TRY(take_word(reader, word, err));
    if (reader->words++ > 0 || !reader->ids) return WF_OK;
  }
  *word = (wf__span){NULL, 0};
  if (*more) reader->source.at++;
  *more = reader->ended = *more || reader->begun;
  return WF_OK;
}
