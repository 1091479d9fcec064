/* platform_windows.c - platform.h for Windows 10 and later: the wide interface,
 * with UTF-8 at its edge. */
#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#if !defined(_WIN32_WINNT)
#define _WIN32_WINNT 0x0A00
#endif
#include <windows.h>

#include "base/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <limits.h>
#include <malloc.h>
#include <psapi.h>
#include <shellapi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* --- text and errors ----------------------------------------------------------------------- */

/* Sets errno to what says the same as the system's last error. Returns -1. */
static int fail(void) {
  static const struct {
    DWORD from;
    int to;
  } codes[] = {{ERROR_FILE_NOT_FOUND, ENOENT},    {ERROR_PATH_NOT_FOUND, ENOENT},
               {ERROR_INVALID_NAME, ENOENT},      {ERROR_BAD_PATHNAME, ENOENT},
               {ERROR_BAD_NETPATH, ENOENT},       {ERROR_INVALID_DRIVE, ENOENT},
               {ERROR_DIRECTORY, ENOTDIR},        {ERROR_ACCESS_DENIED, EACCES},
               {ERROR_SHARING_VIOLATION, EACCES}, {ERROR_LOCK_VIOLATION, EACCES},
               {ERROR_USER_MAPPED_FILE, EACCES},  {ERROR_FILE_EXISTS, EEXIST},
               {ERROR_ALREADY_EXISTS, EEXIST},    {ERROR_DISK_FULL, ENOSPC},
               {ERROR_HANDLE_DISK_FULL, ENOSPC},  {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
               {ERROR_OUTOFMEMORY, ENOMEM},       {ERROR_TOO_MANY_OPEN_FILES, EMFILE},
               {ERROR_BROKEN_PIPE, EPIPE},        {ERROR_NO_DATA, EPIPE},
               {ERROR_INVALID_HANDLE, EBADF},     {ERROR_WRITE_PROTECT, EROFS},
               {ERROR_DIR_NOT_EMPTY, ENOTEMPTY},  {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG}};
  const DWORD code = GetLastError();
  errno = EIO;
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (codes[i].from == code) errno = codes[i].to;
  return -1;
}

/* The caller frees it. NULL: no memory, or not UTF-8. */
static wchar_t *wide_of(const char *text) {
  const int size = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
  wchar_t *wide = size > 0 ? malloc((size_t)size * sizeof *wide) : NULL;
  if (wide == NULL)
    errno = size > 0 ? ENOMEM : EILSEQ;
  else
    MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, size);
  return wide;
}

static char *utf8_of(const wchar_t *wide) {
  const int size = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
  char *text = size > 0 ? malloc((size_t)size) : NULL;
  if (text == NULL)
    errno = ENOMEM;
  else
    WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, size, NULL, NULL);
  return text;
}

/* The path for the system; from some 250 characters on in the form that is not
 * limited to 260. */
static wchar_t *wide_path(const char *path) {
  enum { LONG_PATH = 240 };
  static const wchar_t prefix[] = L"\\\\?\\";
  wchar_t *wide = wide_of(path);
  if (wide == NULL || wcslen(wide) < LONG_PATH || wcsncmp(wide, L"\\\\", 2) == 0) return wide;
  const DWORD size = GetFullPathNameW(wide, 0, NULL, NULL);
  wchar_t *full = malloc((size + 8) * sizeof *full);
  if (full != NULL) {
    wcscpy(full, prefix);
    GetFullPathNameW(wide, size, full + wcslen(prefix), NULL);
  } else {
    errno = ENOMEM;
  }
  free(wide);
  return full;
}

/* --- files --------------------------------------------------------------------------------- */

