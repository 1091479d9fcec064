/* peak_memory.h - memory of this process, for benchmarks. */
#ifndef BENCH_PEAK_MEMORY_H
#define BENCH_PEAK_MEMORY_H

#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns freed memory to the system and resets the peak. Returns false if that is not allowed. */
static inline bool forget_peak(void) {
  malloc_trim(0);
  FILE *file = fopen("/proc/self/clear_refs", "w");
  if (file == NULL) return false;
  bool written = fputs("5", file) >= 0;
  return fclose(file) == 0 && written;
}

/* Field "VmRSS:" is the current memory, "VmHWM:" its peak. */
static inline double memory_mib(const char *field) {
  FILE *file = fopen("/proc/self/status", "r");
  char line[256];
  double kib = 0;
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, field, strlen(field)) == 0) kib = strtod(line + strlen(field), NULL);
  if (file != NULL) fclose(file);
  return kib / 1024;
}

#endif
