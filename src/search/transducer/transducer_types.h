/* transducer_types.h - types shared by the host code and the GPU kernels of a transducer. */
#ifndef WF_SEARCH_TRANSDUCER_TRANSDUCER_TYPES_H
#define WF_SEARCH_TRANSDUCER_TRANSDUCER_TYPES_H

#include <stdint.h>

/* The first logit of a row that cannot be used. */
typedef struct wf__bad_logit {
  int32_t column; /* -1: there is none */
  float value;    /* -infinity: so are all logits of tokens, or of durations */
} wf__bad_logit;

/* The log-probability of a token, by its column. */
typedef struct wf__score_entry {
  int32_t column;
  float loglike;
} wf__score_entry;

/* What a search knows of the candidates that a row of scores is for, before it has the scores:
 * bounds of their costs, without the model's. */
typedef struct wf__row_need {
  float token; /* no candidate that emits a token costs less; +infinity: there are none */
  float blank; /* one that ends the frame costs this; +infinity: there is none */
  float all;   /* for every token there is a candidate that costs at most this, of one source;
                  +infinity: not known */
} wf__row_need;

/* The options of a search that decide which candidates can matter. */
typedef struct wf__score_cut {
  float acoustic_scale, blank_penalty, beam;
  float lattice_beam; /* what a link may cost above the token that it leads to; 0: no lattice */
  int32_t greedy;
  uint32_t most_tokens; /* of a row, by log-probability; 0: any number */
} wf__score_cut;

/* Answers of a device to many requests, by row. A row with more than WF__ANSWER_ENTRIES entries is
 * dense. */
typedef struct wf__answer_head {
  wf__bad_logit bad;
  uint32_t num_entries;
} wf__answer_head;
#ifndef WF__ANSWER_ENTRIES /* a test makes it small */
#define WF__ANSWER_ENTRIES 256
#endif
typedef struct wf__answers {
  wf__answer_head *heads;
  wf__score_entry *entries;  /* [WF__ANSWER_ENTRIES] a row, by column */
  float *durations, *tokens; /* [num_durations] a row; [num_tokens] a row, of dense ones */
} wf__answers;

#endif
