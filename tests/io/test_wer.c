/* test_wer.c - word alignment compared with an enumeration of all alignments; the formats of
 * transcripts. tests/cli/test_score.sh compares with sclite. */
#include "io/transcripts.h"
#include "testing.h"

/* Finds the cheapest alignment of a[0..n) and b[0..m) by enumeration. Among equals it takes the
 * first when steps are listed from the END of the strings in the order pair, insertion, deletion.
 * Plain recursion without a table. Steps are stored in `steps` from the end backwards. */
static int cheapest(const char *a, int n, const char *b, int m, char *steps) {
  if (n == 0 && m == 0) {
    *steps = '\0';
    return 0;
  }
  int best = 1 << 20;
  char rest[64];
  if (n > 0 && m > 0) {
    bool same = a[n - 1] == b[m - 1];
    best = cheapest(a, n - 1, b, m - 1, rest) + (same ? 0 : 4);
    sprintf(steps, "%c%s", same ? '=' : 'S', rest);
  }
  if (m > 0) {
    int cost = cheapest(a, n, b, m - 1, rest) + 3;
    if (cost < best) best = cost, sprintf(steps, "I%s", rest);
  }
  if (n > 0) {
    int cost = cheapest(a, n - 1, b, m, rest) + 3;
    if (cost < best) best = cost, sprintf(steps, "D%s", rest);
  }
  return best;
}

static const char *const letters[] = {"a", "b", "c"};

static void test_alignment(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {11};
  wf_wer *wer;
  assert_ok(wf_wer_create(NULL, &wer, &err));
  wf_wer_counts sum = {0};
  for (int round = 0; round < 600; round++) {
    char a[8], b[8], steps[64];
    const char *ref[8], *hyp[8];
    int n = (int)test_below(&rng, 7), m = (int)test_below(&rng, 7),
        kinds = 1 + (int)test_below(&rng, 3);
    for (int i = 0; i < n; i++)
      a[i] = (char)test_below(&rng, (uint32_t)kinds), ref[i] = letters[(int)a[i]];
    for (int i = 0; i < m; i++)
      b[i] = (char)test_below(&rng, (uint32_t)kinds), hyp[i] = letters[(int)b[i]];
    int cost = cheapest(a, n, b, m, steps);
    wf_wer_counts c;
    const wf_transcript r = {"u", ref, (size_t)n}, h = {"u", hyp, (size_t)m};
    assert_ok(wf_wer_add(wer, &r, &h, &c, &err));
    size_t size;
    const wf_wer_pair *pairs = wf_wer_alignment(wer, &size);
    assert_int_equal(size, strlen(steps));
    int at_r = 0, at_h = 0;
    for (size_t i = 0; i < size; i++) {
      assert_int_equal(pairs[i].step, steps[size - 1 - i]);
      if (pairs[i].step == 'I')
        assert_null(pairs[i].reference);
      else
        assert_string_equal(pairs[i].reference, ref[at_r++]);
      if (pairs[i].step == 'D')
        assert_null(pairs[i].hypothesis);
      else
        assert_string_equal(pairs[i].hypothesis, hyp[at_h++]);
    }
    assert_int_equal(at_r, n);
    assert_int_equal(at_h, m);
    assert_int_equal(c.num_words, n);
    assert_int_equal(c.num_correct + c.num_substitutions + c.num_deletions, n);
    assert_int_equal(c.num_correct + c.num_substitutions + c.num_insertions, m);
    assert_int_equal(4 * c.num_substitutions + 3 * (c.num_insertions + c.num_deletions), cost);
    sum.num_words += c.num_words;
    sum.num_insertions += c.num_insertions;
    sum.num_wrong_utterances += cost > 0;
  }
  wf_wer_counts totals = wf_wer_totals(wer);
  assert_int_equal(totals.num_words, sum.num_words);
  assert_int_equal(totals.num_insertions, sum.num_insertions);
  assert_int_equal(totals.num_utterances, 600);
  assert_int_equal(totals.num_wrong_utterances, sum.num_wrong_utterances);
  wf_wer_free(wer);
}

