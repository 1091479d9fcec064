/* common.h - shared code of the drivers in bench/: clocks, errors that end the program, and
 * the parser of flags. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "warpfst_all.h"

static inline double clock_s(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static inline double now_s(void) { return clock_s(CLOCK_MONOTONIC); }
/* CPU time of all threads of the process. */
static inline double cpu_s(void) { return clock_s(CLOCK_PROCESS_CPUTIME_ID); }

static inline void fail(const char *message) {
  fprintf(stderr, "%s: %s\n", program_invocation_short_name, message);
  exit(2);
}

static inline void check(wf_status status, const wf_error *err) {
  if (status != WF_OK) fail(err->message);
}

/* Returns zeroed memory. */
static inline void *allocate(size_t count, size_t bytes) {
  void *memory = calloc(count > 0 ? count : 1, bytes);
  if (memory == NULL) fail("out of memory");
  return memory;
}

/* Reads the matrices of a file of scores, at most `most`. Returns how many. */
static inline size_t read_matrices(const char *path, wf_matrix *out, size_t most) {
  wf_error err = {0};
  wf_score_reader *reader;
  bool done = false;
  size_t count = 0;
  check(wf_score_reader_open(&path, 1, NULL, &reader, &err), &err);
  for (; count < most; count++) {
    check(wf_score_reader_next(reader, &out[count], &done, &err), &err);
    if (done) break;
  }
  wf_score_reader_free(reader);
  return count;
}
static inline wf_scores scores_of(const wf_matrix *matrix) {
  return (wf_scores){.data = matrix->data,
                     .num_frames = matrix->num_frames,
                     .num_columns = matrix->num_columns,
                     .stride = matrix->num_columns};
}

/* wf_decode for utterances that have only scores. */
static inline wf_status decode_scores(wf_decoder *decoder, const wf_scores *scores, size_t count,
                                      wf_result **results, wf_error *err) {
  wf_utterance *utterances = calloc(count, sizeof *utterances);
  if (utterances == NULL) return WF_ERR_MEMORY;
  for (size_t i = 0; i < count; i++) utterances[i].scores = scores[i];
  wf_status status = wf_decode(decoder, utterances, count, NULL, results, err);
  free(utterances);
  return status;
}

/* --- flags ------------------------------------------------------------------------------- */

/* A flag --NAME=VALUE, or --NAME if `yes` is set. Exactly one of the pointers is set. It points to
 * the variable that holds the default and gets the value. */
struct flag {
  const char *name, *help; /* help: meaning and unit */
  const char **text;
  double *real;
  int64_t *integer;
  bool *yes;
};

struct command {
  const char *arguments, *purpose; /* as --help prints them */
  const struct flag *flags;
  size_t num_flags;
  /* Handles flags that are not in the table; may be NULL. Returns false if the name is unknown or
   * the value is wrong. `text` is the whole flag without its dashes. */
  bool (*take_other)(void *user, const char *text);
  void *user;
  const char *others; /* describes the other flags in --help */
};

static inline void usage_error(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "%s: ", program_invocation_short_name);
  vfprintf(stderr, format, arguments);
  fprintf(stderr, " (--help lists the flags)\n");
  va_end(arguments);
  exit(2);
}

static inline void print_flag(const struct flag *flag) {
  char form[64];
  snprintf(form, sizeof form, "--%s%s", flag->name,
           flag->text != NULL  ? "=TEXT"
           : flag->yes != NULL ? ""
                               : "=N");
  printf("  %-26s %s", form, flag->help);
  if (flag->text != NULL && *flag->text != NULL) printf(" (default: %s)", *flag->text);
  if (flag->text != NULL && *flag->text == NULL) printf(" (default: none)");
  if (flag->real != NULL) printf(" (default: %g)", *flag->real);
  if (flag->integer != NULL) printf(" (default: %lld)", (long long)*flag->integer);
  putchar('\n');
}

static inline void print_help(const struct command *command) {
  printf("%s %s\n%s\n\n", program_invocation_short_name, command->arguments, command->purpose);
  for (size_t i = 0; i < command->num_flags; i++) print_flag(&command->flags[i]);
  if (command->others != NULL) printf("  %s\n", command->others);
}

/* Returns false if the value is not valid for the flag. */
static inline bool set_flag(const struct flag *flag, const char *value) {
  if ((flag->yes != NULL) != (value == NULL)) return false;
  if (flag->yes != NULL) return *flag->yes = true;
  if (flag->text != NULL) {
    *flag->text = value;
    return true;
  }
  char *end = NULL;
  errno = 0;
  if (flag->real != NULL)
    *flag->real = strtod(value, &end);
  else
    *flag->integer = strtoll(value, &end, 10);
  return end != value && *end == '\0' && errno == 0;
}

/* Parses the command line. Sets the flags and stores the other arguments in `arguments`, at least
 * `least` and at most `most` of them. Returns their number. --help ends the program; an error ends
 * it with exit code 2. */
static inline int read_flags(const struct command *command, int argc, char **argv, int least,
                             int most, const char **arguments) {
  int count = 0;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--help") == 0) {
      print_help(command);
      exit(0);
    }
    if (argv[i][0] == '-' && argv[i][1] != '-')
      usage_error("%s: flags begin with two dashes", argv[i]);
    if (argv[i][0] != '-') {
      if (count == most) usage_error("%s: too many arguments", argv[i]);
      arguments[count++] = argv[i];
      continue;
    }
    const char *text = argv[i] + 2, *value = strchr(text, '=');
    size_t size = value != NULL ? (size_t)(value - text) : strlen(text), k = 0;
    while (k < command->num_flags && (strncmp(command->flags[k].name, text, size) != 0 ||
                                      command->flags[k].name[size] != '\0'))
      k++;
    bool fine = k < command->num_flags
                    ? set_flag(&command->flags[k], value != NULL ? value + 1 : NULL)
                    : command->take_other != NULL && command->take_other(command->user, text);
    if (!fine) usage_error("%s: unknown flag or wrong value", argv[i]);
  }
  if (count < least) usage_error("usage: %s %s", program_invocation_short_name, command->arguments);
  return count;
}

#endif
