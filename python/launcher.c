/* launcher.c - the program `warpfst` that pip puts on the PATH of Linux and macOS: runs the program in the package, which
 * lies next to the library, without starting Python.
 *
 * The package is found from the place of this program: PREFIX/bin/warpfst belongs to
 * PREFIX/lib/pythonX.Y/site-packages/warpfst. If packages for several versions of Python are
 * there, it is the one that was installed at the time of this program. `transcribe` and `serve` are
 * written in Python, and so is the way to a package elsewhere: they run `python -m warpfst`. */
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

/* The path of this program, without links; false if it is not known. */
static int find_self(char self[PATH_MAX]) {
#if defined(__APPLE__)
  char path[PATH_MAX];
  uint32_t size = sizeof path;
  return _NSGetExecutablePath(path, &size) == 0 && realpath(path, self) != NULL;
#else
  return realpath("/proc/self/exe", self) != NULL;
#endif
}

/* The folder above the folder of this program; false if it is not known. */
static int find_prefix(char prefix[PATH_MAX]) {
  if (!find_self(prefix)) return 0;
  for (int up = 0; up < 2; up++) {
    char *slash = strrchr(prefix, '/');
    if (slash == NULL) return 0;
    *slash = '\0';
  }
  return 1;
}

static long long installed_at(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 ? (long long)info.st_mtime : 0;
}

/* Finds PREFIX/.../warpfst/bin/warpfst. */
static int find_program(const char *prefix, char *out, size_t size) {
  static const char *const places[] = {
      "lib/python3*/site-packages", "lib64/python3*/site-packages", "lib/python3*/dist-packages",
      "local/lib/python3*/dist-packages", "." /* pip install --target */};
  char self[PATH_MAX];
  long long mine = find_self(self) ? installed_at(self) : 0, nearest = LLONG_MAX;
  for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
    char pattern[PATH_MAX + 64];
    glob_t found;
    if ((size_t)snprintf(pattern, sizeof pattern, "%s/%s/warpfst/bin/warpfst", prefix, places[k]) >=
        sizeof pattern)
      continue;
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0) continue;
    for (size_t i = 0; i < found.gl_pathc; i++) {
      long long apart = llabs(installed_at(found.gl_pathv[i]) - mine);
      if (apart >= nearest || access(found.gl_pathv[i], X_OK) != 0 ||
          (size_t)snprintf(out, size, "%s", found.gl_pathv[i]) >= size)
        continue;
      nearest = apart;
    }
    globfree(&found);
  }
  return nearest != LLONG_MAX;
}

/* The name of the interpreter of a package: "python3.11" from .../lib/python3.11/site-packages. */
static void find_python(const char *program, char *out, size_t size) {
  const char *at = strstr(program, "/python3");
  snprintf(out, size, "python3");
  if (at != NULL) snprintf(out, size, "%.*s", (int)strcspn(at + 1, "/"), at + 1);
}

/* Runs `python -m warpfst ARGUMENTS`, with the interpreter beside this program or on the PATH. */
static int run_python(const char *prefix, const char *python, int argc, char **argv) {
  char beside[PATH_MAX + 64];
  char **arguments = calloc((size_t)argc + 4, sizeof *arguments);
  if (arguments == NULL) return 4;
  arguments[1] = "-m";
  arguments[2] = "warpfst";
  for (int i = 1; i < argc; i++) arguments[i + 2] = argv[i];
  /* Python finds the packages of a virtual environment from its own name. */
  const char *const names[] = {python, "python3"};
  for (int k = 0; k < 2; k++) {
    snprintf(beside, sizeof beside, "%s/bin/%s", prefix, names[k]);
    arguments[0] = beside;
    execv(beside, arguments);
  }
  arguments[0] = (char *)python;
  execvp(python, arguments);
  fprintf(stderr, "warpfst: cannot find the Python package of this program, or run %s\n", python);
  free(arguments);
  return 3;
}

/* Commands that are written in Python. */
static int is_python(const char *command) {
  return strcmp(command, "transcribe") == 0 || strcmp(command, "serve") == 0;
}

int main(int argc, char **argv) {
  char prefix[PATH_MAX] = "", program[PATH_MAX] = "", python[64];
  int found = find_prefix(prefix) && find_program(prefix, program, sizeof program);
  find_python(program, python, sizeof python);
  if (!found || (argc > 1 && is_python(argv[1])))
    return run_python(prefix, python, argc, argv);
  argv[0] = "warpfst";
  execv(program, argv);
  return run_python(prefix, python, argc, argv);
}
