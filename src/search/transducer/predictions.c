/* predictions.c - numbers the predictor contexts of a search, and answers its requests with the
 * operations of the model. */
#include "search/transducer/predictions.h"

#include "math/score.h"
#include "math/slices.h"

#define NONE UINT32_MAX

enum {
  MOST_FLOATS = 1 << 22,
  LEAST_CONTEXTS = 128 /* on a device, before those without use are dropped */
};

void wf__predictions_init(wf__predictions *p, const wf_transducer *model, bool on_device) {
  *p = (wf__predictions){.model = model,
                         .on_device = on_device,
                         .most_floats = MOST_FLOATS,
                         .most_contexts = LEAST_CONTEXTS};
}

void wf__predictions_free(wf__predictions *p) {
  wf__map64_free(&p->numbers);
  wf__vec_free(&p->contexts);
  wf__vec_free(&p->tokens);
  wf__vec_free(&p->parents);
  wf__vec_free(&p->done);
  wf__vec_free(&p->rows);
  wf__vec_free(&p->states);
  wf__vec_free(&p->slots);
  wf__vec_free(&p->free_slots);
  wf__vec_free(&p->encoder);
  wf__vec_free(&p->terms);
  wf__vec_free(&p->pending);
  wf__vec_free(&p->digits);
  wf__vec_free(&p->score_rows);
}

void wf__prediction_work_free(wf__prediction_work *work) {
  wf__vec_free(&work->model.floats);
  wf__vec_free(&work->model.outputs);
  wf__vec_free(&work->model.slices);
  wf__rnn_work_free(&work->model.rnn);
  wf__vec_free(&work->logits);
  wf__vec_free(&work->tokens);
  wf__vec_free(&work->from);
  wf__vec_free(&work->encoders);
  wf__vec_free(&work->rows);
  wf__vec_free(&work->to);
  wf__vec_free(&work->to_rows);
}

wf_status wf__predictions_encode(wf__predictions *p, const wf_scores *scores, int64_t first,
                                 wf__prediction_work *work, wf_error *err) {
  p->first_frame = first;
  p->encoder.size = 0;
  WF__TRY(wf__vec_grow(&p->encoder, (uint64_t)scores->num_frames * p->model->encoder_width + 1,
                       "encoder outputs", err));
  return p->model->ops->encode(p->model, scores, p->encoder.data, &work->model, err);
}

/* Reserves the elements of one more context, so that all arrays have it or none. */
static wf_status reserve_context(wf__predictions *p, wf_error *err) {
  static const char what[] = "predictor contexts";
  if (p->on_device) {
    WF__TRY(wf__vec_grow(&p->slots, 1, what, err));
    WF__TRY(wf__vec_grow(&p->free_slots, p->slots.size + 1, what, err)); /* of the slots dropped */
  } else {
    WF__TRY(wf__vec_grow(&p->rows, p->model->width, what, err));
    WF__TRY(wf__vec_grow(&p->states, p->model->state_floats + 1, what, err));
  }
  WF__TRY(wf__vec_grow(&p->tokens, 1, what, err));
  WF__TRY(wf__vec_grow(&p->parents, 1, what, err));
  WF__TRY(wf__vec_grow(&p->done, 1, what, err));
  return wf__vec_grow(&p->contexts, 1, what, err);
}

static wf_status add(wf__predictions *p, uint64_t context, uint32_t parent, int32_t token,
                     uint32_t *number, wf_error *err) {
  const wf_transducer *model = p->model;
  *number = wf__map64_find(&p->numbers, context);
  if (*number != WF__MAP64_NONE) return WF_OK;
  WF__TRY(reserve_context(p, err));
  WF__TRY(wf__map64_insert(&p->numbers, context, (uint32_t)p->contexts.size, number, NULL,
                           "predictor contexts", err));
  if (p->on_device) {
    p->slots.data[p->slots.size++] = NONE;
  } else {
    p->rows.size += model->width;
    p->states.size += model->state_floats;
  }
  p->tokens.data[p->tokens.size++] = token;
  p->parents.data[p->parents.size++] = parent;
  p->done.data[p->done.size++] = false;
  p->contexts.data[p->contexts.size++] = context;
  return WF_OK;
}

wf_status wf__predictions_start(wf__predictions *p, uint32_t *number, wf_error *err) {
  return add(p, wf__context_start(p->model), NONE, p->model->blank, number, err);
}

wf_status wf__predictions_number(wf__predictions *p, uint64_t context, uint32_t parent,
                                 int32_t token, uint32_t *number, wf_error *err) {
  return add(p, context, parent, token, number, err);
}

/* --- requests ---------------------------------------------------------------------------- */

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

