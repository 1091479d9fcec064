/* archive_writer.h - a Kaldi archive being written, with a script file that points into it on
 * request. */
#ifndef WF_IO_ARCHIVE_WRITER_H
#define WF_IO_ARCHIVE_WRITER_H

#include "base/output.h"

typedef struct wf__archive_writer {
  char *path;
  wf__output *archive;
  wf__output *script; /* NULL if not requested */
} wf__archive_writer;

/* `script` may be NULL. Aborted on failure. */
wf_status wf__archive_open(wf__archive_writer *writer, const char *path, const char *script,
                           wf_error *err);
/* Writes "key " and notes the place behind it; the value is the caller's to write to
 * writer->archive. Error: a key with blanks, or none. */
wf_status wf__archive_put_key(wf__archive_writer *writer, const char *key, wf_error *err);
/* Completes both files. Frees, also when it fails. */
wf_status wf__archive_close(wf__archive_writer *writer, wf_error *err);
void wf__archive_abort(wf__archive_writer *writer);

#endif
