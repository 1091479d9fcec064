/* lattice_writer.c - writes lattices to a Kaldi archive, binary or text, or to a folder of SLF
 * files. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/option_tables.h"
#include "fst/symbols.h"
#include "io/archive_writer.h"
#include "io/kaldi_lattice.h"
#include "io/key_files.h"
#include "io/slf.h"

enum { FORMAT_ARK, FORMAT_TEXT, FORMAT_SLF };

struct wf_lattice_writer {
  int32_t format;
  double frame_shift;
  float divisor;
  wf__key_folder folder; /* for SLF */
  wf_symbols *words;
  wf__archive_writer files; /* for the other formats */
};

wf_status wf_lattice_writer_open(const char *path, const wf_symbols *words,
                                 const wf_lattice_writer_options *options, wf_lattice_writer **out,
                                 wf_error *err) {
  if (out == NULL || path == NULL || path[0] == '\0')
    return wf__fail(err, WF_ERR_ARGUMENT, "no output path given");
  *out = NULL;
  wf_lattice_writer_options taken;
  WF__TRY(wf__options_take(wf__lattice_writer_table(), options, &taken, err));
  bool slf = taken.format == FORMAT_SLF;
  if (slf && taken.scp != NULL)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "a script file needs an archive, but the output is a folder of SLF files");
  wf_lattice_writer *writer = wf__calloc(1, sizeof *writer);
  if (writer == NULL) return wf__fail_memory(err, sizeof *writer, "a lattice writer");
  wf_status status = slf ? wf__key_folder_open(path, &writer->folder, err)
                         : wf__archive_open(&writer->files, path, taken.scp, err);
  writer->format = taken.format;
  if (status == WF_OK && !slf)
    status =
        wf__archive_choose_format(&writer->files, FORMAT_ARK, FORMAT_TEXT, &writer->format, err);
  if (status != WF_OK) {
    wf_lattice_writer_abort(writer);
    return status;
  }
  writer->frame_shift = (double)taken.frame_shift;
  writer->divisor = taken.acoustic_divisor;
  writer->words = words != NULL ? wf_symbols_ref(words) : NULL;
  *out = writer;
  return WF_OK;
}

static wf_status check_word(const wf_symbols *words, int32_t word, bool fields, wf_error *err) {
  const char *text = wf_symbols_text(words, word);
  const char *fault = NULL;
  if (text != NULL && fields)
    fault = wf__symbols_field_fault(words, (wf__span){text, strlen(text)});
  if (fault != NULL)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the text '%s' of word %d %s; a text archive cannot hold it: write numbers",
                    text, word, fault);
  if (word == 0 || text != NULL) return WF_OK;
  return wf__fail(err, WF_ERR_ARGUMENT, "word %d is not in the table %s", word,
                  wf__symbols_shown(words));
}

/* `fields`: the texts become fields of lines. */
static wf_status check_words(const wf_lattice_entry *entry, const wf_symbols *words, bool fields,
                             wf_error *err) {
  if (entry->raw != NULL) {
    wf_lattice_view view = wf_lattice_get_view(entry->raw);
    for (uint64_t a = 0; a < view.num_arcs; a++)
      WF__TRY(check_word(words, view.arcs[a].olabel, fields, err));
  } else {
    wf_compact_lattice_view view = wf_compact_lattice_get_view(entry->compact);
    for (uint64_t a = 0; a < view.num_arcs; a++)
      WF__TRY(check_word(words, view.arcs[a].word, fields, err));
  }
  return WF_OK;
}

static wf_status put_slf(wf_lattice_writer *writer, const wf_lattice_entry *entry, wf_error *err) {
  wf_compact_lattice *made = NULL;
  wf__output *output;
  if (entry->compact == NULL) WF__TRY(wf_compact_lattice_from_raw(entry->raw, &made, err));
  wf_compact_lattice_view view = wf_compact_lattice_get_view(made != NULL ? made : entry->compact);
  wf_status status = wf__key_folder_file(&writer->folder, entry->key, ".slf", &output, err);
  if (status == WF_OK) {
    wf__slf_write(output, entry->key, &view, writer->frame_shift, writer->divisor, writer->words);
    status = wf__output_close(output, err);
  }
  wf_compact_lattice_free(made);
  return status;
}

static wf_status put_in_archive(wf_lattice_writer *writer, const wf_lattice_entry *entry,
                                wf_error *err) {
  WF__TRY(wf__archive_put_key(&writer->files, entry->key, err));
  wf__output *output = writer->files.archive;
  bool text = writer->format == FORMAT_TEXT;
  if (entry->raw != NULL) {
    wf_lattice_view view = wf_lattice_get_view(entry->raw);
    if (text)
      wf__kaldi_write_raw_text(output, &view, writer->divisor, writer->words);
    else
      wf__kaldi_write_raw(output, &view, writer->divisor);
  } else {
    wf_compact_lattice_view view = wf_compact_lattice_get_view(entry->compact);
    if (text)
      wf__kaldi_write_compact_text(output, &view, writer->divisor, writer->words);
    else
      wf__kaldi_write_compact(output, &view, writer->divisor);
  }
  wf__output_flush(output);
  return WF_OK;
}

wf_status wf_lattice_writer_put(wf_lattice_writer *writer, const wf_lattice_entry *entry,
                                wf_error *err) {
  if ((entry->raw == NULL) == (entry->compact == NULL))
    return wf__fail(err, WF_ERR_ARGUMENT, "expected either a raw or a compact lattice");
  if (writer->format != FORMAT_ARK && writer->words != NULL)
    WF__TRY(check_words(entry, writer->words, writer->format == FORMAT_TEXT, err));
  return writer->format == FORMAT_SLF ? put_slf(writer, entry, err)
                                      : put_in_archive(writer, entry, err);
}

wf_status wf_lattice_writer_close(wf_lattice_writer *writer, wf_error *err) {
  if (writer == NULL) return WF_OK;
  wf_status status = writer->format != FORMAT_SLF ? wf__archive_close(&writer->files, err) : WF_OK;
  wf_lattice_writer_abort(writer);
  return status;
}

void wf_lattice_writer_abort(wf_lattice_writer *writer) {
  if (writer == NULL) return;
  wf__archive_abort(&writer->files);
  wf_symbols_free(writer->words);
  wf__key_folder_close(&writer->folder);
  free(writer);
}
