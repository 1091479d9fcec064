/* output.h - buffered output to a file or a stream (output_target.h), or to memory. A file gets its
 * name when it is complete. A name that ends in ".gz" makes the output gzip. The first write error
 * is kept and reported at close, so callers need not check each write. "-" is standard output.
 */
#ifndef WF_BASE_OUTPUT_H
#define WF_BASE_OUTPUT_H

#include "base/error.h"

typedef wf_output wf__output;

/* Error: a path of Kaldi's forms "ark:PATH", "scp:PATH" and "|COMMAND". Writers of tables take the
 * prefix off before (io/archive_writer.h). */
wf_status wf__output_open(const char *path, wf__output **out, wf_error *err);
/* An output to memory, which wf__output_take or wf__output_abort ends. */
wf_status wf__output_open_memory(wf__output **out, wf_error *err);
void wf__write(wf__output *output, const void *data, size_t size);
void wf__write_text(wf__output *output, const char *text);
void wf__printf(wf__output *output, const char *format, ...) WF__PRINTF(2, 3);
/* Writes out the buffer of a stream, whose reader may be waiting. Nothing for a file. */
void wf__output_flush(wf__output *output);
/* Bytes written so far, before compression. */
uint64_t wf__output_offset(const wf__output *output);
/* Error: offsets in a file at `path` would be useless, and bytes could not be overwritten, because
 * the path is a stream or gzip. `what`: what needs them, for the message. */
wf_status wf__output_needs_offsets(const char *path, const char *what, wf_error *err);
/* Overwrites bytes written before. Only after wf__output_needs_offsets. */
void wf__output_patch(wf__output *output, uint64_t offset, const void *data, size_t size);
/* Flushes, renames, frees. On failure the file under the final name is unchanged. */
wf_status wf__output_close(wf__output *output, wf_error *err);
/* Ends an output to memory and frees it, also on failure. The caller frees `*data` with free(); it
 * is NULL if nothing was written. */
wf_status wf__output_take(wf__output *output, void **data, size_t *size, wf_error *err);
/* Discards everything written. NULL is allowed. */
void wf__output_abort(wf__output *output);

#endif
