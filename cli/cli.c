/* cli.c - the flags of all subcommands. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "flag_rules.h"
#include "help.h"
#include "suggest.h"

static void add(cli_parser *parser, cli_flag flag) {
  if (parser->num_flags < CLI_MAX_FLAGS) parser->flags[parser->num_flags++] = flag;
}
void cli_flag_bool(cli_parser *parser, const char *name, char letter, bool *target,
                   const char *help) {
  add(parser, (cli_flag){.name = name,
                         .letter = letter,
                         .kind = CLI_BOOL,
                         .target = target,
                         .value = NULL,
                         .help = help});
}
void cli_flag_i64(cli_parser *parser, const char *name, char letter, int64_t *target,
                  const char *value, const char *help) {
  add(parser, (cli_flag){.name = name,
                         .letter = letter,
                         .kind = CLI_I64,
                         .target = target,
                         .value = value,
                         .help = help});
}
void cli_flag_f64(cli_parser *parser, const char *name, char letter, double *target,
                  const char *value, const char *help) {
  add(parser, (cli_flag){.name = name,
                         .letter = letter,
                         .kind = CLI_F64,
                         .target = target,
                         .value = value,
                         .help = help});
}
void cli_flag_str(cli_parser *parser, const char *name, char letter, const char **target,
                  const char *value, const char *help) {
  add(parser, (cli_flag){.name = name,
                         .letter = letter,
                         .kind = CLI_STR,
                         .target = target,
                         .value = value,
                         .help = help});
}
void cli_flag_strs(cli_parser *parser, const char *name, char letter, cli_strs *target,
                   const char *value, const char *help) {
  add(parser, (cli_flag){.name = name,
                         .letter = letter,
                         .kind = CLI_STRS,
                         .target = target,
                         .value = value,
                         .help = help});
}
void cli_flag_range(cli_parser *parser, const char *name, double min, double max) {
  for (size_t i = 0; i < parser->num_flags; i++) {
    if (strcmp(parser->flags[i].name, name) != 0) continue;
    parser->flags[i].min = min;
    parser->flags[i].max = max;
  }
}
void cli_rules(cli_parser *parser, const cli_rule *rules) {
  if (parser->num_rules < CLI_MAX_RULES) parser->rules[parser->num_rules++] = rules;
}
void cli_table(cli_parser *parser, const char *name, void *config) {
  const wf_option_table *table = wf_option_table_find(name);
  if (table == NULL || parser->num_tables == CLI_MAX_TABLES) {
    fprintf(stderr, "warpfst: internal error: cannot add option table '%s'\n", name);
    exit(CLI_USAGE);
  }
  wf_options_init(table, config, table->struct_size);
  parser->tables[parser->num_tables].table = table;
  parser->tables[parser->num_tables++].config = config;
}

/* --- parsing ----------------------------------------------------------------------------- */

static bool set_bool(bool *target, const char *value) {
  static const char *const words[] = {"false", "true", "0", "1", "no", "yes", "off", "on"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strcmp(value, words[i]) != 0) continue;
    *target = i % 2 == 1;
    return true;
  }
  return false;
}

static bool set_flag(const cli_flag *flag, const char *value) {
  char *stop = NULL;
  switch (flag->kind) {
    case CLI_BOOL: return set_bool(flag->target, value);
    case CLI_I64:
      *(int64_t *)flag->target = strtoll(value, &stop, 10);
      return stop != value && *stop == '\0';
    case CLI_F64:
      *(double *)flag->target = strtod(value, &stop);
      return stop != value && *stop == '\0' && !isnan(*(double *)flag->target);
    case CLI_STR: *(const char **)flag->target = value; return true;
    case CLI_STRS: {
      cli_strs *list = flag->target;
      const char **items = realloc(list->items, (list->size + 1) * sizeof *items);
      if (items == NULL) return false;
      list->items = items;
      items[list->size++] = value;
      return true;
    }
  }
  return false;
}

struct match {
  cli_flag *flag;
  const wf_option *row;
  void *config;
  const wf_option_table *table;
  const char **text; /* where the parser stores the value */
  bool negated, is_bool;
};

