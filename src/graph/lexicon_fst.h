/* lexicon_fst.h - L with the choice that only the graph pipeline makes. */
#ifndef WF_GRAPH_LEXICON_FST_H
#define WF_GRAPH_LEXICON_FST_H

#include "graph/lexicon.h"

/* As wf_lexicon_to_fst, `words` required; `backoff_loop` adds #0:#0 between words (with disambig). */
wf_status wf__lexicon_to_fst(const wf_lexicon *lexicon, const wf_symbols *words, const wf_lexicon_fst_options *options, bool backoff_loop,
                             wf_fst **out, size_t *out_missing, wf_error *err);

#endif
