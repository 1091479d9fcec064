/* test_symbols.c - symbol tables: labels and texts, files of text, and binary tables that OpenFst
 * wrote, of which every byte is kept. */
#include "fst/symbols.h"
#include "testing.h"

static void test_symbols(void **state) {
  (void)state;
  wf_error err = {0};
  wf_symbols *symbols;
  assert_ok(wf_symbols_create("t", &symbols, &err));
  int64_t key;
  assert_ok(wf_symbols_add(symbols, "<eps>", 0, NULL, &err));
  for (int i = 0; i < 5000; i++) {
    char text[16];
    snprintf(text, sizeof text, "w%d", i);
    assert_ok(wf_symbols_add(symbols, text, -1, &key, &err));
    assert_int_equal(key, i + 1);
  }
  assert_int_equal(wf_symbols_find(symbols, "w4321"), 4322);
  assert_int_equal(wf_symbols_find(symbols, "w"), -1);
  assert_string_equal(wf_symbols_text(symbols, 17), "w16");
  assert_int_equal(wf_symbols_add(symbols, "w5", 9999, NULL, &err), WF_ERR_FORMAT);
  assert_int_equal(wf_symbols_add(symbols, "new", 3, NULL, &err), WF_ERR_FORMAT);
  const char *path = test_temp_path("symbols.txt");
  assert_ok(wf_symbols_write(symbols, path, &err));
  wf_symbols *again;
  assert_ok(wf_symbols_read(path, &again, &err));
  assert_int_equal(wf_symbols_count(again), 5001);
  assert_int_equal(wf_symbols_find(again, "w4321"), 4322);
  wf_symbols_free(again);
  wf_symbols_free(symbols);
}

/* Symbol tables inside OpenFst files may hold an empty symbol. It is read, kept and written there.
 * A text file cannot hold one. */
static void test_empty_symbol(void **state) {
  (void)state;
  wf_error err = {0};
  wf_symbols *symbols;
  wf_fst *plain = test_fst_of(WF_TROPICAL, "0 1 1 2 1;1"), *fst, *again;
  assert_ok(wf_symbols_create("t", &symbols, &err));
  assert_ok(wf_symbols_add(symbols, "<eps>", 0, NULL, &err));
  assert_ok(wf_symbols_add(symbols, "XYZ", 7, NULL, &err));
  assert_int_equal(wf_symbols_add(symbols, "", 8, NULL, &err), WF_ERR_ARGUMENT);
  assert_ok(wf_fst_with_symbols(plain, symbols, NULL, &fst, &err));
  const char *path = test_temp_path("empty.fst");
  assert_ok(wf_fst_write(fst, path, WF_FORMAT_OPENFST_VECTOR, &err));
  wf_fst_free(fst);
  wf_symbols_free(symbols);
  static const char named[] = "\3\0\0\0XYZ", empty[] = "\0\0\0\0";
  char bytes[4096];
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t size = fread(bytes, 1, sizeof bytes, file), at = 0;
  fclose(file);
  while (at + 7 <= size && memcmp(bytes + at, named, 7) != 0) at++;
  assert_true(at + 7 <= size && size < sizeof bytes);
  file = fopen(path, "wb");
  assert_non_null(file);
  fwrite(bytes, 1, at, file);
  fwrite(empty, 1, 4, file);
  fwrite(bytes + at + 7, 1, size - at - 7, file);
  fclose(file);
  for (int round = 0; round < 2; round++) {
    assert_ok(wf_fst_read(path, &again, &err));
    assert_int_equal(wf_symbols_find(wf_fst_isymbols(again), ""), 7);
    assert_string_equal(wf_symbols_text(wf_fst_isymbols(again), 7), "");
    const char *text = test_temp_path("empty.txt");
    assert_int_equal(wf_symbols_write(wf_fst_isymbols(again), text, &err), WF_ERR_ARGUMENT);
    assert_null(fopen(text, "rb"));
    assert_ok(wf_fst_write(again, path, WF_FORMAT_OPENFST_VECTOR, &err));
    wf_fst_free(again);
  }
  wf_fst_free(plain);
}

