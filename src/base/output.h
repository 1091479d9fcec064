/* output.h - buffered output that appears whole or not at all.
 *
 * A file is written without a name in the same folder, so that nothing is left of a process that is
 * killed; wf__output_close gives it the name PATH if no file has that, else PATH.tmp.PID, and
 * renames. Where the system cannot do that it is PATH.tmp.PID from the start. Write errors are kept
 * and reported once, at close, so that callers need not check each write. "-" goes to standard
 * output directly. */
#ifndef WF_BASE_OUTPUT_H
#define WF_BASE_OUTPUT_H

#include "base/error.h"

typedef struct wf__output wf__output;

wf_status wf__output_open(const char *path, wf__output **out, wf_error *err);
void wf__write(wf__output *output, const void *data, size_t size);
void wf__write_text(wf__output *output, const char *text);
void wf__printf(wf__output *output, const char *format, ...) WF__PRINTF(2, 3);
/* Hands what is buffered to the system now, for readers of a pipe who wait. */
void wf__output_flush(wf__output *output);
/* Bytes written so far. */
uint64_t wf__output_offset(const wf__output *output);
/* Overwrites bytes written before (not on standard output). */
void wf__output_patch(wf__output *output, uint64_t offset, const void *data, size_t size);
/* Flushes, renames, frees. On failure nothing is left under the final name that was not there
 * before. */
wf_status wf__output_close(wf__output *output, wf_error *err);
/* Drops everything written. NULL is fine. */
void wf__output_abort(wf__output *output);

#endif
