/* test_boost_texts.c - boosts of phrases that are given as texts: words of the graph, spellings
 * with tokens, and the one warning about phrases that are left out. */
#include "scorer/scorer.h"
#include "testing.h"

static wf_symbols *table_of(const char *names) {
  wf_error err = {0};
  wf_symbols *table;
  char copy[256], *place = NULL;
  assert_ok(wf_symbols_create("tokens", &table, &err));
  snprintf(copy, sizeof copy, "<eps> %s", names);
  for (char *name = strtok_r(copy, " ", &place); name != NULL; name = strtok_r(NULL, " ", &place))
    assert_ok(wf_symbols_add(table, name, -1, NULL, &err));
  return table;
}

struct log {
  int count;
  char last[512];
};

static void listen(void *user, wf_log_level level, const char *message) {
  struct log *log = user;
  if (level < WF_LOG_WARNING) return;
  log->count++;
  snprintf(log->last, sizeof log->last, "%s", message);
}

/* What the scorer takes off the names, which blanks separate. */
static float boost_of(const wf_scorer *scorer, const wf_symbols *table, const char *names) {
  wf_error err = {0};
  char copy[256], *place = NULL;
  uint64_t context = 0;
  float cost, sum = 0;
  snprintf(copy, sizeof copy, "%s", names);
  for (char *name = strtok_r(copy, " ", &place); name != NULL; name = strtok_r(NULL, " ", &place)) {
    int32_t label = (int32_t)wf_symbols_find(table, name);
    assert_true(label > 0);
    assert_ok(scorer->ops->step(scorer, NULL, context, label, &cost, &context, &err));
    sum -= cost;
  }
  assert_ok(scorer->ops->final(scorer, NULL, context, &cost, &err));
  return sum - cost;
}

enum { WORDS, TOKENS, JOINED }; /* results of the graph: words, tokens, or tokens joined to words */
#define U "\xE2\x96\x81"

/* Boosts `phrase` by 4 nats: `found` gets them, and `other`, if it is there, nothing. A phrase with
 * found == NULL is left out. */
struct one {
  const char *names;
  int kind;
  const char *phrase, *found, *other;
};
static const struct one ones[] = {
    {"new york the", WORDS, " new\tyork ", "new york", "york new"},
    {"new york the", WORDS, "new jersey", NULL, "new york"},
    {"n e w", WORDS, "new", NULL, "n e w"},
    /* U+2581 begins words: every way to cut them */
    {U "n e w " U "ne " U "york", JOINED, "new york", U "ne w " U "york", U "york"},
    {U "n e w " U "ne " U "york", JOINED, "new york", U "n e w " U "york", U "ne w"},
    {U "n e w " U "ne " U "york", JOINED, U "n e w", U "n e w", U "ne w"},
    {U "n e w " U "ne " U "york", JOINED, "news", NULL, U "ne w"},
    {U "n e w " U "ne " U "york", TOKENS, "new", U "ne w", NULL},
    {U "t the " U "the h e", JOINED, "the", U "the", "the"},
    {U "t the " U "the h e", JOINED, "the", U "t h e", "the"},
    {U "t the " U "the h e", TOKENS, "the", "the", U "the"},
    /* a token between words */
    {"| n e w y o r k", JOINED, "new york", "n e w | y o r k", "n e w y o r k"},
    {"| n e w y o r k", JOINED, "n | y", "n | y", "n y"},
    {"| n e w y o r k", JOINED, "n y", "n | y", "n y"},
    {"| n e w y o r k", TOKENS, "n y", "n y", "n | y"},
    {"<space> n e w", JOINED, "new we", "n e w <space> w e", "n e w w e"},
    /* ## goes on with a word */
    {"new n ##e ##w york", JOINED, "new york", "new york", "n ##e ##w york"},
    {"n ##e ##w york", JOINED, "new york", "n ##e ##w york", "n york"},
    /* words beside tokens, as wf_graph_add_spelling makes them */
    {"new " U "n ##e ##w york " U "york", JOINED, "new", "new", "york"},
    {"new " U "n ##e ##w york " U "york", JOINED, "new", U "n ##e ##w", U "york"},
    {"zzz " U "n ##e", JOINED, "zzz", "zzz", NULL},
    /* neither marks nor separator */
    {"\u7814 \u7a76 \u751f", JOINED, "\u7814\u7a76", "\u7814 \u7a76", "\u7a76"},
};

