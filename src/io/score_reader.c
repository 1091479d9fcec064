/* score_reader.c - the stream of score matrices: archives record by record, script and folder entries one by one.
 *
 *     specs[0] specs[1] ... specs[current] ...        each an archive (source, while it is read) or a list of entries (entry)
 *
 * Entries that follow each other in one file share its mapping (`file`). */
#include <stdlib.h>
#include <string.h>

#include "base/option_tables.h"
#include "graph/sphinx_s3.h"
#include "io/kaldi_archive.h"
#include "io/npy.h"
#include "io/score_spec.h"
#include "io/sphinx_sen.h"

struct wf_score_reader {
  float scale;
  wf__score_spec *specs;
  size_t num_specs, current;
  uint64_t entry;   /* next of the current spec */
  wf__source source; /* of the current archive */
  bool source_open;
  wf__input file; /* of the last entry */
  char *file_path;
  bool lost_rest;
};

wf_status wf_score_reader_open(const char *const *sources, size_t num_sources, const wf_score_reader_options *options, wf_score_reader **out,
                               wf_error *err) {
  if (out == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "out is NULL");
  *out = NULL;
  if (num_sources == 0 || sources == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "no source of scores given");
  wf_score_reader_options taken;
  WF__TRY(wf__options_take(wf__score_reader_table(), options, &taken, err));
  wf_score_reader *reader = wf__calloc(1, sizeof *reader);
  if (reader == NULL) return wf__fail_memory(err, sizeof *reader, "a score reader");
  reader->scale = taken.scale;
  reader->specs = wf__calloc(num_sources, sizeof *reader->specs);
  wf_status status = reader->specs != NULL ? WF_OK : wf__fail_memory(err, num_sources * sizeof *reader->specs, "a score reader");
  for (size_t i = 0; i < num_sources && status == WF_OK; i++) {
    status = wf__score_spec_parse(sources[i], &reader->specs[i], err);
    if (status == WF_OK) reader->num_specs++;
  }
  if (status != WF_OK) {
    wf_score_reader_free(reader);
    return status;
  }
  *out = reader;
  return WF_OK;
}

static void close_file(wf_score_reader *reader) {
  wf__input_close(&reader->file);
  free(reader->file_path);
  reader->file_path = NULL;
}

static void close_source(wf_score_reader *reader) {
  if (reader->source_open) wf__source_close(&reader->source);
  reader->source_open = false;
}

void wf_score_reader_free(wf_score_reader *reader) {
  if (reader == NULL) return;
  close_source(reader);
  close_file(reader);
  for (size_t i = 0; i < reader->num_specs; i++) wf__score_spec_free(&reader->specs[i]);
  free(reader->specs);
  free(reader);
}

/* --- archives ----------------------------------------------------------------------------------------------------- */

/* The next record, or `*end`. */
static wf_status next_record(wf_score_reader *reader, wf_matrix *out, bool *end, wf_error *err) {
  bool lost = true;
  wf_status status = WF_OK;
  if (!reader->source_open) {
    status = wf__source_open(reader->specs[reader->current].path, &reader->source, err);
    reader->source_open = status == WF_OK;
  }
  if (status == WF_OK) status = wf__kaldi_read_key(&reader->source, &out->key, err);
  *end = status == WF_OK && out->key == NULL;
  if (status == WF_OK && !*end) {
    status = wf__kaldi_read_value(&reader->source, reader->scale, out, &lost, err);
    if (status != WF_OK) wf__fail_prefix(err, status, "utterance '%.80s'", out->key);
  }
  if (status != WF_OK && lost) {
    reader->lost_rest = true;
    *end = true;
  }
  return status;
}

/* --- entries of script files and folders -------------------------------------------------------------------------- */

static wf_status open_entry(wf_score_reader *reader, const wf__score_entry *entry, wf_error *err) {
  if (reader->file_path != NULL && strcmp(reader->file_path, entry->path) == 0) return WF_OK;
  close_file(reader);
  reader->file_path = wf__strndup(entry->path, strlen(entry->path));
  if (reader->file_path == NULL) return wf__fail_memory(err, strlen(entry->path), "a path");
  wf_status status = wf__input_open(entry->path, &reader->file, err);
  if (status != WF_OK) close_file(reader);
  return status;
}

static wf_status read_kaldi_file(const wf__input *file, uint64_t offset, float scale, wf_matrix *out, wf_error *err) {
  wf__source source;
  bool lost;
  WF__TRY(wf__source_memory(file->data, file->size, file->path, &source, err));
  source.at += offset;
  wf_status status = wf__kaldi_read_value(&source, scale, out, &lost, err);
  wf__source_close(&source);
  return status;
}

