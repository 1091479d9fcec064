/* test_bias.c - biases of generators, compared with their definitions: rows with single tokens,
 * phrases counted in the text, words with their language model, grammars of tokens with those of
 * bytes. */
#include "random_biases.h"

enum { WIDTH = 18, STRIDE = 19, STEPS = 12 };

static wf_error err;

/* Fails unless the row of a state has the costs of its tokens, bit for bit without a grammar. */
static void check_row(test_rng *rng, const wf_bias *bias, const wf_bias_state *state,
                      bool has_grammar, int *num_allowed) {
  float logits[STRIDE], row[STRIDE];
  for (int t = 0; t < STRIDE; t++) row[t] = logits[t] = 8 * test_unit(rng) - 4;
  assert_ok(wf_bias_add(&bias, state, 1, row, WIDTH, STRIDE, 1, &err));
  for (int32_t t = 0; t < STRIDE; t++) {
    wf_bias_state next = *state;
    float cost = 0;
    if (t < TOKENS) assert_ok(wf_bias_advance(&bias, &next, &t, 1, &cost, &err));
    if (t >= TOKENS && t < WIDTH && has_grammar && !state->ended) cost = INFINITY;
    const float expected = logits[t] - cost;
    if (!has_grammar || isinf(expected))
      assert_memory_equal(&row[t], &expected, sizeof expected);
    else
      assert_true(fabsf(row[t] - expected) < 1e-5f);
    *num_allowed += !isinf(row[t]);
  }
}

static void test_rows_have_the_costs_of_tokens(void **unused) {
  (void)unused;
  int made = 0, allowed = 0;
  for (uint64_t seed = 1; seed <= test_seeds(600); seed++) {
    test_rng rng = {seed};
    struct task task;
    const bool grammar = seed % 16 & 1;
    make_task(&rng, &task, seed % 16 & 2, seed % 16 & 4, seed % 16 & 8, grammar);
    for (int walk = 0; walk < 8 && task.bias != NULL; walk++, made++) {
      wf_bias_state state = wf_bias_start(task.bias);
      for (int i = 0; i < STEPS; i++) {
        check_row(&rng, task.bias, &state, grammar, &allowed);
        const int32_t token = (int32_t)test_below(&rng, i < STEPS / 2 ? TOKENS - 1 : TOKENS);
        assert_ok(
            wf_bias_advance((const wf_bias *const *)&task.bias, &state, &token, 1, NULL, &err));
      }
    }
    free_task(&task);
  }
  assert_true(test_many((uint64_t)made, 3000, 600) && test_many((uint64_t)allowed, 300000, 600));
}

/* Cost of tokens and of the end. */
static double cost_of(const wf_bias *bias, const int32_t *tokens, int count) {
  wf_bias_state state = wf_bias_start(bias);
  const int32_t end = TOKENS - 1;
  double sum = 0;
  float cost;
  for (int i = 0; i <= count; i++) {
    assert_ok(wf_bias_advance(&bias, &state, i < count ? &tokens[i] : &end, 1, &cost, &err));
    sum += (double)cost;
  }
  assert_true(state.ended);
  return sum;
}

/* Is the phrase listed before? */
static bool is_repeated(const struct phrase_list *phrases, size_t p) {
  const uint64_t size = phrases->off[p + 1] - phrases->off[p];
  for (size_t q = 0; q < p; q++)
    if (phrases->off[q + 1] - phrases->off[q] == size &&
        memcmp(phrases->words + phrases->off[p], phrases->words + phrases->off[q],
               size * sizeof *phrases->words) == 0)
      return true;
  return false;
}

/* The boosts of all phrases in a text without special tokens, by looking at each place. */
static double boosts_in(const struct vocabulary *vocabulary, const struct phrase_list *phrases,
                        const int32_t *tokens, int count) {
  double sum = 0;
  for (int at = 0; at < count; at++)
    for (size_t p = 0; p < phrases->count; p++) {
      const int32_t *labels = phrases->words + phrases->off[p];
      int size = (int)(phrases->off[p + 1] - phrases->off[p]);
      if (labels[0] == TOKENS + 1) {
        if (at > 0 && !(vocabulary->kinds[tokens[at - 1]] & WF_TOKEN_BREAKS)) continue;
        labels++, size--;
      }
      bool same = !is_repeated(phrases, p) && at + size <= count;
      for (int i = 0; same && i < size; i++) same = tokens[at + i] == labels[i] - 1;
      if (!same) continue;
      const int after = at + size;
      const bool goes_on = after < count &&
                           (vocabulary->kinds[tokens[after]] & WF_TOKEN_CONTINUES) &&
                           !(vocabulary->kinds[tokens[after - 1]] & WF_TOKEN_BREAKS);
      if (!goes_on) sum += (double)phrases->boosts[p];
    }
  return sum;
}

