/* lm_words.h - the word table of a model that is made here: <eps>, <s>, </s>, <unk>, then its words. */
#ifndef WF_LM_LM_WORDS_H
#define WF_LM_LM_WORDS_H

#include "base/error.h"
#include "warpfst_fst.h"

enum { WF__LM_BOS = 1, WF__LM_EOS = 2, WF__LM_UNK = 3 }; /* labels */

/* Makes the table with its first four symbols. Free *out also after a failure. */
static inline wf_status wf__lm_words_create(wf_symbols **out, wf_error *err) {
  static const char *const first[] = {"<eps>", "<s>", "</s>", "<unk>"};
  WF__TRY(wf_symbols_create("words", out, err));
  for (int i = 0; i < 4; i++) WF__TRY(wf_symbols_add(*out, first[i], i, NULL, err));
  return WF_OK;
}

#endif
