/* lexicon_fst.h - makes L, with options that only the graph pipelines use. */
#ifndef WF_GRAPH_LEXICON_FST_H
#define WF_GRAPH_LEXICON_FST_H

#include "graph/hmm.h"
#include "graph/lexicon.h"

typedef struct wf__lexicon_shape {
  int32_t num_labels; /* input labels 1 .. num_labels; #k is num_labels + 1 + k */
  const int32_t (*position_of)[WF__NUM_POSITIONS]; /* the input label for a label of the lexicon and
                                                      a position in the word; NULL: the same
                                                      label */
  bool disambig;
  bool backoff_loop;              /* #0:#0 between words, with disambig */
  float word_cost;                /* added to every word */
  float pron_scale;               /* factor on -ln P(pronunciation) */
  int32_t silence;                /* input label; 0: none */
  float silence_cost, other_cost; /* after a word: with silence; without silence */
  bool required_silence; /* one or more silences between words, any number of them at both ends of
                            an utterance, at no cost */
  bool edge_silence; /* silence is mandatory at both ends of an utterance, at no cost, and optional
                        between words, any number of times at silence_cost each */
  const int32_t *fillers; /* [num_fillers] input labels that may stand where silence may; only with
                             edge_silence */
  size_t num_fillers;
  float filler_cost;
  const int32_t *garbage; /* [num_garbage] labels of the lexicon; garbage_word is any sequence of
                             them, at a cost for each. Not with num_garbage 0 */
  size_t num_garbage;
  float garbage_cost;
  int32_t garbage_word;
  const int32_t *classes; /* [num_classes] words that stand for words added at run time. The
                             pronunciation of class i is the one input label first_class + i */
  size_t num_classes;
  int32_t first_class;
} wf__lexicon_shape;

/* Makes the shape for the options of wf_lexicon_to_fst. Its member `silence` is the token that
 * stands between words, given or found; 0: none. */
wf_status wf__lexicon_plain_shape(const wf_lexicon *lexicon, const wf_lexicon_fst_options *options,
                                  wf__lexicon_shape *out, wf_error *err);
/* Same as wf_lexicon_to_fst, but `words` is required. `labels` (may be NULL) is the table of the
 * input labels. */
wf_status wf__lexicon_to_fst(const wf_lexicon *lexicon, const wf_symbols *words,
                             const wf__lexicon_shape *shape, const wf_symbols *labels, wf_fst **out,
                             size_t *out_missing, wf_error *err);

#endif
