/* lg.h - the lexicon and the grammar, prepared for a decoding graph. */
#ifndef WF_GRAPH_LG_H
#define WF_GRAPH_LG_H

#include "base/memory.h"
#include "fst/fst.h"
#include "graph/lexicon.h"
#include "lm/automaton.h"

typedef struct wf__lg {
  /* set by the caller, borrowed */
  const wf_lexicon *given_lexicon; /* this or given_l */
  const wf_fst *given_l;           /* a ready-made L, whose output labels are words */
  const wf_lm *lm;                 /* this, or grammar, or none: every sequence of words */
  const wf__automaton *automaton;  /* of lm */
  const wf_fst *grammar;
  const wf_symbols *given_words; /* words of the grammar; NULL: the grammar's own symbol table, or
                                    without one the words of the lexicon and the classes */
  const char *given_classes;     /* comma-separated names of word classes (words that stand for
                                    words added at run time); NULL: none */
  int32_t check_words;           /* the option check_words: warn, error, off */
  bool garbage;                  /* <unk> needs no pronunciation */
  uint32_t always_marked;        /* pronunciations of at most this many phones always get a #k */
  /* set by wf__lg_take */
  wf_lexicon *lexicon; /* the entries whose words the grammar uses; NULL for a ready-made L */
  wf_symbols *words;
  wf_fst *any_words;         /* without lm and grammar: the grammar */
  wf_symbols *lexicon_words; /* likewise: the given words, if the lexicon has them */
  int32_t backoff_word;      /* label of #0 */
  int32_t unk;               /* label of the LM's unknown word; with `garbage` also of the
                                grammar's; -1: none */
  WF__VEC(int32_t) classes;  /* labels of the classes */
  int32_t num_disambig;      /* set by the caller for a ready-made L */
  wf_tally lm_words_missing, lexicon_words_missing;
} wf__lg;

/* Fills the second half of the structure. Fails if lexicon and grammar have no word in common, or
 * if a class is not a word of the grammar. */
wf_status wf__lg_take(wf__lg *lg, wf_error *err);
void wf__lg_free(wf__lg *lg);
/* Fails if words of the grammar have no pronunciation. */
wf_status wf__lg_need_words(const wf__lg *lg, wf_error *err);
/* Is the text one of the comma-separated names (NULL: none)? */
bool wf__lg_has_class(const char *classes, const char *text);
/* Adds the input labels of the classes to a symbol table, named as wf__class_label does, and
 * numbered from `first`. */
wf_status wf__lg_add_class_labels(const wf__lg *lg, bool once, int32_t first, wf_symbols *labels,
                                  wf_error *err);
/* Makes G, sorted by input label. Classes have no output. If the model's unknown word is one, its
 * unigram cost is raised or lowered to the mean of the words'. `backoff` is the option of
 * WF_LM_FST_OPTIONS. */
wf_status wf__lg_make_g(const wf__lg *lg, int32_t backoff, wf_fst **out, wf_error *err);

#endif
