/* wlm_many.h - batched look-ups in a large language model. */
#ifndef WF_LM_WLM_MANY_H
#define WF_LM_WLM_MANY_H

#include <stddef.h>

#include "lm/wlm.h"

/* Sets costs[i] and next[i] for words[i] after states[i]. A word must be in the model or be
 * WF__WLM_NONE. For WF__WLM_NONE and for states out of range, sets +infinity and state 0. */
void wf__wlm_step_many(const wf__wlm_view *view, const uint32_t *states, const uint32_t *words,
                       size_t count, float *costs, uint32_t *next);

#endif