static void test_bad_symbol_tables(void **state) {
  (void)state;
  static const char *const bad[] = {"a\n",        "a b\n",      "a 1 2\n",        "a -1\n",
                                    "a 1\na 2\n", "a 1\nb 1\n", "a 4294967296\n", "\xff 3\n"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    wf_error err = {0};
    wf_symbols *symbols;
    const char *path = test_write_file("bad.txt", bad[i], strlen(bad[i]));
    assert_int_not_equal(wf_symbols_read(path, &symbols, &err), WF_OK);
    assert_null(symbols);
    assert_non_null(strstr(err.message, "bad.txt"));
  }
}

/* --- tables of OpenFst -------------------------------------------------------------------- */

enum { MAX_ENTRIES = 40, MAX_BYTES = 4096 };

struct table {
  int count;
  struct {
    char text[8];
    int32_t size; /* a text with a NUL byte is not found */
    int64_t key;
  } entries[MAX_ENTRIES];
  int64_t next_key;
  uint8_t bytes[MAX_BYTES];
  size_t size;
};

static void put(struct table *table, const void *data, size_t size) {
  memcpy(table->bytes + table->size, data, size);
  table->size += size;
}

static void encode(struct table *table) {
  const int32_t magic = 2125658996, name_size = 4;
  const int64_t count = table->count;
  table->size = 0;
  put(table, &magic, 4);
  put(table, &name_size, 4);
  put(table, "t\xe9 b", 4);
  put(table, &table->next_key, 8);
  put(table, &count, 8);
  for (int i = 0; i < table->count; i++) {
    const int32_t size = table->entries[i].size;
    put(table, &size, 4);
    put(table, table->entries[i].text, (size_t)size);
    put(table, &table->entries[i].key, 8);
  }
}

static int64_t random_key(test_rng *rng, int place) {
  const int64_t far[] = {-1, -3, INT32_MAX, (int64_t)INT32_MAX + 1, INT64_MAX, INT64_MIN, 1 << 30};
  switch (test_below(rng, 4)) {
    case 0: return far[test_below(rng, 7)];
    case 1: return test_below(rng, 50);
    default: return place;
  }
}

static void random_table(test_rng *rng, struct table *table) {
  static const char letters[] = {'a', 'b', ' ', '\n', '\t', '\xe9', '\xc3', '\xa9', '\r', '\0'};
  table->count = (int)test_below(rng, MAX_ENTRIES);
  table->next_key = test_below(rng, 3) == 0 ? test_below(rng, 100) : 0;
  for (int i = 0; i < table->count; i++) {
    const uint32_t size = test_below(rng, 4);
    table->entries[i].size = (int32_t)size;
    memset(table->entries[i].text, 0, sizeof table->entries[i].text);
    for (uint32_t k = 0; k < size; k++)
      table->entries[i].text[k] = letters[test_below(rng, sizeof letters)];
    const int64_t key = table->entries[i].key = random_key(rng, i);
    if (key >= table->next_key) table->next_key = key < INT64_MAX ? key + 1 : key;
  }
  encode(table);
}

/* What OpenFst makes of a table: a text keeps its first key; a key has its last text, but its first
 * one if it is among the dense keys. -1 in places: not found. */
struct model {
  int num_texts, dense;
  int of_text[MAX_ENTRIES]; /* places of the texts that count */
};

static int find_text(const struct table *table, const struct model *model, const char *text) {
  for (int k = 0; k < model->num_texts; k++)
    if (strcmp(table->entries[model->of_text[k]].text, text) == 0) return model->of_text[k];
  return -1;
}

static int find_key(const struct table *table, const struct model *model, int64_t key) {
  int found = -1;
  for (int k = 0; k < model->num_texts; k++)
    if (table->entries[model->of_text[k]].key == key &&
        (found < 0 || key < 0 || key >= model->dense))
      found = model->of_text[k];
  return found;
}

static void build_model(const struct table *table, struct model *model) {
  *model = (struct model){0};
  for (int i = 0; i < table->count; i++) {
    const int64_t key = table->entries[i].key;
    const char *text = table->entries[i].text;
    if ((int32_t)strlen(text) != table->entries[i].size) continue;
    if (key == -1 || find_text(table, model, text) >= 0) continue;
    model->of_text[model->num_texts++] = i;
    if (key == i && i == model->dense) model->dense++;
  }
}

static bool is_label(int64_t key) { return key >= 0 && key <= INT32_MAX; }

