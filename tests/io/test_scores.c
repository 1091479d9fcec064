/* test_scores.c - readers of score matrices.
 *
 * Inputs are built byte by byte from the descriptions of the formats, not with the library's
 * writers. */
#include "base/platform.h"
#include "io/kaldi_archive.h"
#include "io/npy.h"
#include "io/score_spec.h"
#include "testing.h"

typedef struct bytes {
  char data[1 << 16];
  size_t size;
} bytes;

static void put(bytes *b, const void *data, size_t size) {
  assert_true(b->size + size <= sizeof b->data);
  memcpy(b->data + b->size, data, size);
  b->size += size;
}
static void put_text(bytes *b, const char *text) { put(b, text, strlen(text)); }
static void put_i32(bytes *b, int32_t value) { put(b, &value, 4); }
static void put_f32(bytes *b, float value) { put(b, &value, 4); }
static void put_sizes(bytes *b, int32_t rows, int32_t columns) {
  put(b, "\4", 1);
  put_i32(b, rows);
  put(b, "\4", 1);
  put_i32(b, columns);
}
static void put_fm(bytes *b, const char *key, int32_t rows, int32_t columns, float first) {
  put_text(b, key);
  put(b, " \0BFM ", 6);
  put_sizes(b, rows, columns);
  for (int32_t i = 0; i < rows * columns; i++) put_f32(b, first + (float)i);
}
/* Appends the header of an npy file (version 1) with this dictionary, then the values. */
static void put_npy(bytes *b, const char *dict, const void *values, size_t size) {
  uint16_t length = (uint16_t)strlen(dict);
  put(b, "\x93NUMPY\1\0", 8);
  put(b, &length, 2);
  put_text(b, dict);
  put(b, values, size);
}

/* The output of a reader as text: "key rows x columns first last;", or "key!" for a failure ("!"
 * without a key), or "~" if the rest is lost. */
static const char *trace(const char *const *sources, size_t count,
                         const wf_score_reader_options *options) {
  static char text[4096];
  wf_error err = {0};
  wf_score_reader *reader;
  text[0] = '\0';
  assert_ok(wf_score_reader_open(sources, count, options, &reader, &err));
  for (;;) {
    wf_matrix m;
    bool done = true;
    size_t used = strlen(text);
    wf_status status = wf_score_reader_next(reader, &m, &done, &err);
    if (status != WF_OK) {
      assert_null(m.data);
      assert_false(done);
      assert_true(err.message[0] != '\0');
      snprintf(text + used, sizeof text - used, "%s!%s;", m.key != NULL ? m.key : "",
               wf_score_reader_lost_rest(reader) ? "~" : "");
    } else if (done) {
      break;
    } else {
      size_t elements = (size_t)m.num_frames * (size_t)m.num_columns;
      snprintf(text + used, sizeof text - used, "%s %lldx%d %g %g;", m.key, (long long)m.num_frames,
               m.num_columns, elements ? (double)m.data[0] : 0.0,
               elements ? (double)m.data[elements - 1] : 0.0);
    }
    wf_matrix_clear(&m);
  }
  assert_true(wf_score_reader_fraction(reader) == 1);
  wf_score_reader_free(reader);
  return text;
}

static const char *trace_bytes(const char *name, const bytes *b) {
  const char *path = test_write_file(name, b->data, b->size);
  return trace(&path, 1, NULL);
}

