/* word_lists.h - lists of words added at run time, for all utterances and for single ones. */
#ifndef WARPFST_CLI_WORD_LISTS_H
#define WARPFST_CLI_WORD_LISTS_H

#include "cli.h"

/* As given on the command line; all may be NULL. */
typedef struct added_request {
  const char *all_path;            /* a list for every utterance */
  const char *each_path;           /* lines `utterance list`, on top of that */
  const char *word_class;          /* NULL: the graph's only one */
  const char *word_start, *merges; /* for spelling */
  const char *words_out;           /* where to write the word table with them */
} added_request;
void added_flags(cli_parser *parser, added_request *request);

/* A line of a list is a phrase, or, with tabs between, a phrase, its cost, and how each of its
 * words is pronounced, in tokens. The cost may be empty or left out, and so may pronunciations:
 * words are then spelled with the tokens. */
typedef struct added_set added_set;
/* `words` becomes a table that has the new words, too. */
wf_status added_read(const added_request *request, const wf_graph *graph, wf_symbols **words,
                     added_set **out, wf_error *err);
/* The graph for an utterance, of the set; NULL: the decoder's own. */
const wf_graph *added_for(const added_set *set, const char *key);
void added_free(added_set *set);

#endif
