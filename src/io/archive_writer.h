/* archive_writer.h - writes a Kaldi archive and, on request, a script file that points into it. */
#ifndef WF_IO_ARCHIVE_WRITER_H
#define WF_IO_ARCHIVE_WRITER_H

#include "base/output.h"

typedef struct wf__archive_writer {
  char *path;
  bool text, binary; /* asked for by Kaldi's prefix of the path */
  wf__output *archive;
  wf__output *script; /* NULL if not requested */
} wf__archive_writer;

/* Opens both files. `path` may have Kaldi's prefix, as in "ark,scp:ARCHIVE,SCRIPT"
 * (kaldi_prefix.h). `script` may be NULL. On failure nothing is left open. */
wf_status wf__archive_open(wf__archive_writer *writer, const char *path, const char *script,
                           wf_error *err);
/* Changes the format from `binary` to `text` if the prefix asks for that. Error: a prefix that
 * contradicts the format. */
wf_status wf__archive_choose_format(const wf__archive_writer *writer, int32_t binary, int32_t text,
                                    int32_t *format, wf_error *err);
/* Writes "key " to the archive and the offset after it to the script file. The caller then writes
 * the value to writer->archive. Error: a key that is empty or contains blanks. */
wf_status wf__archive_put_key(wf__archive_writer *writer, const char *key, wf_error *err);
/* Completes both files. Frees the writer's memory, also on failure. */
wf_status wf__archive_close(wf__archive_writer *writer, wf_error *err);
void wf__archive_abort(wf__archive_writer *writer);

#endif