static void test_kaldi_binary(void **state) {
  (void)state;
  bytes b = {.size = 0};
  put_fm(&b, "fm", 2, 3, 1);
  put(&b, "dm \0BDM ", 8);
  put_sizes(&b, 1, 2);
  double doubles[2] = {0.5, -1e300};
  put(&b, doubles, sizeof doubles);
  put_fm(&b, "empty", 0, 0, 0);
  put(&b, "c2 \0BCM2 ", 9);
  put_f32(&b, -32768), put_f32(&b, 65535), put_i32(&b, 2), put_i32(&b, 1);
  put(&b, "\0\0\xff\xff", 4);
  put(&b, "c3 \0BCM3 ", 9);
  put_f32(&b, 0), put_f32(&b, 255), put_i32(&b, 1), put_i32(&b, 3);
  put(&b, "\7\x80\xff", 3);
  put_text(&b, "t  [\n  1 2\n  3 -inf ]\n");
  put_text(&b, "one [ 4 5 6 ]\nnone [ ]\nsemi [ 1;2 ; 3 ]\n");
  assert_string_equal(trace_bytes("all.ark", &b),
                      "fm 2x3 1 6;dm 1x2 0.5 -inf;empty 0x0 0 0;c2 2x1 -32768 32767;c3 1x3 7 255;t "
                      "2x2 1 -inf;one 1x3 4 6;none 0x0 0 0;semi 3x1 1 3;");
}

/* Every byte value of a CM column compared with the definition in doubles. */
static void test_kaldi_cm(void **state) {
  (void)state;
  wf_error err = {0};
  bytes b = {.size = 0};
  const uint16_t p[20][4] = {
      {0, 1, 2, 3}, {0, 20000, 30000, 65535}, {65532, 65533, 65534, 65535}, {5, 600, 7000, 8000}};
  enum { COLUMNS = 20 };
  const float min = -30, range = 29.5f;
  put(&b, "k \0BCM ", 7);
  put_f32(&b, min), put_f32(&b, range), put_i32(&b, 256), put_i32(&b, COLUMNS);
  put(&b, p, sizeof p);
  for (int c = 0; c < COLUMNS; c++)
    for (int v = 0; v < 256; v++) {
      uint8_t byte = (uint8_t)(v * 7 + c);
      put(&b, &byte, 1);
    }
  const char *path = test_write_file("cm.ark", b.data, b.size);
  wf_score_reader *reader;
  assert_ok(wf_score_reader_open(&path, 1, NULL, &reader, &err));
  wf_matrix m;
  bool done;
  assert_ok(wf_score_reader_next(reader, &m, &done, &err));
  assert_int_equal(m.num_frames, 256);
  assert_int_equal(m.num_columns, COLUMNS);
  for (int c = 0; c < COLUMNS; c++) {
    double q[4];
    for (int i = 0; i < 4; i++) q[i] = (double)min + (double)range * p[c][i] / 65535.0;
    for (int r = 0; r < 256; r++) {
      int v = (uint8_t)(r * 7 + c);
      double want = v <= 64    ? q[0] + (q[1] - q[0]) * v / 64
                    : v <= 192 ? q[1] + (q[2] - q[1]) * (v - 64) / 128
                               : q[2] + (q[3] - q[2]) * (v - 192) / 63;
      assert_true(fabs((double)m.data[r * COLUMNS + c] - want) < 1e-5);
    }
  }
  wf_matrix_clear(&m);
  wf_score_reader_free(reader);
}

