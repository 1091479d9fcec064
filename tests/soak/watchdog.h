/* watchdog.h - finds threads of the soak test that make no progress, and shows what they wait for.
 */
#ifndef TESTS_SOAK_WATCHDOG_H
#define TESTS_SOAK_WATCHDOG_H

#include <pthread.h>
#include <stdbool.h>

/* Before threads start: installs the handler of the signal that asks a thread for its calls, and
 * allows a debugger to attach. */
void watchdog_begin(void);

/* Prints the calls that a thread is in, innermost first: public functions by name,
 * others by address (for addr2line). Waits for the thread, one second at most. */
void watchdog_show_calls(pthread_t thread);

/* The same for this thread, in a signal handler, too. */
void watchdog_show_own_calls(void);

/* Prints the kernels on the GPU, and where their warps are. Needs cuda-gdb in PATH, which stops the
 * program for some seconds; else says so. */
void watchdog_show_kernels(void);

#endif
