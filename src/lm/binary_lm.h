/* binary_lm.h - which reader a binary language model needs. */
#ifndef WF_LM_BINARY_LM_H
#define WF_LM_BINARY_LM_H

#include "lm/ngram_collector.h"

enum { WF__BINARY_LM_START = 64 }; /* bytes that identify a format */

/* The reader, whose `user` is the wf__input, of a file that starts with these bytes; NULL: ARPA
 * text. */
wf__ngram_read_fn wf__binary_lm_reader(const wf__input *start);

#endif
