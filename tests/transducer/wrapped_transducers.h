/* wrapped_transducers.h - a built-in transducer behind functions: the same logits, bit for bit, so
 * that searches with both must have the same results. */
#ifndef TESTS_WRAPPED_TRANSDUCERS_H
#define TESTS_WRAPPED_TRANSDUCERS_H

#include "search/transducer/transducer.h"
#include "testing.h"

static inline bool wrapped_predict(void *user, const wf_predictor_rows *rows) {
  const wf_transducer *model = user;
  wf__transducer_work work = {0};
  wf_error err = {0};
  const float **from = malloc((rows->count + 1) * sizeof *from);
  float **to = malloc((rows->count + 1) * sizeof *to),
        **out = malloc((rows->count + 1) * sizeof *out);
  for (size_t i = 0; i < rows->count; i++) {
    from[i] = rows->states + i * model->state_floats;
    to[i] = rows->next_states + i * model->state_floats;
    out[i] = rows->outputs + i * model->width;
  }
  const wf__predictor_batch batch = {rows->count, rows->tokens, from, out, to};
  const wf_status status = model->ops->predict(model, &batch, &work, &err);
  wf__vec_free(&work.floats);
  wf__vec_free(&work.outputs);
  wf__vec_free(&work.slices);
  wf__rnn_work_free(&work.rnn);
  free(from);
  free(to);
  free(out);
  return status == WF_OK;
}

static inline bool wrapped_join(void *user, const wf_joiner_rows *rows) {
  const wf_transducer *model = user;
  wf__transducer_work work = {0};
  wf_error err = {0};
  const float **encoders = malloc((rows->count + 1) * sizeof *encoders),
              **predictors = malloc((rows->count + 1) * sizeof *predictors);
  float *parts = malloc((rows->count + 1) * model->encoder_width * sizeof *parts);
  const wf_scores frames = {.data = rows->encoder,
                            .num_frames = (int64_t)rows->count,
                            .num_columns = model->encoder_size,
                            .stride = model->encoder_size,
                            .dtype = WF_FLOAT32};
  for (size_t i = 0; i < rows->count; i++) {
    encoders[i] = parts + i * model->encoder_width;
    predictors[i] = rows->predictor + i * model->width;
  }
  wf_status status = model->ops->encode(model, &frames, parts, &work, &err);
  if (status == WF_OK)
    status = model->ops->join(model, encoders, predictors, rows->count, rows->logits, &work, &err);
  wf__vec_free(&work.floats);
  wf__vec_free(&work.outputs);
  wf__vec_free(&work.slices);
  wf__rnn_work_free(&work.rnn);
  free(encoders);
  free(predictors);
  free(parts);
  return status == WF_OK;
}

/* The model must outlive the wrapped one. */
static inline wf_transducer *wrapped_transducer(const wf_transducer *model) {
  wf_transducer_parts parts;
  wf_transducer *wrapped;
  wf_error err = {0};
  wf_transducer_parts_init(&parts);
  parts.num_tokens = model->num_tokens;
  parts.num_durations = model->num_durations;
  parts.blank = model->blank;
  parts.encoder_size = model->encoder_size;
  parts.predictor_size = (int32_t)model->width;
  parts.context_size = model->context_size;
  parts.state_size = (int32_t)model->state_floats;
  parts.predict = wrapped_predict;
  parts.join = wrapped_join;
  parts.user = (void *)(uintptr_t)model;
  assert_ok(wf_transducer_create(&parts, &wrapped, &err));
  wrapped->first_token = model->first_token;
  return wrapped;
}

#endif
