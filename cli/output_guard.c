/* output_guard.c - removes the library's unfinished output files when a signal ends the program. */
#include "output_guard.h"

#include <signal.h>
#include <stddef.h>

#include "warpfst_all.h"

static void on_signal(int number) {
  wf_remove_unfinished_outputs();
  (void)signal(number, SIG_DFL);
  (void)raise(number);
}

void cli_guard_outputs(void) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    struct sigaction old, action = {.sa_handler = on_signal};
    if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN) continue; /* nohup */
    (void)sigaction(signals[i], &action, NULL);
  }
}
