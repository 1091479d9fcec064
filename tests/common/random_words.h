/* random_words.h - random tasks whose graphs have places for added words, and words to add. Labels
 * and words are few, so that phrases share prefixes, sound alike, or are equal. */
#ifndef TESTS_RANDOM_WORDS_H
#define TESTS_RANDOM_WORDS_H

#include "decode_tasks.h"

enum { MAX_PHRASES = 6, MAX_WORDS = 3, MAX_LABELS = 3, NUM_CLASSES = 2 };

struct phrases {
  wf_added_phrase list[MAX_PHRASES];
  wf_spoken_word words[MAX_PHRASES][MAX_WORDS];
  int32_t labels[MAX_PHRASES][MAX_WORDS][MAX_LABELS];
  size_t count;
};

/* Labels are 2 .. num_tokens. They are few, so that phrases share prefixes, sound alike, or are
 * equal. */
static inline void random_phrases(test_rng *rng, int32_t num_tokens, struct phrases *out) {
  out->count = test_below(rng, MAX_PHRASES + 1);
  for (size_t i = 0; i < out->count; i++) {
    out->list[i] = (wf_added_phrase){out->words[i], 1 + test_below(rng, MAX_WORDS),
                                     (float)((int)test_below(rng, 9) - 2) / 8};
    for (size_t k = 0; k < out->list[i].num_words; k++) {
      out->words[i][k] = (wf_spoken_word){1 + (int32_t)test_below(rng, 6), out->labels[i][k],
                                          1 + test_below(rng, MAX_LABELS)};
      for (size_t l = 0; l < MAX_LABELS; l++)
        out->labels[i][k][l] = 2 + (int32_t)test_below(rng, (uint32_t)num_tokens - 1);
    }
  }
}

/* Symbol table of the labels 1 .. num_tokens and the classes after them. */
static inline wf_symbols *label_table(int32_t num_tokens, bool transducer) {
  wf_error err = {0};
  wf_symbols *table;
  char text[16];
  assert_ok(wf_symbols_create("labels", &table, &err));
  assert_ok(wf_symbols_add(table, "<eps>", 0, NULL, &err));
  for (int32_t label = 1; label <= num_tokens; label++) {
    snprintf(text, sizeof text, "t%d", label);
    assert_ok(wf_symbols_add(table, text, label, NULL, &err));
  }
  assert_ok(wf_symbols_add(table, transducer ? "#1<c>" : "#<c>", num_tokens + 1, NULL, &err));
  assert_ok(wf_symbols_add(table, transducer ? "#1<d>" : "#<d>", num_tokens + 2, NULL, &err));
  return table;
}

/* Turns some arcs into places of classes. The states that they leave get a loop of the blank, label
 * 1. */
static inline wf_fst *with_places(test_rng *rng, const wf_fst *fst, int32_t num_tokens,
                                  bool transducer) {
  wf_error err = {0};
  wf_fst_view view = wf_fst_get_view(fst);
  wf_builder *builder;
  wf_fst *out;
  wf_symbols *table = label_table(num_tokens, transducer);
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, (uint32_t)view.start, &err));
  for (uint32_t s = 0; s < view.num_states; s++) {
    bool place = test_below(rng, 2) == 0;
    if (view.final_cost[s] != INFINITY)
      assert_ok(wf_builder_set_final(builder, s, view.final_cost[s], &err));
    for (uint64_t a = view.arc_off[s]; a < view.arc_off[s + 1]; a++) {
      wf_arc arc = view.arcs[a];
      if (place && test_below(rng, 2) == 0)
        arc.ilabel = num_tokens + 1 + (int32_t)test_below(rng, NUM_CLASSES), arc.olabel = 0;
      else if (place && arc.nextstate == s && arc.olabel == 0)
        continue; /* no second loop */
      assert_ok(wf_builder_add_arc(builder, s, arc, &err));
    }
    if (place) assert_ok(wf_builder_add_arc(builder, s, (wf_arc){s, 0, 1, 0}, &err));
  }
  assert_ok(wf_builder_finish(builder, table, NULL, &out, &err));
  wf_builder_free(builder);
  wf_symbols_free(table);
  return out;
}

/* A random task whose graph has places. `with` is its graph with added words, or NULL if nothing
 * can be added. */
struct added_task {
  struct decode_task task;
  wf_fst *fst;
  int32_t num_tokens;
  struct phrases phrases[NUM_CLASSES];
  wf_graph *with;
};

