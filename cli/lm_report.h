/* lm_report.h - the summary of on-the-fly language models on GPUs. */
#ifndef WARPFST_CLI_LM_REPORT_H
#define WARPFST_CLI_LM_REPORT_H

#include <stdio.h>

#include "warpfst_all.h"

/* Hits in caches, bytes over the bus, how long warps waited for them, after `decode_s` seconds of
 * decoding: a line if any n-gram was asked of host memory, or with `json` the figures as a member
 * "lm", with a comma before it, if there is a model. */
void lm_report_print(FILE *out, const wf_decoder *decoder, double decode_s, bool json);

#endif
