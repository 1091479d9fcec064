/* host_scores.h - for searches that read scores on the CPU: scores in host memory, and the message
 * of an utterance that failed. */
#ifndef WF_DECODE_HOST_SCORES_H
#define WF_DECODE_HOST_SCORES_H

#include <stdio.h>

#include "base/error.h"

/* Checks scores. Those in GPU memory are copied, after what the default stream of their GPU has
 * queued. *copy is to be freed, also after an error; NULL: nothing was copied. */
wf_status wf__host_scores(const wf_scores *given, wf_scores *out, void **copy, wf_error *err);

/* key NULL: the utterance's place in the batch names it. */
static inline void wf__utterance_message(char *out, size_t size, const char *key, uint64_t place,
                                         const char *why) {
  char number[32];
  snprintf(number, sizeof number, "%llu", (unsigned long long)place);
  snprintf(out, size, "utterance %.80s: %s", key != NULL ? key : number, why);
}

#endif
