/* join_tokens.h - joins the tokens of results to words, for `warpfst decode --join`.
 * docs/how-to/open-vocabulary.md has the rules. */
#ifndef WARPFST_CLI_JOIN_TOKENS_H
#define WARPFST_CLI_JOIN_TOKENS_H

#include "cli.h"

typedef struct token_joiner {
  bool joins;            /* --join */
  const char *separator; /* --separator; NULL: the table's <space>, space or |, if it has one */
  wf_token_joiner *joiner;
} token_joiner;

void token_joiner_flags(cli_parser *parser, token_joiner *joiner);
/* Makes the joiner of the table, which the caller frees (wf_token_joiner_free). `table` may be
 * NULL: then there is nothing to join by. */
wf_status token_joiner_prepare(token_joiner *joiner, const wf_symbols *table, wf_error *err);
/* Copies a hypothesis with joined words, alternatives included. A word lasts from its first token
 * to its last and has the lowest confidence of these. *memory is the caller's to free, also after
 * an error; what `out` points to lies in it and in `in`. */
wf_status token_join(const token_joiner *joiner, const wf_hypothesis *in, wf_hypothesis *out,
                     void **memory, wf_error *err);

/* Keeps the first `most` of the paths whose joined texts differ, in their order. `table`: the texts
 * of the tokens. */
wf_status token_join_distinct(const token_joiner *joiner, const wf_symbols *table, size_t most,
                              wf_lattice_path *paths, size_t *count, wf_error *err);

#endif
