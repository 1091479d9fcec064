/* output_target.c - files that get their name when they are complete, and streams. */
#include "base/output_target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/interrupt.h"
#include "base/memory.h"

/* --- names of unfinished files, for signal handlers ---------------------------------------------
 * Who exchanges a name for NULL owns it: the thread that finishes the file, or the handler. */
enum { MAX_NAMES = 64, MAX_TRIES = 1000, MAX_LINKS = 40 };
static _Atomic(char *) g_names[MAX_NAMES];

void wf_remove_unfinished_outputs(void) {
  for (int i = 0; i < MAX_NAMES; i++) {
    char *name = atomic_exchange(&g_names[i], NULL);
    if (name != NULL) (void)unlink(name);
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

/* Opens an unnamed file in the folder of `path`; -1 if the file system does not support it. */
static int open_unnamed(const char *path) {
#if defined(O_TMPFILE)
  if (access("/proc/self/fd", X_OK) != 0) return -1; /* an unnamed file could not be named later */
  const char *slash = strrchr(path, '/');
  if (slash == NULL) return open(".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  char *folder = wf__strndup(path, slash == path ? 1 : (size_t)(slash - path));
  int fd = folder != NULL ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
  free(folder);
  return fd;
#else
  (void)path;
  return -1;
#endif
}

static int create_file(const wf__target *target, const char *name) {
  (void)target; /* has no descriptor yet */
  return open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static int link_file(const wf__target *target, const char *name) {
  char link_path[64];
  snprintf(link_path, sizeof link_path, "/proc/self/fd/%d", target->fd);
  return linkat(AT_FDCWD, link_path, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
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
    int end = snprintf(name, size, "%s.tmp.%ld", target->path, (long)getpid());
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

/* Descriptor N if `folder`, without links, lists this process's descriptors and `name` is N. */
static int descriptor_of(const char *folder, const char *name) {
  char own[64];
  snprintf(own, sizeof own, "/proc/%ld/fd", (long)getpid());
  if (strcmp(folder, own) != 0 && strcmp(folder, "/dev/fd") != 0) return -1;
  char *end;
  long number = strtol(name, &end, 10);
  return name[0] >= '0' && name[0] <= '9' && *end == '\0' && number <= INT_MAX ? (int)number : -1;
}

/* Follows the symbolic links of the last component. Sets `*descriptor` if they end at an open
 * descriptor of this process, else target->path to the file. Links such as /proc/self/fd/1 have to
 * be seen, because the file that they name must be written through the descriptor: at its position,
 * and even if it was deleted. Returns an errno. */
static int resolve(const char *path, wf__target *target, int *descriptor) {
  char at[PATH_MAX], folder[PATH_MAX], text[PATH_MAX], next[PATH_MAX];
  if (snprintf(at, sizeof at, "%s", path) >= PATH_MAX) return ENAMETOOLONG;
  for (int count = 0; count < MAX_LINKS; count++) {
    char *slash = strrchr(at, '/');
    const char *name = slash != NULL ? slash + 1 : at;
    int size = slash == NULL ? 0 : (int)(slash - at) + 1;
    if (snprintf(text, sizeof text, "%.*s", size, at) >= PATH_MAX) return ENAMETOOLONG;
    if (realpath(size > 0 ? text : ".", folder) == NULL) return errno;
    *descriptor = descriptor_of(folder, name);
    if (*descriptor >= 0) return 0;
    ssize_t length = readlink(at, text, sizeof text - 1);
    if (length < 0) {
      target->path = wf__strndup(at, strlen(at));
      return target->path != NULL ? 0 : ENOMEM;
    }
    text[length] = '\0';
    bool absolute = text[0] == '/' || size == 0;
    if (snprintf(next, sizeof next, "%.*s%s", absolute ? 0 : size, at, text) >= PATH_MAX)
      return ENAMETOOLONG;
    memcpy(at, next, sizeof at);
  }
  return ELOOP;
}

/* Waits for the reader of a FIFO. Returns an errno. */
static int open_stream(const char *path, int *fd) {
  for (;;) {
    *fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (*fd >= 0) return 0;
    if (errno != EINTR) return errno;
    wf__interrupt_poll();
    if (wf__stopped()) return ECANCELED;
  }
}

/* --- targets ---------------------------------------------------------------------------------- */

static int open_target(const char *path, wf__target *target) {
  struct stat info;
  int descriptor = strcmp(path, "-") == 0 ? STDOUT_FILENO : -1;
  int code = descriptor < 0 ? resolve(path, target, &descriptor) : 0;
  if (code != 0) return code;
  if (descriptor >= 0) {
    target->is_standard = descriptor == STDOUT_FILENO;
    target->fd = target->is_standard ? descriptor : fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    return target->fd >= 0 ? 0 : errno;
  }
  if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
    free(target->path);
    target->path = NULL;
    return open_stream(path, &target->fd);
  }
  target->fd = open_unnamed(target->path);
  if (target->fd < 0) target->fd = make_temporary(target, create_file);
  return target->fd >= 0 ? 0 : errno;
}

bool wf__target_is_file(const char *path) {
  struct stat info;
  wf__target target = {.fd = -1};
  int descriptor = -1;
  if (strcmp(path, "-") == 0) return false;
  (void)resolve(path, &target, &descriptor);
  free(target.path);
  return descriptor < 0 && (stat(path, &info) != 0 || S_ISREG(info.st_mode));
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

/* As write(), but a pipe without reader is only the error EPIPE, without the signal. */
static ssize_t write_without_signal(int fd, const void *data, size_t size) {
  sigset_t pipe, before, pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  ssize_t put = write(fd, data, size);
  const int code = errno;
  /* a reader that stops in the middle of a write leaves the signal and a count of bytes */
  if (!was_pending && sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1) {
    int number;
    sigwait(&pipe, &number);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = code;
  return put;
}

int wf__target_write(wf__target *target, const void *data, size_t size) {
  const char *at = data;
  const bool guards = wf__target_is_stream(target) && !target->is_standard;
  while (size > 0) {
    ssize_t put = guards ? write_without_signal(target->fd, at, size) : write(target->fd, at, size);
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
  if (!target->is_standard && close(target->fd) != 0 && code == 0) code = errno;
  target->fd = -1;
  if (code == 0 && target->temporary != NULL) {
    if (rename(target->temporary, target->path) == 0) {
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
  if (target->fd >= 0 && !target->is_standard) close(target->fd);
  if (target->temporary != NULL) (void)unlink(target->temporary);
  forget(target->temporary);
  free(target->path);
  *target = (wf__target){.fd = -1};
}
