/* decode_tasks.h - small random decoding tasks with the difficult cases: ties, epsilon cycles,
 * negative weights, impossible scores, tight limits. */
#ifndef TESTS_DECODE_TASKS_H
#define TESTS_DECODE_TASKS_H

#include "testing.h"

struct decode_task {
  wf_graph *graph;
  wf_decoder_options options;
  float *data;
  wf_scores scores; /* a view of data */
};

struct decode_task test_random_task(uint64_t seed);
/* The same with a token graph (fst/ctc_states.h), whose blank is the last label: of a few tokens, or
 * with states of hundreds of arcs. */
struct decode_task test_ctc_task(uint64_t seed);
/* For test_changed_fst: adds potentials to the weights. Arcs (also epsilons) may become negative,
 * but every cycle keeps its cost. */
bool test_add_potentials(test_rng *rng, uint32_t state, wf_arc *arc);
void test_free_task(struct decode_task *task);
wf_result *test_decode_alone(struct decode_task *task);
/* Makes `count` matrices for the task's graph, each of fewer than max_frames frames. The caller
 * frees data[i]. */
void test_random_batch(struct decode_task *task, wf_scores *batch, float **data, size_t count,
                       uint64_t seed, int64_t max_frames);
/* test_score_size: the bytes of one score. test_put_score: sets score i of `data`, rounded to a
 * value that every format holds (a sign and multiples of 1/8 up to 15). */
size_t test_score_size(wf_dtype dtype);
void test_put_score(void *data, int64_t i, float value, wf_dtype dtype);
/* Decodes two short utterances, one of them with the scorer if there is one, on the CPU and twice
 * with a GPU decoder. In the second run the decoder knows how few tokens there are and uses fewer
 * blocks for each lane. The batch is small for racecheck, which scans all shared memory of a block
 * at each barrier. */
void test_short_batch(struct decode_task *task, const wf_scorer *scorer, uint64_t seed);
/* Fails unless two results are equal in every bit, statistics included. */
void test_assert_same_result(const wf_result *a, const wf_result *b);
/* The same, lattices included. */
void test_assert_same_with_lattice(const wf_result *a, const wf_result *b);
/* The same for two batches. */
void test_assert_same_batch(uint64_t seed, wf_result **a, wf_result **b, size_t count);
/* Frames [first, first + count) of a matrix in host memory, as a chunk of a stream. Without data if
 * count is 0. */
wf_scores test_rows(const wf_scores *scores, int64_t first, int64_t count);
/* Fail unless two streams give the same partial (or the same error), and two events are equal. */
void test_assert_same_partials(wf_stream *const *streams);
/* Fails unless wf_streams_partial gives what wf_stream_partial gives for each stream. Adds the
 * number of words compared to *num_words. */
void test_assert_partials(wf_decoder *decoder, wf_stream *const *streams, size_t count,
                          size_t *num_words);
void test_assert_same_event(const wf_stream_event *a, const wf_stream_event *b);
void test_free_results(wf_result **results, size_t count);
/* Decodes with a decoder that is created and freed within the call. */
void test_decode_on(const char *device, const wf_graph *graph, wf_decoder_options options,
                    const wf_scores *batch, size_t count, wf_result **results);
/* True if there is no GPU; then prints so. GPU tests end with exit code 77 (skipped). */
bool test_no_gpu(void);
/* test_large_task: a graph of 60,000 states that fills the tables of a GPU search. Only the graph
 * is to be freed. test_set_large_limits: sets limits number k (15 differ), which together use every
 * number of blocks. */
struct decode_task test_large_task(void);
void test_set_large_limits(struct decode_task *task, size_t k);
/* Counts the log messages that contain a text: wf_set_log(test_listen, &heard). */
struct test_heard {
  const char *text;
  _Atomic int times; /* messages come from several threads */
};
void test_listen(void *heard, wf_log_level level, const char *text);

#endif
