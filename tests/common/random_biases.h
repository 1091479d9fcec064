/* random_biases.h - random biases of generators: tokens of few letters, phrases, n-gram models of
 * tokens and of words, grammars. */
#ifndef TESTS_RANDOM_BIASES_H
#define TESTS_RANDOM_BIASES_H

#include "random_scorers.h"

enum { TOKENS = 16, MOST_PHRASES = 8 };

/* Random tokens of few letters. The last but one is silent, the last one ends the text. */
struct vocabulary {
  char texts[TOKENS][6];
  uint8_t kinds[TOKENS];
  wf_token_texts *table;
};

static inline void make_vocabulary(test_rng *rng, struct vocabulary *out) {
  wf_error err = {0};
  char bytes[TOKENS * 6];
  uint64_t offsets[TOKENS + 1] = {0};
  for (int t = 0; t < TOKENS; t++) {
    const uint32_t size = test_below(rng, 10) == 0 ? 0 : 1 + test_below(rng, 4);
    for (uint32_t i = 0; i < size; i++) out->texts[t][i] = " abcde"[test_below(rng, 6)];
    out->texts[t][size] = '\0';
    out->kinds[t] = (uint8_t)(test_below(rng, 4) << 2);
    memcpy(bytes + offsets[t], out->texts[t], size);
    offsets[t + 1] = offsets[t] + size;
  }
  out->kinds[TOKENS - 2] = WF_TOKEN_SILENT;
  out->kinds[TOKENS - 1] = WF_TOKEN_ENDS;
  assert_ok(wf_token_texts_create(bytes, offsets, out->kinds, TOKENS, &out->table, &err));
}

struct phrase_list {
  int32_t words[64];
  uint64_t off[MOST_PHRASES + 1];
  float boosts[MOST_PHRASES];
  size_t count;
};

/* Phrases that begin where words may begin have no tokens that break beside them. */
static inline wf_scorer *random_phrases(test_rng *rng, const struct vocabulary *tokens,
                                        struct phrase_list *out) {
  wf_error err = {0};
  wf_scorer *scorer = NULL;
  while (scorer == NULL) {
    bool starts = false;
    for (int t = 0; t < TOKENS - 2; t++) starts = starts || !(tokens->kinds[t] & WF_TOKEN_BREAKS);
    starts = starts && test_below(rng, 2);
    uint64_t at = 0;
    out->count = test_below(rng, MOST_PHRASES);
    out->off[0] = 0;
    for (size_t i = 0; i < out->count; i++) {
      if (starts && test_below(rng, 2)) out->words[at++] = TOKENS + 1;
      for (uint32_t size = 1 + test_below(rng, 3); size > 0;) {
        const uint32_t token = test_below(rng, TOKENS - 2);
        if (starts && (tokens->kinds[token] & WF_TOKEN_BREAKS)) continue;
        out->words[at++] = (int32_t)token + 1;
        size--;
      }
      out->off[i + 1] = at;
      out->boosts[i] = random_boost(rng);
    }
    if (wf_scorer_boost_phrases(out->words, out->off, out->boosts, out->count, &scorer, &err) !=
        WF_OK)
      scorer = NULL;
  }
  return scorer;
}

/* A model whose words are tokens: "c" is label 1, ... */
static inline wf_symbols *token_names(void) {
  wf_error err = {0};
  wf_symbols *table;
  char text[16];
  assert_ok(wf_symbols_create("tokens", &table, &err));
  assert_ok(wf_symbols_add(table, "<eps>", 0, NULL, &err));
  for (int t = 0; t < TOKENS; t++) {
    snprintf(text, sizeof text, t < 5 ? "%c" : "t%d", t < 5 ? "cadbe"[t] : t);
    assert_ok(wf_symbols_add(table, text, t + 1, NULL, &err));
  }
  return table;
}

/* A deterministic acceptor with labels 1 .. num_labels. */
static inline wf_fst *random_grammar(test_rng *rng, int32_t num_labels) {
  wf_error err = {0};
  const test_fst_shape shape = {.num_states = 5,
                                .num_arcs = 30,
                                .num_ilabels = num_labels,
                                .num_olabels = num_labels,
                                .final_share = 0.4f,
                                .max_weight = 2,
                                .acyclic = false,
                                .acceptor = true,
                                .semiring = WF_TROPICAL};
  wf_fst *fst = test_random_fst(rng, &shape);
  const wf_fst_view view = wf_fst_get_view(fst);
  wf_builder *builder;
  wf_fst *out;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, (uint32_t)view.start, &err));
  for (uint32_t s = 0; s < view.num_states; s++) {
    bool seen[300] = {0};
    assert_ok(wf_builder_set_final(builder, s, view.final_cost[s], &err));
    for (uint64_t a = view.arc_off[s]; a < view.arc_off[s + 1]; a++) {
      if (seen[view.arcs[a].ilabel]) continue;
      seen[view.arcs[a].ilabel] = true;
      wf_arc arc = view.arcs[a];
      if (test_below(rng, 4) == 0) arc.weight = 0;
      assert_ok(wf_builder_add_arc(builder, s, arc, &err));
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  wf_fst_free(fst);
  return out;
}

/* Everything that a bias can be made of. */
struct task {
  struct vocabulary tokens, lm_texts;
  struct phrase_list phrases;
  wf_lm *lm;
  wf_bias_parts parts;
  wf_bias *bias;
};

static inline wf_scorer *chained(wf_scorer *first, wf_scorer *second) {
  wf_error err = {0};
  wf_scorer *chain;
  assert_ok(wf_scorer_chain(first, second, &chain, &err));
  wf_scorer_free(first);
  wf_scorer_free(second);
  return chain;
}

static inline void make_task(test_rng *rng, struct task *task, bool phrases, bool ngrams, bool lm,
                             bool grammar) {
  wf_error err = {0};
  memset(task, 0, sizeof *task);
  make_vocabulary(rng, &task->tokens);
  make_vocabulary(rng, &task->lm_texts);
  wf_bias_parts_init(&task->parts);
  wf_scorer *scorer = phrases ? random_phrases(rng, &task->tokens, &task->phrases) : NULL;
  if (ngrams) {
    wf_symbols *table = token_names();
    wf_scorer *tokens_lm = random_ngram(rng, table, test_below(rng, 2));
    scorer = scorer == NULL ? tokens_lm : chained(scorer, tokens_lm);
    wf_symbols_free(table);
  }
  task->parts.tokens = task->tokens.table;
  task->parts.scorer = scorer;
  task->parts.grammar = grammar ? random_grammar(rng, TOKENS - 2) : NULL;
  if (lm) {
    task->lm = random_lm(rng, test_below(rng, 2));
    task->parts.lm = task->lm;
    task->parts.lm_texts = task->lm_texts.table;
    task->parts.lm_scale = 0.25f * (float)(1 + test_below(rng, 4));
  }
  if (wf_bias_create(&task->parts, &task->bias, &err) != WF_OK) {
    assert_non_null(strstr(err.message, "accepts no text"));
    assert_null(task->bias);
  }
}

static inline void free_task(struct task *task) {
  wf_scorer_free((wf_scorer *)(uintptr_t)task->parts.scorer);
  wf_fst_free((wf_fst *)(uintptr_t)task->parts.grammar);
  wf_lm_free(task->lm);
  wf_token_texts_free(task->tokens.table);
  wf_token_texts_free(task->lm_texts.table);
  wf_bias_free(task->bias);
}

#endif
