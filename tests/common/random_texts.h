/* random_texts.h - small random texts for tests of language models, with the bigrams of a language:
 * each word tends to be followed by the same few. */
#ifndef TESTS_RANDOM_TEXTS_H
#define TESTS_RANDOM_TEXTS_H

#include "testing.h"

enum { MAX_SENTENCES = 60, MAX_SENTENCE = 12, MAX_TEXT_WORDS = 10 };
static const char *const text_words[MAX_TEXT_WORDS] = {"a", "b", "c", "d", "e",
                                                       "f", "g", "h", "i", "j"};

typedef struct text {
  int num_sentences, size[MAX_SENTENCES], words[MAX_SENTENCES][MAX_SENTENCE];
} text;

/* Words [first, first + num_words). Some sentences have no words. */
static inline text random_text(test_rng *rng, int first, int num_words) {
  text t = {.num_sentences = 1 + (int)test_below(rng, MAX_SENTENCES)};
  for (int s = 0; s < t.num_sentences; s++) {
    t.size[s] = (int)test_below(rng, MAX_SENTENCE + 1);
    for (int i = 0, word = 0; i < t.size[s]; i++) {
      const bool follows = i > 0 && test_below(rng, 3) > 0;
      word = follows ? (word * 3 + 1) % num_words : (int)test_below(rng, (uint32_t)num_words);
      t.words[s][i] = first + word;
    }
  }
  for (int s = 0; s < t.num_sentences; s++)
    for (int i = 0; i < t.size[s]; i++)
      assert_in_range(t.words[s][i], first, first + num_words - 1);
  return t;
}

/* Writes the text to a new file and returns its path. */
static inline const char *write_text(const text *t) {
  static char bytes[MAX_SENTENCES * (2 * MAX_SENTENCE + 2)];
  size_t used = 0;
  for (int s = 0; s < t->num_sentences; s++) {
    for (int i = 0; i < t->size[s]; i++)
      used += (size_t)sprintf(bytes + used, "%s%s", i > 0 ? " " : "", text_words[t->words[s][i]]);
    bytes[used++] = '\n';
  }
  return test_write_file("text", bytes, used);
}

#endif
