/* cmd_options.c - `warpfst options`: prints the library's option tables as text, Markdown or JSON.
 */
#include <math.h>
#include <string.h>

#include "cli.h"

static const char *const type_names[] = {"float32", "int32", "int64", "bool", "enum", "string"};

/* Choice `index` (from 0) of "a|b|c", and its length. */
static const char *choice(const char *choices, int index, int *size) {
  while (index-- > 0 && strchr(choices, '|') != NULL) choices = strchr(choices, '|') + 1;
  *size = (int)strcspn(choices, "|");
  return choices;
}

/* Writes the number with the fewest digits, 6 or more, that read back as the same value. */
static void number(char *text, size_t size, double value) {
  for (int digits = 6; digits <= 17; digits++) {
    double again = NAN;
    snprintf(text, size, "%.*g", digits, value);
    if (sscanf(text, "%lf", &again) == 1 && (float)again == (float)value &&
        (fabs(value) < 1e6 || again == value))
      return;
  }
}

static bool numeric(const wf_option *row) {
  return row->type == WF_OPTION_F32 || row->type == WF_OPTION_I32 || row->type == WF_OPTION_I64;
}

static void default_text(const wf_option *row, char *text, size_t size) {
  int length;
  if (row->type == WF_OPTION_BOOL)
    snprintf(text, size, "%s", row->def != 0 ? "true" : "false");
  else if (row->type == WF_OPTION_STR)
    text[0] = '\0';
  else if (row->type != WF_OPTION_ENUM)
    number(text, size, row->def);
  else {
    const char *at = choice(row->unit, (int)row->def, &length);
    snprintf(text, size, "%.*s", length, at);
  }
}

/* Writes the range of a number, "0 .. 1000", or the choices of an ENUM. */
static void range_text(const wf_option *row, char *text, size_t size) {
  char low[64], high[64];
  number(low, sizeof low, row->min);
  number(high, sizeof high, row->max);
  text[0] = '\0';
  if (numeric(row)) snprintf(text, size, "%s .. %s", low, high);
  if (row->type == WF_OPTION_ENUM) snprintf(text, size, "%s", row->unit);
}

static void print_text(const wf_option_table *table) {
  printf("%s\n", table->name);
  for (size_t i = 0; i < table->num_rows; i++) {
    const wf_option *row = &table->rows[i];
    char def[128], range[512];
    default_text(row, def, sizeof def);
    range_text(row, range, sizeof range);
    printf("  %-24s %-8s %s\n", row->name, type_names[row->type], row->help);
    printf("  %-24s          ", "");
    if (row->type == WF_OPTION_STR)
      printf("value: %s", row->unit[0] != '\0' ? row->unit : "TEXT");
    else
      printf("default: %s%s%s", def, numeric(row) && row->unit[0] != '\0' ? " " : "",
             numeric(row) ? row->unit : "");
    if (range[0] != '\0') printf("; %s: %s", numeric(row) ? "range" : "one of", range);
    printf("\n");
  }
}

/* Escapes the text of a cell: '|' would end it, and '<' would start HTML. */
static void print_cell(const char *text) {
  for (; *text != '\0'; text++) {
    if (*text == '<')
      printf("&lt;");
    else if (*text == '>')
      printf("&gt;");
    else
      printf(*text == '|' ? "\\|" : "%c", *text);
  }
  printf(" | ");
}

static void print_markdown(const wf_option_table *table) {
  printf(
      "### %s\n\n| option | type | default | range | unit | meaning |\n|---|---|---|---|---|---|\n",
      table->name);
  for (size_t i = 0; i < table->num_rows; i++) {
    const wf_option *row = &table->rows[i];
    char def[128], range[512];
    default_text(row, def, sizeof def);
    range_text(row, range, sizeof range);
    printf("| `%s` | ", row->name);
    print_cell(type_names[row->type]);
    print_cell(def);
    print_cell(range);
    print_cell(row->type == WF_OPTION_ENUM ? "" : row->unit);
    print_cell(row->help);
    printf("\n");
  }
}

static void print_json_row(const wf_option *row) {
  char def[128], low[64], high[64];
  default_text(row, def, sizeof def);
  number(low, sizeof low, row->min);
  number(high, sizeof high, row->max);
  printf("{\"name\": ");
  cli_json_string(stdout, row->name);
  printf(", \"type\": \"%s\", \"default\": ", type_names[row->type]);
  if (row->type == WF_OPTION_STR)
    printf("null");
  else if (row->type == WF_OPTION_ENUM)
    cli_json_string(stdout, def);
  else
    printf("%s", def);
  if (numeric(row)) printf(", \"min\": %s, \"max\": %s", low, high);
  if (row->type == WF_OPTION_ENUM) {
    printf(", \"choices\": [");
    for (const char *at = row->unit;; at++) {
      int size = (int)strcspn(at, "|");
      printf("%s\"%.*s\"", at == row->unit ? "" : ", ", size, at);
      at += size;
      if (*at == '\0') break;
    }
    printf("]");
  } else {
    printf(", \"unit\": ");
    cli_json_string(stdout, row->unit);
  }
  printf(", \"help\": ");
  cli_json_string(stdout, row->help);
  printf("}");
}

static void print_json(const wf_option_table *table) {
  printf("{\"table\": \"%s\", \"options\": [", table->name);
  for (size_t i = 0; i < table->num_rows; i++) {
    printf(i == 0 ? "\n  " : ",\n  ");
    print_json_row(&table->rows[i]);
  }
  printf("\n]}");
}

static const cli_rule rules[] = {
    {"markdown", CLI_EXCLUDES, "json"},
    {NULL, 0, NULL},
};

int cmd_options(int argc, char **argv) {
  bool markdown = false, json = false;
  cli_parser parser = {.usage = "[TABLE] [--markdown | --json]",
                       .about =
                           "Lists the options of one table, or of all tables: name, type, default, "
                           "range, unit, meaning. The flags of the subcommands and the option "
                           "structures of the library are generated from these tables.",
                       .max_args = 1};
  cli_flag_bool(&parser, "markdown", 0, &markdown, "print Markdown tables");
  cli_flag_bool(&parser, "json", 0, &json, "print JSON: a list of tables");
  cli_rules(&parser, rules);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  const char *name = parser.num_args > 0 ? parser.args[0] : NULL;
  if (name != NULL && wf_option_table_find(name) == NULL)
    return cli_usage("no option table '%s' ('warpfst options' lists all)", name);
  const wf_option_table *table;
  bool first = true;
  if (json) printf("[");
  for (size_t i = 0; (table = wf_option_table_at(i)) != NULL; i++) {
    if (name != NULL && strcmp(table->name, name) != 0) continue;
    if (!first) printf(json ? ",\n" : "\n");
    first = false;
    if (json)
      print_json(table);
    else if (markdown)
      print_markdown(table);
    else
      print_text(table);
  }
  if (json) printf("]\n");
  return CLI_OK;
}
