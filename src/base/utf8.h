/* utf8.h - characters of UTF-8, and how JSON strings write them. The program cli/ is linked with
 * this file, too, so it calls nothing else of the library. */
#ifndef WF_BASE_UTF8_H
#define WF_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the valid UTF-8 sequence at `at` (1 to 4; no surrogates, no overlong forms), or 0 if
 * there is none. */
size_t wf__utf8_length(const uint8_t *at, const uint8_t *end);
/* Writes a character up to U+10FFFF to `out`. Returns the bytes, 1 to 4. */
size_t wf__utf8_encode(uint32_t code, char out[4]);
/* Writes the first character of the bytes from `*at` to `end` as it stands within a JSON string,
 * escaped if need be, to `out`, and moves `*at` behind it. A byte that is not UTF-8 becomes
 * \ufffd. Returns the bytes in `out`, 1 to 7. */
size_t wf__json_escape(const uint8_t **at, const uint8_t *end, char out[8]);

#endif
