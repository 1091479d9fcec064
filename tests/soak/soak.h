/* soak.h - the soak of the GPU backend: random tasks on the GPU and on the CPU, until the time is
 * up or a bit differs. */
#ifndef TESTS_SOAK_SOAK_H
#define TESTS_SOAK_SOAK_H

#include "random_words.h"

/* What the seeds of a thread have compared. */
struct soak_counts {
  uint64_t utterances, operations;
};

/* Kinds of seeds: each compares all that it makes, and fails as a test does. */
void soak_batches(test_rng *rng, struct soak_counts *counts);
void soak_streams(test_rng *rng, struct soak_counts *counts);
void soak_fsts(test_rng *rng, struct soak_counts *counts);
void soak_recurrent(test_rng *rng, struct soak_counts *counts);

/* Says what is compared next, for the report of a difference. */
void soak_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Must a result be changed now? Once in each run with --plant, so that the program is seen to fail.
 */
bool soak_plant(void);

/* An imitated GPU takes thousands of times as long. -DSOAK_LARGE: to look at what a GPU has found.
 */
#if defined(FAKE_CUDA) && !defined(SOAK_LARGE)
enum { SOAK_SMALL = 1 };
#else
enum { SOAK_SMALL = 0 };
#endif

/* --- decoding tasks (soak_tasks.c) ------------------------------------------------------- */

enum { SOAK_GRAPHS = 3, SOAK_SCORERS = 4 };

/* A graph, options, and what utterances may have besides. */
struct soak_task {
  struct decode_task task;
  const wf_graph *graphs[SOAK_GRAPHS];   /* the graph with words added; NULL: none */
  wf_scorer *scorers[SOAK_SCORERS];      /* NULL: none */
  bool has_words, has_scorers, is_large; /* large: thousands of states */
  float grid; /* 0: scores of any value; else multiples of it, which tie */
};
void soak_make_task(test_rng *rng, struct soak_task *out);
void soak_free_task(struct soak_task *task);
/* One of those, or NULL. */
const wf_graph *soak_any_graph(const struct soak_task *task, test_rng *rng);
const wf_scorer *soak_any_scorer(const struct soak_task *task, test_rng *rng);

/* Scores of one utterance, in the caller's `data` of soak_score_bytes. */
size_t soak_score_bytes(const struct soak_task *task, int64_t max_frames);
wf_scores soak_scores(const struct soak_task *task, test_rng *rng, int64_t max_frames,
                      wf_dtype dtype, void *data);
/* Frames of the utterances of one batch or stream. */
int64_t soak_max_frames(const struct soak_task *task, test_rng *rng);

/* On the GPU with more memory than before if `again`. */
wf_decoder *soak_decoder(const struct soak_task *task, const char *device, bool again);

#endif
