/* grammar_words.c - the words of a grammar that is written as text: finds their labels in a table,
 * or makes a table of them. */
#include "graph/grammar_words.h"

#include <string.h>

#include "base/memory.h"
#include "fst/symbols.h"
#include "graph/tokens.h"

wf_status wf__grammar_words_add(wf__grammar_words *words, wf__span text, uint32_t *out,
                                wf_error *err) {
  int64_t key;
  if (wf__is_reserved_word(text.data, text.size))
    return wf__fail(err, WF_ERR_FORMAT, "'%.*s' is reserved and cannot be a word",
                    WF__SPAN_ARG(text));
  if (words->given != NULL) {
    key = wf__symbols_find_bytes(words->given, text.data, text.size);
    if (key <= 0)
      return wf__fail(err, WF_ERR_FORMAT, "the word '%.*s' is not in the word table %s",
                      WF__SPAN_ARG(text), wf__symbols_shown(words->given));
  } else {
    if (words->found == NULL) {
      WF__TRY(wf_symbols_create("words", &words->found, err));
      WF__TRY(wf_symbols_add(words->found, "<eps>", 0, NULL, err));
    }
    WF__TRY(wf__symbols_add_bytes(words->found, text.data, text.size, -1, &key, err));
  }
  *out = (uint32_t)key;
  return WF_OK;
}

struct named {
  const char *text;
  uint32_t number;
};

static int by_text(const void *a, const void *b) {
  const struct named *x = a, *y = b;
  return strcmp(x->text, y->text);
}

/* Gives the words labels in byte order. */
static wf_status sort_words(wf__grammar_words *words, struct named *names, wf_error *err) {
  const size_t count = words->found != NULL ? wf_symbols_count(words->found) : 0;
  size_t size = 0;
  for (size_t i = 0; i < count; i++) {
    int64_t key;
    const char *text = wf_symbols_at(words->found, i, &key);
    if (key > 0) names[size++] = (struct named){text, (uint32_t)key};
  }
  if (size > 1) qsort(names, size, sizeof *names, by_text);
  WF__TRY(wf_symbols_create("words", &words->table, err));
  WF__TRY(wf_symbols_add(words->table, "<eps>", 0, NULL, err));
  for (size_t i = 0; i < size; i++) {
    words->labels[names[i].number] = (int32_t)i + 1;
    WF__TRY(wf_symbols_add(words->table, names[i].text, (int64_t)i + 1, NULL, err));
  }
  return WF_OK;
}

wf_status wf__grammar_words_close(wf__grammar_words *words, wf_error *err) {
  if (words->given != NULL) {
    words->table = wf_symbols_ref(words->given);
    return WF_OK;
  }
  const uint64_t count = words->found != NULL ? wf_symbols_count(words->found) : 1;
  struct named *names = wf__alloc(count, sizeof *names);
  words->labels = wf__calloc(count, sizeof *words->labels);
  wf_status status = names != NULL && words->labels != NULL
                         ? sort_words(words, names, err)
                         : wf__fail_memory(err, count * sizeof *names, "words of a grammar");
  free(names);
  return status;
}

void wf__grammar_words_free(wf__grammar_words *words) {
  wf_symbols_free(words->found);
  wf_symbols_free(words->table);
  free(words->labels);
}
