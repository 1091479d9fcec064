/* test_platform.c - what platform.h promises on every system. The wheels' tests run it on all of them. */
#include "base/platform.h"

#include <errno.h>

#include "base/clock.h"
#include "base/input.h"
#include "testing.h"

#if defined(_WIN32)
#include <windows.h>
#endif

/* U+00E9, U+4F60 and U+1F600, which no code page of Windows has together. */
#define NAME "\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x98\x80"

static void write_file(const char *path, const char *text) {
  wf_error err = {0};
  wf_output *output;
  assert_ok(wf_output_open(path, &output, &err));
  wf_output_write(output, text, strlen(text));
  assert_ok(wf_output_close(output, &err));
}

static void assert_content(const char *path, const char *text) {
  char bytes[64] = "";
  const int fd = wf__file_read_only(path);
  assert_true(fd >= 0);
  assert_int_equal(wf__file_read(fd, bytes, sizeof bytes - 1), strlen(text));
  assert_string_equal(bytes, text);
  wf__file_close(fd);
}

static void test_files(void **unused) {
  char bytes[8] = "";
  uint64_t size = 0;
  const char *path = test_temp_path(NAME ".txt");
  assert_int_equal(wf__path_kind(path), WF__FILE_NONE);
  assert_int_equal(wf__file_read_only(path), -1);
  assert_int_equal(errno, ENOENT);
  const int fd = wf__file_create(path);
  assert_true(fd >= 0);
  assert_int_equal(wf__file_create(path), -1);
  assert_int_equal(errno, EEXIST);
  assert_int_equal(wf__file_write(fd, "a\r\nb\n\x1A", 6), 6);
  assert_int_equal(wf__file_write_at(fd, "c", 1, 3), 1);
  assert_int_equal(wf__file_write(fd, "d", 1), 1); /* the position is where it was */
  wf__file_close(fd);
  assert_int_equal(wf__path_kind(path), WF__FILE_REGULAR);
  assert_content(path,
                 "a\r\nc\n\x1A"
                 "d");
  const int again = wf__file_read_only(path);
  assert_int_equal(wf__file_kind_of(again, &size), WF__FILE_REGULAR);
  assert_int_equal(size, 7);
  assert_int_equal(wf__file_read_at(again, bytes, 2, 3), 2);
  assert_memory_equal(bytes, "c\n", 2);
  assert_int_equal(wf__file_read_at(again, bytes, 2, 7), 0);
  assert_int_equal(wf__file_read(again, bytes, 1), 1);
  assert_int_equal(bytes[0], 'a');
  wf__file_close(again);
  assert_int_equal(wf__path_remove(path), 0);
  assert_int_equal(wf__path_kind(path), WF__FILE_NONE);
}

/* A file that is open and mapped is replaced, and its reader keeps the old bytes. */
static void test_replace_open_file(void **unused) {
  wf_error err = {0};
  wf__input input;
  const char *path = test_temp_path("replaced");
  write_file(path, "old");
  const int fd = wf__file_read_only(path);
  assert_true(fd >= 0);
  write_file(path, "newer");
  assert_content(path, "newer");
  wf__file_close(fd);
  assert_ok(wf__input_open(path, &input, &err));
  write_file(path, "newest");
  assert_content(path, "newest");
  assert_int_equal(input.size, 5);
  assert_memory_equal(input.data, "newer", 5);
  wf__input_close(&input);
}

static void test_temporary_file(void **unused) {
  char bytes[4];
  const char *path = test_temp_path("temporary");
  assert_int_equal(wf__path_make_folder(path), 0);
  assert_int_equal(wf__path_make_folder(path), -1);
  assert_int_equal(errno, EEXIST);
  const int fd = wf__file_temporary(path);
  assert_true(fd >= 0);
  assert_int_equal(wf__file_write_at(fd, "xyz", 3, (uint64_t)1 << 32), 3);
  assert_int_equal(wf__file_read_at(fd, bytes, 3, (uint64_t)1 << 32), 3);
  assert_memory_equal(bytes, "xyz", 3);
  wf__file_close(fd);
  wf__folder *folder = wf__folder_open(path);
  assert_non_null(folder);
  for (const char *name; (name = wf__folder_next(folder)) != NULL;) assert_int_equal(name[0], '.');
  wf__folder_close(folder);
}

static void test_folder(void **unused) {
  char path[640];
  int found = 0;
  const char *place = test_temp_path("folder");
  assert_null(wf__folder_open(place));
  assert_int_equal(wf__path_make_folder(place), 0);
  assert_int_equal(wf__path_kind(place), WF__FILE_FOLDER);
  snprintf(path, sizeof path, "%s/%s", place, NAME);
  write_file(path, "");
  wf__folder *folder = wf__folder_open(place);
  assert_non_null(folder);
  for (const char *name; (name = wf__folder_next(folder)) != NULL;)
    if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
      assert_string_equal(name, NAME);
      found++;
    }
  wf__folder_close(folder);
  assert_int_equal(found, 1);
}

/* A path of 400 characters; Windows has a limit of 260 for others than those that are asked for. */
static void test_long_path(void **unused) {
  char path[1024];
  size_t size = (size_t)snprintf(path, sizeof path, "%s", test_temp_path("long"));
  for (int depth = 0; depth < 4; depth++) {
    assert_int_equal(wf__path_make_folder(path), 0);
    size += (size_t)snprintf(path + size, sizeof path - size, "/%0100d", depth);
  }
  write_file(path, "deep");
  assert_content(path, "deep");
}

