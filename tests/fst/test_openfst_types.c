/* test_openfst_types.c - files of OpenFst's types, as OpenFst wrote them
 * (tests/data/openfst), are read as what they mean, and damaged ones are refused. */
#include "fst_bytes.h"

struct file {
  const char *name, *want;
  wf_fst_format format;
};
static const struct file files[] = {
    {"acceptor.compact8", "acceptor.want", WF_FORMAT_OPENFST_COMPACT},
    {"acceptor.compact16", "acceptor.want", WF_FORMAT_OPENFST_COMPACT},
    {"acceptor.compact", "acceptor.want", WF_FORMAT_OPENFST_COMPACT},
    {"acceptor.compact64", "acceptor.want", WF_FORMAT_OPENFST_COMPACT},
    {"acceptor.log64", "acceptor.want", WF_FORMAT_OPENFST_COMPACT},
    {"unweighted.compact", "unweighted.want", WF_FORMAT_OPENFST_COMPACT},
    {"unweighted_acceptor.compact", "unweighted_acceptor.want", WF_FORMAT_OPENFST_COMPACT},
    {"string.compact", "string.want", WF_FORMAT_OPENFST_COMPACT},
    {"weighted_string.compact", "weighted_string.want", WF_FORMAT_OPENFST_COMPACT},
    {"edit.edit", "edit.want", WF_FORMAT_OPENFST_EDIT},
    {"model.ngram", "model.want", WF_FORMAT_OPENFST_NGRAM},
    {"transducer.const8", "transducer.want", WF_FORMAT_OPENFST_CONST},
    {"transducer.const16", "transducer.want", WF_FORMAT_OPENFST_CONST},
    {"transducer.const64", "transducer.want", WF_FORMAT_OPENFST_CONST},
    {"transducer.const8_log64", "transducer.want", WF_FORMAT_OPENFST_CONST_LOG64},
    {"transducer.const16_log64", "transducer.want", WF_FORMAT_OPENFST_CONST_LOG64},
    {"transducer.const64_log64", "transducer.want", WF_FORMAT_OPENFST_CONST_LOG64},
    {"arc.lookahead", "transducer.want", WF_FORMAT_OPENFST_LOOKAHEAD},
    {"ilabel.lookahead", "ilabel.want", WF_FORMAT_OPENFST_LOOKAHEAD},
    {"olabel.lookahead", "olabel.want", WF_FORMAT_OPENFST_LOOKAHEAD},
    {"symbols.lookahead", "symbols.want", WF_FORMAT_OPENFST_LOOKAHEAD},
};
enum { NUM_FILES = sizeof files / sizeof *files };

static wf_fst *read_data(const char *name, wf_fst_format *format) {
  wf_error err = {0};
  wf_fst *fst;
  char path[1024];
  snprintf(path, sizeof path, TEST_DATA_DIR "/openfst/%s", name);
  assert_ok(wf_fst_read_format(path, &fst, format, &err));
  return fst;
}

static void test_reads_what_they_mean(void **state) {
  (void)state;
  wf_error err = {0};
  for (int i = 0; i < NUM_FILES; i++) {
    wf_fst_format format;
    bool same;
    wf_fst *got = read_data(files[i].name, &format), *plain;
    assert_int_equal(format, files[i].format);
    wf_fst *want = read_data(files[i].want, &format);
    assert_ok(wf_fst_with_semiring(got, WF_TROPICAL, &plain, &err));
    assert_ok(wf_equal(plain, want, 0, &same, &err));
    if (!same) fail_msg("%s: %s", files[i].name, err.message);
    assert_int_equal(wf_fst_get_view(got).semiring,
                     strstr(files[i].name, "log64") != NULL ? WF_LOG : WF_TROPICAL);
    if (files[i].format >= WF_FORMAT_OPENFST_COMPACT)
      assert_int_equal(wf_fst_write(got, test_temp_path("out"), files[i].format, &err),
                       WF_ERR_UNSUPPORTED);
    assert_int_equal(wf_fst_isymbols(got) != NULL, wf_fst_isymbols(want) != NULL);
    wf_fst_free(got);
    wf_fst_free(want);
    wf_fst_free(plain);
  }
}

