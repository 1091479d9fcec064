/* test_lexicon.c - reading lexicons, spelling, disambiguation symbols, and L, compared with direct
 * definitions. */
#include "testing.h"

#include "graph/lexicon.h"

#define CTC_DIR WARPFST_SOURCE_DIR "/examples/ctc/"

static wf_symbols *table_of(const char *text) {
  wf_error err = {0};
  wf_symbols *table;
  assert_ok(wf_symbols_read(test_write_file("table.txt", text, strlen(text)), &table, &err));
  return table;
}

/* Tokens a..e are labels 2..6; SIL is 7. */
static wf_symbols *small_tokens(void) {
  return table_of("<blk> 0\na 1\nb 2\nc 3\nd 4\ne 5\nSIL 6\n");
}

static wf_lexicon *lexicon_of(const wf_symbols *tokens, const char *text) {
  wf_error err = {0};
  wf_lexicon *lexicon;
  assert_ok(wf_lexicon_read(test_write_file("lexicon.txt", text, strlen(text)), tokens, NULL,
                            &lexicon, &err));
  return lexicon;
}

static void assert_entry(const wf_lexicon *lexicon, size_t i, const char *word, double prob,
                         const char *labels) {
  wf_pronunciation entry = wf_lexicon_at(lexicon, i);
  char text[256] = "";
  for (size_t k = 0; k < entry.num_labels; k++)
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", k != 0 ? " " : "",
             (int)entry.labels[k]);
  assert_string_equal(entry.word, word);
  assert_string_equal(text, labels);
  assert_true(fabs((double)entry.prob - prob) < 1e-6);
}

/* --- reading ----------------------------------------------------------------------------- */

static void test_read_plain(void **state) {
  wf_symbols *tokens = small_tokens();
  wf_lexicon *lexicon = lexicon_of(tokens, "x a b\r\n\n  \ny\tb  c \nx c\nx a b\n");
  assert_int_equal(wf_lexicon_count(lexicon), 3);
  assert_entry(lexicon, 0, "x", 1, "2 3");
  assert_entry(lexicon, 1, "y", 1, "3 4");
  assert_entry(lexicon, 2, "x", 1, "4");
  wf_lexicon_free(lexicon);
  wf_symbols_free(tokens);
}

static void test_read_prob(void **state) {
  wf_symbols *tokens = small_tokens(), *digits = table_of("<blk> 0\n1 1\n0.5 2\na 3\n");
  wf_lexicon *lexicon = lexicon_of(tokens, "x 0.25 a\ny 1.0 b\nx 1e-3 c c\nx 0.5 a\n");
  assert_int_equal(wf_lexicon_count(lexicon), 3);
  assert_entry(lexicon, 0, "x", 0.5, "2");
  assert_entry(lexicon, 2, "x", 1e-3, "4 4");
  const char *path = test_temp_path("written.txt");
  wf_error err = {0};
  assert_ok(wf_lexicon_write(lexicon, path, &err));
  char *text = test_read_file(path, NULL);
  assert_string_equal(text, "x 0.5 a\ny 1 b\nx 0.00100000005 c c\n");
  free(text);
  wf_lexicon_free(lexicon);
  /* If every entry of a column is a token, they are tokens. If one is not, the column holds
   * probabilities. */
  lexicon = lexicon_of(digits, "x 1 a\ny 0.5\n");
  assert_entry(lexicon, 0, "x", 1, "2 4");
  wf_lexicon_free(lexicon);
  lexicon = lexicon_of(digits, "x 1 a\ny 0.25 1\n");
  assert_entry(lexicon, 0, "x", 1, "4");
  assert_entry(lexicon, 1, "y", 0.25, "2");
  wf_lexicon_free(lexicon);
  wf_symbols_free(tokens);
  wf_symbols_free(digits);
}