static bool is_folder(const wchar_t *path) {
  const DWORD attributes = GetFileAttributesW(path);
  return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

/* Others may do with the file what they may elsewhere. */
static HANDLE open_handle(const wchar_t *path, DWORD access, DWORD how, DWORD flags) {
  return CreateFileW(path, access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                     how, flags, NULL);
}

static int open_wide(const wchar_t *path, DWORD access, DWORD how, DWORD flags, int mode) {
  HANDLE handle = open_handle(path, access, how, flags);
  if (handle == INVALID_HANDLE_VALUE) {
    fail();
    if (errno == EACCES && is_folder(path)) errno = how == CREATE_NEW ? EEXIST : EISDIR;
    return -1;
  }
  const int fd = _open_osfhandle((intptr_t)handle, mode | _O_BINARY | _O_NOINHERIT);
  if (fd < 0) CloseHandle(handle);
  return fd;
}

static int open_path(const char *path, DWORD access, DWORD how, int mode) {
  wchar_t *wide = wide_path(path);
  const int fd = wide != NULL ? open_wide(wide, access, how, FILE_ATTRIBUTE_NORMAL, mode) : -1;
  free(wide);
  return fd;
}

int wf__file_read_only(const char *path) {
  return open_path(path, GENERIC_READ, OPEN_EXISTING, _O_RDONLY);
}

int wf__file_create(const char *path) {
  return open_path(path, GENERIC_WRITE, CREATE_NEW, _O_WRONLY);
}

int wf__file_open_stream(const char *path) {
  return open_path(path, GENERIC_WRITE, OPEN_EXISTING, _O_WRONLY);
}

int wf__file_unnamed(const char *path) {
  (void)path;
  errno = ENOTSUP;
  return -1;
}

int wf__file_link(int fd, const char *name) {
  (void)fd;
  (void)name;
  errno = ENOTSUP;
  return -1;
}

int wf__file_temporary(const char *folder) {
  static volatile LONG number;
  enum { MAX_TRIES = 1000 };
  const size_t size = strlen(folder) + 64;
  char *path = malloc(size);
  int fd = -1;
  errno = path != NULL ? EEXIST : ENOMEM;
  for (int i = 0; path != NULL && fd < 0 && errno == EEXIST && i < MAX_TRIES; i++) {
    snprintf(path, size, "%s/.warpfst.%lu.%ld", folder, GetCurrentProcessId(),
             InterlockedIncrement(&number));
    wchar_t *wide = wide_path(path);
    if (wide == NULL) break;
    fd = open_wide(wide, GENERIC_READ | GENERIC_WRITE | DELETE, CREATE_NEW,
                   FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, _O_RDWR);
    free(wide);
  }
  free(path);
  return fd;
}

static HANDLE handle_of(int fd) { return (HANDLE)_get_osfhandle(fd); }

static wf__file_kind kind_of(HANDLE handle, uint64_t *size) {
  BY_HANDLE_FILE_INFORMATION about;
  *size = 0;
  if (handle == INVALID_HANDLE_VALUE) return WF__FILE_NONE;
  if (GetFileType(handle) != FILE_TYPE_DISK) return WF__FILE_OTHER;
  if (!GetFileInformationByHandle(handle, &about)) return WF__FILE_OTHER;
  *size = (uint64_t)about.nFileSizeHigh << 32 | about.nFileSizeLow;
  return about.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ? WF__FILE_FOLDER : WF__FILE_REGULAR;
}

wf__file_kind wf__path_kind(const char *path) {
  uint64_t size;
  wchar_t *wide = wide_path(path);
  if (wide == NULL) return WF__FILE_NONE;
  HANDLE handle = open_handle(wide, 0, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS);
  if (handle == INVALID_HANDLE_VALUE) fail();
  const wf__file_kind kind = kind_of(handle, &size);
  if (handle != INVALID_HANDLE_VALUE) CloseHandle(handle);
  free(wide);
  return kind;
}

wf__file_kind wf__file_kind_of(int fd, uint64_t *size) { return kind_of(handle_of(fd), size); }

int wf__file_duplicate(int fd) { return _dup(fd); }
int wf__file_close(int fd) { return _close(fd); }

/* The functions of the C library count in 32 bits. */
static unsigned part_of(size_t size) { return size < INT_MAX ? (unsigned)size : INT_MAX; }

int64_t wf__file_read(int fd, void *data, size_t size) { return _read(fd, data, part_of(size)); }

int64_t wf__file_write(int fd, const void *data, size_t size) {
  return _write(fd, data, part_of(size));
}

/* ReadFile or WriteFile at an offset. They move the position, which is kept.
 */
static int64_t transfer_at(int fd, void *into, const void *from, size_t size, uint64_t offset) {
  OVERLAPPED at = {.Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32)};
  const int64_t before = _lseeki64(fd, 0, SEEK_CUR);
  DWORD done = 0;
  const bool good = into != NULL ? ReadFile(handle_of(fd), into, part_of(size), &done, &at)
                                 : WriteFile(handle_of(fd), from, part_of(size), &done, &at);
  const DWORD code = good ? 0 : GetLastError();
  if (before >= 0) _lseeki64(fd, before, SEEK_SET);
  if (good || code == ERROR_HANDLE_EOF) return done;
  SetLastError(code);
  return fail();
}

