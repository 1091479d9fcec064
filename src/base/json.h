/* json.h - writes JSON strings and numbers, and reads JSON from memory: the caller walks through
 * the text in its order and takes what it needs. Reading allocates nothing.
 *
 *   wf__json_open(&json, '{');
 *   while (wf__json_key(&json, &key))        each member
 *     if (wf__json_is(key, "names")) {
 *       wf__json_open(&json, '[');
 *       while (wf__json_item(&json))         each element
 *         wf__json_text(&json, &name);
 *     } else {
 *       wf__json_value(&json, &skipped);
 *     }
 *   if (json.problem != NULL) ...            what is wrong, at json.at
 *
 * After the first problem every call returns false, so one check at the end is enough. */
#ifndef WF_BASE_JSON_H
#define WF_BASE_JSON_H

#include "base/input.h"
#include "base/memory.h"
#include "base/output.h"

/* Writes a string literal with quotes. Each byte that is not UTF-8 becomes \ufffd. */
void wf__json_string(wf__output *output, const char *text);
/* Writes a number, or null for NaN and infinities. */
void wf__json_number(wf__output *output, double value);

typedef struct wf__json {
  const char *at, *end;
  const char *problem; /* NULL: none */
  bool first;          /* no member or element of what was opened last has been taken */
} wf__json;

wf__json wf__json_of(const char *text, size_t size);
/* Sets the problem unless there is one. Returns false. */
bool wf__json_fail(wf__json *json, const char *problem);
/* Takes the bracket of an object, '{', or of an array, '['. */
bool wf__json_open(wf__json *json, char bracket);
/* Takes the next key of an object, as wf__json_text does. false after the last, with the '}' taken.
 * The caller then takes the value. */
bool wf__json_key(wf__json *json, wf__span *key);
/* true: an element of an array follows, which the caller takes. false after the last, with the ']'
 * taken. */
bool wf__json_item(wf__json *json);
/* Takes a string: what is between the quotes, with escapes unresolved. */
bool wf__json_text(wf__json *json, wf__span *out);
/* Takes any value. Of numbers and words, only the characters are checked. */
bool wf__json_value(wf__json *json, wf__span *out);
/* The character that follows, '\0' at the end. */
char wf__json_peek(wf__json *json);
/* true if nothing but blanks follows. */
bool wf__json_end(wf__json *json);

typedef WF__VEC(char) wf__json_chars; /* NUL-ended when data is not NULL */

/* Compares the string that wf__json_text took with `text`. */
bool wf__json_is(wf__span string, const char *text);
/* Sets `out` to the characters of a string. NUL and halves of surrogate pairs become U+FFFD. */
wf_status wf__json_unescape(wf__span string, wf__json_chars *out, wf_error *err);

#endif
