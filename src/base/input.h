/* input.h - whole files as bytes, and a bounds-checked cursor over bytes.
 *
 *   wf__input   the bytes of a file: mapped if it is an uncompressed regular file, read into memory
 *               if it is a pipe or standard input ("-"), inflated if it starts with the gzip magic
 *   wf__cursor  a position in bytes; every read checks the bounds and names path and offset when it
 *               fails
 */
#ifndef WF_BASE_INPUT_H
#define WF_BASE_INPUT_H

#include "base/error.h"

typedef struct wf__input {
  const uint8_t *data;
  size_t size;
  const char *path; /* as given by the caller, copied */
  void *owned;      /* malloc'ed bytes, or NULL if mapped */
  bool mapped;
} wf__input;

/* Errors: the file cannot be opened or read, is a directory, or is a gzip stream that is damaged,
 * truncated or suspicious (inflates to more than 64 MB and 200 times its size), or is compressed in
 * another way (xz, bzip2, zstd). What a gzip stream contains is not inflated again. */
wf_status wf__input_open(const char *path, wf__input *out, wf_error *err);
/* Makes an input from a copy of bytes in memory, the contents of a file. Messages show `name` as
 * the path. Errors: as wf__input_open. */
wf_status wf__input_from_memory(const void *data, size_t size, const char *name, wf__input *out,
                                wf_error *err);
void wf__input_close(wf__input *input);

typedef struct wf__cursor {
  const uint8_t *begin, *at, *end;
  const char *path; /* for messages */
} wf__cursor;

wf__cursor wf__cursor_of(const wf__input *input);
size_t wf__cursor_left(const wf__cursor *cursor);
uint64_t wf__cursor_offset(const wf__cursor *cursor);
/* Little-endian scalars and raw bytes; `what` names the item in the error message. */
wf_status wf__read_bytes(wf__cursor *cursor, void *out, size_t size, const char *what,
                         wf_error *err);
wf_status wf__read_i32(wf__cursor *cursor, int32_t *out, const char *what, wf_error *err);
wf_status wf__read_u32(wf__cursor *cursor, uint32_t *out, const char *what, wf_error *err);
wf_status wf__read_i64(wf__cursor *cursor, int64_t *out, const char *what, wf_error *err);
wf_status wf__read_u64(wf__cursor *cursor, uint64_t *out, const char *what, wf_error *err);
wf_status wf__read_f32(wf__cursor *cursor, float *out, const char *what, wf_error *err);
wf_status wf__read_f64(wf__cursor *cursor, double *out, const char *what, wf_error *err);
/* Sets `*out` to the next `size` bytes, without copying them. */
wf_status wf__read_view(wf__cursor *cursor, const uint8_t **out, uint64_t size, const char *what,
                        wf_error *err);
/* As wf__fail, with "path: byte OFFSET: " before the message. */
wf_status wf__cursor_fail(const wf__cursor *cursor, wf_error *err, wf_status code,
                          const char *format, ...) WF__PRINTF(4, 5);

/* Text: lines and fields. */
#define WF__BYTE_ORDER_MARK "\xEF\xBB\xBF"
typedef struct wf__span {
  const char *data;
  size_t size;
} wf__span;

typedef struct wf__lines {
  const char *at, *end;
  const char *path;
  uint64_t line_number; /* of the line last returned, from 1 */
} wf__lines;

wf__lines wf__lines_of(const wf__input *input);
/* Gets the next line without its end ("\n" or "\r\n"); false at the end of the file. A UTF-8 byte
 * order mark at the start of the file is skipped. */
bool wf__next_line(wf__lines *lines, wf__span *line);
/* Gets the next field: a run of characters other than blank and tab. Advances `rest`; false at the
 * end. */
bool wf__next_field(wf__span *rest, wf__span *field);
wf_status wf__lines_fail(const wf__lines *lines, wf_error *err, wf_status code, const char *format,
                         ...) WF__PRINTF(4, 5);
/* Parse the whole span as one number; false if it is not one. Independent of the locale. Floats
 * accept "inf", "infinity" and "nan" in any case, with sign. */
bool wf__parse_i64(wf__span text, int64_t *out);
bool wf__parse_f64(wf__span text, double *out);
/* The last place of a character; NULL: there is none. */
const char *wf__find_last(wf__span text, char c);
/* True if the span is valid UTF-8 (no surrogates, no overlong forms). */
bool wf__is_utf8(wf__span text);
/* %.*s arguments for a span, cut at 80 bytes for messages. */
#define WF__SPAN_ARG(span) (int)((span).size > 80 ? 80 : (span).size), (span).data

#if defined(__clang_analyzer__) /* as in error.h */
#define wf__cursor_fail(cursor, err, code, ...) \
  (wf__cursor_fail(cursor, err, code, __VA_ARGS__), (code))
#define wf__lines_fail(lines, err, code, ...) \
  (wf__lines_fail(lines, err, code, __VA_ARGS__), (code))
#endif

#endif
