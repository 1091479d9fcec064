/* temp_file.h - a file without a name, for what does not fit memory. It is gone when it is closed,
 * however the process ends. */
#ifndef WF_BASE_TEMP_FILE_H
#define WF_BASE_TEMP_FILE_H

#include "base/error.h"

/* In the folder; *fd is for close(). */
wf_status wf__temp_open(const char *folder, int *fd, wf_error *err);
wf_status wf__temp_write(int fd, uint64_t offset, const void *data, uint64_t size, wf_error *err);
wf_status wf__temp_read(int fd, uint64_t offset, void *data, uint64_t size, wf_error *err);

#endif
