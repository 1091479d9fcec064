/* unary.h - the runner of every subcommand that makes one fst of one fst: it reads, calls and
 * writes; the command adds its flags and its call. */
#ifndef WARPFST_CLI_UNARY_H
#define WARPFST_CLI_UNARY_H

#include "cli.h"

typedef wf_status (*cli_operation)(const wf_fst *in, const void *options, wf_fst **out,
                                   wf_error *err);

/* Parses and runs `warpfst OP [IN [OUT]]`. `adjust` (may be NULL) runs between the two. Returns the
 * exit code. */
int cli_run_unary(cli_parser *parser, int argc, char **argv, cli_operation op, void *options,
                  void (*adjust)(void *options));

/* The same for operations that devices have: `operate` on a batch of the one fst. */
typedef wf_status (*cli_batch_operation)(const wf_fst_batch *batch, const void *options,
                                         wf_fst_batch **out, wf_error *err);
wf_status cli_on_device(const wf_fst *in, const char *device, cli_batch_operation operate,
                        const void *options, wf_fst **out, wf_error *err);
/* --device; `*device` stays NULL where it is not given: the CPU, without a batch. */
void cli_flag_device(cli_parser *parser, const char **device);

#endif
