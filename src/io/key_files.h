/* key_files.h - a folder with one file per utterance, named after its key. */
#ifndef WF_IO_KEY_FILES_H
#define WF_IO_KEY_FILES_H

#include <stdbool.h>

#include "base/output.h"

typedef struct wf__key_folder {
  char *path;
  wf_symbols *keys; /* keys of the files so far -> number of the utterance, from 1 */
  int64_t num_keys; /* number of utterances so far, including duplicates */
} wf__key_folder;

/* True if the path is a folder or ends with '/'. */
bool wf__names_folder(const char *path);
/* Creates the folder if it does not exist. */
wf_status wf__key_folder_open(const char *path, wf__key_folder *out, wf_error *err);
/* Opens the file FOLDER/KEY with the suffix appended. Errors: a key that cannot be a file name; a
 * key that was used before, because its file would be overwritten. */
wf_status wf__key_folder_file(wf__key_folder *folder, const char *key, const char *suffix,
                              wf__output **out, wf_error *err);
void wf__key_folder_close(wf__key_folder *folder);

#endif
