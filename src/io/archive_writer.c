/* archive_writer.c - keys of an archive, and their offsets for the script file. */
#include "io/archive_writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/kaldi_prefix.h"
#include "base/memory.h"

static wf_status open_files(wf__archive_writer *writer, const char *script, wf_error *err) {
  if (script != NULL)
    WF__TRY(wf__output_needs_offsets(writer->path, "an archive with a script file", err));
  WF__TRY(wf__output_open(writer->path, &writer->archive, err));
  return script != NULL ? wf__output_open(script, &writer->script, err) : WF_OK;
}

wf_status wf__archive_open(wf__archive_writer *writer, const char *path, const char *script,
                           wf_error *err) {
  wf__kaldi_table table;
  *writer = (wf__archive_writer){0};
  if (path == NULL || path[0] == '\0')
    return wf__fail(err, WF_ERR_ARGUMENT, "no output path given");
  WF__TRY(wf__kaldi_table_parse(path, &table, err));
  *writer = (wf__archive_writer){.path = table.archive, .text = table.text, .binary = table.binary};
  table.archive = NULL;
  wf_status status =
      script != NULL && table.script != NULL
          ? wf__fail(err, WF_ERR_ARGUMENT, "%s: the script file is given twice", path)
          : open_files(writer, script != NULL ? script : table.script, err);
  wf__kaldi_table_free(&table);
  if (status != WF_OK) wf__archive_abort(writer);
  return status;
}

wf_status wf__archive_choose_format(const wf__archive_writer *writer, int32_t binary, int32_t text,
                                    int32_t *format, wf_error *err) {
  if (writer->text && *format == binary) *format = text;
  if ((writer->text && *format != text) || (writer->binary && *format == text))
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the prefix of %s asks for %s, which contradicts the chosen format",
                    writer->path, writer->text ? "text (t)" : "binary (b)");
  return WF_OK;
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
