/* interrupt.h - cancellation of calls (wf_set_interrupt). The calling thread calls the caller's
 * function every few hundredths of a second. Its worker threads read the last result. Long loops
 * therefore use WF__TRY(wf__interrupted(err)) at least every ten milliseconds. Once in some hundred
 * steps is best, because the check reads the clock. Without a function the checks do nothing. */
#ifndef WF_BASE_INTERRUPT_H
#define WF_BASE_INTERRUPT_H

#include "base/error.h"

/* True if the call is cancelled. Stays true until the call has returned. */
bool wf__stopped(void);
/* WF_ERR_CANCELLED if the call is cancelled. */
wf_status wf__interrupted(wf_error *err);
/* As wf__interrupted, for a loop: checks in every 1024th step. */
static inline wf_status wf__interrupted_at(uint64_t step, wf_error *err) {
  return step % 1024 == 0 ? wf__interrupted(err) : WF_OK;
}

/* Makes the next check call the caller's function at once. Used before the log callback and after a
 * signal interrupts a read (EINTR). */
void wf__interrupt_poll(void);

/* The interrupt state of the call that this thread works for, or NULL. */
typedef struct wf__interrupt wf__interrupt;
wf__interrupt *wf__interrupt_current(void);
/* Sets the state that this thread works for; returns the previous one. */
wf__interrupt *wf__interrupt_exchange(wf__interrupt *current);
/* Before this thread gives work to others: if an earlier call was cancelled, asks the caller's
 * function anew, so that the workers do not take its old answer for this call's. */
void wf__interrupt_renew(void);
/* True if this thread must call the caller's function while it waits. */
bool wf__interrupt_polls(void);

#endif
