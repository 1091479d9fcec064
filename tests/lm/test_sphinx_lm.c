/* test_sphinx_lm.c - CMU Sphinx's trie language models. Files made by sphinx_lm_convert from ARPA
 * files (tests/data/lm) are compared with those ARPA files. Also damaged files. The quantization
 * tables of such small models hold every value, so only the rounding of logarithms is lost. */
#include "base/input.h"
#include "lm_model.h"

#define DATA TEST_DATA_DIR "/lm/"

static void check_same(const wf_lm *a, const wf_lm *b, test_rng *rng) {
  wf_error err = {0};
  wf_lm_info x, y;
  wf_lm_info_init(&x);
  wf_lm_info_init(&y);
  assert_ok(wf_lm_get_info(a, &x, &err));
  assert_ok(wf_lm_get_info(b, &y, &err));
  assert_int_equal(x.order, y.order);
  assert_int_equal(x.num_states, y.num_states);
  assert_int_equal(x.num_arcs, y.num_arcs);
  for (int k = 1; k <= x.order; k++) assert_int_equal(x.num_ngrams[k], y.num_ngrams[k]);
  static const char *const letters[] = {"a", "b", "c", "d", "e", "f", "g", "nothing"};
  check_same_costs(a, b, letters, 8, false, rng);
}

/* Equals the ARPA file, with its own labels and with those of a given table. */
static void test_same_as_arpa(void **unused) {
  (void)unused;
  wf_error err = {0};
  test_rng rng = {3};
  static const char *const given[] = {"<eps>", "c", "a", "<unk>", "e"};
  wf_symbols *words;
  assert_ok(wf_symbols_create("words", &words, &err));
  for (int i = 0; i < 5; i++) assert_ok(wf_symbols_add(words, given[i], i, NULL, &err));
  for (int order = 1; order <= 5; order++) {
    char arpa[256], trie[256];
    snprintf(arpa, sizeof arpa, DATA "sphinx%d.arpa", order);
    snprintf(trie, sizeof trie, DATA "sphinx%d.lm.bin.gz", order);
    for (int pass = 0; pass < 2; pass++) {
      wf_lm *a = read_lm(arpa, pass == 0 ? NULL : words),
            *b = read_lm(trie, pass == 0 ? NULL : words);
      check_same(a, b, &rng);
      wf_lm_free(a);
      wf_lm_free(b);
    }
  }
  wf_symbols_free(words);
}

/* Truncated at any byte, or with bytes changed outside the tables: either rejected with the path in
 * the message, or read as a model that can be queried. */
static void test_damaged_files(void **unused) {
  (void)unused;
  wf_error err = {0};
  test_rng rng = {4};
  wf__input whole;
  assert_ok(wf__input_open(DATA "sphinx3.lm.bin.gz", &whole, &err));
  const size_t head = 19 + 1 + 3 * 4 + 4, tables = (size_t)3 * 65536 * 4,
               rest = whole.size - head - tables;
  uint8_t *bytes = malloc(whole.size);
  int refused = 0;
  for (int round = 0; round < 300; round++) {
    memcpy(bytes, whole.data, whole.size);
    size_t size = whole.size;
    if (round % 3 == 0) {
      size = round % 2 == 0 ? test_below(&rng, (uint32_t)head)
                            : head + tables + test_below(&rng, (uint32_t)rest);
    } else {
      for (int i = 0; i < round % 4 + 1; i++) {
        size_t at = 19 + test_below(&rng, (uint32_t)(head - 19 + rest));
        bytes[at < head ? at : at + tables] ^= (uint8_t)(1 + test_below(&rng, 255));
      }
    }
    wf_lm *lm;
    const char *path = test_write_file("damaged.bin", bytes, size);
    wf_status status = wf_lm_open(path, NULL, NULL, &lm, NULL, NULL, &err);
    if (status == WF_OK) {
      uint32_t state = wf_lm_start(lm), next;
      assert_false(isnan(wf_lm_step(lm, state, 1, &next, NULL)));
      wf_lm_free(lm);
      assert_true(size == whole.size);
      continue;
    }
    refused++;
    assert_null(lm);
    if (strstr(err.message, "damaged.bin") == NULL ||
        (status != WF_ERR_FORMAT && status != WF_ERR_LIMIT))
      fail_msg("status %d: %s", status, err.message);
  }
  assert_true(refused > 150);
  free(bytes);
  wf__input_close(&whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same_as_arpa),
      cmocka_unit_test(test_damaged_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
