/* preload.c - a library for LD_PRELOAD that makes a chosen allocation, or a chosen call that writes
 * files, fail. One process, one failure: tests/torture/torture.py runs a command for each.
 *
 *   TORTURE_FAIL=alloc:N          the N-th allocation fails
 *   TORTURE_FAIL=alloc+:N         and all after it
 *   TORTURE_FAIL=write:N:ERRNO    the N-th call that writes fails with ERRNO; EINTR: only write()
 *                                 and pwrite() do, which may be called again
 *   TORTURE_FAIL=write+:N:ERRNO   and all after it
 *   TORTURE_FAIL=short:N          write() and pwrite() take at most N bytes at once
 *   TORTURE_REPORT=FILE           at exit: the numbers of allocations, of blocks that live, and of
 *                                 calls that write
 *   TORTURE_PLACES=1              then also a line `number place` for the first allocation of each
 *                                 place. A place is a hash of the callers.
 *
 * A program can also count for itself: torture_begin(), torture_end(), torture_live().
 * The functions of libc that allocate inside (getline, fopencookie) and zlib count too. */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload.h"

enum { MAX_PLACES = 1 << 14, DEPTH = 10, OWN_FRAMES = 4, EARLY_BYTES = 1 << 18, MAX_FILES = 1024 };

struct counter {
  atomic_ulong seen;
  unsigned long fails; /* 0: none */
  bool forever;
  int code; /* errno */
};

static struct counter g_allocs = {.code = ENOMEM}, g_writes = {.code = ENOSPC};
static atomic_long g_live;
static unsigned long g_short;
static const char *g_report;
static bool g_lists_places;
/* Calls of this library itself do not count. The model: sanitizers intercept what others use. */
static __thread bool t_inside __attribute__((tls_model("initial-exec")));
static bool g_started;
static atomic_bool g_written[MAX_FILES];

static struct place {
  unsigned long number;
  uint64_t hash;
} g_places[MAX_PLACES];
static unsigned long g_num_places;

/* --- counting --------------------------------------------------------------------------------- */

/* Functions that stay frames of their own: the first OWN_FRAMES are callers(), note_place(),
 * fails(), and the function that allocates. */
#define FRAME __attribute__((noinline))

/* Hashes the callers. Addresses count from the start of their file, so that a place has the same
 * hash in every process. */
FRAME static uint64_t callers(void) {
  void *frames[DEPTH];
  uint64_t hash = 14695981039346656037u;
  const int count = backtrace(frames, DEPTH);
  for (int i = OWN_FRAMES; i < count; i++) {
    Dl_info info;
    const uintptr_t base = dladdr(frames[i], &info) != 0 ? (uintptr_t)info.dli_fbase : 0;
    hash = (hash ^ ((uintptr_t)frames[i] - base)) * 1099511628211u;
  }
  return hash;
}

/* Threads may race here; commands are run with one. */
FRAME static void note_place(unsigned long number) {
  const uint64_t hash = callers();
  for (unsigned long i = 0; i < g_num_places; i++)
    if (g_places[i].hash == hash) return;
  if (g_num_places < MAX_PLACES) g_places[g_num_places++] = (struct place){number, hash};
}

FRAME static bool fails(struct counter *counter) {
  if (t_inside || !g_started) return false;
  const unsigned long number = ++counter->seen;
  if (g_lists_places && counter == &g_allocs) {
    t_inside = true;
    note_place(number);
    t_inside = false;
  }
  if (counter->fails == 0 || number < counter->fails) return false;
  if (number > counter->fails && !counter->forever) return false;
  errno = counter->code;
  return true;
}

/* Calls that name, size and close files. */
static bool fails_other(void) { return g_writes.code != EINTR && fails(&g_writes); }

/* --- the real functions ----------------------------------------------------------------------- */

