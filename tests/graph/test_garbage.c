/* test_garbage.c - the option `garbage`: <unk> as any sequence of tokens, compared with parses that
 * are found by trying all of them. */
#include "testing.h"

#include "graph/lexicon_fst.h"

enum { A = 2, B, SIL, SPECIAL, NUM_LABELS };
enum { X = 1, Y, W, UNK };

static wf_error err;

static wf_symbols *table_of(const char *text) {
  wf_symbols *table;
  assert_ok(wf_symbols_read(test_write_file("table.txt", text, strlen(text)), &table, &err));
  return table;
}

static wf_lexicon *lexicon_of(const wf_symbols *tokens, const char *text) {
  wf_lexicon *lexicon;
  assert_ok(wf_lexicon_read(test_write_file("lexicon.txt", text, strlen(text)), tokens, NULL,
                            &lexicon, &err));
  return lexicon;
}

/* --- the whole pipeline ------------------------------------------------------------------ */

struct arc {
  int from, to, word;
  double cost;
};
/* X Y, <unk>, X <unk>; then W and once more, or the end. */
static const struct arc grammar_arcs[] = {
    {0, 1, X, 0.5}, {1, 2, Y, 0}, {0, 2, UNK, 2}, {1, 2, UNK, 1}, {2, 0, W, 0.25}};
static const char *const grammar_text =
    "0 1 1 1 0.5;1 2 2 2 0;0 2 4 4 2;1 2 4 4 1;2 0 3 3 0.25;2 0";

struct parse {
  const int *in, *words;
  int num_in, num_words;
  bool silence;
  double garbage;
};

static double rest_of(const struct parse *p, int at, int word, int state);

/* After a word (or at the start): with and without silence. */
static double after(const struct parse *p, int at, int word, int state) {
  if (!p->silence) return rest_of(p, at, word, state);
  double best = log(2) + rest_of(p, at, word, state);
  if (at < p->num_in && p->in[at] == SIL)
    best = fmin(best, log(2) + rest_of(p, at + 1, word, state));
  return best;
}

/* The least cost of the tokens from `at` on as the words from `word` on. */
static double rest_of(const struct parse *p, int at, int word, int state) {
  static const int spelled[][3] = {{0}, {A}, {B}, {A, B}};
  if (word == p->num_words) return at == p->num_in && state == 2 ? 0 : INFINITY;
  double best = INFINITY;
  for (size_t i = 0; i < sizeof grammar_arcs / sizeof *grammar_arcs; i++) {
    const struct arc *arc = &grammar_arcs[i];
    if (arc->from != state || arc->word != p->words[word]) continue;
    if (arc->word == UNK) {
      for (int end = at + 1; end <= p->num_in; end++) {
        const int token = p->in[end - 1];
        if (token == SPECIAL || (token == SIL && p->silence)) break;
        best = fmin(best, arc->cost + p->garbage * (end - at) + after(p, end, word + 1, arc->to));
      }
      continue;
    }
    int n = 0;
    while (spelled[arc->word][n] != 0 && at + n < p->num_in &&
           p->in[at + n] == spelled[arc->word][n])
      n++;
    if (spelled[arc->word][n] == 0)
      best = fmin(best, arc->cost + after(p, at + n, word + 1, arc->to));
  }
  return best;
}

static const test_pair *find_pair(const test_relation *relation, const char *key) {
  for (size_t i = 0; i < relation->size; i++)
    if (strcmp(relation->pairs[i].key, key) == 0) return &relation->pairs[i];
  return NULL;
}

/* Compares every sequence of at most three tokens and words. */
static int compare(const test_relation *relation, bool silence, double garbage) {
  int in[3], words[3], found = 0;
  for (int num_in = 0; num_in <= 3; num_in++)
    for (int n = 0; n < (int)pow(NUM_LABELS - A, num_in); n++)
      for (int num_words = 0; num_words <= 3; num_words++)
        for (int m = 0; m < (int)pow(UNK, num_words); m++) {
          char key[64] = "";
          for (int i = 0, rest = n; i < num_in; i++, rest /= NUM_LABELS - A)
            in[i] = A + rest % (NUM_LABELS - A);
          for (int i = 0, rest = m; i < num_words; i++, rest /= UNK) words[i] = X + rest % UNK;
          for (int i = 0; i < num_in; i++)
            snprintf(key + strlen(key), sizeof key - strlen(key), "%d ", in[i]);
          strcat(key, ": ");
          for (int i = 0; i < num_words; i++)
            snprintf(key + strlen(key), sizeof key - strlen(key), "%d ", words[i]);
          const struct parse parse = {in, words, num_in, num_words, silence, garbage};
          const double want = after(&parse, 0, 0, 0);
          const test_pair *got = find_pair(relation, key);
          if (want == INFINITY && got == NULL) continue;
          if (want == INFINITY || got == NULL || fabs(got->cost - want) > 1e-5)
            fail_msg("'%s': %g, expected %g", key, got != NULL ? got->cost : INFINITY, want);
          found++;
        }
  return found;
}

static wf_status build(const wf_lexicon *lexicon, const wf_fst *grammar, const wf_symbols *words,
                       const char *silence, float garbage, wf_graph_result *out) {
  wf_graph_inputs inputs;
  wf_graph_options options;
  wf_graph_inputs_init(&inputs);
  wf_graph_options_init(&options);
  inputs.lexicon = lexicon;
  inputs.grammar = grammar;
  inputs.words = words;
  options.silence = silence;
  options.garbage = garbage;
  return wf_graph_build(&inputs, &options, out, &err);
}