int64_t wf__file_read_at(int fd, void *data, size_t size, uint64_t offset) {
  return transfer_at(fd, data, NULL, size, offset);
}

int64_t wf__file_write_at(int fd, const void *data, size_t size, uint64_t offset) {
  return transfer_at(fd, NULL, data, size, offset);
}

int64_t wf__file_write_quietly(int fd, const void *data, size_t size) {
  return wf__file_write(fd, data, size); /* there is no signal */
}

void *wf__file_map(int fd, uint64_t size) {
  HANDLE mapping = CreateFileMappingW(handle_of(fd), NULL, PAGE_READONLY, 0, 0, NULL);
  void *map = mapping != NULL ? MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, (SIZE_T)size) : NULL;
  if (mapping != NULL) CloseHandle(mapping); /* the view keeps it */
  return map;
}

void wf__file_unmap(void *map, uint64_t size) {
  (void)size;
  UnmapViewOfFile(map);
}

/* --- paths --------------------------------------------------------------------------------- */

/* Replaces a file even while others have it open: the name is free at once, and
 * they keep the old file. False if the file system cannot do that. */
static bool rename_as_posix(const wchar_t *from, const wchar_t *to) {
  enum { RENAME_INFO_EX = 22, REPLACE = 1, POSIX_SEMANTICS = 2 };
  struct {
    DWORD flags;
    HANDLE folder;
    DWORD name_bytes;
    wchar_t name[1];
  } * info;
  const DWORD length = GetFullPathNameW(to, 0, NULL, NULL);
  const size_t bytes = sizeof *info + length * sizeof(wchar_t);
  HANDLE handle = open_handle(from, DELETE | SYNCHRONIZE, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL);
  info = handle != INVALID_HANDLE_VALUE && length > 0 ? calloc(1, bytes) : NULL;
  bool done = false;
  if (info != NULL) {
    info->flags = REPLACE | POSIX_SEMANTICS;
    info->name_bytes = GetFullPathNameW(to, length, info->name, NULL) * sizeof(wchar_t);
    done = SetFileInformationByHandle(handle, (FILE_INFO_BY_HANDLE_CLASS)RENAME_INFO_EX, info,
                                      (DWORD)bytes);
  }
  free(info);
  if (handle != INVALID_HANDLE_VALUE) CloseHandle(handle);
  return done;
}

/* Where a file that is open or mapped cannot be replaced, it can get another
 * name first. It is deleted then, or stays under that name while it is mapped.
 */
static bool step_aside(const wchar_t *from, const wchar_t *to) {
  static volatile LONG number;
  const size_t size = wcslen(to) + 48;
  wchar_t *aside = malloc(size * sizeof *aside);
  bool done = false;
  if (aside == NULL) return false;
  swprintf(aside, size, L"%ls.old.%lu.%ld", to, GetCurrentProcessId(),
           InterlockedIncrement(&number));
  if (MoveFileExW(to, aside, 0)) {
    done = MoveFileExW(from, to, 0);
    if (done)
      (void)DeleteFileW(aside);
    else
      (void)MoveFileExW(aside, to, 0);
  }
  free(aside);
  return done;
}

int wf__path_rename(const char *from, const char *to) {
  wchar_t *wide_from = wide_path(from), *wide_to = wide_path(to);
  int code = -1;
  if (wide_from != NULL && wide_to != NULL) {
    code = rename_as_posix(wide_from, wide_to) ||
                   MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING)
               ? 0
               : fail();
    if (code != 0 && errno == EACCES && !is_folder(wide_to) && step_aside(wide_from, wide_to))
      code = 0;
  }
  const int number = errno;
  free(wide_from);
  free(wide_to);
  errno = number;
  return code;
}

int wf__path_remove(const char *path) {
  wchar_t *wide = wide_path(path);
  if (wide == NULL) return -1;
  const int code = DeleteFileW(wide) ? 0 : fail();
  free(wide);
  return code;
}

