/* batch_rnn_scoring.h - the recurrent scorer of a batch, its chains and their roots. */
#ifndef WF_CUDA_DECODER_BATCH_RNN_SCORING_H
#define WF_CUDA_DECODER_BATCH_RNN_SCORING_H

#include "decode/backend.h"

struct wf__gpu_worker;

/* Opens worker->rnn_scoring for the batch's recurrent scorer, unless it is open already. *deferred:
 * the batch has one. */
wf_status wf__batch_rnn_take(struct wf__gpu_worker *worker, const wf__batch *batch, bool *deferred,
                             wf_error *err);
/* Makes the roots of the batch's chains. Their other scorers must be on the GPU. */
wf_status wf__batch_rnn_take_chains(struct wf__gpu_worker *worker, const wf__batch *batch,
                                    wf_error *err);
/* The root of an utterance of the batch, at `place` in its chunk. */
uint32_t wf__batch_rnn_root(const struct wf__gpu_worker *worker, const wf__batch *batch,
                            uint32_t utterance, uint32_t place);
/* The same scorer of the batch with its recurrent part on the CPU. */
const wf_scorer *wf__batch_rnn_cpu_scorer(const struct wf__gpu_worker *worker,
                                          const wf_scorer *scorer);

#endif
