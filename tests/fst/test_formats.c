/* test_formats.c - fst files and text: round trips, agreement with OpenFst's tools in both
 * directions, and malicious files.
 *
 * OpenFst's tools are the reference for the OpenFst formats and for text. For the native file the
 * reference is the arrays themselves. */
#include "base/input.h"
#include "fst/fst.h"
#include "fst/fst_formats.h"
#include "fst/symbols.h"
#include "fst_bytes.h"
#include "testing.h"

enum { NUM_FORMATS = 5 };
static const wf_fst_format formats[NUM_FORMATS] = {
    WF_FORMAT_NATIVE, WF_FORMAT_OPENFST_VECTOR, WF_FORMAT_OPENFST_CONST,
    WF_FORMAT_OPENFST_VECTOR_LOG64, WF_FORMAT_OPENFST_CONST_LOG64};
static bool is_wide(wf_fst_format format) {
  return format == WF_FORMAT_OPENFST_VECTOR_LOG64 || format == WF_FORMAT_OPENFST_CONST_LOG64;
}

/* --- helpers ----------------------------------------------------------------------------- */

static void assert_same_symbols(const wf_symbols *a, const wf_symbols *b) {
  assert_int_equal(a == NULL, b == NULL);
  if (a == NULL) return;
  assert_string_equal(wf_symbols_name(a), wf_symbols_name(b));
  assert_int_equal(wf_symbols_count(a), wf_symbols_count(b));
  for (size_t i = 0; i < wf_symbols_count(a); i++) {
    int64_t x, y;
    assert_string_equal(wf_symbols_at(a, i, &x), wf_symbols_at(b, i, &y));
    assert_int_equal(x, y);
  }
}

/* Fails unless both fsts are the same, bit for bit. */
static void assert_same_fst(const wf_fst *a, const wf_fst *b) {
  wf_fst_view x = wf_fst_get_view(a), y = wf_fst_get_view(b);
  assert_int_equal(x.start, y.start);
  assert_int_equal(x.num_states, y.num_states);
  assert_int_equal(x.num_arcs, y.num_arcs);
  assert_int_equal(x.semiring, y.semiring);
  assert_memory_equal(x.arc_off, y.arc_off, (x.num_states + 1) * sizeof *x.arc_off);
  if (x.num_arcs > 0) assert_memory_equal(x.arcs, y.arcs, x.num_arcs * sizeof *x.arcs);
  if (x.num_states > 0)
    assert_memory_equal(x.final_cost, y.final_cost, x.num_states * sizeof *x.final_cost);
  assert_same_symbols(wf_fst_isymbols(a), wf_fst_isymbols(b));
  assert_same_symbols(wf_fst_osymbols(a), wf_fst_osymbols(b));
}

static wf_symbols *make_symbols(const char *name, int count) {
  wf_error err = {0};
  wf_symbols *symbols;
  assert_ok(wf_symbols_create(name, &symbols, &err));
  assert_ok(wf_symbols_add(symbols, "<eps>", 0, NULL, &err));
  for (int i = 1; i <= count; i++) {
    char text[32];
    snprintf(text, sizeof text, "%s-\xc3\xa4%d", name, i * 7 % 23);
    assert_ok(wf_symbols_add(symbols, text, i, NULL, &err));
  }
  return symbols;
}

/* A random weight: any finite bit pattern, a small decimal, a whole number, 0, -0, or Zero. */
static float random_weight(test_rng *rng) {
  float weight;
  uint32_t bits = (uint32_t)test_next(rng);
  switch (test_below(rng, 6)) {
    case 0: memcpy(&weight, &bits, sizeof weight); return isfinite(weight) ? weight : INFINITY;
    case 1: return (float)test_below(rng, 2000) / 100;
    case 2: return (float)(test_next(rng) >> 32);
    case 3: return 0;
    case 4: return test_below(rng, 2) ? -0.0f : INFINITY;
    default: return -(float)test_below(rng, 100000) / 7;
  }
}

/* Every kind of fst that a file may hold: states without arcs, any start state, all sorts of
 * weights, with or without symbol tables. */
