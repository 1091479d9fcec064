/* word_aligner.h - finds where words begin and end in an alignment of one label a frame.
 *
 *     labels   7 7 3 3 3 1 9 9 4 1 1       one a frame
 *     units    [7  ][3    ][][9  ][4][  ]  runs of frames of one phone or token; 1 is the blank
 *     parts    [word        ][word  ][--]  words, and the frames between words: silence, blanks
 *
 * Label 0 is a frame that the search skipped. A unit is complete when the next one begins. A part
 * is complete when the labels after it show that it has ended. Parts are cut off the front of a
 * queue of labels as soon as they are complete; streams and lattices need this.
 *
 *     word_aligner.c        makes aligners from models, token tables and lexicons
 *     word_parts.c          units and parts
 *     word_aligner_file.c   serializes an aligner: graphs contain one (fst.h), so that word times
 * need no other file
 */
#ifndef WF_GRAPH_WORD_ALIGNER_H
#define WF_GRAPH_WORD_ALIGNER_H

#include <stdatomic.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/hmm.h"

enum wf__aligner_way { WF__BY_POSITION, WF__BY_MARK, WF__BY_LEXICON, WF__NUM_WAYS };
/* The role of a unit: one of these, or its position in a word (WF__BEGIN ... WF__SINGLE; aligners
 * by mark and by lexicon use only WF__BEGIN and WF__INTERNAL). */
enum {
  WF__NO_WORD = -1,    /* never part of a word: blank, silence, noise */
  WF__MAYBE_WORD = -2, /* silence or a unit between words, but some pronunciations use it */
};

/* Pronunciations by word. Word words[i] has the pronunciations [word_off[i], word_off[i + 1]).
 * Pronunciation p has the units spelled[spell_off[p] .. spell_off[p + 1]). */
typedef struct wf__spellings {
  WF__VEC(int32_t) words; /* ascending */
  WF__VEC(uint32_t)
  index; /* [label - words[0]] first of the words from this label on. Empty if most
            labels in between are not words */
  WF__VEC(uint32_t) word_off, spell_off;
  WF__VEC(int32_t) spelled;
} wf__spellings;

struct wf_word_aligner {
  atomic_uint_fast32_t refs;
  wf_word_aligner *base; /* with added words: the aligner that they were added to; else NULL */
  const wf_word_aligner *root; /* the aligner without added words; only there the fields after
                                  `roles` are used */
  wf__spellings spellings;     /* only for WF__BY_LEXICON */
  WF__VEC(int8_t) roles;       /* by unit */
  enum wf__aligner_way way;
  wf_symbols *names; /* names of units; index: unit - name_shift */
  int32_t name_shift;
  int32_t blank;                 /* 0: none */
  bool runs;                     /* a unit is a run of one label (tokens); otherwise a phone */
  bool loops_repeat;             /* a self-loop has the label of its state (wf_hmm) */
  WF__VEC(wf__hmm_place) places; /* by label; only if units are phones */
};

/* Makes the index of the words. */
wf_status wf__spellings_index(wf__spellings *spellings, wf_error *err);
/* An empty aligner with one reference. */
wf_status wf__word_aligner_create(enum wf__aligner_way way, const wf_symbols *names,
                                  int32_t name_shift, wf_word_aligner **out, wf_error *err);
/* Same as wf_word_aligner_from_lexicon. `silence` (0: none) is a token that may stand between words
 * even if pronunciations use it. */
wf_status wf__word_aligner_from_lexicon(const wf_lexicon *lexicon, const wf_symbols *words,
                                        int32_t silence, wf_word_aligner **out, wf_error *err);
/* Makes an aligner with the pronunciations of more words. Returns `base` itself if it needs no
 * lexicon. */
wf_status wf__word_aligner_add(const wf_word_aligner *base, const wf_added_phrase *phrases,
                               size_t count, wf_word_aligner **out, wf_error *err);

/* Copies an aligner, with all pronunciations in one table and no base. */
wf_status wf__word_aligner_flatten(const wf_word_aligner *aligner, wf_word_aligner **out,
                                   wf_error *err);

/* Serializes an aligner without added words (*out is for free()), and reads it back. `name` is the
 * file's name in messages. Everything is checked. */
wf_status wf__word_aligner_encode(const wf_word_aligner *aligner, uint8_t **out, uint64_t *size,
                                  wf_error *err);
wf_status wf__word_aligner_decode(const void *bytes, uint64_t size, const char *name,
                                  wf_word_aligner **out, wf_error *err);
/* Stores the aligner in the fst (wf__fst_set_boundaries). */
wf_status wf__word_aligner_attach(const wf_word_aligner *aligner, wf_fst *fst, wf_error *err);

typedef struct wf__unit {
  int32_t unit;
  uint32_t first, end; /* labels [first, end) */
} wf__unit;

/* The part at the front of a queue of labels. */
typedef enum wf__part_kind {
  WF__PART_WAIT,    /* not decided yet: more labels or words are needed */
  WF__PART_WORD,    /* the next word has `count` labels */
  WF__PART_NO_WORD, /* `count` labels belong to no word */
} wf__part_kind;
typedef struct wf__part {
  wf__part_kind kind;
  uint32_t count;
  uint32_t forced; /* 1: the labels do not match the word, its times are a guess */
} wf__part;

typedef WF__VEC(wf__unit) wf__unit_list;

/* Is the unit a blank, or a frame without a label (0)? */
bool wf__aligner_is_blank(const wf_word_aligner *aligner, int32_t unit);
/* Finds the units of the labels. */
wf_status wf__aligner_units(const wf_word_aligner *aligner, const int32_t *labels, uint64_t count,
                            wf__unit_list *units, wf_error *err);
/* The same for labels in runs of equal ones (`unit` is the label). Adds those from label `first` on
 * to the units of the labels before. The last two of these may change. *ended: state between calls,
 * false at first. */
wf_status wf__aligner_more_units(const wf_word_aligner *aligner, const wf__unit_list *runs,
                                 uint64_t first, wf__unit_list *units, bool *ended, wf_error *err);
/* Finds the part at the front of the units. `ended`: no label or word will follow; then the result
 * is never WAIT while there are units. `eager`: waits less, but the result may differ from the one
 * with all labels present. Lattices use this, since waiting means following all paths. */
wf__part wf__aligner_part(const wf_word_aligner *aligner, const wf__unit *units, uint64_t num_units,
                          const int32_t *words, uint64_t num_words, bool ended, bool eager);

/* The result of placing the words of a path: as many as the labels and words so far decide, or all
 * of them if `ended`. */
typedef struct wf__placed {
  uint64_t num_words;  /* out_words[0 .. num_words) are set */
  uint64_t num_forced; /* words among these whose times are guesses */
  uint32_t num_labels; /* labels consumed: up to the end of the last word or of the part after it */
} wf__placed;
/* `units` is scratch memory. out_words [num_words]; frames count from labels[0]. */
wf_status wf__aligner_place(const wf_word_aligner *aligner, const int32_t *words,
                            uint64_t num_words, const int32_t *labels, uint64_t num_labels,
                            bool ended, wf__unit_list *units, wf_word *out_words, wf__placed *out,
                            wf_error *err);

#endif
