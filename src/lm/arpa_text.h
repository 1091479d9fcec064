/* arpa_text.h - writes the parts of an ARPA file. */
#ifndef WF_LM_ARPA_TEXT_H
#define WF_LM_ARPA_TEXT_H

#include "base/output.h"

/* num_ngrams[1 .. order]. */
void wf__arpa_write_header(wf__output *output, int order, const uint64_t *num_ngrams);
/* The line before the n-grams of order k. */
void wf__arpa_write_section(wf__output *output, int k);
/* -cost / ln 10 with 7 decimals; -99 for probability 0. */
void wf__arpa_write_log10(wf__output *output, float cost);
void wf__arpa_write_end(wf__output *output);

#endif
