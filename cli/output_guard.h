/* output_guard.h - removes half-written files when a command is interrupted. */
#ifndef WARPFST_CLI_OUTPUT_GUARD_H
#define WARPFST_CLI_OUTPUT_GUARD_H

/* After this call SIGINT, SIGTERM and SIGHUP remove unfinished output files before they end the
 * program. */
void cli_guard_outputs(void);

#endif
