/* soak.h - the soak test of the GPU backend. Runs random tasks on the GPU and on the CPU until the
 * time is up or a result differs in one bit. */
#ifndef TESTS_SOAK_SOAK_H
#define TESTS_SOAK_SOAK_H

#include "random_words.h"

/* How many results a thread has compared so far. */
struct soak_counts {
  uint64_t utterances, operations;
};

/* Kinds of tasks. Each compares all its results, and fails by a cmocka assertion. */
void soak_batches(test_rng *rng, struct soak_counts *counts);
void soak_streams(test_rng *rng, struct soak_counts *counts);
void soak_fsts(test_rng *rng, struct soak_counts *counts);
void soak_recurrent(test_rng *rng, struct soak_counts *counts);
void soak_transducers(test_rng *rng, struct soak_counts *counts);
void soak_graphs(test_rng *rng, struct soak_counts *counts);
void soak_alignments(test_rng *rng, struct soak_counts *counts);

/* Notes what is compared next. The report of a difference shows it, and a thread that notes nothing
 * for 20 seconds makes no progress. */
void soak_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns true once in a run with --plant. The caller then changes a result, which shows that the
 * program detects differences. */
bool soak_plant(void);

/* The imitated GPU takes thousands of times as long, so its tasks are small. -DSOAK_LARGE builds it
 * with a GPU's tasks, to debug a seed that failed on a GPU. */
#if defined(FAKE_CUDA) && !defined(SOAK_LARGE)
enum { SOAK_SMALL = 1 };
#else
enum { SOAK_SMALL = 0 };
#endif

/* --- decoding tasks (soak_tasks.c) ------------------------------------------------------- */

enum { SOAK_GRAPHS = 3, SOAK_SCORERS = 4 };

/* A graph with options, and the graphs and scorers that an utterance may use. */
struct soak_task {
  struct decode_task task;
  const wf_graph *graphs[SOAK_GRAPHS];   /* the graph with words added; NULL: without */
  wf_scorer *scorers[SOAK_SCORERS];      /* NULL: none */
  bool has_words, has_scorers, is_large; /* large: thousands of states */
  float grid; /* 0: scores of any value; else multiples of it, which tie */
};
void soak_make_task(test_rng *rng, struct soak_task *out);
void soak_free_task(struct soak_task *task);
/* One of the task's graphs or scorers at random, or NULL. */
const wf_graph *soak_any_graph(const struct soak_task *task, test_rng *rng);
const wf_scorer *soak_any_scorer(const struct soak_task *task, test_rng *rng);

/* Random scores of one utterance. `data` is the caller's buffer of soak_score_bytes. */
size_t soak_score_bytes(const struct soak_task *task, int64_t max_frames);
wf_scores soak_scores(const struct soak_task *task, test_rng *rng, int64_t max_frames,
                      wf_dtype dtype, void *data);
/* The most frames of an utterance of one batch or stream, at random. */
int64_t soak_max_frames(const struct soak_task *task, test_rng *rng);

/* Creates a decoder; on a GPU with eight times the memory if `again`. */
wf_decoder *soak_decoder(const struct soak_task *task, const char *device, bool again);

#endif