static void test_bad_records(void **state) {
  (void)state;
  bytes b = {.size = 0};
  put_fm(&b, "a", 1, 1, 1);
  put(&b, "vec \0BFV \4", 10);
  put_i32(&b, 2), put_f32(&b, 0), put_f32(&b, 0);
  put_fm(&b, "b", 1, 1, 2);
  put_text(&b, "ragged [ 1 2\n 3 ]\nword [ 1 x ]\n");
  put_fm(&b, "c", 1, 1, 3);
  assert_string_equal(trace_bytes("bad.ark", &b),
                      "a 1x1 1 1;vec!;b 1x1 2 2;ragged!;word!;c 1x1 3 3;");
  /* After a record that cannot be skipped, the rest of the archive is lost, and nothing else. */
  static const struct {
    const char *tail;
    size_t size;
    const char *trace;
  } tails[] = {
      {"d \0BSM \4", 8, "d!~;"},
      {"d \0BFM \4\xff\xff\xff\xff\4\1\0\0\0", 17, "d!~;"},
      {"d \0BFM \4\xff\xff\xff\x7f\4\xff\xff\xff\x7f", 17, "d!~;"},
      {"d \0BFM \4\xff\xff\xff\x7f\4\0\0\0\0", 17, "d!~;"},
      {"d \0BFM \x8\1\0\0\0\4\1\0\0\0", 17, "d!~;"},
      {"d [ 1 2", 7, "d!~;"},
      {"d [ 1 2 ] x\n", 12, "d!~;"},
      {"d 1 2 ]", 7, "d!~;"},
      {"d\n", 2, "!~;"},
      {"d", 1, "!~;"},
      {"\xff\xfe [ 1 ]\n", 9, "!~;"},
      {"d\1x [ 1 ]\n", 10, "!~;"},
  };
  for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
    bytes t = {.size = 0}, next = {.size = 0};
    char want[256];
    put_fm(&t, "a", 1, 1, 1);
    put(&t, tails[i].tail, tails[i].size);
    put_fm(&next, "z", 1, 1, 9);
    const char *sources[2] = {test_write_file("t.ark", t.data, t.size),
                              test_write_file("n.ark", next.data, next.size)};
    snprintf(want, sizeof want, "a 1x1 1 1;%sz 1x1 9 9;", tails[i].trace);
    assert_string_equal(trace(sources, 2, NULL), want);
  }
}

/* Each prefix of an archive gives the complete records, and one failure if a record was truncated.
 */
static void test_truncated(void **state) {
  (void)state;
  bytes b = {.size = 0};
  size_t ends[6] = {0};
  put_fm(&b, "aa", 2, 2, 1);
  ends[1] = b.size;
  put(&b, "b \0BCM ", 7);
  put_f32(&b, 0), put_f32(&b, 1), put_i32(&b, 2), put_i32(&b, 1);
  put(&b, "\0\0\1\0\2\0\3\0\7\x7", 10);
  ends[2] = b.size;
  put_text(&b, "t [ 1\n 2 ]\n");
  ends[3] = b.size;
  put_fm(&b, "c", 1, 1, 1);
  ends[4] = b.size;
  for (size_t size = 1; size <= b.size; size++) {
    bytes cut = b;
    cut.size = size;
    size_t whole = 0, good = 0, failures = 0;
    /* The newline after a text matrix may be missing at the end of the file. */
    while (whole < 4 && size >= ends[whole + 1] - (whole == 2)) whole++;
    bool clean = size == ends[whole] || (whole == 3 && size + 1 == ends[3]);
    for (const char *c = trace_bytes("cut.ark", &cut); *c != '\0'; c++)
      good += *c == ';', failures += *c == '!';
    assert_int_equal(failures, clean ? 0 : 1);
    assert_int_equal(good - failures, whole);
  }
}

static void test_pipes_and_gzip_members(void **state) {
  (void)state;
  bytes b = {.size = 0};
  for (int i = 0; i < 3; i++) put_fm(&b, "k", 40, 100, (float)i);
  const char *plain = test_write_file("s.ark", b.data, b.size),
             *zipped = test_temp_path("s.ark.gz");
  char want[256];
  snprintf(want, sizeof want, "%s", trace(&plain, 1, NULL));
  test_shell("gzip -c %s > %s", plain, zipped);
  assert_string_equal(trace(&zipped, 1, NULL), want);
  /* two gzip members, the second truncated */
  const char *twice = test_temp_path("twice.gz");
  test_shell("cat %s %s > %s", zipped, zipped, twice);
  char *doubled = malloc(2 * strlen(want) + 1);
  sprintf(doubled, "%s%s", want, want);
  assert_string_equal(trace(&twice, 1, NULL), doubled);
  test_shell("head -c -20 %s > %s.cut && mv %s.cut %s", zipped, twice, twice, twice);
  assert_non_null(strstr(trace(&twice, 1, NULL), "!~;"));
  free(doubled);
  /* a fifo that is filled in small pieces */
  const char *fifo = test_temp_path("fifo");
  test_shell("mkfifo %s", fifo);
  test_shell("(dd if=%s of=%s bs=777 2>/dev/null &)", plain, fifo);
  assert_string_equal(trace(&fifo, 1, NULL), want);
}

