/* transducer_types.h - types shared by the host code and the GPU kernels of a transducer. */
#ifndef WF_TRANSDUCER_TRANSDUCER_TYPES_H
#define WF_TRANSDUCER_TRANSDUCER_TYPES_H

#include <stdint.h>

/* The first logit of a row that cannot be used. */
typedef struct wf__bad_logit {
  int32_t column; /* -1: there is none */
  float value;    /* -infinity: so are all logits of tokens, or of durations */
} wf__bad_logit;

#endif
