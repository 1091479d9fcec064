/* json.h - the subset of JSON that results need: writes strings and numbers, reads string members
 * of a one-line object. */
#ifndef WF_IO_JSON_H
#define WF_IO_JSON_H

#include "base/input.h"
#include "base/memory.h"
#include "base/output.h"

/* Bytes of the valid UTF-8 sequence at `at` (1 to 4), or 0 if there is none. */
size_t wf__utf8_length(const uint8_t *at, const uint8_t *end);

/* Writes a string literal with quotes. Each byte that is not UTF-8 becomes \ufffd. */
void wf__json_string(wf__output *output, const char *text);
/* Writes a number, or null for NaN and infinities. */
void wf__json_number(wf__output *output, double value);

typedef WF__VEC(char) wf__text; /* NUL-ended when data is not NULL */

/* Finds string members of the object in `line`. texts[i] becomes the value of names[i], unescaped.
 * It stays empty (data NULL) if there is no such member or its value is not a string. Other members
 * are skipped. If the line is malformed, returns false and sets `*problem` to a description. */
bool wf__json_members(wf__span line, const char *const *names, wf__text *texts, size_t count,
                      const char **problem);

#endif
