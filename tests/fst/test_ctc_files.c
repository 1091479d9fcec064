/* test_ctc_files.c - files of CTC graphs that keep their token graph: the native file says so, and
 * OpenFst's formats and text have all states and arcs. Damaged and malicious files. */
#include <unistd.h>
#include <zlib.h>

#include "ctc_tasks.h"
#include "fst/ctc_states.h"
#include "fst/fst.h"
#include "fst_bytes.h"

enum { AT_VERSION = 8, AT_BLANK = 48 + 20, AT_CRC = 188 };

static wf_error err;

/* --- native files ------------------------------------------------------------------------ */

static wf_fst *tokens_graph(void) {
  static const char text[] = "a 0\nb 1\nnone 2\nc 3\n";
  wf_symbols *tokens;
  wf_fst *fst;
  assert_ok(wf_symbols_read(test_write_file("tokens", text, sizeof text - 1), &tokens, &err));
  assert_ok(test_tokens_graph(tokens, "none", WF_TOPOLOGY_AUTO, &fst, &err));
  wf_symbols_free(tokens);
  assert_int_equal(wf__fst_ctc_blank(fst), 3);
  return fst;
}

static void assert_same_symbols(const wf_symbols *a, const wf_symbols *b) {
  assert_int_equal(a == NULL, b == NULL);
  if (a == NULL) return;
  assert_int_equal(wf_symbols_count(a), wf_symbols_count(b));
  for (size_t i = 0; i < wf_symbols_count(a); i++) {
    int64_t x, y;
    assert_string_equal(wf_symbols_at(a, i, &x), wf_symbols_at(b, i, &y));
    assert_int_equal(x, y);
  }
}

static void assert_same_fst(const wf_fst *a, const wf_fst *b) {
  const wf_fst_view x = wf_fst_get_view(a), y = wf_fst_get_view(b);
  uint64_t size[2];
  const void *boundaries[2] = {wf__fst_boundaries(a, &size[0]), wf__fst_boundaries(b, &size[1])};
  assert_int_equal(wf__fst_ctc_blank(a), wf__fst_ctc_blank(b));
  assert_true(x.start == y.start && x.num_states == y.num_states && x.num_arcs == y.num_arcs);
  assert_memory_equal(x.arc_off, y.arc_off, (x.num_states + 1) * sizeof *x.arc_off);
  if (x.num_arcs > 0) assert_memory_equal(x.arcs, y.arcs, x.num_arcs * sizeof *x.arcs);
  assert_memory_equal(x.final_cost, y.final_cost, x.num_states * sizeof *x.final_cost);
  assert_same_symbols(wf_fst_isymbols(a), wf_fst_isymbols(b));
  assert_same_symbols(wf_fst_osymbols(a), wf_fst_osymbols(b));
  assert_int_equal(size[0], size[1]);
  if (size[0] > 0) assert_memory_equal(boundaries[0], boundaries[1], size[0]);
}

static char *native_bytes(const wf_fst *fst, size_t *size) {
  const char *path = test_temp_path("ctc.wfst");
  assert_ok(wf_fst_write(fst, path, WF_FORMAT_NATIVE, &err));
  return test_read_file(path, size);
}

static uint32_t version_of(const char *bytes) {
  uint32_t version;
  memcpy(&version, bytes + AT_VERSION, sizeof version);
  return version;
}

static void check_round_trip(const wf_fst *fst) {
  size_t size, again_size;
  wf_fst *again;
  char *bytes = native_bytes(fst, &size);
  assert_int_equal(version_of(bytes), 3);
  assert_ok(test_read_fst_bytes(bytes, size, &again, &err));
  assert_same_fst(fst, again);
  char *again_bytes = native_bytes(again, &again_size);
  assert_int_equal(size, again_size);
  assert_memory_equal(bytes, again_bytes, size);
  wf_fst_free(again);
  free(bytes);
  free(again_bytes);
}

static void test_round_trip(void **state) {
  (void)state;
  wf_fst *fst = tokens_graph();
  check_round_trip(fst);
  wf_fst_free(fst);
  for (uint64_t seed = 1; seed <= 30; seed++) {
    struct ctc_task task;
    ctc_random_task(seed, (struct ctc_shape){.wide = seed % 5 == 0}, &task);
    check_round_trip(wf_graph_fst(task.shared.graph));
    /* The graph with all arcs has nothing of this. */
    size_t size;
    char *bytes = native_bytes(wf_graph_fst(task.spelled), &size);
    assert_int_equal(version_of(bytes), 1);
    free(bytes);
    ctc_free_task(&task);
  }
}

