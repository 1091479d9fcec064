/* score_reader.c - reads the records of the sources as score matrices. */
#include <stdlib.h>
#include <string.h>

#include "base/option_tables.h"
#include "graph/sphinx_s3.h"
#include "io/kaldi_archive.h"
#include "io/npy.h"
#include "io/records.h"
#include "io/sphinx_sen.h"

struct wf_score_reader {
  float scale;
  wf__records records;
};

wf_status wf_score_reader_open(const char *const *sources, size_t num_sources,
                               const wf_score_reader_options *options, wf_score_reader **out,
                               wf_error *err) {
  if (out == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "out is NULL");
  *out = NULL;
  wf_score_reader_options taken;
  WF__TRY(wf__options_take(wf__score_reader_table(), options, &taken, err));
  wf_score_reader *reader = wf__calloc(1, sizeof *reader);
  if (reader == NULL) return wf__fail_memory(err, sizeof *reader, "a score reader");
  reader->scale = taken.scale;
  wf_status status = wf__records_open(sources, num_sources, &reader->records, err);
  if (status != WF_OK) {
    free(reader);
    return status;
  }
  *out = reader;
  return WF_OK;
}

void wf_score_reader_free(wf_score_reader *reader) {
  if (reader == NULL) return;
  wf__records_close(&reader->records);
  free(reader);
}

/* Sets [*first, *last] to a range of 0 .. count - 1. `beyond`: how far the end may be too large.
 * Returns whether the range fits. */
static bool fit_range(bool given, const int64_t range[2], int64_t count, int64_t beyond,
                      int64_t *first, int64_t *last) {
  *first = given ? range[0] : 0;
  *last = given && range[1] != INT64_MAX ? range[1] : count - 1;
  if (*last >= count && *last < count + beyond) *last = count - 1;
  return *last < count && *first <= *last;
}

/* Keeps only the rows and columns of the ranges. The array is not reallocated. As in Kaldi, the
 * last row may be up to 3 frames too large, because the lengths of recordings are rounded. */
static wf_status cut_ranges(const wf__score_entry *entry, wf_matrix *out, wf_error *err) {
  enum { ROWS_BEYOND = 3 };
  int64_t first_row, last_row, first_column, last_column;
  bool fits =
      fit_range(entry->has_rows, entry->rows, out->num_frames, ROWS_BEYOND, &first_row, &last_row);
  fits &= fit_range(entry->has_columns, entry->columns, out->num_columns, 0, &first_column,
                    &last_column);
  if (!fits)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: rows %lld to %lld, columns %lld to %lld are not in the matrix, which is "
                    "%lld x %d",
                    entry->path, (long long)first_row, (long long)last_row, (long long)first_column,
                    (long long)last_column, (long long)out->num_frames, out->num_columns);
  size_t width = (size_t)(last_column - first_column + 1), old = (size_t)out->num_columns;
  for (int64_t t = first_row; t <= last_row; t++)
    memmove(out->data + (size_t)(t - first_row) * width,
            out->data + (size_t)t * old + (size_t)first_column, width * sizeof(float));
  out->num_frames = last_row - first_row + 1;
  out->num_columns = (int32_t)width;
  return WF_OK;
}

/* Reads a file with one matrix, or a record at an offset of an archive. `source` has the whole
 * file. */
static wf_status read_entry(wf__source *source, const wf__score_entry *entry, float scale,
                            wf_matrix *out, wf_error *err) {
  bool lost;
  const wf__input rest = {
      .data = source->at, .size = (size_t)wf__source_left(source), .path = source->path};
  size_t length = strlen(entry->path);
  if (length > 4 && strcmp(entry->path + length - 4, ".npy") == 0 && entry->offset != 0)
    return wf__fail(err, WF_ERR_FORMAT, "%s: an npy file cannot have an offset", entry->path);
  if (entry->offset == 0 && (wf__is_npy(rest.data, rest.size) ||
                             (length > 4 && strcmp(entry->path + length - 4, ".npy") == 0)))
    WF__TRY(wf__npy_read(rest.data, rest.size, rest.path, scale, out, err));
  else if (entry->offset == 0 && wf__is_s3(rest.data, rest.size))
    WF__TRY(wf__sen_read(&rest, scale, out, err));
  else
    WF__TRY(wf__kaldi_read_value(source, scale, out, &lost, err));
  return entry->has_rows || entry->has_columns ? cut_ranges(entry, out, err) : WF_OK;
}

struct matrix_target {
  float scale;
  wf_matrix *out;
};

static wf_status read_matrix(void *user, wf__source *source, const wf__score_entry *entry,
                             bool *lost, wf_error *err) {
  const struct matrix_target *target = user;
  if (entry != NULL) return read_entry(source, entry, target->scale, target->out, err);
  return wf__kaldi_read_value(source, target->scale, target->out, lost, err);
}

wf_status wf_score_reader_next(wf_score_reader *reader, wf_matrix *out, bool *done, wf_error *err) {
  *out = (wf_matrix){0};
  char *key = NULL;
  struct matrix_target target = {reader->scale, out};
  wf_status status = wf__records_next(&reader->records, read_matrix, &target, &key, done, err);
  if (status != WF_OK) {
    free(out->data);
    *out = (wf_matrix){0};
  }
  out->key = key;
  return status;
}

bool wf_score_reader_lost_rest(const wf_score_reader *reader) { return reader->records.lost_rest; }

double wf_score_reader_fraction(const wf_score_reader *reader) {
  return wf__records_fraction(&reader->records);
}
