/* lm_report.h - the part of decode's summary about n-gram models that GPUs read during the search.
 */
#ifndef WARPFST_CLI_LM_REPORT_H
#define WARPFST_CLI_LM_REPORT_H

#include <stdio.h>

#include "warpfst_all.h"

/* Prints the cache hits, the bytes read over the bus and the share of time that warps waited for
 * them. `decode_s`: seconds of decoding. Prints a line of text if n-grams were looked up; with
 * `json`, prints `, "lm": {...}` if there is such a model. */
void lm_report_print(FILE *out, const wf_decoder *decoder, double decode_s, bool json);

#endif
