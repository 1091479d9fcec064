/* test_files.c - outputs to files, links, FIFOs and descriptors; gzip both ways; Kaldi's prefixes.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/input.h"
#include "base/kaldi_prefix.h"
#include "base/output.h"
#include "base/source.h"
#include "testing.h"

/* --- file systems without unnamed files ------------------------------------------------------ */

static bool g_no_unnamed_files;

/* In the place of the C library's function, which it calls. */
int open(const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
  va_end(args);
  if (g_no_unnamed_files && (flags & O_TMPFILE) == O_TMPFILE) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* --- helpers -----------------------------------------------------------------------------------
 */

static wf_status write_text(const char *path, const char *text, wf_error *err) {
  wf_output *output;
  wf_status status = wf_output_open(path, &output, err);
  if (status != WF_OK) return status;
  wf_output_write(output, text, strlen(text));
  return wf_output_close(output, err);
}

static void assert_content(const char *path, const char *want) {
  size_t size;
  char *text = test_read_file(path, &size);
  assert_int_equal(size, strlen(want));
  assert_memory_equal(text, want, size);
  free(text);
}

static bool is_link(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
}

/* Copies a path, because test_temp_path has one buffer a call. */
static const char *at(const char *name, char path[512]) {
  snprintf(path, 512, "%s", test_temp_path(name));
  (void)unlink(path);
  return path;
}

/* --- files ---------------------------------------------------------------------------------------
 */

static void test_files_and_links(void **state) {
  (void)state;
  wf_error err = {0};
  char file[512], link[512], chain[512];
  for (int hidden = 0; hidden < 2; hidden++) {
    g_no_unnamed_files = hidden != 0;
    at("one", file), at("link", link), at("chain", chain);
    assert_int_equal(symlink("one", link), 0); /* the file does not exist yet */
    assert_int_equal(symlink(link, chain), 0);
    assert_ok(write_text(chain, "first", &err));
    assert_ok(write_text(link, "second", &err));
    assert_true(is_link(chain) && is_link(link) && !is_link(file));
    assert_content(file, "second");
    wf_output *output;
    assert_ok(wf_output_open(link, &output, &err));
    wf_output_write(output, "third", 5);
    wf_output_abort(output);
    assert_content(file, "second");
    (void)unlink(file);
    assert_int_equal(symlink(chain, file), 0);
    assert_int_equal(write_text(link, "x", &err), WF_ERR_IO); /* a circle */
    assert_int_equal(write_text("/", "x", &err), WF_ERR_IO);
    assert_int_equal(write_text("/nonexistent/x", "x", &err), WF_ERR_IO);
  }
  g_no_unnamed_files = false;
}

static void *write_often(void *user) {
  const char *path = user;
  wf_error err = {0};
  char text[4000];
  memset(text, 'a' + (int)((uintptr_t)&text / 4096 % 20), sizeof text - 1);
  text[sizeof text - 1] = '\0';
  for (int i = 0; i < 200; i++) assert_ok(write_text(path, text, &err));
  return NULL;
}

/* Several threads write one name. Each write succeeds, and the file is one of theirs. */
static void test_writers_of_one_name(void **state) {
  (void)state;
  char path[512];
  for (int hidden = 0; hidden < 2; hidden++) {
    pthread_t threads[4];
    g_no_unnamed_files = hidden != 0;
    at("same", path);
    for (int i = 0; i < 4; i++)
      assert_int_equal(pthread_create(&threads[i], NULL, write_often, path), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    size_t size;
    char *text = test_read_file(path, &size);
    assert_int_equal(size, 3999);
    for (size_t i = 0; i < size; i++) assert_true(text[i] == text[0]);
    free(text);
    test_shell("[ -z \"$(ls '%s'.tmp.* 2> /dev/null)\" ]", path);
  }
  g_no_unnamed_files = false;
}

static void test_unfinished_files_are_removed(void **state) {
  (void)state;
  wf_error err = {0};
  char path[512], temporary[600];
  g_no_unnamed_files = true;
  at("unfinished", path);
  snprintf(temporary, sizeof temporary, "%s.tmp.%ld", path, (long)getpid());
  for (int handler = 0; handler < 2; handler++) {
    wf_output *output;
    assert_ok(wf_output_open(path, &output, &err));
    assert_int_equal(access(temporary, F_OK), 0);
    if (handler == 1) wf_remove_unfinished_outputs();
    if (handler == 1) assert_int_not_equal(access(temporary, F_OK), 0);
    wf_output_abort(output);
    assert_int_not_equal(access(temporary, F_OK), 0);
    assert_int_not_equal(access(path, F_OK), 0);
  }
  g_no_unnamed_files = false;
}

/* --- streams
 * --------------------------------------------------------------------------------------- */

struct fifo_reader {
  const char *path;
  useconds_t delay_us;
  size_t most, size; /* stops after `most` bytes */
};

static void *read_fifo(void *user) {
  struct fifo_reader *reader = user;
  char bytes[4096];
  usleep(reader->delay_us);
  int fd = open(reader->path, O_RDONLY);
  for (ssize_t got = 1; got > 0 && reader->size < reader->most; reader->size += (size_t)got)
    got = read(fd, bytes, sizeof bytes);
  close(fd);
  return NULL;
}

static wf_status write_to_fifo(struct fifo_reader *reader, size_t size, wf_error *err) {
  pthread_t thread;
  wf_output *output;
  char *text = calloc(size, 1);
  assert_int_equal(pthread_create(&thread, NULL, read_fifo, reader), 0);
  wf_status status = wf_output_open(reader->path, &output, err);
  assert_int_equal(status, WF_OK);
  for (int i = 0; i < 4; i++) wf_output_write(output, text, size / 4);
  status = wf_output_close(output, err);
  pthread_join(thread, NULL);
  free(text);
  return status;
}

static void test_fifo(void **state) {
  (void)state;
  wf_error err = {0};
  char path[512], link[512];
  assert_int_equal(mkfifo(at("fifo", path), 0600), 0);
  assert_int_equal(symlink(path, at("fifo_link", link)), 0);
  struct fifo_reader late = {path, 100000, SIZE_MAX, 0}, linked = {link, 0, SIZE_MAX, 0},
                     stops = {path, 0, 1, 0};
  assert_ok(write_to_fifo(&late, 1000000, &err));
  assert_int_equal(late.size, 1000000);
  assert_ok(write_to_fifo(&linked, 40, &err));
  assert_int_equal(linked.size, 40);
  assert_int_equal(write_to_fifo(&stops, 8000000, &err), WF_ERR_IO); /* no SIGPIPE */
  assert_non_null(strstr(err.message, "Broken pipe"));
  struct stat info;
  assert_true(stat(path, &info) == 0 && S_ISFIFO(info.st_mode) && is_link(link));
}

static void on_alarm(int number) { (void)number; }
static bool refuse(void *user) {
  (void)user;
  return false;
}

/* A caller that waits for a reader can be cancelled by a signal. */
static void test_cancel_of_a_waiting_fifo(void **state) {
  (void)state;
  wf_error err = {0};
  char path[512];
  const struct sigaction action = {.sa_handler = on_alarm};
  const struct itimerval often = {{0, 50000}, {0, 50000}}, never = {{0, 0}, {0, 0}};
  assert_int_equal(mkfifo(at("nobody", path), 0600), 0);
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
  wf_set_interrupt(refuse, NULL);
  wf_output *output;
  assert_int_equal(wf_output_open(path, &output, &err), WF_ERR_CANCELLED);
  assert_null(output);
  wf_set_interrupt(NULL, NULL);
  setitimer(ITIMER_REAL, &never, NULL);
}

/* An open descriptor is written at its position, even if its file has no name any more. */
static void test_descriptors(void **state) {
  (void)state;
  wf_error err = {0};
  char file[512], link[512], name[64], target[64];
  int fd = open(at("described", file), O_RDWR | O_CREAT | O_TRUNC, 0600);
  assert_int_equal(write(fd, "before ", 7), 7);
  snprintf(name, sizeof name, "/dev/fd/%d", fd);
  assert_ok(write_text(name, "in it ", &err));
  snprintf(target, sizeof target, "/proc/self/fd/%d", fd);
  assert_int_equal(symlink(target, at("described_link", link)), 0);
  assert_ok(write_text(link, "and more ", &err));
  assert_true(is_link(link));
  assert_content(file, "before in it and more ");
  (void)unlink(file);
  assert_ok(write_text(name, "unlinked", &err));
  char text[64] = "";
  assert_int_equal(pread(fd, text, sizeof text - 1, 0), 30);
  assert_string_equal(text, "before in it and more unlinked");
  close(fd);
  assert_int_equal(write_text(name, "x", &err), WF_ERR_IO);
}

static void test_offsets(void **state) {
  (void)state;
  wf_error err = {0};
  char path[512], link[512];
  assert_int_equal(mkfifo(at("offsets", path), 0600), 0);
  const char *const bad[] = {"-", "/dev/stdout", "/dev/null", path, "x.gz"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(wf__output_needs_offsets(bad[i], "an index", &err), WF_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "an index"));
  }
  assert_int_equal(symlink("nothing", at("offsets_link", link)), 0);
  assert_ok(wf__output_needs_offsets(link, "an index", &err));
}

/* --- gzip
 * ------------------------------------------------------------------------------------------ */

static void test_gzip_outputs(void **state) {
  (void)state;
  test_rng rng = {5};
  wf_error err = {0};
  char path[512], plain[512];
  static const size_t sizes[] = {0, 1, 100, 1 << 17, 3000001};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char *bytes = malloc(sizes[i] + 1);
    for (size_t k = 0; k < sizes[i]; k++) bytes[k] = (char)test_below(&rng, 200);
    wf_output *output;
    assert_ok(wf_output_open(at("out.gz", path), &output, &err));
    for (size_t k = 0, part; k < sizes[i]; k += part) {
      part = 1 + test_below(&rng, 400000);
      if (part > sizes[i] - k) part = sizes[i] - k;
      wf_output_write(output, bytes + k, part);
    }
    assert_int_equal(wf__output_offset(output), sizes[i]);
    assert_ok(wf_output_close(output, &err));
    test_shell("gzip -dc '%s' > '%s'", path, at("out.plain", plain));
    size_t size;
    char *again = test_read_file(plain, &size);
    assert_int_equal(size, sizes[i]);
    assert_memory_equal(again, bytes, size);
    free(again);
    free(bytes);
  }
}

