/* lg.h - lexicon and grammar as a decoding graph takes them. */
#ifndef WF_GRAPH_LG_H
#define WF_GRAPH_LG_H

#include "base/memory.h"
#include "fst/fst.h"
#include "graph/lexicon.h"

typedef struct wf__lg {
  /* given, borrowed */
  const wf_lexicon *given_lexicon; /* or */
  const wf_fst *given_l;           /* ready-made: words are its output labels */
  const wf_lm *lm;                 /* or */
  const wf_fst *grammar;
  const wf_symbols *given_words; /* of the grammar; NULL: its own */
  const char *given_classes;     /* names of words that stand for words added at run time, commas
                                    between; NULL: none */
  int32_t check_words;           /* of the options: warn, error, off */
  uint32_t always_marked; /* pronunciations of at most so many phones get a #k, whether the lexicon
                             needs it or not */
  /* taken */
  wf_lexicon *lexicon; /* the entries whose words the grammar uses; NULL for a ready-made L */
  wf_symbols *words;
  int32_t backoff_word;     /* label of #0 among the words */
  int32_t unk;              /* label of the LM's unknown word; -1: the model has none */
  WF__VEC(int32_t) classes; /* labels of the given classes among the words */
  int32_t num_disambig;     /* set by the caller for a ready-made L */
  wf_tally lm_words_missing, lexicon_words_missing;
} wf__lg;

/* Fills the second half. Error if lexicon and grammar have no word in common, or a class is no word
 * of the grammar. */
wf_status wf__lg_take(wf__lg *lg, wf_error *err);
void wf__lg_free(wf__lg *lg);
/* Adds the classes to a table of input labels as "#<contact>", from `first` on. */
wf_status wf__lg_add_class_labels(const wf__lg *lg, int32_t first, wf_symbols *labels,
                                  wf_error *err);
/* G, sorted by input label; classes have no output. `backoff` is WF_LM_FST_OPTIONS's. */
wf_status wf__lg_make_g(const wf__lg *lg, int32_t backoff, wf_fst **out, wf_error *err);

#endif
