/* fst_output.h - reads and writes fsts with the same flags in all subcommands.
 *     wf_fst *fst;
 *     int code = cli_read_fst(path, &fst);           // prints the error
 *     if (code != CLI_OK) return code;
 *     ...
 *     code = cli_write_fst(result, output, format);  // format: value of --format, or NULL
 *
 * Without --format, a name that ends in ".wfst" is written in the native format, any other as an
 * OpenFst vector file. */
#ifndef WARPFST_CLI_FST_OUTPUT_H
#define WARPFST_CLI_FST_OUTPUT_H

#include "cli.h"

/* Help texts and placeholders of --output and --format. */
#define CLI_FORMAT_VALUE "native|vector|const"
#define CLI_FORMAT_HELP "file format (default: native for names in .wfst, else OpenFst vector)"
#define CLI_OUTPUT_HELP "where to write ('-': standard output, the default; NAME.gz: gzip)"

/* Adds --output/-o and --format. Set *output and *format to NULL before. */
void cli_flag_output(cli_parser *parser, const char **output, const char **format);
/* Adds --check-symbols for operations that have no option table. Sets *check to true. */
void cli_flag_check_symbols(cli_parser *parser, bool *check);
/* Removes the symbol tables of an fst, so that they are not compared with those of another one. */
int cli_drop_symbols(wf_fst **fst);
/* Returns CLI_OK, or the exit code of an error, which it prints. */
int cli_read_fst(const char *path, wf_fst **out);
/* path NULL: standard output. format NULL: chosen by the name. Returns CLI_OK, or the exit code of
 * an error, which it prints. */
int cli_write_fst(const wf_fst *fst, const char *path, const char *format);
/* Finds the format that cli_write_fst uses. Returns CLI_OK or CLI_USAGE. */
int cli_fst_format(const char *path, const char *format, wf_fst_format *out);

#endif