static void test_kinds_of_sources(void **state) {
  (void)state;
  wf_error err = {0};
  bytes b = {.size = 0};
  put_fm(&b, "a", 3, 4, 0);
  size_t second = b.size + 2;
  put_fm(&b, "b", 2, 2, 50);
  const char *ark = test_write_file("x.ark", b.data, b.size);
  float values[2] = {7, 8};
  bytes n = {.size = 0};
  put_npy(&n, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }\n", values,
          sizeof values);
  const char *npy = test_write_file("u.npy", n.data, n.size);
  char script[4096];
  snprintf(script, sizeof script,
           "a1 %s:2\r\n\nb1\t%s:%zu\na2 %s:2[1:2]\na3 %s:2[0:0,1:2]\na4 %s:2[:,3:3]\nn %s\nn2 "
           "%s[0:0,1:1]\n"
           "far %s:2[0:5]\nover %s:2[0:0,0:4]\nno /nonexistent/x.ark:3\nout %s:99999\nmiddle "
           "%s:5\nlast %s:2\n",
           ark, ark, second, ark, ark, ark, npy, npy, ark, ark, ark, ark, ark);
  const char *want =
      "a1 3x4 0 11;b1 2x2 50 53;a2 2x4 4 11;a3 1x2 1 2;a4 3x1 3 11;n 1x2 7 8;n2 1x1 8 "
      "8;far 3x4 0 11;over!;no!;out!;middle!;last 3x4 0 11;";
  const char *scp = test_write_file("x.scp", script, strlen(script));
  assert_string_equal(trace(&scp, 1, NULL), want);
  char prefixed[1024];
  const char *source = prefixed;
  snprintf(prefixed, sizeof prefixed, "scp,p,cs:%s", scp);
  assert_string_equal(trace(&source, 1, NULL), want);
  snprintf(prefixed, sizeof prefixed, "ark,t:%s", ark);
  assert_string_equal(trace(&source, 1, NULL), "a 3x4 0 11;b 2x2 50 53;");
  wf_score_reader_options options;
  wf_score_reader_options_init(&options);
  options.scale = -2;
  const char *both[2] = {npy, ark};
  assert_non_null(strstr(trace(both, 2, &options), "-14 -16;a 3x4 -0 -22;b 2x2 -100 -106;"));
  static const char *const bad[] = {
      "cat x |", "ark:gunzip -c x.gz |", "ark,zz:x", "/nonexistent", "scp:", "ark:/", "", "|x"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    wf_score_reader *reader;
    assert_int_not_equal(wf_score_reader_open(&bad[i], 1, NULL, &reader, &err), WF_OK);
    assert_null(reader);
  }
  static const char *const bad_scripts[] = {"a b\nc gunzip -c x |\n", "a \xff\n"};
  for (size_t i = 0; i < sizeof bad_scripts / sizeof *bad_scripts; i++) {
    wf_score_reader *reader;
    snprintf(prefixed, sizeof prefixed, "scp:%s",
             test_write_file("bad.scp", bad_scripts[i], strlen(bad_scripts[i])));
    assert_int_not_equal(wf_score_reader_open(&source, 1, NULL, &reader, &err), WF_OK);
    assert_non_null(strstr(err.message, "bad.scp"));
  }
}

