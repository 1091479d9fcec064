/* key_files.c - folders of files named by keys. */
#include "io/key_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"

wf_status wf__make_folder(const char *path, wf_error *err) {
  struct stat about;
  if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &about) == 0 && S_ISDIR(about.st_mode))) return WF_OK;
  return wf__fail(err, WF_ERR_IO, "%s: cannot make the folder: %s", path, strerror(errno));
}

wf_status wf__open_key_file(const char *folder, const char *key, const char *suffix, wf__output **out, wf_error *err) {
  if (key == NULL || strchr(key, '/') != NULL || key[0] == '.' || key[0] == '\0')
    return wf__fail(err, WF_ERR_ARGUMENT, "the key '%.80s' cannot be the name of a file", key != NULL ? key : "");
  size_t size = strlen(folder) + strlen(key) + strlen(suffix) + 2;
  char *path = wf__alloc(size, 1);
  if (path == NULL) return wf__fail_memory(err, size, "a path");
  snprintf(path, size, "%s/%s%s", folder, key, suffix);
  wf_status status = wf__output_open(path, out, err);
  free(path);
  return status;
}
