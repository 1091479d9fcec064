/* word_lists.h - lists of words added at run time, for all utterances and for single ones. */
#ifndef WARPFST_CLI_WORD_LISTS_H
#define WARPFST_CLI_WORD_LISTS_H

#include "cli.h"

/* Values of the flags; NULL: not given. */
typedef struct added_request {
  const char *all_path;            /* list for all utterances */
  const char *each_path;           /* lines `utterance list`, in addition to all_path */
  const char *word_class;          /* NULL: the graph's only class */
  const char *word_start, *merges; /* options of spelling */
  const char *words_out;           /* where to write the extended word table */
} added_request;
void added_flags(cli_parser *parser, added_request *request);

/* A line of a list has columns separated by tabs: a phrase, its cost in nats, and the tokens of
 * each of its words. The cost may be empty or left out; then it is 0, or for the class <unk>
 * -wf_boost_by_length(phrase, WF_BOOST_PER_LETTER). Words without a pronunciation are spelled with
 * the tokens. */
typedef struct added_set added_set;
/* Replaces `*words` by a copy that includes the added words. */
wf_status added_read(const added_request *request, const wf_graph *graph, wf_symbols **words,
                     added_set **out, wf_error *err);
/* The graph of an utterance, owned by the set; NULL: the decoder's graph. */
const wf_graph *added_for(const added_set *set, const char *key);
void added_free(added_set *set);

#endif
