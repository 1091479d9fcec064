/* sphinx_lm.h - CMU Sphinx's binary language models on bytes already in memory, for the public call and the fuzzer. */
#ifndef WF_LM_SPHINX_LM_H
#define WF_LM_SPHINX_LM_H

#include "base/input.h"
#include "lm/intake.h"

bool wf__lm_is_sphinx(const wf__input *input);
/* wf_lm_read on an open input that wf__lm_is_sphinx. */
wf_status wf__lm_read_sphinx_input(const wf__input *input, const wf_symbols *words, const wf_arpa_options *options, wf_lm **out, wf_arpa_stats *stats,
                                   const wf_progress *progress, wf_error *err);
/* Its n-grams into a sink. */
wf_status wf__lm_stream_sphinx(const wf__input *input, const wf_arpa_options *options, const wf__intake_sink *sink, wf__intake_facts *facts,
                               wf_arpa_stats *stats, const wf_progress *progress, wf_error *err);

#endif
