/* test_lattice_io.c - lattice archives: round trips bit for bit, states in any order, script files,
 * gzip, malformed input. */
#include "lattice_paths.h"

static const test_lattice_shape shape = {
    .num_frames = 6, .num_words = 5, .num_labels = 9, .epsilon_share = 0.3f, .eighths = 4};

/* Reads the lattice of the single record of a source, or returns false after an error. */
static bool read_one(const char *source, const wf_symbols *words,
                     const wf_lattice_reader_options *options, wf_lattice_entry *out,
                     wf_error *err) {
  wf_lattice_reader *reader;
  bool done = false;
  *out = (wf_lattice_entry){0};
  if (wf_lattice_reader_open(&source, 1, words, options, &reader, err) != WF_OK) return false;
  wf_status status = wf_lattice_reader_next(reader, out, &done, err);
  if (status == WF_OK && !done) {
    wf_lattice_entry more;
    assert_int_equal(wf_lattice_reader_next(reader, &more, &done, err), WF_OK);
    assert_true(done);
  }
  if (status != WF_OK) {
    assert_null(out->raw);
    assert_null(out->compact);
    wf_lattice_entry_clear(out);
  }
  wf_lattice_reader_free(reader);
  return status == WF_OK;
}

static void write_one(const char *path, const wf_symbols *words, int32_t format,
                      const wf_lattice_entry *entry) {
  wf_error err = {0};
  wf_lattice_writer *writer;
  wf_lattice_writer_options options;
  wf_lattice_writer_options_init(&options);
  options.format = format;
  assert_ok(wf_lattice_writer_open(path, words, &options, &writer, &err));
  assert_ok(wf_lattice_writer_put(writer, entry, &err));
  assert_ok(wf_lattice_writer_close(writer, &err));
}

static wf_symbols *word_table(void) {
  static const char *const texts[] = {"<eps>", "one,1", "\xC3\xA9t\xC3\xA9", "3", "<unk>", "five"};
  wf_error err = {0};
  wf_symbols *table;
  assert_ok(wf_symbols_create("words", &table, &err));
  for (int64_t i = 0; i < 6; i++) assert_ok(wf_symbols_add(table, texts[i], i, NULL, &err));
  return table;
}

static void test_round_trips(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {17};
  wf_symbols *words = word_table();
  for (int i = 0; i < 300; i++) {
    char key[] = "utt";
    bool raw = i % 2 == 0;
    wf_lattice_entry entry = {.key = key}, back;
    if (raw)
      entry.raw = test_random_raw(&rng, &shape);
    else
      entry.compact = test_random_compact(&rng, &shape, i % 4 == 1);
    for (int form = 0; form < 3; form++) { /* binary, text, text with words */
      const wf_symbols *table = form == 2 ? words : NULL;
      const char *path = test_temp_path("lat");
      write_one(path, table, form > 0, &entry);
      if (!read_one(path, table, NULL, &back, &err))
        fail_msg("%d, form %d: %s", i, form, err.message);
      assert_string_equal(back.key, "utt");
      assert_true(raw ? back.raw != NULL && back.compact == NULL
                      : back.raw == NULL && back.compact != NULL);
      if (raw ? !test_same_raw(entry.raw, back.raw)
              : !test_same_compact(entry.compact, back.compact))
        fail_msg("lattice %d differs after a round trip, form %d", i, form);
      wf_lattice_entry_clear(&back);
      if (form == 2)
        assert_false(
            read_one(path, NULL, NULL, &back, &err)); /* words cannot be read without a table */
    }
    wf_lattice_free(entry.raw);
    wf_compact_lattice_free(entry.compact);
  }
  wf_symbols_free(words);
}

/* Renumbers the states at random and shuffles the lines of a lattice's text. The first line of the
 * start state stays first. */
