/* archive_writer.c - keys of an archive, and their offsets for the script file. */
#include "io/archive_writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

wf_status wf__archive_open(wf__archive_writer *writer, const char *path, const char *script,
                           wf_error *err) {
  *writer = (wf__archive_writer){0};
  if (path == NULL || path[0] == '\0')
    return wf__fail(err, WF_ERR_ARGUMENT, "no output path given");
  if (script != NULL && strcmp(path, "-") == 0)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "a script file cannot point into standard output: give the archive a name");
  writer->path = wf__strndup(path, strlen(path));
  wf_status status = writer->path != NULL ? wf__output_open(path, &writer->archive, err)
                                          : wf__fail_memory(err, strlen(path), "a path");
  if (status == WF_OK && script != NULL) status = wf__output_open(script, &writer->script, err);
  if (status != WF_OK) wf__archive_abort(writer);
  return status;
}

wf_status wf__archive_put_key(wf__archive_writer *writer, const char *key, wf_error *err) {
  if (key == NULL || key[0] == '\0' || strpbrk(key, " \t\r\n") != NULL)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the key '%.80s' is empty or contains blanks, which an archive does not allow",
                    key != NULL ? key : "");
  wf__write_text(writer->archive, key);
  wf__write_text(writer->archive, " ");
  if (writer->script != NULL)
    wf__printf(writer->script, "%s %s:%llu\n", key, writer->path,
               (unsigned long long)wf__output_offset(writer->archive));
  return WF_OK;
}

wf_status wf__archive_close(wf__archive_writer *writer, wf_error *err) {
  wf_status status = WF_OK;
  if (writer->archive != NULL) status = wf__output_close(writer->archive, err);
  writer->archive = NULL;
  if (status == WF_OK && writer->script != NULL) {
    status = wf__output_close(writer->script, err);
    writer->script = NULL;
  }
  wf__archive_abort(writer);
  return status;
}

void wf__archive_abort(wf__archive_writer *writer) {
  wf__output_abort(writer->archive);
  wf__output_abort(writer->script);
  free(writer->path);
  *writer = (wf__archive_writer){0};
}