static bool find_name(cli_parser *parser, const char *name, size_t size, struct match *match) {
  for (size_t i = 0; i < parser->num_flags; i++) {
    if (!cli_same_name(parser->flags[i].name, name, size)) continue;
    match->flag = &parser->flags[i];
    match->text = &match->flag->text;
    match->is_bool = match->flag->kind == CLI_BOOL;
    return true;
  }
  for (size_t i = 0; i < parser->num_tables; i++) {
    const wf_option_table *table = parser->tables[i].table;
    for (size_t j = 0; j < table->num_rows; j++) {
      if (!cli_same_name(table->rows[j].name, name, size)) continue;
      match->row = &table->rows[j];
      match->table = table;
      match->config = parser->tables[i].config;
      match->text = &parser->tables[i].texts[j];
      match->is_bool = match->row->type == WF_OPTION_BOOL;
      return true;
    }
  }
  return false;
}

static bool find_flag(cli_parser *parser, const char *name, size_t size, struct match *match) {
  if (find_name(parser, name, size, match)) return true;
  if (size > 3 && (memcmp(name, "no-", 3) == 0 || memcmp(name, "no_", 3) == 0) &&
      find_name(parser, name + 3, size - 3, match) && match->is_bool) {
    match->negated = true;
    return true;
  }
  return false;
}

static bool in_range(const cli_flag *flag) {
  if (flag->min == 0 && flag->max == 0) return true;
  double value = flag->kind == CLI_I64 ? (double)*(int64_t *)flag->target : *(double *)flag->target;
  return value >= flag->min && value <= flag->max;
}

static int apply(const struct match *match, const char *name, const char *value) {
  if (match->flag != NULL) {
    const char *takes = match->is_bool ? "true or false" : match->flag->value;
    if (!set_flag(match->flag, value))
      return cli_usage("%s: invalid value '%s' for --%s, expected %s", name, value,
                       match->flag->name, takes);
    if (!in_range(match->flag))
      return cli_usage("--%s is outside [%.10g, %.10g]", match->flag->name, match->flag->min,
                       match->flag->max);
    return -1;
  }
  wf_error err;
  if (wf_options_set(match->table, match->config, match->row->name, value, &err) == WF_OK)
    return -1;
  const size_t size = strlen(match->row->name);
  if (strncmp(err.message, match->row->name, size) != 0) return cli_usage("%s", err.message);
  char flag[64];
  cli_flag_name(match->row->name, flag, sizeof flag);
  return cli_usage("%s%s", flag, err.message + size);
}

/* Names that other tools use, and the flags here, best first. */
static const char *const foreign_names[][2] = {
    {"hotwords", "boost"},
    {"hotwords-file", "boost"},
    {"hotword-weight", "boost-per-letter"},
    {"hotwords-score", "boost-per-letter"},
    {"context", "boost"},
    {"phrases", "boost"},
    {"gpu", "device"},
    {"cuda", "device"},
    {"use-gpu", "device"},
    {"lm-weight", "lm-scale"},
    {"ngram-lm-scale", "lm-scale"},
    {"ngram-lm-alpha", "lm-scale"},
    {"alpha", "lm-scale"},
    {"beta", "word-score"},
    {"ngram-lm-beta", "word-score"},
    {"word-insertion-penalty", "word-score"},
    {"wip", "word-score"},
    {"acwt", "acoustic-scale"},
    {"beam-size", "beam"},
    {"beam-width", "beam"},
    {"beam-threshold", "beam"},
    {"num-paths", "nbest"},
    {"n-best", "nbest"},
    {"jobs", "num-threads"},
    {"nj", "num-threads"},
    {"num-workers", "num-threads"},
    {"arpa", "lm"},
    {"kenlm", "lm"},
    {"kenlm-model", "lm"},
    {"language-model", "lm"},
    {"word-symbol-table", "words"},
    {"symbols", "words"},
    {"vocab", "tokens"},
    {"model", "am"},
    {"blank-id", "blank"},
    {"transcripts", "text"},
    {"reference", "ref"},
    {"frame-shift-ms", "frame-shift"},
};

