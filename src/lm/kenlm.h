/* kenlm.h - KenLM's binary language models. */
#ifndef WF_LM_KENLM_H
#define WF_LM_KENLM_H

#include "lm/ngram_collector.h"

/* True if the first bytes are those of any binary format of KenLM, including formats that
 * wf__lm_read_kenlm refuses. */
bool wf__lm_is_kenlm(const wf__input *input);
/* wf__ngram_read_fn; `input`: the wf__input. */
wf_status wf__lm_read_kenlm(void *input, wf__ngram_collector *collector, wf_error *err);

#endif
