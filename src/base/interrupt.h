/* interrupt.h - calls that end early because their caller says so (wf_set_interrupt).
 *
 * The thread that made a call asks the caller's function, every few hundredths of a second; threads
 * that work for it look at the last answer. Long loops therefore say WF__TRY(wf__interrupted(err))
 * at least every ten milliseconds; once for some hundred steps is best, since it reads the clock.
 * Nothing is asked where the caller has set no function. */
#ifndef WF_BASE_INTERRUPT_H
#define WF_BASE_INTERRUPT_H

#include "base/error.h"

/* Is the call to end? Stays true until it has. */
bool wf__stopped(void);
/* WF_ERR_CANCELLED if so. */
wf_status wf__interrupted(wf_error *err);
/* The same in a loop: looks at every 1024th step. */
static inline wf_status wf__interrupted_at(uint64_t step, wf_error *err) {
  return step % 1024 == 0 ? wf__interrupted(err) : WF_OK;
}

/* The next look asks the caller's function, whenever it was asked last: something has just
 * happened, or is about to call foreign code. */
void wf__interrupt_poll(void);

/* Whom this thread works for; NULL: nobody who could interrupt. */
typedef struct wf__interrupt wf__interrupt;
wf__interrupt *wf__interrupt_current(void);
/* From now on for somebody else; returns whom it worked for. */
wf__interrupt *wf__interrupt_exchange(wf__interrupt *current);
/* Must this thread ask the caller's function while it waits? */
bool wf__interrupt_polls(void);

#endif