/* Open ranges, ends that are a little too large, and malformed lines, which fail alone. */
static void test_script_lines(void **state) {
  (void)state;
  bytes b = {.size = 0};
  put_fm(&b, "a", 3, 4, 0);
  const char *ark = test_write_file("lines.ark", b.data, b.size);
  static const struct {
    const char *line, *want; /* the line goes on after "KEY lines.ark" */
  } cases[] = {
      {":2[1:]", "2x4 4 11"},
      {":2[:1]", "2x4 0 7"},
      {":2[:,2:]", "3x2 2 11"},
      {":2[,:0]", "3x1 0 8"},
      {":2[1:,1:2]", "2x2 5 10"},
      {":2[:2]", "3x4 0 11"},
      {":2[1:5]", "2x4 4 11"},
      {":2[1:6]", NULL},
      {":2[3:5]", NULL},
      {":2[:,:4]", NULL},
      {":2[1]", NULL},
      {":2[2:1]", NULL},
      {":2[-1:1]", NULL},
      {":2[0:1,]x]", NULL},
      {":2[0:1,1:x]", NULL},
      {":2[3:]", NULL},
      {":99999999999999999999", NULL},
  };
  char script[4096] = "short\nfree [0:1]\n", want[4096] = "short!;free!;";
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char one[512];
    snprintf(one, sizeof one, "k%zu %s%s\n", i, ark, cases[i].line);
    strcat(script, one);
    snprintf(one, sizeof one, cases[i].want != NULL ? "k%zu %s;" : "k%zu!;", i, cases[i].want);
    strcat(want, one);
  }
  const char *scp = test_write_file("lines.scp", script, strlen(script));
  char source[1024];
  const char *sources = source;
  snprintf(source, sizeof source, "scp:%s", scp);
  assert_string_equal(trace(&sources, 1, NULL), want);
  wf_error err = {0};
  wf_matrix matrix;
  bool done;
  wf_score_reader *reader;
  assert_ok(wf_score_reader_open(&sources, 1, NULL, &reader, &err));
  assert_int_not_equal(wf_score_reader_next(reader, &matrix, &done, &err), WF_OK);
  assert_non_null(strstr(err.message, "utterance 'short'"));
  assert_non_null(strstr(err.message, "lines.scp:1: no path"));
  wf_matrix_clear(&matrix);
  wf_score_reader_free(reader);
}

static wf_status read_npy(const bytes *b, wf_matrix *m, wf_error *err) {
  return wf__npy_read((const uint8_t *)b->data, b->size, "x.npy", 1, m, err);
}

static void test_npy_types(void **state) {
  (void)state;
  wf_error err = {0};
  /* 2 x 3 of every type, in row-major and column-major order */
  const struct {
    const char *descr;
    const void *values;
    size_t size;
  } types[] = {
      {"<f4", (const float[]){0, 1, 2, 3, 4, 5}, 24},
      {"<f8", (const double[]){0, 1, 2, 3, 4, 5}, 48},
      {"<f2", (const uint16_t[]){0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500}, 12},
      {"|i1", (const int8_t[]){0, 1, 2, 3, 4, 5}, 6},
      {"|u1", (const uint8_t[]){0, 1, 2, 3, 4, 5}, 6},
      {"<i2", (const int16_t[]){0, 1, 2, 3, 4, 5}, 12},
      {"<u2", (const uint16_t[]){0, 1, 2, 3, 4, 5}, 12},
      {"<i4", (const int32_t[]){0, 1, 2, 3, 4, 5}, 24},
      {"<u4", (const uint32_t[]){0, 1, 2, 3, 4, 5}, 24},
  };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    for (int fortran = 0; fortran < 2; fortran++) {
      bytes b = {.size = 0};
      char dict[128];
      snprintf(dict, sizeof dict, "{'shape': (%s2, 3), 'fortran_order': %s,\"descr\":'%s'}",
               fortran ? "1, " : "", fortran ? "True" : "False", types[i].descr);
      put_npy(&b, dict, types[i].values, types[i].size);
      wf_matrix m = {0};
      assert_ok(read_npy(&b, &m, &err));
      for (int r = 0; r < 2; r++)
        for (int c = 0; c < 3; c++)
          assert_true(m.data[r * 3 + c] == (float)(fortran ? c * 2 + r : r * 3 + c));
      wf_matrix_clear(&m);
      for (size_t size = 0; size < b.size; size++) {
        bytes cut = b;
        cut.size = size;
        assert_int_not_equal(read_npy(&cut, &m, &err), WF_OK);
        assert_null(m.data);
      }
    }
  }
}

