/* lexicon_fst.h - L with the choices that only the graph pipelines make. */
#ifndef WF_GRAPH_LEXICON_FST_H
#define WF_GRAPH_LEXICON_FST_H

#include "graph/hmm.h"
#include "graph/lexicon.h"

typedef struct wf__lexicon_shape {
  int32_t num_labels; /* input labels 1 .. num_labels; #k is num_labels + 1 + k */
  const int32_t (*position_of)[WF__NUM_POSITIONS]; /* input label of a lexicon's label by position
                                                      in the word; NULL: itself */
  bool disambig;
  bool backoff_loop;              /* #0:#0 between words, with disambig */
  float word_cost;                /* of every word */
  float pron_scale;               /* factor on -ln P(pronunciation) */
  int32_t silence;                /* input label; 0: none */
  float silence_cost, other_cost; /* after a word: with silence, without */
  bool edge_silence; /* silence is certain at both ends of an utterance, at no cost, and any number
                        of times between words, at silence_cost each */
  const int32_t
      *fillers; /* [num_fillers] input labels that may stand where silence may, with edge_silence */
  size_t num_fillers;
  float filler_cost;
  const int32_t *classes; /* [num_classes] words that stand for words added at run time: their
                             pronunciation is one input label, first_class + i */
  size_t num_classes;
  int32_t first_class;
} wf__lexicon_shape;

/* The shape that wf_lexicon_to_fst makes of its options. */
wf_status wf__lexicon_plain_shape(const wf_lexicon *lexicon, const wf_lexicon_fst_options *options,
                                  wf__lexicon_shape *out, wf_error *err);
/* As wf_lexicon_to_fst, `words` required. `labels` (may be NULL) is the table of the input labels.
 */
wf_status wf__lexicon_to_fst(const wf_lexicon *lexicon, const wf_symbols *words,
                             const wf__lexicon_shape *shape, const wf_symbols *labels, wf_fst **out,
                             size_t *out_missing, wf_error *err);

#endif
