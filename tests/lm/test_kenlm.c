/* test_kenlm.c - KenLM's binary tries. Files made by build_binary from ARPA files (tests/data/lm)
 * are compared with those ARPA files. Also rejected and damaged files. tests/cli/test_lm_kenlm.sh
 * compares with KenLM itself. */
#include "lm/kenlm.h"
#include "lm_model.h"

#define DATA TEST_DATA_DIR "/lm/"

static void check_num_ngrams(const wf_lm *lm, int order, const uint64_t *want) {
  wf_error err = {0};
  wf_lm_info info;
  wf_lm_info_init(&info);
  assert_ok(wf_lm_get_info(lm, &info, &err));
  assert_int_equal(info.order, order);
  for (int k = 1; k <= order; k++) assert_int_equal(info.num_ngrams[k], want[k]);
}

/* The trie equals the ARPA file, with its own labels and with those of a given table. KenLM has
 * added <unk> at 10^-100. */
static void test_same_as_arpa(void **unused) {
  (void)unused;
  static const struct {
    int order;
    const char *kind;
  } files[] = {{2, "trie"}, {2, "q"}, {3, "trie"}, {3, "qa"}, {4, "a"}, {5, "trie"}, {5, "a"}};
  static const char *const letters[] = {"a", "b", "c", "d", "e", "f", "g"},
                           *const given[] = {"<eps>", "c", "a", "e"},
                           *const both[] = {"a", "c", "e"};
  wf_error err = {0};
  test_rng rng = {5};
  wf_symbols *words;
  assert_ok(wf_symbols_create("words", &words, &err));
  for (int i = 0; i < 4; i++) assert_ok(wf_symbols_add(words, given[i], i, NULL, &err));
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char arpa[256], trie[256];
    snprintf(arpa, sizeof arpa, DATA "sphinx%d.arpa", files[i].order);
    snprintf(trie, sizeof trie, DATA "kenlm%d.%s.bin", files[i].order, files[i].kind);
    wf_lm *a = read_lm(arpa, NULL), *b = read_lm(trie, NULL);
    wf_lm_info info;
    wf_lm_info_init(&info);
    assert_ok(wf_lm_get_info(a, &info, &err));
    info.num_ngrams[1]++;
    check_num_ngrams(b, info.order, info.num_ngrams);
    check_same_costs(a, b, letters, 7, false, &rng);
    int32_t order;
    uint32_t next;
    assert_float_equal(wf_lm_step(b, 0, label(b, "<unk>"), &next, &order), 100 * M_LN10, 1e-4);
    wf_lm_free(a);
    wf_lm_free(b);
    a = read_lm(arpa, words), b = read_lm(trie, words);
    check_same_costs(a, b, both, 3, false, &rng);
    wf_lm_free(a);
    wf_lm_free(b);
  }
  wf_symbols_free(words);
}

/* The trie adds suffixes of n-grams that the ARPA file lacks. They change no cost. */
static void test_added_suffixes(void **unused) {
  (void)unused;
  static const char *const words[] = {"a", "b", "c", "d", "e", "f", "<unk>"};
  test_rng rng = {6};
  wf_lm *arpa = read_lm(DATA "endings.arpa", NULL);
  check_num_ngrams(arpa, 4, (uint64_t[]){0, 9, 20, 68, 170});
  for (int compressed = 0; compressed < 2; compressed++) {
    wf_lm *trie = read_lm(compressed ? DATA "endings.a.bin" : DATA "endings.trie.bin", NULL);
    check_num_ngrams(trie, 4, (uint64_t[]){0, 9, 42, 157, 170});
    check_same_costs(arpa, trie, words, 7, true, &rng);
    wf_lm_free(trie);
  }
  wf_lm_free(arpa);
}

static void expect_refused(const uint8_t *bytes, size_t size, const char *message) {
  wf_error err = {0};
  wf_lm *lm;
  wf_status status =
      wf_lm_open(test_write_file("refused.bin", bytes, size), NULL, NULL, &lm, NULL, NULL, &err);
  assert_null(lm);
  if (status != WF_ERR_FORMAT || strstr(err.message, "refused.bin: ") == NULL ||
      strstr(err.message, message) == NULL)
    fail_msg("status %d, not '%s': %s", status, message, err.message);
}