/* What a whole-file reader and a streaming reader say of a file: the content, or "!" and the error.
 */
static void read_both(const char *path, char whole[256], char streamed[256]) {
  wf_error err = {0};
  wf__input input;
  wf__source source;
  if (wf__input_open(path, &input, &err) == WF_OK) {
    snprintf(whole, 256, "%.*s", (int)(input.size < 200 ? input.size : 200),
             (const char *)input.data);
    wf__input_close(&input);
  } else {
    snprintf(whole, 256, "!%.250s", err.message);
  }
  assert_ok(wf__source_open_stream(path, &source, &err));
  if (wf__source_need(&source, SIZE_MAX / 4, &err) == WF_OK)
    snprintf(streamed, 256, "%.*s",
             (int)(wf__source_left(&source) < 200 ? wf__source_left(&source) : 200),
             (const char *)source.at);
  else
    snprintf(streamed, 256, "!%.250s", err.message);
  wf__source_close(&source);
}

static void test_gzip_inputs(void **state) {
  (void)state;
  static const struct {
    const char *command, *want; /* makes the file from $a, $b (gzip of "one", "two"); a part of the
                                   error after '!' */
  } cases[] = {
      {"cat $a $b", "onetwo"},
      {"cat $a $b; head -c 3000 /dev/zero", "onetwo"},
      {"cat $a; head -c 100000 /dev/zero", "one"},
      {"cat $a; printf '\\037'", "!ends early"},
      {"cat $a; tail -c +2 $b", "!damaged"},
      {"cat $a; printf '\\036'; tail -c +2 $b", "!neither another member nor zero bytes"},
      {"cat $a; printf '\\037\\213\\007'; tail -c +4 $b", "!damaged"},
      {"cat $a; printf '\\0'; cat $b", "!neither another member nor zero bytes"},
      {"cat $a; echo rest", "!neither another member nor zero bytes"},
      {"cat $a; head -c -1 $b", "!ends early"},
      {"head -c -8 $a; printf '0000\\003\\0\\0\\0'; cat $b", "!damaged"},
      {"gzip -c $a", "\037\213"}, /* not inflated twice */
      {"head -c 100000000 /dev/zero | gzip", "!more than 200 times"},
      {"printf '\\3757zXZ\\0rest of it'", "!compressed with xz"},
      {"printf 'BZh91AY&SYrest'", "!compressed with bzip2 (bz2)"},
      {"printf '\\050\\265\\057\\375rest of it'", "!compressed with zstd"},
      {"printf 'BZh and other text'", "BZh and other text"},
  };
  char path[512];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char whole[256], streamed[256];
    at("packed", path);
    test_shell(
        "cd \"$(dirname '%s')\" && printf one | gzip -n > a.gz && printf two | gzip -n > "
        "b.gz && a=a.gz b=b.gz && { %s; } > packed",
        path, cases[i].command);
    read_both(path, whole, streamed);
    const char *want = cases[i].want;
    const bool fits = want[0] == '!' ? whole[0] == '!' && streamed[0] == '!' &&
                                           strstr(whole, want + 1) && strstr(streamed, want + 1)
                      : want[0] == '\037'
                          ? memcmp(whole, want, 2) == 0 && memcmp(streamed, want, 2) == 0
                          : strcmp(whole, want) == 0 && strcmp(streamed, want) == 0;
    if (!fits)
      fail_msg("%s: wanted '%s', got '%s' and '%s'", cases[i].command, want, whole, streamed);
  }
}