int wf__path_make_folder(const char *path) {
  wchar_t *wide = wide_path(path);
  if (wide == NULL) return -1;
  const int code = CreateDirectoryW(wide, NULL) ? 0 : fail();
  free(wide);
  return code;
}

const char *wf__path_name(const char *path) {
  const char *name = path;
  if (path[0] != '\0' && path[1] == ':') name = path + 2;
  for (const char *at = name; *at != '\0'; at++)
    if (*at == '/' || *at == '\\') name = at + 1;
  return name;
}

bool wf__path_is_name(const char *name) {
  for (const char *at = name; *at != '\0'; at++)
    if ((unsigned char)*at < 0x20 || strchr("<>:\"/\\|?*", *at) != NULL) return false;
  const size_t size = strlen(name);
  return size > 0 && name[size - 1] != '.' && name[size - 1] != ' ';
}

int wf__path_resolve(const char *path, char **out, int *descriptor) {
  *descriptor = -1;
  *out = NULL;
  wchar_t *wide = wide_path(path), target[1024];
  if (wide == NULL) return errno;
  const DWORD attributes = GetFileAttributesW(wide);
  DWORD length = 0;
  if (attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0) {
    HANDLE handle = open_handle(wide, 0, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS);
    if (handle != INVALID_HANDLE_VALUE) {
      length = GetFinalPathNameByHandleW(handle, target, 1024, FILE_NAME_NORMALIZED);
      CloseHandle(handle);
    }
  }
  free(wide);
  *out = length > 0 && length < 1024 ? utf8_of(target) : strdup(path);
  return *out != NULL ? 0 : ENOMEM;
}

char *wf__path_temporary_folder(void) {
  wchar_t folder[MAX_PATH + 2];
  const DWORD size = GetTempPathW(MAX_PATH + 2, folder);
  if (size == 0 || size > MAX_PATH + 1) return strdup(".");
  if (size > 3) folder[size - 1] = 0; /* it ends in a separator */
  return utf8_of(folder);
}

struct wf__folder {
  HANDLE search;
  WIN32_FIND_DATAW found;
  bool is_first;
  char name[MAX_PATH * 3];
};

wf__folder *wf__folder_open(const char *path) {
  const size_t size = strlen(path) + 3;
  char *pattern = malloc(size);
  wf__folder *folder = malloc(sizeof *folder);
  if (pattern != NULL) snprintf(pattern, size, "%s/*", path);
  wchar_t *wide = pattern != NULL ? wide_path(pattern) : NULL;
  if (folder != NULL && wide != NULL) {
    folder->search = FindFirstFileW(wide, &folder->found);
    folder->is_first = true;
    if (folder->search == INVALID_HANDLE_VALUE) {
      fail();
      free(folder);
      folder = NULL;
    }
  } else {
    free(folder);
    folder = NULL;
    errno = ENOMEM;
  }
  free(pattern);
  free(wide);
  return folder;
}

const char *wf__folder_next(wf__folder *folder) {
  if (!folder->is_first && !FindNextFileW(folder->search, &folder->found)) return NULL;
  folder->is_first = false;
  WideCharToMultiByte(CP_UTF8, 0, folder->found.cFileName, -1, folder->name, sizeof folder->name,
                      NULL, NULL);
  return folder->name;
}

void wf__folder_close(wf__folder *folder) {
  FindClose(folder->search);
  free(folder);
}

/* --- memory, waiting, processors ----------------------------------------------------------- */

void *wf__aligned_alloc(size_t alignment, size_t bytes) {
  return _aligned_malloc(bytes, alignment);
}
void wf__aligned_free(void *memory) { _aligned_free(memory); }
size_t wf__usable_bytes(void *memory) { return _msize(memory); }

void wf__prefer_huge_pages(void *memory, size_t bytes) {
  (void)memory;
  (void)bytes;
}

uint64_t wf__peak_bytes(void) {
  PROCESS_MEMORY_COUNTERS counters;
  return GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters)
             ? counters.PeakWorkingSetSize
             : 0;
}

int wf__num_processors(void) {
  DWORD_PTR own, all;
  int count = 0;
  if (GetProcessAffinityMask(GetCurrentProcess(), &own, &all))
    for (; own != 0; own &= own - 1) count++;
  const int active = (int)GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
  if (count == 0 || active > 64) count = active; /* a mask is of one group of 64 */
  return count > 0 ? count : 1;
}