static void test_rejected_files(void **unused) {
  (void)unused;
  static const struct {
    size_t at, size;
    const char *bytes, *message;
  } changes[] = {
      {33, 12, " incomplete\n", "did not finish"},
      {49, 1, "4",
       "another version than 5: give the ARPA file, or build the file again, with 'build_binary "
       "trie ARPA FILE'"},
      {60, 4, "\x3f\x80\0\0", "another kind of machine"}, /* 1, big-endian */
      {96, 1, "\0",
       "type 'probing', which holds hashes in place of the n-grams' words: give the ARPA file, or "
       "build a trie, with 'build_binary trie ARPA FILE'"},
      {96, 1, "\1", "type 'probing'"},
      {96, 1, "\6", "unknown type 6"},
      {100, 1, "\0", "without the words (build_binary -v)"},
      {104, 1, "\2", "version 2"},
      {88, 1, "\0", "byte 108: order 0"},
      {108, 8, "\xff\xff\xff\xff\xff\xff\xff\xff", "1-grams in"},
      {124, 8, "\xff\xff\xff\xff\xff\xff\xff\x07", "3-grams in"},
      {136, 1, "\4", "expected 4 words and <unk>, found 10 unigrams"},
  };
  wf_error err = {0};
  wf__input whole;
  assert_ok(wf__input_open(DATA "kenlm3.trie.bin", &whole, &err));
  uint8_t *bytes = malloc(whole.size);
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    memcpy(bytes, whole.data, whole.size);
    memcpy(bytes + changes[i].at, changes[i].bytes, changes[i].size);
    expect_refused(bytes, whole.size, changes[i].message);
  }
  memcpy(bytes, whole.data, whole.size);
  for (size_t i = 0; i + 5 <= whole.size; i++)
    if (memcmp(bytes + i, "<unk>", 5) == 0) memcpy(bytes + i, "<UNK>", 5);
  expect_refused(bytes, whole.size, "expected the words, '<unk>' before the others");
  free(bytes);
  wf__input_close(&whole);
}

/* True if the bytes in memory are rejected, with the name in the message. False if they are read as
 * a model that can be queried. */
static bool is_refused(const uint8_t *bytes, size_t size) {
  wf_error err = {0};
  wf__input input = {.data = bytes, .size = size, .path = "damaged.bin"};
  wf__automaton *lm;
  wf_status status =
      wf__collect_ngrams(input.path, NULL, NULL, wf__lm_read_kenlm, &input, &lm, NULL, NULL, &err);
  if (status == WF_OK) {
    uint32_t next;
    assert_false(isnan(wf__automaton_step(lm, lm->start, 1, &next, NULL)));
    wf__automaton_free(lm);
    return false;
  }
  assert_null(lm);
  if (strstr(err.message, "damaged.bin") == NULL ||
      (status != WF_ERR_FORMAT && status != WF_ERR_LIMIT))
    fail_msg("status %d: %s", status, err.message);
  return true;
}

/* Truncates the file at each byte, then changes bytes. */
static void check_damaged(const char *path) {
  wf_error err = {0};
  test_rng rng = {7};
  wf__input whole;
  assert_ok(wf__input_open(path, &whole, &err));
  uint8_t *bytes = malloc(whole.size);
  int refused = 0;
  for (size_t size = 0; size < whole.size; size++) assert_true(is_refused(whole.data, size));
  for (int round = 0; round < 1000; round++) {
    memcpy(bytes, whole.data, whole.size);
    for (int i = 0; i < round % 4 + 1; i++)
      bytes[test_below(&rng, (uint32_t)whole.size)] ^= (uint8_t)(1 + test_below(&rng, 255));
    refused += is_refused(bytes, whole.size);
  }
  assert_true(refused > 200);
  free(bytes);
  wf__input_close(&whole);
}

static void test_damaged_files(void **unused) {
  (void)unused;
  check_damaged(DATA "kenlm3.trie.bin");
  check_damaged(DATA "endings.qa.bin");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same_as_arpa),
      cmocka_unit_test(test_added_suffixes),
      cmocka_unit_test(test_rejected_files),
      cmocka_unit_test(test_damaged_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