/* The next definition of a function after this library's: that of libc or of a sanitizer. */
#define REAL(name)                                                 \
  static __typeof__(name) *real;                                   \
  if (real == NULL) {                                              \
    const bool was_inside = t_inside;                              \
    t_inside = true;                                               \
    real = (__typeof__(name) *)(uintptr_t)dlsym(RTLD_NEXT, #name); \
    t_inside = was_inside;                                         \
  }

/* Memory of the time before start(): dlsym() and sanitizers allocate while they look for the real
 * functions. It is zero, and never reused. */
static char g_early[EARLY_BYTES] __attribute__((aligned(16)));
static size_t g_early_used;
static void *early(size_t size) {
  void *block = g_early + g_early_used;
  g_early_used += (size + 15) & ~(size_t)15;
  if (g_early_used > sizeof g_early) abort();
  return block;
}
static bool is_early(const void *block) {
  return (const char *)block >= g_early && (const char *)block < g_early + sizeof g_early;
}

static void *counted(void *block) {
  if (block != NULL && !t_inside) g_live++;
  return block;
}

void *malloc(size_t size) {
  if (!g_started) return early(size);
  REAL(malloc)
  return fails(&g_allocs) ? NULL : counted(real(size));
}

void *calloc(size_t count, size_t size) {
  if (!g_started) return early(count * size);
  REAL(calloc)
  return fails(&g_allocs) ? NULL : counted(real(count, size));
}

void *realloc(void *block, size_t size) {
  if (!g_started || is_early(block)) {
    void *moved = malloc(size);
    const size_t left = block != NULL ? (size_t)(g_early + sizeof g_early - (char *)block) : 0;
    if (moved != NULL && left != 0) memcpy(moved, block, size < left ? size : left);
    return moved;
  }
  REAL(realloc)
  if (size != 0 && fails(&g_allocs)) return NULL;
  void *moved = real(block, size);
  if (block == NULL) return counted(moved);
  if (size == 0 && moved == NULL) g_live--;
  return moved;
}

void free(void *block) {
  if (block == NULL || is_early(block)) return;
  REAL(free)
  if (!t_inside) g_live--;
  real(block);
}

void *aligned_alloc(size_t align, size_t size) {
  if (!g_started) return early(size);
  REAL(aligned_alloc)
  return fails(&g_allocs) ? NULL : counted(real(align, size));
}

int posix_memalign(void **out, size_t align, size_t size) {
  if (!g_started) return (*out = early(size)) != NULL ? 0 : ENOMEM;
  REAL(posix_memalign)
  if (fails(&g_allocs)) return ENOMEM;
  const int code = real(out, align, size);
  if (code == 0) counted(*out);
  return code;
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
  REAL(mmap)
  return fails(&g_allocs) ? MAP_FAILED : real(at, size, protection, flags, fd, offset);
}

/* --- calls that write ------------------------------------------------------------------------- */

static void set_written(int fd, bool written) {
  if (fd >= 0 && fd < MAX_FILES) g_written[fd] = written;
}
static bool is_written(int fd) { return fd >= 0 && fd < MAX_FILES && g_written[fd]; }

ssize_t write(int fd, const void *data, size_t size) {
  REAL(write)
  if (fd != STDERR_FILENO && fails(&g_writes)) return -1;
  return real(fd, data, g_short != 0 && size > g_short ? g_short : size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
  REAL(pwrite)
  if (fails(&g_writes)) return -1;
  return real(fd, data, g_short != 0 && size > g_short ? g_short : size, offset);
}

int open(const char *path, int flags, ...) {
  REAL(open)
  va_list args;
  va_start(args, flags);
  const mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
  va_end(args);
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  if (writes && fails_other()) return -1;
  const int fd = real(path, flags, mode);
  set_written(fd, writes);
  return fd;
}

int mkstemp(char *path) {
  REAL(mkstemp)
  if (fails_other()) return -1;
  const int fd = real(path);
  set_written(fd, true);
  return fd;
}

/* As on Linux, the descriptor is closed also when close() fails. */
int close(int fd) {
  REAL(close)
  const bool failed = is_written(fd) && fails_other();
  set_written(fd, false);
  const int code = errno, result = real(fd);
  if (!failed) return result;
  errno = code;
  return -1;
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
  REAL(linkat)
  return fails_other() ? -1 : real(from_folder, from, to_folder, to, flags);
}

int rename(const char *from, const char *to) {
  REAL(rename)
  return fails_other() ? -1 : real(from, to);
}

int mkdir(const char *path, mode_t mode) {
  REAL(mkdir)
  return fails_other() ? -1 : real(path, mode);
}

int ftruncate(int fd, off_t size) {
  REAL(ftruncate)
  return fails_other() ? -1 : real(fd, size);
}

int fsync(int fd) {
  REAL(fsync)
  return fails_other() ? -1 : real(fd);
}

/* Programs with 64-bit offsets call these names (_FILE_OFFSET_BITS=64). */
#define ALIAS(name) __attribute__((alias(#name)))
void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset) ALIAS(mmap);
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) ALIAS(pwrite);
int open64(const char *path, int flags, ...) ALIAS(open);
int mkstemp64(char *path) ALIAS(mkstemp);
int ftruncate64(int fd, off64_t size) ALIAS(ftruncate);

