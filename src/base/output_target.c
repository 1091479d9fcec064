/* output_target.c - files that get their name when they are complete, and streams. */
#include "base/output_target.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/platform.h"

/* --- names of unfinished files, for signal handlers ---------------------------------------------
 * Who exchanges a name for NULL owns it: the thread that finishes the file, or the handler. */
enum { MAX_NAMES = 64, MAX_TRIES = 1000 };
static _Atomic(char *) g_names[MAX_NAMES];

void wf_remove_unfinished_outputs(void) {
  for (int i = 0; i < MAX_NAMES; i++) {
    char *name = atomic_exchange(&g_names[i], NULL);
    if (name != NULL) (void)wf__path_remove(name);
  }
}

static void remember(char *name) {
  for (int i = 0; i < MAX_NAMES; i++) {
    char *none = NULL;
    if (atomic_compare_exchange_strong(&g_names[i], &none, name)) return;
  }
}

/* Frees the name, unless a signal handler took it. */
static void forget(char *name) {
  for (int i = 0; name != NULL && i < MAX_NAMES; i++) {
    char *same = name;
    if (atomic_compare_exchange_strong(&g_names[i], &same, NULL)) break;
  }
  free(name);
}

/* --- files ---------------------------------------------------------------------------------- */

static int create_file(const wf__target *target, const char *name) {
  (void)target; /* has no descriptor yet */
  return wf__file_create(name);
}

static int link_file(const wf__target *target, const char *name) {
  return wf__file_link(target->fd, name);
}

/* Sets target->temporary to the first free name of PATH.tmp.PID, PATH.tmp.PID.1, ... that `make`
 * can make. A name can be taken: by another thread that writes the same file, or by a process with
 * this id on another machine or in another container. Returns what `make` returned, or -1. */
static int make_temporary(wf__target *target, int (*make)(const wf__target *, const char *)) {
  size_t size = strlen(target->path) + 48;
  char *name = wf__alloc(size, 1);
  int made = -1;
  errno = ENOMEM;
  for (int number = 0; name != NULL && number < MAX_TRIES; number++) {
    int end = snprintf(name, size, "%s.tmp.%lld", target->path, (long long)wf__process_id());
    if (number > 0) snprintf(name + end, size - (size_t)end, ".%d", number);
    made = make(target, name);
    if (made >= 0 || errno != EEXIST) break;
  }
  if (made < 0) {
    free(name);
    return -1;
  }
  target->temporary = name;
  remember(name);
  return made;
}

/* --- streams ------------------------------------------------------------------------------------
 */

/* Waits for the reader of a FIFO. Returns an errno. */
static int open_stream(const char *path, int *fd) {
  for (;;) {
    *fd = wf__file_open_stream(path);
    if (*fd >= 0) return 0;
    if (errno != EINTR) return errno;
    wf__interrupt_poll();
    if (wf__stopped()) return ECANCELED;
  }
}

/* --- targets ---------------------------------------------------------------------------------- */

static int open_target(const char *path, wf__target *target) {
  int descriptor = strcmp(path, "-") == 0 ? WF__STDOUT : -1;
  int code = descriptor < 0 ? wf__path_resolve(path, &target->path, &descriptor) : 0;
  if (code != 0) return code;
  if (descriptor >= 0) {
    target->is_standard = descriptor == WF__STDOUT;
    target->fd = target->is_standard ? descriptor : wf__file_duplicate(descriptor);
    return target->fd >= 0 ? 0 : errno;
  }
  const wf__file_kind kind = wf__path_kind(path);
  if (kind != WF__FILE_NONE && kind != WF__FILE_REGULAR) {
    free(target->path);
    target->path = NULL;
    return open_stream(path, &target->fd);
  }
  target->fd = wf__file_unnamed(target->path);
  if (target->fd < 0) target->fd = make_temporary(target, create_file);
  return target->fd >= 0 ? 0 : errno;
}

bool wf__target_is_file(const char *path) {
  char *file;
  int descriptor;
  if (strcmp(path, "-") == 0) return false;
  (void)wf__path_resolve(path, &file, &descriptor);
  free(file);
  const wf__file_kind kind = wf__path_kind(path);
  return descriptor < 0 && (kind == WF__FILE_NONE || kind == WF__FILE_REGULAR);
}

wf_status wf__target_open(const char *path, wf__target *out, wf_error *err) {
  *out = (wf__target){.fd = -1};
  int code = open_target(path, out);
  if (code == 0) return WF_OK;
  wf__target_discard(out);
  if (code == ECANCELED)
    return wf__fail(err, WF_ERR_CANCELLED, "cancelled while waiting for the reader of %s", path);
  return wf__fail(err, wf__io_status(code), "%s: cannot write: %s", path, strerror(code));
}

int wf__target_write(wf__target *target, const void *data, size_t size) {
  const char *at = data;
  const bool guards = wf__target_is_stream(target) && !target->is_standard;
  while (size > 0) {
    int64_t put = guards ? wf__file_write_quietly(target->fd, at, size)
                         : wf__file_write(target->fd, at, size);
    if (put < 0 && errno == EINTR) {
      wf__interrupt_poll();
      if (wf__stopped()) return ECANCELED;
      continue;
    }
    if (put < 0) return errno;
    at += put;
    size -= (size_t)put;
  }
  return 0;
}

int wf__target_finish(wf__target *target) {
  int code = 0;
  if (!wf__target_is_stream(target) && target->temporary == NULL &&
      link_file(target, target->path) != 0 && make_temporary(target, link_file) != 0)
    code = errno;
  if (!target->is_standard && wf__file_close(target->fd) != 0 && code == 0) code = errno;
  target->fd = -1;
  if (code == 0 && target->temporary != NULL) {
    if (wf__path_rename(target->temporary, target->path) == 0) {
      forget(target->temporary);
      target->temporary = NULL;
    } else {
      code = errno;
    }
  }
  wf__target_discard(target);
  return code;
}

void wf__target_discard(wf__target *target) {
  if (target->fd >= 0 && !target->is_standard) wf__file_close(target->fd);
  if (target->temporary != NULL) (void)wf__path_remove(target->temporary);
  forget(target->temporary);
  free(target->path);
  *target = (wf__target){.fd = -1};
}
