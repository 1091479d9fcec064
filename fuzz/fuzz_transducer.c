/* fuzz_transducer.c - reads arbitrary bytes as a transducer in a safetensors file. An accepted
 * model must give log-probabilities that are not NaN, or an error. */
#include <math.h>
#include <stdlib.h>

#include "transducer/predictions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
  if (!holds) abort();
}

static void use(const wf_transducer *model) {
  wf__predictions p;
  wf_error err;
  uint32_t start, next;
  const float *scores;
  int32_t token = model->num_tokens - 1;
  float *frame = calloc((size_t)model->encoder_size, sizeof *frame);
  wf_scores encoder = {.data = frame,
                       .num_frames = 1,
                       .num_columns = model->encoder_size,
                       .stride = model->encoder_size};
  wf__predictions_init(&p, model);
  check(frame != NULL && wf__predictions_take(&p, &encoder, 0, &err) == WF_OK &&
        wf__predictions_start(&p, &start, &err) == WF_OK);
  wf_status status = wf__predictions_score(&p, 0, &start, 1, &scores, &err);
  check(status == WF_OK || status == WF_ERR_ARGUMENT);
  if (status == WF_OK) {
    for (size_t i = 0; i < wf__transducer_num_logits(model); i++) check(!isnan(scores[i]));
    uint64_t context = wf__context_after(model, wf__context_start(model), token);
    check(wf__predictions_number(&p, context, start, token, &next, &err) == WF_OK);
    status = wf__predictions_score(&p, 0, &next, 1, &scores, &err);
    check(status == WF_OK || status == WF_ERR_ARGUMENT);
  }
  wf__predictions_free(&p);
  free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  wf__input input = {.data = data, .size = size, .path = "input"};
  wf_error err;
  wf_transducer_options options;
  wf_transducer *model;
  wf_transducer_options_init(&options);
  wf_status status = wf__transducer_read(&input, &options, &model, &err);
  check((status == WF_OK) == (model != NULL));
  if (model != NULL) use(model);
  wf_transducer_free(model);
  return 0;
}
