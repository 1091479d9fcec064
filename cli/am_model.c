/* am_model.c - finds and reads hybrid acoustic models; writes their tables. */
#include "am_model.h"

#include <string.h>

#include "base/platform.h"
#include "output_file.h"

enum { PATH_BYTES = 4096 };

void am_flags(cli_parser *parser, am_source *source) {
  cli_flag_str(parser, "tree", 0, &source->tree, "FILE",
               "Kaldi: the model's decision tree (default: `tree` beside final.mdl)");
  cli_flag_str(
      parser, "lang", 0, &source->lang, "FOLDER",
      "Kaldi: lang folder with phones.txt and phones/ (default: phone names are their numbers)");
}

/* Writes folder/file to `path`. Returns whether that file exists. */
static bool there(const char *folder, const char *file, char path[PATH_BYTES]) {
  return snprintf(path, PATH_BYTES, "%s/%s", folder, file) < PATH_BYTES &&
         wf__path_kind(path) != WF__FILE_NONE;
}

static bool is_folder(const char *path) { return wf__path_kind(path) == WF__FILE_FOLDER; }

bool am_is_sphinx(const am_source *source) {
  char path[PATH_BYTES];
  return is_folder(source->path) && !there(source->path, "final.mdl", path);
}

static wf_status fail(wf_error *err, wf_status code, const char *path, const char *what) {
  err->code = code;
  snprintf(err->message, sizeof err->message, "%.400s: %s", path, what);
  return code;
}

wf_status am_read(const am_source *source, bool needs_tree, wf_hmm **out, wf_error *err) {
  char model[PATH_BYTES], tree[PATH_BYTES], folder[PATH_BYTES];
  *out = NULL;
  if (am_is_sphinx(source)) {
    if (source->tree != NULL || source->lang != NULL)
      return fail(err, WF_ERR_ARGUMENT, source->path,
                  "--tree and --lang are for Kaldi models, but this folder has no final.mdl");
    return wf_hmm_read_sphinx(source->path, out, err);
  }
  snprintf(folder, sizeof folder, "%s", source->path);
  snprintf(model, sizeof model, "%s", source->path);
  if (is_folder(source->path)) {
    (void)there(source->path, "final.mdl", model);
  } else {
    const size_t size = (size_t)(wf__path_name(folder) - folder);
    if (size > 0)
      folder[size - 1] = '\0';
    else
      snprintf(folder, sizeof folder, ".");
  }
  const char *beside = there(folder[0] != '\0' ? folder : "/", "tree", tree) ? tree : NULL;
  if (source->tree != NULL) beside = source->tree;
  if (beside == NULL && needs_tree && wf__path_kind(model) != WF__FILE_NONE)
    return fail(err, WF_ERR_ARGUMENT, model, "no tree beside it; give its path with --tree");
  return wf_hmm_read_kaldi(model, beside, source->lang, out, err);
}

int am_write_columns(const wf_hmm *hmm, const char *path) {
  cli_output out;
  int32_t *columns;
  size_t count;
  wf_error err;
  wf_status status = wf_hmm_columns(hmm, &columns, &count, &err);
  if (status == WF_OK) {
    status = cli_output_open(&out, path, &err);
    for (size_t label = 1; label < count && status == WF_OK; label++)
      fprintf(out.file, "%zu %d\n", label, columns[label]);
    if (status == WF_OK) status = cli_output_close(&out, WF_OK, &err);
    wf_free(columns);
  }
  return status == WF_OK ? CLI_OK : cli_fail(&err);
}