/* Keeps the rows and columns of the ranges. The array stays as large as it was. */
static wf_status cut_ranges(const wf__score_entry *entry, wf_matrix *out, wf_error *err) {
  int64_t first_row = 0, last_row = out->num_frames - 1, first_column = 0, last_column = out->num_columns - 1;
  if (entry->has_rows) first_row = entry->rows[0], last_row = entry->rows[1];
  if (entry->has_columns) first_column = entry->columns[0], last_column = entry->columns[1];
  if (last_row >= out->num_frames || last_column >= out->num_columns)
    return wf__fail(err, WF_ERR_FORMAT, "%s: the range goes to row %lld, column %lld; the matrix is %lld x %d", entry->path, (long long)last_row,
                    (long long)last_column, (long long)out->num_frames, out->num_columns);
  size_t width = (size_t)(last_column - first_column + 1), old = (size_t)out->num_columns;
  for (int64_t t = first_row; t <= last_row; t++)
    memmove(out->data + (size_t)(t - first_row) * width, out->data + (size_t)t * old + (size_t)first_column, width * sizeof(float));
  out->num_frames = last_row - first_row + 1;
  out->num_columns = (int32_t)width;
  return WF_OK;
}

static wf_status read_entry(wf_score_reader *reader, const wf__score_entry *entry, wf_matrix *out, wf_error *err) {
  out->key = wf__strndup(entry->key, strlen(entry->key));
  if (out->key == NULL) return wf__fail_memory(err, strlen(entry->key), "a key");
  WF__TRY(open_entry(reader, entry, err));
  const wf__input *file = &reader->file;
  if (entry->offset > file->size)
    return wf__fail(err, WF_ERR_FORMAT, "%s: offset %llu is beyond the file's %llu bytes", entry->path, (unsigned long long)entry->offset,
                    (unsigned long long)file->size);
  size_t length = strlen(entry->path);
  if (wf__is_npy(file->data, file->size) || (length > 4 && strcmp(entry->path + length - 4, ".npy") == 0)) {
    if (entry->offset != 0) return wf__fail(err, WF_ERR_FORMAT, "%s: an npy file takes no offset", entry->path);
    WF__TRY(wf__npy_read(file->data, file->size, file->path, reader->scale, out, err));
  } else if (entry->offset == 0 && wf__is_s3(file->data, file->size)) {
    WF__TRY(wf__sen_read(file, reader->scale, out, err));
  } else {
    WF__TRY(read_kaldi_file(file, entry->offset, reader->scale, out, err));
  }
  return entry->has_rows || entry->has_columns ? cut_ranges(entry, out, err) : WF_OK;
}

static wf_status next_entry(wf_score_reader *reader, const wf__score_spec *spec, wf_matrix *out, bool *end, wf_error *err) {
  *end = reader->entry == spec->entries.size;
  if (*end) return WF_OK;
  const wf__score_entry *entry = &spec->entries.data[reader->entry++];
  wf_status status = read_entry(reader, entry, out, err);
  return status != WF_OK ? wf__fail_prefix(err, status, "utterance '%.80s'", entry->key) : WF_OK;
}

/* --- the stream --------------------------------------------------------------------------------------------------- */

wf_status wf_score_reader_next(wf_score_reader *reader, wf_matrix *out, bool *done, wf_error *err) {
  *out = (wf_matrix){0};
  *done = false;
  reader->lost_rest = false;
  while (reader->current < reader->num_specs) {
    const wf__score_spec *spec = &reader->specs[reader->current];
    bool end = false;
    wf_status status = spec->is_archive ? next_record(reader, out, &end, err) : next_entry(reader, spec, out, &end, err);
    if (end) {
      close_source(reader);
      close_file(reader);
      reader->current++;
      reader->entry = 0;
    }
    if (status != WF_OK) {
      free(out->data);
      *out = (wf_matrix){.key = out->key};
      return status;
    }
    if (!end) return WF_OK;
  }
  *done = true;
  return WF_OK;
}

bool wf_score_reader_lost_rest(const wf_score_reader *reader) { return reader->lost_rest; }

double wf_score_reader_fraction(const wf_score_reader *reader) {
  if (reader->current == reader->num_specs) return 1;
  const wf__score_spec *spec = &reader->specs[reader->current];
  double part = 0;
  if (!spec->is_archive) part = spec->entries.size != 0 ? (double)reader->entry / (double)spec->entries.size : 1;
  else if (reader->source_open) part = wf__source_fraction(&reader->source);
  return part < 0 ? -1 : ((double)reader->current + part) / (double)reader->num_specs;
}
