/* output_target.h - where the bytes of an output go.
 *
 *  a file    new, or in the place of a regular file: an unnamed file in the same folder, which gets
 *            its name when it is complete, so a killed process leaves nothing behind. If the file
 *            system does not support unnamed files, it is PATH.tmp.PID from the start. A symbolic
 *            link stays: the file that it points to is replaced.
 *  a stream  a FIFO, socket, terminal or other device, opened for writing only, and an open
 *            descriptor of this process ("-", /dev/stdout, /dev/fd/N, >(command) in bash). The
 *            bytes arrive as they are written; nothing is renamed or truncated.
 */
#ifndef WF_BASE_OUTPUT_TARGET_H
#define WF_BASE_OUTPUT_TARGET_H

#include "base/error.h"

typedef struct wf__target {
  char *path;      /* of the file, links resolved; NULL: a stream */
  char *temporary; /* name of the unfinished file; NULL: it has none */
  int fd;
  bool is_standard; /* fd is standard output, which stays open */
} wf__target;

/* True if the path is a file, or would be a new one; false for a stream. */
bool wf__target_is_file(const char *path);
/* Opens the target. A FIFO waits for its reader. On failure nothing is left open. */
wf_status wf__target_open(const char *path, wf__target *out, wf_error *err);
/* Writes all bytes. These functions return 0 or an errno: ECANCELED if the call is cancelled, EPIPE
 * if the reader of a pipe has stopped. Only on standard output SIGPIPE ends the process, as usual.
 */
int wf__target_write(wf__target *target, const void *data, size_t size);
/* Gives a file its final name, closes, frees; also on failure, where the file under that name is
 * unchanged. */
int wf__target_finish(wf__target *target);
/* Closes, removes an unfinished file, frees. Safe after wf__target_finish. */
void wf__target_discard(wf__target *target);

static inline bool wf__target_is_stream(const wf__target *target) { return target->path == NULL; }

#endif
