/* text_input.h - opens and closes text files that are read line by line. */
#ifndef WARPFST_CLI_TEXT_INPUT_H
#define WARPFST_CLI_TEXT_INPUT_H

#include <stdio.h>

/* Opens a file for reading; "-" is standard input. Skips a UTF-8 byte order mark. NULL on errors,
 * with errno set. */
FILE *cli_open_text(const char *path);
/* Closes the file unless it is standard input. */
void cli_close_text(FILE *file);

#endif
