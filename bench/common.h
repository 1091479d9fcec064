/* common.h - what the drivers of this folder share: clocks, and ending with a message where
 * something fails. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "warpfst_all.h"

static inline double clock_s(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static inline double now_s(void) { return clock_s(CLOCK_MONOTONIC); }
/* Of all threads of the process. */
static inline double cpu_s(void) { return clock_s(CLOCK_PROCESS_CPUTIME_ID); }

static inline void fail(const char *message) {
  fprintf(stderr, "%s: %s\n", program_invocation_short_name, message);
  exit(2);
}

static inline void check(wf_status status, const wf_error *err) {
  if (status != WF_OK) fail(err->message);
}

/* Zeroed. */
static inline void *allocate(size_t count, size_t bytes) {
  void *memory = calloc(count > 0 ? count : 1, bytes);
  if (memory == NULL) fail("out of memory");
  return memory;
}

/* wf_decode of utterances that have scores alone. */
static inline wf_status decode_scores(wf_decoder *decoder, const wf_scores *scores, size_t count,
                                      wf_result **results, wf_error *err) {
  wf_utterance *utterances = calloc(count, sizeof *utterances);
  if (utterances == NULL) return WF_ERR_MEMORY;
  for (size_t i = 0; i < count; i++) utterances[i].scores = scores[i];
  wf_status status = wf_decode(decoder, utterances, count, NULL, results, err);
  free(utterances);
  return status;
}

#endif
