/* test_matrix_writers.c - writers of score matrices, in each of their formats. */
#include "testing.h"

/* Files of the writers are read back by the reader. test_score.sh reads them with Python's readers.
 */
static void test_writers(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {7};
  for (int format = 0; format < 4; format++) {
    wf_matrix_writer_options options;
    wf_matrix_writer_options_init(&options);
    options.format = format;
    const char *path = test_temp_path((const char *[]){"out0", "out1", "out2", "out3"}[format]),
               *scp = test_temp_path("out.scp");
    if (format != 3) options.scp = scp;
    wf_matrix_writer *writer;
    wf_matrix all[4] = {0};
    assert_ok(wf_matrix_writer_open(path, &options, &writer, &err));
    for (int i = 0; i < 4; i++) {
      char key[16];
      snprintf(key, sizeof key, "k%d", i);
      all[i] = (wf_matrix){strdup(key), malloc(4000), i * 9, i == 0 ? 0 : 20 + i};
      for (int64_t j = 0; j < all[i].num_frames * all[i].num_columns; j++)
        all[i].data[j] = i == 1 ? -3 : -20 * test_unit(&rng);
      assert_ok(wf_matrix_writer_put(writer, &all[i], &err));
    }
    wf_matrix odd = {(char[]){"a b"}, all[1].data, 1, 1};
    if (format != 3) assert_int_equal(wf_matrix_writer_put(writer, &odd, &err), WF_ERR_ARGUMENT);
    odd.key = (char[]){"../x"};
    if (format == 3) assert_int_equal(wf_matrix_writer_put(writer, &odd, &err), WF_ERR_ARGUMENT);
    odd.data = (float[]){-INFINITY};
    if (format == 2) assert_int_equal(wf_matrix_writer_put(writer, &odd, &err), WF_ERR_ARGUMENT);
    assert_ok(wf_matrix_writer_close(writer, &err));
    const char *sources[2] = {path, scp};
    wf_score_reader *reader;
    assert_ok(wf_score_reader_open(sources, format == 3 ? 1 : 2, NULL, &reader, &err));
    for (int i = 0; i < (format == 3 ? 4 : 8); i++) {
      const wf_matrix *want = &all[i % 4];
      wf_matrix m;
      bool done;
      assert_ok(wf_score_reader_next(reader, &m, &done, &err));
      assert_false(done);
      assert_string_equal(m.key, want->key);
      assert_int_equal(m.num_frames, want->num_frames);
      if (m.num_frames > 0) assert_int_equal(m.num_columns, want->num_columns);
      for (int64_t j = 0; j < m.num_frames * m.num_columns; j++)
        assert_true(fabsf(m.data[j] - want->data[j]) <= (format == 2 ? 0.1f : 0));
      wf_matrix_clear(&m);
    }
    wf_score_reader_free(reader);
    for (int i = 0; i < 4; i++) wf_matrix_clear(&all[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_writers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
