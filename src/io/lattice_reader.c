/* lattice_reader.c - reads the records of the sources as lattices. */
#include <stdlib.h>
#include <string.h>

#include "base/option_tables.h"
#include "io/kaldi_lattice.h"
#include "io/records.h"

struct wf_lattice_reader {
  wf__records records;
  wf_symbols *words;
  wf__lattice_conversion conversion;
};

void wf_lattice_entry_clear(wf_lattice_entry *entry) {
  free(entry->key);
  wf_lattice_free(entry->raw);
  wf_compact_lattice_free(entry->compact);
  *entry = (wf_lattice_entry){0};
}

wf_status wf_lattice_reader_open(const char *const *sources, size_t num_sources,
                                 const wf_symbols *words, const wf_lattice_reader_options *options,
                                 wf_lattice_reader **out, wf_error *err) {
  if (out == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "out is NULL");
  *out = NULL;
  wf_lattice_reader_options taken;
  WF__TRY(wf__options_take(wf__lattice_reader_table(), options, &taken, err));
  wf_lattice_reader *reader = wf__calloc(1, sizeof *reader);
  if (reader == NULL) return wf__fail_memory(err, sizeof *reader, "a lattice reader");
  wf_status status = wf__records_open(sources, num_sources, &reader->records, err);
  if (status != WF_OK) {
    free(reader);
    return status;
  }
  reader->records.lines = true;
  reader->words = words != NULL ? wf_symbols_ref(words) : NULL;
  reader->conversion = (wf__lattice_conversion){taken.lm_scale, taken.acoustic_scale, taken.kind};
  *out = reader;
  return WF_OK;
}

struct lattice_target {
  const wf_lattice_reader *reader;
  wf_lattice_entry *out;
};

static wf_status read_lattice(void *user, wf__source *source, const wf__score_entry *entry,
                              bool *lost, wf_error *err) {
  const struct lattice_target *target = user;
  if (entry != NULL && (entry->has_rows || entry->has_columns))
    return wf__fail(err, WF_ERR_FORMAT, "%s: a lattice cannot have a range", source->path);
  wf__unsorted_lattice unsorted;
  wf_status status = wf__kaldi_read_lattice(source, target->reader->words, &unsorted, lost, err);
  if (status == WF_OK) {
    status = wf__unsorted_finish(&unsorted, &target->reader->conversion, target->out, err);
    if (status != WF_OK) wf__fail_prefix(err, status, "%s", source->path);
  }
  wf__unsorted_free(&unsorted);
  return status;
}

wf_status wf_lattice_reader_next(wf_lattice_reader *reader, wf_lattice_entry *out, bool *done,
                                 wf_error *err) {
  *out = (wf_lattice_entry){0};
  char *key = NULL;
  struct lattice_target target = {reader, out};
  wf_status status = wf__records_next(&reader->records, read_lattice, &target, &key, done, err);
  if (status != WF_OK) wf_lattice_entry_clear(out);
  out->key = key;
  return status;
}

bool wf_lattice_reader_lost_rest(const wf_lattice_reader *reader) {
  return reader->records.lost_rest;
}

double wf_lattice_reader_fraction(const wf_lattice_reader *reader) {
  return wf__records_fraction(&reader->records);
}

void wf_lattice_reader_free(wf_lattice_reader *reader) {
  if (reader == NULL) return;
  wf__records_close(&reader->records);
  wf_symbols_free(reader->words);
  free(reader);
}
