/* callbacks.h - log messages and progress reports to the caller during a call. */
#ifndef WF_BASE_CALLBACKS_H
#define WF_BASE_CALLBACKS_H

#include "base/error.h"

/* Formats a message and passes it to the process's log callback, if any. */
void wf__log(wf_log_level level, const char *format, ...) WF__PRINTF(2, 3);

/* Reports progress. Returns WF_ERR_CANCELLED if the callback or the thread's function of
 * wf_set_interrupt cancels. */
wf_status wf__progress(const wf_progress *progress, const char *stage, double fraction,
                       wf_error *err);

#endif