static void check(const struct one *one) {
  wf_error err = {0};
  struct log log = {0};
  wf_symbols *table = table_of(one->names);
  wf_token_joiner *joiner = NULL;
  if (one->kind == JOINED) assert_ok(wf_token_joiner_create(table, NULL, &joiner, &err));
  wf_phrase_list list;
  wf_phrase_list_init(&list);
  list.name = "list";
  list.phrases = &one->phrase;
  list.boosts = (float[]){4};
  list.count = 1;
  list.words = table;
  list.tokens = one->kind == TOKENS ? table : NULL;
  list.joiner = joiner;
  wf_scorer *scorer;
  wf_set_log(listen, &log);
  assert_ok(wf_scorer_boost_texts(&list, &scorer, &err));
  wf_set_log(NULL, NULL);
  assert_int_equal(log.count, one->found == NULL);
  float found = one->found == NULL ? 4 : boost_of(scorer, table, one->found);
  float other = one->other == NULL ? 0 : boost_of(scorer, table, one->other);
  if (fabsf(found - 4) > 1e-5f || fabsf(other) > 1e-5f)
    fail_msg("'%s' of '%s': %g and %g, expected 4 and 0", one->phrase, one->names, (double)found,
             (double)other);
  wf_scorer_free(scorer);
  wf_token_joiner_free(joiner);
  wf_symbols_free(table);
}

static void test_forms(void **state) {
  for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) check(&ones[i]);
}

/* Known phrases count, unknown ones are named in one warning, each name once. */
static void test_warning(void **state) {
  wf_error err = {0};
  struct log log = {0};
  wf_symbols *table = table_of("a b c");
  const char *phrases[16] = {"a b", "x", "a x", "y b z x", "c"};
  float boosts[16] = {1, 1, 1, 1, NAN};
  char names[11][8];
  wf_phrase_list list;
  wf_phrase_list_init(&list);
  list.phrases = phrases;
  list.boosts = boosts;
  list.count = 5;
  list.words = table;
  wf_scorer *scorer;
  wf_set_log(listen, &log);
  assert_ok(wf_scorer_boost_texts(&list, &scorer, &err));
  assert_string_equal(log.last, "boost: 3 of 5 phrases ignored; the graph lacks 'x', 'y', 'z'");
  assert_true(boost_of(scorer, table, "a b") == 1);
  assert_true(boost_of(scorer, table, "c") == WF_BOOST_PER_LETTER);
  wf_scorer_free(scorer);
  for (int i = 0; i < 11; i++) {
    snprintf(names[i], sizeof names[i], "name%d", i);
    phrases[5 + i] = names[i];
  }
  list.count = 16;
  assert_ok(wf_scorer_boost_texts(&list, &scorer, &err));
  assert_non_null(strstr(log.last, "14 of 16 phrases ignored"));
  assert_non_null(strstr(log.last, "'name6', ..."));
  wf_scorer_free(scorer);
  assert_int_equal(log.count, 2);
  list.count = 0;
  assert_ok(wf_scorer_boost_texts(&list, &scorer, &err));
  assert_true(boost_of(scorer, table, "a b c") == 0);
  wf_scorer_free(scorer);
  assert_int_equal(log.count, 2);
  wf_set_log(NULL, NULL);
  list.count = 2;
  phrases[1] = " \t";
  assert_int_equal(wf_scorer_boost_texts(&list, &scorer, &err), WF_ERR_ARGUMENT);
  assert_string_equal(err.message, "boost: phrase 2 of 2 is empty");
  list.words = NULL;
  assert_int_equal(wf_scorer_boost_texts(&list, &scorer, &err), WF_ERR_ARGUMENT);
  wf_symbols_free(table);
}

/* A phrase has at most 100 spellings, also if each of its words has many. */
static void test_many_spellings(void **state) {
  wf_error err = {0};
  wf_symbols *table = table_of(U " a aa " U "a " U "aa");
  wf_token_joiner *joiner;
  assert_ok(wf_token_joiner_create(table, NULL, &joiner, &err));
  const char *phrase = "aaaaaa aaaaaa aaaaaa aaaaaa";
  wf_phrase_list list;
  wf_phrase_list_init(&list);
  list.phrases = &phrase;
  list.boosts = (float[]){1};
  list.count = 1;
  list.words = table;
  list.joiner = joiner;
  wf_scorer *scorer;
  assert_ok(wf_scorer_boost_texts(&list, &scorer, &err));
  const char *best = U "aa aa aa";
  char four[256];
  snprintf(four, sizeof four, "%s %s %s %s", best, best, best, best);
  assert_true(fabsf(boost_of(scorer, table, four) - 1) < 1e-5f);
  wf_scorer_free(scorer);
  wf_token_joiner_free(joiner);
  wf_symbols_free(table);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_warning),
                                     cmocka_unit_test(test_many_spellings)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