static char *scrambled(test_rng *rng, const char *text) {
  char *copy = strdup(text), *lines[512];
  size_t count = 0;
  uint32_t number[256];
  for (uint32_t i = 0; i < 256; i++) number[i] = i * 1000 + test_below(rng, 1000);
  for (uint32_t i = 255; i > 0; i--) {
    uint32_t j = test_below(rng, i + 1), swap = number[i];
    number[i] = number[j];
    number[j] = swap;
  }
  for (char *line = strtok(strchr(copy, '\n'), "\n"); line != NULL; line = strtok(NULL, "\n"))
    lines[count++] = line;
  for (size_t i = count; i > 2; i--) {
    size_t j = 1 + test_below(rng, (uint32_t)i - 1);
    char *swap = lines[i - 1];
    lines[i - 1] = lines[j];
    lines[j] = swap;
  }
  char *out = calloc(strlen(text) * 4 + 4096, 1);
  size_t size = (size_t)sprintf(out, "utt\n"); /* no space after the key */
  for (size_t i = 0; i < count; i++) {
    unsigned a = 0, b = 0;
    char rest[256] = "";
    const char *tab = strchr(lines[i], '\t');
    sscanf(lines[i], "%u\t%u\t%255[^\n]", &a, &b, rest);
    if (tab != NULL && strchr(tab + 1, '\t') != NULL)
      size += (size_t)sprintf(out + size, "%u %u  %s\r\n", number[a], number[b], rest);
    else
      size += (size_t)sprintf(out + size, "%u%s\n", number[a], tab != NULL ? tab : "");
  }
  free(copy);
  return out;
}

/* The text with "\r\n" for "\n", or as it is. `bare`: without the blank after the key. */
static char *with_line_ends(const char *text, bool crlf, bool bare) {
  char *out = malloc(2 * strlen(text) + 1), *to = out;
  for (const char *at = text; *at != '\0'; at++) {
    if (*at == '\n' && crlf) *to++ = '\r';
    if (!(bare && at[0] == ' ' && at[1] == '\n')) *to++ = *at;
  }
  *to = '\0';
  return out;
}

/* Archives of two lattices with lines that end in CR LF, with numbers and with words. */
static void test_crlf(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {29};
  wf_symbols *words = word_table();
  for (int i = 0; i < 80; i++) {
    char key[] = "utt", both[1 << 16];
    const bool raw = i % 2 == 0;
    wf_lattice_entry entry = {.key = key}, back = {0};
    if (raw)
      entry.raw = test_random_raw(&rng, &shape);
    else
      entry.compact = test_random_compact(&rng, &shape, i % 4 == 1);
    const wf_symbols *table = i % 3 == 0 ? words : NULL;
    const char *path = test_temp_path("lf");
    write_one(path, table, 1, &entry);
    size_t size;
    char *text = test_read_file(path, &size), *changed = with_line_ends(text, i % 8 < 6, i % 5 < 2);
    assert_true(snprintf(both, sizeof both, "%s%s", changed, changed) < (int)sizeof both);
    path = test_write_file("crlf", both, strlen(both));
    wf_lattice_reader *reader;
    bool done = false;
    assert_ok(wf_lattice_reader_open(&path, 1, table, NULL, &reader, &err));
    for (int k = 0; k < 2; k++) {
      assert_ok(wf_lattice_reader_next(reader, &back, &done, &err));
      assert_false(done);
      assert_true(raw ? test_same_raw(entry.raw, back.raw)
                      : test_same_compact(entry.compact, back.compact));
      wf_lattice_entry_clear(&back);
    }
    assert_ok(wf_lattice_reader_next(reader, &back, &done, &err));
    assert_true(done);
    wf_lattice_reader_free(reader);
    free(text);
    free(changed);
    wf_lattice_free(entry.raw);
    wf_compact_lattice_free(entry.compact);
  }
  wf_symbols_free(words);
}

