/* first_bytes.c - what a file begins with. */
#include "base/first_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

size_t wf__first_bytes(const char *path, void *bytes, size_t size) {
  struct stat about;
  if (stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return 0;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t got = read(fd, bytes, size);
  close(fd);
  return got > 0 ? (size_t)got : 0;
}
