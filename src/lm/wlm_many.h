/* wlm_many.h - many look-ups at once in a large language model. */
#ifndef WF_LM_WLM_MANY_H
#define WF_LM_WLM_MANY_H

#include <stddef.h>

#include "lm/wlm.h"

/* costs[i], next[i]: of words[i], which the model knows, or WF__WLM_NONE: +infinity and state 0,
 * after states[i]; the same for states out of range. */
void wf__wlm_step_many(const wf__wlm_view *view, const uint32_t *states, const uint32_t *words,
                       size_t count, float *costs, uint32_t *next);

#endif
