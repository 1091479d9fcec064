/* rnnlm_update.h - stochastic gradient descent, one sentence at a time, for rnnlm_train.c and its
 * test. */
#ifndef WF_LM_RNNLM_UPDATE_H
#define WF_LM_RNNLM_UPDATE_H

#include "lm/rnnlm.h"

enum {
  WF__RNN_SEGMENT = 128
}; /* words through which gradients flow back; longer sentences are cut */

typedef struct wf__rnn_rates {
  float weights, cells; /* learning rates */
  float weights_l2, cells_l2;
  float clip; /* bound of each gradient at a hidden unit or an output score */
} wf__rnn_rates;

/* A thread's activations and gradients of a segment: rows of padded(H) floats, all from one
 * allocation. */
typedef struct wf__rnn_tape {
  float *memory;
  float *hidden; /* [SEGMENT + 1] */
  float *delta;  /* [SEGMENT] gradient at the hidden vector, then at the layer's input */
  float *reset, *update, *fresh, *scaled; /* gru: [SEGMENT] gates r, u, candidate c, r h */
  float *d_reset, *d_update, *d_fresh;    /* gru: [SEGMENT] gradients at their sums */
  float *back;                            /* [3] vectors of the backward pass */
} wf__rnn_tape;
wf_status wf__rnn_tape_init(const wf_rnnlm *lm, wf__rnn_tape *tape, wf_error *err);
void wf__rnn_tape_free(wf__rnn_tape *tape);

/* Moves the weights towards predicting words[1 .. size) each from those before it; words[0] is <s>.
 * Hierarchical softmax of arity 2, one sigmoid or plain gru layer. Returns the cost of these words
 * (nats) under the weights as they were met. Several threads may do this on one model: their writes
 * may overwrite one another, which costs little (Recht et al., "Hogwild!", 2011) but makes the
 * result depend on timing. */
double wf__rnn_update_estimates(wf_rnnlm *lm, const wf__rnn_rates *rates, wf__rnn_tape *tape,
                                const int32_t *words, size_t size);

#endif
