/* text_input.c - opens text files and skips a byte order mark. */
#include "text_input.h"

#include <errno.h>
#include <string.h>

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