/* Random tokens, most of them of phrases. */
static int random_text(test_rng *rng, const struct phrase_list *phrases, int32_t *out) {
  int count = 0;
  while (count < STEPS) {
    const uint32_t p = test_below(rng, (uint32_t)phrases->count + 1);
    if (p == phrases->count) {
      out[count++] = (int32_t)test_below(rng, TOKENS - 2);
      if (test_below(rng, 8) == 0) break;
      continue;
    }
    for (uint64_t i = phrases->off[p]; i < phrases->off[p + 1] && count < STEPS; i++)
      if (phrases->words[i] <= TOKENS && test_below(rng, 8) > 0)
        out[count++] = phrases->words[i] - 1;
    if (test_below(rng, 8) == 0) break;
  }
  return count;
}

static void test_phrases_of_a_text(void **unused) {
  (void)unused;
  int found = 0;
  for (uint64_t seed = 1; seed <= test_seeds(2000); seed++) {
    test_rng rng = {seed};
    struct task task;
    make_task(&rng, &task, true, false, false, false);
    for (int walk = 0; walk < 10; walk++) {
      int32_t tokens[STEPS], with_silence[2 * STEPS];
      const int count = random_text(&rng, &task.phrases, tokens);
      const double expected = boosts_in(&task.tokens, &task.phrases, tokens, count);
      test_assert_close(cost_of(task.bias, tokens, count), -expected, 1e-4);
      int longer = 0;
      for (int i = 0; i < count; i++) {
        if (test_below(&rng, 2)) with_silence[longer++] = TOKENS - 2;
        with_silence[longer++] = tokens[i];
      }
      test_assert_close(cost_of(task.bias, with_silence, longer), -expected, 1e-4);
      found += expected != 0;
    }
    free_task(&task);
  }
  assert_true(test_many((uint64_t)found, 5000, 2000));
}

/* The cost of the words between spaces, from the model itself. */
static double words_cost(const wf_lm *lm, const char *text) {
  uint32_t state = wf_lm_start(lm);
  double sum = 0;
  char word[128];
  while (*text != '\0') {
    const size_t size = strcspn(text, " ");
    snprintf(word, sizeof word, "%.*s", (int)size, text);
    const int64_t label = wf_symbols_find(wf_lm_words(lm), word);
    if (size > 0)
      sum += (double)wf_lm_step(lm, state, label < 0 ? INT32_MAX : (int32_t)label, &state, NULL);
    text += size + (text[size] == ' ');
  }
  return sum + (double)wf_lm_final(lm, state, NULL);
}

static void test_words_of_a_text(void **unused) {
  (void)unused;
  int finite = 0;
  for (uint64_t seed = 1; seed <= test_seeds(600); seed++) {
    test_rng rng = {seed};
    struct task task;
    make_task(&rng, &task, false, false, true, false);
    for (int walk = 0; walk < 20; walk++) {
      int32_t tokens[STEPS];
      char text[STEPS * 6 + 1] = "";
      const int count = (int)test_below(&rng, STEPS);
      for (int i = 0; i < count; i++) {
        tokens[i] = (int32_t)test_below(&rng, TOKENS - 2);
        strcat(text, task.lm_texts.texts[tokens[i]]);
      }
      const double expected = (double)task.parts.lm_scale * words_cost(task.lm, text),
                   found = cost_of(task.bias, tokens, count);
      if (isinf(expected) != isinf(found)) fail_msg("seed %d: '%s'", (int)seed, text);
      if (!isinf(expected)) test_assert_close(found, expected, 1e-3);
      finite += !isinf(expected);
    }
    free_task(&task);
  }
  assert_true(test_many((uint64_t)finite, 3000, 600));
}

/* The cost of a string in a deterministic acceptor with labels `first` + byte. */
static double accepted_cost(const wf_fst *fst, const int32_t *labels, size_t count) {
  const wf_fst_view view = wf_fst_get_view(fst);
  double sum = 0;
  if (view.start < 0) return INFINITY;
  uint32_t state = (uint32_t)view.start;
  for (size_t i = 0; i < count; i++) {
    uint64_t a = view.arc_off[state];
    while (a < view.arc_off[state + 1] && view.arcs[a].ilabel != labels[i]) a++;
    if (a == view.arc_off[state + 1]) return INFINITY;
    sum += (double)view.arcs[a].weight;
    state = view.arcs[a].nextstate;
  }
  return sum + (double)view.final_cost[state];
}

