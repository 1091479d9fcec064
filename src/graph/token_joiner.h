/* token_joiner.h - what a joiner of tokens knows. */
#ifndef WF_GRAPH_TOKEN_JOINER_H
#define WF_GRAPH_TOKEN_JOINER_H

#include "base/error.h"

/* The token between words; "": none. */
const char *wf__token_joiner_separator(const wf_token_joiner *joiner);

#endif
