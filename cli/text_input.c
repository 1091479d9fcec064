/* text_input.c - opens text files, skips a byte order mark, reads lines. */
#include "text_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

FILE *cli_open_text(const char *path) {
  static const unsigned char mark[3] = {0xEF, 0xBB, 0xBF};
  FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
  if (file == NULL) return NULL;
  size_t same = 0;
  int byte = getc(file);
  if (byte == EOF && ferror(file)) { /* a directory */
    int code = errno;
    cli_close_text(file);
    errno = code;
    return NULL;
  }
  while (same < 2 && byte == mark[same]) {
    byte = getc(file);
    same++;
  }
  if (same == 2 && byte == mark[2]) return file;
  if (byte != EOF) (void)ungetc(byte, file);
  while (same > 0) (void)ungetc(mark[--same], file);
  return file;
}

void cli_close_text(FILE *file) {
  if (file != stdin) (void)fclose(file);
}

int cli_read_lines(const char *path, cli_take_line take, void *user) {
  FILE *file = cli_open_text(path);
  if (file == NULL) {
    cli_note("%s: %s", path, strerror(errno));
    return CLI_INPUT;
  }
  char *line = NULL;
  size_t cap = 0, number = 0;
  int code = CLI_OK;
  while (code == CLI_OK && getline(&line, &cap, file) >= 0) code = take(user, path, ++number, line);
  if (code == CLI_OK && ferror(file)) {
    cli_note("%s: cannot read", path);
    code = CLI_INPUT;
  }
  free(line);
  cli_close_text(file);
  return code;
}
