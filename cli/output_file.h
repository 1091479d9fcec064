/* output_file.h - text outputs of commands, as stdio streams over the library's outputs. */
#ifndef WARPFST_CLI_OUTPUT_FILE_H
#define WARPFST_CLI_OUTPUT_FILE_H

#include <stdio.h>

#include "warpfst_all.h"

typedef struct cli_output {
  FILE *file; /* NULL: not open */
  wf_output *output;
} cli_output;

/* Opens the file, or standard output for NULL and "-". */
wf_status cli_output_open(cli_output *out, const char *path, wf_error *err);
/* Completes the file if `status` is WF_OK, else discards it. Returns `status`, or the status of a
 * failed write. Does nothing if it is not open. */
wf_status cli_output_close(cli_output *out, wf_status status, wf_error *err);

#endif
