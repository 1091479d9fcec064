/* random_scorers.h - random scorers of every kind that can be flattened to arrays: boosts of words
 * and of phrases, n-gram models, chains of up to three. Their words are the labels 1 .. 4 of
 * decode_tasks.h, and 5. */
#ifndef TESTS_RANDOM_SCORERS_H
#define TESTS_RANDOM_SCORERS_H

#include "lm_model.h"

enum { RANDOM_WORDS = 5 };

/* Few distinct values, so that costs tie. */
static inline float random_boost(test_rng *rng) { return (float)((int)test_below(rng, 9) - 2) / 4; }

static inline wf_scorer *random_word_boost(test_rng *rng) {
  wf_error err = {0};
  wf_scorer *scorer;
  int32_t words[RANDOM_WORDS];
  float boosts[RANDOM_WORDS];
  size_t count = 0;
  for (int32_t w = 1; w <= RANDOM_WORDS; w++)
    if (test_below(rng, 2)) words[count] = w, boosts[count++] = random_boost(rng);
  assert_ok(wf_scorer_boost_words(words, boosts, count, &scorer, &err));
  return scorer;
}

/* Half of them have only boosts of 0: then just the contexts distinguish tokens. */
static inline wf_scorer *random_phrase_boost(test_rng *rng) {
  wf_error err = {0};
  wf_scorer *scorer = NULL;
  const bool silent = test_below(rng, 2);
  while (scorer == NULL) { /* the same phrase twice with different boosts is refused */
    int32_t words[64];
    uint64_t off[17] = {0};
    float boosts[16];
    size_t count = test_below(rng, 12);
    for (size_t i = 0; i < count; i++) {
      off[i + 1] = off[i];
      do words[off[i + 1]++] = 1 + (int32_t)test_below(rng, RANDOM_WORDS - 1);
      while (off[i + 1] - off[i] < 4 && test_below(rng, 3));
      boosts[i] = silent ? 0 : random_boost(rng);
    }
    if (wf_scorer_boost_phrases(words, off, boosts, count, &scorer, &err) != WF_OK) scorer = NULL;
  }
  return scorer;
}

/* 3,000 phrases, most of which cannot be said. On a GPU they take more than 300 KB. */
static inline wf_scorer *long_phrase_boost(void) {
  enum { COUNT = 3000 };
  wf_error err = {0};
  wf_scorer *scorer;
  int32_t words[2 * COUNT];
  uint64_t off[COUNT + 1] = {0};
  float boosts[COUNT];
  for (int32_t i = 0; i < COUNT; i++) {
    words[2 * i] = 1 + i;
    words[2 * i + 1] = 1 + i % 3;
    off[i + 1] = off[i] + 2;
    boosts[i] = 0.5f;
  }
  assert_ok(wf_scorer_boost_phrases(words, off, boosts, COUNT, &scorer, &err));
  return scorer;
}

/* `coarse`: costs are multiples of 1/2. */
static inline wf_lm *random_lm(test_rng *rng, bool coarse) {
  wf_error err = {0};
  static _Thread_local model m;
  make_model(&m, rng, false);
  for (int i = 0; i < m.size && coarse; i++) {
    m.grams[i].p = isinf(m.grams[i].p) ? m.grams[i].p : floor(m.grams[i].p * 2) / 2;
    m.grams[i].bow = isinf(m.grams[i].bow) ? m.grams[i].bow : floor(m.grams[i].bow * 2) / 2;
  }
  const char *text = model_text(&m, rng);
  char arpa[512];
  snprintf(arpa, sizeof arpa, "%s", test_write_file("random.arpa", text, strlen(text)));
  const char *out = test_temp_path("random.wlm");
  wf_lm_convert_options build;
  wf_lm *lm;
  wf_lm_convert_options_init(&build);
  build.pack = (int32_t)test_below(rng, 3);
  assert_ok(wf_lm_convert(arpa, out, NULL, &build, NULL, NULL, NULL, &err));
  assert_ok(wf_lm_open_mapped(out, &lm, &err));
  remove(arpa);
  remove(out);
  return lm;
}

/* An n-gram scorer with its own model. */
static inline wf_scorer *random_ngram(test_rng *rng, const wf_symbols *words, bool coarse) {
  wf_error err = {0};
  wf_scorer *scorer = NULL;
  while (scorer == NULL) {
    wf_lm *lm = random_lm(rng, coarse);
    wf_ngram_scorer_options options;
    wf_ngram_scorer_options_init(&options);
    options.lm_scale = (float[]){1, 1, 0.5f, -0.5f}[test_below(rng, 4)];
    options.placement = (int32_t)test_below(rng, 3);
    options.lm_gpu_bytes = test_below(rng, 2)
                               ? (int64_t)test_below(rng, 40000)
                               : 0; /* these models take a few kB, so the limit is either too small
                                       or leaves room for a small cache */
    if (wf_scorer_from_lm(lm, words, &options, &scorer, &err) != WF_OK)
      scorer = NULL; /* the model may know none of the words */
    wf_lm_free(lm);
  }
  return scorer;
}

static inline wf_symbols *random_scorer_words(void) {
  wf_error err = {0};
  wf_symbols *words;
  static const char *const texts[] = {"<eps>", "c", "a", "d", "b", "e"};
  assert_ok(wf_symbols_create("words", &words, &err));
  for (int64_t i = 0; i <= RANDOM_WORDS; i++)
    assert_ok(wf_symbols_add(words, texts[i], i, NULL, &err));
  return words;
}

/* words: NULL: only boosts. */
static inline wf_scorer *random_part(test_rng *rng, const wf_symbols *words) {
  uint32_t kind = test_below(rng, words != NULL ? 4 : 2);
  return kind == 0   ? random_word_boost(rng)
         : kind == 1 ? random_phrase_boost(rng)
                     : random_ngram(rng, words, kind == 2);
}

static inline wf_scorer *random_scorer(test_rng *rng, const wf_symbols *words) {
  wf_error err = {0};
  wf_scorer *scorer = random_part(rng, words), *chain;
  for (uint32_t parts = 1 + test_below(rng, 3); parts > 1; parts--) {
    wf_scorer *other = random_part(rng, words);
    bool first = test_below(rng, 2);
    assert_ok(wf_scorer_chain(first ? other : scorer, first ? scorer : other, &chain, &err));
    wf_scorer_free(scorer);
    wf_scorer_free(other);
    scorer = chain;
  }
  return scorer;
}

/* Chains the scorer with one or two others, in any order and grouping. */
static inline wf_scorer *random_chain(test_rng *rng, const wf_scorer *scorer,
                                      const wf_symbols *words) {
  wf_error err = {0};
  wf_scorer *parts[3] = {wf_scorer_ref(scorer), random_part(rng, words), random_part(rng, words)},
            *pair, *chain;
  const int count = 2 + (int)test_below(rng, 2), swap = (int)test_below(rng, 3),
            at = count == 3 ? swap : swap % 2;
  wf_scorer *first = parts[0];
  parts[0] = parts[at];
  parts[at] = first;
  const bool right = count == 3 && test_below(rng, 2);
  assert_ok(wf_scorer_chain(parts[right], parts[right + 1], &pair, &err));
  chain = pair;
  if (count == 3) {
    assert_ok(wf_scorer_chain(right ? parts[0] : pair, right ? pair : parts[2], &chain, &err));
    wf_scorer_free(pair);
  }
  for (int i = 0; i < 3; i++) wf_scorer_free(parts[i]);
  return chain;
}

#endif
