/* key_files.h - a folder with one file an utterance, named by its key. */
#ifndef WF_IO_KEY_FILES_H
#define WF_IO_KEY_FILES_H

#include "base/output.h"

typedef struct wf__key_folder {
  char *path;
  wf_symbols *keys; /* of the files so far: number of the utterance, from 1 */
  int64_t num_keys; /* of all utterances so far */
} wf__key_folder;

/* Makes the folder if it is not there. */
wf_status wf__key_folder_open(const char *path, wf__key_folder *out, wf_error *err);
/* Opens FOLDER/KEY + suffix. Errors: a key that cannot be the name of a file; one that came before:
 * its file would be overwritten. */
wf_status wf__key_folder_file(wf__key_folder *folder, const char *key, const char *suffix,
                              wf__output **out, wf_error *err);
void wf__key_folder_close(wf__key_folder *folder);

#endif