/* lexiconp_silprob.txt of Kaldi, dictionaries of the Montreal Forced Aligner. */
static void test_read_silence_columns(void **state) {
  wf_symbols *tokens = small_tokens(), *digits = table_of("<blk> 0\n1 1\n0.5 2\na 3\n");
  wf_lexicon *lexicon = lexicon_of(tokens, "x 0.99 0.16 1.0 1.26 a\ny\t0.5\t0.2\t1\t0.9\tb c\n");
  assert_int_equal(wf_lexicon_count(lexicon), 2);
  assert_entry(lexicon, 0, "x", 0.99, "2");
  assert_entry(lexicon, 1, "y", 0.5, "3 4");
  wf_lexicon_free(lexicon);
  /* Numbers that are tokens in every line stay tokens. */
  lexicon = lexicon_of(digits, "x 0.99 0.5 1 1 a\ny 0.25 1 0.5 1\n");
  assert_entry(lexicon, 0, "x", 0.99, "3 2 2 4");
  assert_entry(lexicon, 1, "y", 0.25, "2 3 2");
  wf_lexicon_free(lexicon);
  /* One line without the columns: the others are not recognized. */
  wf_error err = {0};
  const char *path = test_write_file("lexicon.txt", "x 1 0.2 1 1 a\ny 1 b\n", 20);
  assert_int_equal(wf_lexicon_read(path, tokens, NULL, &lexicon, &err), WF_ERR_FORMAT);
  assert_non_null(strstr(err.message, "lexicon.txt:1: word 'x': '0.2' is not in the token table"));
  wf_lexicon_options options;
  wf_lexicon_options_init(&options);
  options.lexicon_format = 3;
  assert_int_equal(wf_lexicon_read(path, tokens, &options, &lexicon, &err), WF_ERR_FORMAT);
  assert_non_null(strstr(err.message, "lexicon.txt:2: word 'y': expected four numbers"));
  wf_symbols_free(tokens);
  wf_symbols_free(digits);
}

/* A table that starts with <eps> holds labels, and #0 in it is not a token. */
static void test_kaldi_token_table(void **state) {
  wf_error err = {0};
  wf_symbols *tokens = table_of("<eps> 0\n<blk> 1\na 2\nb 3\n#0 4\n#1 5\n"), *labels;
  wf_lexicon *lexicon = lexicon_of(tokens, "x a b\n");
  int32_t num_tokens, blank;
  assert_entry(lexicon, 0, "x", 1, "2 3");
  assert_ok(wf_token_labels(tokens, 2, &labels, &num_tokens, &err));
  assert_int_equal(num_tokens, 3);
  assert_int_equal(wf_symbols_find(labels, "#1"), 5);
  assert_ok(wf_token_blank(tokens, NULL, &blank, &err));
  assert_int_equal(blank, 0);
  wf_symbols_free(labels);
  wf_lexicon_free(lexicon);
  wf_symbols_free(tokens);
  tokens = table_of("a 0\n#0 1\n<blk> 2\n"); /* here "#0" is a column */
  assert_ok(wf_token_labels(tokens, 2, &labels, &num_tokens, &err));
  assert_int_equal(num_tokens, 3);
  assert_int_equal(wf_symbols_find(labels, "#0"), 2);
  assert_string_equal(wf_symbols_text(labels, 4), "<#0>");
  assert_ok(wf_token_blank(tokens, NULL, &blank, &err));
  assert_int_equal(blank, 2);
  assert_int_equal(wf_token_blank(tokens, "nope", &blank, &err), WF_ERR_ARGUMENT);
  wf_symbols_free(labels);
  wf_symbols_free(tokens);
  tokens = table_of("a 0\nb 2\n");
  assert_int_equal(wf_token_labels(tokens, 0, &labels, NULL, &err), WF_ERR_FORMAT);
  assert_non_null(strstr(err.message, "id 1"));
  wf_symbols_free(tokens);
}

