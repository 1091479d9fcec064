/* wlm_open.c - opens a large model from a file of any format. */
#include <stdlib.h>
#include <string.h>

#include "base/first_bytes.h"
#include "base/source.h"
#include "base/temp_file.h"
#include "lm/wlm_read.h"

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
  if (!is_other_format(path)) return wf__wlm_open_file(path, out, err);
  char *folder;
  WF__TRY(wf__temp_folder(NULL, NULL, &folder, err));
  wf_status status = wf__wlm_open_made(folder, convert, (void *)(uintptr_t)path, out, err);
  free(folder);
  return status;
}
