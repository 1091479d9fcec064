/* tokens.h - maps token tables to labels. Only this module relies on label = column + 1. */
#ifndef WF_GRAPH_TOKENS_H
#define WF_GRAPH_TOKENS_H

#include "base/error.h"
#include "base/input.h"

typedef struct wf__tokens {
  const wf_symbols *table;
  int32_t num_tokens; /* labels 1 .. num_tokens; #k has label num_tokens + 1 + k */
  int32_t shift;      /* label = id + shift; 1, or 0 if the table has <eps> at 0 */
} wf__tokens;

/* Reads a table. Fails if ids have gaps or there is no token. */
wf_status wf__tokens_take(const wf_symbols *table, wf__tokens *out, wf_error *err);
/* The label of a token; 0 if there is none. */
int32_t wf__tokens_label(const wf__tokens *tokens, const char *text, size_t size);
/* The label of the token that a model writes between words: that of wf__token_separator, or U+2581
 * where no other token begins with it. 0: there is none. */
int32_t wf__tokens_separator(const wf__tokens *tokens);
/* Does a spelling begin or end with the separator? Inside a spelling it is part of a name of several
 * words. */
static inline bool wf__brings_separator(const int32_t *labels, uint64_t count, int32_t separator) {
  return count > 0 && (labels[0] == separator || labels[count - 1] == separator);
}
/* Is the text '#' followed by digits? */
bool wf__is_disambig(const char *text, size_t size);
/* The class of an input label (wf__is_class_label): "<contact>"; sets *once if the graph is a
 * transducer's. */
wf__span wf__class_of_label(const char *text, bool *once);
/* Writes the input label of a class. */
void wf__class_label(const char *name, bool once, char *out, size_t size);
/* Is the text <eps>, <s>, </s> or #digits? A lexicon may not have such words. */
bool wf__is_reserved_word(const char *text, size_t size);
/* Finds the label of the blank by its name. NULL: tries the usual names. "": there is none, label
 * 0. */
wf_status wf__tokens_blank(const wf__tokens *tokens, const char *name, int32_t *out_label,
                           wf_error *err);

#endif