/* --- Kaldi's prefixes
 * ------------------------------------------------------------------------------ */

static void test_kaldi_prefixes(void **state) {
  (void)state;
  static const struct {
    const char *text, *archive, *script; /* archive NULL: an error */
    bool is_text, refused;               /* refused for an output that is no table */
  } cases[] = {
      {"x", "x", NULL, false, false},
      {"ark:x", "x", NULL, false, true},
      {"ark,t:x", "x", NULL, true, true},
      {"ark,t,f:-", "-", NULL, true, true},
      {"ark,scp:x.ark,x.scp", "x.ark", "x.scp", false, true},
      {"scp,ark,t:a,b.ark,x.scp", "a,b.ark", "x.scp", true, true},
      {"./ark:x", "./ark:x", NULL, false, false},
      {"ark", "ark", NULL, false, false},
      {"arkx:y", "arkx:y", NULL, false, false},
      {"c:ark:x", "c:ark:x", NULL, false, false},
      {"ark,t,b:x", NULL, NULL, false, true},
      {"ark,zz:x", NULL, NULL, false, true},
      {"scp:x", NULL, NULL, false, true},
      {"ark,scp:x", NULL, NULL, false, true},
      {"ark,scp:,x", NULL, NULL, false, true},
      {"ark:", NULL, NULL, false, true},
      {"ark:|gzip -c > x", NULL, NULL, false, true},
      {"ark,t: | cat", NULL, NULL, false, true},
      {"| cat", NULL, NULL, false, true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wf_error err = {0};
    wf__kaldi_table table;
    const wf_status status = wf__kaldi_table_parse(cases[i].text, &table, &err);
    assert_int_equal(status == WF_OK, cases[i].archive != NULL);
    if (status == WF_OK) {
      assert_string_equal(table.archive, cases[i].archive);
      assert_int_equal(table.script != NULL, cases[i].script != NULL);
      if (table.script != NULL) assert_string_equal(table.script, cases[i].script);
      assert_int_equal(table.text, cases[i].is_text);
    }
    wf__kaldi_table_free(&table);
    assert_int_equal(wf__kaldi_refuse(cases[i].text, &err) != WF_OK, cases[i].refused);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_files_and_links),
      cmocka_unit_test(test_writers_of_one_name),
      cmocka_unit_test(test_unfinished_files_are_removed),
      cmocka_unit_test(test_fifo),
      cmocka_unit_test(test_cancel_of_a_waiting_fifo),
      cmocka_unit_test(test_descriptors),
      cmocka_unit_test(test_offsets),
      cmocka_unit_test(test_gzip_outputs),
      cmocka_unit_test(test_gzip_inputs),
      cmocka_unit_test(test_kaldi_prefixes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
