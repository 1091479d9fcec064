/* platform_posix.c - platform.h for Linux and macOS. */
#if !defined(_WIN32)
#include "base/platform.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if defined(__APPLE__)
#include <malloc/malloc.h>
#else
#include <malloc.h>
#endif

/* --- files ---------------------------------------------------------------------------------- */

/* strndup by malloc, since sanitizers allocate for strndup themselves: the tests, which make
 * allocations fail and count them, would not see it. NULL: no memory. */
static char *copy_text(const char *text, size_t size) {
  char *copy = malloc(size + 1);
  if (copy == NULL) return NULL;
  memcpy(copy, text, size);
  copy[size] = '\0';
  return copy;
}

static wf__file_kind kind_of(mode_t mode) {
  return S_ISREG(mode) ? WF__FILE_REGULAR : S_ISDIR(mode) ? WF__FILE_FOLDER : WF__FILE_OTHER;
}

wf__file_kind wf__path_kind(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 ? kind_of(about.st_mode) : WF__FILE_NONE;
}

wf__file_kind wf__file_kind_of(int fd, uint64_t *size) {
  struct stat about;
  if (fstat(fd, &about) != 0) return WF__FILE_NONE;
  *size = (uint64_t)about.st_size;
  return kind_of(about.st_mode);
}

int wf__file_read_only(const char *path) { return open(path, O_RDONLY | O_CLOEXEC); }

int wf__file_create(const char *path) {
  return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

int wf__file_open_stream(const char *path) { return open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC); }

int wf__file_unnamed(const char *path) {
#if defined(O_TMPFILE)
  if (access("/proc/self/fd", X_OK) != 0) return -1; /* an unnamed file could not be named later */
  const char *slash = strrchr(path, '/');
  if (slash == NULL) return open(".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  char *folder = copy_text(path, slash == path ? 1 : (size_t)(slash - path));
  int fd = folder != NULL ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
  free(folder);
  return fd;
#else
  (void)path;
  return -1;
#endif
}

int wf__file_link(int fd, const char *name) {
  char link_path[64];
  snprintf(link_path, sizeof link_path, "/proc/self/fd/%d", fd);
  return linkat(AT_FDCWD, link_path, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

int wf__file_temporary(const char *folder) {
#if defined(O_TMPFILE)
  /* Creating and then unlinking a file would leave it behind if the process is killed in between. */
  int unnamed = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
  if (unnamed >= 0) return unnamed;
#endif
  size_t size = strlen(folder) + 32;
  char *path = malloc(size);
  if (path == NULL) return -1;
  snprintf(path, size, "%s/.warpfst.XXXXXX", folder);
  int fd = mkstemp(path);
  if (fd >= 0) unlink(path);
  free(path);
  return fd;
}

int wf__file_duplicate(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 3); }
int wf__file_close(int fd) { return close(fd); }

int64_t wf__file_read(int fd, void *data, size_t size) { return read(fd, data, size); }
int64_t wf__file_write(int fd, const void *data, size_t size) { return write(fd, data, size); }

int64_t wf__file_read_at(int fd, void *data, size_t size, uint64_t offset) {
  return pread(fd, data, size, (off_t)offset);
}

int64_t wf__file_write_at(int fd, const void *data, size_t size, uint64_t offset) {
  return pwrite(fd, data, size, (off_t)offset);
}

int64_t wf__file_write_quietly(int fd, const void *data, size_t size) {
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

void *wf__file_map(int fd, uint64_t size) {
  void *map = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
  return map != MAP_FAILED ? map : NULL;
}

void wf__file_unmap(void *map, uint64_t size) { munmap(map, (size_t)size); }

/* --- paths ---------------------------------------------------------------------------------- */

int wf__path_rename(const char *from, const char *to) { return rename(from, to); }
int wf__path_remove(const char *path) { return unlink(path); }
int wf__path_make_folder(const char *path) { return mkdir(path, 0777); }

const char *wf__path_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

bool wf__path_is_name(const char *name) { return name[0] != '\0' && strchr(name, '/') == NULL; }

/* Descriptor N if `folder`, without links, lists this process's descriptors and `name` is N. */
static int descriptor_of(const char *folder, const char *name) {
  char own[64];
  snprintf(own, sizeof own, "/proc/%ld/fd", (long)getpid());
  if (strcmp(folder, own) != 0 && strcmp(folder, "/dev/fd") != 0) return -1;
  char *end;
  long number = strtol(name, &end, 10);
  return name[0] >= '0' && name[0] <= '9' && *end == '\0' && number <= INT_MAX ? (int)number : -1;
}

/* Links such as /proc/self/fd/1 have to be seen, because the file that they name must be written
 * through the descriptor: at its position, and even if it was deleted. */
int wf__path_resolve(const char *path, char **out, int *descriptor) {
  enum { MAX_LINKS = 40 };
  char at[PATH_MAX], folder[PATH_MAX], text[PATH_MAX], next[PATH_MAX];
  *out = NULL;
  *descriptor = -1;
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
      *out = copy_text(at, strlen(at));
      return *out != NULL ? 0 : ENOMEM;
    }
    text[length] = '\0';
    bool absolute = text[0] == '/' || size == 0;
    if (snprintf(next, sizeof next, "%.*s%s", absolute ? 0 : size, at, text) >= PATH_MAX)
      return ENAMETOOLONG;
    memcpy(at, next, sizeof at);
  }
  return ELOOP;
}

char *wf__path_temporary_folder(void) {
  const char *usual = getenv("TMPDIR");
  const char *folder = usual != NULL && usual[0] != '\0' ? usual : P_tmpdir;
  return copy_text(folder, strlen(folder));
}

void wf__library_file(const void *address, char out[WF__PATH_BYTES]) {
  Dl_info about = {0};
  char folder[WF__PATH_BYTES];
  dladdr(address, &about);
  const char *name = about.dli_fname != NULL ? about.dli_fname : "";
  const bool relative = name[0] != '/' && getcwd(folder, sizeof folder) != NULL;
  if (snprintf(out, WF__PATH_BYTES, "%s%s%s", relative ? folder : "", relative ? "/" : "", name) >=
      WF__PATH_BYTES)
    out[0] = '\0';
}

bool wf__path_real(const char *path, char out[WF__PATH_BYTES]) {
  char *real = realpath(path, NULL);
  const bool fits = real != NULL && snprintf(out, WF__PATH_BYTES, "%s", real) < WF__PATH_BYTES;
  free(real);
  return fits;
}

const char *wf__library_load(const char *file) {
  return dlopen(file, RTLD_LAZY | RTLD_LOCAL) == NULL ? dlerror() : NULL;
}

struct wf__folder {
  DIR *entries;
};

wf__folder *wf__folder_open(const char *path) {
  DIR *entries = opendir(path);
  wf__folder *folder = entries != NULL ? malloc(sizeof *folder) : NULL;
  if (folder != NULL)
    folder->entries = entries;
  else if (entries != NULL)
    closedir(entries), errno = ENOMEM;
  return folder;
}

const char *wf__folder_next(wf__folder *folder) {
  const struct dirent *entry = readdir(folder->entries);
  return entry != NULL ? entry->d_name : NULL;
}

void wf__folder_close(wf__folder *folder) {
  closedir(folder->entries);
  free(folder);
}

/* --- memory, waiting, processors -------------------------------------------------------------- */

void *wf__aligned_alloc(size_t alignment, size_t bytes) { return aligned_alloc(alignment, bytes); }
void wf__aligned_free(void *memory) { free(memory); }

size_t wf__usable_bytes(void *memory) {
#if defined(__APPLE__)
  return malloc_size(memory);
#else
  return malloc_usable_size(memory);
#endif
}

void wf__prefer_huge_pages(void *memory, size_t bytes) {
#if defined(MADV_HUGEPAGE)
  enum { PAGE_BYTES = 1 << 12 };
  uintptr_t first = (uintptr_t)memory & ~(uintptr_t)(PAGE_BYTES - 1),
            end = ((uintptr_t)memory + bytes + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
  (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
#else
  (void)memory;
  (void)bytes;
#endif
}

uint64_t wf__peak_bytes(void) {
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
#if defined(__APPLE__)
  return (uint64_t)usage.ru_maxrss;
#else
  return (uint64_t)usage.ru_maxrss * 1024;
#endif
}

int wf__num_processors(void) {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    int count = CPU_COUNT(&set);
    if (count > 0) return count;
  }
#endif
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (int)online : 1;
}

int64_t wf__process_id(void) { return getpid(); }

#if defined(__APPLE__) /* has no conditions on the monotonic clock, but waits for a time */
void wf__timed_init(pthread_cond_t *condition) { pthread_cond_init(condition, NULL); }

bool wf__timed_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t ns) {
  const struct timespec time = {.tv_nsec = (long)ns};
  return pthread_cond_timedwait_relative_np(condition, mutex, &time) == ETIMEDOUT;
}
#else
void wf__timed_init(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

bool wf__timed_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t ns) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += ns;
  if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
  return pthread_cond_timedwait(condition, mutex, &until) == ETIMEDOUT;
}
#endif