static wf_fst *random_bytes(test_rng *rng) {
  wf_fst *small = random_grammar(rng, 4);
  const wf_fst_view view = wf_fst_get_view(small);
  static const unsigned char letters[] = {0, ' ', 'a', 'b', 'c'};
  wf_builder *builder;
  wf_fst *out;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  if (view.start >= 0) assert_ok(wf_builder_set_start(builder, (uint32_t)view.start, &err));
  for (uint32_t s = 0; s < view.num_states; s++) {
    assert_ok(wf_builder_set_final(builder, s, view.final_cost[s], &err));
    for (uint64_t a = view.arc_off[s]; a < view.arc_off[s + 1]; a++) {
      wf_arc arc = view.arcs[a];
      arc.ilabel = arc.olabel = letters[arc.ilabel] + 1;
      assert_ok(wf_builder_add_arc(builder, s, arc, &err));
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  wf_fst_free(small);
  return out;
}

static void test_grammars_of_bytes(void **unused) {
  (void)unused;
  int accepted = 0, refused = 0;
  for (uint64_t seed = 1; seed <= test_seeds(300); seed++) {
    test_rng rng = {seed};
    struct vocabulary vocabulary;
    make_vocabulary(&rng, &vocabulary);
    wf_fst *bytes = random_bytes(&rng), *tokens;
    assert_ok(wf_token_texts_to_fst(vocabulary.table, bytes, &tokens, &err));
    wf_bias_parts parts;
    wf_bias *bias = NULL;
    wf_bias_parts_init(&parts);
    parts.tokens = vocabulary.table;
    parts.grammar = tokens;
    if (wf_fst_get_view(tokens).start >= 0) assert_ok(wf_bias_create(&parts, &bias, &err));
    for (int one = 0; one < TOKENS * TOKENS * TOKENS; one++) { /* all texts of up to 3 tokens */
      const int32_t text[3] = {one % TOKENS, one / TOKENS % TOKENS, one / TOKENS / TOKENS};
      const int count = one % 4;
      int32_t labels[3], letters[16];
      size_t size = 0;
      bool plain = true;
      for (int i = 0; i < count; i++) {
        const char *piece = vocabulary.texts[text[i]];
        labels[i] = text[i] + 1;
        plain = plain && piece[0] != '\0' && text[i] < TOKENS - 2;
        for (; *piece != '\0'; piece++) letters[size++] = (unsigned char)*piece + 1;
      }
      const double expected = plain ? accepted_cost(bytes, letters, size) : INFINITY,
                   found = accepted_cost(tokens, labels, (size_t)count);
      assert_true(isinf(expected) ? isinf(found) : fabs(found - expected) < 1e-5);
      if (bias != NULL && plain) {
        const double cost = cost_of(bias, text, count);
        assert_true(isinf(expected) ? isinf(cost) : fabs(cost - expected) < 1e-5);
      }
      isinf(expected) ? refused++ : accepted++;
    }
    wf_bias_free(bias);
    wf_fst_free(bytes);
    wf_fst_free(tokens);
    wf_token_texts_free(vocabulary.table);
  }
  assert_true(test_many((uint64_t)accepted, 10000, 300) &&
              test_many((uint64_t)refused, 10000, 300));
}

/* Greedy texts of random logits stay in the grammar, and end where it ends. */
static void test_texts_in_the_grammar(void **unused) {
  (void)unused;
  int ended = 0;
  for (uint64_t seed = 1; seed <= test_seeds(400); seed++) {
    test_rng rng = {seed};
    struct task task;
    make_task(&rng, &task, true, false, false, true);
    if (task.bias != NULL) {
      wf_fst *trimmed;
      assert_ok(wf_connect(task.parts.grammar, &trimmed, &err));
      wf_bias_free(task.bias);
      task.bias = NULL;
      wf_fst_free((wf_fst *)(uintptr_t)task.parts.grammar);
      task.parts.grammar = trimmed;
      if (wf_fst_get_view(trimmed).start >= 0)
        assert_ok(wf_bias_create(&task.parts, &task.bias, &err));
    }
    for (int walk = 0; walk < 10 && task.bias != NULL; walk++) {
      wf_bias_state state = wf_bias_start(task.bias);
      int32_t labels[100];
      size_t count = 0;
      while (count < 100 && !state.ended) {
        float row[TOKENS];
        int32_t best = 0;
        for (int t = 0; t < TOKENS; t++) row[t] = 20 * test_unit(&rng);
        assert_ok(wf_bias_add((const wf_bias *const *)&task.bias, &state, 1, row, TOKENS, TOKENS, 1,
                              &err));
        for (int32_t t = 1; t < TOKENS; t++)
          if (row[t] > row[best]) best = t;
        assert_false(isinf(row[best]));
        labels[count++] = best + 1;
        assert_ok(
            wf_bias_advance((const wf_bias *const *)&task.bias, &state, &best, 1, NULL, &err));
      }
      if (!state.ended) continue;
      assert_false(isinf(accepted_cost(task.parts.grammar, labels, count - 1)));
      ended++;
    }
    free_task(&task);
  }
  assert_true(test_many((uint64_t)ended, 1500, 400));
}

static void test_batches_and_shared_parts(void **unused) {
  (void)unused;
  enum { ROWS = 9 };
  for (uint64_t seed = 1; seed <= test_seeds(100); seed++) {
    test_rng rng = {seed};
    struct task task;
    struct phrase_list phrases;
    make_task(&rng, &task, false, true, true, false);
    wf_scorer *list = random_phrases(&rng, &task.tokens, &phrases), *chain;
    assert_ok(wf_scorer_chain(list, task.parts.scorer, &chain, &err));
    wf_bias_parts parts;
    wf_bias_parts_init(&parts);
    parts.tokens = task.tokens.table;
    parts.scorer = chain;
    parts.base = task.bias;
    wf_bias *shared, *own;
    assert_ok(wf_bias_create(&parts, &shared, &err));
    parts.base = NULL;
    parts.lm = task.lm;
    parts.lm_texts = task.lm_texts.table;
    parts.lm_scale = task.parts.lm_scale;
    assert_ok(wf_bias_create(&parts, &own, &err));
    wf_bias_free(task.bias); /* the others keep what they share */
    task.bias = NULL;
    float one[ROWS][STRIDE], all[ROWS][STRIDE];
    const wf_bias *biases[ROWS];
    wf_bias_state states[ROWS];
    for (int i = 0; i < ROWS; i++) {
      biases[i] = i % 2 ? shared : own;
      states[i] = wf_bias_start(biases[i]);
      for (int k = 0; k < i; k++) {
        const int32_t token = (int32_t)test_below(&rng, TOKENS - 1);
        assert_ok(wf_bias_advance(&biases[i], &states[i], &token, 1, NULL, &err));
      }
      for (int t = 0; t < STRIDE; t++) all[i][t] = one[i][t] = test_unit(&rng);
      assert_ok(
          wf_bias_add(&(const wf_bias *){own}, &states[i], 1, one[i], WIDTH, STRIDE, 1, &err));
    }
    assert_ok(wf_bias_add(biases, states, ROWS, all[0], WIDTH, STRIDE, (int32_t)(seed % 4), &err));
    assert_memory_equal(one, all, sizeof one);
    wf_bias_free(own);
    wf_bias_free(shared);
    wf_scorer_free(chain);
    wf_scorer_free(list);
    free_task(&task);
  }
}

/* Boosts of 0 keep all bits, also those of -0 and NaN. */
static void test_boosts_of_zero(void **unused) {
  (void)unused;
  test_rng rng = {1};
  struct vocabulary vocabulary;
  make_vocabulary(&rng, &vocabulary);
  const int32_t words[] = {TOKENS + 1, 1, 2, 3, 4, 1, 5};
  const uint64_t off[] = {0, 3, 5, 7};
  const float boosts[] = {0, 0, 0};
  wf_bias_parts parts;
  wf_bias_parts_init(&parts);
  wf_scorer *list;
  wf_bias *bias;
  assert_ok(wf_scorer_boost_phrases(words, off, boosts, 3, &list, &err));
  parts.tokens = vocabulary.table;
  parts.scorer = list;
  assert_ok(wf_bias_create(&parts, &bias, &err));
  wf_bias_state state = wf_bias_start(bias);
  for (int i = 0; i < 100; i++) {
    float row[WIDTH], before[WIDTH];
    for (int t = 0; t < WIDTH; t++) before[t] = test_unit(&rng);
    before[0] = -0.0f, before[3] = NAN, before[5] = -INFINITY, before[9] = INFINITY;
    memcpy(row, before, sizeof row);
    assert_ok(wf_bias_add((const wf_bias *const *)&bias, &state, 1, row, WIDTH, WIDTH, 1, &err));
    assert_memory_equal(row, before, sizeof row);
    const int32_t token = (int32_t)test_below(&rng, 5);
    assert_ok(wf_bias_advance((const wf_bias *const *)&bias, &state, &token, 1, NULL, &err));
  }
  wf_bias_free(bias);
  wf_scorer_free(list);
  wf_token_texts_free(vocabulary.table);
}

static void refused(const wf_bias_parts *parts, wf_status status, const char *message) {
  wf_bias *bias;
  assert_int_equal(wf_bias_create(parts, &bias, &err), status);
  assert_null(bias);
  if (strstr(err.message, message) == NULL) fail_msg("%s", err.message);
}

static void refused_grammar(wf_bias_parts parts, const char *text, const char *message) {
  wf_fst *fst = test_fst_of(WF_TROPICAL, text);
  parts.grammar = fst;
  refused(&parts, WF_ERR_ARGUMENT, message);
  wf_fst_free(fst);
}

static void test_errors(void **unused) {
  (void)unused;
  test_rng rng = {7};
  struct vocabulary vocabulary, other;
  make_vocabulary(&rng, &vocabulary);
  make_vocabulary(&rng, &other);
  wf_bias_parts parts, plain;
  wf_bias_parts_init(&parts);
  refused(&parts, WF_ERR_ARGUMENT, "no table of tokens");
  parts.tokens = vocabulary.table;
  plain = parts;
  parts.scorer = random_word_boost(&rng);
  refused(&parts, WF_ERR_UNSUPPORTED, "boost of single words");
  wf_scorer_free((wf_scorer *)(uintptr_t)parts.scorer);
  const uint64_t off[] = {0, 2};
  for (int32_t label = TOKENS + 1; label <= TOKENS + 2; label++) {
    wf_scorer *list;
    assert_ok(wf_scorer_boost_phrases((int32_t[]){1, label}, off, &(float){1}, 1, &list, &err));
    parts.scorer = list;
    refused(&parts, WF_ERR_ARGUMENT, "but there are 16 tokens");
    wf_scorer_free(list);
  }
  refused_grammar(plain, "0 1 17 17\n1\n", "label 17");
  refused_grammar(plain, "0 1 0 0\n1\n", "deterministic acceptor");
  refused_grammar(plain, "0 1 2 2\n0 0 2 2\n1\n", "deterministic acceptor");
  refused_grammar(plain, "0 1 2 3\n1\n", "deterministic acceptor");
  parts = plain;
  parts.lm = random_lm(&rng, false);
  refused(&parts, WF_ERR_ARGUMENT, "lm_scale is 0");
  wf_lm_free((wf_lm *)(uintptr_t)parts.lm);
  wf_bias *base, *bias;
  assert_ok(wf_bias_create(&plain, &base, &err));
  parts = plain;
  parts.base = base;
  parts.tokens = other.table;
  refused(&parts, WF_ERR_ARGUMENT, "another table of tokens");
  bias = base;
  wf_bias_state state = wf_bias_start(bias);
  float row[TOKENS];
  assert_int_equal(
      wf_bias_add((const wf_bias *const *)&bias, &state, 1, row, TOKENS - 1, TOKENS, 1, &err),
      WF_ERR_ARGUMENT);
  assert_int_equal(
      wf_bias_advance((const wf_bias *const *)&bias, &state, &(int32_t){-1}, 1, NULL, &err),
      WF_ERR_ARGUMENT);
  wf_bias_free(base);
  wf_fst *bytes = test_fst_of(WF_TROPICAL, "0 1 300 300\n1\n"), *out;
  assert_int_equal(wf_token_texts_to_fst(vocabulary.table, bytes, &out, &err), WF_ERR_ARGUMENT);
  wf_fst_free(bytes);
  bytes = test_fst_of(WF_TROPICAL, "0 1 98 98\n0 0 98 98\n1\n");
  assert_int_equal(wf_token_texts_to_fst(vocabulary.table, bytes, &out, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "not deterministic"));
  wf_fst_free(bytes);
  wf_token_texts *texts;
  assert_int_equal(wf_token_texts_create("ab", (uint64_t[]){1, 0}, (uint8_t[]){0}, 1, &texts, &err),
                   WF_ERR_ARGUMENT);
  wf_token_texts_free(vocabulary.table);
  wf_token_texts_free(other.table);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows_have_the_costs_of_tokens),
      cmocka_unit_test(test_phrases_of_a_text),
      cmocka_unit_test(test_words_of_a_text),
      cmocka_unit_test(test_grammars_of_bytes),
      cmocka_unit_test(test_texts_in_the_grammar),
      cmocka_unit_test(test_batches_and_shared_parts),
      cmocka_unit_test(test_boosts_of_zero),
      cmocka_unit_test(test_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
