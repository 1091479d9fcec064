/* output_guard.c - removes the library's temporary output files when a signal ends the program. The
 * signal handler only calls unlink, with names stored in advance. */
#include "output_guard.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_GUARDED = 64 };
static char g_names[MAX_GUARDED][PATH_MAX];
static volatile sig_atomic_t g_num_names;

static void on_signal(int number) {
  for (int i = 0; i < g_num_names; i++) (void)unlink(g_names[i]);
  (void)signal(number, SIG_DFL);
  (void)raise(number);
}

void cli_guard_output(const char *path) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  if (path == NULL || strcmp(path, "-") == 0 || g_num_names == MAX_GUARDED) return;
  if (snprintf(g_names[g_num_names], PATH_MAX, "%s.tmp.%ld", path, (long)getpid()) >= PATH_MAX)
    return;
  g_num_names++;
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    struct sigaction old, action = {.sa_handler = on_signal};
    if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN) continue; /* nohup */
    (void)sigaction(signals[i], &action, NULL);
  }
}