static wf_fst *random_fst(test_rng *rng, wf_semiring semiring, bool acceptor) {
  wf_error err = {0};
  wf_builder *builder;
  uint32_t n = 1 + test_below(rng, 20), m = test_below(rng, 60);
  assert_ok(wf_builder_create(semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, n, NULL, &err));
  assert_ok(wf_builder_set_start(builder, test_below(rng, n), &err));
  for (uint32_t i = 0; i < n; i++)
    if (test_below(rng, 3) == 0)
      assert_ok(wf_builder_set_final(builder, i, random_weight(rng), &err));
  for (uint32_t i = 0; i < m; i++) {
    int32_t ilabel = (int32_t)test_below(rng, 6);
    wf_arc arc = {test_below(rng, n), random_weight(rng), ilabel,
                  acceptor ? ilabel : (int32_t)test_below(rng, 9)};
    assert_ok(wf_builder_add_arc(builder, test_below(rng, n), arc, &err));
  }
  wf_symbols *isymbols = test_below(rng, 3) == 0 ? make_symbols("in", 5) : NULL,
             *osymbols = test_below(rng, 3) == 0 ? make_symbols("out", 8) : NULL;
  wf_fst *fst;
  assert_ok(wf_builder_finish(builder, isymbols, osymbols, &fst, &err));
  wf_symbols_free(isymbols);
  wf_symbols_free(osymbols);
  wf_builder_free(builder);
  return fst;
}

static wf_status compile_text(const char *text, const wf_symbols *symbols,
                              const wf_text_options *options, wf_fst **out, wf_error *error) {
  wf__input input;
  wf_error err = {0};
  assert_ok(wf__input_from_memory(text, strlen(text), "text", &input, &err));
  wf_status status = wf__fst_compile_input(&input, symbols, symbols, options, out, error);
  wf__input_close(&input);
  return status;
}

static void assert_fails(wf_status status, wf_status expected, const wf_error *err,
                         const char *fragment) {
  if (status != expected || err->code != expected || strstr(err->message, fragment) == NULL)
    fail_msg("status %d, expected %d; message '%s', expected '%s' in it", status, expected,
             status == WF_OK ? "" : err->message, fragment);
}

static char *write_bytes(const wf_fst *fst, wf_fst_format format, size_t *size) {
  wf_error err = {0};
  const char *path = test_temp_path("bytes.fst");
  assert_ok(wf_fst_write(fst, path, format, &err));
  return test_read_file(path, size);
}

/* --- round trips ------------------------------------------------------------------------- */

static void test_round_trip(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {11};
  for (int i = 0; i < 200; i++) {
    wf_semiring semiring = i % 2 ? WF_LOG : WF_TROPICAL;
    wf_fst *fst = i == 0 ? NULL : random_fst(&rng, semiring, false), *again;
    if (i == 0) assert_ok(wf__fst_empty(WF_TROPICAL, &fst, &err));
    for (int f = 0; f < NUM_FORMATS; f++) {
      const char *path = test_temp_path("a.fst");
      wf_fst_format found;
      if (is_wide(formats[f]) && semiring != WF_LOG) {
        assert_int_equal(wf_fst_write(fst, path, formats[f], &err), WF_ERR_ARGUMENT);
        continue;
      }
      assert_ok(wf_fst_write(fst, path, formats[f], &err));
      assert_ok(wf_fst_read_format(path, &again, &found, &err));
      assert_int_equal(found, formats[f]);
      assert_same_fst(fst, again);
      wf_fst_free(again);
    }
    wf_fst_free(fst);
  }
}

