/* fuzz_arpa.c - reads arbitrary bytes as an ARPA file, with the file's own word list and with a
 * given symbol table. If the reader accepts a model, queries must not give NaN or a state out of
 * range, every state must back off to one with a smaller number, conversion to an acceptor must
 * sort the arcs, and pruning must work. */
#include <math.h>
#include <stdlib.h>

#include "fst/fst.h"
#include "lm/arpa.h"
#include "lm/lm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
  if (!holds) abort();
}

static void check_queries(const wf__automaton *lm) {
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
  for (uint32_t s = 1; s < lm->num_states; s++) {
    check(lm->states[s].backoff < s && lm->states[s].first_arc <= lm->states[s + 1].first_arc);
    for (uint64_t a = lm->states[s].first_arc; a < lm->states[s + 1].first_arc; a++) {
      check(lm->arcs[a].next < lm->num_states && !isnan(lm->arcs[a].cost));
      check(a == lm->states[s].first_arc || lm->arcs[a - 1].word < lm->arcs[a].word);
    }
  }
}

static void check_fst(const wf_lm *lm, int backoff) {
  wf_lm_fst_options options;
  wf_lm_fst_options_init(&options);
  options.backoff = backoff;
  options.backoff_label = backoff == 0 ? 0 : (int32_t)lm->automaton->num_labels;
  wf_error err;
  wf_fst *fst;
  check(wf_lm_to_fst(lm, &options, &fst, &err) == WF_OK);
  wf_fst_view view = wf_fst_get_view(fst);
  check(wf__fst_check(&view, "grammar", &err) == WF_OK);
  uint32_t properties = wf_fst_properties(fst);
  check((properties & WF_PROP_ILABEL_SORTED) && (properties & WF_PROP_ACCESSIBLE));
  wf_fst_free(fst);
}

static void check_pruned(const wf_lm *lm) {
  wf_lm_prune_options options;
  wf_lm_prune_options_init(&options);
  options.max_total = (int64_t)lm->automaton->num_arcs / 2 + 3;
  options.criterion = lm->automaton->num_arcs % 2;
  options.num_threads = 1;
  wf_error err;
  wf_lm *small;
  check(wf_lm_prune(lm, NULL, &options, &small, NULL, NULL, &err) == WF_OK);
  check_queries(small->automaton);
  wf_lm_free(small);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  wf__input input = {.data = data, .size = size, .path = "input"};
  wf_error err;
  wf_symbols *words;
  static const char *const given[] = {"<eps>", "a", "b", "<unk>", "<s>"};
  if (wf_symbols_create("words", &words, &err) != WF_OK) return 0;
  for (int i = 0; i < 5; i++) check(wf_symbols_add(words, given[i], i, NULL, &err) == WF_OK);
  for (int pass = 0; pass < 2; pass++) {
    wf__automaton *automaton;
    wf_lm *lm;
    wf_arpa_stats stats;
    wf_arpa_stats_init(&stats);
    wf_status status = wf__lm_read_arpa_input(&input, pass == 0 ? NULL : words, NULL, &automaton,
                                              &stats, NULL, &err);
    check((status == WF_OK) == (automaton != NULL));
    if (automaton == NULL) continue;
    check_queries(automaton);
    check(wf__lm_of_automaton(automaton, "input", &lm, &err) == WF_OK);
    check_fst(lm, 0);
    check_fst(lm, 1);
    check_pruned(lm);
    wf_lm_free(lm);
  }
  wf_symbols_free(words);
  return 0;
}