static void test_parses(void **state) {
  wf_symbols *tokens = table_of("<blk> 0\na 1\nb 2\nSIL 3\n[x] 4\n"),
             *words = table_of("<eps> 0\nX 1\nY 2\nW 3\n<unk> 4\n"),
             *plain = table_of("<eps> 0\nX 1\nY 2\nW 3\nV 4\n");
  wf_lexicon *lexicon = lexicon_of(tokens, "X a\nY b\nW a b\n");
  wf_fst *grammar = test_fst_of(WF_TROPICAL, grammar_text);
  for (int silence = 0; silence < 2; silence++) {
    wf_graph_result made;
    assert_ok(build(lexicon, grammar, words, silence ? "SIL" : NULL, 0.75f, &made));
    assert_int_equal(made.lm_words_missing.count, 0);
    test_relation relation = test_enumerate(made.graph, 9, 10000000);
    assert_true(compare(&relation, silence, 0.75) > 20);
    test_relation_free(&relation);
    wf_graph_result_clear(&made);
  }
  wf_graph_result made;
  assert_ok(build(lexicon, grammar, words, NULL, -1, &made)); /* without: <unk> is not said */
  assert_int_equal(made.lm_words_missing.count, 1);
  assert_string_equal(made.lm_words_missing.names[0], "<unk>");
  wf_graph_result_clear(&made);
  assert_int_equal(build(lexicon, grammar, plain, NULL, 1, &made), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "garbage: the grammar has no <unk>"));
  wf_fst_free(grammar);
  wf_lexicon_free(lexicon);
  wf_symbols_free(tokens);
  wf_symbols_free(words);
  wf_symbols_free(plain);
}

/* --- L, with a form of each phone for each position in the word ---------------------------- */

enum { POSITIONS_MOST = 5, FORMS = 24, MARK = FORMS + 1 + 3 /* #3, as max_disambig is 1 */ };
static int32_t position_of[6][WF__NUM_POSITIONS];

static int num_texts;
/* All that L accepts with at most POSITIONS_MOST labels: the word X (a, and #1, as it is the
 * beginning of W), W (a b), and garbage. */
static void list_texts(const test_relation *relation, const char *in, const char *out, int left,
                       double cost) {
  char key[256];
  snprintf(key, sizeof key, "%s: %s", in, out);
  const test_pair *got = find_pair(relation, key);
  if (got == NULL || fabs(got->cost - cost) > 1e-6) fail_msg("'%s' is not %g", key, cost);
  num_texts++;
  char more[128], words[64];
  if (left >= 2) {
    snprintf(more, sizeof more, "%s%d %d ", in, position_of[A][WF__SINGLE], FORMS + 1 + 1);
    snprintf(words, sizeof words, "%s1 ", out);
    list_texts(relation, more, words, left - 2, cost);
    snprintf(more, sizeof more, "%s%d %d ", in, position_of[A][WF__BEGIN], position_of[B][WF__END]);
    snprintf(words, sizeof words, "%s3 ", out);
    list_texts(relation, more, words, left - 2, cost);
  }
  snprintf(words, sizeof words, "%s4 ", out);
  for (int size = 1; size + 2 <= left; size++)
    for (int n = 0; n < 1 << size; n++) {
      snprintf(more, sizeof more, "%s%d ", in, MARK);
      for (int i = 0; i < size; i++) {
        const int position = size == 1       ? WF__SINGLE
                             : i == 0        ? WF__BEGIN
                             : i == size - 1 ? WF__END
                                             : WF__INTERNAL;
        snprintf(more + strlen(more), sizeof more - strlen(more), "%d ",
                 position_of[(n >> i & 1) != 0 ? B : A][position]);
      }
      snprintf(more + strlen(more), sizeof more - strlen(more), "%d ", MARK);
      list_texts(relation, more, words, left - size - 2, cost + 0.5 * size);
    }
}

static void test_positions(void **state) {
  wf_symbols *tokens = table_of("<blk> 0\na 1\nb 2\nSIL 3\n[x] 4\n"),
             *words = table_of("<eps> 0\nX 1\nY 2\nW 3\n<unk> 4\n");
  wf_lexicon *lexicon = lexicon_of(tokens, "X a\nW a b\n");
  const int32_t garbage[] = {A, B};
  for (int label = 0; label < 6; label++)
    for (int p = 0; p < WF__NUM_POSITIONS; p++) position_of[label][p] = 1 + label * 4 + p;
  const wf__lexicon_shape shape = {.num_labels = FORMS,
                                   .position_of = (const int32_t(*)[WF__NUM_POSITIONS])position_of,
                                   .disambig = true,
                                   .pron_scale = 1,
                                   .garbage = garbage,
                                   .num_garbage = 2,
                                   .garbage_cost = 0.5f,
                                   .garbage_word = UNK};
  wf_fst *l;
  assert_ok(wf__lexicon_to_fst(lexicon, words, &shape, NULL, &l, NULL, &err));
  test_relation relation = test_enumerate(l, POSITIONS_MOST, 1000000);
  list_texts(&relation, "", "", POSITIONS_MOST, 0);
  assert_int_equal(num_texts, relation.size);
  test_relation_free(&relation);
  wf_fst_free(l);
  wf_lexicon_free(lexicon);
  wf_symbols_free(tokens);
  wf_symbols_free(words);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_parses),
      cmocka_unit_test(test_positions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