/* A mapped fst stays valid when its file is removed, and when its file is overwritten. */
static void test_native_mapping(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {12};
  wf_fst *fst = random_fst(&rng, WF_TROPICAL, false), *mapped, *shared, *again;
  const char *path = test_temp_path("m.wfst");
  assert_ok(wf_fst_write(fst, path, WF_FORMAT_NATIVE, &err));
  assert_ok(wf_fst_read(path, &mapped, &err));
  assert_ok(wf_fst_with_semiring(mapped, WF_LOG, &shared, &err));
  assert_ok(wf_fst_write(mapped, path, WF_FORMAT_NATIVE, &err)); /* over the file that is mapped */
  assert_ok(wf_fst_read(path, &again, &err));
  remove(path);
  assert_same_fst(fst, mapped);
  wf_fst_free(mapped);
  assert_int_equal(wf_fst_get_view(shared).num_arcs, wf_fst_get_view(fst).num_arcs);
  assert_same_fst(fst, again);
  wf_fst_free(shared);
  wf_fst_free(again);
  wf_fst_free(fst);
}

/* Gzipped files of every format. */
static void test_gzip(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {13};
  wf_fst *fst = random_fst(&rng, WF_LOG, false), *again;
  for (int f = 0; f < NUM_FORMATS; f++) {
    const char *path = test_temp_path("z.fst"), *zipped = test_temp_path("z.fst.gz");
    assert_ok(wf_fst_write(fst, path, formats[f], &err));
    test_shell("gzip -c %s > %s", path, zipped);
    assert_ok(wf_fst_read(zipped, &again, &err));
    assert_same_fst(fst, again);
    wf_fst_free(again);
  }
  wf_fst_free(fst);
}

/* --- against OpenFst --------------------------------------------------------------------- */

static void assert_same_files(const char *a, const char *b) {
  size_t size_a, size_b;
  char *text_a = test_read_file(a, &size_a), *text_b = test_read_file(b, &size_b);
  if (size_a != size_b || memcmp(text_a, text_b, size_a) != 0)
    fail_msg("%s and %s differ:\n%.2000s\n---\n%.2000s", a, b, text_a, text_b);
  free(text_a);
  free(text_b);
}

/* Fails unless the files have the same bytes, except the 8 bytes of properties. */
static void assert_same_but_properties(const char *a, const char *b, size_t at) {
  size_t size_a, size_b;
  char *bytes_a = test_read_file(a, &size_a), *bytes_b = test_read_file(b, &size_b);
  assert_int_equal(size_a, size_b);
  memset(bytes_a + at, 0, 8);
  memset(bytes_b + at, 0, 8);
  assert_memory_equal(bytes_a, bytes_b, size_a);
  free(bytes_a);
  free(bytes_b);
}

/* OpenFst's tools read what we write: fstprint of our file equals our own text, byte for byte. Our
 * compiler and writer make the same file of that text as fstcompile does. */
static void test_against_openfst(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {21};
  for (int i = 0; i < 16; i++) {
    bool acceptor = i % 4 == 3;
    wf_fst *fst = random_fst(&rng, i % 2 ? WF_LOG : WF_TROPICAL, acceptor), *again;
    const char *path = test_temp_path("o.fst"), *ours = test_temp_path("ours.txt"),
               *theirs = test_temp_path("theirs.txt"), *compiled = test_temp_path("c.fst"),
               *own = test_temp_path("own.fst");
    wf_text_options options;
    wf_text_options_init(&options);
    options.acceptor = acceptor && wf_fst_osymbols(fst) == NULL;
    options.show_weight_one = i % 3 == 0;
    options.arc_type = i % 2;
    const char *flags[] = {options.acceptor ? "--acceptor" : "",
                           options.show_weight_one ? "--show_weight_one" : ""};
    for (int f = 1; f < NUM_FORMATS; f++) {
      if (is_wide(formats[f]) && i % 2 == 0) continue;
      assert_ok(wf_fst_write(fst, path, formats[f], &err));
      test_shell("fstprint %s %s %s > %s", flags[0], flags[1], path, theirs);
      assert_ok(wf_fst_print(fst, ours, NULL, NULL, &options, &err));
      assert_same_files(ours, theirs);
      if (wf_fst_isymbols(fst) != NULL || wf_fst_osymbols(fst) != NULL)
        continue; /* OpenFst reorders symbol tables */
      test_shell("fstconvert --fst_type=%s %s | fstconvert --fst_type=%s > %s",
                 f % 2 ? "const" : "vector", path, f % 2 ? "vector" : "const", compiled);
      size_t at = 4 + 4 + (f % 2 == 1 ? 6 : 5) + 4 + (is_wide(formats[f]) ? 5 : i % 2 ? 3 : 8) + 8;
      assert_same_but_properties(compiled, path, at);
    }
    options.numeric = true;
    assert_ok(wf_fst_print(fst, ours, NULL, NULL, &options, &err));
    for (int keep = 0; keep < 2; keep++) {
      options.keep_state_numbering = keep;
      test_shell("fstcompile %s --arc_type=%s %s %s %s", flags[0], i % 2 ? "log" : "standard",
                 keep ? "--keep_state_numbering" : "", ours, compiled);
      assert_ok(wf_fst_compile(ours, NULL, NULL, &options, &again, &err));
      assert_ok(wf_fst_write(again, own, WF_FORMAT_OPENFST_VECTOR, &err));
      test_shell("fstequal --delta=0 %s %s && fstinfo %s > /dev/null", compiled, own, own);
      assert_same_but_properties(compiled, own, i % 2 ? 29 : 34);
      wf_fst_free(again);
    }
    wf_fst_free(fst);
  }
}

