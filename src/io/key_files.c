/* key_files.c - folders of files named after keys. */
#include "io/key_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/kaldi_prefix.h"
#include "base/memory.h"
#include "base/platform.h"

bool wf__names_folder(const char *path) {
  return wf__path_name(path)[0] == '\0' || wf__path_kind(path) == WF__FILE_FOLDER;
}

static wf_status make_folder(const char *path, wf_error *err) {
  if (wf__path_make_folder(path) == 0 ||
      (errno == EEXIST && wf__path_kind(path) == WF__FILE_FOLDER))
    return WF_OK;
  return wf__fail(err, wf__io_status(errno), "%s: cannot make the folder: %s", path,
                  strerror(errno));
}

wf_status wf__key_folder_open(const char *path, wf__key_folder *out, wf_error *err) {
  *out = (wf__key_folder){0};
  WF__TRY(wf__kaldi_refuse(path, err));
  out->path = wf__strndup(path, strlen(path));
  wf_status status =
      out->path != NULL ? make_folder(path, err) : wf__fail_memory(err, strlen(path), "a path");
  if (status == WF_OK) status = wf_symbols_create(path, &out->keys, err);
  if (status != WF_OK) wf__key_folder_close(out);
  return status;
}

wf_status wf__key_folder_file(wf__key_folder *folder, const char *key, const char *suffix,
                              wf__output **out, wf_error *err) {
  if (key == NULL || key[0] == '.' || !wf__path_is_name(key))
    return wf__fail(err, WF_ERR_ARGUMENT, "the key '%.80s' cannot be a file name",
                    key != NULL ? key : "");
  int64_t before = wf_symbols_find(folder->keys, key), number = ++folder->num_keys;
  if (before >= 0)
    return wf__fail(err, WF_ERR_FORMAT,
                    "utterances %lld and %lld are both called '%.80s'; %s/%.80s%s holds the first, "
                    "the other is not written",
                    (long long)before, (long long)number, key, folder->path, key, suffix);
  WF__TRY(wf_symbols_add(folder->keys, key, number, NULL, err));
  size_t size = strlen(folder->path) + strlen(key) + strlen(suffix) + 2;
  char *path = wf__alloc(size, 1);
  if (path == NULL) return wf__fail_memory(err, size, "a path");
  snprintf(path, size, "%s/%s%s", folder->path, key, suffix);
  wf_status status = wf__output_open(path, out, err);
  free(path);
  return status;
}

void wf__key_folder_close(wf__key_folder *folder) {
  wf_symbols_free(folder->keys);
  free(folder->path);
  *folder = (wf__key_folder){0};
}
