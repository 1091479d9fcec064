/* test_captions.c - words with times as SRT and WebVTT: where a caption ends, how its lines break,
 * one file for one utterance, folders. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"

enum { SRT = 5, VTT = 6 };

static wf_result_writer *open_writer(int format, const char *path) {
  wf_error err = {0};
  wf_result_writer_options options;
  wf_result_writer_options_init(&options);
  options.format = format;
  options.frame_shift = 0.04f;
  wf_result_writer *writer;
  assert_ok(wf_result_writer_open(path, &options, &writer, &err));
  return writer;
}

static void check(int format, const wf_timed_word *words, size_t num_words, const char *want) {
  wf_error err = {0};
  const char *path = test_temp_path("captions");
  wf_result_writer *writer = open_writer(format, path);
  const wf_hypothesis line = {.key = "u1", .words = words, .num_words = num_words};
  assert_ok(wf_result_writer_put(writer, &line, &err));
  assert_ok(wf_result_writer_close(writer, &err));
  char *text = test_read_file(path, NULL);
  assert_string_equal(text, want);
  free(text);
  unlink(path);
}

static void test_formats(void **state) {
  (void)state;
  const wf_timed_word words[] = {{"a<b", 0, 10, NAN}, {"R&D", 12, 25, 0.5f}};
  check(SRT, words, 2, "1\n00:00:00,000 --> 00:00:01,000\na<b R&D\n");
  check(VTT, words, 2, "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\na&lt;b R&amp;D\n");
  check(SRT, NULL, 0, "");
  check(VTT, NULL, 0, "WEBVTT\n");
}

static void test_times(void **state) {
  (void)state;
  const wf_timed_word late[] = {{"x", 90000, 180000, NAN}}; /* an hour to two hours */
  check(SRT, late, 1, "1\n01:00:00,000 --> 02:00:00,000\nx\n");
}

/* A caption ends at a pause of more than a second, and before it has more than 6 seconds. */
static void test_pauses_and_length(void **state) {
  (void)state;
  const wf_timed_word paused[] = {{"a", 0, 10, NAN}, {"b", 35, 40, NAN}, {"c", 66, 70, NAN}};
  check(SRT, paused, 3,
        "1\n00:00:00,000 --> 00:00:01,600\na b\n\n2\n00:00:02,640 --> 00:00:02,800\nc\n");
  const wf_timed_word slow[] = {{"a", 0, 75, NAN}, {"b", 80, 150, NAN}, {"c", 150, 151, NAN}};
  check(VTT, slow, 3,
        "WEBVTT\n\n00:00:00.000 --> 00:00:06.000\na b\n\n00:00:06.000 --> 00:00:06.040\nc\n");
}

/* At most 84 letters, not bytes, with blanks; two lines from 43 letters on. */
static void test_lines(void **state) {
  (void)state;
  char text[64 * 3 + 1] = "";
  for (int i = 0; i < 42; i++) strcat(text, "\xe8\xaa\x9e");
  const wf_timed_word one[] = {{text, 0, 1, NAN}};
  char want[512];
  snprintf(want, sizeof want, "1\n00:00:00,000 --> 00:00:00,040\n%s\n", text);
  check(SRT, one, 1, want);
  const wf_timed_word two[] = {{text, 0, 1, NAN}, {"abc", 1, 2, NAN}};
  snprintf(want, sizeof want, "1\n00:00:00,000 --> 00:00:00,080\n%s\nabc\n", text);
  check(SRT, two, 2, want);
  wf_timed_word many[20]; /* 17 words of 4 letters are 84 letters, so the 18th begins a caption */
  for (int i = 0; i < 20; i++) many[i] = (wf_timed_word){"four", i, i + 1, NAN};
  check(SRT, many, 20,
        "1\n00:00:00,000 --> 00:00:00,680\nfour four four four four four four four four\nfour "
        "four four four four four four four\n\n2\n00:00:00,680 --> 00:00:00,800\nfour four four\n");
  char longest[201]; /* a word longer than a caption has one to itself */
  memset(longest, 'x', 200);
  longest[200] = '\0';
  const wf_timed_word big[] = {{"a", 0, 1, NAN}, {longest, 1, 2, NAN}, {"b", 2, 3, NAN}};
  snprintf(want, sizeof want,
           "1\n00:00:00,000 --> 00:00:00,040\na\n\n2\n00:00:00,040 --> 00:00:00,080\n%s\n\n3\n"
           "00:00:00,080 --> 00:00:00,120\nb\n",
           longest);
  check(SRT, big, 3, want);
}

static void test_one_utterance_a_file(void **state) {
  (void)state;
  wf_error err = {0};
  const char *path = test_temp_path("captions");
  const wf_timed_word word = {"x", 0, 1, NAN};
  wf_result_writer *writer = open_writer(SRT, path);
  const wf_hypothesis lines[] = {{.key = "u0", .error = "score is NaN"},
                                 {.key = "u1", .words = &word, .num_words = 1},
                                 {.key = "u2", .words = &word, .num_words = 1}};
  assert_ok(wf_result_writer_put(writer, &lines[0], &err)); /* a failure has no captions */
  assert_ok(wf_result_writer_put(writer, &lines[1], &err));
  assert_int_equal(wf_result_writer_put(writer, &lines[2], &err), WF_ERR_UNSUPPORTED);
  assert_non_null(strstr(err.message, "'u2' is a second utterance"));
  wf_result_writer_abort(writer);
  assert_int_not_equal(access(path, F_OK), 0);
}

static void test_folder(void **state) {
  (void)state;
  wf_error err = {0};
  char folder[512], file[600];
  snprintf(folder, sizeof folder, "%s/", test_temp_path("captions.folder"));
  const wf_timed_word word = {"x", 0, 1, NAN};
  const char *const keys[] = {"u1", "u2"};
  wf_result_writer *writer = open_writer(VTT, folder);
  for (int i = 0; i < 2; i++) {
    const wf_hypothesis line = {.key = keys[i], .words = &word, .num_words = 1};
    assert_ok(wf_result_writer_put(writer, &line, &err));
  }
  const wf_hypothesis bad[] = {{.key = "u1"}, {.key = "../u3"}, {.key = ".u3"}, {.key = ""}};
  for (int i = 0; i < 4; i++)
    assert_int_not_equal(wf_result_writer_put(writer, &bad[i], &err), WF_OK);
  const wf_hypothesis failed = {.key = "u4", .error = "score is NaN"};
  assert_ok(wf_result_writer_put(writer, &failed, &err));
  assert_ok(wf_result_writer_close(writer, &err));
  for (int i = 0; i < 2; i++) {
    snprintf(file, sizeof file, "%s%s.vtt", folder, keys[i]);
    char *text = test_read_file(file, NULL);
    assert_string_equal(text, "WEBVTT\n\n00:00:00.000 --> 00:00:00.040\nx\n");
    free(text);
    unlink(file);
  }
  assert_int_equal(rmdir(folder), 0); /* nothing else is in it */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_formats),
      cmocka_unit_test(test_times),
      cmocka_unit_test(test_pauses_and_length),
      cmocka_unit_test(test_lines),
      cmocka_unit_test(test_one_utterance_a_file),
      cmocka_unit_test(test_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
