/* task_files.c - opens and closes files of a task, and reports errors. */
#include <stdio.h>

#include "ctc_task.h"

bool file_open(const char *folder, const char *name, void **out) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  *out = file;
  if (file == NULL) perror(path);
  return file != NULL;
}

bool file_close(void *file, const char *name) {
  bool good = ferror((FILE *)file) == 0;
  good = fclose(file) == 0 && good;
  if (!good) perror(name);
  return good;
}
