/* predictions.c - runs predictor and joiner for the contexts of a search. */
#include "transducer/predictions.h"

#include "math/score.h"

#define NONE UINT32_MAX

enum { MOST_FLOATS = 1 << 22 };

void wf__predictions_init(wf__predictions *p, const wf_transducer *model) {
  *p = (wf__predictions){.model = model, .most_floats = MOST_FLOATS};
}

void wf__predictions_free(wf__predictions *p) {
  wf__map64_free(&p->numbers);
  wf__vec_free(&p->contexts);
  wf__vec_free(&p->tokens);
  wf__vec_free(&p->parents);
  wf__vec_free(&p->done);
  wf__vec_free(&p->rows);
  wf__vec_free(&p->states);
  wf__vec_free(&p->work.floats);
  wf__vec_free(&p->work.outputs);
  wf__rnn_work_free(&p->work.rnn);
  wf__vec_free(&p->encoder);
  wf__vec_free(&p->logits);
  wf__vec_free(&p->terms);
  wf__vec_free(&p->pending);
  wf__vec_free(&p->digits);
  wf__vec_free(&p->from);
  wf__vec_free(&p->to);
  wf__vec_free(&p->to_rows);
}

wf_status wf__predictions_take(wf__predictions *p, const wf_scores *scores, int64_t first,
                               wf_error *err) {
  p->first_frame = first;
  p->encoder.size = 0;
  WF__TRY(wf__vec_grow(&p->encoder, (uint64_t)scores->num_frames * p->model->encoder_width + 1,
                       "encoder outputs", err));
  return p->model->ops->encode(p->model, scores, p->encoder.data, &p->work, err);
}

static wf_status add(wf__predictions *p, uint64_t context, uint32_t parent, int32_t token,
                     uint32_t *number, wf_error *err) {
  const wf_transducer *model = p->model;
  bool fresh;
  WF__TRY(wf__map64_insert(&p->numbers, context, (uint32_t)p->contexts.size, number, &fresh,
                           "predictor contexts", err));
  if (!fresh) return WF_OK;
  WF__TRY(wf__vec_grow(&p->rows, model->width, "predictor contexts", err));
  WF__TRY(wf__vec_grow(&p->states, model->state_floats + 1, "predictor contexts", err));
  WF__TRY(wf__vec_push(&p->tokens, token, "predictor contexts", err));
  WF__TRY(wf__vec_push(&p->parents, parent, "predictor contexts", err));
  WF__TRY(wf__vec_push(&p->done, false, "predictor contexts", err));
  WF__TRY(wf__vec_push(&p->contexts, context, "predictor contexts", err));
  p->rows.size += model->width;
  p->states.size += model->state_floats;
  return WF_OK;
}

wf_status wf__predictions_start(wf__predictions *p, uint32_t *number, wf_error *err) {
  return add(p, wf__context_start(p->model), NONE, p->model->blank, number, err);
}

wf_status wf__predictions_number(wf__predictions *p, uint64_t context, uint32_t parent,
                                 int32_t token, uint32_t *number, wf_error *err) {
  return add(p, context, parent, token, number, err);
}

/* --- the predictor ----------------------------------------------------------------------- */

static wf_status push_tokens(wf__predictions *p, uint32_t number, wf_error *err) {
  const wf_transducer *model = p->model;
  uint64_t context = p->contexts.data[number], base = wf__context_base(model);
  size_t size = (size_t)model->context_size;
  if (size == 0) return wf__vec_push(&p->digits, p->tokens.data[number], "a predictor", err);
  WF__TRY(wf__vec_grow(&p->digits, size, "a predictor", err));
  for (size_t i = size; i-- > 0; context /= base)
    p->digits.data[p->digits.size + i] = (int32_t)(context % base);
  p->digits.size += size;
  return WF_OK;
}

/* Runs the predictor for those of the contexts that are not done. */
static wf_status predict(wf__predictions *p, const uint32_t *numbers, size_t count, wf_error *err) {
  const wf_transducer *model = p->model;
  size_t state = model->state_floats;
  p->pending.size = p->digits.size = p->from.size = p->to.size = p->to_rows.size = 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t number = numbers[i];
    if (p->done.data[number]) continue;
    uint32_t parent = p->parents.data[number];
    float *to = p->states.data + number * state;
    if (parent == NONE) memset(to, 0, state * sizeof *to);
    WF__TRY(push_tokens(p, number, err));
    WF__TRY(wf__vec_push(&p->pending, number, "a predictor", err));
    WF__TRY(wf__vec_push(&p->to, to, "a predictor", err));
    WF__TRY(wf__vec_push(&p->to_rows, p->rows.data + number * model->width, "a predictor", err));
    WF__TRY(wf__vec_push(&p->from,
                         (const float *)(parent == NONE ? to : p->states.data + parent * state),
                         "a predictor", err));
  }
  if (p->pending.size == 0) return WF_OK;
  wf__predictor_batch batch = {.count = p->pending.size,
                               .tokens = p->digits.data,
                               .from = p->from.data,
                               .rows = p->to_rows.data,
                               .to = p->to.data};
  WF__TRY(model->ops->predict(model, &batch, &p->work, err));
  for (size_t i = 0; i < p->pending.size; i++) p->done.data[p->pending.data[i]] = true;
  return WF_OK;
}

