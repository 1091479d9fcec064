/* wlm_grams.c - adds n-grams to the external sorts of a build: n-grams of the file (grams) and
 * n-grams that must exist (required). */
#include "lm/wlm_build.h"

wf_status wf__wlm_add_gram(wf__wlm_build *build, int n, const uint32_t *backwards, float cost,
                           float backoff, wf_error *err) {
  uint32_t record[WF_LM_MAX_ORDER + 2];
  memcpy(record, backwards, (size_t)n * sizeof *record);
  record[n] = wf__bits_of_float(cost);
  record[n + 1] = wf__bits_of_float(backoff);
  return wf__sort_add(build->grams[n], record, err);
}

wf_status wf__wlm_require(wf__wlm_build *build, int n, const uint32_t *backwards, uint32_t flags,
                          wf_error *err) {
  uint32_t record[WF_LM_MAX_ORDER + 1];
  memcpy(record, backwards, (size_t)n * sizeof *record);
  record[n] = flags;
  return wf__sort_add(build->required[n], record, err);
}