static void test_names(void **unused) {
  assert_string_equal(wf__path_name("a/b.txt"), "b.txt");
  assert_string_equal(wf__path_name("b.txt"), "b.txt");
  assert_string_equal(wf__path_name("a/"), "");
  assert_true(wf__path_is_name("utt-1"));
  assert_true(wf__path_is_name(NAME));
  assert_false(wf__path_is_name("a/b"));
  assert_false(wf__path_is_name(""));
#if defined(_WIN32)
  assert_string_equal(wf__path_name("C:\\a\\b.txt"), "b.txt");
  assert_string_equal(wf__path_name("C:b.txt"), "b.txt");
  assert_string_equal(wf__path_name("a\\"), "");
  assert_false(wf__path_is_name("a\\b"));
  assert_false(wf__path_is_name("a:b"));
  assert_false(wf__path_is_name("a."));
#else
  assert_string_equal(wf__path_name("a\\b"), "a\\b");
  assert_true(wf__path_is_name("a:b"));
#endif
}

#if defined(_WIN32)
/* Both separators name the same file, also in long paths and in the library's writers. */
static void test_both_separators(void **unused) {
  char path[1024], back[1024];
  const int size = snprintf(path, sizeof path, "%s", test_temp_path("separators"));
  assert_int_equal(wf__path_make_folder(path), 0);
  for (int letters = 1; letters <= 200; letters += 199) { /* 260 characters together */
    snprintf(path + size, sizeof path - (size_t)size, "/%0*d-%s", letters, 0, NAME);
    snprintf(back, sizeof back, "%s", path);
    for (char *at = back; *at != '\0'; at++)
      if (*at == '/') *at = '\\';
    write_file(back, "text");
    assert_content(path, "text");
    assert_string_equal(wf__path_name(back), path + size + 1);
    assert_int_equal(wf__path_remove(back), 0);
    assert_int_equal(wf__path_kind(path), WF__FILE_NONE);
  }
}

/* The console takes UTF-8 in both directions, and arguments are UTF-8. */
static void test_console(void **unused) {
  int argc = 0;
  char **argv = NULL;
  AllocConsole();                               /* fails if there is one */
  const bool has_console = GetConsoleCP() != 0; /* Wine without a terminal has none */
  wf__program_start(&argc, &argv);
  if (has_console) assert_int_equal(GetConsoleOutputCP(), CP_UTF8);
  if (has_console) assert_int_equal(GetConsoleCP(), CP_UTF8);
  assert_int_equal(argc, 1);
  assert_non_null(strstr(wf__path_name(argv[0]), "test_platform"));
}
#endif

static void test_memory_and_processors(void **unused) {
  uint8_t *memory = wf__aligned_alloc(64, 128);
  assert_non_null(memory);
  assert_int_equal((uintptr_t)memory % 64, 0);
  memset(memory, 1, 128);
  wf__aligned_free(memory);
  memory = malloc(100);
  assert_true(wf__usable_bytes(memory) >= 100);
  free(memory);
  assert_true(wf__peak_bytes() > 1 << 16 && wf__peak_bytes() < (uint64_t)1 << 36);
  assert_true(wf__num_processors() >= 1 && wf__num_processors() < 1 << 16);
}

static void test_timed_wait(void **unused) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition;
  wf__timed_init(&condition);
  pthread_mutex_lock(&mutex);
  const double begin = wf__now_s();
  while (!wf__timed_wait(&condition, &mutex, 50 * 1000 * 1000)) {
  }
  const double seconds = wf__now_s() - begin;
  assert_true(seconds > 0.03 && seconds < 10);
  pthread_mutex_unlock(&mutex);
  pthread_cond_destroy(&condition);
}

static void add_up(void *user, const void *data, size_t size) {
  char *text = user;
  memcpy(text + strlen(text), data, size);
}

static void test_stdio(void **unused) {
  char written[64] = "", *line = NULL;
  size_t room = 0;
  FILE *file = wf__stdio_writer(add_up, written);
  assert_non_null(file);
  fprintf(file, "%d\n", 1);
  fprintf(file, "two\n");
  assert_int_equal(wf__stdio_close_writer(file), 0);
  assert_string_equal(written, "1\ntwo\n");
  const char *path = test_temp_path(NAME);
  write_file(path, "one\r\n\ntwo");
  file = wf__stdio_read(path);
  assert_non_null(file);
  assert_true(wf__stdio_line(&line, &room, file) > 3);
  assert_memory_equal(line, "one", 3);
  assert_int_equal(wf__stdio_line(&line, &room, file), 1);
  assert_int_equal(wf__stdio_line(&line, &room, file), 3);
  assert_string_equal(line, "two");
  assert_int_equal(wf__stdio_line(&line, &room, file), -1);
  fclose(file);
  free(line);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_files),
    cmocka_unit_test(test_replace_open_file),
    cmocka_unit_test(test_temporary_file),
    cmocka_unit_test(test_folder),
    cmocka_unit_test(test_long_path),
    cmocka_unit_test(test_names),
#if defined(_WIN32)
    cmocka_unit_test(test_both_separators),
    cmocka_unit_test(test_console),
#endif
    cmocka_unit_test(test_memory_and_processors),
    cmocka_unit_test(test_timed_wait),
    cmocka_unit_test(test_stdio),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
