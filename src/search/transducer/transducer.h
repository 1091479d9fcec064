/* transducer.h - a transducer model from the inside: what answers for its predictor and its joiner.
 *
 *   encoder outputs --encode--> [frames][encoder_width]      once for an utterance
 *   context         --predict-> [width], and the next state  once for a context (predictions.h)
 *   frame, context  --join----> logits of the tokens, then of the durations
 *
 * A predictor context is a 64-bit number that depends on the tokens alone: a stateless predictor's
 * last tokens as digits, the newest one last; else a hash of all tokens. So contexts may break
 * ties, and are the same numbers on any backend. */
#ifndef WF_SEARCH_TRANSDUCER_TRANSDUCER_H
#define WF_SEARCH_TRANSDUCER_TRANSDUCER_H

#include <stdatomic.h>

#include "lm/rnnlm.h"
#include "math/hash.h"

struct wf__network; /* network.h: the weights of a built-in model */

/* Scratch memory of one search for a model's computations. */
typedef struct wf__transducer_work {
  WF__VEC(float) floats, outputs;
  WF__VEC(int32_t) slices; /* of exact products */
  wf__rnn_work rnn;
} wf__transducer_work;

/* Contexts to predict: stateless ones are `tokens` [count][context_size], oldest first; others are
 * tokens [count] after the states from[i], and need to[i] as well as rows[i]. */
typedef struct wf__predictor_batch {
  size_t count;
  const int32_t *tokens;
  const float **from;
  float **rows, **to;
} wf__predictor_batch;

typedef struct wf__transducer_ops {
  wf_status (*encode)(const wf_transducer *model, const wf_scores *scores, float *out,
                      wf__transducer_work *work, wf_error *err);
  wf_status (*predict)(const wf_transducer *model, const wf__predictor_batch *batch,
                       wf__transducer_work *work, wf_error *err);
  /* encoders[i]: the row of a frame. */
  wf_status (*join)(const wf_transducer *model, const float *const *encoders,
                    const float *const *rows, size_t count, float *logits,
                    wf__transducer_work *work, wf_error *err);
} wf__transducer_ops;

struct wf_transducer {
  atomic_int refs;
  int32_t num_tokens, num_durations, blank, encoder_size;
  int32_t context_size; /* 0: the predictor has states */
  int32_t first_token;  /* of the places before the start, except the newest, which is the blank */
  size_t width, encoder_width, state_floats;
  const wf__transducer_ops *ops;
  struct wf__network *network; /* NULL: functions */
  wf_transducer_parts parts;
};

static inline size_t wf__transducer_num_logits(const wf_transducer *model) {
  return (size_t)model->num_tokens + (size_t)model->num_durations;
}

/* --- contexts ---------------------------------------------------------------------------- */

/* Digits are tokens, and num_tokens for places before the start. */
static inline uint64_t wf__context_base(const wf_transducer *model) {
  return (uint64_t)model->num_tokens + 1;
}

static inline uint64_t wf__context_after(const wf_transducer *model, uint64_t context,
                                         int32_t token) {
  if (model->context_size == 0) return wf__hash_combine(context, (uint64_t)token) & INT64_MAX;
  uint64_t base = wf__context_base(model), high = 1;
  for (int32_t i = 1; i < model->context_size; i++) high *= base;
  return context % high * base + (uint64_t)token;
}

static inline uint64_t wf__context_start(const wf_transducer *model) {
  uint64_t context = 0;
  for (int32_t i = 1; i < model->context_size; i++)
    context = context * wf__context_base(model) + (uint64_t)model->first_token;
  return model->context_size == 0 ? 0 : context * wf__context_base(model) + (uint64_t)model->blank;
}

/* transducer.c: wf_transducer_open of a file that is open. */
wf_status wf__transducer_read(const wf__input *file, const wf_transducer_options *options,
                              wf_transducer **out, wf_error *err);

#endif
