/* decode_tasks.h - small random decoding tasks with everything that is awkward: ties, epsilon
 * cycles, negative weights, impossible scores, tight limits. */
#ifndef TESTS_DECODE_TASKS_H
#define TESTS_DECODE_TASKS_H

#include "testing.h"

struct decode_task {
  wf_graph *graph;
  wf_decoder_options options;
  float *data;
  wf_scores scores; /* over data */
};

struct decode_task test_random_task(uint64_t seed);
/* For test_changed_fst: adds potentials to the weights, so that arcs (epsilons too) may be negative
 * while every cycle keeps its cost. */
bool test_add_potentials(test_rng *rng, uint32_t state, wf_arc *arc);
void test_free_task(struct decode_task *task);
wf_result *test_decode_alone(struct decode_task *task);
/* `count` matrices for the task's graph, of fewer than max_frames frames each; data[i] is to be
 * freed. */
void test_random_batch(struct decode_task *task, wf_scores *batch, float **data, size_t count,
                       uint64_t seed, int64_t max_frames);
/* Bytes of a score, and score i of `data` set to the value, rounded to what every format holds: a
 * sign and multiples of 1/8 up to 15. */
size_t test_score_size(wf_dtype dtype);
void test_put_score(void *data, int64_t i, float value, wf_dtype dtype);
/* Two short utterances, one with the scorer if there is one, on the CPU and twice by a decoder on
 * the GPU, which after the first time knows how few tokens there are and makes its lanes narrower.
 * For racecheck, to which a barrier costs a look at all of a block's shared memory. */
void test_short_batch(struct decode_task *task, const wf_scorer *scorer, uint64_t seed);
/* Every bit of two results, statistics included. */
void test_assert_same_result(const wf_result *a, const wf_result *b);
/* The same of two batches, lattices included. */
void test_assert_same_batch(uint64_t seed, wf_result **a, wf_result **b, size_t count);
/* So many frames of a matrix in host memory, for a stream: without data if there are none. */
wf_scores test_rows(const wf_scores *scores, int64_t first, int64_t count);
/* The partials of two streams, or their errors, and what events say. */
void test_assert_same_partials(wf_stream *const *streams);
void test_assert_same_event(const wf_stream_event *a, const wf_stream_event *b);
void test_free_results(wf_result **results, size_t count);
/* With a decoder of its own. */
void test_decode_on(const char *device, const wf_graph *graph, wf_decoder_options options,
                    const wf_scores *batch, size_t count, wf_result **results);
/* Says so, too: GPU tests then end with 77, skipped. */
bool test_no_gpu(void);
/* Its graph, of 60,000 states, fills the tables of a GPU search; limits number k (of 15 that
 * differ) calls for every number of blocks. The graph alone is to be freed. */
struct decode_task test_large_task(void);
void test_set_large_limits(struct decode_task *task, size_t k);
/* How often a message with this text was heard: for wf_set_log(test_listen, &heard). */
struct test_heard {
  const char *text;
  _Atomic int times; /* messages come from several threads */
};
void test_listen(void *heard, wf_log_level level, const char *text);

#endif
