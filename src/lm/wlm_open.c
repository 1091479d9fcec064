/* wlm_open.c - opens a large model. A file of another format is converted first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/first_bytes.h"
#include "base/memory.h"
#include "base/source.h"
#include "lm/wlm_read.h"

static wf_status open_file(const char *path, wf_wlm **out, wf_error *err) {
  wf__input input;
  WF__TRY(wf__input_open(path, &input, err));
  return wf__wlm_open_input(&input, out, err);
}

wf_status wf__wlm_open_made(const char *folder,
                            wf_status (*make)(void *user, const char *path, wf_error *err),
                            void *user, wf_wlm **out, wf_error *err) {
  *out = NULL;
  const size_t size = strlen(folder) + 64;
  char *path = wf__alloc(size, 1);
  if (path == NULL) return wf__fail_memory(err, size, "a path");
  snprintf(path, size, "%s/.warpfst.%ld.%p.wlm", folder, (long)getpid(), (void *)path);
  wf_status status = make(user, path, err);
  if (status == WF_OK) status = open_file(path, out, err);
  unlink(path);
  free(path);
  return status;
}

/* Only the first four bytes count, so that a damaged file is reported as such. A pipe is not looked
 * at: its bytes can be read only once, and it holds no other format. */
static bool is_other_format(const char *path) {
  char byte;
  wf_error err;
  wf__source source;
  if (wf__first_bytes(path, &byte, 1) == 0 || wf__source_open(path, &source, &err) != WF_OK)
    return false;
  bool other = wf__source_need(&source, 4, &err) == WF_OK &&
               (wf__source_left(&source) < 4 || memcmp(source.at, wf__wlm_magic, 4) != 0);
  wf__source_close(&source);
  return other;
}

static wf_status convert(void *user, const char *path, wf_error *err) {
  return wf_wlm_build(user, path, NULL, NULL, NULL, NULL, NULL, err);
}

wf_status wf_wlm_open(const char *path, wf_wlm **out, wf_error *err) {
  *out = NULL;
  if (!is_other_format(path)) return open_file(path, out, err);
  const char *folder = getenv("TMPDIR");
  return wf__wlm_open_made(folder != NULL && folder[0] != '\0' ? folder : "/tmp", convert,
                           (void *)(uintptr_t)path, out, err);
}
