/* host_scores.h - scores for searches that read them on the CPU. */
#ifndef WF_DECODE_HOST_SCORES_H
#define WF_DECODE_HOST_SCORES_H

#include "base/error.h"

/* Checks scores. Those in GPU memory are copied, after what the default stream of their GPU has
 * queued. *copy is to be freed, also after an error; NULL: nothing was copied. */
wf_status wf__host_scores(const wf_scores *given, wf_scores *out, void **copy, wf_error *err);

#endif
