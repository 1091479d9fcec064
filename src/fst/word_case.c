/* word_case.c - case-insensitive comparison of words. Covers the ASCII, Latin-1, Greek and Cyrillic
 * letters whose upper and lower case have the same length in UTF-8. */
#include "fst/word_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "fst/symbols.h"

static uint32_t lower_letter(uint32_t code) {
  if ((code >= 0xc0 && code <= 0xde && code != 0xd7) || (code >= 0x391 && code <= 0x3a9) ||
      (code >= 0x410 && code <= 0x42f))
    return code + 0x20;
  if (code >= 0x400 && code <= 0x40f) return code + 0x50;
  return code;
}

static void make_lower(char *text, size_t size) {
  for (size_t i = 0; i < size; i++) {
    unsigned char first = (unsigned char)text[i],
                  second = i + 1 < size ? (unsigned char)text[i + 1] : 0;
    if (first >= 'A' && first <= 'Z') text[i] = (char)(first + 0x20);
    /* Only these two-byte sequences encode such letters. */
    if (first < 0xc3 || first > 0xd1 || (second & 0xc0) != 0x80) continue;
    uint32_t code = lower_letter((uint32_t)(first & 0x1f) << 6 | (second & 0x3f));
    text[i++] = (char)(0xc0 | code >> 6);
    text[i] = (char)(0x80 | (code & 0x3f));
  }
}

static wf_status copy_lower(wf__span word, char **out, wf_error *err) {
  *out = wf__strndup(word.data, word.size);
  if (*out == NULL) return wf__fail_memory(err, word.size, "a word");
  make_lower(*out, word.size);
  return WF_OK;
}

wf_status wf__word_case_add(wf__word_case *cases, wf__span word, wf_error *err) {
  char *text;
  if (cases->lower == NULL) WF__TRY(wf_symbols_create("words", &cases->lower, err));
  WF__TRY(copy_lower(word, &text, err));
  wf_status status = wf__symbols_find_bytes(cases->lower, text, word.size) >= 0
                         ? WF_OK
                         : wf__symbols_add_bytes(cases->lower, text, word.size, -1, NULL, err);
  free(text);
  return status;
}

wf_status wf__word_case_missing(wf__word_case *cases, wf__span word, wf_error *err) {
  char *text;
  if (cases->lower == NULL) return WF_OK;
  WF__TRY(copy_lower(word, &text, err));
  bool found = wf__symbols_find_bytes(cases->lower, text, word.size) >= 0;
  free(text);
  if (!found) return WF_OK;
  if (cases->num_found++ == 0) {
    size_t size = word.size < sizeof cases->first ? word.size : sizeof cases->first - 1;
    while (size < word.size && size > 0 && ((unsigned char)word.data[size] & 0xc0) == 0x80) size--;
    memcpy(cases->first, word.data, size);
    cases->first[size] = '\0';
  }
  return WF_OK;
}

void wf__word_case_free(wf__word_case *cases) {
  wf_symbols_free(cases->lower);
  *cases = (wf__word_case){0};
}
