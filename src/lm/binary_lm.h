/* binary_lm.h - selects the reader of a binary language model. */
#ifndef WF_LM_BINARY_LM_H
#define WF_LM_BINARY_LM_H

#include "lm/ngram_collector.h"

enum { WF__BINARY_LM_START = 64 }; /* bytes that identify a format */

/* Returns the reader for a file that starts with these bytes; NULL: ARPA text. The reader's `user`
 * is the wf__input. */
wf__ngram_read_fn wf__binary_lm_reader(const wf__input *start);

#endif
