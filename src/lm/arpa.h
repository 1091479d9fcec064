/* arpa.h - the ARPA reader on bytes already in memory, for the public call and the fuzzer. */
#ifndef WF_LM_ARPA_H
#define WF_LM_ARPA_H

#include "base/input.h"

/* wf_lm_read_arpa on an open input. */
wf_status wf__lm_read_arpa_input(const wf__input *input, const wf_symbols *words,
                                 const wf_arpa_options *options, wf_lm **out, wf_arpa_stats *stats,
                                 const wf_progress *progress, wf_error *err);

#endif
