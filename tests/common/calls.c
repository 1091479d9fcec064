/* calls.c - see calls.h: decoding. */
#include "calls.h"

#include <stdlib.h>

#include "testing.h"

/* --- decoding ---------------------------------------------------------------------------- */

wf_status test_decode_each(wf_decoder *decoder, const wf_scores *scores,
                           const wf_scorer *const *scorers, const wf_graph *const *graphs,
                           size_t count, const wf_progress *progress, wf_result **results,
                           wf_error *err) {
  wf_utterance *utterances = calloc(count + 1, sizeof *utterances);
  assert_non_null(utterances);
  for (size_t i = 0; i < count; i++)
    utterances[i] = (wf_utterance){.scores = scores[i],
                                   .scorer = scorers != NULL ? scorers[i] : NULL,
                                   .graph = graphs != NULL ? graphs[i] : NULL};
  const wf_status status = wf_decode(decoder, utterances, count, progress, results, err);
  free(utterances);
  return status;
}

wf_status test_decode_scored(wf_decoder *decoder, const wf_scores *scores,
                             const wf_scorer *const *scorers, size_t count,
                             const wf_progress *progress, wf_result **results, wf_error *err) {
  return test_decode_each(decoder, scores, scorers, NULL, count, progress, results, err);
}

wf_status test_decode(wf_decoder *decoder, const wf_scores *scores, size_t count,
                      const wf_progress *progress, wf_result **results, wf_error *err) {
  return test_decode_each(decoder, scores, NULL, NULL, count, progress, results, err);
}
