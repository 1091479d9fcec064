/* watchdog.c - finds threads of the soak test that make no progress, and shows what they wait for.
 * The calls of a thread come from a signal handler in that thread, because a thread that waits for
 * the GPU cannot answer in any other way. Kernels come from cuda-gdb: CUDA has no function that
 * lists them. */
#include "watchdog.h"

#include <execinfo.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CALLS = 64, MILLISECONDS = 1000 };

static atomic_bool answered;

void watchdog_show_own_calls(void) {
  void *calls[MOST_CALLS];
  backtrace_symbols_fd(calls, backtrace(calls, MOST_CALLS), STDERR_FILENO);
}

static void answer(int number) {
  (void)number;
  watchdog_show_own_calls();
  answered = true;
}

void watchdog_begin(void) {
  void *one[1];
  backtrace(one, 1); /* loads what it needs, so that the handler allocates nothing */
  signal(SIGUSR1, answer);
#ifdef PR_SET_PTRACER
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
}

void watchdog_show_calls(pthread_t thread) {
  answered = false;
  if (pthread_kill(thread, SIGUSR1) != 0) return;
  for (int i = 0; i < MILLISECONDS && !answered; i++)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  if (!answered) fprintf(stderr, "    no answer: the thread is in the kernel of the system\n");
}

void watchdog_show_kernels(void) {
  char command[512];
  snprintf(command, sizeof command,
           "if command -v cuda-gdb >/dev/null; then timeout 90 cuda-gdb --batch -nx -p %d "
           "-ex 'info cuda kernels' -ex 'info cuda blocks' -ex 'info cuda warps' </dev/null 2>&1 | "
           "grep -v '^\\[New' >&2; "
           "else echo 'no cuda-gdb, which would list the kernels' >&2; fi",
           (int)getpid());
  if (system(command) != 0) fprintf(stderr, "cuda-gdb failed\n");
}