/* Files of all kinds that OpenFst's tools write, with symbol tables. Our text of them equals
 * fstprint's. */
static void test_read_openfst(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {22};
  static const char *const makers[] = {
      "cat",
      "fstconvert --fst_type=const",
      "fstconvert --fst_type=const --fst_align=true",
      "fstmap --map_type=to_log",
      "fstmap --map_type=to_log64",
      "fstmap --map_type=to_log | fstconvert --fst_type=const --fst_align=true",
      "fstmap --map_type=to_log64 | fstconvert --fst_type=const",
      "fstmap --map_type=to_log64 | fstconvert --fst_type=const --fst_align=true"};
  for (int i = 0; i < 3; i++) {
    wf_fst *fst = random_fst(&rng, WF_TROPICAL, false), *again;
    const char *source = test_temp_path("s.fst"), *made = test_temp_path("made.fst"),
               *ours = test_temp_path("ours.txt"), *theirs = test_temp_path("theirs.txt");
    assert_ok(wf_fst_write(fst, source, WF_FORMAT_OPENFST_VECTOR, &err));
    for (size_t k = 0; k < sizeof makers / sizeof *makers; k++) {
      test_shell("cat %s | %s > %s; fstprint %s > %s", source, makers[k], made, made, theirs);
      assert_ok(wf_fst_read(made, &again, &err));
      assert_ok(wf_fst_print(again, ours, NULL, NULL, NULL, &err));
      assert_same_files(ours, theirs);
      assert_int_equal(wf_fst_get_view(again).semiring, k < 3 ? WF_TROPICAL : WF_LOG);
      assert_same_symbols(wf_fst_isymbols(fst), wf_fst_isymbols(again));
      assert_same_symbols(wf_fst_osymbols(fst), wf_fst_osymbols(again));
      wf_fst_free(again);
    }
    wf_fst_free(fst);
  }
}

/* --- damaged and malicious files --------------------------------------------------------- */

/* Every proper prefix of a file is rejected, in every format. So is a file with one byte too many.
 */
static void test_truncated_files(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {31};
  for (int i = 0; i < 4; i++) {
    wf_fst *fst = random_fst(&rng, WF_LOG, false), *again;
    for (int f = 0; f < NUM_FORMATS; f++) {
      size_t size;
      char *bytes = write_bytes(fst, formats[f], &size);
      for (size_t cut = 0; cut < size; cut++) {
        assert_int_equal(test_read_fst_bytes(bytes, cut, &again, &err), WF_ERR_FORMAT);
        assert_null(again);
      }
      assert_ok(test_read_fst_bytes(bytes, size, &again, &err));
      assert_same_fst(fst, again);
      wf_fst_free(again);
      assert_int_equal(test_read_fst_bytes(bytes, size + 1, &again, &err),
                       WF_ERR_FORMAT); /* test_read_file adds a NUL */
      free(bytes);
    }
    wf_fst_free(fst);
  }
}

