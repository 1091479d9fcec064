/* text_input.c - opens text files, skips a byte order mark, reads lines. */
#include "text_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "cli.h"

static wf_status fail(const cli_lines *lines, const char *what, int code, wf_error *err) {
  err->code = code == ENOMEM ? WF_ERR_MEMORY : WF_ERR_IO;
  snprintf(err->message, sizeof err->message, "%s: cannot %s: %s", lines->path, what,
           strerror(code));
  return err->code;
}

static void skip_mark(FILE *file) {
  static const unsigned char mark[3] = {0xEF, 0xBB, 0xBF};
  size_t same = 0;
  int byte = getc(file);
  while (same < 2 && byte == mark[same]) {
    byte = getc(file);
    same++;
  }
  if (same == 2 && byte == mark[2]) return;
  if (byte != EOF) (void)ungetc(byte, file);
  while (same > 0) (void)ungetc(mark[--same], file);
}

wf_status cli_lines_open(cli_lines *lines, const char *path, wf_error *err) {
  *lines = (cli_lines){.path = path};
  lines->file = strcmp(path, "-") == 0 ? stdin : wf__stdio_read(path);
  if (lines->file == NULL) return fail(lines, "open", errno, err);
  errno = 0;
  skip_mark(lines->file);
  return ferror(lines->file) ? fail(lines, "open", errno, err) : WF_OK; /* a directory */
}

bool cli_lines_next(cli_lines *lines) {
  errno = 0;
  const int64_t size = wf__stdio_line(&lines->text, &lines->room, lines->file);
  if (size < 0) {
    /* POSIX's getline returns the same if there is no memory as at the end */
    if (!feof(lines->file) || ferror(lines->file)) lines->error = errno != 0 ? errno : EIO;
    return false;
  }
  lines->size = (size_t)size;
  lines->number++;
  return true;
}

char *cli_lines_take(cli_lines *lines) {
  char *text = lines->text;
  lines->text = NULL;
  lines->room = 0;
  return text;
}

wf_status cli_lines_close(cli_lines *lines, wf_status status, wf_error *err) {
  if (status == WF_OK && lines->error != 0) status = fail(lines, "read", lines->error, err);
  if (lines->file != NULL && lines->file != stdin) (void)fclose(lines->file);
  free(lines->text);
  *lines = (cli_lines){0};
  return status;
}

int cli_read_lines(const char *path, cli_take_line take, void *user) {
  wf_error err = {0};
  cli_lines lines;
  int code = CLI_OK;
  wf_status status = cli_lines_open(&lines, path, &err);
  while (status == WF_OK && code == CLI_OK && cli_lines_next(&lines))
    code = take(user, path, lines.number, lines.text);
  status = cli_lines_close(&lines, status, &err);
  return code == CLI_OK && status != WF_OK ? cli_fail(&err) : code;
}
