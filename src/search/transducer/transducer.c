/* transducer.c - models behind two functions of the caller, and models of files. */
#include "search/transducer/network.h"

#include "base/option_tables.h"
#include "math/score.h"

static wf_status new_model(wf_transducer **out, wf_error *err) {
  wf_transducer *model = wf__calloc(1, sizeof *model);
  if (model == NULL) return wf__fail_memory(err, sizeof *model, "a transducer");
  atomic_init(&model->refs, 1);
  *out = model;
  return WF_OK;
}

static wf_status check_sizes(const wf_transducer *model, wf_error *err) {
  if (model->num_tokens < 2 || model->num_tokens > 1 << 24 || model->num_durations < 0 ||
      model->num_durations > 1024 || model->num_durations == 1)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "a transducer of %d tokens and %d durations; at least 2 tokens, and 0 or 2 to "
                    "1024 durations are expected",
                    model->num_tokens, model->num_durations);
  if (model->blank < 0 || model->blank >= model->num_tokens)
    return wf__fail(err, WF_ERR_ARGUMENT, "the blank is column %d, the transducer has %d tokens",
                    model->blank, model->num_tokens);
  if (model->context_size < 0 || model->encoder_size < 1 || model->width < 1)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "a transducer with a context of %d tokens and an encoder size of %d",
                    model->context_size, model->encoder_size);
  uint64_t most = 1;
  for (int32_t i = 0; i < model->context_size; i++) {
    if (most > INT64_MAX / wf__context_base(model))
      return wf__fail(err, WF_ERR_LIMIT, "contexts of %d of %d tokens: more than 2^63",
                      model->context_size, model->num_tokens);
    most *= wf__context_base(model);
  }
  return WF_OK;
}

/* --- functions --------------------------------------------------------------------------- */

static wf_status called(bool good, const char *what, wf_error *err) {
  return good ? WF_OK
              : wf__fail(err, WF_ERR_CANCELLED, "the %s function of the transducer failed", what);
}

static wf_status fn_encode(const wf_transducer *model, const wf_scores *scores, float *out,
                           wf__transducer_work *work, wf_error *err) {
  (void)work;
  for (int64_t t = 0; t < scores->num_frames; t++)
    for (int32_t c = 0; c < model->encoder_size; c++) *out++ = wf__score_at(scores, t, c);
  return WF_OK;
}

static wf_status fn_predict(const wf_transducer *model, const wf__predictor_batch *batch,
                            wf__transducer_work *work, wf_error *err) {
  size_t count = batch->count, state = model->state_floats, width = model->width;
  work->floats.size = 0;
  WF__TRY(wf__vec_grow(&work->floats, count * (2 * state + width) + 1, "a predictor", err));
  float *outputs = work->floats.data, *states = outputs + count * width,
        *next = states + count * state;
  for (size_t i = 0; i < count && state > 0; i++)
    memcpy(states + i * state, batch->from[i], state * sizeof *states);
  wf_predictor_rows rows = {count, batch->tokens, state > 0 ? states : NULL, outputs,
                            state > 0 ? next : NULL};
  WF__TRY(called(model->parts.predict(model->parts.user, &rows), "predictor", err));
  for (size_t i = 0; i < count; i++) {
    memcpy(batch->rows[i], outputs + i * width, width * sizeof *outputs);
    if (state > 0) memcpy(batch->to[i], next + i * state, state * sizeof *next);
  }
  return WF_OK;
}

static wf_status fn_join(const wf_transducer *model, const float *const *encoders,
                         const float *const *rows, size_t count, float *logits,
                         wf__transducer_work *work, wf_error *err) {
  size_t size = model->encoder_width, width = model->width;
  work->floats.size = 0;
  WF__TRY(wf__vec_grow(&work->floats, count * (size + width), "a joiner", err));
  float *frames = work->floats.data, *predictors = frames + count * size;
  for (size_t i = 0; i < count; i++) {
    memcpy(frames + i * size, encoders[i], size * sizeof *frames);
    memcpy(predictors + i * width, rows[i], width * sizeof *predictors);
  }
  wf_joiner_rows request = {count, frames, predictors, logits};
  return called(model->parts.join(model->parts.user, &request), "joiner", err);
}