/* One flipped bit. The native file is always rejected. OpenFst's formats have no checksum, but any
 * fst that is accepted is valid. */
static void test_flipped_bits(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {32};
  for (int i = 0; i < 3; i++) {
    wf_fst *fst = random_fst(&rng, WF_LOG, false), *again;
    for (int f = 0; f < NUM_FORMATS; f++) {
      size_t size;
      char *bytes = write_bytes(fst, formats[f], &size);
      for (size_t at = 0; at < size; at++) {
        for (int bit = 0; bit < 8; bit++) {
          if (formats[f] != WF_FORMAT_NATIVE && bit % 3 != 0) continue;
          bytes[at] ^= (char)(1 << bit);
          wf_status status = test_read_fst_bytes(bytes, size, &again, &err);
          bytes[at] ^= (char)(1 << bit);
          if (formats[f] == WF_FORMAT_NATIVE && status == WF_OK)
            fail_msg("native file with bit %d of byte %zu flipped was accepted", bit, at);
          if (status != WF_OK) continue;
          wf_fst_view view = wf_fst_get_view(again);
          assert_ok(wf__fst_check(&view, "flipped", &err));
          wf_fst_free(again);
        }
      }
      free(bytes);
    }
    wf_fst_free(fst);
  }
}

static void put(char *bytes, size_t at, const void *data, size_t size) {
  memcpy(bytes + at, data, size);
}

/* Byte positions in a vector file of arc type "standard" without symbols: magic 0, "vector" 4,
 * "standard" 14, version 26, flags 30, properties 34, start 42, states 50, arcs 58, body 66. */
enum {
  AT_TYPE = 8,
  AT_ARC_TYPE = 18,
  AT_VERSION = 26,
  AT_FLAGS = 30,
  AT_START = 42,
  AT_STATES = 50,
  AT_BODY = 66
};

static void expect_patched(const char *bytes, size_t size, size_t at, const void *data,
                           size_t data_size, wf_status expected, const char *fragment) {
  wf_error err = {0};
  wf_fst *fst;
  char *copy = malloc(size);
  memcpy(copy, bytes, size);
  put(copy, at, data, data_size);
  assert_fails(test_read_fst_bytes(copy, size, &fst, &err), expected, &err, fragment);
  assert_null(fst);
  free(copy);
}

static void test_malicious_openfst_files(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 3 4 0.5\n1 0.25\n"), *again;
  size_t size;
  char *bytes = write_bytes(fst, WF_FORMAT_OPENFST_VECTOR, &size);
  assert_int_equal(size, AT_BODY + 2 * 12 + 16);
  const int64_t huge[] = {INT64_MAX, INT64_MIN, -2, (int64_t)1 << 31, 1 << 30, 3};
  for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
    expect_patched(bytes, size, AT_STATES, &huge[i], 8,
                   huge[i] > INT32_MAX ? WF_ERR_LIMIT : WF_ERR_FORMAT, "state");
    expect_patched(bytes, size, AT_BODY + 4, &huge[i], 8, WF_ERR_FORMAT, "arcs");
    expect_patched(bytes, size, AT_START, &huge[i], 8, WF_ERR_FORMAT, "start state");
  }
  expect_patched(bytes, size, AT_TYPE, "editXY", 6, WF_ERR_UNSUPPORTED, "'editXY'");
  expect_patched(bytes, size, AT_ARC_TYPE, "gallic42", 8, WF_ERR_UNSUPPORTED, "'gallic42'");
  expect_patched(bytes, size, AT_VERSION, &(int32_t){7}, 4, WF_ERR_UNSUPPORTED, "version 7");
  expect_patched(bytes, size, AT_FLAGS, &(int32_t){1}, 4, WF_ERR_FORMAT, "symbol table");
  const size_t arc = AT_BODY + 12;
  expect_patched(bytes, size, arc, &(int32_t){-1}, 4, WF_ERR_FORMAT, "negative label -1:4");
  expect_patched(bytes, size, arc + 4, &(int32_t){-2}, 4, WF_ERR_FORMAT, "negative label 3:-2");
  expect_patched(bytes, size, arc + 8, &(float){NAN}, 4, WF_ERR_FORMAT, "byte 78: arc weight");
  expect_patched(bytes, size, arc + 8, &(float){-INFINITY}, 4, WF_ERR_FORMAT, "arc weight");
  expect_patched(bytes, size, arc + 12, &(int32_t){2}, 4, WF_ERR_FORMAT,
                 "state 2, but there are only 2 states");
  expect_patched(bytes, size, arc + 12, &(int32_t){-1}, 4, WF_ERR_FORMAT,
                 "state -1, but there are only 2 states");
  expect_patched(bytes, size, AT_BODY, &(float){NAN}, 4, WF_ERR_FORMAT, "final weight of state 0");
  /* A file whose number of states is unknown (-1), as a writer to a pipe may leave it: read to the
   * end. */
  put(bytes, AT_STATES, &(int64_t){-1}, 8);
  assert_ok(test_read_fst_bytes(bytes, size, &again, &err));
  assert_same_fst(fst, again);
  wf_fst_free(again);
  assert_int_equal(test_read_fst_bytes(bytes, size - 1, &again, &err), WF_ERR_FORMAT);
  /* A file with states but no start state is the empty fst. */
  put(bytes, AT_START, &(int64_t){-1}, 8);
  assert_ok(test_read_fst_bytes(bytes, size, &again, &err));
  assert_int_equal(wf_fst_get_view(again).num_states, 0);
  wf_fst_free(again);
  free(bytes);
  wf_fst_free(fst);
}