/* --- damaged files ----------------------------------------------------------------------- */

static void test_damaged(void **state) {
  (void)state;
  wf_fst *fst = tokens_graph(), *again;
  size_t size;
  char *bytes = native_bytes(fst, &size);
  for (size_t at = 0; at < size; at++) {
    assert_int_equal(test_read_fst_bytes(bytes, at, &again, &err), WF_ERR_FORMAT);
    for (int bit = 0; bit < 8; bit++) {
      bytes[at] ^= (char)(1 << bit);
      if (test_read_fst_bytes(bytes, size, &again, &err) == WF_OK)
        fail_msg("a file with bit %d of byte %zu flipped was accepted", bit, at);
      bytes[at] ^= (char)(1 << bit);
    }
  }
  free(bytes);
  wf_fst_free(fst);
}

/* Changes version and blank, with a right checksum. */
static void patch(char *bytes, uint32_t version, uint32_t blank) {
  memcpy(bytes + AT_VERSION, &version, sizeof version);
  memcpy(bytes + AT_BLANK, &blank, sizeof blank);
  const uint32_t crc = (uint32_t)crc32_z(0, (const unsigned char *)bytes, AT_CRC);
  memcpy(bytes + AT_CRC, &crc, sizeof crc);
}

/* The file is read, but no decoding graph is made of it, and none of the other formats. */
static void expect_no_file(const wf_fst *fst, wf_status expected, const char *fragment) {
  static const wf_fst_format formats[] = {WF_FORMAT_OPENFST_VECTOR, WF_FORMAT_OPENFST_CONST};
  const char *path = test_temp_path("none.fst");
  for (int f = 0; f < 2; f++) {
    assert_int_equal(wf_fst_write(fst, path, formats[f], &err), expected);
    assert_non_null(strstr(err.message, fragment));
    assert_true(access(path, F_OK) != 0);
  }
  assert_int_equal(wf_fst_print(fst, path, NULL, NULL, NULL, &err), expected);
  assert_non_null(strstr(err.message, fragment));
  assert_true(access(path, F_OK) != 0);
}

static void expect_refused(const wf_fst *fst, wf_status expected, const char *fragment) {
  wf_graph *graph;
  assert_int_equal(wf_graph_create(fst, NULL, 0, &graph, &err), expected);
  assert_non_null(strstr(err.message, fragment));
  assert_null(graph);
  expect_no_file(fst, expected, fragment);
}

static void test_malicious(void **state) {
  (void)state;
  static const struct {
    uint32_t version, blank;
    const char *fragment; /* NULL: the file is read */
  } cases[] = {{3, 3, NULL},
               {3, 0, "blank"},
               {3, UINT32_MAX, "blank"},
               {3, (uint32_t)1 << 31, "blank"},
               {2, 3, "unexpected"},
               {2, 0, NULL},
               {1, 3, "unexpected"},
               {4, 3, "version 4"},
               {0, 3, "version 0"}};
  wf_fst *fst = tokens_graph(), *again;
  size_t size;
  char *bytes = native_bytes(fst, &size);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    patch(bytes, cases[i].version, cases[i].blank);
    const wf_status status = test_read_fst_bytes(bytes, size, &again, &err);
    if ((status == WF_OK) != (cases[i].fragment == NULL))
      fail_msg("case %zu: status %d, %s", i, status, err.message);
    if (status != WF_OK && strstr(err.message, cases[i].fragment) == NULL)
      fail_msg("case %zu: '%s'", i, err.message);
    if (status == WF_OK) wf_fst_free(again);
  }
  patch(bytes, 3, 1); /* the label of a */
  assert_ok(test_read_fst_bytes(bytes, size, &again, &err));
  expect_refused(again, WF_ERR_FORMAT, "reads the blank, label 1");
  wf_fst_free(again);
  patch(bytes, 3, INT32_MAX);
  assert_ok(test_read_fst_bytes(bytes, size, &again, &err));
  expect_refused(again, WF_ERR_LIMIT, "2147483647 is too large");
  wf_fst_free(again);
  free(bytes);
  wf_fst_free(fst);
}

