/* lm_model.h - helpers for tests of language models: reading a model from text, and random models
 * small enough to be scored directly from the definition of back-off, by a search through all
 * n-grams. */
#ifndef TESTS_LM_MODEL_H
#define TESTS_LM_MODEL_H

#include "testing.h"

static inline wf_status read_text(const char *text, const wf_symbols *words,
                                  const wf_arpa_options *options, wf_lm **lm, wf_arpa_stats *stats,
                                  wf_error *err) {
  const char *path = test_write_file("lm.arpa", text, strlen(text));
  if (stats != NULL) wf_arpa_stats_init(stats);
  return wf_lm_open(path, words, options, lm, stats, NULL, err);
}

static inline wf_lm *lm_of(const char *text) {
  wf_error err = {0};
  wf_lm *lm;
  assert_ok(read_text(text, NULL, NULL, &lm, NULL, &err));
  return lm;
}

static inline int32_t label(const wf_lm *lm, const char *word) {
  return (int32_t)wf_symbols_find(wf_lm_words(lm), word);
}

static inline wf_lm *read_lm(const char *path, const wf_symbols *words) {
  wf_error err = {0};
  wf_lm *lm;
  assert_ok(wf_lm_open(path, words, NULL, &lm, NULL, NULL, &err));
  return lm;
}

/* Checks that random sentences of `words` cost the same in both models. The last word is rare. The
 * n-gram orders must be equal, or, if `longer`, may be higher in b. */
static inline void check_same_costs(const wf_lm *a, const wf_lm *b, const char *const *words,
                                    uint32_t num_words, bool longer, test_rng *rng) {
  for (int i = 0; i < 500; i++) {
    uint32_t s = wf_lm_start(a), t = wf_lm_start(b);
    int32_t order, same_order;
    for (uint32_t size = test_below(rng, 9); size > 0; size--) {
      const char *word = words[test_below(rng, size % 4 == 0 ? num_words : num_words - 1)];
      float cost = wf_lm_step(a, s, label(a, word), &s, &order),
            same = wf_lm_step(b, t, label(b, word), &t, &same_order);
      if (!(isinf(cost) ? isinf(same) : fabsf(cost - same) < 2e-6f) ||
          !(order == same_order || (longer && order < same_order)))
        fail_msg("%s costs %g, not %g; order %d, %d", word, same, cost, order, same_order);
    }
    float cost = wf_lm_final(a, s, &order), same = wf_lm_final(b, t, &same_order);
    assert_true(fabsf(cost - same) < 2e-6f &&
                (order == same_order || (longer && order < same_order)));
  }
}

static const char *const trigram =
    "made by hand\n\n\\data\\\nngram 1=6\nngram 2 = 5\nngram 3=2\n\n"
    "\\1-grams:\n-99\t<s>\t-0.1\n-1.0 </s>\n-2.0\t<unk>\n-0.5\ta\t-0.2\n-0.6\tb\t-0.3\n-0.7\tc\n\n"
    "\\2-grams:\n-0.25\t<s> a\t-0.05\n-0.35\ta b\t-0.15\n-0.45\tb c\n-0.55\tb </s>\n-0.65 c a "
    "-0.4\r\n\n"
    "\\3-grams:\n-0.12\t<s> a b\n-0.22\ta b </s>\n\n\\end\\\n";

enum { MAX_N = 5, MAX_NGRAMS = 400, EOS = 1, BOS = 0, UNK = 2, FIRST = 3 };
static const char *const names[] = {"<s>", "</s>", "<unk>", "a", "b", "c", "d", "e"};

typedef struct model {
  int order, num_words; /* names[0 .. num_words) */
  bool has_unk;
  struct gram {
    int size, word[MAX_N];
    double p, bow;
    bool has_bow;
  } grams[MAX_NGRAMS];
  int size;
} model;

static const struct gram *find(const model *m, const int *words, int size) {
  for (int i = 0; i < m->size; i++)
    if (m->grams[i].size == size &&
        memcmp(m->grams[i].word, words, (size_t)size * sizeof *words) == 0)
      return &m->grams[i];
  return NULL;
}

static inline bool add_gram(model *m, test_rng *rng, const int *words, int size) {
  if (m->size == MAX_NGRAMS || find(m, words, size) != NULL) return false;
  struct gram *gram = &m->grams[m->size++];
  *gram = (struct gram){.size = size,
                        .p = -(double)test_below(rng, 3000) / 1000,
                        .has_bow = size < m->order && test_below(rng, 3) > 0};
  if (gram->has_bow && test_below(rng, 3) > 0)
    gram->bow = ((double)test_below(rng, 1300) - 1000) / 1000;
  if (size > 1 && test_below(rng, 25) == 0) gram->p = -INFINITY;
  if (gram->has_bow && test_below(rng, 40) == 0) gram->bow = -INFINITY;
  memcpy(gram->word, words, (size_t)size * sizeof *words);
  return true;
}

