/* large_biases.h - biases of generators with many tokens: phrases, and n-gram models of tokens with
 * states of few and of very many arcs. */
#ifndef TESTS_LARGE_BIASES_H
#define TESTS_LARGE_BIASES_H

#include "lm_model.h"

/* Few letters. Every 97th is silent, and the last one ends the text. */
static inline wf_token_texts *many_tokens(test_rng *rng, uint32_t count) {
  wf_error err = {0};
  wf_token_texts *out;
  char *bytes = malloc((size_t)count * 4);
  uint64_t *offsets = calloc(count + 1, sizeof *offsets);
  uint8_t *kinds = malloc(count);
  assert_true(bytes != NULL && offsets != NULL && kinds != NULL);
  for (uint32_t t = 0; t < count; t++) {
    const uint32_t size = 1 + test_below(rng, 4);
    char *text = bytes + offsets[t];
    for (uint32_t i = 0; i < size; i++) text[i] = " abcdefghi"[test_below(rng, 10)];
    kinds[t] = (uint8_t)((text[0] != ' ' ? WF_TOKEN_CONTINUES : 0) |
                         (text[size - 1] == ' ' ? WF_TOKEN_BREAKS : 0));
    if (t % 97 == 96) kinds[t] = WF_TOKEN_SILENT;
    if (t == count - 1) kinds[t] = WF_TOKEN_ENDS;
    offsets[t + 1] = offsets[t] + size;
  }
  assert_ok(wf_token_texts_create(bytes, offsets, kinds, count, &out, &err));
  free(bytes);
  free(offsets);
  free(kinds);
  return out;
}

/* Smaller numbers are more likely. */
static inline uint32_t likely_token(test_rng *rng, uint32_t count) {
  const uint32_t a = test_below(rng, count), b = test_below(rng, count), c = test_below(rng, count);
  return a < b ? (a < c ? a : c) : (b < c ? b : c);
}

/* `first`: all begin with one of so many tokens. */
static inline wf_scorer *many_phrases(test_rng *rng, uint32_t num_tokens, uint32_t count,
                                      uint32_t first) {
  wf_error err = {0};
  wf_scorer *out;
  int32_t *words = malloc((size_t)count * 5 * sizeof *words);
  uint64_t *off = calloc(count + 1, sizeof *off);
  float *boosts = malloc(count * sizeof *boosts);
  assert_true(words != NULL && off != NULL && boosts != NULL);
  for (uint32_t i = 0; i < count; i++) {
    uint64_t at = off[i];
    if (test_below(rng, 5) == 0) words[at++] = (int32_t)num_tokens + 1;
    const int32_t begin = 1 + (int32_t)likely_token(rng, first);
    words[at++] = begin;
    for (uint32_t size = test_below(rng, 4); size > 0; size--)
      words[at++] = 1 + (int32_t)likely_token(rng, num_tokens);
    off[i + 1] = at;
    boosts[i] = (float)(begin % 7) / 4; /* the same for the same phrase */
  }
  assert_ok(wf_scorer_boost_phrases(words, off, boosts, count, &out, &err));
  free(words);
  free(off);
  free(boosts);
  return out;
}

/* Writes about `count` successors of a context, without token `but`. */
static inline void write_successors(FILE *to, test_rng *rng, const char *context, uint32_t count,
                                    uint32_t num_tokens, uint32_t but, bool backs_off) {
  for (uint32_t t = 0; t < num_tokens; t++) /* each once */
    if (t != but && t % 23 != 5 && test_below(rng, num_tokens) < count)
      fprintf(to, "-%d.%d\t%s t%u%s\n", 1 + (int)test_below(rng, 5), (int)test_below(rng, 1000),
              context, t, backs_off ? "\t-0.25" : "");
}

/* A model of order 3 whose words are "t0", "t1", ... It counts first, then writes. */
static inline wf_lm *many_ngrams(test_rng *rng, uint32_t num_tokens, uint32_t hubs,
                                 uint32_t contexts) {
  wf_error err = {0};
  const char *sections[3] = {"one", "two", "three"};
  char paths[3][512];
  uint64_t counts[3] = {0};
  for (int n = 0; n < 3; n++) {
    snprintf(paths[n], sizeof paths[n], "%s", test_temp_path(sections[n]));
    FILE *to = fopen(paths[n], "w");
    assert_non_null(to);
    if (n == 0) {
      fprintf(to, "-99\t<s>\t-0.5\n-2\t</s>\n-4\t<unk>\n");
      for (uint32_t t = 0; t < num_tokens; t++)
        if (t % 23 != 5) /* the others are impossible */
          fprintf(to, "-%d.%d\tt%u\t-0.%d\n", 2 + (int)test_below(rng, 5),
                  (int)test_below(rng, 1000), t, (int)test_below(rng, 1000));
    }
    for (uint32_t c = 0; c < contexts && n > 0; c++) {
      char context[64];
      if (c % 23 == 5 || (c + 1) % 23 == 5) continue;
      snprintf(context, sizeof context, n == 1 ? "t%u" : "t%u t%u", c, c + 1);
      if (n == 1) fprintf(to, "-0.5\t%s t%u\t-0.125\n", context, c + 1); /* has successors */
      write_successors(to, rng, context, c < hubs ? num_tokens / 3 : 3, num_tokens, c + 1, n == 1);
    }
    fclose(to);
    size_t size;
    char *text = test_read_file(paths[n], &size);
    for (size_t i = 0; i < size; i++) counts[n] += text[i] == '\n';
    free(text);
  }
  char arpa[512];
  snprintf(arpa, sizeof arpa, "%s", test_temp_path("many.arpa"));
  FILE *to = fopen(arpa, "w");
  assert_non_null(to);
  fprintf(to, "\\data\\\n");
  for (int n = 0; n < 3; n++) fprintf(to, "ngram %d=%llu\n", n + 1, (unsigned long long)counts[n]);
  for (int n = 0; n < 3; n++) {
    size_t size;
    char *text = test_read_file(paths[n], &size);
    fprintf(to, "\n\\%d-grams:\n%s", n + 1, text);
    free(text);
    remove(paths[n]);
  }
  fprintf(to, "\n\\end\\\n");
  fclose(to);
  wf_lm *lm;
  wf_lm_convert_options build;
  wf_lm_convert_options_init(&build);
  char wlm[512];
  snprintf(wlm, sizeof wlm, "%s", test_temp_path("many.wlm"));
  assert_ok(wf_lm_convert(arpa, wlm, NULL, &build, NULL, NULL, NULL, &err));
  assert_ok(wf_lm_open_mapped(wlm, &lm, &err));
  remove(arpa);
  remove(wlm);
  return lm;
}

static inline wf_scorer *many_ngrams_scorer(const wf_lm *lm, uint32_t num_tokens, float lm_scale) {
  wf_error err = {0};
  wf_symbols *table;
  wf_scorer *out;
  char text[32];
  assert_ok(wf_symbols_create("tokens", &table, &err));
  assert_ok(wf_symbols_add(table, "<eps>", 0, NULL, &err));
  for (uint32_t t = 0; t < num_tokens; t++) {
    snprintf(text, sizeof text, "t%u", t);
    assert_ok(wf_symbols_add(table, text, (int64_t)t + 1, NULL, &err));
  }
  wf_ngram_scorer_options options;
  wf_ngram_scorer_options_init(&options);
  options.lm_scale = lm_scale;
  assert_ok(wf_scorer_from_lm(lm, table, &options, &out, &err));
  wf_symbols_free(table);
  return out;
}

#endif