/* --- start and end ---------------------------------------------------------------------------- */

void torture_begin(unsigned long fails_at, bool forever) {
  g_allocs.seen = 0;
  g_allocs.fails = fails_at;
  g_allocs.forever = forever;
}
unsigned long torture_end(void) {
  g_allocs.fails = 0;
  return g_allocs.seen;
}
long torture_live(void) { return g_live; }

static void read_plan(const char *plan) {
  static const struct {
    const char *name;
    struct counter *counter;
    bool forever;
  } kinds[] = {{"alloc:", &g_allocs, false},
               {"alloc+:", &g_allocs, true},
               {"write:", &g_writes, false},
               {"write+:", &g_writes, true}};
  if (strncmp(plan, "short:", 6) == 0) g_short = strtoul(plan + 6, NULL, 10);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const size_t size = strlen(kinds[i].name);
    if (strncmp(plan, kinds[i].name, size) != 0) continue;
    char *end;
    kinds[i].counter->fails = strtoul(plan + size, &end, 10);
    kinds[i].counter->forever = kinds[i].forever;
    if (*end == ':') kinds[i].counter->code = atoi(end + 1);
  }
}

__attribute__((constructor)) static void start(void) {
  void *frame;
  g_started = t_inside = true;
  const char *places = getenv("TORTURE_PLACES");
  g_lists_places = places != NULL && places[0] != '\0';
  if (g_lists_places) (void)backtrace(&frame, 1); /* loads what it needs */
  t_inside = false;
  g_live = 0;
  g_allocs.seen = g_writes.seen = 0;
  g_report = getenv("TORTURE_REPORT");
  const char *plan = getenv("TORTURE_FAIL");
  if (plan != NULL) read_plan(plan);
}

extern void __libc_freeres(void) __attribute__((weak)); /* frees what libc holds, such as buffers */

__attribute__((destructor)) static void report(void) {
  const char *path = g_report;
  if (path == NULL) return;
  g_report = NULL;
  g_lists_places = false;
  const unsigned long allocs = g_allocs.seen, writes = g_writes.seen;
  g_allocs.fails = g_writes.fails = 0;
  if (__libc_freeres != NULL) __libc_freeres();
  const long live = g_live;
  t_inside = true;
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return;
  dprintf(fd, "%lu %ld %lu\n", allocs, live, writes);
  for (unsigned long i = 0; i < g_num_places; i++)
    dprintf(fd, "%lu %016llx\n", g_places[i].number, (unsigned long long)g_places[i].hash);
  (void)close(fd);
}
