/* lexicon.h - the fields of a lexicon.
 *
 *   entries  [count]  {word, prob, labels [label_off, label_off + num_labels), disambig}
 *   labels   []       token labels (column + 1) of all entries, one after the other
 *   texts             the words
 *
 * wf__lexicon_add fills it (lexicon.c reads files, spell.c spells words). wf__lexicon_close
 * completes it; after that it is immutable. */
#ifndef WF_GRAPH_LEXICON_H
#define WF_GRAPH_LEXICON_H

#include <stdatomic.h>

#include "base/input.h"
#include "base/memory.h"
#include "base/tally.h"
#include "graph/tokens.h"

/* Of a word in lexiconp_silprob.txt: P(silence after it), and factors on its probability after silence
 * and after none. */
typedef struct wf__silence_probs {
  float after, before, before_none;
} wf__silence_probs;

typedef struct wf__lexicon_entry {
  const char *word;
  uint64_t label_off;
  uint32_t num_labels;
  float prob;
  int32_t disambig;          /* k of the #k at the end of the pronunciation; 0: none */
  wf__silence_probs silence; /* with has_silence */
} wf__lexicon_entry;

struct wf_lexicon {
  atomic_uint_fast32_t refs;
  char *name;        /* for messages: the path */
  wf_symbols *table; /* the token table */
  wf__tokens tokens;
  int32_t blank; /* the blank's label; 0: none */
  WF__VEC(wf__lexicon_entry) entries;
  WF__VEC(int32_t) labels;
  wf__arena texts;
  bool has_silence; /* entries have silence probabilities */
  wf_tally skipped; /* entries left out for unknown tokens */
  size_t num_repeated;
  int32_t max_disambig;   /* the largest k in use */
  uint32_t always_marked; /* pronunciations of at most this many labels always get a #k */
};

/* Makes an empty lexicon. `blank` names the blank; NULL: one of the usual names. */
wf_status wf__lexicon_create(const char *name, const wf_symbols *tokens, const char *blank,
                             wf_lexicon **out, wf_error *err);
/* Adds an entry. Its labels are lexicon->labels from `label_off` to the end. */
wf_status wf__lexicon_add(wf_lexicon *lexicon, const char *word, size_t size, float prob,
                          uint64_t label_off, wf_error *err);
/* Counts an entry that was left out because of an unknown token (wf_lexicon_skipped). */
wf_status wf__lexicon_report_skipped(wf_lexicon *lexicon, wf__span word, wf__span token,
                                     wf_error *err);
/* Drops repeated entries and assigns the disambiguation symbols. Fails if there are no entries,
 * unless it may be empty. */
wf_status wf__lexicon_close(wf_lexicon *lexicon, bool may_be_empty, wf_error *err);

/* Makes a lexicon of the entries with keep[i] and with another always_marked. Disambiguation
 * symbols are assigned anew, since fewer words need fewer of them, to words that are pronounced alike
 * in the order of `words` (NULL: of the lexicon). */
wf_status wf__lexicon_select(const wf_lexicon *lexicon, const bool *keep, const wf_symbols *words,
                             uint32_t always_marked, wf_lexicon **out, wf_error *err);

/* Same as wf_lexicon_read, with the file in memory. */
wf_status wf__lexicon_read_input(const wf__input *input, const wf_symbols *tokens,
                                 const wf_lexicon_options *options, wf_lexicon **out,
                                 wf_error *err);
/* Same as wf_lexicon_spell, with the list of merges in memory; NULL: none. */
wf_status wf__lexicon_spell_input(const wf_symbols *words, const wf_symbols *tokens,
                                  const wf_lexicon_options *options, const wf__input *merges,
                                  wf_lexicon **out, wf_error *err);
/* The same without wf__lexicon_close: the entries are in the order of the words, and no word at all
 * may be spelled. */
wf_status wf__lexicon_spell_all(const wf_symbols *words, const wf_symbols *tokens,
                                const wf_lexicon_options *options, const wf__input *merges,
                                wf_lexicon **out, wf_error *err);

#endif