static void test_read_errors(void **state) {
  static const struct {
    const char *text, *says;
  } cases[] = {
      {"x a\ny q\n", "lexicon.txt:2: word 'y': 'q' is not in the token table"},
      {"x a\n\ny\n", "lexicon.txt:3: word 'y': no tokens"},
      {"x 0.5 a\ny 1.5 b\n", "lexicon.txt:2: word 'y': '1.5' is not a probability"},
      {"x 0.5 a\ny 0 b\n", "is not a probability"},
      {"x 0.5 a\ny 1\n", "lexicon.txt:2: word 'y': no tokens"},
      {"x 0.5 a\ny -inf b\n", "is not a probability"},
      {"x a <blk> b\n", "holds the blank"},
      {"<s> a\n", "'<s>' is reserved"},
      {"#12 a\n", "'#12' is reserved"},
      {"\xff a\n", "not UTF-8"},
      {"", "no words"},
      {"\n\n", "no words"},
  };
  wf_symbols *tokens = small_tokens();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wf_error err = {0};
    wf_lexicon *lexicon = NULL;
    wf_status status =
        wf_lexicon_read(test_write_file("lexicon.txt", cases[i].text, strlen(cases[i].text)),
                        tokens, NULL, &lexicon, &err);
    assert_int_equal(status, WF_ERR_FORMAT);
    assert_null(lexicon);
    if (strstr(err.message, cases[i].says) == NULL)
      fail_msg("case %zu: '%s' lacks '%s'", i, err.message, cases[i].says);
    wf_error in_memory = {0};
    assert_int_equal(wf_lexicon_read_memory(cases[i].text, strlen(cases[i].text), "lexicon.txt",
                                            tokens, NULL, &lexicon, &in_memory),
                     WF_ERR_FORMAT);
    assert_null(lexicon);
    assert_non_null(strstr(in_memory.message, cases[i].says));
    assert_non_null(strstr(in_memory.message, "lexicon.txt"));
  }
  wf_error err = {0};
  wf_lexicon *lexicon;
  assert_int_equal(wf_lexicon_read("/nonexistent/lexicon", tokens, NULL, &lexicon, &err),
                   WF_ERR_IO);
  wf_lexicon_options options;
  wf_lexicon_options_init(&options);
  options.unknown = 1;
  assert_ok(wf_lexicon_read(test_write_file("lexicon.txt", "x a q\ny q\nz b\n", 14), tokens,
                            &options, &lexicon, &err));
  assert_int_equal(wf_lexicon_skipped(lexicon)->count, 2);
  assert_int_equal(wf_lexicon_count(lexicon), 1);
  assert_entry(lexicon, 0, "z", 1, "3");
  wf_lexicon_free(lexicon);
  wf_symbols_free(tokens);
}

static void test_word_table(void **state) {
  wf_error err = {0};
  wf_symbols *tokens = small_tokens(), *words;
  wf_lexicon *lexicon = lexicon_of(tokens, "b a\n\xC3\xA9 b\nB c\nb d\n");
  assert_ok(wf_lexicon_words(lexicon, &words, &err));
  const char *path = test_temp_path("words.txt");
  assert_ok(wf_symbols_write(words, path, &err));
  char *text = test_read_file(path, NULL);
  assert_string_equal(text, "<eps>\t0\nB\t1\nb\t2\n\xC3\xA9\t3\n#0\t4\n<s>\t5\n</s>\t6\n");
  free(text);
  wf_symbols_free(words);
  wf_lexicon_free(lexicon);
  wf_symbols_free(tokens);
}

/* --- disambiguation ---------------------------------------------------------------------- */

/* Random lexicons over few tokens, so that homophones and prefixes abound. */
static wf_lexicon *random_lexicon(test_rng *rng, const wf_symbols *tokens, int max_words,
                                  int num_tokens, bool prob) {
  char text[4096] = "";
  int words = 1 + (int)test_below(rng, (uint32_t)max_words);
  for (int i = 0; i < words; i++) {
    size_t used = strlen(text);
    used += (size_t)snprintf(text + used, sizeof text - used, "w%u",
                             (unsigned)test_below(rng, (uint32_t)max_words));
    if (prob)
      used += (size_t)snprintf(text + used, sizeof text - used, " 0.%u5",
                               (unsigned)test_below(rng, 10));
    for (int k = 0, size = 1 + (int)test_below(rng, 3); k < size; k++)
      used += (size_t)snprintf(text + used, sizeof text - used, " %c",
                               'a' + (char)test_below(rng, (uint32_t)num_tokens));
    snprintf(text + used, sizeof text - used, "\n");
  }
  return lexicon_of(tokens, text);
}

