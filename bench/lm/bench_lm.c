/* bench_lm.c - measures opening a language model, and queries per second on one core.
 *     bench_lm LM TEXT [--seconds=1] [--table]    LM: of any format; TEXT: one sentence per line
 * The text is turned into labels first, so that the second figure is look-ups only. Prints one JSON
 * line. */
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

struct figures {
  double read_wall_s, read_cpu_s, queries_per_s, mean_nats;
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

/* Goes over the text until the time is up. */
static void query(const wf_lm *lm, const int32_t *labels, size_t size, double seconds,
                  struct figures *f) {
  double start_s = cpu_s(), used = 0, sum = 0;
  uint64_t queries = 0;
  while (used < seconds) {
    uint32_t state = wf_lm_start(lm);
    for (size_t i = 0; i < size; i++) {
      int32_t word = labels[i];
      float cost =
          word == -2 ? wf_lm_final(lm, state, NULL) : wf_lm_step(lm, state, word, &state, NULL);
      if (word == -2) state = wf_lm_start(lm);
      if (cost < 1e30f) sum += (double)cost;
    }
    queries += size;
    used = cpu_s() - start_s;
  }
  f->queries_per_s = (double)queries / used;
  f->mean_nats = sum / (double)queries;
}

static void measure(const char *path, const char *text, double seconds, bool table,
                    struct figures *f) {
  wf_error err;
  wf_lm *lm;
  wf_lm_info info;
  size_t size;
  check(wf_lm_open(path, NULL, NULL, &lm, NULL, NULL, &err), &err);
  if (table) check(wf_lm_make_table(lm, NULL, &err), &err);
  f->read_wall_s = now_s() - f->read_wall_s;
  f->read_cpu_s = cpu_s() - f->read_cpu_s;
  int32_t *labels = labels_of(wf_lm_words(lm), text, &size);
  query(lm, labels, size, seconds, f);
  wf_lm_info_init(&info);
  check(wf_lm_get_info(lm, &info, &err), &err);
  for (int k = 1; k <= info.order; k++) f->ngrams += info.num_ngrams[k];
  f->bytes = info.num_bytes + info.table_bytes;
  free(labels);
  wf_lm_free(lm);
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
  measure(paths[0], paths[1], seconds, table, &f);
  printf(
      "{\"ngrams\": %llu, \"bytes\": %llu, \"read_wall_s\": %.3f, \"read_cpu_s\": %.3f, "
      "\"queries_per_cpu_s\": %.0f, \"mean_nats\": %.4f}\n",
      (unsigned long long)f.ngrams, (unsigned long long)f.bytes, f.read_wall_s, f.read_cpu_s,
      f.queries_per_s, f.mean_nats);
  return 0;
}
