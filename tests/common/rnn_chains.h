/* rnn_chains.h - random decoding tasks whose utterances have a recurrent scorer, alone or in a
 * chain with other scorers. */
#ifndef TESTS_RNN_CHAINS_H
#define TESTS_RNN_CHAINS_H

#include "decode_tasks.h"
#include "random_scorers.h"
#include "rnn_models.h"

enum { UTTERANCES = 10, LONGEST = 9, INPUTS = 4 };

static inline wf_scorer *scorer_over(const wf_rnnlm *rnnlm, const models *m,
                                     const wf_rnn_scorer_options *o) {
  wf_error err = {0};
  wf_scorer *scorer;
  assert_ok(wf_scorer_from_rnnlm(rnnlm, m->ngram, m->small, m->words, o, &scorer, &err));
  return scorer;
}

static inline bool is_close(double a, double b) {
  return a == b || fabs(a - b) <= 1e-4; /* both may be infinite */
}

static inline void print_words(const char *whose, const wf_result *result) {
  print_message("%s: status %d, flags %d, scorer %.9g, words", whose, (int)result->status,
                (int)result->flags, result->scorer_cost);
  for (size_t i = 0; i < result->num_words; i++)
    print_message(" %d@%lld", (int)result->words[i].label, (long long)result->words[i].start_frame);
  print_message("\n");
}

/* Compares a GPU's result with the CPU's: the words must be equal, the costs equal up to rounding.
 */
static inline void check_alike(uint64_t seed, int u, const wf_result *got, const wf_result *want) {
  bool alike = got->status == want->status && got->flags == want->flags &&
               got->num_words == want->num_words && is_close(got->cost, want->cost) &&
               is_close(got->scorer_cost, want->scorer_cost);
  for (size_t i = 0; alike && i < got->num_words; i++)
    alike = got->words[i].label == want->words[i].label &&
            got->words[i].start_frame == want->words[i].start_frame;
  if (alike) return;
  print_words("GPU", got);
  print_words("CPU", want);
  fail_msg("seed %d, utterance %d: cost %.9g, on the CPU %.9g (%s)", (int)seed, u, got->cost,
           want->cost, got->message);
}

/* Utterances of which some have the recurrent scorer alone, and some a chain. Several utterances
 * may share a chain. */
enum { MOST_CHAINS = 4 };
typedef struct chain_task {
  models m;
  wf_fst *fst;
  wf_graph *graph;
  wf_decoder_options options;
  wf_symbols *words;
  wf_scorer *chains[MOST_CHAINS]; /* the first is the recurrent scorer alone */
  uint32_t num_chains;
  float data[UTTERANCES][LONGEST * INPUTS];
  wf_scores scores[UTTERANCES];
  const wf_scorer *scorers[UTTERANCES];
} chain_task;

static inline void make_chain_task(uint64_t seed, test_rng *rng, chain_task *t) {
  wf_error err = {0};
  t->words = random_scorer_words();
  t->m = random_models(rng);
  wf_rnn_scorer_options o = random_options(rng);
  o.rnnlm_cache = 1 + (int32_t)test_below(rng, 2);
  o.rnnlm_memory = seed % 2 == 0 ? 65536 : 1 << 20;
  t->fst = random_word_fst(rng, INPUTS);
  assert_ok(wf_graph_create(t->fst, NULL, 0, &t->graph, &err));
  wf_decoder_options_init(&t->options);
  t->options.beam = 6;
  t->options.max_active = 60;
  t->options.num_threads = 2;
  t->chains[0] = scorer_over(t->m.rnnlm, &t->m, &o);
  t->num_chains = 1 + test_below(rng, MOST_CHAINS);
  for (uint32_t k = 1; k < t->num_chains; k++)
    t->chains[k] = random_chain(rng, t->chains[0], t->words);
  for (int u = 0; u < UTTERANCES; u++) {
    t->scorers[u] = t->chains[test_below(rng, t->num_chains)];
    for (int i = 0; i < LONGEST * INPUTS; i++) t->data[u][i] = -3 * test_unit(rng);
    t->scores[u] = (wf_scores){t->data[u], (int64_t)test_below(rng, LONGEST + 1), INPUTS, INPUTS};
  }
}

static inline void free_chain_task(chain_task *t) {
  for (uint32_t k = 0; k < t->num_chains; k++) wf_scorer_free(t->chains[k]);
  wf_graph_free(t->graph);
  wf_fst_free(t->fst);
  wf_symbols_free(t->words);
  free_models(&t->m);
}

#endif