/* A file cut anywhere is refused. With any byte changed, it is an fst or refused. */
static void test_damaged_files(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {1};
  for (int i = 0; i < NUM_FILES; i++) {
    char path[1024];
    size_t size;
    wf_fst *fst;
    snprintf(path, sizeof path, TEST_DATA_DIR "/openfst/%s", files[i].name);
    char *data = test_read_file(path, &size);
    for (size_t cut = 0; cut < size; cut++) {
      wf_status status = test_read_fst_bytes(data, cut, &fst, &err);
      if (status != WF_ERR_FORMAT && status != WF_ERR_UNSUPPORTED)
        fail_msg("%s cut to %zu bytes: status %d", files[i].name, cut, (int)status);
    }
    for (size_t at = 0; at < size; at++) {
      for (int k = 0; k < 4; k++) {
        char old = data[at];
        static const char masks[] = {1, (char)0x80, (char)0xff};
        data[at] = (char)(old ^ (k < 3 ? masks[k] : (char)test_below(&rng, 256)));
        if (test_read_fst_bytes(data, size, &fst, &err) == WF_OK) wf_fst_free(fst);
        data[at] = old;
      }
    }
    free(data);
  }
}

struct text {
  char data[1024];
  size_t size;
};

static void put(struct text *t, const void *data, size_t size) {
  assert_true(t->size + size <= sizeof t->data);
  memcpy(t->data + t->size, data, size);
  t->size += size;
}
static void put_i32(struct text *t, int32_t value) { put(t, &value, sizeof value); }
static void put_i64(struct text *t, int64_t value) { put(t, &value, sizeof value); }
static void put_f32(struct text *t, float value) { put(t, &value, sizeof value); }
static void put_name(struct text *t, const char *name) {
  put_i32(t, (int32_t)strlen(name));
  put(t, name, strlen(name));
}
static void put_header(struct text *t, const char *type, int64_t num_states) {
  put_i32(t, 2125659606);
  put_name(t, type);
  put_name(t, "standard");
  put_i32(t, 2), put_i32(t, 0), put_i64(t, 0), put_i64(t, 0), put_i64(t, num_states);
  put_i64(t, 0);
}

/* Two states, which the edits change to states `first` and `second` of one and two arcs. */
static struct text edited(int32_t first, int32_t second) {
  struct text t = {.size = 0};
  put_header(&t, "edit", 2);
  put_header(&t, "vector", 2);
  for (int s = 0; s < 2; s++) put_f32(&t, INFINITY), put_i64(&t, 0);
  put_header(&t, "vector", 2);
  for (int s = 0; s < 2; s++) {
    put_f32(&t, (float)s);
    put_i64(&t, s + 1);
    for (int a = 0; a <= s; a++) put_i32(&t, 1), put_i32(&t, 1), put_f32(&t, 0), put_i32(&t, 1);
  }
  put_i64(&t, 2);
  put_i32(&t, 0), put_i32(&t, first), put_i32(&t, 1), put_i32(&t, second);
  put_i64(&t, 0);
  put_i32(&t, 0);
  return t;
}

/* Two states must not share an edited one: a file could multiply its arcs so. */
static void test_shared_edits(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *fst;
  for (int i = 0; i < 4; i++) {
    const struct text t = edited(i / 2, i % 2);
    const wf_status status = test_read_fst_bytes(t.data, t.size, &fst, &err);
    assert_int_equal(status, i / 2 == i % 2 ? WF_ERR_FORMAT : WF_OK);
    if (status == WF_OK) assert_int_equal(wf_fst_get_view(fst).num_arcs, 3);
    if (status != WF_OK) assert_non_null(strstr(err.message, "is edited as state"));
    wf_fst_free(fst);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_reads_what_they_mean),
                                     cmocka_unit_test(test_damaged_files),
                                     cmocka_unit_test(test_shared_edits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
