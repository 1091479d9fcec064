/* sphinx_hmm.h - reads Sphinx models from memory, for tests and fuzzing. */
#ifndef WF_GRAPH_SPHINX_HMM_H
#define WF_GRAPH_SPHINX_HMM_H

#include "base/input.h"

/* Same as wf_hmm_read_sphinx, with the files in memory. `noisedict` may be NULL. */
wf_status wf__hmm_read_sphinx_inputs(const char *name, const wf__input *mdef,
                                     const wf__input *tmats, const wf__input *noisedict,
                                     wf_hmm **out, wf_error *err);

#endif
