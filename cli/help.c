/* help.c - prints the help of commands and flags, wrapped to the width of the terminal. */
#include "help.h"

#include <stdlib.h>
#include <string.h>

#include "base/platform.h"

enum { NARROWEST = 40, PLAIN_WIDTH = 100, WIDEST_TERMINAL = 120 };

/* The width of a line: COLUMNS, else that of the terminal, at most 120, else 100. */
static size_t width(void) {
  const char *columns = getenv("COLUMNS");
  long wide = columns != NULL ? strtol(columns, NULL, 10) : 0;
  if (wide <= 0) {
    wide = wf__terminal_width();
    if (wide > WIDEST_TERMINAL) wide = WIDEST_TERMINAL;
  }
  if (wide <= 0) wide = PLAIN_WIDTH;
  return wide < NARROWEST ? NARROWEST : (size_t)wide;
}

/* Prints the words of a text from column `at` on. Later lines begin at column `indent`. A line that
 * goes on ends with `more`. */
static void wrap(FILE *out, const char *text, size_t size, size_t at, size_t indent,
                 const char *more) {
  const size_t wide = width() - strlen(more);
  const char *end = text + size, *word = text;
  for (size_t length, blanks; word < end; word += length) {
    const char *before = word;
    word += strspn(word, " \n");
    length = strcspn(word, " \n");
    if (word >= end) return;
    blanks = *before == '\n' ? 1 : (size_t)(word - before);
    if (before != text && at + blanks + length > wide) {
      fprintf(out, "%s\n%*s", more, (int)indent, "");
      at = indent;
    } else if (before != text) {
      fprintf(out, "%*s", (int)blanks, "");
      at += blanks;
    }
    fprintf(out, "%.*s", (int)length, word);
    at += length;
  }
}

/* A line of an example or a table. Only commands are broken, so that they can be copied. */
static void print_kept(FILE *out, const char *line, size_t size) {
  const size_t blanks = strspn(line, " ");
  fprintf(out, "%*s", (int)blanks, "");
  if (size - blanks > 8 && memcmp(line + blanks, "warpfst ", 8) == 0)
    wrap(out, line + blanks, size - blanks, blanks, blanks + 4, " \\");
  else
    wrap(out, line + blanks, size - blanks, blanks, blanks + 2, "");
  fprintf(out, "\n");
}

/* The size of a paragraph, up to the newline after a line that ends a sentence, is empty, or comes
 * before an example. */
static size_t paragraph(const char *text) {
  for (size_t size = 0;; size++) {
    size += strcspn(text + size, "\n");
    if (text[size] == '\0' || size == 0 || strchr(" \n", text[size + 1]) != NULL ||
        strchr(".:?)", text[size - 1]) != NULL)
      return size;
  }
}

void cli_help_text(FILE *out, const char *text) {
  while (*text != '\0') {
    const size_t size = text[0] == ' ' ? strcspn(text, "\n") : paragraph(text);
    if (text[0] == ' ') {
      print_kept(out, text, size);
    } else {
      wrap(out, text, size, 0, 0, "");
      fprintf(out, "\n");
    }
    text += size + (text[size] == '\n');
  }
}

void cli_help_row(FILE *out, size_t column, const char *left, const char *right) {
  if (width() < PLAIN_WIDTH && column > 26) column = 26;
  if (strlen(left) + 2 > column)
    fprintf(out, "%s\n%*s", left, (int)column, "");
  else
    fprintf(out, "%-*s", (int)column, left);
  wrap(out, right, strlen(right), column, column, "");
  fprintf(out, "\n");
}

void cli_help_usage(FILE *out, const char *command, const char *usage) {
  char start[96];
  snprintf(start, sizeof start, "usage: warpfst %s ", command);
  fprintf(out, "%s", start);
  for (size_t at = strlen(start);;) { /* each line of the usage is another form of the command */
    const size_t size = strcspn(usage, "\n"), blanks = strspn(usage, " ");
    if (blanks > 0) fprintf(out, "%*s", (int)blanks, "");
    wrap(out, usage + blanks, size - blanks, at + blanks, strlen(start), "");
    fprintf(out, "\n");
    if (usage[size] == '\0') break;
    usage += size + 1;
    at = 0;
  }
}