/* Only native files hold places of words that are added at run time. */
static void test_classes(void **state) {
  (void)state;
  static const char text[] = "<eps> 0\n<blk> 1\na 2\n#<name> 3\n";
  for (int marked = 0; marked < 2; marked++) {
    wf_symbols *labels;
    wf_fst *bare = test_fst_of(WF_TROPICAL, "0 1 2 1;1 0 3 0;1"), *fst;
    wf_graph *graph;
    assert_ok(wf_symbols_read(test_write_file("labels", text, sizeof text - 1), &labels, &err));
    assert_ok(wf_fst_with_symbols(bare, labels, NULL, &fst, &err));
    if (marked) wf__fst_set_ctc_blank(fst, 1);
    assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
    assert_non_null(graph->ctc);
    wf_graph_free(graph);
    if (marked) expect_no_file(fst, WF_ERR_UNSUPPORTED, "classes");
    wf_symbols_free(labels);
    wf_fst_free(bare);
    wf_fst_free(fst);
  }
}

/* --- other formats ----------------------------------------------------------------------- */

static wf_fst *through_text(const wf_fst *fst) {
  const char *path = test_temp_path("ctc.txt");
  wf_text_options options;
  wf_fst *out;
  wf_text_options_init(&options);
  options.numeric = true;
  assert_ok(wf_fst_print(fst, path, NULL, NULL, &options, &err));
  options.keep_state_numbering = true;
  assert_ok(wf_fst_compile(path, NULL, NULL, &options, &out, &err));
  return out;
}

static wf_fst *through_file(const wf_fst *fst, wf_fst_format format) {
  const char *path = test_temp_path("ctc.fst");
  wf_fst *out;
  assert_ok(wf_fst_write(fst, path, format, &err));
  assert_ok(wf_fst_read(path, &out, &err));
  return out;
}

static void check_same_decoding(const struct ctc_task *task, const wf_fst *fst, uint64_t seed) {
  wf_graph *graph;
  wf_result *results[2];
  assert_int_equal(wf__fst_ctc_blank(fst), 0);
  assert_ok(wf_graph_create(fst, task->columns, (size_t)task->num_tokens + 1, &graph, &err));
  assert_null(graph->ctc);
  test_decode_on("cpu", task->shared.graph, task->shared.options, &task->shared.scores, 1,
                 &results[0]);
  test_decode_on("cpu", graph, task->shared.options, &task->shared.scores, 1, &results[1]);
  results[1]->num_arcs = results[0]->num_arcs; /* void arcs are not in the file */
  test_assert_same_batch(seed, &results[0], &results[1], 1);
  test_free_results(results, 2);
  wf_graph_free(graph);
}

static void test_other_formats(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_seeds(150); seed++) {
    struct ctc_task task;
    ctc_random_task(seed, (struct ctc_shape){.wide = seed % 10 == 0}, &task);
    const wf_fst *fst = seed % 2 == 0 ? wf_graph_fst(task.shared.graph) : task.token_graph;
    wf_fst *copies[3] = {through_file(fst, WF_FORMAT_OPENFST_VECTOR),
                         through_file(fst, WF_FORMAT_OPENFST_CONST), through_text(fst)};
    for (int i = 0; i < 3; i++) {
      check_same_decoding(&task, copies[i], seed);
      wf_fst_free(copies[i]);
    }
    ctc_free_task(&task);
  }
}

/* A token that only begins like the label of a class is a token. */
static void test_no_class(void **state) {
  (void)state;
  static const char text[] = "<eps> 0\n<blk> 1\n#< 2\n";
  const char *path = test_temp_path("tokens.fst");
  wf_symbols *labels;
  wf_fst *bare = test_fst_of(WF_TROPICAL, "0 1 2 1;1"), *fst;
  assert_ok(wf_symbols_read(test_write_file("labels", text, sizeof text - 1), &labels, &err));
  assert_ok(wf_fst_with_symbols(bare, labels, NULL, &fst, &err));
  wf__fst_set_ctc_blank(fst, 1);
  assert_ok(wf_fst_write(fst, path, WF_FORMAT_OPENFST_VECTOR, &err));
  wf_symbols_free(labels);
  wf_fst_free(bare);
  wf_fst_free(fst);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip), cmocka_unit_test(test_damaged),
      cmocka_unit_test(test_malicious),  cmocka_unit_test(test_classes),
      cmocka_unit_test(test_no_class),   cmocka_unit_test(test_other_formats),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
