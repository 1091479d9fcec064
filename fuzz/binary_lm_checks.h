/* binary_lm_checks.h - checks of a binary language model that a reader has accepted from arbitrary
 * bytes. Queries must not give NaN or a state out of range, and pruning must work. */
#ifndef FUZZ_BINARY_LM_CHECKS_H
#define FUZZ_BINARY_LM_CHECKS_H

#include <math.h>
#include <stdlib.h>

#include "lm/lm.h"
#include "lm/ngram_collector.h"

static void check(bool holds) {
  if (!holds) abort();
}

static void check_model(const wf__automaton *lm) {
  uint64_t random = 1;
  uint32_t state = lm->start;
  for (int i = 0; i < 200; i++) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    int32_t order, word = (int32_t)((random >> 33) % (lm->num_labels + 2)) - 1;
    float cost = wf__automaton_step(lm, state, word, &state, &order);
    check(!isnan(cost) && cost != -INFINITY && state < lm->num_states && order >= 0 &&
          order <= lm->order);
    check(!isnan(wf__automaton_final(lm, state, &order)) && order <= lm->order);
    if (i % 20 == 19) state = lm->start;
  }
}

static void check_pruned(const wf_lm *lm) {
  wf_lm_prune_options options;
  wf_lm_prune_options_init(&options);
  options.threshold = 1e-6f;
  options.num_threads = 1;
  options.max_words = 3;
  wf_error err;
  wf_lm *small;
  wf_status status = wf_lm_prune(lm, NULL, &options, &small, NULL, NULL, &err);
  check(status == WF_OK || (status == WF_ERR_ARGUMENT && small == NULL)); /* no word left */
  if (small == NULL) return;
  check_model(small->automaton);
  wf_lm_free(small);
}

static void check_reader(wf__input *input, wf__ngram_read_fn read) {
  wf__automaton *automaton;
  wf_lm *lm;
  wf_error err;
  wf_status status =
      wf__collect_ngrams(input->path, NULL, NULL, read, input, &automaton, NULL, NULL, &err);
  check((status == WF_OK) == (automaton != NULL));
  if (automaton == NULL) return;
  check_model(automaton);
  check(wf__lm_of_automaton(automaton, "input", &lm, &err) == WF_OK);
  check_pruned(lm);
  wf_lm_free(lm);
}

#endif
