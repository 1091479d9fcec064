/* text_input.h - reads text files line by line, and the first bytes of files. */
#ifndef WARPFST_CLI_TEXT_INPUT_H
#define WARPFST_CLI_TEXT_INPUT_H

#include <stdio.h>

#include "warpfst_all.h"

/* The lines of a file:
 *     cli_lines lines;
 *     wf_status status = cli_lines_open(&lines, path, err);
 *     while (status == WF_OK && cli_lines_next(&lines)) status = take(lines.text, err);
 *     status = cli_lines_close(&lines, status, err);
 */
typedef struct cli_lines {
  const char *path;
  FILE *file;
  char *text;    /* the line, with its line feed; may be changed */
  size_t size;   /* of the line */
  size_t number; /* of the line, from 1 */
  size_t room;
  int error; /* errno that ended the reading; 0: none */
} cli_lines;

/* "-" is standard input. Skips a UTF-8 byte order mark. `path` must outlive the lines. */
wf_status cli_lines_open(cli_lines *lines, const char *path, wf_error *err);
/* Reads the next line. False at the end of the file, and after an error, which cli_lines_close
 * returns. */
bool cli_lines_next(cli_lines *lines);
/* Gives the line to the caller, who frees it with free(). */
char *cli_lines_take(cli_lines *lines);
/* Closes the file, also after a failed cli_lines_open. Returns `status`, or if that is WF_OK the
 * error of reading. */
wf_status cli_lines_close(cli_lines *lines, wf_status status, wf_error *err);

/* Takes line `number` of a file, counted from 1. Returns CLI_OK, or another exit code to stop,
 * after printing an error. */
typedef int (*cli_take_line)(void *user, const char *path, size_t number, char *line);
/* Calls `take` for each line. Returns CLI_OK, or the first other exit code; prints the error if the
 * file cannot be read. */
int cli_read_lines(const char *path, cli_take_line take, void *user);

#endif
