/* aligner_source.h - the word aligner of a command: where it comes from, and its use. */
#ifndef WARPFST_CLI_ALIGNER_SOURCE_H
#define WARPFST_CLI_ALIGNER_SOURCE_H

#include "am_model.h"

/* At most one of graph, tokens and am is set. If none is set, word times are not changed. */
typedef struct aligner_source {
  const char *graph_path, *tokens_path, *lexicon_path;
  am_source am;
  wf_word_aligner *aligner; /* NULL: none */
} aligner_source;

/* --graph, --tokens, --lexicon, --am, --lang. */
void aligner_flags(cli_parser *parser, aligner_source *source);
/* --tokens, --lexicon, --lang, for a command that has --am already. */
void aligner_decode_flags(cli_parser *parser, aligner_source *source);
/* Makes source->aligner. `words` may be NULL if there is no lexicon. */
wf_status aligner_open(aligner_source *source, const wf_symbols *words, wf_error *err);
/* Attaches the aligner's tables to a graph that has none. Does nothing without the flags. */
wf_status aligner_attach(aligner_source *source, const wf_symbols *words, wf_fst **fst,
                         wf_error *err);
/* Aligns the entry's compact lattice, if there is an aligner. */
wf_status aligner_apply(const aligner_source *source, wf_lattice_entry *entry, wf_error *err);

#endif