static void test_npy_half(void **state) {
  (void)state;
  wf_error err = {0};
  static uint16_t halves[65536];
  static uint8_t file[200000];
  for (int i = 0; i < 65536; i++) halves[i] = (uint16_t)i;
  bytes b = {.size = 0};
  put_npy(&b, "{'descr': '<f2', 'fortran_order': False, 'shape': (256, 256)}", "", 0);
  memcpy(file, b.data, b.size);
  memcpy(file + b.size, halves, sizeof halves);
  wf_matrix m = {0};
  assert_ok(wf__npy_read(file, b.size + sizeof halves, "h.npy", 1, &m, &err));
  for (int i = 0; i < 65536; i++) {
    int exponent = i >> 10 & 31, fraction = i & 1023;
    double want = exponent == 31  ? (fraction != 0 ? (double)NAN : (double)INFINITY)
                  : exponent == 0 ? ldexp(fraction, -24)
                                  : ldexp(1024 + fraction, exponent - 25);
    if (i & 0x8000) want = -want;
    assert_true(isnan(want) ? isnan(m.data[i])
                            : (double)m.data[i] == want && !signbit(m.data[i]) == !signbit(want));
  }
  m.key = NULL;
  assert_int_equal(wf_matrix_check(&m, &err), WF_ERR_FORMAT);
  assert_non_null(strstr(err.message, "frame 124, column 0: score is +inf"));
  wf_matrix_clear(&m);
}

static void test_npy_bad(void **state) {
  (void)state;
  static const char *const bad[] = {
      "",
      "{",
      "{}",
      "{'descr': '<f4'}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 1)}",
      "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 1)}",
      "{'descr': '<c8', 'fortran_order': False, 'shape': (1, 1)}",
      "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 1)}",
      "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 1)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -1)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 1)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 2147483647)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 0)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1)} x",
      "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 1)}",
      "{'descr': '<f4', 'other': 1, 'fortran_order': False, 'shape': (2, 1)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1)",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1)}",
      "{'descr': 'aaaaaaaaaaaaaaaaaaaaaaaaaa', 'fortran_order': False, 'shape': (2, 1)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 2, 1)}"};
  float values[2] = {1, 2};
  wf_error err = {0};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    bytes b = {.size = 0};
    wf_matrix m = {0};
    put_npy(&b, bad[i], values, sizeof values);
    err.message[0] = '\0';
    assert_int_not_equal(read_npy(&b, &m, &err), WF_OK);
    assert_null(m.data);
    assert_non_null(strstr(err.message, "x.npy"));
  }
}

static void test_folder(void **state) {
  (void)state;
  const char *folder = test_temp_path("npys");
  assert_int_equal(wf__path_make_folder(folder), 0);
  test_write_file("npys/readme.txt", "", 0);
  static const char *const dicts[3] = {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1)}",
                                       "broken",
                                       "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 5)}"};
  float values[2] = {1, 2};
  for (int i = 2; i >= 0; i--) {
    bytes b = {.size = 0};
    char path[512];
    put_npy(&b, dicts[i], values, i == 0 ? sizeof values : 0);
    snprintf(path, sizeof path, "%s/u%d.npy", folder, i);
    FILE *file = fopen(path, "wb");
    assert_int_equal(fwrite(b.data, 1, b.size, file), b.size);
    fclose(file);
  }
  assert_string_equal(trace(&folder, 1, NULL), "u0 2x1 1 2;u1!;u2 0x5 0 0;");
}

/* PocketSphinx's logged scores: complete frames, frames with some senones; as a file, from a folder
 * and from a script file. */
