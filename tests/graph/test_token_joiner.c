/* test_token_joiner.c - words from tokens, against text in which every token that begins or ends a
 * word is a space. */
#include "base/input.h"
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

struct kind {
  const char *names, *separator; /* names: with ## of no meaning too, where the table has none */
  const char *usual;             /* the separator that NULL stands for */
  bool marks_rest, start_is_text;
};
static const struct kind kinds[] = {{"_ _HE LL _O <unk> [UNK]", NULL, "", false},
                                    {"| A BB <pad> [PAD] <s>", NULL, "|", false},
                                    {"<space> A BB <unk>", NULL, "<space>", false},
                                    {"| <space> A BB", NULL, "<space>", false},
                                    {"| / A BB", "/", "/", false},
                                    {"_ <space> A BB", NULL, "<space>", false, true},
                                    {"_ | A BB", "|", "|", false, true},
                                    {"_ | A BB", NULL, "", false},
                                    {"_ _A | BB", "|", "|", false},
                                    {"_ ## <space> A BB", NULL, "<space>", false, true},
                                    {"_HE LL ##O ## _ < > []", NULL, "", true}};

/* Adds what a token adds to the text: a space where a word begins or ends, and its part. */
static void add_part(char *text, const struct kind *kind, const char *name) {
  size_t size = strlen(name);
  bool brackets =
      (name[0] == '<' && name[size - 1] == '>') || (name[0] == '[' && name[size - 1] == ']');
  if (kind->usual[0] != '\0' && strcmp(name, kind->usual) == 0)
    strcat(text, " ");
  else if (brackets && size > 2)
    return;
  else if (!kind->start_is_text && strncmp(name, "\xE2\x96\x81", 3) == 0)
    strcat(strcat(text, " "), name + 3);
  else if (kind->marks_rest && strncmp(name, "##", 2) == 0)
    strcat(text, name + 2);
  else
    strcat(strcat(text, kind->marks_rest ? " " : ""), name);
}

/* Returns the end. */
static char *put(char *at, const char *text) { return strcpy(at, text) + strlen(text); }

/* The kind's names, with U+2581 for _. */
static size_t names_of(const struct kind *kind, char *memory, const char **names) {
  size_t count = 0;
  char *place = NULL, *at = memory;
  for (const char *c = kind->names; *c != '\0'; c++)
    at = *c == '_' ? put(at, "\xE2\x96\x81") : (*at = *c, at + 1);
  *at = '\0';
  for (char *name = strtok_r(memory, " ", &place); name; name = strtok_r(NULL, " ", &place))
    names[count++] = name;
  return count;
}

static void check(const wf_token_joiner *joiner, const struct kind *kind, const char *const *names,
                  size_t count) {
  size_t bytes = 0, at = 0;
  char *place = NULL, wanted[256] = "";
  for (size_t i = 0; i < count; i++) bytes += strlen(names[i]) + 1;
  wf_joined_word *words = malloc((count + 1) * sizeof *words);
  char *text = malloc(bytes + 1); /* one more, because malloc(0) may be NULL */
  size_t num_words = wf_token_joiner_join(joiner, names, count, words, text);
  for (size_t i = 0; i < count; i++) add_part(wanted, kind, names[i]);
  for (char *word = strtok_r(wanted, " ", &place); word; word = strtok_r(NULL, " ", &place)) {
    char made[256] = "";
    assert_true(at < num_words);
    assert_string_equal(words[at].text, word);
    assert_true(words[at].text + strlen(word) < text + bytes);
    assert_true(words[at].first <= words[at].last && words[at].last < count);
    assert_true(at == 0 || words[at].first > words[at - 1].last);
    for (size_t i = words[at].first; i <= words[at].last; i++) add_part(made, kind, names[i]);
    assert_string_equal(made[0] == ' ' ? made + 1 : made, word);
    at++;
  }
  assert_int_equal(at, num_words);
  free(words);
  free(text);
}

static void test_join(void **state) {
  (void)state;
  wf_error err = {0};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    test_rng rng = {k + 1};
    char memory[256], joined[256] = "";
    const char *names[16], *chosen[12];
    wf_token_joiner *joiner;
    size_t num_names = names_of(&kinds[k], memory, names);
    for (size_t i = 0; i < num_names; i++) strcat(strcat(joined, names[i]), " ");
    wf_symbols *table = table_of(joined);
    assert_ok(wf_token_joiner_create(table, kinds[k].separator, &joiner, &err));
    wf_symbols_free(table);
    if (!kinds[k].marks_rest) names[num_names++] = "##X"; /* the table lacks it: plain text */
    for (int times = 0; times < 2000; times++) {
      size_t count = test_below(&rng, 13);
      for (size_t i = 0; i < count; i++) chosen[i] = names[test_below(&rng, (uint32_t)num_names)];
      check(joiner, &kinds[k], chosen, count);
    }
    wf_token_joiner_free(joiner);
  }
}

/* _ is U+2581. In names $ is U+0120, and @ and % are the bytes C3 and A9 in GPT-2's alphabet. In
 * joined texts % is the character of these two bytes, * is U+FFFD, and a slash ends a word. */
