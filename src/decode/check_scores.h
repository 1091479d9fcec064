/* check_scores.h - reports scores that look wrong, once for each decoder and cause, and refuses
 * probabilities and costs.
 *
 * A CTC graph expects log-posteriors: exp of each frame sums to 1. Wrong scores give wrong words
 * without an error, but most kinds can be detected from the values of a few frames. The calling
 * thread checks utterances in order, before the search, so messages do not depend on threads. */
#ifndef WF_DECODE_CHECK_SCORES_H
#define WF_DECODE_CHECK_SCORES_H

#include "base/memory.h"

typedef struct wf__score_check {
  uint64_t num_seen;   /* utterances, and chunks of streams, since probabilities or costs */
  uint32_t warned;     /* a bit for each cause */
  uint64_t num_frames; /* frames examined to find the column of the blank */
  WF__VEC(uint64_t)
  best; /* [columns] number of examined frames in which the column is the most probable */
  WF__VEC(char) block; /* frames copied from a GPU */
} wf__score_check;

struct wf_decoder;
/* Checks an utterance's scores, or a chunk's, which have passed wf__check_scores. Returns false,
 * with the error in the result, if they are probabilities or costs, or look wrong and
 * check_scores=error. */
bool wf__scores_look_right(struct wf_decoder *decoder, const wf_scores *scores, wf_result *result);
/* Reports a finished utterance whose beam was cut by max_active in most frames, or, with a
 * transducer, one that ends within a word. */
void wf__check_search(struct wf_decoder *decoder, wf_result *result);
void wf__score_check_free(wf__score_check *check);

#endif
