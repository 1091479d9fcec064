/* predictions.h - the predictor contexts of one search, and its requests for the scores of a frame
 * after them.
 *
 *   numbers    context -> its number, from 0
 *   contexts, tokens, parents, done   by number
 *   rows       [number][width]         the predictor's part of the joiner, once it is done
 *   states     [number][state_floats]  of predictors with states
 *   slots      by number               where a device has row and state instead
 *
 *   request --> one answer for the requests of many searches --> scores
 *               wf__predictions_answer: the model's operations
 *               transducer_device.h: a GPU, which sends only scores that can matter
 *
 * The predictor runs once for each context. Contexts depend on the tokens alone, so they are kept
 * from one utterance to the next until there are too many. Answers do not depend on which requests
 * are answered together. */
#ifndef WF_SEARCH_TRANSDUCER_PREDICTIONS_H
#define WF_SEARCH_TRANSDUCER_PREDICTIONS_H

#include "base/map64.h"
#include "search/transducer/transducer.h"
#include "search/transducer/transducer_types.h"

/* Log-probabilities of a row. */
typedef struct wf__score_row {
  const float *tokens; /* [num_tokens]; NULL: `entries` has those that can matter, by column */
  const wf__score_entry *entries;
  uint32_t num_entries;
  const float *durations; /* [num_durations] */
} wf__score_row;

typedef struct wf__predictions {
  const wf_transducer *model;
  bool on_device;
  wf__map64 numbers;
  WF__VEC(uint64_t) contexts;
  WF__VEC(int32_t) tokens;   /* that led to the context */
  WF__VEC(uint32_t) parents; /* the context before that token; valid until the context is done */
  WF__VEC(bool) done;
  WF__VEC(float) rows;
  WF__VEC(float) states;
  WF__VEC(uint32_t) slots; /* on a device; NONE: not yet */
  WF__VEC(uint32_t) free_slots;
  uint64_t most_contexts; /* of a device, before those without use are dropped */
  uint64_t most_floats;   /* of rows and states, before unused contexts are dropped */
  WF__VEC(float) encoder; /* [frames][encoder_width], from frame `first_frame` on */
  int64_t first_frame;
  WF__VEC(float) terms; /* scratch: of a sum over tokens or durations */
  /* The request, and its answer. */
  int64_t frame;
  const uint32_t *requested; /* [count] numbers of contexts */
  const wf__row_need *needs; /* [count]; NULL: all scores are needed */
  float least_waiting;       /* the least cost of tokens that wait */
  size_t count;
  WF__VEC(uint32_t) pending;  /* those whose predictor has to run */
  WF__VEC(int32_t) digits;    /* their tokens, as wf__predictor_batch has them */
  float *logits;              /* [count][num_logits] */
  const wf__answers *answers; /* instead, on a device: ... */
  uint64_t first_row;         /* ... from this row on */
  WF__VEC(wf__score_row) score_rows;
} wf__predictions;

/* Scratch memory of wf__predictions_answer, and its answers. */
typedef struct wf__prediction_work {
  wf__transducer_work model;
  WF__VEC(float) logits;
  WF__VEC(int32_t) tokens;
  WF__VEC(const float *) from, encoders, rows;
  WF__VEC(float *) to, to_rows;
} wf__prediction_work;
void wf__prediction_work_free(wf__prediction_work *work);

/* `on_device`: rows and states are in a device's memory. */
void wf__predictions_init(wf__predictions *p, const wf_transducer *model, bool on_device);
void wf__predictions_free(wf__predictions *p);
/* Takes encoder outputs: the encoder's part of the joiner for frames from number `first` on. Not on
 * a device. */
wf_status wf__predictions_encode(wf__predictions *p, const wf_scores *scores, int64_t first,
                                 wf__prediction_work *work, wf_error *err);
/* The number of the start's context. */
wf_status wf__predictions_start(wf__predictions *p, uint32_t *number, wf_error *err);
/* The number of context `context`, which a token makes of context number `parent`. The parent must
 * be done. */
wf_status wf__predictions_number(wf__predictions *p, uint64_t context, uint32_t parent,
                                 int32_t token, uint32_t *number, wf_error *err);
/* Requests the scores of one frame after each of the contexts. `numbers` and `needs` are borrowed
 * until they are taken. `least_waiting`: the least cost of tokens that wait for later frames. */
wf_status wf__predictions_request(wf__predictions *p, int64_t frame, const uint32_t *numbers,
                                  const wf__row_need *needs, float least_waiting, size_t count,
                                  wf_error *err);
/* Answers the requests of `count` searches of one model with its operations. The answers are valid
 * until the next call with this work. */
wf_status wf__predictions_answer(wf__predictions *const *all, size_t count,
                                 wf__prediction_work *work, wf_error *err);
/* The answer: [count] rows of log-probabilities, valid until the next request is answered. Errors:
 * a logit that is NaN, +infinity or beyond 1e20. */
wf_status wf__predictions_take(wf__predictions *p, const wf__score_row **out, wf_error *err);
/* The error of a logit that cannot be used. */
wf_status wf__fail_bad_logit(const wf_transducer *model, int64_t frame, const wf__bad_logit *bad,
                             wf_error *err);
/* Have so many contexts been kept that those without use should be dropped? */
bool wf__predictions_full(const wf__predictions *p);
/* Drops all contexts except these, and renumbers them: numbers[i] becomes the new number. */
wf_status wf__predictions_keep(wf__predictions *p, uint32_t *const *numbers, size_t count,
                               wf_error *err);

#endif