static wf_wer_counts score_one(const wf_wer_options *options, const char *ignore, const char *ref,
                               const char *hyp) {
  wf_error err = {0};
  char text[512];
  wf_transcripts *t;
  wf_wer *wer;
  wf_wer_counts counts;
  snprintf(text, sizeof text, "r %s\nh %s\n", ref, hyp);
  assert_ok(wf__transcripts_parse((wf__lines){text, text + strlen(text), "t", 0},
                                  WF_TRANSCRIPT_TEXT, &t, &err));
  assert_ok(wf_wer_create(options, &wer, &err));
  if (ignore != NULL) assert_ok(wf_wer_ignore(wer, ignore, &err));
  wf_transcript r = wf_transcripts_at(t, 0), h = wf_transcripts_at(t, 1);
  assert_ok(wf_wer_add(wer, &r, &h, &counts, &err));
  wf_wer_free(wer);
  wf_transcripts_free(t);
  return counts;
}

static void test_options(void **state) {
  (void)state;
  wf_wer_options options;
  wf_wer_options_init(&options);
  wf_wer_counts c = score_one(&options, NULL, "Ab cd", "aB cd");
  assert_int_equal(c.num_substitutions, 1);
  assert_true(wf_wer_percent(&c) == 50);
  options.ignore_case = true;
  c = score_one(&options, "<UNK>", "Ab cd", "aB <unk> cD <UNK>");
  assert_int_equal(c.num_correct, 2);
  assert_int_equal(c.num_insertions, 0);
  options.cer = true;
  c = score_one(&options, NULL, "h\xc3\xa4us er", "haus ER");
  assert_int_equal(c.num_words, 6);
  assert_int_equal(c.num_substitutions, 1);
  c = score_one(&options, NULL, "", "");
  assert_true(wf_wer_percent(&c) == 0);
  c = score_one(&options, NULL, "", "x");
  assert_true(isinf(wf_wer_percent(&c)));
}

static void test_long_transcripts(void **state) {
  (void)state;
  wf_error err = {0};
  enum { SIZE = 3000 };
  static const char *ref[SIZE], *hyp[SIZE];
  for (int i = 0; i < SIZE; i++) ref[i] = letters[i % 3], hyp[i] = letters[(i + 1) % 3];
  wf_wer *wer;
  wf_wer_counts c;
  assert_ok(wf_wer_create(NULL, &wer, &err));
  const wf_transcript r = {"u", ref, SIZE}, h = {"u", hyp, SIZE};
  assert_ok(wf_wer_add(wer, &r, &h, &c, &err));
  assert_int_equal(c.num_correct, SIZE - 1);
  assert_int_equal(c.num_deletions, 1);
  assert_int_equal(c.num_insertions, 1);
  assert_ok(wf_wer_add(wer, &r, NULL, &c, &err));
  assert_int_equal(c.num_deletions, SIZE);
  wf_wer_free(wer);
}

/* Returns "format key=word,word key=..." or the error code. */
static const char *parse(wf_transcript_format format, const char *text, size_t size) {
  static char out[1024];
  wf_error err = {0};
  wf_transcripts *t;
  char *copy = malloc(size + 1);
  memcpy(copy, text, size);
  wf_status status =
      wf__transcripts_parse((wf__lines){copy, copy + size, "f", 0}, format, &t, &err);
  free(copy);
  if (status != WF_OK) {
    assert_null(t);
    snprintf(out, sizeof out, "%d", status);
    return out;
  }
  size_t used = (size_t)snprintf(out, sizeof out, "%d", (int)wf_transcripts_format(t));
  for (size_t i = 0; i < wf_transcripts_count(t); i++) {
    wf_transcript u = wf_transcripts_at(t, i);
    assert_int_equal(wf_transcripts_find(t, u.key), i);
    used += (size_t)snprintf(out + used, sizeof out - used, " %s=", u.key);
    for (size_t j = 0; j < u.num_words; j++)
      used += (size_t)snprintf(out + used, sizeof out - used, j > 0 ? ",%s" : "%s", u.words[j]);
  }
  wf_transcripts_free(t);
  return out;
}

