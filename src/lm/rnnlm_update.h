/* rnnlm_update.h - stochastic gradient descent, one sentence at a time, for rnnlm_train.c and its
 * test. */
#ifndef WF_LM_RNNLM_UPDATE_H
#define WF_LM_RNNLM_UPDATE_H

#include "lm/rnnlm.h"

/* Truncated backpropagation through time: longer sentences are cut into segments of this many
 * words. */
enum { WF__RNN_SEGMENT = 128 };

typedef struct wf__rnn_rates {
  float weights, cells; /* learning rates */
  float weights_l2, cells_l2;
  float clip; /* bound on the magnitude of each gradient at a hidden unit or an output score */
} wf__rnn_rates;

/* Activations and gradients of a segment, for one thread: rows of padded(H) floats, all in one
 * allocation. */
typedef struct wf__rnn_tape {
  float *memory;
  float *hidden; /* [SEGMENT + 1] */
  float *delta;  /* [SEGMENT] gradient at the hidden vector, later at the layer's input */
  float *reset, *update, *fresh, *scaled; /* gru: [SEGMENT] gates r, u, candidate c, r h */
  float *d_reset, *d_update, *d_fresh;    /* gru: [SEGMENT] gradients before the activations */
  float *back;                            /* [3] vectors of the backward pass */
} wf__rnn_tape;
wf_status wf__rnn_tape_init(const wf_rnnlm *lm, wf__rnn_tape *tape, wf_error *err);
void wf__rnn_tape_free(wf__rnn_tape *tape);

/* Trains on one sentence: words[0] is <s>, and each of words[1 .. size) is predicted from the words
 * before it. For a hierarchical softmax of arity 2 and one sigmoid or plain gru layer. Returns the
 * cost of these words in nats, each under the weights at the time. Several threads may train one
 * model at a time without locks (Recht et al., "Hogwild!", 2011). Lost updates do little harm, but
 * make the result depend on timing. */
double wf__rnn_update_estimates(wf_rnnlm *lm, const wf__rnn_rates *rates, wf__rnn_tape *tape,
                                const int32_t *words, size_t size);

#endif
