/* kaldi_lang.h - the phones of a Kaldi `lang` folder.
 *
 *   phones.txt                           names; `#0`, `#1`, ... are disambiguation symbols
 *   phones/word_boundary.txt or .int     position of each phone in words: nonword, begin, internal,
 *                                        end, singleton; optional
 *   phones/optional_silence.txt or .int  the silence between words; optional */
#ifndef WF_GRAPH_KALDI_LANG_H
#define WF_GRAPH_KALDI_LANG_H

#include "base/input.h"
#include "graph/hmm.h"

/* Missing files are NULL. */
typedef struct wf__lang_inputs {
  const wf__input *phones, *word_boundary, *silence;
} wf__lang_inputs;

/* Sets the phones of `hmm`, 1 .. num_phones or more if the table has more, and everything that
 * lexicons need. A phone without a name is named by its number. */
wf_status wf__kaldi_take_phones(wf_hmm *hmm, int32_t num_phones, const wf__lang_inputs *inputs,
                                wf_error *err);

#endif