/* A word that is not one field of a line cannot be written as text. */
static void test_words_with_blanks(void **state) {
  (void)state;
  wf_error err = {0};
  wf_symbols *table;
  wf_lattice_writer *writer;
  wf_lattice_writer_options options;
  char key[] = "utt";
  wf_lattice_entry entry = {.key = key};
  test_rng rng = {3};
  do {
    wf_lattice_free(entry.raw);
    entry.raw = test_random_raw(&rng, &shape);
  } while (wf_lattice_get_view(entry.raw).num_arcs < 20);
  assert_ok(wf_symbols_create("words", &table, &err));
  for (int64_t i = 0; i < 10; i++) {
    char text[16];
    snprintf(text, sizeof text, "two %d", (int)i);
    assert_ok(wf_symbols_add(table, text, i, NULL, &err));
  }
  wf_lattice_writer_options_init(&options);
  options.format = 1;
  assert_ok(wf_lattice_writer_open(test_temp_path("t"), table, &options, &writer, &err));
  assert_int_equal(wf_lattice_writer_put(writer, &entry, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "holds a blank"));
  wf_lattice_writer_abort(writer);
  wf_lattice_free(entry.raw);
  wf_symbols_free(table);
}

static void test_states_in_any_order(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {4711};
  for (int i = 0; i < 200; i++) {
    char key[] = "utt";
    wf_lattice_entry entry = {.key = key}, back;
    if (i % 2 == 0)
      entry.raw = test_random_raw(&rng, &shape);
    else
      entry.compact = test_random_compact(&rng, &shape, i % 4 == 1);
    const char *path = test_temp_path("lat");
    write_one(path, NULL, 1, &entry);
    size_t size;
    char *text = test_read_file(path, &size), *mixed = scrambled(&rng, text);
    const char *other = test_write_file("mixed", mixed, strlen(mixed));
    if (!read_one(other, NULL, NULL, &back, &err)) fail_msg("%s:\n%s", err.message, mixed);
    test_lattice_paths a = i % 2 == 0 ? test_paths_of_raw(entry.raw, 1000000)
                                      : test_paths_of_compact(entry.compact, 1000000);
    test_lattice_paths b = i % 2 == 0 ? test_paths_of_raw(back.raw, 1000000)
                                      : test_paths_of_compact(back.compact, 1000000);
    if (!test_same_paths(&a, &b)) fail_msg("not the same paths:\n%s\n%s", text, mixed);
    test_paths_free(&a);
    test_paths_free(&b);
    free(text);
    free(mixed);
    wf_lattice_entry_clear(&back);
    wf_lattice_free(entry.raw);
    wf_compact_lattice_free(entry.compact);
  }
}

static void test_conversions(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {99};
  for (int i = 0; i < 300; i++) {
    wf_lattice *raw, *raw_again;
    wf_compact_lattice *compact;
    if (i % 2 == 0) {
      raw = test_random_raw(&rng, &shape);
      assert_ok(wf_compact_lattice_from_raw(raw, &compact, &err));
    } else {
      compact = test_random_compact(&rng, &shape, i % 4 == 1);
      assert_ok(wf_lattice_from_compact(compact, &raw, &err));
    }
    assert_ok(wf_lattice_from_compact(compact, &raw_again, &err));
    test_lattice_paths paths[3] = {test_paths_of_raw(raw, 1000000),
                                   test_paths_of_compact(compact, 1000000),
                                   test_paths_of_raw(raw_again, 1000000)};
    assert_true(test_same_paths(&paths[0], &paths[1]) && test_same_paths(&paths[0], &paths[2]));
    if (i % 2 == 0) assert_true(test_same_raw(raw, raw_again));
    wf_lattice_view view = wf_lattice_get_view(raw), again = wf_lattice_get_view(raw_again);
    assert_int_equal(view.num_states, again.num_states);
    for (int k = 0; k < 3; k++) test_paths_free(&paths[k]);
    wf_lattice_free(raw);
    wf_lattice_free(raw_again);
    wf_compact_lattice_free(compact);
  }
}