static void test_sphinx_senone_scores(void **state) {
  (void)state;
  wf_error err = {0};
  static const char head[] =
      "s3\nversion 0.1\nmdef_file /x/mdef\nn_sen 3\nlogbase 1.000100\nendhdr\n\x44\x33\x22\x11";
  static const int16_t whole[] = {3, 7, 0, 500}, part[] = {2}, values[] = {9, 4};
  bytes b = {.size = 0};
  put(&b, head, sizeof head - 1);
  put(&b, whole, sizeof whole);
  put(&b, part, sizeof part);
  put(&b, "\0\2", 2); /* senones 0 and 2 */
  put(&b, values, sizeof values);
  const char *path = test_write_file("one.sen", b.data, b.size);
  wf_score_reader *reader;
  wf_matrix m;
  bool done;
  assert_ok(wf_score_reader_open(&path, 1, NULL, &reader, &err));
  assert_ok(wf_score_reader_next(reader, &m, &done, &err));
  assert_string_equal(m.key, "one");
  assert_true(m.num_frames == 2 && m.num_columns == 3);
  const double unit = 1024 * log(1.0001), wanted[6] = {-7, 0, -500, -9, -32767, -4};
  for (int i = 0; i < 6; i++) assert_true(fabs((double)m.data[i] - unit * wanted[i]) < 1e-3);
  wf_matrix_clear(&m);
  wf_score_reader_free(reader);
  char script[600], want[200];
  snprintf(script, sizeof script, "utt-1 %s\n", path);
  const char *scp = test_write_file("sen.scp", script, strlen(script));
  snprintf(want, sizeof want, "utt-1 2x3 %g %g;", (double)(float)(-7 * unit),
           (double)(float)(-4 * unit));
  assert_string_equal(trace(&scp, 1, NULL), want);
  for (size_t size = sizeof head - 1; size < b.size; size++) { /* only complete frames are read */
    bytes cut = b;
    cut.size = size;
    bool frames = size == sizeof head - 1 || size == sizeof head - 1 + sizeof whole;
    if (frames != (strchr(trace_bytes("cut.sen", &cut), '!') == NULL))
      fail_msg("%zu bytes: %s", size, trace_bytes("cut.sen", &cut));
  }
  static const struct {
    const char *bytes;
    size_t size;
  } bad[] = {{"\4\0", 2},
             {"\377\377", 2},
             {"\2\0\2\1\0\0\0\0",
              8}}; /* more senones than n_sen; a negative number; steps beyond the end */
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    b.size = sizeof head - 1;
    put(&b, bad[i].bytes, bad[i].size);
    assert_string_equal(trace_bytes("bad.sen", &b), "bad!;");
  }
  b.size = 0;
  put_text(&b, "s3\nn_sen 3\nendhdr\n\x44\x33\x22\x11");
  assert_string_equal(trace_bytes("nobase.sen", &b), "nobase!;");
}

static void test_nan_is_rejected(void **state) {
  (void)state;
  wf_error err = {0};
  float data[6] = {0, -INFINITY, 1, 2, -3, 4};
  wf_matrix m = {(char[]){"utt"}, data, 2, 3};
  assert_ok(wf_matrix_check(&m, &err));
  data[4] = NAN;
  assert_int_equal(wf_matrix_check(&m, &err), WF_ERR_FORMAT);
  assert_string_equal(err.message, "utt: frame 1, column 1: score is NaN");
  m.num_frames = 0;
  assert_ok(wf_matrix_check(&m, &err));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_kaldi_binary),
                                     cmocka_unit_test(test_kaldi_cm),
                                     cmocka_unit_test(test_bad_records),
                                     cmocka_unit_test(test_truncated),
                                     cmocka_unit_test(test_pipes_and_gzip_members),
                                     cmocka_unit_test(test_kinds_of_sources),
                                     cmocka_unit_test(test_script_lines),
                                     cmocka_unit_test(test_npy_types),
                                     cmocka_unit_test(test_npy_half),
                                     cmocka_unit_test(test_npy_bad),
                                     cmocka_unit_test(test_folder),
                                     cmocka_unit_test(test_nan_is_rejected),
                                     cmocka_unit_test(test_sphinx_senone_scores)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
