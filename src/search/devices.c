/* devices.c - parses the list of devices. */
#include "search/devices.h"

#include <string.h>

#include "base/input.h"

static bool parse_numbers(const char *at, wf__devices *out) {
  for (out->count = 0; out->count < WF__MAX_WORKERS;) {
    int64_t number;
    size_t size = strcspn(at, ",");
    if (!wf__parse_i64((wf__span){at, size}, &number) || number < 0 || number >= 1024) return false;
    out->numbers[out->count++] = (int)number;
    if (at[size] == '\0') return true;
    at += size + 1;
  }
  return false;
}

wf_status wf__devices_parse(const char *text, wf__devices *out, wf_error *err) {
  *out = (wf__devices){0};
  if (text == NULL || text[0] == '\0' || strcmp(text, "cpu") == 0) return WF_OK;
  *out = (wf__devices){.cuda = true, .count = 1};
  if (strcmp(text, "cuda") == 0) return WF_OK;
  out->count = 0;
  if (strcmp(text, "cuda:all") == 0) return WF_OK;
  if (strncmp(text, "cuda:", 5) == 0 && parse_numbers(text + 5, out)) return WF_OK;
  return wf__fail(
      err, WF_ERR_ARGUMENT,
      "unknown device '%.80s': expected cpu, cuda, cuda:N, cuda:N,M (at most %d) or cuda:all", text,
      WF__MAX_WORKERS);
}

int wf__devices_sharing(const wf__devices *devices, int number) {
  int count = 0;
  for (int i = 0; i < devices->count; i++) count += devices->numbers[i] == number;
  return count;
}
