/* arpa.h - the ARPA reader on bytes already in memory. */
#ifndef WF_LM_ARPA_H
#define WF_LM_ARPA_H

#include "lm/automaton.h"

wf_status wf__lm_read_arpa_input(const wf__input *input, const wf_symbols *words,
                                 const wf_arpa_options *options, wf__automaton **out,
                                 wf_arpa_stats *stats, const wf_progress *progress, wf_error *err);

#endif
