/* unary.h - the runner of every subcommand that makes one fst of one fst: it reads, calls and writes; the command adds its flags and its call. */
#ifndef WARPFST_CLI_UNARY_H
#define WARPFST_CLI_UNARY_H

#include "cli.h"

typedef wf_status (*cli_operation)(const wf_fst *in, const void *options, wf_fst **out, wf_error *err);

/* Parses and runs `warpfst OP [IN [OUT]]`. `adjust` (may be NULL) runs between the two. Returns the exit code. */
int cli_run_unary(cli_parser *parser, int argc, char **argv, cli_operation op, void *options, void (*adjust)(void *options));

#endif
