/* rnn_device.h - a recurrent language model on a GPU: computes states of many histories and costs
 * of many words at once.
 *
 *   slots  hidden states in the GPU's memory, numbered by the caller; slot 0 always holds the state
 *          after <s>
 *
 * Every sum has one fixed order, so that a state or cost does not depend on the other computations
 * of the call. It is not the CPU's order (lm/rnnlm_math.h), so the last bits differ from the CPU's;
 * those of models with exact products (math/slices.h) are the same.
 * Not thread-safe. */
#ifndef WF_LM_RNN_DEVICE_H
#define WF_LM_RNN_DEVICE_H

#include "base/device.h"
#include "lm/rnnlm.h"

/* A model's arrays in a GPU's memory. */
typedef struct wf__rnn_weights wf__rnn_weights;
typedef struct wf__rnn_device wf__rnn_device;
enum { WF__RNN_START_SLOT = 0 };

struct wf__device_rnn {
  /* `name` names one GPU, as in wf_decoder_options.device. */
  wf_status (*weights_send)(const wf_rnnlm *lm, const char *name, wf__rnn_weights **out,
                            wf_error *err);
  void (*weights_free)(wf__rnn_weights *weights);
  /* CUDA device index. */
  int (*weights_where)(const wf__rnn_weights *weights);

  /* Opens a model that is on a GPU, with slots 0 .. num_slots. Keeps a reference to the model. */
  wf_status (*open)(const wf_rnnlm *lm, uint64_t num_slots, wf__rnn_device **out, wf_error *err);
  void (*close)(wf__rnn_device *device);

  /* Computes the next states. The `to` slots must differ from each other, and none may be the `from`
   * slot of another move. */
  wf_status (*advance)(wf__rnn_device *device, const wf__rnn_move *moves, uint64_t count,
                       wf_error *err);

  /* Softmax: computes the norms of these slots. Costs need them, and they must be recomputed when a
   * state changes. Slot 0 always has its norm. Does nothing for other outputs. */
  wf_status (*norms)(wf__rnn_device *device, const uint32_t *slots, uint64_t count, wf_error *err);

  /* Computes costs[i] of requests[i]. */
  wf_status (*costs)(wf__rnn_device *device, const wf__rnn_request *requests, uint64_t count,
                     const uint64_t *hashes, uint64_t num_hashes, float *costs, wf_error *err);

  /* The same for arrays in this GPU's memory, where the number of rows may be, too. The GPU must be
   * the current device. These functions do not wait: they enqueue all work in the stream (a
   * cudaStream_t). */
  void *(*stream)(const wf__rnn_device *device);
  wf_status (*advance_there)(wf__rnn_device *device, const wf__rnn_move *moves, wf__row_count count,
                             wf_error *err);
  wf_status (*norms_there)(wf__rnn_device *device, const uint32_t *slots, uint64_t count,
                           wf_error *err);
  wf_status (*costs_there)(wf__rnn_device *device, const wf__rnn_request *requests, uint64_t count,
                           const uint64_t *hashes, float *costs, wf_error *err);
  /* Of a model with exact products: the hidden vectors as integers (a wf__sliced), which slot s has
   * in row s * num_layers + layer. They move when slots are added. */
  const struct wf__sliced *(*hidden_there)(const wf__rnn_device *device);
  /* Adds slots; states are kept. */
  wf_status (*grow)(wf__rnn_device *device, uint64_t num_slots, wf_error *err);
};

/* The operations of the device that models are on. */
static inline const struct wf__device_rnn *wf__gpu_rnn(void) { return wf__device_found()->rnn; }

#endif
