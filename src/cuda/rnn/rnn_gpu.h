/* rnn_gpu.h - what rnn_device.c does for the rest of the library. */
#ifndef WF_CUDA_RNN_RNN_GPU_H
#define WF_CUDA_RNN_RNN_GPU_H

#include "lm/rnn_device.h"

extern const struct wf__device_rnn wf__cuda_rnn;

#endif