/* Writes a number of bytes as 512M where that is exact. */
static void print_bytes(char *text, size_t size, double value) {
  const char *suffix = "";
  for (const char *each = "KMGT"; *each != '\0' && value >= 1024; suffix = each++) {
    if ((double)(int64_t)(value / 1024) != value / 1024) break;
    value /= 1024;
  }
  snprintf(text, size, "%.0f%.1s", value, suffix);
}

/* Writes " (default: ...)". The unit is the placeholder of the value. */
static void print_default(const wf_option *row, const char *name, char *text, size_t size) {
  char value[64];
  text[0] = '\0';
  switch (row->type) {
    case WF_OPTION_STR: return;
    case WF_OPTION_BOOL:
      snprintf(text, size, row->def != 0 ? " (default: on; --no-%s)" : " (default: off)", name);
      return;
    case WF_OPTION_ENUM: {
      const char *at = row->unit;
      for (int i = 0; i < (int)row->def && strchr(at, '|') != NULL; i++) at = strchr(at, '|') + 1;
      snprintf(text, size, " (default: %.*s)", (int)strcspn(at, "|"), at);
      return;
    }
    case WF_OPTION_I32:
    case WF_OPTION_I64:
      if (strcmp(row->unit, "bytes") == 0) {
        print_bytes(value, sizeof value, row->def);
        snprintf(text, size, " (default: %s; may end in K, M, G or T)", value);
        return;
      }
      snprintf(text, size, " (default: %.0f)", row->def);
      return;
    case WF_OPTION_F32:
      snprintf(text, size, row->def >= 1e30 ? " (default: no limit)" : " (default: %.7g)",
               row->def);
      return;
  }
}

static void print_option(const wf_option *row) {
  char left[160], name[64], unit[96], def[96], right[1024];
  snprintf(name, sizeof name, "%s", row->name);
  for (char *c = name; *c != '\0'; c++)
    if (*c == '_') *c = '-';
  const bool number = row->type != WF_OPTION_STR && row->type != WF_OPTION_ENUM;
  snprintf(unit, sizeof unit, "%s", row->unit[0] != '\0' ? row->unit : number ? "N" : "TEXT");
  for (char *c = unit; number && *c != '\0'; c++)
    if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
  snprintf(left, sizeof left, row->type == WF_OPTION_BOOL ? "  --%s" : "  --%s=%s", name, unit);
  print_default(row, name, def, sizeof def);
  snprintf(right, sizeof right, "%s%s", row->help, def);
  cli_help_row(stdout, 34, left, right);
}

void cli_help(const cli_parser *parser) {
  char left[128], right[1024];
  cli_help_usage(stdout, cli_command_name(), parser->usage);
  printf("\n");
  cli_help_text(stdout, parser->about);
  if (parser->num_flags > 0) printf("\nFlags:\n");
  for (size_t i = 0; i < parser->num_flags; i++) {
    const cli_flag *flag = &parser->flags[i];
    char letter[8] = "";
    if (flag->letter != 0) snprintf(letter, sizeof letter, "-%c, ", flag->letter);
    snprintf(left, sizeof left, "  %s--%s%s%s", letter, flag->name, flag->value != NULL ? "=" : "",
             flag->value != NULL ? flag->value : "");
    snprintf(right, sizeof right, "%s%s", flag->help,
             flag->kind == CLI_STRS ? " (may be repeated)" : "");
    cli_help_row(stdout, 34, left, right);
  }
  for (size_t i = 0; i < parser->num_tables; i++) {
    const wf_option_table *table = parser->tables[i].table;
    printf("\nOptions (%s):\n", table->name);
    for (size_t j = 0; j < table->num_rows; j++) print_option(&table->rows[j]);
  }
  printf("\n");
  cli_help_row(stdout, 34, "  -h, --help", "this text");
}
