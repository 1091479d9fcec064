/* lm_common.h - what the subcommands of `warpfst lm` share: loading a model. */
#ifndef WARPFST_CLI_LM_COMMON_H
#define WARPFST_CLI_LM_COMMON_H

#include "cli.h"

/* The subcommands of `warpfst lm`; argv[0] is "lm NAME". */
int cmd_lm_info(int argc, char **argv);
int cmd_lm_query(int argc, char **argv);
int cmd_lm_perplexity(int argc, char **argv);
int cmd_lm_convert(int argc, char **argv);
int cmd_lm_prune(int argc, char **argv);
int cmd_lm_arpa(int argc, char **argv);
int cmd_lm_build(int argc, char **argv);
int cmd_lm_verify(int argc, char **argv);
int cmd_lm_estimate(int argc, char **argv);
int cmd_lm_mix(int argc, char **argv);

typedef struct lm_source {
  const char *words_path; /* NULL: the table is made from the model */
  wf_arpa_options options;
  bool quiet; /* no progress bar */
} lm_source;
/* Adds --words and the options of readers. */
void lm_flags(cli_parser *parser, lm_source *source);
/* Returns CLI_OK, or the exit code of an error, which it prints. `stats` may be NULL. */
int lm_load(const char *path, const lm_source *source, wf_lm **out, wf_arpa_stats *stats);

/* Reads the first field of each line into a new symbol table, so the file may be a list of words or
 * a word table. Returns CLI_OK, or the exit code of an error, which it prints. */
int lm_read_vocabulary(const char *path, wf_symbols **out);

#endif