static void test_scales_and_kinds(void **state) {
  (void)state;
  wf_error err = {0};
  const char text[] = "a \n0 1 7 3 2,4\n1 2,8\n\n";
  const char *path = test_write_file("a", text, sizeof text - 1);
  wf_lattice_reader_options options;
  wf_lattice_reader_options_init(&options);
  options.lm_scale = 0.5f;
  options.acoustic_scale = 0.25f;
  options.kind = 2;
  wf_lattice_entry entry;
  assert_true(read_one(path, NULL, &options, &entry, &err));
  assert_null(entry.raw);
  wf_compact_lattice_view view = wf_compact_lattice_get_view(entry.compact);
  assert_true(view.num_states == 2 && view.num_arcs == 1 && view.num_labels == 1 &&
              view.labels[0] == 7 && view.arcs[0].word == 3);
  assert_true(view.arcs[0].weight.graph_cost == 1 && view.arcs[0].weight.acoustic_cost == 1 &&
              view.finals[1].graph_cost == 1 && view.finals[1].acoustic_cost == 2);
  assert_true(view.finals[0].graph_cost == INFINITY);
  wf_lattice_entry_clear(&entry);
}

static void test_many_records(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {3};
  const char *path = test_temp_path("many.ark"), *script = test_temp_path("many.scp"),
             *zipped = test_temp_path("many.gz");
  wf_lattice_writer *writer;
  wf_lattice_writer_options options;
  wf_lattice_writer_options_init(&options);
  options.scp = script;
  assert_ok(wf_lattice_writer_open(path, NULL, &options, &writer, &err));
  wf_lattice_entry entries[20];
  for (int i = 0; i < 20; i++) {
    char key[16];
    snprintf(key, sizeof key, "utt%d", i);
    entries[i] = (wf_lattice_entry){.key = strdup(key)};
    if (i % 3 == 0)
      entries[i].raw = test_random_raw(&rng, &shape);
    else
      entries[i].compact = test_random_compact(&rng, &shape, false);
    assert_ok(wf_lattice_writer_put(writer, &entries[i], &err));
  }
  wf_lattice_entry bad = {.key = (char[]){"a b"}, .raw = entries[0].raw};
  assert_int_equal(wf_lattice_writer_put(writer, &bad, &err), WF_ERR_ARGUMENT);
  assert_ok(wf_lattice_writer_close(writer, &err));
  test_shell("gzip -c %s > %s", path, zipped);
  char ark[512], scp[512];
  snprintf(ark, sizeof ark, "ark:%s", path);
  snprintf(scp, sizeof scp, "scp,p:%s", script);
  const char *sources[] = {path, ark, scp, script, zipped};
  wf_lattice_reader *reader;
  assert_ok(wf_lattice_reader_open(sources, 5, NULL, NULL, &reader, &err));
  for (int i = 0; i < 100; i++) {
    const wf_lattice_entry *want = &entries[i % 20];
    wf_lattice_entry entry;
    bool done;
    assert_ok(wf_lattice_reader_next(reader, &entry, &done, &err));
    assert_false(done);
    assert_string_equal(entry.key, want->key);
    assert_true(want->raw != NULL ? test_same_raw(entry.raw, want->raw)
                                  : test_same_compact(entry.compact, want->compact));
    wf_lattice_entry_clear(&entry);
  }
  wf_lattice_entry entry;
  bool done;
  assert_ok(wf_lattice_reader_next(reader, &entry, &done, &err));
  assert_true(done);
  wf_lattice_reader_free(reader);
  for (int i = 0; i < 20; i++) wf_lattice_entry_clear(&entries[i]);
}

