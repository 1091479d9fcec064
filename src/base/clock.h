/* clock.h - the time that has passed, for reports and statistics. */
#ifndef WF_BASE_CLOCK_H
#define WF_BASE_CLOCK_H

#include <time.h>

/* Seconds since some moment, of a clock that nobody sets. */
static inline double wf__now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
