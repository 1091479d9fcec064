/* unary.h - runs subcommands that make one fst from one fst: parses the flags, reads, calls the
 * operation and writes. The subcommand adds its flags and the operation. */
#ifndef WARPFST_CLI_UNARY_H
#define WARPFST_CLI_UNARY_H

#include "cli.h"

typedef wf_status (*cli_operation)(const wf_fst *in, const void *options, wf_fst **out,
                                   wf_error *err);

/* Parses and runs `warpfst OP [IN [OUT]]`. `adjust` (may be NULL) is called after parsing. Returns
 * the exit code. */
int cli_run_unary(cli_parser *parser, int argc, char **argv, cli_operation op, void *options,
                  void (*adjust)(void *options));

/* Runs an operation on a device: `operate` is called with a batch that holds the one fst. */
typedef wf_status (*cli_batch_operation)(const wf_fst_batch *batch, const void *options,
                                         wf_fst_batch **out, wf_error *err);
wf_status cli_on_device(const wf_fst *in, const char *device, cli_batch_operation operate,
                        const void *options, wf_fst **out, wf_error *err);
/* Adds --device. If it is not given, `*device` stays NULL: the operation runs on the CPU, without a
 * batch. */
void cli_flag_device(cli_parser *parser, const char **device);

#endif