static void test_malicious_const_files(void **state) {
  (void)state;
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 3 4 0.5\n1 0.25\n");
  size_t size;
  char *bytes = write_bytes(fst, WF_FORMAT_OPENFST_CONST, &size);
  const size_t states = AT_STATES - 1,
               body = AT_BODY - 1; /* "const" is one letter shorter than "vector" */
  assert_int_equal(size, body + 2 * 20 + 16);
  const int64_t huge[] = {INT64_MAX, -1, INT32_MAX, 3};
  for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
    expect_patched(bytes, size, states, &huge[i], 8,
                   huge[i] > INT32_MAX ? WF_ERR_LIMIT : WF_ERR_FORMAT, "");
    expect_patched(bytes, size, states + 8, &huge[i], 8, WF_ERR_FORMAT, "arcs");
  }
  expect_patched(bytes, size, states + 8, &(int64_t){0}, 8, WF_ERR_FORMAT, "arcs");
  expect_patched(bytes, size, body + 4, &(uint32_t){1}, 4, WF_ERR_FORMAT, "state 0");
  expect_patched(bytes, size, body + 8, &(uint32_t){UINT32_MAX}, 4, WF_ERR_FORMAT, "state 0");
  expect_patched(bytes, size, body + 8, &(uint32_t){0}, 4, WF_ERR_FORMAT, "state 1");
  free(bytes);
  wf_fst_free(fst);
}

static void test_not_an_fst(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *fst;
  assert_fails(wf_fst_read(test_write_file("empty", "", 0), &fst, &err), WF_ERR_FORMAT, &err,
               "empty");
  assert_fails(wf_fst_read("/nowhere/at all", &fst, &err), WF_ERR_IO, &err, "/nowhere/at all");
  assert_fails(wf_fst_read("/", &fst, &err), WF_ERR_IO, &err, "directory");
  assert_fails(test_read_fst_bytes("0 1 1 1\n1\n", 10, &fst, &err), WF_ERR_FORMAT, &err,
               "compile it");
  assert_fails(test_read_fst_bytes("\xfd"
                                   "7zXZ\0rest",
                                   10, &fst, &err),
               WF_ERR_UNSUPPORTED, &err, "xz");
  assert_fails(test_read_fst_bytes("\x01\x02\x03\x04\x05", 5, &fst, &err), WF_ERR_FORMAT, &err,
               "0x04030201");
  const int32_t magic = WF__SYMBOLS_MAGIC;
  assert_fails(test_read_fst_bytes(&magic, 4, &fst, &err), WF_ERR_FORMAT, &err, "symbol table");
}