wf_status wf__predictions_request(wf__predictions *p, int64_t frame, const uint32_t *numbers,
                                  const wf__row_need *needs, float least_waiting, size_t count,
                                  wf_error *err) {
  p->frame = frame;
  p->requested = numbers;
  p->needs = needs;
  p->least_waiting = least_waiting;
  p->count = count;
  p->pending.size = p->digits.size = 0;
  for (size_t i = 0; i < count; i++) {
    if (p->done.data[numbers[i]]) continue;
    WF__TRY(push_tokens(p, numbers[i], err));
    WF__TRY(wf__vec_push(&p->pending, numbers[i], "a predictor", err));
  }
  return WF_OK;
}

/* Adds the contexts that wait for the predictor. */
static wf_status gather_contexts(wf__predictions *p, wf__prediction_work *work, wf_error *err) {
  size_t width = p->model->width, state = p->model->state_floats, count = p->pending.size;
  WF__TRY(wf__vec_grow(&work->tokens, p->digits.size, "a predictor", err));
  WF__TRY(wf__vec_grow(&work->from, count, "a predictor", err));
  WF__TRY(wf__vec_grow(&work->to, count, "a predictor", err));
  WF__TRY(wf__vec_grow(&work->to_rows, count, "a predictor", err));
  for (uint64_t i = 0; i < p->digits.size; i++)
    work->tokens.data[work->tokens.size++] = p->digits.data[i];
  for (size_t i = 0; i < count; i++) {
    uint32_t number = p->pending.data[i], parent = p->parents.data[number];
    float *to = p->states.data + number * state;
    if (parent == NONE) memset(to, 0, state * sizeof *to);
    work->from.data[work->from.size++] = parent == NONE ? to : p->states.data + parent * state;
    work->to.data[work->to.size++] = to;
    work->to_rows.data[work->to_rows.size++] = p->rows.data + number * width;
  }
  return WF_OK;
}

static wf_status predict(wf__predictions *const *all, size_t count, wf__prediction_work *work,
                         wf_error *err) {
  const wf_transducer *model = all[0]->model;
  work->tokens.size = work->from.size = work->to.size = work->to_rows.size = 0;
  for (size_t i = 0; i < count; i++) WF__TRY(gather_contexts(all[i], work, err));
  if (work->from.size == 0) return WF_OK;
  wf__predictor_batch batch = {.count = work->from.size,
                               .tokens = work->tokens.data,
                               .from = work->from.data,
                               .rows = work->to_rows.data,
                               .to = work->to.data};
  WF__TRY(model->ops->predict(model, &batch, &work->model, err));
  for (size_t i = 0; i < count; i++)
    for (uint64_t k = 0; k < all[i]->pending.size; k++)
      all[i]->done.data[all[i]->pending.data[k]] = true;
  return WF_OK;
}

/* Adds the rows that wait for the joiner. */
static wf_status gather_rows(const wf__predictions *p, wf__prediction_work *work, wf_error *err) {
  const float *encoder =
      p->encoder.data + (uint64_t)(p->frame - p->first_frame) * p->model->encoder_width;
  WF__TRY(wf__vec_grow(&work->encoders, p->count, "a joiner", err));
  WF__TRY(wf__vec_grow(&work->rows, p->count, "a joiner", err));
  for (size_t i = 0; i < p->count; i++) {
    work->encoders.data[work->encoders.size++] = encoder;
    work->rows.data[work->rows.size++] = p->rows.data + p->requested[i] * p->model->width;
  }
  return WF_OK;
}

wf_status wf__predictions_answer(wf__predictions *const *all, size_t count,
                                 wf__prediction_work *work, wf_error *err) {
  if (count == 0) return WF_OK;
  const wf_transducer *model = all[0]->model;
  size_t size = wf__transducer_num_logits(model), at = 0;
  WF__TRY(predict(all, count, work, err));
  work->encoders.size = work->rows.size = work->logits.size = 0;
  for (size_t i = 0; i < count; i++) WF__TRY(gather_rows(all[i], work, err));
  WF__TRY(wf__vec_grow(&work->logits, work->rows.size * size, "a joiner", err));
  WF__TRY(model->ops->join(model, work->encoders.data, work->rows.data, work->rows.size,
                           work->logits.data, &work->model, err));
  for (size_t i = 0; i < count; at += all[i++]->count)
    all[i]->logits = work->logits.data + at * size;
  return WF_OK;
}

/* --- answers ----------------------------------------------------------------------------- */

/* The sum of x[0], x[1], ...: in 32 parts, then these in pairs, as the lanes of a GPU's warp do. */
static float sum_of(const float *x, size_t count) {
  float parts[32] = {0};
  size_t first = 0;
  for (; first + 32 <= count; first += 32)
    for (size_t i = 0; i < 32; i++) parts[i] += x[first + i];
  for (size_t i = 0; first + i < count; i++) parts[i] += x[first + i];
  for (size_t d = 16; d > 0; d /= 2)
    for (size_t i = 0; i < d; i++) parts[i] += parts[i + d];
  return parts[0];
}

