/* compare_fsts.h - the common part of equal, equivalent and randequivalent: reads two fsts,
 * compares them and reports the difference. */
#ifndef WARPFST_CLI_COMPARE_FSTS_H
#define WARPFST_CLI_COMPARE_FSTS_H

#include "cli.h"

/* A comparison of the library; `user` points to its options. */
typedef wf_status (*cli_compare_fn)(const wf_fst *a, const wf_fst *b, const void *user,
                                    bool *out_same, wf_error *err);
/* Returns CLI_OK if the fsts are the same, or CLI_NO if not, after printing the difference on
 * stderr unless `quiet`. Without `check_symbols`, symbol tables are not compared. After an error,
 * prints it and returns its exit code. */
int cli_compare_fsts(const char *first, const char *second, cli_compare_fn compare,
                     const void *user, bool check_symbols, bool quiet);

#endif
