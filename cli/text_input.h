/* text_input.h - opens and closes text files that are read line by line. */
#ifndef WARPFST_CLI_TEXT_INPUT_H
#define WARPFST_CLI_TEXT_INPUT_H

#include <stdio.h>

/* Opens a file for reading; "-" is standard input. Skips a UTF-8 byte order mark. NULL on errors,
 * with errno set. */
FILE *cli_open_text(const char *path);
/* Takes line `number` of a file, counted from 1. Returns CLI_OK, or another exit code to stop,
 * after printing an error. */
typedef int (*cli_take_line)(void *user, const char *path, size_t number, char *line);
/* Calls `take` for each line. Returns CLI_OK, or the first other exit code; prints the error if the
 * file cannot be read. */
int cli_read_lines(const char *path, cli_take_line take, void *user);
/* Closes the file unless it is standard input. */
void cli_close_text(FILE *file);

#endif
