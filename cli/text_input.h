/* text_input.h - text files that commands read line by line themselves. */
#ifndef WARPFST_CLI_TEXT_INPUT_H
#define WARPFST_CLI_TEXT_INPUT_H

#include <stdio.h>

/* fopen for reading, "-" for standard input. The place is behind a byte order mark of UTF-8, if
 * there is one. NULL with errno. */
FILE *cli_open_text(const char *path);
/* fclose, unless it is standard input. */
void cli_close_text(FILE *file);

#endif
