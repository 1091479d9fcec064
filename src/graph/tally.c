/* tally.c - counts irregular items, such as missing words, and keeps the first few names. */
#include "graph/tally.h"

#include <string.h>

#include "base/memory.h"

wf_status wf__tally_add(wf_tally *tally, const char *name, wf_error *err) {
  if (tally->count < WF_TALLY_NAMES) {
    tally->names[tally->count] = wf__strndup(name, strlen(name));
    if (tally->names[tally->count] == NULL) return wf__fail_memory(err, strlen(name) + 1, "a name");
  }
  tally->count++;
  return WF_OK;
}

void wf__tally_free(wf_tally *tally) {
  for (int i = 0; i < WF_TALLY_NAMES; i++) free(tally->names[i]);
  *tally = (wf_tally){0};
}
