/* replay.c - runs a fuzz target on each file, or each file of each folder, named on the command
 * line. Also runs it on up to 300 prefixes of each file and on 300 copies with one byte changed. So
 * a build without libFuzzer still tests the inputs that a fuzzer found before. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t g_files, g_runs;

static void run(const uint8_t *data, size_t size) {
  /* A copy of the exact size lets the address sanitizer see a read past the end. */
  uint8_t *copy = malloc(size != 0 ? size : 1);
  if (copy == NULL) abort();
  if (size != 0) memcpy(copy, data, size);
  LLVMFuzzerTestOneInput(copy, size);
  free(copy);
  g_runs++;
}

static void run_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    perror(path);
    exit(1);
  }
  static uint8_t data[1 << 20];
  size_t size = fread(data, 1, sizeof data, file);
  fclose(file);
  g_files++;
  run(data, size);
  size_t cuts = size < 300 ? size : 300;
  for (size_t i = 0; i < cuts; i++) run(data, size * i / cuts);
  uint64_t state = size;
  for (int i = 0; i < 300 && size > 0; i++) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    size_t at = (size_t)(state >> 33) % size;
    uint8_t old = data[at];
    data[at] = (uint8_t)(i % 3 == 0   ? 0xff
                         : i % 3 == 1 ? old ^ (1u << (state >> 20 & 7))
                                      : state >> 56);
    run(data, size);
    data[at] = old;
  }
}

static void run_path(const char *path) {
  struct stat info;
  if (stat(path, &info) != 0) {
    perror(path);
    exit(1);
  }
  if (!S_ISDIR(info.st_mode)) {
    run_file(path);
    return;
  }
  DIR *folder = opendir(path);
  if (folder == NULL) exit(1);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    char name[4096];
    snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
    run_file(name);
  }
  closedir(folder);
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) run_path(argv[i]);
  printf("%zu files, %zu runs\n", g_files, g_runs);
  return g_files > 0 ? 0 : 1;
}