static bool begins(const wf_pronunciation *a, const wf_pronunciation *b) {
  return a->num_labels <= b->num_labels &&
         memcmp(a->labels, b->labels, a->num_labels * sizeof *a->labels) == 0;
}

/* Kaldi's rule in its own words: pronunciations that are shared, or a proper prefix of another, get
 * #1, #2, ... in the order of the file among equal ones. Other pronunciations get none. */
static void test_disambig_rule(void **state) {
  test_rng rng = {11};
  wf_symbols *tokens = small_tokens();
  int num_marked = 0, num_plain = 0;
  for (int round = 0; round < 400; round++) {
    wf_lexicon *lexicon = random_lexicon(&rng, tokens, 12, 3, false);
    int32_t largest = 0;
    for (size_t i = 0; i < wf_lexicon_count(lexicon); i++) {
      wf_pronunciation own = wf_lexicon_at(lexicon, i);
      int32_t equal_before = 0, equal = 0, longer = 0;
      for (size_t j = 0; j < wf_lexicon_count(lexicon); j++) {
        wf_pronunciation other = wf_lexicon_at(lexicon, j);
        if (!begins(&own, &other)) continue;
        bool same = own.num_labels == other.num_labels;
        if (same && i != j && strcmp(own.word, other.word) == 0)
          fail_msg("entry %zu occurs twice", i);
        equal += same;
        equal_before += same && j < i;
        longer += !same;
      }
      int32_t want = equal > 1 || longer > 0 ? equal_before + 1 : 0;
      assert_int_equal(lexicon->entries.data[i].disambig, want);
      num_marked += want != 0;
      num_plain += want == 0;
      if (want > largest) largest = want;
    }
    assert_int_equal(wf_lexicon_num_disambig(lexicon), largest + 2);
    wf_lexicon_free(lexicon);
  }
  assert_true(num_marked > 500 && num_plain > 300);
  wf_symbols_free(tokens);
}

/* --- L ----------------------------------------------------------------------------------- */

/* Adds every reading of `labels` as a sequence of words to `out`, as keys in the form of
 * test_enumerate. */
struct saying {
  const wf_lexicon *lexicon;
  const wf_symbols *words;
  int32_t labels[16], said[16];
  int size, num_said, silence;
  double p_silence; /* 1: silence is required between words */
  test_relation out;
  size_t cap;
};

static void say(struct saying *s, int at, double cost);

/* After a word or at the start: with or without a silence. */
static void say_gap(struct saying *s, int at, double cost) {
  if (s->silence == 0) {
    say(s, at, cost);
    return;
  }
  if (s->p_silence == 1) { /* any number at the edges, else one or more */
    const int first = at;
    for (;; at++) {
      if (at > first || at == 0 || at == s->size) say(s, at, cost);
      if (at == s->size || s->labels[at] != s->silence) return;
    }
  }
  say(s, at, cost - log(1 - s->p_silence));
  if (at < s->size && s->labels[at] == s->silence) say(s, at + 1, cost - log(s->p_silence));
}

