/* kaldi_hmm.h - reads Kaldi models from memory, for tests and fuzzing. */
#ifndef WF_GRAPH_KALDI_HMM_H
#define WF_GRAPH_KALDI_HMM_H

#include "graph/kaldi_lang.h"

/* Same as wf_hmm_read_kaldi, with the files in memory. `tree` may be NULL. */
wf_status wf__hmm_read_kaldi_inputs(const char *name, const wf__input *model, const wf__input *tree,
                                    const wf__lang_inputs *lang, wf_hmm **out, wf_error *err);

#endif
