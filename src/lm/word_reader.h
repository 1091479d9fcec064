/* word_reader.h - reads a text of sentences, a line each, word by word, in bounded memory: a line
 * may have any length. Words are split at blanks, tabs and carriage returns. A byte order mark at
 * the start of the text is skipped.
 *
 *     open, next ... next [NULL at the end of each line], close */
#ifndef WF_LM_WORD_READER_H
#define WF_LM_WORD_READER_H

#include "base/source.h"

typedef struct wf__word_reader {
  wf__source source;
  bool ids;       /* the first word of each line is an utterance id */
  uint64_t line;  /* number of the line, from 1 */
  uint64_t words; /* read in this line, with the id */
  bool begun;     /* bytes of this line have been read */
  bool ended;     /* the last call returned the end of this line */
} wf__word_reader;

/* "-" is standard input; gzip is inflated. */
wf_status wf__word_reader_open(wf__word_reader *reader, const char *path, bool ids, wf_error *err);
/* Gets the next word, valid until the next call. At the end of a line, also of the last one without
 * a line feed, word->data is NULL, and *more is true. At the end of the text *more is false. Error:
 * a word longer than 64 KiB. */
wf_status wf__word_reader_next(wf__word_reader *reader, wf__span *word, bool *more, wf_error *err);
/* Error, with path and line: the word is not UTF-8 or holds a NUL byte. */
wf_status wf__word_reader_check(const wf__word_reader *reader, wf__span word, wf_error *err);
/* As wf__fail, with path and line before the message. */
wf_status wf__word_reader_fail(const wf__word_reader *reader, wf_error *err, wf_status code,
                               const char *format, ...) WF__PRINTF(4, 5);
void wf__word_reader_close(wf__word_reader *reader);

#if defined(__clang_analyzer__) /* as in error.h */
#define wf__word_reader_fail(reader, err, code, ...) \
  (wf__word_reader_fail(reader, err, code, __VA_ARGS__), (code))
#endif

#endif