static void say(struct saying *s, int at, double cost) {
  if (at == s->size) {
    char key[512];
    size_t used = 0;
    for (int i = 0; i < s->size; i++)
      used += (size_t)snprintf(key + used, sizeof key - used, "%d ", (int)s->labels[i]);
    used += (size_t)snprintf(key + used, sizeof key - used, ": ");
    for (int i = 0; i < s->num_said; i++)
      used += (size_t)snprintf(key + used, sizeof key - used, "%d ", (int)s->said[i]);
    for (size_t i = 0; i < s->out.size; i++) {
      if (strcmp(s->out.pairs[i].key, key) != 0) continue;
      if (cost < s->out.pairs[i].cost) s->out.pairs[i].cost = cost;
      return;
    }
    if (s->out.size == s->cap) {
      s->cap = s->cap * 2 + 64;
      s->out.pairs = realloc(s->out.pairs, s->cap * sizeof *s->out.pairs);
      assert_non_null(s->out.pairs);
    }
    s->out.pairs[s->out.size++] = (test_pair){strdup(key), cost};
    return;
  }
  for (size_t i = 0; i < wf_lexicon_count(s->lexicon); i++) {
    wf_pronunciation entry = wf_lexicon_at(s->lexicon, i);
    if (entry.num_labels > (size_t)(s->size - at) ||
        memcmp(entry.labels, s->labels + at, entry.num_labels * sizeof *entry.labels) != 0)
      continue;
    s->said[s->num_said++] = (int32_t)wf_symbols_find(s->words, entry.word);
    say_gap(s, at + (int)entry.num_labels, cost - log((double)entry.prob));
    s->num_said--;
  }
}

static int by_key(const void *a, const void *b) {
  return strcmp(((const test_pair *)a)->key, ((const test_pair *)b)->key);
}

/* Keeps keys with at most `limit` input labels. Enumeration by number of arcs is incomplete beyond
 * that. */
static void keep_short(test_relation *relation, int limit) {
  size_t kept = 0;
  for (size_t i = 0; i < relation->size; i++) {
    int inputs = 0;
    for (const char *c = relation->pairs[i].key; *c != ':'; c++) inputs += *c == ' ';
    if (inputs <= limit)
      relation->pairs[kept++] = relation->pairs[i];
    else
      free(relation->pairs[i].key);
  }
  relation->size = kept;
}

/* For every string of up to 4 tokens over 2 tokens (and silence), words and costs of L equal those
 * of the direct enumeration. */
static void check_sayings(test_rng *rng, const wf_symbols *tokens, bool silence, bool required,
                          bool prob) {
  enum { MAX_SIZE = 4 };
  wf_error err = {0};
  wf_lexicon *lexicon = random_lexicon(rng, tokens, 4, 2, prob);
  wf_lexicon_fst_options options;
  wf_fst *fst;
  wf_lexicon_fst_options_init(&options);
  options.disambig = false;
  options.silence = silence ? "SIL" : NULL;
  options.silence_prob = required ? 1 : 0.25f;
  assert_ok(wf_lexicon_to_fst(lexicon, NULL, &options, &fst, NULL, &err));
  test_relation found = test_enumerate(fst, MAX_SIZE + (silence ? 1 : 0), 2000000);
  keep_short(&found, MAX_SIZE);
  struct saying s = {.lexicon = lexicon,
                     .words = wf_fst_osymbols(fst),
                     .silence = silence ? 7 : 0,
                     .p_silence = (double)options.silence_prob};
  int letters = silence ? 3 : 2;
  for (s.size = 0; s.size <= MAX_SIZE; s.size++) {
    for (int n = 0, total = (int)pow(letters, s.size); n < total; n++) {
      for (int i = 0, rest = n; i < s.size; i++, rest /= letters)
        s.labels[i] = rest % letters == 2 ? 7 : 2 + rest % letters;
      say_gap(&s, 0, 0);
    }
  }
  qsort(s.out.pairs, s.out.size, sizeof *s.out.pairs, by_key);
  test_assert_same_relation(&s.out, &found, 1e-5);
  assert_true(found.size > 0);
  test_relation_free(&found);
  test_relation_free(&s.out);
  wf_fst_free(fst);
  wf_lexicon_free(lexicon);
}

static void test_l_by_brute_force(void **state) {
  test_rng rng = {5};
  wf_symbols *tokens = small_tokens();
  for (int round = 0; round < 60; round++)
    check_sayings(&rng, tokens, round % 2 == 1, round % 8 >= 4, round % 4 >= 2);
  wf_symbols_free(tokens);
}