/* float64 weights are rounded to float32. Values that float32 cannot hold are rejected. */
static void test_log64_rounding(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *fst = test_fst_of(WF_LOG, "0 1 3 4 0.5\n1 0.25\n"), *again;
  size_t size;
  char *bytes = write_bytes(fst, WF_FORMAT_OPENFST_VECTOR_LOG64, &size);
  const size_t weight = AT_BODY - 3 + 16 + 8; /* "log64" is three letters shorter than "standard" */
  put(bytes, weight, &(double){0.1}, 8);
  assert_ok(test_read_fst_bytes(bytes, size, &again, &err));
  assert_true(wf_fst_get_view(again).arcs[0].weight == 0.1f);
  wf_fst_free(again);
  put(bytes, weight, &(double){(double)INFINITY}, 8);
  assert_ok(test_read_fst_bytes(bytes, size, &again, &err));
  assert_true(wf_fst_get_view(again).arcs[0].weight == INFINITY);
  wf_fst_free(again);
  const double bad[] = {1e39, -1e39, (double)NAN, -(double)INFINITY};
  for (int i = 0; i < 4; i++)
    expect_patched(bytes, size, weight, &bad[i], 8, WF_ERR_FORMAT, "arc weight");
  free(bytes);
  wf_fst_free(fst);
}

/* --- text -------------------------------------------------------------------------------- */

static void test_text_errors(void **state) {
  (void)state;
  static const struct {
    const char *text, *fragment;
    bool acceptor, keep, symbols;
  } cases[] = {
      {"0 1 1\n", "text:1: expected 'source nextstate ilabel olabel [weight]'", false, false,
       false},
      {"0 1 1 1\n1\n0 1 1 1 2 3\n", "text:3: expected", false, false, false},
      {"0 1 1 1 2\n", "text:1: expected 'source nextstate label [weight]'", true, false, false},
      {"\n\n0 1 a 1\n", "text:3: input label 'a' is not a label number", false, false, false},
      {"0 1 1 -1\n", "output label '-1'", false, false, false},
      {"0 1 2147483648 1\n", "input label '2147483648'", false, false, false},
      {"0 1 in-\xc3\xa4"
       "7 nosuch\n",
       "text:1: output label 'nosuch' is not in the symbol table in", false, false, true},
      {"0 1 1 1\n", "input label '1' is not in the symbol table", false, false, true},
      {"x 1 1 1\n", "'x' is not a state number", false, false, false},
      {"-1 1 1 1\n", "'-1' is not a state number", false, false, false},
      {"0 99999999999999999999 1 1\n", "is not a state number", false, false, false},
      {"0 1 1 1 nan\n", "NaN or -infinity", false, false, false},
      {"0 -Infinity\n", "NaN or -infinity", false, false, false},
      {"0 1 1 1 BadNumber\n", "'BadNumber' is not a weight", false, false, false},
      {"0 1 1 1 1,5\n", "'1,5' is not a weight", false, false, false},
      {"0 2147483647 1 1\n", "state number 2147483647 is too large", false, true, false},
  };
  wf_symbols *symbols = make_symbols("in", 5);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wf_error err = {0};
    wf_fst *fst;
    wf_text_options options;
    wf_text_options_init(&options);
    options.acceptor = cases[i].acceptor;
    options.keep_state_numbering = cases[i].keep;
    wf_status status =
        compile_text(cases[i].text, cases[i].symbols ? symbols : NULL, &options, &fst, &err);
    assert_fails(status, cases[i].keep ? WF_ERR_LIMIT : WF_ERR_FORMAT, &err, cases[i].fragment);
    assert_null(fst);
  }
  wf_symbols_free(symbols);
}

