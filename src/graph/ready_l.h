/* ready_l.h - reads an L made by the acoustic model's own toolkit, such as Kaldi's
 * L_disambig.fst. */
#ifndef WF_GRAPH_READY_L_H
#define WF_GRAPH_READY_L_H

#include "graph/hmm.h"

/* Gives `fst` the input labels of the graph pipeline: phones stay, the k-th label of
 * hmm->ready_disambig becomes num_phones + 1 + k. Costs are multiplied by `scale`. */
wf_status wf__ready_l(const wf_hmm *hmm, const wf_fst *fst, float scale, wf_fst **out,
                      wf_error *err);

#endif
