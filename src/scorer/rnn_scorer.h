/* rnn_scorer.h - the recurrent scorer from the inside.
 *
 *   lane, lane, lane --> group {lock, memory, batch}   a lane is the memory of one search; those
 *   joined are one group
 *
 * Between two rounds of scoring (rnn_batch.c) searches run in parallel: without the lock they
 * read `results` only. */
#ifndef WF_SCORER_RNN_SCORER_H
#define WF_SCORER_RNN_SCORER_H

#include <pthread.h>

#include "lm/automaton.h"
#include "scorer/rnn_memory.h"

enum {
  WF__RNN_CACHE_NONE = 0,
  WF__RNN_CACHE_SHARED = 2,
  WF__RNN_NUM_COUNTS = sizeof(wf__rnn_counts) / sizeof(uint64_t)
};

typedef struct wf__rnn_scorer {
  wf_scorer scorer;
  wf_rnnlm *rnnlm;
  wf__automaton *ngram, *small; /* NULL: none */
  wf_rnn_scorer_options options;
  wf__rnn_labels *labels; /* [num_labels] */
  int32_t num_labels;
  atomic_uint_fast64_t stats[WF__RNN_NUM_COUNTS];
} wf__rnn_scorer;

/* A distinct request of a frame. */
typedef struct wf__rnn_job {
  uint32_t place; /* index of its context */
  uint32_t group; /* index of its history */
  int32_t label, word;
  float cost; /* with a GPU, first the recurrent model's cost */
  uint64_t next;
} wf__rnn_job;

/* A cache entry that gets the score of a job. A job has several if several utterances request it.
 */
typedef struct wf__rnn_reader {
  wf__rnn_result *entry;
  uint32_t job;
} wf__rnn_reader;

/* Scratch of a round of scoring. */
typedef struct wf__rnn_batch {
  WF__VEC(wf__rnn_job) jobs;
  WF__VEC(wf__rnn_reader) readers;
  WF__VEC(uint32_t) table;             /* (context, label) -> job + 1 */
  WF__VEC(uint32_t) histories;         /* distinct ones, by group */
  WF__VEC(uint32_t) first;             /* [groups + 1] first entry in `order` */
  WF__VEC(uint32_t) order;             /* jobs, group by group */
  WF__VEC(uint32_t) request_histories; /* with a GPU: the requests to it and their scores */
  WF__VEC(int32_t) request_words;
  WF__VEC(float) recurrent;
} wf__rnn_batch;

typedef struct wf__rnn_group {
  pthread_mutex_t lock;
  atomic_uint_fast32_t refs;
  wf__rnn_memory memory;
  wf__rnn_batch batch;
} wf__rnn_group;

typedef struct wf__rnn_lane {
  wf__rnn_group *group;
  uint32_t number, num_utterances;
  uint32_t utterance; /* in the results; 0: shared by all */
  wf__score_request_vec requests;
  bool batched; /* its requests are submitted by wf__rnn_request_scores first, and it reports the
                   contexts in use */
  wf__rnn_counts counts;
} wf__rnn_lane;

/* The recurrent scorer with a cache: this scorer, or a part of a chain of up to three; else NULL.
 */
const wf_scorer *wf__rnn_part_of(const wf_scorer *scorer);
/* This scorer, if it is a recurrent scorer with a cache; else NULL. */
const wf__rnn_scorer *wf__rnn_scorer_of(const wf_scorer *scorer);
/* The same with another copy of the recurrent model, and little memory: for costs along single
 * paths. */
wf_status wf__rnn_cpu_scorer(const wf__rnn_scorer *rnn, const wf_rnnlm *rnnlm, wf_scorer **out,
                             wf_error *err);

/* rnn_group.c: open, join and close as in wf__scorer_ops and wf__scorer_batch_ops. */
wf_status wf__rnn_open(const wf_scorer *self, void **out, wf_error *err);
wf_status wf__rnn_join(const wf_scorer *self, void *first, void **memory, wf_error *err);
void wf__rnn_close(const wf_scorer *self, void *memory);
/* Adds the counts to the scorer's statistics and clears them. */
void wf__rnn_report_counts(const wf_scorer *self, wf__rnn_counts *counts);

/* rnn_costs.c */
/* Number of words of a history that are used; UINT32_MAX: all. */
uint32_t wf__rnn_words_kept(const wf__rnn_scorer *rnn);
/* Word of the recurrent model to score; -1: its cost is not needed, or unknown_cost. */
int32_t wf__rnn_word_of(const wf__rnn_scorer *rnn, int32_t label);
/* The scorer's cost, from the recurrent model's. *behind receives the context with the n-gram
 * models' states advanced. */
float wf__rnn_mixed_cost(const wf__rnn_scorer *rnn, const wf__rnn_context *at, int32_t label,
                         float recurrent, wf__rnn_context *behind);
/* The number of the next context: `behind` with its history advanced by the word. */
uint64_t wf__rnn_next(const wf__rnn_scorer *rnn, const wf__rnn_memory *memory, int32_t label,
                      const wf__rnn_context *behind);
/* Makes that context. */
wf_status wf__rnn_make_next(const wf__rnn_scorer *rnn, wf__rnn_memory *memory, int32_t label,
                            wf__rnn_context *behind, uint64_t *next, wf_error *err);
/* Index of a context that exists, or that a cached result leads to; UINT32_MAX if there is none. */
wf_status wf__rnn_find(const wf__rnn_scorer *rnn, wf__rnn_memory *memory, uint64_t context,
                       uint32_t *place, wf_error *err);

/* rnn_batch.c: see wf__scorer_batch_ops. */
wf_status wf__rnn_request_scores(const wf_scorer *self, void *memory,
                                 const wf__score_request *requests, uint64_t count,
                                 uint64_t num_requests, uint64_t *num_noted, wf_error *err);
wf_status wf__rnn_score_requests(const wf_scorer *self, void *const *memories, size_t count,
                                 wf__pool *pool, wf_error *err);
bool wf__rnn_is_full(const wf_scorer *self, const void *memory);
wf_status wf__rnn_keep(const wf_scorer *self, void *const *memories, const wf__context_vec *live,
                       size_t count, wf_error *err);

#endif
