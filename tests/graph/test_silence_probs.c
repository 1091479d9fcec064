/* test_silence_probs.c - silence probabilities of words (Kaldi's lexiconp_silprob.txt, dictionaries
 * of the Montreal Forced Aligner): all that L accepts, with its costs, by Kaldi's definition
 * (steps/dict/make_lexicon_fst_silprob.py). */
#include "testing.h"

enum { A = 2, B, SIL, NUM_LABELS = SIL, MOST = 7 /* labels */ };

static wf_error err;

/* X: a, and #1, as it is the beginning of Y. */
static const char lexicon_text[] =
    "X 0.5 0.25 1.5 0.75 a\nY 1.0 0.4 0.5 2.0 a b\nZ 0.8 1 1 0 b\nZ 0.2 0 1 1 b b\n";
static const struct word {
  int label, num_labels;
  const char *in;
  double prob, after, before, before_none;
} entries[] = {{1, 2, "2 6 ", 0.5, 0.25, 1.5, 0.75},
               {2, 2, "2 3 ", 1, 0.4, 0.5, 2},
               {3, 2, "3 6 ", 0.8, 1, 1, 0},
               {3, 2, "3 3 ", 0.2, 0, 1, 1}};
enum { NUM_ENTRIES = sizeof entries / sizeof *entries };

struct listing {
  const test_relation *relation;
  size_t count;
};

/* All continuations of a text that ended in silence or not, with its cost. */
static void list(struct listing *l, const char *in, const char *out, int left, bool silent,
                 double cost) {
  char key[128], more[96], words[32];
  const test_pair *got = NULL;
  snprintf(key, sizeof key, "%s: %s", in, out);
  for (size_t i = 0; i < l->relation->size && got == NULL; i++)
    if (strcmp(l->relation->pairs[i].key, key) == 0) got = &l->relation->pairs[i];
  if (got == NULL || fabs(got->cost - cost) > 1e-5)
    fail_msg("'%s': %g, expected %g", key, got != NULL ? got->cost : INFINITY, cost);
  l->count++;
  for (int i = 0; i < NUM_ENTRIES; i++) {
    const struct word *w = &entries[i];
    const double before = silent ? w->before : w->before_none,
                 spoken = cost - log(w->prob) - log(before);
    if (before == 0) continue;
    snprintf(words, sizeof words, "%s%d ", out, w->label);
    snprintf(more, sizeof more, "%s%s", in, w->in);
    if (left >= w->num_labels && w->after < 1)
      list(l, more, words, left - w->num_labels, false, spoken - log(1 - w->after));
    snprintf(more, sizeof more, "%s%s4 7 ", in, w->in); /* #2 after silence */
    if (left >= w->num_labels + 2 && w->after > 0)
      list(l, more, words, left - w->num_labels - 2, true, spoken - log(w->after));
  }
}

static void test_all_texts(void **state) {
  wf_symbols *tokens, *words;
  wf_lexicon *lexicon, *again;
  wf_lexicon_fst_options options;
  static const char tokens_text[] = "<blk> 0\na 1\nb 2\nSIL 3\n";
  assert_ok(wf_symbols_read(test_write_file("tokens.txt", tokens_text, sizeof tokens_text - 1),
                            &tokens, &err));
  assert_ok(wf_lexicon_read(test_write_file("lexicon.txt", lexicon_text, sizeof lexicon_text - 1),
                            tokens, NULL, &lexicon, &err));
  assert_ok(wf_lexicon_words(lexicon, &words, &err));
  const char *path = test_temp_path("written.txt");
  assert_ok(wf_lexicon_write(lexicon, path, &err)); /* and read again, it is the same */
  assert_ok(wf_lexicon_read(path, tokens, NULL, &again, &err));
  wf_lexicon_fst_options_init(&options);
  options.silence = "SIL";
  options.silence_prob = 0.3f;
  for (int i = 0; i < 2; i++) {
    wf_fst *l;
    assert_ok(wf_lexicon_to_fst(i == 0 ? lexicon : again, words, &options, &l, NULL, &err));
    test_relation relation =
        test_enumerate(l, MOST + 1, 1000000); /* and the epsilon at the start */
    struct listing listing = {&relation, 0};
    list(&listing, "", "", MOST, false, -log(1 - 0.3));
    list(&listing, "4 7 ", "", MOST - 2, true, -log(0.3));
    for (size_t k = 0; k < relation.size; k++) /* #0 is the grammar's */
      listing.count += strstr(relation.pairs[k].key, "5 ") != NULL;
    assert_int_equal(listing.count, relation.size);
    assert_true(listing.count > 100);
    test_relation_free(&relation);
    wf_fst_free(l);
  }
  wf_lexicon_free(again);
  wf_lexicon_free(lexicon);
  wf_symbols_free(words);
  wf_symbols_free(tokens);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_texts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