static void test_malformed_text(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"u \n0 1 2 3 4 5\n\n", "line 1 of the lattice: more than five fields"},
      {"u \n0 1 2 3 1\n\n", "expected graph and acoustic cost, found '1'"},
      {"u \n0 1 2 3 1,2,3\n\n", "expected graph and acoustic cost"},
      {"u \n0 1 2 1,2,3_0\n\n", "expected a label in an alignment, found '0'"},
      {"u \n0 1 2 1,2,3__4\n\n", "expected a label in an alignment"},
      {"u \n0 1 2 nan,2,3\n\n", "expected graph cost, acoustic cost and labels"},
      {"u \n0 1 2 inf,2,3\n\n", "expected graph cost, acoustic cost and labels"},
      {"u \n0 1 2 3 -inf,-inf\n\n", "expected graph and acoustic cost"},
      {"u \n-1 1 2 3\n\n", "expected a state, found '-1'"},
      {"u \n0 99999999999 2 3\n\n", "expected a state, found '99999999999'"},
      {"u \n0 1 2 word\n\n", "or give a word table"},
      {"u \n0 1 2 3\n1 0,0,\n\n",
       "line 2 of the lattice: expected an arc or final state of a raw lattice"},
      {"u \n0 1 2 0,0,\n1 0,0\n\n", "of a compact lattice"},
      {"u \n0 1 2 3\n1 0 2 3\n1\n\n", "on a cycle"},
      {"u x\n", "neither a binary lattice nor one in text"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[256];
    int size = snprintf(text, sizeof text, "%sgood \n0 1 5\n1\n\n", cases[i].text);
    const char *path = test_write_file("bad", text, (size_t)size);
    wf_error err = {0};
    wf_lattice_reader *reader;
    wf_lattice_entry entry;
    bool done;
    char prefixed[512];
    snprintf(prefixed, sizeof prefixed, "ark:%s", path);
    const char *source = prefixed;
    assert_ok(wf_lattice_reader_open(&source, 1, NULL, NULL, &reader, &err));
    assert_int_equal(wf_lattice_reader_next(reader, &entry, &done, &err), WF_ERR_FORMAT);
    if (strstr(err.message, cases[i].message) == NULL || strstr(err.message, path) == NULL ||
        strstr(err.message, "utterance 'u'") == NULL)
      fail_msg("%s\n%s", cases[i].text, err.message);
    wf_lattice_entry_clear(&entry);
    bool lost = wf_lattice_reader_lost_rest(reader);
    assert_int_equal(lost, i + 1 == sizeof cases / sizeof *cases);
    assert_ok(wf_lattice_reader_next(reader, &entry, &done, &err));
    assert_int_equal(done, lost);
    if (!done) assert_string_equal(entry.key, "good");
    wf_lattice_entry_clear(&entry);
    wf_lattice_reader_free(reader);
  }
}

/* Every truncation of a binary archive is an error, except before the key. No changed byte does
 * harm. */
static void test_damaged_binary(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {5};
  for (int kind = 0; kind < 2; kind++) {
    wf_lattice_entry entry = {.key = (char[]){"u"}}, back;
    test_lattice_shape small = shape;
    small.num_frames = 3;
    if (kind == 0)
      entry.raw = test_random_raw(&rng, &small);
    else
      entry.compact = test_random_compact(&rng, &small, true);
    const char *path = test_temp_path("x");
    write_one(path, NULL, 0, &entry);
    size_t size;
    char *bytes = test_read_file(path, &size), ark[512];
    for (size_t cut = 1; cut < size; cut++) {
      snprintf(ark, sizeof ark, "ark:%s", test_write_file("cut", bytes, cut));
      if (read_one(ark, NULL, NULL, &back, &err))
        fail_msg("truncated at %zu of %zu, but accepted", cut, size);
      assert_int_equal(err.code, WF_ERR_FORMAT);
    }
    uint64_t refused = 0;
    for (size_t at = 2; at < size; at++) {
      char kept = bytes[at];
      bytes[at] = (char)test_next(&rng);
      snprintf(ark, sizeof ark, "ark:%s", test_write_file("flip", bytes, size));
      const char *source = ark;
      wf_lattice_reader *reader;
      bool done = false;
      assert_ok(wf_lattice_reader_open(&source, 1, NULL, NULL, &reader, &err));
      while (!done) {
        if (wf_lattice_reader_next(reader, &back, &done, &err) != WF_OK) refused++;
        wf_lattice_entry_clear(&back);
      }
      wf_lattice_reader_free(reader);
      bytes[at] = kept;
    }
    assert_true(refused > 20);
    free(bytes);
    wf_lattice_free(entry.raw);
    wf_compact_lattice_free(entry.compact);
  }
}

