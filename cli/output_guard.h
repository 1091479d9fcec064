/* output_guard.h - removes half-written files when a command is interrupted. */
#ifndef WARPFST_CLI_OUTPUT_GUARD_H
#define WARPFST_CLI_OUTPUT_GUARD_H

/* After this call SIGINT, SIGTERM and SIGHUP remove the temporary file of the output `path` before
 * they end the program. NULL and "-" are ignored. At most 64 paths; further paths are not guarded.
 */
void cli_guard_output(const char *path);

#endif
