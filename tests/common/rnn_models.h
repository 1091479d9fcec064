/* rnn_models.h - a random recurrent model, two small n-gram models and the words of a graph, for
 * tests of the recurrent scorer. */
#ifndef TESTS_RNN_MODELS_H
#define TESTS_RNN_MODELS_H

#include "rnnlm_oracle.h"

enum {
  NUM_LABELS = 7
}; /* words of the graph, from 1: w1 .. w5, one that only the n-gram models know, one that no model
      knows */
static const char *const label_text[] = {"<eps>", "w1", "w2", "w3", "w4", "w5", "rare", "never"};

static const char *const ngram_text =
    "\\data\\\nngram 1=9\nngram 2=6\nngram "
    "3=2\n\\1-grams:\n-99\t<s>\t-0.3\n-1.1\t</"
    "s>\n-2\t<unk>\n-0.5\tw1\t-0.2\n-0.8\tw2\t-0.1\n-0.9\tw3\t-0.4\n-1.2\tw4\n-1.3\tw5\n-1."
    "9\trare\t-0.1\n"
    "\\2-grams:\n-0.2\t<s> w1\t-0.1\n-0.6\tw1 w2\t-0.3\n-0.4\tw2 w3\n-0.3\tw3 </s>\n-0.7\tw3 "
    "w1\n-0.9\trare w2\n\\3-grams:\n-0.1\t<s> w1 w2\n-0.25\tw1 w2 w3\n\\end\\\n";
static const char *const small_text =
    "\\data\\\nngram 1=9\nngram "
    "2=3\n\\1-grams:\n-99\t<s>\t-0.2\n-1\t</"
    "s>\n-1.5\t<unk>\n-0.7\tw1\t-0.3\n-0.7\tw2\n-0.8\tw3\t-0.1\n-0.9\tw4\n-1.1\tw5\n-2.2\trare\n"
    "\\2-grams:\n-0.4\t<s> w1\n-0.5\tw1 w2\n-0.2\tw3 </s>\n\\end\\\n";

typedef struct models {
  test_rnn r;
  wf_rnnlm *rnnlm;
  wf_lm *ngram, *small;
  wf_symbols *words;
} models;

static inline models random_models(test_rng *rng) {
  static const char *const types[] = {"sigmoid", "gru-full", "scrn5", "tanh"};
  wf_error err = {0};
  models m = {.r = {.type = types[test_below(rng, 4)],
                    .version = 6,
                    .num_layers = 1 + (int)test_below(rng, 2),
                    .arity = 2,
                    .hidden = 40,
                    .num_words = 6,
                    .lnz = 2}};
  m.r.order = (int)test_below(rng, 5);
  m.r.num_cells = m.r.order > 0 ? 300 : 0;
  m.r.nce = test_below(rng, 3) == 0;
  test_rnn_fill(&m.r, rng);
  assert_ok(wf_rnnlm_open(test_rnn_write(&m.r), NULL, &m.rnnlm, &err));
  assert_ok(wf_lm_open(test_write_file("ngram.arpa", ngram_text, strlen(ngram_text)), NULL, NULL,
                       &m.ngram, NULL, NULL, &err));
  assert_ok(wf_lm_open(test_write_file("small.arpa", small_text, strlen(small_text)), NULL, NULL,
                       &m.small, NULL, NULL, &err));
  assert_ok(wf_symbols_create("words", &m.words, &err));
  for (int i = 0; i <= NUM_LABELS; i++)
    assert_ok(wf_symbols_add(m.words, label_text[i], i, NULL, &err));
  return m;
}

static inline void free_models(models *m) {
  test_rnn_free(&m->r);
  wf_rnnlm_free(m->rnnlm);
  wf_lm_free(m->ngram);
  wf_lm_free(m->small);
  wf_symbols_free(m->words);
}

static inline wf_rnn_scorer_options random_options(test_rng *rng) {
  wf_rnn_scorer_options o;
  wf_rnn_scorer_options_init(&o);
  o.rnnlm_scale = 0.5f + test_unit(rng);
  o.small_scale = 0.5f + test_unit(rng);
  o.rnnlm_weight = (float[]){1, 0.5f, 0.25f}[test_below(rng, 3)];
  o.interpolation = (int32_t)test_below(rng, 2);
  o.unknown_cost = 7;
  o.history_merge_order = (int32_t[]){0, 0, 1, 2, 3}[test_below(rng, 5)];
  return o;
}

/* --- costs by definition ----------------------------------------------------------------- */

static inline double recurrent_cost(const models *m, const wf_rnn_scorer_options *o,
                                    const int32_t *labels, size_t size) {
  int32_t ids[64], kept = 0;
  double costs[65];
  int32_t last = size > 0 ? labels[size - 1] : 0;
  if (last > 5) return (double)o->unknown_cost;
  for (size_t i = 0; i + 1 < size; i++)
    if (labels[i] <= 5) ids[kept++] = labels[i]; /* label i is word i of the model */
  int32_t most = o->history_merge_order > 0 ? o->history_merge_order - 1 : kept,
          from = kept > most ? kept - most : 0;
  ids[kept] = last;
  test_rnn_costs(&m->r, ids + from, (size_t)(kept - from) + (last != 0), costs);
  return costs[kept - from];
}

static inline double ngram_cost(const wf_lm *lm, const int32_t *labels, size_t size) {
  uint32_t state = wf_lm_start(lm);
  float cost = 0;
  for (size_t i = 0; i < size; i++) {
    if (labels[i] == 0) return (double)wf_lm_final(lm, state, NULL);
    cost = wf_lm_step(lm, state, (int32_t)wf_symbols_find(wf_lm_words(lm), label_text[labels[i]]),
                      &state, NULL);
  }
  return (double)cost;
}

/* Cost of the last of labels[0 .. size). Label 0 is the sentence end. */
static inline double cost_by_definition(const models *m, const wf_rnn_scorer_options *o,
                                        const int32_t *labels, size_t size) {
  double recurrent = recurrent_cost(m, o, labels, size), ngram = ngram_cost(m->ngram, labels, size),
         small = ngram_cost(m->small, labels, size), w = (double)o->rnnlm_weight;
  double fresh = o->interpolation == 0 ? w * recurrent + (1 - w) * ngram
                                       : -log(w * exp(-recurrent) + (1 - w) * exp(-ngram));
  return (double)o->rnnlm_scale * fresh - (double)o->small_scale * small;
}

/* --- graphs ------------------------------------------------------------------------------ */

/* For test_changed_fst: epsilon arcs lead to larger states, so there are finitely many paths. */
static bool forward_epsilons(test_rng *rng, uint32_t state, wf_arc *arc) {
  return arc->ilabel > 0 || arc->nextstate > state;
}

/* A random fst whose output labels are the words, with num_inputs input labels. */
static inline wf_fst *random_word_fst(test_rng *rng, int32_t num_inputs) {
  test_fst_shape shape = {.num_states = 12,
                          .num_arcs = 50,
                          .num_ilabels = num_inputs,
                          .num_olabels = NUM_LABELS,
                          .epsilon_share = 0.15f,
                          .final_share = 0.7f,
                          .max_weight = 2};
  return test_changed_fst(test_random_fst(rng, &shape), rng, forward_epsilons);
}

#endif
