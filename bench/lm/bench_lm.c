/* bench_lm.c - measures reading an ARPA file or opening a file of `warpfst lm build`, and queries
 * per second on one core.
 *     bench_lm LM TEXT [--seconds=1] [--table]    LM: ARPA, or a file whose name ends in .wlm;
 *                                                 TEXT: one sentence per line
 * The text is turned into labels first, so that the second figure is look-ups only. For a .wlm the
 * third figure is for wf_wlm_step_many on LANES sentences in parallel, without sentence ends.
 * Prints one JSON line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "warpfst_all.h"

/* Reads the labels of the words; -2 ends a sentence. */
static size_t read_labels(const wf_symbols *words, FILE *file, int32_t **out) {
  size_t size = 0, cap = 0, room = 0;
  char *line = NULL;
  *out = NULL;
  while (getline(&line, &room, file) >= 0) {
    char *rest = NULL, *word = strtok_r(line, " \t\r\n", &rest);
    for (bool end = false; !end; word = strtok_r(NULL, " \t\r\n", &rest)) {
      if (size == cap) {
        cap = cap * 2 + 1024;
        int32_t *grown = realloc(*out, cap * sizeof *grown);
        if (grown == NULL) exit(1);
        *out = grown;
      }
      end = word == NULL;
      (*out)[size++] = end ? -2 : (int32_t)wf_symbols_find(words, word);
      if (end) break;
    }
  }
  free(line);
  return size;
}

enum { LANES = 256 };

struct figures {
  double read_wall_s, read_cpu_s, queries_per_s, many_per_s, mean_nats;
  uint64_t ngrams, bytes;
};

static int32_t *labels_of(const wf_symbols *words, const char *path, size_t *size) {
  int32_t *labels;
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    perror(path);
    exit(3);
  }
  *size = read_labels(words, file, &labels);
  fclose(file);
  if (*size == 0) {
    fprintf(stderr, "%s: no words\n", path);
    exit(3);
  }
  return labels;
}

/* Goes over the text until the time is up; START, STEP and FINAL are the calls to the model. */
#define QUERY(f, labels, size, seconds, START, STEP, FINAL) \
  do {                                                      \
    double start_s = cpu_s(), used = 0, sum = 0;            \
    uint64_t queries = 0;                                   \
    while (used < (seconds)) {                              \
      uint32_t state = START;                               \
      for (size_t i = 0; i < (size); i++) {                 \
        int32_t word = (labels)[i];                         \
        float cost = word == -2 ? FINAL : STEP;             \
        if (word == -2) state = START;                      \
        if (cost < 1e30f) sum += cost;                      \
      }                                                     \
      queries += (size);                                    \
      used = cpu_s() - start_s;                             \
    }                                                       \
    (f)->queries_per_s = (double)queries / used;            \
    (f)->mean_nats = sum / (double)queries;                 \
  } while (0)

static void measure_lm(const char *path, const char *text, double seconds, struct figures *f) {
  wf_error err;
  wf_lm *lm;
  wf_lm_info info;
  size_t size;
  check(wf_lm_read(path, NULL, NULL, &lm, NULL, NULL, &err), &err);
  f->read_wall_s = now_s() - f->read_wall_s;
  f->read_cpu_s = cpu_s() - f->read_cpu_s;
  int32_t *labels = labels_of(wf_lm_words(lm), text, &size);
  QUERY(f, labels, size, seconds, wf_lm_start(lm), wf_lm_step(lm, state, word, &state, NULL),
        wf_lm_final(lm, state, NULL));
  wf_lm_info_init(&info);
  check(wf_lm_get_info(lm, &info, &err), &err);
  for (int k = 1; k <= info.order; k++) f->ngrams += info.num_ngrams[k];
  f->bytes = info.num_bytes;
  free(labels);
  wf_lm_free(lm);
}

/* Every lane reads the text from a different position. Costs are summed and the sum is used, so
 * that the compiler keeps the work. */
