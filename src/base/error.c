/* error.c - status texts, the caller-owned error object. */
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WF__STR2(x) #x
#define WF__STR(x) WF__STR2(x)

const char *wf_version(void) {
  return WF__STR(WF_VERSION_MAJOR) "." WF__STR(WF_VERSION_MINOR) "." WF__STR(WF_VERSION_PATCH);
}

const char *wf_status_text(wf_status status) {
  switch (status) {
#define WF_X(name, value, text) \
  case WF_##name: return text;
    WF_STATUS_LIST(WF_X)
#undef WF_X
  }
  return "unknown status";
}

void wf_free(void *memory) { free(memory); }

wf_status wf__io_status(int code) { return code == ENOMEM ? WF_ERR_MEMORY : WF_ERR_IO; }

void wf__error_clear(wf_error *err) {
  if (err == NULL) return;
  err->code = WF_OK;
  err->message[0] = '\0';
}

void wf__format_text(char *text, size_t size, const char *format, va_list args) {
  text[0] = '\0';
  vsnprintf(text, size, format, args);
  for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++) {
    bool high = c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0;
    if ((*c < 0x20 && *c != '\n' && *c != '\t') || *c == 0x7F || high) *c = '?';
    if (high) *++c = '?';
  }
}

wf_status(wf__fail)(wf_error *err, wf_status code, const char *format, ...) {
  if (err != NULL) {
    va_list args;
    va_start(args, format);
    err->code = code;
    wf__format_text(err->message, sizeof err->message, format, args);
    va_end(args);
  }
  return code;
}

wf_status wf__fail_at(wf_error *err, wf_status code, const char *path, const char *place,
                      uint64_t number, const char *format, va_list args) {
  char text[512];
  vsnprintf(text, sizeof text, format, args);
  return wf__fail(err, code, "%s:%s%llu: %s", path, place, (unsigned long long)number, text);
}

wf_status(wf__fail_prefix)(wf_error *err, wf_status code, const char *format, ...) {
  if (err != NULL) {
    char text[sizeof err->message];
    va_list args;
    va_start(args, format);
    wf__format_text(text, sizeof text, format, args);
    va_end(args);
    size_t used = strlen(text);
    if (used + 3 < sizeof text) snprintf(text + used, sizeof text - used, ": %s", err->message);
    memcpy(err->message, text, sizeof text);
    err->code = code;
  }
  return code;
}

wf_status(wf__fail_memory)(wf_error *err, uint64_t bytes, const char *what) {
  return wf__fail(err, WF_ERR_MEMORY, "out of memory: %llu bytes for %s", (unsigned long long)bytes,
                  what);
}
