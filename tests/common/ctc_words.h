/* ctc_words.h - random token graphs with places for added words, and words to add. */
#ifndef TESTS_CTC_WORDS_H
#define TESTS_CTC_WORDS_H

#include "ctc_tasks.h"
#include "random_words.h"

/* `with`: the graph of `task.shared` with words; NULL if nothing can be added. */
struct ctc_words {
  struct ctc_task task;
  struct phrases phrases[NUM_CLASSES];
  bool spelled; /* the class <c> stands for what tokens spell, not for phrases */
  wf_graph *with;
};

static inline bool ctc_with_places(test_rng *rng, uint32_t state, wf_arc *arc) {
  (void)state;
  if (test_below(rng, g_num_tokens > 100 ? 20 : 3) != 0) return true;
  arc->ilabel = g_num_tokens + 1 + (int32_t)test_below(rng, NUM_CLASSES);
  arc->olabel = 0;
  return true;
}

/* Words for the class; NULL if no path goes through it. */
static inline wf_graph *ctc_add(struct ctc_words *words, const wf_graph *graph, int c,
                                test_rng *rng) {
  static const char *const names[NUM_CLASSES] = {"<c>", "<d>"};
  random_phrases(rng, words->task.num_tokens, &words->phrases[c]);
  return words->spelled && c == 0 ? with_spelling(graph, names[c], rng, words->task.num_tokens)
                                  : with_phrases(graph, names[c], &words->phrases[c]);
}

static inline void ctc_add_words(struct ctc_words *words, test_rng *rng) {
  words->with = ctc_add(words, words->task.shared.graph, 0, rng);
  wf_graph *both =
      words->with != NULL && test_below(rng, 2) == 0 ? ctc_add(words, words->with, 1, rng) : NULL;
  if (both == NULL) {
    words->phrases[1].count = 0;
    return;
  }
  wf_graph_free(words->with);
  words->with = both;
}

/* wide: some states have an arc for each of hundreds of tokens. */
static inline void ctc_random_words(uint64_t seed, bool wide, struct ctc_words *words) {
  wf_error err = {0};
  test_rng rng = {seed * 0x2af1 + wide};
  *words = (struct ctc_words){.task = {.num_tokens = wide ? 220 + (int32_t)test_below(&rng, 20)
                                                          : 2 + (int32_t)test_below(&rng, 4),
                                       .blank = 1},
                              .spelled = test_below(&rng, 4) == 0};
  struct ctc_task *task = &words->task;
  g_blank = task->blank;
  g_num_tokens = task->num_tokens;
  wf_fst *plain = wide ? ctc_wide_graph(&rng) : ctc_small_graph(&rng);
  wf_symbols *table = label_table(task->num_tokens, false);
  plain = test_changed_fst(plain, &rng, ctc_with_places);
  assert_ok(wf_fst_with_symbols(plain, table, NULL, &task->token_graph, &err));
  wf__fst_set_ctc_blank(task->token_graph, task->blank);
  assert_ok(wf_graph_create(task->token_graph, NULL, 0, &task->shared.graph, &err));
  assert_non_null(task->shared.graph->ctc);
  ctc_random_options(&rng, wide, task);
  ctc_random_scores(&rng, (struct ctc_shape){.plain = true}, task);
  ctc_add_words(words, &rng);
  wf_symbols_free(table);
  wf_fst_free(plain);
}

static inline void ctc_free_words(struct ctc_words *words) {
  wf_graph_free(words->with);
  ctc_free_task(&words->task);
}

/* All states and arcs of a graph with added words, under the same numbers. The caller frees it. */
static inline wf_graph *ctc_explicit_words(const wf_graph *graph) {
  wf_error err = {0};
  wf__csr csr = {0};
  wf_fst *fst;
  wf_graph *whole;
  for (uint32_t s = 0; s < graph->num_states; s++) {
    const wf__arc_run run = wf__emitting_run(graph, s), epsilons = wf__epsilon_run(graph, s);
    assert_ok(wf__csr_add_state(&csr, wf__graph_final(graph, s), &err));
    assert_int_equal(epsilons.first, run.end + wf__num_stays(&run));
    assert_int_equal(csr.arcs.size, run.first);
    for (uint32_t a = run.first; a < epsilons.end; a++) {
      wf_arc arc = wf__graph_arc_from(graph, s, a);
      if (a < run.end && arc.ilabel == run.held) arc.weight = INFINITY;
      assert_ok(wf__csr_push(&csr, arc, &err));
      assert_int_equal(wf__ctc_source(graph, a), s);
    }
  }
  assert_int_equal(csr.arcs.size, graph->num_arcs);
  assert_ok(wf__fst_from_csr(&csr, graph->start, WF_TROPICAL, NULL, NULL, &fst, &err));
  assert_ok(wf_graph_create(fst, graph->columns, (size_t)graph->num_labels, &whole, &err));
  whole->blank_column = graph->blank_column;
  whole->num_tokens = graph->num_tokens;
  wf_fst_free(fst);
  return whole;
}

#endif