static void measure_many(const wf_wlm *lm, const int32_t *labels, size_t size, double seconds,
                         struct figures *f) {
  static uint32_t states[LANES], next[LANES];
  static int32_t words[LANES];
  static float costs[LANES];
  static size_t places[LANES];
  double start_s = cpu_s(), used = 0, sum = 0;
  uint64_t queries = 0;
  for (size_t lane = 0; lane < LANES; lane++) {
    places[lane] = lane * (size / LANES) % size;
    states[lane] = wf_wlm_start(lm);
  }
  for (uint64_t round = 0; used < seconds; round++) {
    for (size_t lane = 0; lane < LANES; lane++) {
      if (labels[places[lane]] == -2) {
        states[lane] = wf_wlm_start(lm);
        places[lane] = (places[lane] + 1) % size;
      }
      words[lane] = labels[places[lane]];
      places[lane] = (places[lane] + 1) % size;
    }
    wf_wlm_step_many(lm, states, words, LANES, costs, next);
    for (size_t lane = 0; lane < LANES; lane++) {
      states[lane] = next[lane];
      if (costs[lane] < 1e30f) sum += (double)costs[lane];
    }
    queries += LANES;
    if (round % 64 == 63) used = cpu_s() - start_s;
  }
  f->many_per_s = sum != 0 ? (double)queries / used : 0;
}

static void measure_wlm(const char *path, const char *text, double seconds, bool table,
                        struct figures *f) {
  wf_error err;
  wf_wlm *lm;
  wf_wlm_info info;
  size_t size;
  check(wf_wlm_open(path, &lm, &err), &err);
  if (table) check(wf_wlm_make_table(lm, NULL, &err), &err);
  f->read_wall_s = now_s() - f->read_wall_s;
  f->read_cpu_s = cpu_s() - f->read_cpu_s;
  int32_t *labels = labels_of(wf_wlm_words(lm), text, &size);
  QUERY(f, labels, size, seconds, wf_wlm_start(lm), wf_wlm_step(lm, state, word, &state, NULL),
        wf_wlm_final(lm, state, NULL));
  measure_many(lm, labels, size, seconds, f);
  wf_wlm_info_init(&info);
  check(wf_wlm_get_info(lm, &info, &err), &err);
  for (int k = 1; k <= info.order; k++) f->ngrams += info.num_ngrams[k];
  f->bytes = info.file_bytes + info.table_bytes;
  free(labels);
  wf_wlm_free(lm);
}

int main(int argc, char **argv) {
  const char *paths[2];
  double seconds = 1;
  bool table = false;
  const struct flag flags[] = {
      {"seconds", "processor seconds of queries", .real = &seconds},
      {"table", "for a .wlm: builds the look-up table first", .yes = &table}};
  const struct command command = {
      .arguments = "LM TEXT [FLAGS]",
      .purpose =
          "Measures reading or opening a language model, and queries per second on one core.",
      .flags = flags,
      .num_flags = sizeof flags / sizeof *flags};
  read_flags(&command, argc, argv, 2, 2, paths);
  struct figures f = {.read_wall_s = now_s(), .read_cpu_s = cpu_s()};
  size_t length = strlen(paths[0]);
  if (length > 4 && strcmp(paths[0] + length - 4, ".wlm") == 0)
    measure_wlm(paths[0], paths[1], seconds, table, &f);
  else
    measure_lm(paths[0], paths[1], seconds, &f);
  printf(
      "{\"ngrams\": %llu, \"bytes\": %llu, \"read_wall_s\": %.3f, \"read_cpu_s\": %.3f, "
      "\"queries_per_cpu_s\": %.0f, \"many_per_cpu_s\": %.0f, \"mean_nats\": %.4f}\n",
      (unsigned long long)f.ngrams, (unsigned long long)f.bytes, f.read_wall_s, f.read_cpu_s,
      f.queries_per_s, f.many_per_s, f.mean_nats);
  return 0;
}
