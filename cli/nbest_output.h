/* nbest_output.h - lists of paths as results: hypotheses `KEY-1`, `KEY-2`, ... best first, as Kaldi numbers them. */
#ifndef WARPFST_CLI_NBEST_OUTPUT_H
#define WARPFST_CLI_NBEST_OUTPUT_H

#include "cli.h"

/* `words` NULL: numbers. Words last from their arc of the path to that of the next. */
wf_status nbest_put(wf_result_writer *writer, const char *key, const wf_nbest *nbest, const wf_symbols *words, wf_error *err);

#endif