/* --- the joiner -------------------------------------------------------------------------- */

/* Makes log-probabilities of logits. Sums in the order of rnnlm_math.h. */
static wf_status normalise(wf__predictions *p, float *logits, size_t count, const char *what,
                           int64_t frame, wf_error *err) {
  size_t padded = wf__padded(count);
  float most = -INFINITY, *terms = p->terms.data, *ones = terms + padded;
  for (size_t i = 0; i < count; i++) {
    if (!wf__score_usable(logits[i]))
      return wf__fail(err, WF_ERR_ARGUMENT, "frame %lld: the logit of %s %zu is %g",
                      (long long)frame, what, i, (double)logits[i]);
    most = logits[i] > most ? logits[i] : most;
  }
  if (most == -INFINITY)
    return wf__fail(err, WF_ERR_ARGUMENT, "frame %lld: the logits of all %ss are -infinity",
                    (long long)frame, what);
  for (size_t i = 0; i < padded; i++) {
    terms[i] = i < count ? logits[i] - most : 0;
    ones[i] = i < count;
  }
  wf__vec_exp(terms, padded);
  float log_sum = logf(wf__dot(terms, ones, padded));
  for (size_t i = 0; i < count; i++) logits[i] = (logits[i] - most) - log_sum;
  return WF_OK;
}

wf_status wf__predictions_score(wf__predictions *p, int64_t frame, const uint32_t *numbers,
                                size_t count, const float **out, wf_error *err) {
  const wf_transducer *model = p->model;
  size_t num_tokens = (size_t)model->num_tokens, num_durations = (size_t)model->num_durations,
         size = num_tokens + num_durations;
  WF__TRY(predict(p, numbers, count, err));
  p->logits.size = p->terms.size = p->from.size = 0;
  WF__TRY(wf__vec_grow(&p->logits, count * size, "a joiner", err));
  WF__TRY(wf__vec_grow(&p->terms, 2 * wf__padded(size), "a joiner", err));
  WF__TRY(wf__vec_grow(&p->from, count, "a joiner", err));
  for (size_t i = 0; i < count; i++) p->from.data[i] = p->rows.data + numbers[i] * model->width;
  WF__TRY(model->ops->join(
      model, p->encoder.data + (uint64_t)(frame - p->first_frame) * model->encoder_width,
      p->from.data, count, p->logits.data, &p->work, err));
  for (size_t i = 0; i < count; i++) {
    float *row = p->logits.data + i * size;
    WF__TRY(normalise(p, row, num_tokens, "token", frame, err));
    if (num_durations > 0)
      WF__TRY(normalise(p, row + num_tokens, num_durations, "duration", frame, err));
  }
  *out = p->logits.data;
  return WF_OK;
}

/* --- dropping contexts ------------------------------------------------------------------- */

bool wf__predictions_full(const wf__predictions *p) {
  return p->rows.size + p->states.size > p->most_floats;
}

static void move(wf__predictions *p, uint32_t from, uint32_t to) {
  size_t width = p->model->width, state = p->model->state_floats;
  p->contexts.data[to] = p->contexts.data[from];
  p->tokens.data[to] = p->tokens.data[from];
  p->parents.data[to] = p->parents.data[from];
  p->done.data[to] = p->done.data[from];
  memmove(p->rows.data + to * width, p->rows.data + from * width, width * sizeof(float));
  if (state > 0)
    memmove(p->states.data + to * state, p->states.data + from * state, state * sizeof(float));
}

wf_status wf__predictions_keep(wf__predictions *p, uint32_t *const *numbers, size_t count,
                               wf_error *err) {
  uint64_t size = p->contexts.size;
  uint32_t *moved = wf__alloc(size, sizeof *moved), kept = 0, number;
  if (moved == NULL) return wf__fail_memory(err, size * sizeof *moved, "predictor contexts");
  for (uint64_t i = 0; i < size; i++) moved[i] = NONE;
  for (size_t i = 0; i < count; i++) {
    uint32_t at = *numbers[i];
    moved[at] = 0;
    if (!p->done.data[at] && p->parents.data[at] != NONE) moved[p->parents.data[at]] = 0;
  }
  wf__map64_clear(&p->numbers);
  wf_status status = WF_OK;
  for (uint32_t i = 0; i < size && status == WF_OK; i++) {
    if (moved[i] == NONE) continue;
    move(p, i, moved[i] = kept);
    status = wf__map64_insert(&p->numbers, p->contexts.data[kept], kept, &number, NULL,
                              "predictor contexts", err);
    kept++;
  }
  for (uint32_t i = 0; i < kept; i++) { /* parents come before their children */
    uint32_t parent = p->parents.data[i];
    p->parents.data[i] = parent == NONE || p->done.data[i] ? NONE : moved[parent];
  }
  for (size_t i = 0; i < count; i++) *numbers[i] = moved[*numbers[i]];
  free(moved);
  p->contexts.size = p->tokens.size = p->parents.size = p->done.size = kept;
  p->rows.size = kept * p->model->width;
  p->states.size = kept * p->model->state_floats;
  return status;
}
