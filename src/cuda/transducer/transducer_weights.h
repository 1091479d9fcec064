/* transducer_weights.h - the weights of a transducer on a GPU.
 *
 *   memory   the network's memory as it is, so every pointer into it has its place here
 *   slices   integers of the matrices, for exact products (cuda/rnn/slice_kernels.h)
 *   places   what follows from the weights alone: of stateless predictors, what each token adds to
 *            the sum in each place of the context
 *   table    of a stateless predictor with few contexts, its part of the joiner for each of them:
 *            for searches on the GPU, which then do not ask for contexts */
#ifndef WF_CUDA_TRANSDUCER_TRANSDUCER_WEIGHTS_H
#define WF_CUDA_TRANSDUCER_TRANSDUCER_WEIGHTS_H

#include "cuda/device/device_memory.h"
#include "cuda/rnn/slice_kernels.h"
#include "search/transducer/network.h"
#include "search/transducer/transducer_device.h"

struct wf__transducer_weights {
  wf_transducer *model;
  int number;            /* of the GPU */
  uint64_t shared_bytes; /* that a block there can have */
  wf__device_buffer memory, slices;
  wf__sliced encoder, predictor, output;
  wf__device_buffer places; /* [context][tokens][predictor's stride] */
  wf__device_buffer table;  /* [contexts][width]; NULL: there is none */
  wf_rnnlm *lstm;           /* there; NULL: stateless */
};

/* The GPU address of `data` among the weights. */
static inline const float *wf__transducer_weight(const wf__transducer_weights *w,
                                                 const float *data) {
  return (const float *)w->memory.data + (data - w->model->network->memory);
}

/* The functions of wf__device_transducer for weights. */
wf_status wf__gpu_transducer_weights_send(const wf_transducer *model, int number,
                                          wf__transducer_weights **out, wf_error *err);
/* Makes the table, if it takes little of the memory that is free. This GPU must be the current
 * device. Not thread-safe. */
wf_status wf__transducer_make_table(wf__transducer_weights *w, wf_error *err);
void wf__gpu_transducer_weights_free(wf__transducer_weights *w);
wf_status wf__gpu_transducer_scores_where(const wf__transducer_weights *w, const wf_scores *scores,
                                          void *stream, int *number, wf_error *err);

#endif
