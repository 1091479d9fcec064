/* tally.c - counts irregular items, such as missing words, and keeps the first few names. */
#include "base/tally.h"

#include <stdio.h>
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

void wf__tally_list(const wf_tally *tally, char *text, size_t size) {
  size_t used = 0;
  int shown = 0;
  text[0] = '\0';
  for (; shown < WF_TALLY_NAMES && tally->names[shown] != NULL; shown++) {
    const char *name = tally->names[shown];
    if (used + strlen(name) + sizeof "'', , ..." > size) break;
    used += (size_t)snprintf(text + used, size - used, "%s'%s'", shown > 0 ? ", " : "", name);
  }
  if ((uint64_t)shown < tally->count)
    snprintf(text + used, size - used, "%s...", shown > 0 ? ", " : "");
}

void wf__tally_free(wf_tally *tally) {
  for (int i = 0; i < WF_TALLY_NAMES; i++) free(tally->names[i]);
  *tally = (wf_tally){0};
}