/* A header with more states than the file has, alignments of 2 GB, and so on: rejected without
 * allocating the memory. */
static void test_malicious_counts(void **state) {
  (void)state;
  static const char head[] =
      "u "
      "\xd6\xfd\xb2\x7e\6\0\0\0vector\x10\0\0\0compactlattice44\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\0\0"
      "\0\0\0\0\0\0\xff\xff\xff\x7f\0\0\0\0\0\0\0\0\0\0\0\0";
  static const char huge_alignment[] = "\0\0\0\0\0\0\0\0\xff\xff\xff\x7f";
  char bytes[256];
  wf_error err = {0};
  wf_lattice_entry entry;
  memcpy(bytes, head, sizeof head - 1);
  memcpy(bytes + sizeof head - 1, huge_alignment, sizeof huge_alignment);
  assert_false(read_one(test_write_file("huge", bytes, sizeof head + sizeof huge_alignment), NULL,
                        NULL, &entry, &err));
  assert_non_null(strstr(err.message, "an alignment needs 8589934588 bytes"));
}

static void test_unusual_lattices(void **state) {
  (void)state;
  wf_error err = {0};
  wf_lattice_entry entry;
  /* An empty lattice; a single final state; arcs of cost Zero, which are dropped with the states
   * after them; a last lattice without an empty line at the end. */
  static const struct {
    const char *text;
    bool compact;
    uint64_t num_states, num_arcs;
  } cases[] = {{"e \n\n", true, 0, 0},
               {"e \n5\n", true, 1, 0},
               {"e \n5 0.5,1\n", false, 1, 0},
               {"e \n0 1 4 Infinity,Infinity,\n1\n0 2 4 1,2,3_4\n2 0.25,0.5,7\n", true, 2, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *path = test_write_file("odd", cases[i].text, strlen(cases[i].text));
    for (int again = 0; again < 3;
         again++) { /* as it is, then written as binary, then written as text */
      if (!read_one(path, NULL, NULL, &entry, &err)) fail_msg("%zu: %s", i, err.message);
      assert_int_equal(entry.compact != NULL, cases[i].compact);
      uint64_t states = cases[i].compact ? wf_compact_lattice_get_view(entry.compact).num_states
                                         : wf_lattice_get_view(entry.raw).num_states;
      uint64_t arcs = cases[i].compact ? wf_compact_lattice_get_view(entry.compact).num_arcs
                                       : wf_lattice_get_view(entry.raw).num_arcs;
      assert_int_equal(states, cases[i].num_states);
      assert_int_equal(arcs, cases[i].num_arcs);
      path = test_temp_path("again");
      write_one(path, NULL, again % 2, &entry);
      wf_lattice_entry_clear(&entry);
    }
  }
  const char *pipe = "cat lat.ark |";
  wf_lattice_reader *reader;
  assert_int_equal(wf_lattice_reader_open(&pipe, 1, NULL, NULL, &reader, &err), WF_ERR_UNSUPPORTED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trips),       cmocka_unit_test(test_states_in_any_order),
      cmocka_unit_test(test_conversions),       cmocka_unit_test(test_scales_and_kinds),
      cmocka_unit_test(test_many_records),      cmocka_unit_test(test_malformed_text),
      cmocka_unit_test(test_damaged_binary),    cmocka_unit_test(test_malicious_counts),
      cmocka_unit_test(test_unusual_lattices),  cmocka_unit_test(test_crlf),
      cmocka_unit_test(test_words_with_blanks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
