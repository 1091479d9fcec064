/* function_transducers.h - transducers behind functions whose logits are hashes, and their
 * log-probabilities as inputs of the oracle. */
#ifndef TESTS_FUNCTION_TRANSDUCERS_H
#define TESTS_FUNCTION_TRANSDUCERS_H

#include <math.h>

#include "math/hash.h"
#include "search/transducer/predictions.h"
#include "testing.h"

/* Logits are a function of the frame, the history and the column. */
struct functions {
  uint64_t seed;
  int num_tokens, num_logits, context_size;
  bool coarse; /* few distinct logits, so that costs tie */
};

static inline float logit(const struct functions *f, float frame, float context, int column) {
  uint64_t key = f->seed ^ wf__mix64((uint64_t)(int64_t)frame * 1000003 + (uint64_t)column) ^
                 wf__mix64((uint64_t)(int64_t)context + 77);
  uint64_t random = wf__mix64(key * 0x9e3779b97f4a7c15ULL);
  if (column != 0 && column != f->num_tokens && random % 17 == 0) return -INFINITY;
  return f->coarse ? (float)(random % 4) : (float)(random >> 40) * 0x1p-24f * 6;
}

static inline bool predict(void *user, const wf_predictor_rows *rows) {
  const struct functions *f = user;
  for (size_t i = 0; i < rows->count; i++) {
    float sum = 0;
    for (int k = 0; k < f->context_size; k++)
      sum = sum * 16 + (float)rows->tokens[i * (size_t)f->context_size + (size_t)k];
    if (f->context_size == 0) {
      sum = (float)(((int)rows->states[i] * 31 + rows->tokens[i] + 1) % 65521);
      rows->next_states[i] = sum;
    }
    rows->outputs[i] = sum;
  }
  return true;
}

static inline bool join(void *user, const wf_joiner_rows *rows) {
  const struct functions *f = user;
  for (size_t i = 0; i < rows->count; i++)
    for (int c = 0; c < f->num_logits; c++)
      rows->logits[i * (size_t)f->num_logits + (size_t)c] =
          logit(f, rows->encoder[i], rows->predictor[i], c);
  return true;
}

static inline wf_transducer_parts parts_of(struct functions *f, int num_tokens, int num_durations) {
  wf_transducer_parts parts;
  wf_transducer_parts_init(&parts);
  parts.num_tokens = num_tokens;
  parts.num_durations = num_durations;
  parts.encoder_size = parts.predictor_size = 1;
  parts.context_size = f->context_size;
  parts.state_size = f->context_size == 0;
  parts.predict = predict;
  parts.join = join;
  parts.user = f;
  f->num_tokens = num_tokens;
  f->num_logits = num_tokens + num_durations;
  return parts;
}

/* The library's log-probabilities, which are the oracle's inputs; test_log_probs checks them. */
struct log_probs {
  wf__predictions predictions;
  wf__prediction_work work;
  float *rows[4096];
  size_t num_rows;
  uint64_t keys[4096];
};

static inline const float *log_probs(void *user, int64_t t, const int *history, int size) {
  struct log_probs *l = user;
  const wf_transducer *transducer = l->predictions.model;
  wf_error err = {0};
  uint64_t context = wf__context_start(transducer), key;
  for (int i = 0; i < size; i++) context = wf__context_after(transducer, context, history[i]);
  key = context * 64 + (uint64_t)t;
  for (size_t i = 0; i < l->num_rows; i++)
    if (l->keys[i] == key) return l->rows[i];
  uint32_t number;
  const wf__score_row *scores = NULL;
  context = wf__context_start(transducer);
  assert_ok(wf__predictions_start(&l->predictions, &number, &err));
  for (int i = 0;; i++) {
    wf__predictions *one = &l->predictions;
    assert_ok(wf__predictions_request(one, t, &number, NULL, 0, 1, &err));
    assert_ok(wf__predictions_answer(&one, 1, &l->work, &err));
    assert_ok(wf__predictions_take(one, &scores, &err));
    if (i == size) break;
    context = wf__context_after(transducer, context, history[i]);
    assert_ok(wf__predictions_number(&l->predictions, context, number, history[i], &number, &err));
  }
  size_t bytes = wf__transducer_num_logits(transducer) * sizeof(float);
  assert_true(l->num_rows < 4096);
  l->rows[l->num_rows] = malloc(bytes);
  memcpy(l->rows[l->num_rows], scores->tokens, bytes);
  l->keys[l->num_rows] = key;
  return l->rows[l->num_rows++];
}

static inline void begin_log_probs(struct log_probs *l, const wf_transducer *transducer,
                                   const wf_scores *scores) {
  wf_error err = {0};
  *l = (struct log_probs){0};
  wf__predictions_init(&l->predictions, transducer, false);
  assert_ok(wf__predictions_encode(&l->predictions, scores, 0, &l->work, &err));
}

static inline void end_log_probs(struct log_probs *l) {
  for (size_t i = 0; i < l->num_rows; i++) free(l->rows[i]);
  wf__predictions_free(&l->predictions);
  wf__prediction_work_free(&l->work);
}

#endif
