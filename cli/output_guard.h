/* output_guard.h - interrupted builds leave no half-written file behind. */
#ifndef WARPFST_CLI_OUTPUT_GUARD_H
#define WARPFST_CLI_OUTPUT_GUARD_H

/* From now on SIGINT, SIGTERM and SIGHUP remove the temporary file under which the library writes
 * `path`, then end the program as they would have. NULL and "-" are fine. At most 64 paths; further
 * ones are not covered. */
void cli_guard_output(const char *path);

#endif
