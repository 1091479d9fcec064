/* job_error.h - the first error among a job's threads that ends the whole job. */
#ifndef WF_DECODE_JOB_ERROR_H
#define WF_DECODE_JOB_ERROR_H

#include <stdatomic.h>

#include "base/error.h"

typedef struct wf__job_error {
  atomic_int status; /* 0, or the status that ends the job */
  wf_error first;    /* of the thread that set it */
} wf__job_error;

static inline void wf__job_error_init(wf__job_error *error) { atomic_init(&error->status, 0); }

/* Any thread. */
static inline void wf__job_error_note(wf__job_error *error, wf_status status, const wf_error *err) {
  int none = 0;
  if (status != WF_OK && atomic_compare_exchange_strong(&error->status, &none, (int)status))
    error->first = *err;
}

static inline bool wf__job_failed(const wf__job_error *error) {
  return atomic_load(&error->status) != 0;
}

/* After the job. */
static inline wf_status wf__job_error_end(const wf__job_error *error, wf_error *err) {
  const wf_status status = (wf_status)atomic_load(&error->status);
  if (status != WF_OK && err != NULL) *err = error->first;
  return status;
}

#endif
