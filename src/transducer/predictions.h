/* predictions.h - the predictor contexts of one search, and the scores of a frame after them.
 *
 *   numbers    context -> its number, from 0
 *   contexts, tokens, parents, done   by number
 *   rows       [number][width]         the predictor's part of the joiner, once it is done
 *   states     [number][state_floats]  of predictors with states
 *
 * The predictor runs once for each context. Contexts depend on the tokens alone, so they are kept
 * from one utterance to the next until there are too many. */
#ifndef WF_TRANSDUCER_PREDICTIONS_H
#define WF_TRANSDUCER_PREDICTIONS_H

#include "base/map64.h"
#include "transducer/transducer.h"

typedef struct wf__predictions {
  const wf_transducer *model;
  wf__map64 numbers;
  WF__VEC(uint64_t) contexts;
  WF__VEC(int32_t) tokens;   /* that led to the context */
  WF__VEC(uint32_t) parents; /* the context before that token; valid until the context is done */
  WF__VEC(bool) done;
  WF__VEC(float) rows;
  WF__VEC(float) states;
  wf__transducer_work work;
  WF__VEC(float) encoder; /* [frames][encoder_width], from frame `first_frame` on */
  int64_t first_frame;
  uint64_t most_floats;  /* of rows and states, before unused contexts are dropped */
  WF__VEC(float) logits; /* [count][num_logits], of one call */
  WF__VEC(float) terms;  /* scratch: of a sum over tokens or durations */
  WF__VEC(uint32_t) pending;
  WF__VEC(int32_t) digits;
  WF__VEC(const float *) from;
  WF__VEC(float *) to, to_rows;
} wf__predictions;

void wf__predictions_init(wf__predictions *p, const wf_transducer *model);
void wf__predictions_free(wf__predictions *p);
/* Takes encoder outputs: the encoder's part of the joiner for frames from number `first` on. */
wf_status wf__predictions_take(wf__predictions *p, const wf_scores *scores, int64_t first,
                               wf_error *err);
/* The number of the start's context. */
wf_status wf__predictions_start(wf__predictions *p, uint32_t *number, wf_error *err);
/* The number of context `context`, which a token makes of context number `parent`. The parent must
 * be done. */
wf_status wf__predictions_number(wf__predictions *p, uint64_t context, uint32_t parent,
                                 int32_t token, uint32_t *number, wf_error *err);
/* Log-probabilities of one frame after each of the contexts: *out is [count][num_logits], tokens,
 * then durations, valid until the next call. Errors: a logit that is NaN, +infinity or beyond 1e20.
 */
wf_status wf__predictions_score(wf__predictions *p, int64_t frame, const uint32_t *numbers,
                                size_t count, const float **out, wf_error *err);
/* Have so many contexts been kept that those without use should be dropped? */
bool wf__predictions_full(const wf__predictions *p);
/* Drops all contexts except these, and renumbers them: numbers[i] becomes the new number. */
wf_status wf__predictions_keep(wf__predictions *p, uint32_t *const *numbers, size_t count,
                               wf_error *err);

#endif
