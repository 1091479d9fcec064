/* output.h - buffered, atomic output. The data goes to an unnamed file in the target folder, so a
 * killed process leaves nothing behind. wf__output_close links it to PATH if PATH does not exist;
 * else it links it to PATH.tmp.PID and renames that to PATH. If the file system does not support
 * unnamed files, the file is PATH.tmp.PID from the start. The first write error is kept and
 * reported at close, so callers need not check each write. "-" writes directly to standard output.
 */
#ifndef WF_BASE_OUTPUT_H
#define WF_BASE_OUTPUT_H

#include "base/error.h"

typedef struct wf__output wf__output;

wf_status wf__output_open(const char *path, wf__output **out, wf_error *err);
void wf__write(wf__output *output, const void *data, size_t size);
void wf__write_text(wf__output *output, const char *text);
void wf__printf(wf__output *output, const char *format, ...) WF__PRINTF(2, 3);
/* Writes out the buffer, for readers that wait on a pipe. */
void wf__output_flush(wf__output *output);
/* Bytes written so far. */
uint64_t wf__output_offset(const wf__output *output);
/* Overwrites bytes written before (not on standard output). */
void wf__output_patch(wf__output *output, uint64_t offset, const void *data, size_t size);
/* Flushes, renames, frees. On failure the file under the final name is unchanged. */
wf_status wf__output_close(wf__output *output, wf_error *err);
/* Discards everything written. NULL is allowed. */
void wf__output_abort(wf__output *output);

#endif
