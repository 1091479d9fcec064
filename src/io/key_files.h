/* key_files.h - a folder with one file an utterance, named by its key. */
#ifndef WF_IO_KEY_FILES_H
#define WF_IO_KEY_FILES_H

#include "base/output.h"

/* Makes the folder if it is not there. */
wf_status wf__make_folder(const char *path, wf_error *err);
/* Opens FOLDER/KEY + suffix. Error: a key that cannot be the name of a file. */
wf_status wf__open_key_file(const char *folder, const char *key, const char *suffix, wf__output **out, wf_error *err);

#endif