static bool has_flag(const cli_parser *parser, const char *name) {
  for (size_t i = 0; i < parser->num_flags; i++)
    if (cli_same_name(parser->flags[i].name, name, strlen(name))) return true;
  for (size_t i = 0; i < parser->num_tables; i++)
    for (size_t j = 0; j < parser->tables[i].table->num_rows; j++)
      if (cli_same_name(parser->tables[i].table->rows[j].name, name, strlen(name))) return true;
  return false;
}

/* The flag for what another tool calls `text`; NULL: none is known. */
static const char *own_name(const cli_parser *parser, const char *text, size_t size) {
  for (size_t i = 0; i < sizeof foreign_names / sizeof *foreign_names; i++)
    if (cli_same_name(foreign_names[i][0], text, size) && has_flag(parser, foreign_names[i][1]))
      return foreign_names[i][1];
  return NULL;
}

static int unknown_flag(const cli_parser *parser, const char *text, size_t dashes, size_t size) {
  cli_suggestion near = {0};
  for (size_t i = 0; i < parser->num_flags; i++)
    cli_suggest(&near, text + dashes, size, parser->flags[i].name);
  for (size_t i = 0; i < parser->num_tables; i++)
    for (size_t j = 0; j < parser->tables[i].table->num_rows; j++)
      cli_suggest(&near, text + dashes, size, parser->tables[i].table->rows[j].name);
  const char *own = own_name(parser, text + dashes, size);
  if (own != NULL) near.best = own;
  if (near.best == NULL) return cli_usage("unknown flag %.*s", (int)(size + dashes), text);
  char name[64];
  cli_flag_name(near.best, name, sizeof name);
  return cli_usage("unknown flag %.*s: did you mean %s?", (int)(size + dashes), text, name);
}

/* Parses the flag at argv[*i]. Advances *i if the value is a separate argument. */
static int parse_flag(cli_parser *parser, int argc, char **argv, int *i) {
  const char *text = argv[*i], *name = text + (text[1] == '-' ? 2 : 1);
  size_t size = strcspn(name, "=");
  const char *value = name[size] == '=' ? name + size + 1 : NULL;
  const int length = (int)(size + (size_t)(name - text));
  struct match match = {0};
  bool found = false;
  if (text[1] != '-' && size == 1) {
    for (size_t k = 0; k < parser->num_flags && !found; k++) {
      if (parser->flags[k].letter != name[0]) continue;
      match.flag = &parser->flags[k];
      match.text = &match.flag->text;
      match.is_bool = match.flag->kind == CLI_BOOL;
      found = true;
    }
  }
  if (!found) found = find_flag(parser, name, size, &match);
  if (!found) return unknown_flag(parser, text, (size_t)(name - text), size);
  if (value != NULL && match.negated) return cli_usage("%.*s takes no value", length, text);
  if (value == NULL && !match.is_bool) {
    if (*i + 1 >= argc) return cli_usage("%s needs a value", text);
    value = argv[++*i];
  }
  if (*match.text != NULL && (match.flag == NULL || match.flag->kind != CLI_STRS))
    return cli_usage("%.*s is given twice", length, text);
  if (value == NULL) value = match.negated ? "false" : "true";
  *match.text = value;
  return apply(&match, text, value);
}

int cli_parse(cli_parser *parser, int argc, char **argv) {
  cli_set_command(argv[0]);
  bool flags_end = false;
  int kept = 1;
  for (int i = 1; i < argc; i++) {
    const char *text = argv[i];
    if (flags_end || text[0] != '-' || text[1] == '\0') {
      argv[kept++] = argv[i];
    } else if (strcmp(text, "--") == 0) {
      flags_end = true;
    } else if (strcmp(text, "-h") == 0 || strcmp(text, "--help") == 0) {
      cli_help(parser);
      return CLI_OK;
    } else {
      int code = parse_flag(parser, argc, argv, &i);
      if (code >= 0) return code;
    }
  }
  parser->args = argv + 1;
  parser->num_args = kept - 1;
  if (parser->num_args < parser->min_args)
    return cli_usage("too few arguments; usage: warpfst %s %s", argv[0], parser->usage);
  if (parser->max_args >= 0 && parser->num_args > parser->max_args)
    return cli_usage("unexpected argument '%s'", parser->args[parser->max_args]);
  return cli_check_rules(parser);
}