/* `holes`: n-grams may have contexts that do not exist. */
static inline void make_model(model *m, test_rng *rng, bool holes) {
  *m = (model){.order = 1 + (int)test_below(rng, MAX_N),
               .num_words = FIRST + 1 + (int)test_below(rng, 5),
               .has_unk = test_below(rng, 2)};
  for (int w = 0; w < m->num_words; w++)
    if (w != UNK || m->has_unk) add_gram(m, rng, &w, 1);
  for (int n = 2; n <= m->order; n++) {
    int wanted = (int)test_below(rng, 30);
    for (int i = 0; i < wanted; i++) {
      int words[MAX_N];
      if (holes && test_below(rng, 4) == 0) {
        for (int j = 0; j < n; j++) words[j] = (int)test_below(rng, (uint32_t)m->num_words);
      } else {
        const struct gram *context = &m->grams[test_below(rng, (uint32_t)m->size)];
        if (context->size != n - 1) continue;
        memcpy(words, context->word, sizeof context->word);
        words[n - 1] = (int)test_below(rng, (uint32_t)m->num_words);
      }
      bool fine = true;
      for (int j = 0; j < n; j++)
        fine = fine && (words[j] != BOS || j == 0) && (words[j] != EOS || j == n - 1) &&
               (words[j] != UNK || m->has_unk);
      if (fine) add_gram(m, rng, words, n);
    }
  }
}

/* The model as ARPA text, in thread-local storage. */
static inline const char *model_text(const model *m, test_rng *rng) {
  static _Thread_local char text[1 << 16];
  char *at = text;
  at += sprintf(at, "\\data\\\n");
  int order[MAX_NGRAMS]; /* the lines of a section are in random order */
  for (int i = 0; i < m->size; i++) order[i] = i;
  for (int i = m->size - 1; i > 0; i--) {
    int j = (int)test_below(rng, (uint32_t)i + 1), keep = order[i];
    order[i] = order[j];
    order[j] = keep;
  }
  for (int n = 1; n <= m->order; n++) {
    int count = 0;
    for (int i = 0; i < m->size; i++) count += m->grams[i].size == n;
    at += sprintf(at, "ngram %d=%d\n", n, count);
  }
  for (int n = 1; n <= m->order; n++) {
    at += sprintf(at, "\n\\%d-grams:\n", n);
    for (int i = 0; i < m->size; i++) {
      const struct gram *gram = &m->grams[order[i]];
      if (gram->size != n) continue;
      at += sprintf(at, "%.3f", gram->p);
      for (int j = 0; j < n; j++)
        at += sprintf(at, "%c%s", j == 0 ? '\t' : ' ', names[gram->word[j]]);
      if (gram->has_bow) at += sprintf(at, "\t%.3f", gram->bow);
      at += sprintf(at, "\n");
    }
  }
  sprintf(at, "\n\\end\\\n");
  return text;
}

static inline wf_lm *load_model(const model *m, test_rng *rng) { return lm_of(model_text(m, rng)); }

/* log10 p(word | history) by the definition. */
static inline double score(const model *m, const int *history, int size, int word, int *order) {
  double bow = 0;
  int first = size > m->order - 1 ? size - (m->order - 1) : 0;
  for (;; first++) {
    int words[MAX_N + 1];
    memcpy(words, history + first, (size_t)(size - first) * sizeof *history);
    words[size - first] = word;
    const struct gram *gram = find(m, words, size - first + 1);
    if (gram != NULL) {
      *order = gram->size;
      return bow + gram->p;
    }
    if (first == size) {
      *order = 0;
      return -INFINITY;
    }
    const struct gram *context = find(m, history + first, size - first);
    if (context != NULL) bow += context->bow;
  }
}

static inline int32_t label_of(const wf_lm *lm, int word) {
  return word == UNK ? -1 : label(lm, names[word]);
}

static inline int random_sentence(const model *m, test_rng *rng, int *words, int most) {
  int size = (int)test_below(rng, (uint32_t)most + 1);
  for (int i = 0; i < size; i++)
    words[i] = UNK + (int)test_below(rng, (uint32_t)(m->num_words - UNK));
  return size;
}

#endif
