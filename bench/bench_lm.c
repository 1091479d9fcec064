/* bench_lm.c - time to read an ARPA file, and queries per second on one core.
 *     bench_lm LM TEXT [SECONDS]      TEXT: a sentence a line
 * The text is turned into labels first, so that the second figure is lookups alone. Prints one line of JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "warpfst.h"

static double now_s(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Labels of the words; -2 ends a sentence. */
static size_t read_labels(const wf_lm *lm, FILE *file, int32_t **out) {
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
      (*out)[size++] = end ? -2 : (int32_t)wf_symbols_find(wf_lm_words(lm), word);
      if (end) break;
    }
  }
  free(line);
  return size;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: bench_lm LM TEXT [SECONDS]\n");
    return 2;
  }
  wf_error err;
  wf_lm *lm;
  double wall = now_s(CLOCK_MONOTONIC), cpu = now_s(CLOCK_PROCESS_CPUTIME_ID);
  if (wf_lm_read(argv[1], NULL, NULL, &lm, NULL, NULL, &err) != WF_OK) {
    fprintf(stderr, "%s\n", err.message);
    return 3;
  }
  wall = now_s(CLOCK_MONOTONIC) - wall;
  cpu = now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  FILE *file = fopen(argv[2], "r");
  if (file == NULL) {
    perror(argv[2]);
    return 3;
  }
  int32_t *labels;
  size_t size = read_labels(lm, file, &labels);
  fclose(file);
  if (size == 0) {
    fprintf(stderr, "%s: no words\n", argv[2]);
    return 3;
  }
  double seconds = argc > 3 ? atof(argv[3]) : 1, start = now_s(CLOCK_PROCESS_CPUTIME_ID), used = 0, sum = 0;
  uint64_t queries = 0;
  while (used < seconds) {
    uint32_t state = wf_lm_start(lm);
    for (size_t i = 0; i < size; i++) {
      bool end = labels[i] == -2;
      float cost = end ? wf_lm_final(lm, state, NULL) : wf_lm_step(lm, state, labels[i], &state, NULL);
      if (end) state = wf_lm_start(lm);
      if (cost < 1e30f) sum += cost;
    }
    queries += size;
    used = now_s(CLOCK_PROCESS_CPUTIME_ID) - start;
  }
  wf_lm_info info;
  wf_lm_info_init(&info);
  if (wf_lm_get_info(lm, &info, &err) != WF_OK) return 3;
  uint64_t ngrams = 0;
  for (int k = 1; k <= info.order; k++) ngrams += info.num_ngrams[k];
  printf("{\"ngrams\": %llu, \"bytes\": %llu, \"read_wall_s\": %.3f, \"read_cpu_s\": %.3f, \"queries_per_cpu_s\": %.0f, \"mean_nats\": %.4f}\n",
         (unsigned long long)ngrams, (unsigned long long)info.num_bytes, wall, cpu, (double)queries / used, sum / (double)queries);
  free(labels);
  wf_lm_free(lm);
  return 0;
}
