/* gpu_pipeline.h - the steps shared by batches, streams and recurrent scoring: find where scores
 * are, launch, wait, read back, prepare scores for the CPU, report errors, estimate frames. */
#ifndef WF_CUDA_DECODER_GPU_PIPELINE_H
#define WF_CUDA_DECODER_GPU_PIPELINE_H

#include "cuda/device/cuda_call.h"
#include "cuda/search/search_params.h"
#include "decode/backend.h"

enum { WF__SCORES_ON_HOST = -1, WF__SCORES_EVERYWHERE = -2, WF__SCORES_NOWHERE = -3 };

/* Where scores are: the number of a GPU, or one of the above. Managed memory is everywhere. If
 * scores are declared to be in device memory and are not, their result fails. */
wf_status wf__gpu_find_scores(const wf_scores *scores, wf_result *result, int *out, wf_error *err);

/* Starts the kernel of the kind on the stream. `begun`: wf__search_kernels.launch. Does not wait.
 */
wf_status wf__gpu_launch(wf__search_kind kind, const wf__lane_params *params, cudaStream_t stream,
                         cudaEvent_t begun, wf_error *err);

/* Has all work on the stream been done? Never waits. */
wf_status wf__gpu_is_done(cudaStream_t stream, bool *out, wf_error *err);
/* Waits for the work on the stream. WF_ERR_CANCELLED if the call is cancelled first
 * (base/interrupt.h); the work then continues. */
wf_status wf__gpu_wait(cudaStream_t stream, const char *what, wf_error *err);
/* Copies to host memory and waits for all work on the stream, even if the call is cancelled. */
wf_status wf__gpu_read_back(cudaStream_t stream, void *to, const void *from, uint64_t bytes,
                            const char *what, wf_error *err);

/* Rows of scores from `from` on, in host memory, for the CPU's search. *host is a view of the
 * scores or, if they lie on the GPU, of *copy, which the caller frees, also after a failure. */
wf_status wf__gpu_scores_to_host(const wf_scores *scores, int64_t from, cudaStream_t stream,
                                 wf_scores *host, void **copy, wf_error *err);
/* The same from any GPU, in the order of its default stream (wf__backend.scores_to_host). */
wf_status wf__gpu_fetch_scores(const wf_scores *scores, wf_scores *host, void **copy,
                               wf_error *err);
/* Writes to the result which score is bad. `place`: frame << 32 | column; `first`: number of the
 * scores' first frame. */
wf_status wf__gpu_report_bad_score(const wf_scores *scores, uint64_t place, int64_t first,
                                   cudaStream_t stream, wf_result *result, wf_error *err);
/* WF__LANE_CLOSURE and WF__LANE_CYCLE as errors. */
wf_status wf__gpu_outcome_error(int32_t outcome, const wf_decoder_options *options, wf_error *err);

/* Statistics of a search's outcomes, for the next plan. */
typedef struct wf__search_tally {
  uint64_t num_utterances;
  uint64_t num_full;       /* whose lane had too few blocks */
  uint64_t tokens, frames; /* of those that were searched */
} wf__search_tally;

/* Adds an utterance. */
void wf__search_tally_add(wf__search_tally *tally, int32_t outcome, uint64_t tokens,
                          uint64_t frames);
/* Tokens of a usual frame, at least 1. A quarter comes from this search and the rest from
 * `before`; 0: there is no earlier search. */
uint32_t wf__search_tally_usual(const wf__search_tally *tally, uint32_t before);
/* Were the lanes too small for so many utterances that the next search should begin with larger
 * ones? */
bool wf__search_tally_too_small(const wf__search_tally *tally);

#endif
