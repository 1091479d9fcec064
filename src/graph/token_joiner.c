/* token_joiner.c - words from tokens: marks at the start of words, marks of continuations, a token
 * between words, or spaces in the bytes of tokens. */
#include "graph/token_joiner.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "fst/symbols.h"
#include "graph/token_bytes.h"
#include "graph/token_marks.h"
#include "graph/token_text.h"

enum { MAX_BYTES = 1024 }; /* of a name; longer ones are plain text */

struct wf_token_joiner {
  wf__byte_alphabet alphabet;
  bool marks_start; /* U+2581 begins words; else it is a character */
  bool marks_rest;  /* a token of the table begins with ## and has more */
  char separator[]; /* "": none */
};

wf_status wf_token_joiner_create(const wf_symbols *tokens, const char *separator,
                                 wf_token_joiner **out, wf_error *err) {
  const char *name, *rest;
  *out = NULL;
  if (tokens == NULL)
    return wf__fail(err, WF_ERR_ARGUMENT, "joining tokens needs a symbol table of the words");
  if (separator != NULL && wf_symbols_find(tokens, separator) < 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "separator: %s has no token '%.80s'",
                    wf__symbols_shown(tokens), separator);
  wf__byte_alphabet alphabet;
  wf__byte_alphabet_of(tokens, &alphabet);
  if (separator == NULL) separator = wf__token_separator(tokens, &alphabet);
  if (separator == NULL) separator = "";
  size_t bytes = sizeof(wf_token_joiner) + strlen(separator) + 1;
  wf_token_joiner *joiner = wf__calloc(1, bytes);
  if (joiner == NULL) return wf__fail_memory(err, bytes, "a joiner of tokens");
  strcpy(joiner->separator, separator);
  joiner->alphabet = alphabet;
  joiner->marks_start = wf__start_is_mark(tokens, separator);
  for (size_t i = 0; (name = wf_symbols_at(tokens, i, NULL)) != NULL; i++)
    joiner->marks_rest = joiner->marks_rest ||
                         (wf__token_mark_of(name, &rest) == WF__TOKEN_RESTS && rest[0] != '\0');
  *out = joiner;
  return WF_OK;
}

const char *wf__token_joiner_separator(const wf_token_joiner *joiner) { return joiner->separator; }

void wf_token_joiner_free(wf_token_joiner *joiner) { free(joiner); }

/* Writes a name with spaces for U+2581; false: it has none that stands for a space. */
static bool put_spaces(const wf_token_joiner *joiner, const char *name, char *bytes,
                       size_t *out_size) {
  const size_t mark_size = strlen(wf__token_start);
  size_t size = 0;
  if (!joiner->marks_start || strstr(name, wf__token_start) == NULL) return false;
  for (; *name != '\0'; size++) {
    const bool mark = strncmp(name, wf__token_start, mark_size) == 0;
    bytes[size] = mark ? ' ' : *name;
    name += mark ? mark_size : 1;
  }
  *out_size = size;
  return true;
}

/* Adds a token by its marks. */
static void add_marked(const wf_token_joiner *joiner, size_t i, const char *name,
                       wf__token_text *text) {
  const char *part;
  char bytes[MAX_BYTES];
  size_t size;
  const wf__token_mark mark = wf__token_mark_of(name, &part);
  const bool rest = joiner->marks_rest && mark == WF__TOKEN_RESTS,
             start = joiner->marks_start && mark == WF__TOKEN_STARTS;
  if (mark == WF__TOKEN_SPECIAL) return;
  if (!rest && !start) part = name;
  if (start || (joiner->marks_rest && !rest)) wf__token_text_close(text);
  if (strlen(part) <= sizeof bytes &&
      (wf__escapes_to_bytes(part, bytes, &size) || put_spaces(joiner, part, bytes, &size)))
    wf__token_text_add_bytes(text, i, bytes, size);
  else
    wf__token_text_add_name(text, i, part);
}

/* Adds a token of an alphabet of bytes. False: the name is not written in it. */
static bool add_string(const wf_token_joiner *joiner, size_t i, const char *name,
                       wf__token_text *text) {
  char bytes[MAX_BYTES];
  size_t size = strlen(name);
  if (joiner->alphabet.kind == WF__NO_BYTES || size > sizeof bytes ||
      wf__token_mark_of(name, NULL) == WF__TOKEN_SPECIAL ||
      !wf__name_to_bytes(&joiner->alphabet, name, bytes, &size))
    return false;
  wf__token_text_add_bytes(text, i, bytes, size);
  return true;
}

size_t wf_token_joiner_join(const wf_token_joiner *joiner, const char *const *names, size_t count,
                            wf_joined_word *words, char *text) {
  wf__token_text out = {.words = words,
                        .at = text,
                        .limit = text,
                        .each_invalid = joiner->alphabet.kind == WF__NO_BYTES};
  for (size_t i = 0; i < count; i++) {
    wf__token_text_begin_token(&out, names[i]);
    if (joiner->separator[0] != '\0' && strcmp(names[i], joiner->separator) == 0)
      wf__token_text_close(&out);
    else if (!add_string(joiner, i, names[i], &out))
      add_marked(joiner, i, names[i], &out);
  }
  return wf__token_text_finish(&out);
}

size_t wf_token_joiner_encode(const wf_token_joiner *joiner, const char *text, char *out) {
  const size_t size = strlen(text);
  if (joiner->alphabet.kind != WF__NO_BYTES)
    return wf__bytes_to_name(&joiner->alphabet, text, size, out);
  memcpy(out, text, size);
  return size;
}
