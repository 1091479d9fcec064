/* json.h - the little JSON that results need: strings out, and two string members of a one-line
 * object in. */
#ifndef WF_IO_JSON_H
#define WF_IO_JSON_H

#include "base/input.h"
#include "base/memory.h"
#include "base/output.h"

/* Bytes of the valid UTF-8 sequence at `at` (1 to 4), or 0 if there is none. */
size_t wf__utf8_length(const uint8_t *at, const uint8_t *end);

/* A string literal with quotes. Bytes that are not UTF-8 become \ufffd, one for each. */
void wf__json_string(wf__output *output, const char *text);
/* A number; null for NaN and infinities. */
void wf__json_number(wf__output *output, double value);

typedef WF__VEC(char) wf__text; /* NUL-ended when data is not NULL */

/* Finds string members of the object that `line` is. texts[i] receives the value of names[i],
 * unescaped; it stays empty (data NULL) if there is no such member, or it is no string. Other
 * members are skipped whatever they hold. `*problem` says what is wrong when false comes back. */
bool wf__json_members(wf__span line, const char *const *names, wf__text *texts, size_t count,
                      const char **problem);

#endif
