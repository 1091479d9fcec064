/* lm_report.h - the summary of on-the-fly language models on GPUs. */
#ifndef WARPFST_CLI_LM_REPORT_H
#define WARPFST_CLI_LM_REPORT_H

#include <stdio.h>

#include "warpfst_all.h"

/* Prints cache hits, bytes read over the bus and the share of time that warps waited for them.
 * `decode_s`: seconds of decoding. Prints a line if any n-gram was read from host memory; with
 * `json`, prints `, "lm": {...}` if there is a model. */
void lm_report_print(FILE *out, const wf_decoder *decoder, double decode_s, bool json);

#endif
