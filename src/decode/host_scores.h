/* host_scores.h - for searches that read scores on the CPU: the check of scores, and the message of
 * an utterance that failed. */
#ifndef WF_DECODE_HOST_SCORES_H
#define WF_DECODE_HOST_SCORES_H

#include <stdio.h>

#include "base/error.h"

/* what: who needs them, for the message. */
static inline wf_status wf__check_host_scores(const wf_scores *s, const char *what, wf_error *err) {
  if (s->num_frames < 0 || s->num_frames > INT32_MAX - 1 || s->dtype < WF_FLOAT32 ||
      s->dtype > WF_BFLOAT16 || s->num_columns < 0 || s->stride < s->num_columns ||
      (s->data == NULL && s->num_frames > 0))
    return wf__fail(err, WF_ERR_ARGUMENT, "invalid scores: %lld frames, %d columns, stride %lld",
                    (long long)s->num_frames, s->num_columns, (long long)s->stride);
  if (s->on_device)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "the scores are in GPU memory, %s needs them in host memory", what);
  return WF_OK;
}

/* key NULL: the utterance's place in the batch names it. */
static inline void wf__utterance_message(char *out, size_t size, const char *key, uint64_t place,
                                         const char *why) {
  char number[32];
  snprintf(number, sizeof number, "%llu", (unsigned long long)place);
  snprintf(out, size, "utterance %.80s: %s", key != NULL ? key : number, why);
}

#endif