static void check_lookups(const struct table *table, const wf_symbols *symbols) {
  struct model model;
  build_model(table, &model);
  int64_t key, largest = -1;
  int labels = 0;
  assert_int_equal(wf_symbols_num_entries(symbols), table->count);
  assert_null(wf_symbols_entry(symbols, (size_t)table->count, NULL));
  for (int i = 0; i < table->count; i++) {
    const char *text = table->entries[i].text;
    assert_string_equal(wf_symbols_entry(symbols, (size_t)i, &key), text);
    assert_true(key == table->entries[i].key);
    const int first = find_text(table, &model, text), named = find_key(table, &model, key);
    const int64_t found = first >= 0 ? table->entries[first].key : -1;
    assert_int_equal(wf_symbols_find(symbols, text), is_label(found) ? found : -1);
    const char *name = wf_symbols_text(symbols, key);
    assert_int_equal(name != NULL, named >= 0);
    if (named >= 0) assert_string_equal(name, table->entries[named].text);
    if (first == i && is_label(key) && key > largest) largest = key;
  }
  const char *text;
  int64_t keys[MAX_ENTRIES];
  for (; (text = wf_symbols_at(symbols, (size_t)labels, &key)) != NULL; labels++) {
    assert_true(is_label(key));
    assert_string_equal(text, wf_symbols_text(symbols, key));
    keys[labels] = key;
    for (int i = 0; i < labels; i++) assert_true(keys[i] != key);
  }
  assert_int_equal(wf_symbols_count(symbols), labels);
  assert_int_equal(wf_symbols_next_key(symbols), largest + 1);
}

/* Random tables with negative, far and repeated keys, repeated texts, empty ones, and bytes of any
 * kind: they are found as OpenFst finds them, and written as they were read. */
static void test_tables_of_openfst(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 3000; seed++) {
    test_rng rng = {seed};
    wf_error err = {0};
    static struct table table;
    wf_symbols *symbols;
    void *bytes;
    size_t size;
    int64_t key;
    random_table(&rng, &table);
    if (seed % 2 == 0) {
      assert_ok(wf_symbols_read_memory(table.bytes, table.size, "memory", &symbols, &err));
    } else {
      const char *path = test_write_file("table.bin", (const char *)table.bytes, table.size);
      assert_ok(wf_symbols_read(path, &symbols, &err));
    }
    assert_string_equal(wf_symbols_name(symbols), "t\xe9 b");
    check_lookups(&table, symbols);
    assert_ok(wf_symbols_write_memory(symbols, &bytes, &size, &err));
    assert_int_equal(size, table.size);
    assert_memory_equal(bytes, table.bytes, size);
    wf_free(bytes);
    const int64_t next = wf_symbols_next_key(symbols);
    if (is_label(next)) {
      assert_ok(wf_symbols_add(symbols, "a new one", -1, &key, &err));
      assert_int_equal(key, next);
      assert_string_equal(wf_symbols_text(symbols, key), "a new one");
    } else {
      assert_int_equal(wf_symbols_add(symbols, "a new one", -1, &key, &err), WF_ERR_LIMIT);
    }
    wf_symbols_free(symbols);
  }
}

/* In a file of an fst the tables stay as they are, in every format. */
static void test_tables_in_fst_files(void **state) {
  (void)state;
  const wf_fst_format formats[] = {WF_FORMAT_OPENFST_VECTOR, WF_FORMAT_OPENFST_CONST,
                                   WF_FORMAT_NATIVE};
  wf_fst *plain = test_fst_of(WF_TROPICAL, "0 1 1 2 1;1");
  for (uint64_t seed = 1; seed <= 300; seed++) {
    test_rng rng = {seed};
    wf_error err = {0};
    static struct table table;
    wf_symbols *symbols;
    wf_fst *fst, *again;
    void *bytes, *written;
    size_t size, num_written;
    random_table(&rng, &table);
    assert_ok(wf_symbols_read_memory(table.bytes, table.size, "memory", &symbols, &err));
    assert_ok(wf_fst_with_symbols(plain, NULL, symbols, &fst, &err));
    assert_ok(wf_fst_write_memory(fst, formats[seed % 3], &bytes, &size, &err));
    assert_ok(wf_fst_read_memory(bytes, size, "memory", &again, &err));
    assert_ok(wf_symbols_write_memory(wf_fst_osymbols(again), &written, &num_written, &err));
    assert_int_equal(num_written, table.size);
    assert_memory_equal(written, table.bytes, num_written);
    wf_free(written);
    wf_fst_free(again);
    const char *path = test_write_file("table.fst", bytes, size);
    assert_ok(wf_fst_read(path, &again, &err));
    assert_ok(wf_fst_write_memory(again, formats[seed % 3], &written, &num_written, &err));
    assert_int_equal(num_written, size);
    assert_memory_equal(written, bytes, size);
    wf_free(written);
    wf_free(bytes);
    wf_fst_free(again);
    wf_fst_free(fst);
    wf_symbols_free(symbols);
  }
  wf_fst_free(plain);
}

