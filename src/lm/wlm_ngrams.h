/* wlm_ngrams.h - reads a .wlm file as any other file. */
#ifndef WF_LM_WLM_NGRAMS_H
#define WF_LM_WLM_NGRAMS_H

#include "lm/ngram_collector.h"
#include "lm/wlm_read.h"

/* wf__ngram_read_fn; `lm`: the wf__wlm. */
wf_status wf__lm_read_wlm(void *lm, wf__ngram_collector *collector, wf_error *err);
/* With the model's own names of <s>, </s> and <unk>, which live as long as the model. */
wf_arpa_options wf__wlm_reader_options(const wf__wlm *lm, int oov);

#endif
