/* temp_file.h - an unnamed file for data that does not fit memory. It is deleted when it is closed
 * or the process ends. */
#ifndef WF_BASE_TEMP_FILE_H
#define WF_BASE_TEMP_FILE_H

#include "base/error.h"

/* The folder for temporary files: a copy of `given`, or if that is NULL the folder of the file
 * `output`, or the system's folder ($TMPDIR,
 * /tmp) if both are NULL. The caller frees it. */
wf_status wf__temp_folder(const char *given, const char *output, char **out, wf_error *err);
/* Opens a file in the folder. */
wf_status wf__temp_open(const char *folder, int *fd, wf_error *err);
void wf__temp_close(int fd);
/* `folder` is for messages. */
wf_status wf__temp_write(int fd, const char *folder, uint64_t offset, const void *data,
                         uint64_t size, wf_error *err);
wf_status wf__temp_read(int fd, const char *folder, uint64_t offset, void *data, uint64_t size,
                        wf_error *err);

#endif
