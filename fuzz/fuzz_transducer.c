/* fuzz_transducer.c - reads arbitrary bytes as a transducer in a safetensors file. An accepted
 * model must give log-probabilities that are not NaN, or an error. */
#include <math.h>
#include <stdlib.h>

#include "search/transducer/predictions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
  if (!holds) abort();
}

/* The scores of frame 0 after a context. */
static wf_status score(wf__predictions *p, uint32_t number, wf__prediction_work *work,
                       const wf__score_row **row, wf_error *err) {
  check(wf__predictions_request(p, 0, &number, NULL, 0, 1, err) == WF_OK);
  check(wf__predictions_answer(&p, 1, work, err) == WF_OK);
  wf_status status = wf__predictions_take(p, row, err);
  check(status == WF_OK || status == WF_ERR_ARGUMENT);
  return status;
}

static void use(const wf_transducer *model) {
  wf__predictions p;
  wf__prediction_work work = {0};
  wf_error err;
  uint32_t start, next;
  const wf__score_row *row;
  int32_t token = model->num_tokens - 1;
  float *frame = calloc((size_t)model->encoder_size, sizeof *frame);
  wf_scores encoder = {.data = frame,
                       .num_frames = 1,
                       .num_columns = model->encoder_size,
                       .stride = model->encoder_size};
  wf__predictions_init(&p, model, false);
  check(frame != NULL && wf__predictions_encode(&p, &encoder, 0, &work, &err) == WF_OK &&
        wf__predictions_start(&p, &start, &err) == WF_OK);
  if (score(&p, start, &work, &row, &err) == WF_OK) {
    for (int32_t i = 0; i < model->num_tokens; i++) check(!isnan(row->tokens[i]));
    for (int32_t i = 0; i < model->num_durations; i++) check(!isnan(row->durations[i]));
    uint64_t context = wf__context_after(model, wf__context_start(model), token);
    check(wf__predictions_number(&p, context, start, token, &next, &err) == WF_OK);
    (void)score(&p, next, &work, &row, &err);
  }
  wf__predictions_free(&p);
  wf__prediction_work_free(&work);
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