/* Returns NULL if no path goes through the class. */
static inline wf_graph *with_phrases(const wf_graph *graph, const char *word_class,
                                     const struct phrases *phrases) {
  wf_error err = {0};
  wf_graph *out;
  if (wf_graph_add_phrases(graph, word_class, phrases->list, phrases->count, &out, &err) == WF_OK)
    return out;
  assert_non_null(strstr(err.message, "no path"));
  return NULL;
}

/* A random bigram model over the tokens t2, t3, ... */
static inline wf_lm *random_spelling(test_rng *rng, int32_t num_tokens) {
  wf_error err = {0};
  char text[8192];
  int used = snprintf(text, sizeof text, "\\data\\\nngram 1=%d\nngram 2=%d\n\n\\1-grams:\n",
                      num_tokens + 1, num_tokens - 1);
  used += snprintf(text + used, sizeof text - (size_t)used, "-99\t<s>\t-0.1\n-0.%u\t</s>\n",
                   1 + test_below(rng, 9));
  for (int32_t t = 2; t <= num_tokens; t++)
    used += snprintf(text + used, sizeof text - (size_t)used, "-0.%u\tt%d\t-0.%u\n",
                     1 + test_below(rng, 9), t, 1 + test_below(rng, 9));
  used += snprintf(text + used, sizeof text - (size_t)used, "\n\\2-grams:\n");
  for (int32_t t = 2; t <= num_tokens; t++)
    used +=
        snprintf(text + used, sizeof text - (size_t)used, "-0.%u\tt%d\tt%d\n",
                 1 + test_below(rng, 9), t, 2 + (int32_t)test_below(rng, (uint32_t)num_tokens - 1));
  used += snprintf(text + used, sizeof text - (size_t)used, "\n\\end\\\n");
  wf_lm *lm;
  assert_ok(wf_lm_open(test_write_file("spelling.arpa", text, (size_t)used), NULL, NULL, &lm, NULL,
                       NULL, &err));
  return lm;
}

/* The class stands for all words that tokens spell: states in loops, unlike those of phrases.
 * Returns NULL if no path goes through the class. */
static inline wf_graph *with_spelling(const wf_graph *graph, const char *word_class, test_rng *rng,
                                      int32_t num_tokens) {
  wf_error err = {0};
  wf_graph *out;
  wf_symbols *words;
  wf_lm *lm = random_spelling(rng, num_tokens);
  assert_ok(wf_symbols_create("words", &words, &err));
  assert_ok(wf_symbols_add(words, "w6", 6, NULL, &err));
  wf_status status = wf_graph_add_spelling(graph, word_class, lm, 0.5f,
                                           (float)test_below(rng, 9) / -4, words, &out, &err);
  wf_lm_free(lm);
  wf_symbols_free(words);
  if (status == WF_OK) return out;
  assert_non_null(strstr(err.message, "no path"));
  return NULL;
}

static inline bool is_fitting(uint64_t seed, struct added_task *out) {
  wf_error err = {0};
  *out = (struct added_task){.task = test_random_task(seed)};
  test_rng rng = {seed * 17};
  out->num_tokens = out->task.scores.num_columns;
  if (out->num_tokens < 2) return false;
  out->fst = with_places(&rng, wf_graph_fst(out->task.graph), out->num_tokens, false);
  wf_graph_free(out->task.graph);
  out->task.graph = NULL;
  if (wf_graph_create(out->fst, NULL, 0, &out->task.graph, &err) != WF_OK)
    return false; /* the loops of the blank make a cycle negative */
  for (int c = 0; c < NUM_CLASSES; c++) random_phrases(&rng, out->num_tokens, &out->phrases[c]);
  out->with = with_phrases(out->task.graph, "<c>", &out->phrases[0]);
  if (out->with == NULL) return false;
  if (test_below(&rng, 2) == 0) {
    wf_graph *both = with_phrases(out->with, "<d>", &out->phrases[1]);
    if (both != NULL) {
      wf_graph_free(out->with);
      out->with = both;
      return true;
    }
  }
  out->phrases[1].count = 0;
  if (seed % 3 == 0) out->task.options.lattice_beam = 0.25f * (float)(1 + test_below(&rng, 20));
  return true;
}

static inline void free_added(struct added_task *task) {
  wf_graph_free(task->with);
  wf_fst_free(task->fst);
  test_free_task(&task->task);
}

#endif
