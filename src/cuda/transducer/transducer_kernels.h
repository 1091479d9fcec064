/* transducer_kernels.h - the parameters of the kernels of transducers. Plain C.
 *
 * Matrices are as on the CPU (search/transducer/network.h): rows padded with zeros to a multiple of 8
 * floats. Products are wf__gpu_slice_product. All functions return a cudaError_t; `stream` is a
 * cudaStream_t. */
#ifndef WF_CUDA_TRANSDUCER_TRANSDUCER_KERNELS_H
#define WF_CUDA_TRANSDUCER_TRANSDUCER_KERNELS_H

#include <stdint.h>

#include "cuda/rnn/slice_kernels.h"
#include "lm/rnn_types.h"
#include "search/transducer/transducer_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The requests of a round, in one block of memory: the head, then joiner rows, then slots and
 * inputs of the predictor's new contexts (tokens, or moves of an LSTM). Each part begins at a
 * multiple of 16 bytes and may be read up to the next. */
typedef struct wf__round_head {
  uint32_t num_rows, num_contexts;
} wf__round_head;
typedef struct wf__joiner_row {
  uint32_t frame, slot;  /* rows of the encoder's part and of the predictor's */
  uint32_t first, count; /* all rows of the search */
  wf__row_need need;
  float least_waiting;
} wf__joiner_row;
typedef struct wf__round_block {
  uint64_t rows_at, slots_at, inputs_at; /* in bytes */
  uint64_t input_bytes;                  /* of a context */
} wf__round_block;
/* Copies what the head of block `from`, in page-locked memory, counts; at most so much. */
int wf__transducer_fetch(const wf__round_block *block, uint32_t most_rows, uint32_t most_contexts,
                         const void *from, void *to, void *stream);

/* A frame of encoder outputs, in GPU memory. */
typedef struct wf__encoder_frame {
  const void *from;
  uint32_t to; /* its row of the encoder's part */
  int32_t dtype;
} wf__encoder_frame;
/* x [count][stride]: the frames as floats, then zeros. Values that are infinite or beyond
 * 1e20 become NaN. */
int wf__transducer_load(const wf__encoder_frame *frames, uint32_t count, uint32_t columns, float *x,
                        uint32_t stride, void *stream);

/* A stateless predictor: to[i] = relu(bias + the sum, over the places of the context, of
 * places[place][token]), as integers for the next product. `tokens`: [count][context]; places:
 * [context][num_tokens][stride]; bias: [stride]. */
int wf__transducer_predict(const int32_t *tokens, wf__row_count count, uint32_t context,
                           const float *places, uint32_t num_tokens, const float *bias,
                           uint32_t stride, wf__sliced to, void *stream);
/* tokens [count][context]: contexts number first, first + 1, ... of a stateless predictor; the
 * newest token is the last digit to the base `base`. Digits from num_tokens on are no tokens. */
int wf__transducer_list(uint64_t first, uint32_t count, uint32_t context, uint32_t base,
                        uint32_t num_tokens, int32_t *tokens, void *stream);

/* to[i] = tanh or relu of the sum of the two rows, as integers for the output's product. */
int wf__transducer_hidden(const wf__joiner_row *rows, wf__row_count count, uint32_t stride,
                          const float *encoder, const float *predictor, int relu, wf__sliced to,
                          void *stream);
/* What makes log-probabilities of logits: (logit - most) - log_sum. */
typedef struct wf__softmax {
  wf__bad_logit bad;
  float most, log_sum;
  float kth; /* no more than the most_tokens-th largest of the tokens' logits, without the blank */
} wf__softmax;
typedef struct wf__row_done {
  wf__softmax tokens, durations;
} wf__row_done;

/* Logits --> log-probabilities --> answers: of each row those whose candidates can cost at most `beam` more than the best candidate or waiting token
 * of the search, and the blank's. */
typedef struct wf__answer_work {
  const wf__joiner_row *rows; /* [count] */
  wf__row_count count;
  uint32_t num_tokens, num_durations, blank;
  wf__score_cut cut;
  uint32_t unused;         /* no padding: recorded rounds are compared as bytes */
  const float *logits;     /* [count][num_tokens + num_durations] */
  wf__row_done *rows_done; /* [count] scratch */
  wf__answers answers;
} wf__answer_work;
int wf__transducer_select(const wf__answer_work *work, void *stream);
/* Has a model so many tokens that blocks answer, not warps? */
int wf__transducer_is_wide(uint32_t num_tokens, uint32_t num_durations);

#ifdef __cplusplus
}
#endif
#endif
