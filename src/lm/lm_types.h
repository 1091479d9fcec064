/* lm_types.h - the arrays of a back-off model (lm.h), shared with GPU code. Plain C. */
#ifndef WF_LM_LM_TYPES_H
#define WF_LM_LM_TYPES_H

#include <stdint.h>

#define WF__LM_NONE UINT32_MAX

typedef struct wf__lm_unigram {
  float cost;
  uint32_t next;
} wf__lm_unigram;

typedef struct wf__lm_arc {
  uint32_t word;
  float cost;
  uint32_t next;
} wf__lm_arc;

typedef struct wf__lm_state {
  uint64_t first_arc;
  uint32_t backoff;
  float backoff_cost;
} wf__lm_state;

#endif
