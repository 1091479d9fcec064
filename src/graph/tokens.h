/* tokens.h - from token tables to labels: the one place that knows that label = column + 1. */
#ifndef WF_GRAPH_TOKENS_H
#define WF_GRAPH_TOKENS_H

#include "base/error.h"

typedef struct wf__tokens {
  const wf_symbols *table;
  int32_t num_tokens; /* labels 1 .. num_tokens; #k has label num_tokens + 1 + k */
  int32_t shift;      /* label = id + shift: 1, or 0 where the table has <eps> at 0 */
} wf__tokens;

/* Checks the table: ids without gaps, at least one token. */
wf_status wf__tokens_take(const wf_symbols *table, wf__tokens *out, wf_error *err);
/* Label of a token, or 0 if there is none. */
int32_t wf__tokens_label(const wf__tokens *tokens, const char *text, size_t size);
/* Is the text '#' and digits? */
bool wf__is_disambig(const char *text, size_t size);
/* "#<contact>": the input label of a class of words, in decoding graphs. */
bool wf__is_class_label(const char *text, size_t size);
/* <eps>, <s>, </s> or #digits: words that a lexicon may not hold. */
bool wf__is_reserved_word(const char *text, size_t size);
/* The blank by its name, as a label: NULL looks for the usual ones, "" is none, label 0. */
wf_status wf__tokens_blank(const wf__tokens *tokens, const char *name, int32_t *out_label,
                           wf_error *err);

#endif
