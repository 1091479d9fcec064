/* test_result_formats.c - the writer of results, in each of its formats. */
#include <unistd.h>

#include "testing.h"

static void check_results(int format, const char *want) {
  wf_error err = {0};
  wf_result_writer_options options;
  wf_result_writer_options_init(&options);
  options.format = format;
  options.frame_shift = 0.04f;
  wf_result_writer *writer;
  const char *path = test_temp_path("results");
  assert_ok(wf_result_writer_open(path, &options, &writer, &err));
  const wf_timed_word words[] = {{"one", 0, 10, 0.75f}, {"t\"\\\xff\xc3\xa4", 12, 25, NAN}};
  const char *const flags[] = {"not_final", "narrowed"};
  const wf_hypothesis lines[] = {
      {.key = "u1",
       .words = words,
       .num_words = 2,
       .num_frames = 30,
       .cost = 12.5,
       .graph_cost = -INFINITY,
       .acoustic_cost = 1e-3,
       .flags = flags,
       .num_flags = 2},
      {.key = "u2", .num_frames = 0},
      {.key = "u3", .words = words, .num_words = 1, .error = "score is NaN"}};
  for (int i = 0; i < 3; i++) assert_ok(wf_result_writer_put(writer, &lines[i], &err));
  assert_int_not_equal(access(path, F_OK),
                       0); /* no file exists under the name until it is complete */
  assert_ok(wf_result_writer_close(writer, &err));
  char *text = test_read_file(path, NULL);
  assert_string_equal(text, want);
  free(text);
  unlink(path);
}

static void test_result_formats(void **state) {
  (void)state;
  check_results(0, "u1 one t\"\\\xff\xc3\xa4\nu2\nu3\n");
  check_results(1, "one t\"\\\xff\xc3\xa4\n\n\n");
  check_results(2, "u1 1 0.000 0.400 one 0.7500\nu1 1 0.480 0.520 t\"\\\xff\xc3\xa4\n");
  check_results(3,
                "{\"key\": \"u1\", \"text\": \"one t\\\"\\\\\\ufffd\xc3\xa4\", \"words\": "
                "[{\"word\": \"one\", \"start\": 0.000, \"end\": 0.400, \"confidence\": 0.7500}, "
                "{\"word\": \"t\\\"\\\\\\ufffd\xc3\xa4\", \"start\": 0.480, \"end\": 1.000}], "
                "\"cost\": 12.5, \"graph_cost\": null, \"acoustic_cost\": 0.001, "
                "\"frames\": 30, \"flags\": [\"not_final\", \"narrowed\"]}\n"
                "{\"key\": \"u2\", \"text\": \"\", \"words\": [], \"cost\": 0, \"graph_cost\": 0, "
                "\"acoustic_cost\": 0, \"frames\": 0, \"flags\": []}\n"
                "{\"key\": \"u3\", \"error\": \"score is NaN\"}\n");
  check_results(4, "one t\"\\\xff\xc3\xa4 (u1)\n(u2)\n(u3)\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_result_formats)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
