/* sphinx_lm.h - CMU Sphinx's binary language models. */
#ifndef WF_LM_SPHINX_LM_H
#define WF_LM_SPHINX_LM_H

#include "lm/ngram_collector.h"

/* True if the file starts with the magic of the format. */
bool wf__lm_is_sphinx(const wf__input *input);
/* wf__ngram_read_fn; `input`: the wf__input. */
wf_status wf__lm_read_sphinx(void *input, wf__ngram_collector *collector, wf_error *err);

#endif
