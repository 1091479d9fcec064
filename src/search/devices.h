/* devices.h - the list of devices in a decoder's options. */
#ifndef WF_SEARCH_DEVICES_H
#define WF_SEARCH_DEVICES_H

#include "base/error.h"

/* Parses "cpu", "cuda", "cuda:N", "cuda:N,M" and "cuda:all". */
enum { WF__MAX_WORKERS = 64 };
typedef struct wf__devices {
  bool cuda;
  int count; /* 0: all devices */
  int numbers[WF__MAX_WORKERS];
} wf__devices;
wf_status wf__devices_parse(const char *text, wf__devices *out, wf_error *err);

/* The number of times that the list names this device. */
int wf__devices_sharing(const wf__devices *devices, int number);

#endif
