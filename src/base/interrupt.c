/* interrupt.c - cancellation of calls, by one callback per thread. */
#include "base/interrupt.h"

#include <stdatomic.h>
#include <time.h>

enum { PERIOD_NS = 30 * 1000 * 1000 };

struct wf__interrupt {
  wf_interrupt_fn fn;
  void *user;
  uint64_t next_ns; /* time of the next call of the function */
  atomic_bool stopped;
};

static _Thread_local struct wf__interrupt t_own;
static _Thread_local struct wf__interrupt *t_current;

void wf_set_interrupt(wf_interrupt_fn fn, void *user) {
  t_own.fn = fn;
  t_own.user = user;
  t_own.next_ns = 0;
  atomic_store(&t_own.stopped, false);
  t_current = fn != NULL ? &t_own : NULL;
}

/* Monotonic time with a resolution of a few milliseconds; fast to read. */
static uint64_t coarse_ns(void) {
  struct timespec time;
#if defined(CLOCK_MONOTONIC_COARSE)
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
#else
  clock_gettime(CLOCK_MONOTONIC, &time);
#endif
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

bool wf__stopped(void) {
  struct wf__interrupt *current = t_current;
  if (current == NULL) return false;
  const bool before = atomic_load_explicit(&current->stopped, memory_order_relaxed);
  if (current != &t_own) return before;
  const uint64_t now = coarse_ns();
  if (!before && now < current->next_ns) return false;
  current->next_ns = now + PERIOD_NS; /* the function may call the library */
  const bool stopped = !current->fn(current->user);
  atomic_store_explicit(&current->stopped, stopped, memory_order_relaxed);
  return stopped;
}

wf_status wf__interrupted(wf_error *err) {
  return wf__stopped() ? wf__fail(err, WF_ERR_CANCELLED, "cancelled") : WF_OK;
}

void wf__interrupt_poll(void) { t_own.next_ns = 0; }

struct wf__interrupt *wf__interrupt_current(void) {
  return t_current;
}

struct wf__interrupt *wf__interrupt_exchange(struct wf__interrupt *current) {
  struct wf__interrupt *old = t_current;
  t_current = current;
  return old;
}

void wf__interrupt_renew(void) {
  if (wf__interrupt_polls() && atomic_load_explicit(&t_own.stopped, memory_order_relaxed))
    (void)wf__stopped();
}

bool wf__interrupt_polls(void) { return t_current != NULL && t_current == &t_own; }
