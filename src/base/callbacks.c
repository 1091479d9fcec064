/* callbacks.c - calls of the log and progress callbacks. */
#include "base/callbacks.h"

#include "base/interrupt.h"

static wf_log_fn g_log_fn;
static void *g_log_user;

void wf_set_log(wf_log_fn fn, void *user) {
  g_log_fn = fn;
  g_log_user = user;
}

void wf__log(wf_log_level level, const char *format, ...) {
  if (g_log_fn == NULL) return;
  char text[1024];
  va_list args;
  va_start(args, format);
  wf__format_text(text, sizeof text, format, args);
  va_end(args);
  wf__interrupt_poll(); /* a pending KeyboardInterrupt would be lost in a ctypes callback */
  (void)wf__stopped();
  g_log_fn(g_log_user, level, text);
}

wf_status wf__progress(const wf_progress *progress, const char *stage, double fraction,
                       wf_error *err) {
  WF__TRY(wf__interrupted(err));
  if (progress == NULL || progress->fn == NULL || progress->fn(progress->user, stage, fraction))
    return WF_OK;
  return wf__fail(err, WF_ERR_CANCELLED, "cancelled during %s", stage);
}
