/* columns.c - reads the column of each label from `label column` lines or from an acoustic model.
 */
#include "columns.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "am_model.h"
#include "base/platform.h"
#include "text_input.h"
#include "utterance_lists.h"

enum { MAX_LABEL = 1 << 26 };

static bool parse_number(char **at, long most, long *out) {
  char *stop;
  errno = 0;
  *out = strtol(*at, &stop, 10);
  bool good = stop != *at && errno == 0 && *out >= 0 && *out <= most &&
              (*stop == '\0' || isspace((unsigned char)*stop));
  *at = stop;
  return good;
}

static wf_status set_column(column_table *columns, long label, long column, wf_error *err) {
  if ((size_t)label >= columns->cap) {
    size_t cap = (size_t)label * 2 + 64;
    int32_t *data = realloc(columns->data, cap * sizeof *data);
    if (data == NULL) return list_error(err, WF_ERR_MEMORY, "columns", 0, "out of memory");
    for (size_t i = columns->cap; i < cap; i++) data[i] = -1;
    columns->data = data;
    columns->cap = cap;
  }
  if ((size_t)label >= columns->size) columns->size = (size_t)label + 1;
  columns->data[label] = (int32_t)column;
  return WF_OK;
}

/* Reads `label column` lines, for graphs where the input label is not column + 1. Several labels
 * may have the same column, as Kaldi's transition-ids do. */
static wf_status read_columns(const char *path, column_table *out, wf_error *err) {
  cli_lines lines;
  wf_status status = cli_lines_open(&lines, path, err);
  while (status == WF_OK && cli_lines_next(&lines)) {
    long label, column;
    char *line = lines.text, *at = line;
    if (line[strspn(line, " \t\r\n")] == '\0') continue;
    bool good = parse_number(&at, MAX_LABEL, &label) && label > 0 &&
                parse_number(&at, INT32_MAX - 1, &column) && at[strspn(at, " \t\r\n")] == '\0';
    if (good && (size_t)label < out->size && out->data[label] >= 0 &&
        out->data[label] != (int32_t)column)
      good = false;
    if (good) {
      status = set_column(out, label, column, err);
      continue;
    }
    err->code = status = WF_ERR_FORMAT;
    line[strcspn(line, "\r\n")] = '\0';
    snprintf(
        err->message, sizeof err->message,
        "%s:%zu: '%.80s', expected `label column` with a label from 1 to %d and one column for "
        "each label",
        path, lines.number, line, MAX_LABEL);
  }
  return cli_lines_close(&lines, status, err);
}

/* Reads the columns from an acoustic model. */
static wf_status read_model_columns(const char *path, column_table *out, wf_error *err) {
  am_source source = {.path = path};
  wf_hmm *hmm;
  int32_t *columns;
  size_t count;
  wf_status status = am_read(&source, false, &hmm, err);
  if (status != WF_OK) return status;
  status = wf_hmm_columns(hmm, &columns, &count, err);
  wf_hmm_free(hmm);
  if (status != WF_OK) return status;
  for (size_t label = 1; label < count && status == WF_OK; label++)
    status = set_column(out, (long)label, columns[label], err);
  wf_free(columns);
  return status;
}

wf_status columns_find(const char *columns_path, const char *am_path, const char *graph,
                       column_table *out, wf_error *err) {
  char beside[4096];
  if (columns_path != NULL) return read_columns(columns_path, out, err);
  if (am_path != NULL) return read_model_columns(am_path, out, err);
  snprintf(beside, sizeof beside, "%s.columns", graph);
  return wf__path_kind(beside) != WF__FILE_NONE ? read_columns(beside, out, err) : WF_OK;
}