int64_t wf__process_id(void) { return GetCurrentProcessId(); }

void wf__timed_init(pthread_cond_t *condition) { pthread_cond_init(condition, NULL); }

bool wf__timed_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t ns) {
  const struct timespec time = {.tv_nsec = (long)ns};
  return pthread_cond_timedwait_relative_np(condition, mutex, &time) == ETIMEDOUT;
}

/* --- the program --------------------------------------------------------------------------- */

static void take_utf8_arguments(int *argc, char ***argv) {
  int count;
  wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &count);
  char **texts = wide != NULL ? calloc((size_t)count + 1, sizeof *texts) : NULL;
  for (int i = 0; texts != NULL && i < count; i++) {
    texts[i] = utf8_of(wide[i]);
    if (texts[i] == NULL) texts = NULL;
  }
  LocalFree(wide);
  if (texts == NULL) return; /* no memory: those of the C library */
  *argc = count;
  *argv = texts;
}

void wf__program_start(int *argc, char ***argv) {
  DWORD mode;
  HANDLE messages = GetStdHandle(STD_ERROR_HANDLE);
  for (int fd = 0; fd <= 2; fd++) (void)_setmode(fd, _O_BINARY);
  SetConsoleCP(CP_UTF8);
  SetConsoleOutputCP(CP_UTF8);
  if (GetConsoleMode(messages, &mode))
    SetConsoleMode(messages, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
  take_utf8_arguments(argc, argv);
}

static void (*g_at_signal)(void);

static BOOL WINAPI on_console_event(DWORD event) {
  (void)event;
  g_at_signal();
  return FALSE; /* ends the program */
}

void wf__program_at_signal(void (*fn)(void)) {
  g_at_signal = fn;
  SetConsoleCtrlHandler(on_console_event, TRUE);
}

bool wf__is_terminal(int fd) { return _isatty(fd) != 0; }

int wf__terminal_width(void) {
  CONSOLE_SCREEN_BUFFER_INFO info;
  if (!GetConsoleScreenBufferInfo(GetStdHandle(STD_OUTPUT_HANDLE), &info)) return 0;
  return info.srWindow.Right - info.srWindow.Left + 1;
}

FILE *wf__stdio_read(const char *path) {
  const int fd = wf__file_read_only(path);
  FILE *file = fd >= 0 ? _fdopen(fd, "rb") : NULL;
  if (file == NULL && fd >= 0) _close(fd);
  return file;
}

int64_t wf__stdio_line(char **text, size_t *room, FILE *file) {
  size_t size = 0;
  for (int byte; (byte = getc(file)) != EOF;) {
    if (size + 2 > *room) {
      char *grown = realloc(*text, 2 * size + 256);
      if (grown == NULL) return -1;
      *text = grown;
      *room = 2 * size + 256;
    }
    (*text)[size++] = (char)byte;
    if (byte == '\n') break;
  }
  if (size == 0 || ferror(file)) return -1;
  (*text)[size] = '\0';
  return (int64_t)size;
}

/* The C library has no streams over functions. A writer is a temporary file,
 * whose bytes are taken when it is closed. */
static struct {
  FILE *file;
  wf__take_fn *take;
  void *user;
} g_writers[8];

FILE *wf__stdio_writer(wf__take_fn *take, void *user) {
  for (size_t i = 0; i < sizeof g_writers / sizeof *g_writers; i++) {
    if (g_writers[i].file != NULL) continue;
    char *folder = wf__path_temporary_folder();
    const int fd = folder != NULL ? wf__file_temporary(folder) : -1;
    free(folder);
    FILE *file = fd >= 0 ? _fdopen(fd, "w+b") : NULL;
    if (file == NULL && fd >= 0) _close(fd);
    if (file != NULL) {
      g_writers[i].file = file;
      g_writers[i].take = take;
      g_writers[i].user = user;
    }
    return file;
  }
  return NULL;
}

int wf__stdio_close_writer(FILE *file) {
  char data[4096];
  size_t i = 0;
  while (g_writers[i].file != file) i++;
  rewind(file);
  for (size_t got; (got = fread(data, 1, sizeof data, file)) > 0;)
    g_writers[i].take(g_writers[i].user, data, got);
  g_writers[i].file = NULL;
  return fclose(file);
}
#endif
