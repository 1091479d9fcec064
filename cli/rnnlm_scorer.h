/* rnnlm_scorer.h - a recurrent model used during the search: its flags, its scorer, and its part of
 * the summary. */
#ifndef WARPFST_CLI_RNNLM_SCORER_H
#define WARPFST_CLI_RNNLM_SCORER_H

#include "cli.h"

typedef struct rnnlm_source {
  const char *path, *ngram_path, *small_path, *unk, *device;
  wf_rnn_scorer_options options;
  wf_scorer *scorer; /* set by rnnlm_scorer_open; NULL if no model was named */
} rnnlm_source;

void rnnlm_scorer_flags(cli_parser *parser, rnnlm_source *source);
/* `words`: the word table of the graph, or NULL. */
wf_status rnnlm_scorer_open(rnnlm_source *source, const wf_symbols *words, wf_error *err);
/* Prints the counters of the scorer: `, "rnnlm": {...}` with `json`, else a line of text. Prints
 * nothing if there is no model. */
void rnnlm_scorer_print(FILE *out, const rnnlm_source *source, bool json);
void rnnlm_scorer_free(rnnlm_source *source);

#endif
