/* word_aligner.h - where words begin and end in an alignment, one label a frame.
 *
 *     labels   7 7 3 3 3 1 9 9 4 1 1       one a frame
 *     units    [7  ][3    ][][9  ][4][  ]  runs of frames of one phone or token; 1 is the blank
 *     parts    [word        ][word  ][--]  words, and what belongs to none: silence, blanks
 *
 * A unit is complete when the next one begins, a part when what follows shows that it has ended; so a part is cut off the front of a queue of labels as soon
 * as that is known, which is what following all paths of a lattice at once needs. */
#ifndef WF_LATTICE_WORD_ALIGNER_H
#define WF_LATTICE_WORD_ALIGNER_H

#include "base/error.h"
#include "base/memory.h"

typedef struct wf__unit {
  int32_t unit;
  uint32_t first, end; /* labels [first, end) */
} wf__unit;

/* What stands at the front of a queue of labels. */
typedef enum wf__part_kind {
  WF__PART_WAIT,    /* not known yet: more labels or words are needed */
  WF__PART_WORD,    /* `count` labels that are the next word */
  WF__PART_NO_WORD, /* `count` labels that belong to none */
} wf__part_kind;
typedef struct wf__part {
  wf__part_kind kind;
  uint32_t count;
  bool forced; /* the labels are not those of a word: a guess */
} wf__part;

typedef WF__VEC(wf__unit) wf__unit_list;

/* Is the unit a blank, or what stands before the first phone? */
bool wf__aligner_is_blank(const wf_word_aligner *aligner, int32_t unit);
/* Units of the labels, appended to `units`. */
wf_status wf__aligner_units(const wf_word_aligner *aligner, const int32_t *labels, uint64_t count, wf__unit_list *units, wf_error *err);
/* The part at the front of the units. `ended`: no label or word will follow, so it never says WAIT then while there are units. */
wf__part wf__aligner_part(const wf_word_aligner *aligner, const wf__unit *units, uint64_t num_units, const int32_t *words, uint64_t num_words, bool ended);

#endif
