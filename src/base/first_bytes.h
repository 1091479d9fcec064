/* first_bytes.h - what a file begins with. Also part of the program. */
#ifndef WF_BASE_FIRST_BYTES_H
#define WF_BASE_FIRST_BYTES_H

#include <stddef.h>

/* Reads up to `size` bytes from the start of a regular file. Returns how many; 0 for others: the
 * bytes of a pipe can be read only once. Allocates nothing. */
size_t wf__first_bytes(const char *path, void *bytes, size_t size);

#endif