/* With disambiguation symbols one input has one output, so L can be determinized. Without them L is
 * otherwise the same. */
static void test_l_disambig(void **state) {
  test_rng rng = {6};
  wf_error err = {0};
  wf_symbols *tokens = small_tokens();
  for (int round = 0; round < 60; round++) {
    wf_lexicon *lexicon = random_lexicon(&rng, tokens, 4, 2, false);
    wf_lexicon_fst_options options;
    wf_fst *fst;
    wf_lexicon_fst_options_init(&options);
    if (round % 2 == 1) options.silence = "SIL";
    if (round % 4 == 3) options.silence_prob = 1;
    assert_ok(wf_lexicon_to_fst(lexicon, NULL, &options, &fst, NULL, &err));
    wf_fst_view view = wf_fst_get_view(fst);
    uint64_t loops = 0;
    for (uint64_t i = 0; i < view.num_arcs; i++) {
      loops += strcmp(wf_symbols_text(wf_fst_isymbols(fst), view.arcs[i].ilabel), "#0") == 0;
      assert_true(view.arcs[i].ilabel < 8 + wf_lexicon_num_disambig(lexicon));
      if (view.arcs[i].ilabel == 8)
        assert_string_equal(wf_symbols_text(wf_fst_osymbols(fst), view.arcs[i].olabel), "#0");
    }
    assert_int_equal(loops, round % 4 == 3 ? 2 : 1);
    test_relation found = test_enumerate(fst, 6, 2000000);
    for (size_t i = 1; i < found.size; i++) {
      const char *a = found.pairs[i - 1].key, *b = found.pairs[i].key;
      size_t size = strcspn(a, ":");
      if (strncmp(a, b, size + 1) == 0) fail_msg("'%s' and '%s'", a, b);
    }
    test_relation_free(&found);
    wf_fst_free(fst);
    wf_lexicon_free(lexicon);
  }
  wf_symbols_free(tokens);
}

/* Which token is the silence, and whether it is required: then no arc has a cost, and words leave
 * two states. Optional silence has costs, and a word of one token two arcs. */
