/* network.h - the weights of a built-in model: a stateless or an LSTM predictor, and a joiner
 * (docs/reference/transducers.md has the tensors and formulas).
 *
 *   encoder row = We enc + b          predictor row = Wp pred + bp
 *   logits      = Wo f(encoder row + predictor row) + bo */
#ifndef WF_SEARCH_TRANSDUCER_NETWORK_H
#define WF_SEARCH_TRANSDUCER_NETWORK_H

#include "search/transducer/transducer.h"

struct wf__network {
  wf_rnnlm *lstm;           /* NULL: stateless */
  wf__rnn_matrix embedding; /* stateless: [V][E] */
  wf__rnn_matrix conv, encoder, predictor, output;
  float *conv_bias, *encoder_bias, *predictor_bias, *output_bias; /* padded; zeros if missing */
  bool relu;
  /* For exact products: encoder, predictor, output; of a stateless predictor a matrix for each
   * place of the context, the columns of `conv` that its embedding meets. */
  wf__slice_matrix *slices, *places;
  size_t num_slices;
  float *memory; /* of all of these, but of `lstm` */
  uint64_t num_floats, used;
};

/* Reads the weights, and sets what the model has except `refs`. After an error, too, the caller
 * frees model->network. */
wf_status wf__network_read(const wf__input *file, const wf_transducer_options *options,
                           wf_transducer *model, wf_error *err);
void wf__network_free(struct wf__network *network);
uint64_t wf__network_bytes(const struct wf__network *network);

#endif