static const struct {
  const char *table, *names, *joined;
} bytes_cases[] = {
    {"a <0xE7> <0x88>", "a <0xC3> <0xA9> a", "a%a/"},
    {"a <0xE7>", "a <0xE7> <0x88> a", "a**a/"},
    {"a <0xE7>", "<0xe7> <0x88> a <0x0A> a <0x20> <0x00>", "**a/a/*/"},
    {"a <0xE7>", "<0xED> <0xA0> <0x80> <0xF4> <0x90> <0xC0> <0xAF>", "*******/"},
    {"_a <0xC3>", "_a <0xC3> _a <0xA9> _<0xC3> <0xA9>", "a*/a*/%/"},
    {"a <0xE3>", "a <0xE3><0x80><0x80> a", "a/a/"},
    {"a <0xE3>", "<0xE> <0xGG> <unk> <0xC3>x a", "<0xC3>xa/"},
    {"_a |", "_a | _a", "a|/a/"},
    {"_a_b _ c_ d", "_a_b c_ d _ d", "a bc/d/d/"},
    {"_ a <space>", "a _ a <space> _ a_b a", "a_a/_a_ba/"},
    {"_ a <0x20>", "a _ <0x20> a _ _", "a_/a__/"},
    {"_ _a <space> b", "_a b _ b <space> b", "ab/bb/"},
    {"a ## b", "a ## b ##", "a##b##/"},
    {"$the $caf @% x", "$the $caf @% $the", "the/caf%/the/"},
    {"$the @% @", "$the @ @ x $the @", "the**x/the*/"},
    {"$the @% @", "$the $$x$y$ x <pad> x", "the/x y/xx/"},
};

/* Writes a text with the characters that its signs stand for. */
static void write_signs(const char *text, const char *signs, const char *const *characters,
                        char *out) {
  for (; *text != '\0'; text++) {
    const char *sign = strchr(signs, *text);
    out = put(out, sign != NULL ? characters[sign - signs] : (char[]){*text, '\0'});
  }
  *out = '\0';
}

static void test_bytes(void **state) {
  (void)state;
  static const char *const in_names[] = {"\xE2\x96\x81", "\xC4\xA0", "\xC3\x83", "\xC2\xA9"},
                           *const in_texts[] = {"\xEF\xBF\xBD", "\xC3\xA9", "\xE2\x96\x81"};
  for (size_t c = 0; c < sizeof bytes_cases / sizeof *bytes_cases; c++) {
    wf_error err = {0};
    wf_token_joiner *joiner;
    char table_text[128], memory[128], wanted[128], made[128] = "", text[128], *place = NULL;
    const char *names[16];
    wf_joined_word words[16];
    size_t count = 0;
    write_signs(bytes_cases[c].table, "_$@%", in_names, table_text);
    write_signs(bytes_cases[c].names, "_$@%", in_names, memory);
    write_signs(bytes_cases[c].joined, "*%_", in_texts, wanted);
    wf_symbols *table = table_of(table_text);
    assert_ok(wf_token_joiner_create(table, NULL, &joiner, &err));
    wf_symbols_free(table);
    for (char *name = strtok_r(memory, " ", &place); name; name = strtok_r(NULL, " ", &place))
      names[count++] = name;
    size_t num_words = wf_token_joiner_join(joiner, names, count, words, text);
    for (size_t w = 0; w < num_words; w++) strcat(strcat(made, words[w].text), "/");
    if (strcmp(made, wanted) != 0) fail_msg("case %zu: '%s', wanted '%s'", c, made, wanted);
    wf_token_joiner_free(joiner);
  }
}

/* Random tokens of bytes, most of them no text, fill no more than the room of their names, and the
 * words are UTF-8. */
static void test_room(void **state) {
  (void)state;
  static const char *const tables[] = {"\xC4\xA0the \xC3\x83\xC2\xA9 x", "a <0xE7> b"};
  for (size_t t = 0; t < 2; t++) {
    wf_error err = {0};
    test_rng rng = {t + 7};
    wf_token_joiner *joiner;
    wf_symbols *table = table_of(tables[t]);
    assert_ok(wf_token_joiner_create(table, NULL, &joiner, &err));
    wf_symbols_free(table);
    for (int round = 0; round < 20000; round++) {
      char memory[12][64], bytes[8];
      const char *names[12];
      wf_joined_word words[12];
      size_t count = 1 + test_below(&rng, 12), room = 0;
      for (size_t i = 0; i < count; i++) {
        size_t size = 1 + test_below(&rng, t == 0 ? 7 : 1);
        for (size_t k = 0; k < size; k++)
          bytes[k] =
              "\xC3\xA9\xE7\x88\xBF\xF0\x9F"
              " a\xE3\x80\xFF"[test_below(&rng, 12)];
        bytes[size] = '\0';
        if (t == 0)
          memory[i][wf_token_joiner_encode(joiner, bytes, memory[i])] = '\0';
        else
          snprintf(memory[i], sizeof memory[i], "<0x%02X>", (unsigned)(uint8_t)bytes[0]);
        names[i] = memory[i];
        room += strlen(names[i]) + 1;
      }
      char *text = malloc(room + 1);
      text[room] = 77;
      size_t num_words = wf_token_joiner_join(joiner, names, count, words, text);
      assert_int_equal(text[room], 77);
      for (size_t w = 0; w < num_words; w++) {
        assert_true(words[w].text + strlen(words[w].text) < text + room);
        assert_true(words[w].text[0] != '\0');
        assert_true(wf__is_utf8((wf__span){words[w].text, strlen(words[w].text)}));
        assert_true(w == 0 || words[w].first > words[w - 1].last);
      }
      free(text);
    }
    wf_token_joiner_free(joiner);
  }
}

static void test_errors(void **state) {
  (void)state;
  wf_error err = {0};
  wf_token_joiner *joiner;
  wf_symbols *table = table_of("A B");
  assert_int_equal(wf_token_joiner_create(NULL, NULL, &joiner, &err), WF_ERR_ARGUMENT);
  assert_null(joiner);
  assert_int_equal(wf_token_joiner_create(table, "/", &joiner, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "tokens has no token '/'"));
  assert_null(joiner);
  wf_token_joiner_free(NULL);
  wf_symbols_free(table);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_join), cmocka_unit_test(test_bytes),
                                     cmocka_unit_test(test_room), cmocka_unit_test(test_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