static void test_transcript_formats(void **state) {
  (void)state;
  static const struct {
    int format;
    const char *text, *want;
  } cases[] = {
      {0, "", "1"},
      {0, "u1 a b\r\n\nu2\nu3  c\t d ", "1 u1=a,b u2= u3=c,d"},
      {2, "a b (u1)\n;; note\n(u2)\n  c ( u\n", "-4"},
      {0, "a b (u1)\n;; note\n(u2)\n", "2 u1=a,b u2="},
      {0, "u1 a (b)\nu2 c\n", "1 u1=a,(b) u2=c"},
      {2, "a { b / c } (u1)\n", "-6"},
      {2, "a b\n", "-4"},
      {2, "a (b c)\n", "-4"},
      {2, "a ()\n", "-4"},
      {0, "u1 1 0.0 0.5 a\nu2 1 0 1 x 0.9\nu1 A 0.5 0.1 b 1\n", "3 u1=a,b u2=x"},
      {3, "u1 1 x 0.5 a\n", "-4"},
      {3, "u1 1 0 0.5\n", "-4"},
      {0,
       "{\"key\": \"u1\", \"text\": \"a "
       "b\"}\n{\"text\":\"\\u00e4\\ud83d\\ude00\\ud83d\\n\\\"x\\/\", \"n\": [1, {\"key\": \"no ] } "
       "\"}], \"key\":\"u2\"}\n"
       "{\"key\":\"u3\",\"error\":\"e\"}\n",
       "4 u1=a,b u2=\xc3\xa4\xf0\x9f\x98\x80\xef\xbf\xbd\n\"x/"},
      {4, "{\"key\": \"u1\"}\n", "-4"},
      {4, "{\"key\": 1, \"text\": \"\"}\n", "-4"},
      {4, "{\"key\": \"u\", \"text\": \"a\" \n", "-4"},
      {4, "{\"key\": \"u\", \"text\": \"a\\q\"}\n", "-4"},
      {4, "{\"key\": \"u\", \"text\": \"a\\u12g4\"}\n", "-4"},
      {4, "{\"key\": \"u\", \"text\": \"a\", \"x\": [}\n", "-4"},
      {4, "{\"key\": \"u\", \"text\": \"a\", \"x\": [1}}\n", "-4"},
      {4, "{\"key\": \"u\", \"text\": \"a\", \"x\": [1 2]}\n", "-4"},
      {4, "{\"key\": \"u\", \"text\": \"a\", \"x\": }\n", "-4"},
      {4, "{\"key\": \"u\", \"text\": \"a\",}\n", "-4"},
      {4, "{\"key\": \"u\", \"text\": \"a\", \"x\": \"\\q\"}\n", "-4"},
      {4, "{\"k\\u0065y\": \"u\", \"x\": [{}, {\"y\": -1e5, \"z\": null}, []], \"text\": \"a\"}\n",
       "4 u=a"},
      {4, "{\"key\": \"u\", \"text\": \"a\"} x\n", "-4"},
      {4, "{}\n", "-4"},
      {4, "[]\n", "-4"},
      {1, "u1 a\nu1 b\n", "-4"},
      {1, "u1 \xff\n", "-4"},
      {4, "{\"key\": \"u\", \"text\": \"a\\u0000b\"}\n",
       "4 u=a\xef\xbf\xbd"
       "b"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_string_equal(
        parse((wf_transcript_format)cases[i].format, cases[i].text, strlen(cases[i].text)),
        cases[i].want);
  assert_string_equal(parse(WF_TRANSCRIPT_TEXT, "u a\0b\n", 6), "-4");
  /* every prefix is either an error or a transcript, and does no harm */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (size_t size = 0; size < strlen(cases[i].text); size++)
      parse((wf_transcript_format)cases[i].format, cases[i].text, size);
  /* nesting is limited, because the reader recurses */
  enum { DEPTH = 1000000 };
  char *deep = malloc(2 * DEPTH + 64);
  for (int depth = 50; depth <= DEPTH; depth *= 20) {
    size_t size = (size_t)sprintf(deep, "{\"x\": ");
    memset(deep + size, '[', (size_t)depth);
    memset(deep + size + depth, ']', (size_t)depth);
    size += 2 * (size_t)depth;
    size += (size_t)sprintf(deep + size, ", \"key\": \"u\", \"text\": \"a\"}");
    assert_string_equal(parse(WF_TRANSCRIPT_AUTO, deep, size), depth == 50 ? "4 u=a" : "-4");
  }
  free(deep);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_alignment), cmocka_unit_test(test_options),
      cmocka_unit_test(test_long_transcripts), cmocka_unit_test(test_transcript_formats)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
