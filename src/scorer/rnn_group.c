/* rnn_group.c - the memories of searches: opened as lanes, joined to groups, closed; and their
 * statistics. */
#include <stdlib.h>
#include <string.h>

#include "scorer/rnn_scorer.h"

void wf__rnn_report_counts(const wf_scorer *self, wf__rnn_counts *counts) {
  atomic_uint_fast64_t *stats =
      ((wf__rnn_scorer *)(uintptr_t)self)
          ->stats; /* statistics are not part of the scorer's logical state */
  uint64_t all[WF__RNN_NUM_COUNTS];
  memcpy(all, counts, sizeof all);
  for (size_t i = 0; i < WF__RNN_NUM_COUNTS; i++)
    if (all[i] != 0) atomic_fetch_add_explicit(&stats[i], all[i], memory_order_relaxed);
  *counts = (wf__rnn_counts){0};
}

static void free_batch(wf__rnn_batch *batch) {
  wf__vec_free(&batch->jobs);
  wf__vec_free(&batch->readers);
  wf__vec_free(&batch->table);
  wf__vec_free(&batch->histories);
  wf__vec_free(&batch->first);
  wf__vec_free(&batch->order);
  wf__vec_free(&batch->request_histories);
  wf__vec_free(&batch->request_words);
  wf__vec_free(&batch->recurrent);
}

static void free_group(wf__rnn_group *group) {
  wf__rnn_memory_free(&group->memory);
  pthread_mutex_destroy(&group->lock);
  free_batch(&group->batch);
  free(group);
}

static wf_status open_lane(wf__rnn_group *group, void **out, wf_error *err) {
  wf__rnn_lane *lane = wf__calloc(1, sizeof *lane);
  if (lane == NULL) return wf__fail_memory(err, sizeof *lane, "a scorer's memory");
  lane->group = group;
  lane->number = atomic_fetch_add(&group->refs, 1);
  *out = lane;
  return WF_OK;
}

wf_status wf__rnn_open(const wf_scorer *self, void **out, wf_error *err) {
  const wf__rnn_scorer *rnn = (const wf__rnn_scorer *)self;
  wf__rnn_group *group = wf__calloc(1, sizeof *group);
  if (group == NULL) return wf__fail_memory(err, sizeof *group, "a scorer's memory");
  pthread_mutex_init(&group->lock, NULL);
  atomic_init(&group->refs, 0);
  wf_status status = wf__rnn_memory_init(rnn->rnnlm, (uint64_t)rnn->options.rnnlm_memory,
                                         !self->forgets, &group->memory, err);
  if (status == WF_OK) status = open_lane(group, out, err);
  if (status != WF_OK) free_group(group);
  return status;
}

wf_status wf__rnn_join(const wf_scorer *self, void *first, void **memory, wf_error *err) {
  wf__rnn_lane *lane = first;
  WF__TRY(open_lane(lane->group, memory, err));
  lane->batched = ((wf__rnn_lane *)*memory)->batched = true;
  return WF_OK;
}

void wf__rnn_close(const wf_scorer *self, void *opaque) {
  wf__rnn_lane *lane = opaque;
  if (lane == NULL) return;
  wf__rnn_report_counts(self, &lane->counts);
  if (atomic_fetch_sub(&lane->group->refs, 1) == 1) {
    wf__rnn_report_counts(self, &lane->group->memory.counts);
    free_group(lane->group);
  }
  wf__vec_free(&lane->requests);
  free(lane);
}