/* Texts that a line cannot hold are refused by the writers of text; others come back. */
static void test_fields(void **state) {
  (void)state;
  static const struct {
    const char *text;
    bool fits;
  } cases[] = {{"hello world", false},
               {"x\ny", false},
               {"\t", false},
               {" ", false},
               {"a ", false},
               {"x\r", true},
               {"\xC2\xA0", true},
               {"\x0b", true},
               {"\xE3\x80\x80", true},
               {"#0", true},
               {"\xEF\xBB\xBF"
                "a",
                false}};
  wf_fst *plain = test_fst_of(WF_TROPICAL, "0 1 0 0 1;1"), *fst;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wf_error err = {0};
    wf_symbols *symbols, *read;
    char *text;
    size_t size;
    const bool mark = cases[i].text[0] == '\xEF';
    assert_ok(wf_symbols_create("t", &symbols, &err));
    assert_ok(wf_symbols_add(symbols, cases[i].text, 0, NULL, &err));
    const char *path = test_temp_path("fields.txt");
    remove(path);
    assert_int_equal(wf_symbols_write(symbols, path, &err),
                     cases[i].fits ? WF_OK : WF_ERR_ARGUMENT);
    if (cases[i].fits) {
      assert_ok(wf_symbols_read(path, &read, &err));
      assert_int_equal(wf_symbols_find(read, cases[i].text), 0);
      wf_symbols_free(read);
    } else {
      assert_null(fopen(path, "rb"));
    }
    wf_status status = wf_fst_print_memory(plain, symbols, symbols, NULL, &text, &size, &err);
    assert_int_equal(status, cases[i].fits || mark ? WF_OK : WF_ERR_ARGUMENT);
    if (status == WF_OK) {
      assert_ok(wf_fst_compile_memory(text, size, "text", symbols, symbols, NULL, &fst, &err));
      wf_fst_free(fst);
    }
    wf_free(text);
    wf_symbols_free(symbols);
  }
  wf_fst_free(plain);
}

static void test_keys_outside(void **state) {
  (void)state;
  const int64_t bad[] = {-2, INT64_MIN, (int64_t)INT32_MAX + 1, INT64_MAX};
  wf_error err = {0};
  wf_symbols *symbols;
  assert_ok(wf_symbols_create("t", &symbols, &err));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_not_equal(wf_symbols_add(symbols, "a", bad[i], NULL, &err), WF_OK);
  assert_int_equal(wf_symbols_num_entries(symbols), 0);
  wf_symbols_free(symbols);
}

static void test_damaged_tables(void **state) {
  (void)state;
  test_rng rng = {5};
  static struct table table;
  do random_table(&rng, &table);
  while (table.count < 20);
  for (size_t size = 0; size < table.size; size++) {
    wf_error err = {0};
    wf_symbols *symbols;
    if (size >= 4)
      assert_int_equal(wf_symbols_read_memory(table.bytes, size, "cut", &symbols, &err),
                       WF_ERR_FORMAT);
  }
  wf_error err = {0};
  wf_symbols *symbols;
  table.bytes[table.size++] = 0;
  assert_int_equal(wf_symbols_read_memory(table.bytes, table.size, "long", &symbols, &err),
                   WF_ERR_FORMAT);
  assert_non_null(strstr(err.message, "bytes follow"));
  assert_null(symbols);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_symbols),
                                     cmocka_unit_test(test_empty_symbol),
                                     cmocka_unit_test(test_bad_symbol_tables),
                                     cmocka_unit_test(test_tables_of_openfst),
                                     cmocka_unit_test(test_tables_in_fst_files),
                                     cmocka_unit_test(test_fields),
                                     cmocka_unit_test(test_keys_outside),
                                     cmocka_unit_test(test_damaged_tables)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