/* --- the program ------------------------------------------------------------------------------ */

void wf__program_start(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0) (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static void (*g_at_signal)(void);

static void on_signal(int number) {
  g_at_signal();
  (void)signal(number, SIG_DFL);
  (void)raise(number);
}

void wf__program_at_signal(void (*fn)(void)) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  g_at_signal = fn;
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    struct sigaction old, action = {.sa_handler = on_signal};
    if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN) continue; /* nohup */
    (void)sigaction(signals[i], &action, NULL);
  }
}

bool wf__is_terminal(int fd) { return isatty(fd); }

int wf__terminal_width(void) {
  struct winsize size;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

FILE *wf__stdio_read(const char *path) { return fopen(path, "r"); }

int64_t wf__stdio_line(char **text, size_t *room, FILE *file) { return getline(text, room, file); }

struct writer {
  wf__take_fn *take;
  void *user;
};

#if defined(__APPLE__)
static int write_taken(void *cookie, const char *data, int size) {
  const struct writer *writer = cookie;
  writer->take(writer->user, data, (size_t)size);
  return size;
}
#else
static ssize_t write_taken(void *cookie, const char *data, size_t size) {
  const struct writer *writer = cookie;
  writer->take(writer->user, data, size);
  return (ssize_t)size;
}
#endif

static int free_writer(void *cookie) {
  free(cookie);
  return 0;
}

FILE *wf__stdio_writer(wf__take_fn *take, void *user) {
  struct writer *writer = malloc(sizeof *writer);
  if (writer == NULL) return NULL;
  *writer = (struct writer){take, user};
#if defined(__APPLE__)
  FILE *file = funopen(writer, NULL, write_taken, NULL, free_writer);
#else
  FILE *file =
      fopencookie(writer, "w", (cookie_io_functions_t){.write = write_taken, .close = free_writer});
#endif
  if (file == NULL) free(writer);
  return file;
}

int wf__stdio_close_writer(FILE *file) { return fclose(file); }
#endif
