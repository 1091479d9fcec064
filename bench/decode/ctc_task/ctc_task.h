/* ctc_task.h - the parts of the generator of CTC decoding tasks (generate_ctc_task.c): words and
 * text, language model, scores.
 *
 * The seed determines everything: the same arguments give the same files, up to the last digits of
 * the C library's exp and log. */
#ifndef WF_BENCH_CTC_TASK_H
#define WF_BENCH_CTC_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "random.h"

/* --- random numbers ---------------------------------------------------------------------- */

/* A number in [0, 1). */
static inline double random_unit(uint64_t *state) {
  return (double)(next_random(state) >> 11) * 0x1p-53;
}
/* The seed of a separate generator for item `thing`. */
static inline uint64_t random_seed(uint64_t seed, uint64_t thing) {
  uint64_t state = seed ^ (thing * 0xD1342543DE82EF95u + 0x2545F4914F6CDD1Du);
  next_random(&state);
  return state;
}

/* --- files ------------------------------------------------------------------------------- */

/* Both report errors on stderr. */
bool file_open(const char *folder, const char *name, void **out);
bool file_close(void *file, const char *name);

/* --- words and text ---------------------------------------------------------------------- */

/* Ranks 0 .. n - 1 with weight (rank + 2.7) to the power of -exponent. */
struct zipf {
  uint32_t n;
  double *sums;    /* [n] */
  uint32_t *guide; /* [4096 + 1] index at which to start looking for the first sum above i / 4096 of
                      the total */
};

/* Words are numbered from 0 by decreasing frequency. A word's tokens are pieces[off[w] .. off[w +
 * 1]). Token 0 is the blank; tokens 1 .. num_starts begin a word, the others continue it. No two
 * words have the same spelling. */
struct lexicon {
  uint32_t num_words, num_tokens, num_starts;
  uint32_t *off;
  uint16_t *pieces;
};

/* A text as numbers. SENTENCE_END ends each sentence; word w is w + FIRST_WORD. SENTENCE_BEGIN
 * stands for <s> in n-grams. */
enum { SENTENCE_BEGIN = 0, SENTENCE_END = 1, FIRST_WORD = 2 };
struct text {
  uint32_t *ids;
  size_t size, cap;
};

struct text_process {
  uint64_t seed;
  struct zipf words, after_two, after_one; /* distributions of the vocabulary, and of the followers
                                              of a pair and of a word, by rank */
};

bool lexicon_make(uint32_t num_words, uint32_t num_tokens, uint64_t seed, struct lexicon *out);
bool lexicon_write(const struct lexicon *lexicon, const char *folder);
void lexicon_free(struct lexicon *lexicon);
bool text_process_make(uint32_t num_words, uint64_t seed, struct text_process *out);
void text_process_free(struct text_process *process);
/* Adds a sentence of 5 to 90 words; the median is 28. Advances `random`. */
bool text_add_sentence(const struct text_process *process, uint64_t *random, struct text *text);

/* --- language model ---------------------------------------------------------------------- */

/* Counts the n-grams of `text` and writes a 3-gram ARPA file with interpolated absolute
 * discounting. Leaves out bigrams and trigrams that occur less often than the minimum. */
bool lm_write(const struct text *text, uint32_t num_words, uint32_t min_bigram,
              uint32_t min_trigram, const char *path);

/* --- scores ------------------------------------------------------------------------------ */

/* Parameters for random CTC posteriors (task_scores.c has the two sets that are used). */
struct score_model {
  const char *name;
  double mean_gap;       /* nats from the best to the second best at a token's peak: exponential */
  double next_gap;       /* from each further competitor to the next */
  int num_competitors;   /* other tokens that are likely at a peak */
  double blank_competes; /* probability that the second best is the blank */
  double rest_mean, rest_sd; /* log-probability of all other tokens near a peak */
  double quiet_mean;         /* their mean in blank frames */
};
extern const struct score_model score_models[2]; /* peaky, flat */
/* Writes FOLDER/NAME.ark: a matrix [frames, num_tokens] for each sentence of `text`, with the keys
 * of reference_key. */
bool scores_write(const struct score_model *model, const struct lexicon *lexicon,
                  const struct text *text, uint64_t seed, const char *folder);
void reference_key(uint32_t index, char key[16]);

#endif
