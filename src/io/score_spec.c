/* score_spec.c - sources of scores: Kaldi prefixes, script files, folders. */
#include "io/score_spec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/kaldi_prefix.h"
#include "base/platform.h"
#include "base/source.h"
#include "graph/sphinx_s3.h"
#include "io/npy.h"

void wf__score_spec_free(wf__score_spec *spec) {
  for (uint64_t i = 0; i < spec->entries.size; i++) {
    free(spec->entries.data[i].key);
    free(spec->entries.data[i].path);
    free(spec->entries.data[i].error);
  }
  wf__vec_free(&spec->entries);
  free(spec->path);
  *spec = (wf__score_spec){0};
}

/* --- script files ------------------------------------------------------------------------ */

static wf__span trim(wf__span text) {
  while (text.size > 0 && (*text.data == ' ' || *text.data == '\t')) text.data++, text.size--;
  while (text.size > 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
    text.size--;
  return text;
}

/* Parses "3:10", "3:", ":10", or ":" or "" for everything. */
static bool parse_range(wf__span text, int64_t range[2], bool *given) {
  *given = text.size > 0 && !(text.size == 1 && text.data[0] == ':');
  if (!*given) return true;
  const char *colon = memchr(text.data, ':', text.size);
  if (colon == NULL) return false;
  wf__span first = {text.data, (size_t)(colon - text.data)},
           last = {colon + 1, text.size - first.size - 1};
  range[0] = 0;
  range[1] = INT64_MAX;
  return (first.size == 0 || wf__parse_i64(first, &range[0])) &&
         (last.size == 0 || wf__parse_i64(last, &range[1])) && range[0] >= 0 &&
         range[1] >= range[0];
}

/* Removes "[rows]" or "[rows,columns]" from the end of the text and parses it. */
static bool take_ranges(wf__span *text, wf__score_entry *entry) {
  if (text->size == 0 || text->data[text->size - 1] != ']') return true;
  const char *open = wf__find_last(*text, '[');
  if (open == NULL) return false;
  wf__span rows = {open + 1, (size_t)(text->data + text->size - 1 - (open + 1))},
           columns = {NULL, 0};
  const char *comma = memchr(rows.data, ',', rows.size);
  if (comma != NULL) {
    columns = (wf__span){comma + 1, rows.size - (size_t)(comma - rows.data) - 1};
    rows.size = (size_t)(comma - rows.data);
  }
  text->size = (size_t)(open - text->data);
  return parse_range(rows, entry->rows, &entry->has_rows) &&
         parse_range(columns, entry->columns, &entry->has_columns);
}

/* Removes ":12345" from the end of the text and parses it. */
static bool take_offset(wf__span *text, wf__score_entry *entry) {
  const char *colon = wf__find_last(*text, ':');
  if (colon == NULL) return true;
  wf__span digits = {colon + 1, (size_t)(text->data + text->size - colon - 1)};
  for (size_t i = 0; i < digits.size; i++)
    if (digits.data[i] < '0' || digits.data[i] > '9') return true; /* part of the path */
  int64_t offset = 0;
  if (digits.size == 0) return true;
  if (!wf__parse_i64(digits, &offset)) return false;
  entry->offset = (uint64_t)offset;
  entry->has_offset = true;
  text->size = (size_t)(colon - text->data);
  return true;
}

/* Keeps the error for the time when the utterance is read. */
static wf_status keep_error(const wf__lines *lines, wf__score_entry *entry, const char *message,
                            wf_error *err) {
  char text[256];
  snprintf(text, sizeof text, "%.150s:%llu: %s", lines->path,
           (unsigned long long)lines->line_number, message);
  entry->error = wf__strndup(text, strlen(text));
  return entry->error != NULL ? WF_OK : wf__fail_memory(err, sizeof text, "a script file");
}

static wf_status parse_script_line(const wf__lines *lines, wf__span line, wf__score_entry *entry,
                                   wf_error *err) {
  wf__span key, rest = line;
  if (!wf__is_utf8(line) || memchr(line.data, '\0', line.size) != NULL)
    return wf__lines_fail(lines, err, WF_ERR_FORMAT,
                          "not a script file: bytes that are not UTF-8 text");
  wf__next_field(&rest, &key);
  rest = trim(rest);
  entry->key = wf__strndup(key.data, key.size);
  if (entry->key == NULL) return wf__fail_memory(err, line.size, "a script file");
  if (rest.size > 0 && (rest.data[rest.size - 1] == '|' || rest.data[0] == '|'))
    return wf__lines_fail(
        lines, err, WF_ERR_UNSUPPORTED,
        "'%.*s' is a pipe; commands are not run: write the scores to a file first",
        WF__SPAN_ARG(rest));
  if (!take_ranges(&rest, entry))
    return keep_error(
        lines, entry,
        "malformed range at the end of the path, expected [first:last] or [first:last,first:last]",
        err);
  if (!take_offset(&rest, entry))
    return keep_error(lines, entry, "malformed offset at the end of the path", err);
  rest = trim(rest);
  if (rest.size == 0)
    return keep_error(lines, entry, "no path after the key, expected `key path`", err);
  entry->path = wf__strndup(rest.data, rest.size);
  return entry->path != NULL ? WF_OK : wf__fail_memory(err, line.size, "a script file");
}

wf_status wf__score_script_parse(wf__lines lines, wf__score_spec *out, wf_error *err) {
  for (wf__span line; wf__next_line(&lines, &line);) {
    if (trim(line).size == 0) continue;
    WF__TRY(wf__vec_grow(&out->entries, 1, "a script file", err));
    wf__score_entry *entry = &out->entries.data[out->entries.size++];
    *entry = (wf__score_entry){0};
    WF__TRY(parse_script_line(&lines, line, entry, err));
  }
  return WF_OK;
}

static wf_status read_script(const char *path, wf__score_spec *out, wf_error *err) {
  wf__input input;
  WF__TRY(wf__input_open(path, &input, err));
  wf_status status = wf__score_script_parse(wf__lines_of(&input), out, err);
  wf__input_close(&input);
  return status;
}

/* --- folders and single files ------------------------------------------------------------ */

static bool has_suffix(const char *name, const char *suffix) {
  size_t size = strlen(name), tail = strlen(suffix);
  return size > tail && strcmp(name + size - tail, suffix) == 0;
}

/* True for the name of a file that has one matrix. */
static bool has_matrix_suffix(const char *name) {
  return has_suffix(name, ".npy") || has_suffix(name, ".sen");
}

/* Adds a file; `folder` may be NULL. The key is the name without folder and suffix. */
static wf_status add_file(wf__score_spec *out, const char *folder, const char *name,
                          wf_error *err) {
  WF__TRY(wf__vec_grow(&out->entries, 1, "a list of files", err));
  wf__score_entry *entry = &out->entries.data[out->entries.size++];
  *entry = (wf__score_entry){0};
  const char *stem = wf__path_name(name);
  entry->key = wf__strndup(stem, has_matrix_suffix(stem) ? strlen(stem) - 4 : strlen(stem));
  size_t size = (folder != NULL ? strlen(folder) : 0) + strlen(name) + 2;
  entry->path = wf__alloc(size, 1);
  if (entry->key == NULL || entry->path == NULL)
    return wf__fail_memory(err, size, "a list of files");
  snprintf(entry->path, size, "%s%s%s", folder != NULL ? folder : "",
           folder != NULL && wf__path_name(folder)[0] != '\0' ? "/" : "", name);
  return WF_OK;
}

static int compare_keys(const void *a, const void *b) {
  return strcmp(((const wf__score_entry *)a)->key, ((const wf__score_entry *)b)->key);
}

static wf_status read_folder(const char *path, wf__score_spec *out, wf_error *err) {
  wf__folder *folder = wf__folder_open(path);
  if (folder == NULL)
    return wf__fail(err, wf__io_status(errno), "%s: cannot open: %s", path, strerror(errno));
  wf_status status = WF_OK;
  for (const char *name; status == WF_OK && (name = wf__folder_next(folder)) != NULL;)
    if (name[0] != '.' && has_matrix_suffix(name)) status = add_file(out, path, name, err);
  wf__folder_close(folder);
  if (status == WF_OK && out->entries.size == 0)
    return wf__fail(err, WF_ERR_FORMAT, "%s: the folder holds no .npy or .sen files", path);
  if (status == WF_OK)
    qsort(out->entries.data, out->entries.size, sizeof *out->entries.data, compare_keys);
  return status;
}

/* --- sources ----------------------------------------------------------------------------- */

enum kind { KIND_UNKNOWN, KIND_ARCHIVE, KIND_SCRIPT };

/* Removes "ark:" or "scp,p,cs:" from the front of the text. */
static wf_status take_prefix(const char **text, enum kind *kind, wf_error *err) {
  wf__kaldi_prefix prefix;
  WF__TRY(wf__kaldi_prefix_take(*text, &prefix, err));
  if (prefix.archive && prefix.script)
    return wf__fail(err, WF_ERR_ARGUMENT, "%s: both ark and scp; only outputs can be both", *text);
  *kind = prefix.archive ? KIND_ARCHIVE : prefix.script ? KIND_SCRIPT : KIND_UNKNOWN;
  *text = prefix.rest;
  return WF_OK;
}

/* Guesses the kind of a file. In an archive the first key is followed by a binary mark, '[', the
 * magic number of an fst, or the end of the line. A file without anything after the first key
 * counts as an archive too, empty or truncated. `*one`: the file is a single matrix. */
static wf_status guess(wf__source *source, bool *one, enum kind *kind, wf_error *err) {
  enum { LOOK_BYTES = 8192 };
  WF__TRY(wf__source_need(source, LOOK_BYTES, err));
  size_t left = (size_t)wf__source_left(source);
  wf__span text = {(const char *)source->at, left < LOOK_BYTES ? left : LOOK_BYTES},
           field = {NULL, 0};
  *one = wf__is_npy(source->at, left) || wf__is_s3(source->at, left);
  while (text.size > 0 && (*text.data == '\n' || *text.data == '\r')) text.data++, text.size--;
  bool has_key = wf__next_field(&text, &field);
  while (text.size > 0 && (*text.data == ' ' || *text.data == '\t')) text.data++, text.size--;
  bool key_alone = has_key && memchr(field.data, '\n', field.size) != NULL; /* on its line */
  *kind = !has_key || key_alone || text.size == 0 || strchr("[\r\n\xd6", *text.data) != NULL
              ? KIND_ARCHIVE
              : KIND_SCRIPT; /* strchr also finds '\0', the first byte of the binary mark */
  return WF_OK;
}

static wf_status parse_path(const char *path, enum kind kind, wf__score_spec *out, wf_error *err) {
  bool is_stdin = strcmp(path, "-") == 0, one = false;
  const wf__file_kind file = is_stdin ? WF__FILE_OTHER : wf__path_kind(path);
  if (file == WF__FILE_NONE)
    return wf__fail(err, wf__io_status(errno), "%s: cannot open: %s", path, strerror(errno));
  if (file == WF__FILE_FOLDER) {
    if (kind != KIND_UNKNOWN)
      return wf__fail(err, WF_ERR_ARGUMENT, "%s: is a folder, expected a%s", path,
                      kind == KIND_ARCHIVE ? "n archive" : " script file");
    return read_folder(path, out, err);
  }
  /* A pipe can be read only once, so its content cannot be guessed. */
  if (kind == KIND_UNKNOWN && file != WF__FILE_REGULAR) kind = KIND_ARCHIVE;
  if (kind == KIND_UNKNOWN) {
    wf__source source;
    WF__TRY(wf__source_open(path, &source, err));
    wf_status status = guess(&source, &one, &kind, err);
    wf__source_close(&source);
    WF__TRY(status);
    if (one || has_matrix_suffix(path)) return add_file(out, NULL, path, err);
  }
  if (kind == KIND_SCRIPT) return read_script(path, out, err);
  out->is_archive = true;
  return WF_OK;
}

wf_status wf__score_spec_parse(const char *source, wf__score_spec *out, wf_error *err) {
  *out = (wf__score_spec){0};
  if (source == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "a source of scores is NULL");
  enum kind kind = KIND_UNKNOWN;
  const char *path = source;
  WF__TRY(take_prefix(&path, &kind, err));
  wf__span text = trim((wf__span){path, strlen(path)});
  if (text.size == 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "'%s': no path given for the scores", source);
  if (wf__kaldi_is_pipe(path))
    return wf__fail(
        err, WF_ERR_UNSUPPORTED,
        "'%s' is a pipe; commands are not run: pipe the archive in and give '-' as source", source);
  out->path = wf__strndup(text.data, text.size);
  wf_status status = out->path != NULL ? parse_path(out->path, kind, out, err)
                                       : wf__fail_memory(err, text.size, "a path");
  if (status != WF_OK) wf__score_spec_free(out);
  return status;
}
