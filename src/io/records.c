/* records.c - iteration over archives and script files. */
#include "io/records.h"

#include <string.h>

#include "io/kaldi_archive.h"

wf_status wf__records_open(const char *const *sources, size_t num_sources, wf__records *out,
                           wf_error *err) {
  *out = (wf__records){0};
  if (num_sources == 0 || sources == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "no source given");
  out->specs = wf__calloc(num_sources, sizeof *out->specs);
  wf_status status = out->specs != NULL ? WF_OK
                                        : wf__fail_memory(err, num_sources * sizeof *out->specs,
                                                          "a list of sources");
  for (size_t i = 0; i < num_sources && status == WF_OK; i++) {
    status = wf__score_spec_parse(sources[i], &out->specs[i], err);
    if (status == WF_OK) out->num_specs++;
  }
  if (status != WF_OK) wf__records_close(out);
  return status;
}

static void close_file(wf__records *records) {
  wf__input_close(&records->file);
  free(records->file_path);
  records->file_path = NULL;
}

static void close_source(wf__records *records) {
  if (records->source_open) wf__source_close(&records->source);
  records->source_open = false;
}

void wf__records_close(wf__records *records) {
  close_source(records);
  close_file(records);
  for (size_t i = 0; i < records->num_specs; i++) wf__score_spec_free(&records->specs[i]);
  free(records->specs);
  *records = (wf__records){0};
}

/* Reads the next record of an archive, or sets `*end`. */
static wf_status next_in_archive(wf__records *records, wf__record_fn *read, void *user, char **key,
                                 bool *end, wf_error *err) {
  bool lost = true;
  wf_status status = WF_OK;
  if (!records->source_open) {
    status = wf__source_open(records->specs[records->current].path, &records->source, err);
    records->source_open = status == WF_OK;
  }
  if (status == WF_OK) status = wf__kaldi_read_key(&records->source, records->lines, key, err);
  *end = status == WF_OK && *key == NULL;
  if (status == WF_OK && !*end) {
    status = read(user, &records->source, NULL, &lost, err);
    if (status != WF_OK) wf__fail_prefix(err, status, "utterance '%.80s'", *key);
  }
  if (status != WF_OK && lost) {
    records->lost_rest = true;
    *end = true;
  }
  return status;
}

static wf_status open_entry(wf__records *records, const wf__score_entry *entry, wf_error *err) {
  if (records->file_path != NULL && strcmp(records->file_path, entry->path) == 0) return WF_OK;
  close_file(records);
  records->file_path = wf__strndup(entry->path, strlen(entry->path));
  if (records->file_path == NULL) return wf__fail_memory(err, strlen(entry->path), "a path");
  wf_status status = wf__input_open(entry->path, &records->file, err);
  if (status != WF_OK) close_file(records);
  return status;
}

static wf_status read_entry(wf__records *records, const wf__score_entry *entry, wf__record_fn *read,
                            void *user, char **key, wf_error *err) {
  wf__source source;
  bool lost = true;
  *key = wf__strndup(entry->key, strlen(entry->key));
  if (*key == NULL) return wf__fail_memory(err, strlen(entry->key), "a key");
  if (entry->error != NULL) return wf__fail(err, WF_ERR_FORMAT, "%s", entry->error);
  WF__TRY(open_entry(records, entry, err));
  const wf__input *file = &records->file;
  if (entry->offset > file->size)
    return wf__fail(err, WF_ERR_FORMAT, "%s: offset %llu is beyond the file's %llu bytes",
                    entry->path, (unsigned long long)entry->offset, (unsigned long long)file->size);
  WF__TRY(wf__source_memory(file->data, file->size, file->path, &source, err));
  source.at += entry->offset;
  wf_status status = read(user, &source, entry, &lost, err);
  wf__source_close(&source);
  return status;
}

static wf_status next_entry(wf__records *records, const wf__score_spec *spec, wf__record_fn *read,
                            void *user, char **key, bool *end, wf_error *err) {
  *end = records->entry == spec->entries.size;
  if (*end) return WF_OK;
  const wf__score_entry *entry = &spec->entries.data[records->entry++];
  wf_status status = read_entry(records, entry, read, user, key, err);
  return status != WF_OK ? wf__fail_prefix(err, status, "utterance '%.80s'", entry->key) : WF_OK;
}

wf_status wf__records_next(wf__records *records, wf__record_fn *read, void *user, char **key,
                           bool *done, wf_error *err) {
  *key = NULL;
  *done = false;
  records->lost_rest = false;
  while (records->current < records->num_specs) {
    const wf__score_spec *spec = &records->specs[records->current];
    bool end = false;
    wf_status status = spec->is_archive ? next_in_archive(records, read, user, key, &end, err)
                                        : next_entry(records, spec, read, user, key, &end, err);
    if (end) {
      close_source(records);
      close_file(records);
      records->current++;
      records->entry = 0;
    }
    if (status != WF_OK || !end) return status;
  }
  *done = true;
  return WF_OK;
}

double wf__records_fraction(const wf__records *records) {
  if (records->current == records->num_specs) return 1;
  const wf__score_spec *spec = &records->specs[records->current];
  double part = 0;
  if (!spec->is_archive)
    part = spec->entries.size != 0 ? (double)records->entry / (double)spec->entries.size : 1;
  else if (records->source_open)
    part = wf__source_fraction(&records->source);
  return part < 0 ? -1 : ((double)records->current + part) / (double)records->num_specs;
}
