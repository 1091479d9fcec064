/* flag_rules.c - checks the rules of cli.h: flags that need others, have no effect without or with
 * others, or exclude each other. */
#include "flag_rules.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

bool cli_same_name(const char *flag, const char *name, size_t size) {
  for (size_t i = 0; i < size; i++) {
    char a = flag[i] == '-' ? '_' : flag[i], b = name[i] == '-' ? '_' : name[i];
    if (a == '\0' || a != b) return false;
  }
  return flag[size] == '\0';
}

void cli_flag_name(const char *flag, char *out, size_t size) {
  snprintf(out, size, "--%s", flag);
  for (char *c = out; *c != '\0'; c++)
    if (*c == '_') *c = '-';
}

/* Whether a flag's `text` equals `value`. Numbers are compared by value. `value` NULL matches any
 * text except "false". */
static bool same_value(const char *text, const char *value, size_t size) {
  if (text == NULL) return false;
  if (value == NULL) return strcmp(text, "false") != 0;
  if (strlen(text) == size && memcmp(text, value, size) == 0) return true;
  char *text_end, *value_end;
  double a = strtod(text, &text_end), b = strtod(value, &value_end);
  return *text_end == '\0' && text_end != text && value_end == value + size && value_end != value &&
         a == b;
}

/* Finds the next flag, from number *at, that matches `term` and is on the command line. Sets *at to
 * the number after it. NULL: none. */
static const char *given(const cli_parser *parser, const char *term, size_t size, size_t *at) {
  const char *equals = memchr(term, '=', size), *value = equals != NULL ? equals + 1 : NULL;
  size_t name_size = equals != NULL ? (size_t)(equals - term) : size,
         value_size = equals != NULL ? size - name_size - 1 : 0, number = 0;
  bool is_flag = false; /* then it does not stand for the table of that name */
  for (size_t i = 0; i < parser->num_flags; i++) {
    const cli_flag *flag = &parser->flags[i];
    bool same = cli_same_name(flag->name, term, name_size);
    is_flag = is_flag || same;
    if (number++ < *at || !same || !same_value(flag->text, value, value_size)) continue;
    *at = number;
    return flag->name;
  }
  for (size_t i = 0; i < parser->num_tables; i++) {
    const wf_option_table *table = parser->tables[i].table;
    bool any = !is_flag && cli_same_name(table->name, term, name_size);
    for (size_t j = 0; j < table->num_rows; j++) {
      if (number++ < *at || !(any || cli_same_name(table->rows[j].name, term, name_size)) ||
          !same_value(parser->tables[i].texts[j], value, value_size))
        continue;
      *at = number;
      return table->rows[j].name;
    }
  }
  return NULL;
}

bool cli_is_given(const cli_parser *parser, const char *name) {
  size_t at = 0;
  return given(parser, name, strlen(name), &at) != NULL;
}

/* Finds the first term of "a|b=value|c" that is on the command line; NULL: none. */
static const char *any_given(const cli_parser *parser, const char *terms, size_t *size) {
  for (const char *term = terms;; term += *size + 1) {
    size_t at = 0;
    *size = strcspn(term, "|");
    if (given(parser, term, *size, &at) != NULL) return term;
    if (term[*size] == '\0') return NULL;
  }
}

/* Writes "a|b=value|c" as "--a, --b=value or --c". */
static void list_terms(const char *terms, char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (const char *term = terms; *term != '\0' && used < size;) {
    size_t length = strcspn(term, "|");
    bool last = term[length] == '\0', first = term == terms;
    int put = snprintf(out + used, size - used, "%s--%.*s",
                       first  ? ""
                       : last ? " or "
                              : ", ",
                       (int)length, term);
    used += put > 0 ? (size_t)put : 0;
    term += length + !last;
  }
}

static int check_rule(const cli_parser *parser, const cli_rule *rule) {
  char name[64], others[256];
  size_t at = 0, size, rule_size = strlen(rule->flag);
  for (const char *flag; (flag = given(parser, rule->flag, rule_size, &at)) != NULL;) {
    cli_flag_name(flag, name, sizeof name);
    const char *value = strchr(rule->flag, '=') != NULL ? strchr(rule->flag, '=') : "",
               *other = any_given(parser, rule->others, &size);
    list_terms(rule->others, others, sizeof others);
    if (rule->kind == CLI_USELESS_WITHOUT && other == NULL)
      cli_note("warning: %s%s has no effect without %s", name, value, others);
    if (rule->kind == CLI_USELESS_WITH && other != NULL)
      cli_note("warning: %s%s has no effect with --%.*s", name, value, (int)size, other);
    if (rule->kind == CLI_NEEDS && other == NULL)
      return cli_usage("%s%s needs %s", name, value, others);
    if (rule->kind == CLI_EXCLUDES && other != NULL)
      return cli_usage("%s%s and --%.*s exclude each other", name, value, (int)size, other);
  }
  return -1;
}

int cli_check_rules(const cli_parser *parser) {
  for (size_t i = 0; i < parser->num_rules; i++) {
    for (const cli_rule *rule = parser->rules[i]; rule->flag != NULL; rule++) {
      int code = check_rule(parser, rule);
      if (code >= 0) return code;
    }
  }
  return -1;
}