static const wf__transducer_ops function_ops = {fn_encode, fn_predict, fn_join};

wf_status wf_transducer_create(const wf_transducer_parts *given, wf_transducer **out,
                               wf_error *err) {
  wf_transducer_parts parts = {0};
  wf_transducer *model;
  *out = NULL;
  WF__TRY(wf__struct_check("wf_transducer_parts", given, sizeof parts, err));
  wf__struct_take(given, &parts, sizeof parts);
  if (parts.predict == NULL || parts.join == NULL)
    return wf__fail(err, WF_ERR_ARGUMENT, "a transducer needs a predictor and a joiner function");
  if (parts.predictor_size < 1 || parts.state_size < 0 ||
      (parts.state_size > 0) == (parts.context_size > 0))
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "a transducer has either states or a context of tokens; found predictor_size "
                    "%d, state_size %d, context_size %d",
                    parts.predictor_size, parts.state_size, parts.context_size);
  WF__TRY(new_model(&model, err));
  model->num_tokens = parts.num_tokens;
  model->num_durations = parts.num_durations;
  model->blank = model->first_token = parts.blank;
  model->encoder_size = parts.encoder_size;
  model->context_size = parts.context_size;
  model->encoder_width = (size_t)parts.encoder_size;
  model->width = (size_t)parts.predictor_size;
  model->state_floats = (size_t)parts.state_size;
  model->ops = &function_ops;
  model->parts = parts;
  wf_status status = check_sizes(model, err);
  if (status == WF_OK)
    *out = model;
  else
    wf_transducer_free(model);
  return status;
}

/* --- files ------------------------------------------------------------------------------- */

wf_status wf__transducer_read(const wf__input *file, const wf_transducer_options *options,
                              wf_transducer **out, wf_error *err) {
  wf_transducer *model;
  *out = NULL;
  WF__TRY(new_model(&model, err));
  wf_status status = wf__network_read(file, options, model, err);
  if (status == WF_OK) status = check_sizes(model, err);
  if (status == WF_OK)
    *out = model;
  else
    wf_transducer_free(model);
  return status;
}

wf_status wf_transducer_open(const char *path, const wf_transducer_options *options,
                             wf_transducer **out, wf_error *err) {
  wf_transducer_options o;
  wf__input file = {0};
  *out = NULL;
  WF__TRY(wf__options_take(wf__transducer_table(), options, &o, err));
  WF__TRY(wf__input_open(path, &file, err));
  wf_status status = wf__transducer_read(&file, &o, out, err);
  wf__input_close(&file);
  return status;
}

/* --- all models -------------------------------------------------------------------------- */

wf_transducer *wf_transducer_ref(const wf_transducer *model) {
  wf_transducer *shared = (wf_transducer *)(uintptr_t)model;
  if (shared != NULL) atomic_fetch_add(&shared->refs, 1);
  return shared;
}

void wf_transducer_free(wf_transducer *model) {
  if (model == NULL || atomic_fetch_sub(&model->refs, 1) != 1) return;
  wf__network_free(model->network);
  free(model);
}

wf_status wf_transducer_get_info(const wf_transducer *model, wf_transducer_info *out,
                                 wf_error *err) {
  WF__TRY(wf__struct_check("wf_transducer_info", out, sizeof *out, err));
  wf_transducer_info info = {.num_tokens = model->num_tokens,
                             .num_durations = model->num_durations,
                             .blank = model->blank,
                             .encoder_size = model->encoder_size,
                             .context_size = model->context_size,
                             .num_bytes = sizeof *model + wf__network_bytes(model->network)};
  wf__struct_give(&info, sizeof info, out);
  return WF_OK;
}
