/* token_joiner.c - words from tokens: marks at the start of words, marks of continuations, or a
 * token between words. */
#include "graph/token_joiner.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

const char wf__token_start[] = "\xE2\x96\x81";
const char wf__token_rest[] = "##";
enum { START_SIZE = sizeof wf__token_start - 1, REST_SIZE = sizeof wf__token_rest - 1 };

struct wf_token_joiner {
  bool marks_rest;  /* a token of the table begins with ## */
  char separator[]; /* "": none */
};

wf__token_mark wf__token_mark_of(const char *name, const char **out_text) {
  size_t size = strlen(name), mark = 0;
  wf__token_mark found = WF__TOKEN_PLAIN;
  if (size > 2 &&
      ((name[0] == '<' && name[size - 1] == '>') || (name[0] == '[' && name[size - 1] == ']'))) {
    found = WF__TOKEN_SPECIAL;
  } else if (strncmp(name, wf__token_start, START_SIZE) == 0) {
    found = WF__TOKEN_STARTS;
    mark = START_SIZE;
  } else if (strncmp(name, wf__token_rest, REST_SIZE) == 0) {
    found = WF__TOKEN_RESTS;
    mark = REST_SIZE;
  }
  if (out_text != NULL) *out_text = name + mark;
  return found;
}

wf_status wf_token_joiner_create(const wf_symbols *tokens, const char *separator,
                                 wf_token_joiner **out, wf_error *err) {
  static const char *const usual[] = {"|", "<space>"};
  const char *name;
  *out = NULL;
  if (tokens == NULL)
    return wf__fail(err, WF_ERR_ARGUMENT, "joining tokens needs a symbol table of the words");
  if (separator != NULL && wf_symbols_find(tokens, separator) < 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "separator: %s has no token '%.80s'",
                    wf_symbols_name(tokens), separator);
  for (size_t i = 0; i < 2 && separator == NULL; i++)
    if (wf_symbols_find(tokens, usual[i]) >= 0) separator = usual[i];
  if (separator == NULL) separator = "";
  size_t bytes = sizeof(wf_token_joiner) + strlen(separator) + 1;
  wf_token_joiner *joiner = wf__calloc(1, bytes);
  if (joiner == NULL) return wf__fail_memory(err, bytes, "a joiner of tokens");
  strcpy(joiner->separator, separator);
  for (size_t i = 0; (name = wf_symbols_at(tokens, i, NULL)) != NULL; i++)
    joiner->marks_rest = joiner->marks_rest || wf__token_mark_of(name, NULL) == WF__TOKEN_RESTS;
  *out = joiner;
  return WF_OK;
}

const char *wf__token_joiner_separator(const wf_token_joiner *joiner) { return joiner->separator; }

void wf_token_joiner_free(wf_token_joiner *joiner) { free(joiner); }

/* Ends the last word, whose text ends at `text`; a word without text, such as a lone U+2581, is
 * dropped. Returns where the text of the next one begins. */
static char *end_word(const wf_joined_word *words, size_t *num_words, char *text) {
  if (*num_words == 0) return text;
  if (words[*num_words - 1].text < text) return text + 1;
  --*num_words;
  return text;
}

size_t wf_token_joiner_join(const wf_token_joiner *joiner, const char *const *names, size_t count,
                            wf_joined_word *words, char *text) {
  size_t num_words = 0;
  bool open = false;
  for (size_t i = 0; i < count; i++) {
    const char *part;
    bool separates = joiner->separator[0] != '\0' && strcmp(names[i], joiner->separator) == 0;
    wf__token_mark mark = wf__token_mark_of(names[i], &part);
    bool rest = joiner->marks_rest && mark == WF__TOKEN_RESTS;
    if (!separates && mark == WF__TOKEN_SPECIAL) continue;
    if (separates || mark == WF__TOKEN_STARTS || (joiner->marks_rest && !rest)) open = false;
    if (separates) continue;
    if (!open) {
      text = end_word(words, &num_words, text);
      words[num_words++] = (wf_joined_word){.text = text, .first = i};
      open = true;
    }
    text = stpcpy(text, mark == WF__TOKEN_RESTS && !rest ? names[i] : part);
    words[num_words - 1].last = i;
  }
  end_word(words, &num_words, text);
  return num_words;
}