static void test_text_details(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *fst;
  assert_ok(compile_text("\n  7\t5  3 \t 4 0x1p3\r\n5 Infinity\n9 1e-3\n", NULL, NULL, &fst, &err));
  wf_fst_view view = wf_fst_get_view(fst);
  assert_int_equal(view.start, 0);
  assert_int_equal(view.num_states, 3);
  assert_int_equal(view.arcs[0].nextstate, 1);
  assert_true(view.arcs[0].weight == 8 && view.final_cost[1] == INFINITY &&
              view.final_cost[2] == 1e-3f);
  wf_fst_free(fst);
  assert_ok(compile_text("\n \t \n", NULL, NULL, &fst, &err));
  assert_int_equal(wf_fst_get_view(fst).start, -1);
  wf_fst_free(fst);
  /* A label that its symbol table lacks. */
  wf_symbols *symbols = make_symbols("in", 2);
  fst = test_fst_of(WF_TROPICAL, "0 1 1 9\n1\n");
  const char *path = test_temp_path("p.txt");
  assert_fails(wf_fst_print(fst, path, symbols, symbols, NULL, &err), WF_ERR_ARGUMENT, &err,
               "output label 9 is not in the symbol table in");
  wf_text_options options;
  wf_text_options_init(&options);
  options.missing_symbol = "<?>";
  assert_ok(wf_fst_print(fst, path, symbols, symbols, &options, &err));
  char *text = test_read_file(path, NULL);
  assert_string_equal(text,
                      "0\t1\tin-\xc3\xa4"
                      "7\t<?>\n1\n");
  free(text);
  wf_symbols_free(symbols);
  wf_fst_free(fst);
}

/* --- counts ------------------------------------------------------------------------------ */

/* Reachability by brute force: spread marks until nothing changes. */
static void test_info_counts(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {41};
  for (int i = 0; i < 300; i++) {
    wf_fst *fst = random_fst(&rng, WF_TROPICAL, false);
    wf_fst_view view = wf_fst_get_view(fst);
    bool from[20] = {false}, to[20] = {false};
    from[view.start] = true;
    uint64_t accessible = 0, coaccessible = 0, connected = 0, finals = 0, iepsilons = 0, most = 0;
    for (uint64_t s = 0; s < view.num_states; s++) finals += to[s] = view.final_cost[s] != INFINITY;
    for (int round = 0; round < 20; round++) {
      for (uint64_t s = 0; s < view.num_states; s++) {
        for (uint64_t k = view.arc_off[s]; k < view.arc_off[s + 1]; k++) {
          from[view.arcs[k].nextstate] |= from[s];
          to[s] |= to[view.arcs[k].nextstate];
        }
      }
    }
    for (uint64_t s = 0; s < view.num_states; s++) {
      accessible += from[s];
      coaccessible += to[s];
      connected += from[s] && to[s];
      if (view.arc_off[s + 1] - view.arc_off[s] > most)
        most = view.arc_off[s + 1] - view.arc_off[s];
    }
    for (uint64_t k = 0; k < view.num_arcs; k++) iepsilons += view.arcs[k].ilabel == 0;
    wf_fst_info info;
    wf_fst_info_init(&info);
    assert_ok(wf_fst_get_info(fst, &info, &err));
    assert_int_equal(info.num_accessible, accessible);
    assert_int_equal(info.num_coaccessible, coaccessible);
    assert_int_equal(info.num_connected, connected);
    assert_int_equal(info.num_final, finals);
    assert_int_equal(info.num_iepsilons, iepsilons);
    assert_int_equal(info.max_arcs, most);
    wf_fst_free(fst);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_native_mapping),
      cmocka_unit_test(test_gzip),
      cmocka_unit_test(test_against_openfst),
      cmocka_unit_test(test_read_openfst),
      cmocka_unit_test(test_truncated_files),
      cmocka_unit_test(test_flipped_bits),
      cmocka_unit_test(test_malicious_openfst_files),
      cmocka_unit_test(test_malicious_const_files),
      cmocka_unit_test(test_not_an_fst),
      cmocka_unit_test(test_log64_rounding),
      cmocka_unit_test(test_text_errors),
      cmocka_unit_test(test_text_details),
      cmocka_unit_test(test_info_counts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
