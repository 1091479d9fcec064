/* transducer_set.h - tokens of a transducer search, one for each triple (graph state, predictor
 * context, scorer context). */
#ifndef WF_SEARCH_TRANSDUCER_TRANSDUCER_SET_H
#define WF_SEARCH_TRANSDUCER_TRANSDUCER_SET_H

#include "base/memory.h"

typedef struct wf__transducer_token {
  float cost;
  float loglike; /* that the arc read; 0 for epsilons */
  uint32_t state, arc;
  uint32_t prev;  /* record of the token before; made by an epsilon: number in the set */
  uint32_t round; /* of the closure that made it; 0: none did */
  uint64_t predictor, context;
  uint32_t number; /* of the predictor context (predictions.h); NONE: it has none yet, and ... */
  uint32_t parent; /* ... comes from context number `parent` ... */
  int32_t label;   /* ... by this token (a column) */
  int32_t frame;   /* of the arc */
} wf__transducer_token;

typedef struct wf__transducer_set {
  WF__VEC(wf__transducer_token) tokens;
  uint32_t *slots; /* [2^bits] numbers of tokens, by triple; NONE: empty */
  int bits;
  uint64_t most;       /* the first `most` tokens by rank matter */
  WF__VEC(float) best; /* costs of the first `most`: a heap, the largest first */
  float bound;         /* best[0], or +infinity with fewer: tokens that cost more do not matter */
  uint64_t next_check; /* number of tokens at which those that do not matter are dropped */
} wf__transducer_set;

wf_status wf__transducer_set_init(wf__transducer_set *set, uint64_t most, wf_error *err);
/* Copies a set to one of zeros. */
wf_status wf__transducer_set_copy(const wf__transducer_set *from, wf__transducer_set *to,
                                  wf_error *err);
void wf__transducer_set_free(wf__transducer_set *set);
void wf__transducer_set_clear(wf__transducer_set *set);
/* The number of the triple's token; NONE (UINT32_MAX): it has none. */
uint32_t wf__transducer_set_number(const wf__transducer_set *set, uint32_t state,
                                   uint64_t predictor, uint64_t context);
/* Finds the token of the triple, or makes one of cost +infinity. *out: its number. */
wf_status wf__transducer_set_find(wf__transducer_set *set, uint32_t state, uint64_t predictor,
                                  uint64_t context, uint32_t *out, wf_error *err);
/* Offers a token, which counts if it costs less than that of its triple. Tokens that cannot be
 * among the first `most` may be dropped, so numbers of tokens change. */
wf_status wf__transducer_set_offer(wf__transducer_set *set, const wf__transducer_token *token,
                                   wf_error *err);
/* Subtracts a cost from those of all tokens. */
void wf__transducer_set_lower(wf__transducer_set *set, float by);
/* After the tokens' costs were changed. */
wf_status wf__transducer_set_recount(wf__transducer_set *set, wf_error *err);
/* Drops tokens above the cutoff and all but the first `most`. Sorts by rank. */
void wf__transducer_set_cut(wf__transducer_set *set, float cutoff);
/* The order by rank. */
bool wf__transducer_before(const wf__transducer_token *a, const wf__transducer_token *b);

#endif
