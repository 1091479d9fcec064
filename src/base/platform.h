/* platform.h - what differs between systems: files, folders, memory, waiting, processors, standard
 * streams. platform_posix.c is for Linux and macOS, platform_windows.c for Windows. Linked into the
 * library and the program.
 *
 * Paths are UTF-8, and the bytes of a file are read and written as they are, on every system.
 * Descriptors are those of the C library. Functions fail with errno set. Threads are POSIX threads
 * everywhere: on Windows those of mingw-w64, which also has clock_gettime. */
#ifndef WF_BASE_PLATFORM_H
#define WF_BASE_PLATFORM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { WF__STDIN, WF__STDOUT, WF__STDERR }; /* descriptors of the standard streams */

/* --- files ---------------------------------------------------------------------------------- */

typedef enum wf__file_kind {
  WF__FILE_NONE,
  WF__FILE_REGULAR,
  WF__FILE_FOLDER,
  WF__FILE_OTHER
} wf__file_kind;

/* What a path names, links followed. WF__FILE_NONE: it names nothing that can be reached. */
wf__file_kind wf__path_kind(const char *path);
/* The kind of an open file and, for a regular one, its size. */
wf__file_kind wf__file_kind_of(int fd, uint64_t *size);

/* Open a file: to read it; to write a new one (EEXIST if the name is taken); to write to a FIFO, a
 * terminal or another device, where opening can wait (EINTR). Children do not inherit descriptors.
 * On Windows others may read, rename and delete an open file, as elsewhere. -1 on failure. */
int wf__file_read_only(const char *path);
int wf__file_create(const char *path);
int wf__file_open_stream(const char *path);
/* Opens a file without a name, to write: in the folder of `path`, for wf__file_link. -1 if the
 * system or the file system has none. */
int wf__file_unnamed(const char *path);
/* Gives a file without a name one that is not taken. -1 on failure. */
int wf__file_link(int fd, const char *name);
/* Opens a file in the folder to write and read, which is deleted when it is closed or the process
 * ends. -1 on failure. */
int wf__file_temporary(const char *folder);
int wf__file_duplicate(int fd);
int wf__file_close(int fd);

/* As read, write, pread and pwrite: the number of bytes, which can be smaller than `size`, or -1.
 * `_at` functions need a regular file. */
int64_t wf__file_read(int fd, void *data, size_t size);
int64_t wf__file_write(int fd, const void *data, size_t size);
int64_t wf__file_read_at(int fd, void *data, size_t size, uint64_t offset);
int64_t wf__file_write_at(int fd, const void *data, size_t size, uint64_t offset);
/* As wf__file_write, but a pipe without a reader is only the error EPIPE, without a signal. */
int64_t wf__file_write_quietly(int fd, const void *data, size_t size);

/* Maps a file of `size` bytes, at least 1, to read it. NULL on failure. */
void *wf__file_map(int fd, uint64_t size);
void wf__file_unmap(void *map, uint64_t size);

/* --- paths ---------------------------------------------------------------------------------- */

/* Gives a file a new name, in the place of the file that had it. 0 or -1. */
int wf__path_rename(const char *from, const char *to);
/* Removes a file; may be called in a signal handler. 0 or -1. */
int wf__path_remove(const char *path);
/* 0 or -1. */
int wf__path_make_folder(const char *path);
/* The name in a path: what follows the last separator, '/' and on Windows also '\' and the ':' of a
 * drive. */
const char *wf__path_name(const char *path);
/* True if a file of a folder can be called so. */
bool wf__path_is_name(const char *name);
/* Follows the symbolic links of the last component. Sets *descriptor if they end at an open
 * descriptor of this process (/dev/fd/1), else to -1, and *out to the path of the file; the caller
 * frees it. 0 or an errno. */
int wf__path_resolve(const char *path, char **out, int *descriptor);
/* The folder for temporary files. The caller frees it. NULL: no memory. */
char *wf__path_temporary_folder(void);

/* Libraries that are loaded while the program runs. Not on Windows, where there are none. A path
 * that does not fit becomes ''. */
enum { WF__PATH_BYTES = 4096 };
/* Writes the path of the library that has this address; absolute, so called before the working
 * folder changes. '' if it is not known. */
void wf__library_file(const void *address, char out[WF__PATH_BYTES]);
/* Writes the absolute path of a file, links followed. False if there is none. */
bool wf__path_real(const char *path, char out[WF__PATH_BYTES]);
/* Loads a library for the rest of the process. Its functions are bound when they are called first.
 * NULL, or the reason why it was not loaded, until the thread's next call. */
const char *wf__library_load(const char *file);

/* The names in a folder, "." and ".." included. */
typedef struct wf__folder wf__folder;
wf__folder *wf__folder_open(const char *path);
/* NULL after the last one. Borrowed until the next call. */
const char *wf__folder_next(wf__folder *folder);
void wf__folder_close(wf__folder *folder);

/* --- memory, waiting, processors -------------------------------------------------------------- */

/* Free with wf__aligned_free. `alignment` is a power of two that divides `bytes`. */
void *wf__aligned_alloc(size_t alignment, size_t bytes);
void wf__aligned_free(void *memory);
/* The bytes of a block of malloc that may be used; at least those that were requested. */
size_t wf__usable_bytes(void *memory);
/* Asks for huge pages for the pages of this memory. Does nothing where there are none. */
void wf__prefer_huge_pages(void *memory, size_t bytes);
/* The most memory that this process has had. */
uint64_t wf__peak_bytes(void);

/* The processors on which this process may run; at least 1. */
int wf__num_processors(void);
int64_t wf__process_id(void);

/* A condition for wf__timed_wait. */
void wf__timed_init(pthread_cond_t *condition);
/* As pthread_cond_wait, for at most `ns`, less than a second. Returns whether the time is over. */
bool wf__timed_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t ns);

/* --- the program ------------------------------------------------------------------------------ */

/* Called first. On Windows *argv becomes UTF-8, and the console takes UTF-8 and escape sequences.
 * Elsewhere standard streams that are closed are opened on /dev/null, in the mode in which their use
 * still fails: the next open() would reuse their number, and output for the stream would enter that
 * file. */
void wf__program_start(int *argc, char ***argv);
/* Calls fn, which may only do what a signal handler may, before a signal or a closed console ends
 * the program. */
void wf__program_at_signal(void (*fn)(void));
bool wf__is_terminal(int fd);
/* Columns of the terminal that is standard output; 0: it is none. */
int wf__terminal_width(void);

FILE *wf__stdio_read(const char *path);
/* As POSIX's getline: the size of the next line with its end, -1 at the end of the file and on
 * failure. */
int64_t wf__stdio_line(char **text, size_t *room, FILE *file);
/* A stream whose bytes go to `take`, at the latest when it is closed. NULL: no memory. */
typedef void wf__take_fn(void *user, const void *data, size_t size);
FILE *wf__stdio_writer(wf__take_fn *take, void *user);
int wf__stdio_close_writer(FILE *file);

#endif
