/* kaldi_lang.h - phones as a Kaldi `lang` folder has them.
 *
 *   phones.txt                           names; `#0`, `#1`, ... are disambiguation symbols
 *   phones/word_boundary.txt or .int     place in a word of each phone: nonword, begin, internal,
 *                                        end, singleton; may be missing
 *   phones/optional_silence.txt or .int  the silence between words; may be missing */
#ifndef WF_GRAPH_KALDI_LANG_H
#define WF_GRAPH_KALDI_LANG_H

#include "base/input.h"
#include "graph/hmm.h"

/* Those that are not there are NULL. */
typedef struct wf__lang_inputs {
  const wf__input *phones, *word_boundary, *silence;
} wf__lang_inputs;

/* Gives hmm its phones, 1 .. num_phones or beyond if the table has more, and all that lexicons
 * need. Phones without a name are called by their number. */
wf_status wf__kaldi_take_phones(wf_hmm *hmm, int32_t num_phones, const wf__lang_inputs *inputs,
                                wf_error *err);

#endif