/* Makes log-probabilities of logits. */
static wf_status normalise(wf__predictions *p, float *logits, size_t count, const char *what,
                           int64_t frame, wf_error *err) {
  size_t padded = wf__padded(count);
  float most = -INFINITY, *terms = p->terms.data;
  for (size_t i = 0; i < count; i++) {
    if (!wf__score_usable(logits[i]))
      return wf__fail(err, WF_ERR_ARGUMENT, "frame %lld: the logit of %s %zu is %g",
                      (long long)frame, what, i, (double)logits[i]);
    most = logits[i] > most ? logits[i] : most;
  }
  if (most == -INFINITY)
    return wf__fail(err, WF_ERR_ARGUMENT, "frame %lld: the logits of all %ss are -infinity",
                    (long long)frame, what);
  for (size_t i = 0; i < padded; i++) terms[i] = i < count ? logits[i] - most : 0;
  wf__vec_exp(terms, padded);
  float log_sum = wf__ln(sum_of(terms, count));
  for (size_t i = 0; i < count; i++) logits[i] = (logits[i] - most) - log_sum;
  return WF_OK;
}

wf_status wf__fail_bad_logit(const wf_transducer *model, int64_t frame, const wf__bad_logit *bad,
                             wf_error *err) {
  bool duration = bad->column >= model->num_tokens;
  const char *what = duration ? "duration" : "token";
  if (bad->value == -INFINITY)
    return wf__fail(err, WF_ERR_ARGUMENT, "frame %lld: the logits of all %ss are -infinity",
                    (long long)frame, what);
  return wf__fail(err, WF_ERR_ARGUMENT, "frame %lld: the logit of %s %d is %g", (long long)frame,
                  what, bad->column - (duration ? model->num_tokens : 0), (double)bad->value);
}

static wf_status take_logits(wf__predictions *p, size_t i, wf__score_row *row, wf_error *err) {
  size_t num_tokens = (size_t)p->model->num_tokens, num_durations = (size_t)p->model->num_durations;
  float *logits = p->logits + i * (num_tokens + num_durations);
  WF__TRY(normalise(p, logits, num_tokens, "token", p->frame, err));
  if (num_durations > 0)
    WF__TRY(normalise(p, logits + num_tokens, num_durations, "duration", p->frame, err));
  *row = (wf__score_row){.tokens = logits, .durations = logits + num_tokens};
  return WF_OK;
}

static wf_status take_answer(const wf__predictions *p, uint64_t row, wf__score_row *out,
                             wf_error *err) {
  const wf__answers *a = p->answers;
  const wf__answer_head *head = &a->heads[row];
  if (head->bad.column >= 0) return wf__fail_bad_logit(p->model, p->frame, &head->bad, err);
  *out = (wf__score_row){.durations = a->durations + row * (uint64_t)p->model->num_durations,
                         .entries = a->entries + row * WF__ANSWER_ENTRIES,
                         .num_entries = head->num_entries};
  if (head->num_entries > WF__ANSWER_ENTRIES)
    out->tokens = a->tokens + row * (uint64_t)p->model->num_tokens;
  return WF_OK;
}

wf_status wf__predictions_take(wf__predictions *p, const wf__score_row **out, wf_error *err) {
  p->terms.size = p->score_rows.size = 0;
  WF__TRY(wf__vec_grow(&p->score_rows, p->count, "a joiner", err));
  if (!p->on_device)
    WF__TRY(
        wf__vec_grow(&p->terms, wf__padded(wf__transducer_num_logits(p->model)), "a joiner", err));
  for (size_t i = 0; i < p->count; i++)
    WF__TRY(p->on_device ? take_answer(p, p->first_row + i, &p->score_rows.data[i], err)
                         : take_logits(p, i, &p->score_rows.data[i], err));
  *out = p->score_rows.data;
  return WF_OK;
}

/* --- dropping contexts ------------------------------------------------------------------- */

bool wf__predictions_full(const wf__predictions *p) {
  return p->on_device ? p->contexts.size > p->most_contexts
                      : p->rows.size + p->states.size > p->most_floats;
}

static void move(wf__predictions *p, uint32_t from, uint32_t to) {
  size_t width = p->model->width, state = p->model->state_floats;
  p->contexts.data[to] = p->contexts.data[from];
  p->tokens.data[to] = p->tokens.data[from];
  p->parents.data[to] = p->parents.data[from];
  p->done.data[to] = p->done.data[from];
  if (p->on_device) {
    p->slots.data[to] = p->slots.data[from];
    return;
  }
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
    if (moved[i] == NONE) {
      if (p->on_device && p->slots.data[i] != NONE)
        status = wf__vec_push(&p->free_slots, p->slots.data[i], "predictor contexts", err);
      continue;
    }
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
  if (p->on_device) {
    p->slots.size = kept;
    p->most_contexts = kept < LEAST_CONTEXTS / 2 ? LEAST_CONTEXTS : 2 * (uint64_t)kept;
    return status;
  }
  p->rows.size = kept * p->model->width;
  p->states.size = kept * p->model->state_floats;
  return status;
}