static void test_separators(void **state) {
  wf_error err = {0};
  static const struct {
    const char *tokens, *lexicon, *silence;
    float prob;
    bool has_silence, required;
  } cases[] = {
      {"<blk> 0\na 1\n| 2\n", "x a\n", NULL, 0, true, true},
      {"<blk> 0\na 1\n<space> 2\n", "x a\n", NULL, 0, true, true},
      {"<blk> 0\na 1\n\xE2\x96\x81 2\n", "x a\n", NULL, 0, true, true},
      {"<blk> 0\na 1\n\xE2\x96\x81 2\n\xE2\x96\x81q 3\n", "x a\n", NULL, 0, false, false},
      {"<blk> 0\na 1\n| 2\n", "x a |\n", NULL, 0, false, false},
      {"<blk> 0\na 1\n| 2\n", "x a |\n", "|", 0, true, false},
      {"<blk> 0\na 1\n| 2\n", "x a\n", "", 0, false, false},
      {"<blk> 0\na 1\n| 2\n", "x a\n", "|", 0.5f, true, false},
      {"<blk> 0\na 1\nSIL 2\n", "x a\n", "SIL", 0, true, false},
      {"<blk> 0\na 1\nSIL 2\n", "x a\n", "SIL", 1, true, true},
      {"<blk> 0\na 1\nb 2\n", "x a\n", NULL, 0, false, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wf_symbols *tokens = table_of(cases[i].tokens);
    wf_lexicon *lexicon = lexicon_of(tokens, cases[i].lexicon);
    wf_lexicon_fst_options options;
    wf_lexicon_fst_options_init(&options);
    options.silence = cases[i].silence;
    options.silence_prob = cases[i].prob;
    options.disambig = false;
    wf_fst *fst;
    assert_ok(wf_lexicon_to_fst(lexicon, NULL, &options, &fst, NULL, &err));
    wf_fst_view view = wf_fst_get_view(fst);
    const uint64_t words_from = cases[i].required ? 2 : cases[i].has_silence ? 2 : 1;
    uint64_t found = 0, costly = 0;
    for (uint64_t a = 0; a < view.num_arcs; a++) {
      found += view.arcs[a].olabel != 0;
      costly += view.arcs[a].weight != 0;
    }
    if (strchr(cases[i].lexicon, '|') != NULL) found = words_from; /* two arcs a word */
    if (found != words_from || (costly > 0) != (cases[i].has_silence && !cases[i].required))
      fail_msg("case %zu: %llu arcs of words, %llu with costs", i, (unsigned long long)found,
               (unsigned long long)costly);
    wf_fst_free(fst);
    wf_lexicon_free(lexicon);
    wf_symbols_free(tokens);
  }
}

static void test_l_words(void **state) {
  wf_error err = {0};
  wf_symbols *tokens = small_tokens(), *words = table_of("<eps> 0\ny 7\n#0 9\n"),
             *none = table_of("<eps> 0\nq 7\n#0 9\n"), *no_backoff = table_of("<eps> 0\ny 1\n");
  wf_lexicon *lexicon = lexicon_of(tokens, "x a\nx b\ny c\n");
  wf_fst *fst;
  size_t missing;
  assert_ok(wf_lexicon_to_fst(lexicon, words, NULL, &fst, &missing, &err));
  assert_int_equal(missing, 2);
  wf_fst_view view = wf_fst_get_view(fst);
  assert_int_equal(view.num_states, 1);
  assert_int_equal(view.num_arcs, 2);
  assert_int_equal(view.arcs[0].olabel, 9);
  assert_int_equal(view.arcs[1].olabel, 7);
  wf_fst_free(fst);
  assert_int_equal(wf_lexicon_to_fst(lexicon, none, NULL, &fst, &missing, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_lexicon_to_fst(lexicon, no_backoff, NULL, &fst, &missing, &err),
                   WF_ERR_ARGUMENT);
  wf_lexicon_fst_options options;
  wf_lexicon_fst_options_init(&options);
  options.silence = "nope";
  assert_int_equal(wf_lexicon_to_fst(lexicon, words, &options, &fst, &missing, &err),
                   WF_ERR_ARGUMENT);
  wf_lexicon_free(lexicon);
  wf_symbols_free(tokens);
  wf_symbols_free(words);
  wf_symbols_free(none);
  wf_symbols_free(no_backoff);
}

/* --- spelling ---------------------------------------------------------------------------- */

/* Spelling the words of the shipped lexicons gives these lexicons, which were made with the models'
 * own tokenizers. */
static void check_spelling(const char *kind, int32_t spelling, const char *merges) {
  wf_error err = {0};
  char path[512];
  wf_symbols *tokens, *words;
  wf_lexicon *read, *spelled;
  snprintf(path, sizeof path, CTC_DIR "tokens_%s.txt", kind);
  assert_ok(wf_symbols_read(path, &tokens, &err));
  snprintf(path, sizeof path, CTC_DIR "lexicon_%s.txt", kind);
  assert_ok(wf_lexicon_read(path, tokens, NULL, &read, &err));
  assert_ok(wf_lexicon_words(read, &words, &err));
  wf_lexicon_options options;
  wf_lexicon_options_init(&options);
  options.spelling = spelling;
  options.merges = merges;
  assert_ok(wf_lexicon_spell(words, tokens, &options, &spelled, &err));
  assert_int_equal(wf_lexicon_count(read), 2604);
  assert_int_equal(wf_lexicon_count(spelled), wf_lexicon_count(read));
  for (size_t i = 0; i < wf_lexicon_count(read); i++) {
    wf_pronunciation a = wf_lexicon_at(read, i), b = wf_lexicon_at(spelled, i);
    if (strcmp(a.word, b.word) != 0 || a.num_labels != b.num_labels ||
        memcmp(a.labels, b.labels, a.num_labels * sizeof *a.labels) != 0)
      fail_msg("%s: spelled differently", a.word);
  }
  wf_lexicon_free(read);
  wf_lexicon_free(spelled);
  wf_symbols_free(words);
  wf_symbols_free(tokens);
}

static void test_spelling_of_real_models(void **state) {
  check_spelling("char", 1, NULL);
  check_spelling("char", 0, NULL);
  check_spelling("bpe", 0, CTC_DIR "bpe_merges.txt");
}

static void test_spelling_by_hand(void **state) {
  wf_error err = {0};
  wf_symbols *tokens = table_of("a 0\nb 1\nab 2\nabc 3\nd 4\n\xC3\xA9 5\n<pad> 6\n|a 7\n");
  wf_symbols *words =
      table_of("<eps> 0\nabd 1\nabcd 2\n<unk> 3\n#0 4\nd\xC3\xA9 5\naab 6\n<s> 7\n");
  wf_lexicon *lexicon;
  wf_lexicon_options options;
  wf_lexicon_options_init(&options);
  assert_ok(wf_lexicon_spell(words, tokens, &options, &lexicon, &err));
  assert_int_equal(wf_lexicon_count(lexicon), 4);
  assert_entry(lexicon, 0, "abd", 1, "3 5");
  assert_entry(lexicon, 1, "abcd", 1, "4 5");
  assert_entry(lexicon, 2, "d\xC3\xA9", 1, "5 6");
  assert_entry(lexicon, 3, "aab", 1, "1 3");
  wf_lexicon_free(lexicon);
  options.spelling = 1; /* chars: there is no token "c" */
  assert_int_equal(wf_lexicon_spell(words, tokens, &options, &lexicon, &err), WF_ERR_FORMAT);
  assert_non_null(strstr(err.message, "abcd"));
  options.unknown = 1;
  assert_ok(wf_lexicon_spell(words, tokens, &options, &lexicon, &err));
  assert_int_equal(wf_lexicon_skipped(lexicon)->count, 1);
  assert_entry(lexicon, 0, "abd", 1, "1 2 5");
  wf_lexicon_free(lexicon);
  options.spelling = 2;
  options.word_start = "|";
  assert_ok(wf_lexicon_spell(words, tokens, &options, &lexicon, &err));
  assert_int_equal(wf_lexicon_count(lexicon),
                   2); /* "|d" cannot be spelled, and "|abcd" leaves a "c" */
  assert_entry(lexicon, 1, "aab", 1, "8 3");
  wf_lexicon_free(lexicon);
  options.spelling = 3;
  assert_int_equal(wf_lexicon_spell(words, tokens, &options, &lexicon, &err), WF_ERR_ARGUMENT);
  options.word_start = "";
  options.merges = test_write_file("merges.txt", "#version: 0.2\na b\na a\n", 22);
  assert_ok(wf_lexicon_spell(words, tokens, &options, &lexicon, &err));
  assert_entry(
      lexicon, 2, "aab", 1,
      "1 3"); /* the merge of a and b has the better rank, so a and a are never neighbours */
  wf_lexicon_free(lexicon);
  options.merges = test_write_file("merges.txt", "a b\na\n", 6);
  assert_int_equal(wf_lexicon_spell(words, tokens, &options, &lexicon, &err), WF_ERR_FORMAT);
  assert_non_null(strstr(err.message, "merges.txt:2"));
  wf_symbols_free(tokens);
  wf_symbols_free(words);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_read_plain),
      cmocka_unit_test(test_read_prob),
      cmocka_unit_test(test_read_silence_columns),
      cmocka_unit_test(test_kaldi_token_table),
      cmocka_unit_test(test_read_errors),
      cmocka_unit_test(test_word_table),
      cmocka_unit_test(test_disambig_rule),
      cmocka_unit_test(test_l_by_brute_force),
      cmocka_unit_test(test_l_disambig),
      cmocka_unit_test(test_separators),
      cmocka_unit_test(test_l_words),
      cmocka_unit_test(test_spelling_of_real_models),
      cmocka_unit_test(test_spelling_by_hand),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
