/* cli.h - shared by all subcommands: flags from option tables, errors, progress, exit codes.
 *
 * A subcommand is one file cli/cmd_NAME.c with `int cmd_NAME(int argc, char **argv)` and a row in
 * commands.h. It sees only the public header. A run:
 *     cli_parser parser = {.usage = "IN -o OUT", .about = "...", .min_args = 1, .max_args = 1};
 *     cli_flag_str(&parser, "output", 'o', &output, "FILE", "where to write");
 *     cli_table(&parser, "compose", &options);
 *     int code = cli_parse(&parser, argc, argv);  // may print help
 *     if (code >= 0) return code;
 *     parser.args[0 .. parser.num_args)           // positional arguments
 */
#ifndef WARPFST_CLI_CLI_H
#define WARPFST_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "commands.h"
#include "warpfst_all.h"

/* Exit codes, listed in `warpfst help`. */
enum {
  CLI_OK = 0,
  CLI_NO = 1,     /* not equal, not equivalent, or some utterances failed */
  CLI_USAGE = 2,  /* the command line is wrong */
  CLI_INPUT = 3,  /* input missing, unreadable or malformed; output not writable */
  CLI_LIMIT = 4,  /* out of memory, beyond a limit, not determinizable */
  CLI_DEVICE = 5, /* no GPU, or a GPU error */
};

typedef enum cli_kind { CLI_BOOL, CLI_I64, CLI_F64, CLI_STR, CLI_STRS } cli_kind;

typedef struct cli_strs {
  const char **items;
  size_t size;
} cli_strs;

typedef struct cli_flag {
  const char *name;
  char letter; /* 0: none */
  cli_kind kind;
  void *target;
  const char *value; /* placeholder in the help text, "FILE" */
  const char *help;
  double min, max;  /* range of a number; both 0: no limits */
  const char *text; /* value on the command line; NULL: not given */
} cli_flag;

/* A rule about a flag that depends on others. A flag is written as a name, as a name with a value
 * ("format=ctm"), or as the name of an option table, which stands for all its options unless a flag
 * has the same name. */
typedef struct cli_rule {
  const char *flag; /* NULL: end of the list */
  enum {
    CLI_USELESS_WITHOUT,
    CLI_USELESS_WITH,
    CLI_NEEDS,
    CLI_EXCLUDES
  } kind;             /* CLI_USELESS_*: a warning; the others: an error */
  const char *others; /* "a|b|c": any one of them suffices */
} cli_rule;

enum { CLI_MAX_FLAGS = 48, CLI_MAX_TABLES = 6, CLI_MAX_ROWS = 64, CLI_MAX_RULES = 12 };

typedef struct cli_parser {
  const char *usage;      /* after "warpfst NAME " */
  const char *about;      /* one paragraph; may end with examples */
  int min_args, max_args; /* max_args < 0: any number */
  /* filled by the calls below */
  cli_flag flags[CLI_MAX_FLAGS];
  size_t num_flags;
  struct {
    const wf_option_table *table;
    void *config;
    const char *texts[CLI_MAX_ROWS]; /* values on the command line; NULL: not given */
  } tables[CLI_MAX_TABLES];
  size_t num_tables;
  const cli_rule *rules[CLI_MAX_RULES]; /* each ends with flag NULL */
  size_t num_rules;
  char **args;
  int num_args;
} cli_parser;

void cli_flag_bool(cli_parser *parser, const char *name, char letter, bool *target,
                   const char *help);
void cli_flag_i64(cli_parser *parser, const char *name, char letter, int64_t *target,
                  const char *value, const char *help);
void cli_flag_f64(cli_parser *parser, const char *name, char letter, double *target,
                  const char *value, const char *help);
void cli_flag_str(cli_parser *parser, const char *name, char letter, const char **target,
                  const char *value, const char *help);
/* A flag that may be repeated; each value is appended to the list. Free the items with free(). */
void cli_flag_strs(cli_parser *parser, const char *name, char letter, cli_strs *target,
                   const char *value, const char *help);
/* Sets the range [min, max] of a numeric flag added before. */
void cli_flag_range(cli_parser *parser, const char *name, double min, double max);
/* Adds a list of rules for cli_parse to check. */
void cli_rules(cli_parser *parser, const cli_rule *rules);
/* Adds a flag for each row of the option table `name`. Sets config to the defaults. */
void cli_table(cli_parser *parser, const char *name, void *config);

/* Parses argv[1..]; argv[0] is the subcommand's name. Flags: --name=value, --name value, -x value;
 * '-' and '_' are the same. A BOOL flag is --name, --name=true, --name=false or --no-name. A flag
 * given twice is an error unless it may be repeated. A single dash before a long name works too, as
 * in OpenFst's tools. "--" ends the flags. Returns -1 to continue, or the exit code after --help or
 * a usage error, which is already printed. */
int cli_parse(cli_parser *parser, int argc, char **argv);

/* Returns the exit code of a command that went on after failed utterances: CLI_LIMIT if memory ran
 * out, else CLI_INPUT if the rest of an archive could not be read, else CLI_NO if any utterance
 * failed, else CLI_OK. */
int cli_failure_code(uint64_t num_failed, bool lost_rest, bool no_memory);
/* Prints "warpfst NAME: message" and returns the exit code for err->code. */
int cli_fail(const wf_error *err);
/* Says that there is no memory. Returns the exit code. */
int cli_out_of_memory(void);
/* Checks the rules. Returns CLI_USAGE after printing an error, else -1. Also prints a warning for
 * each option that has no effect. */
int cli_check_rules(const cli_parser *parser);
/* Prints "warpfst NAME: ..." and a pointer to --help. Returns CLI_USAGE. */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Is the flag or option on the command line? */
bool cli_is_given(const cli_parser *parser, const char *name);
/* Prints "warpfst NAME: ..." to stderr. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *cli_command_name(void);
/* The NAME of messages before cli_parse sets it. */
void cli_set_command(const char *name);

/* A progress bar with the stage and its seconds, if stderr is a terminal and nothing is `quiet`,
 * else no progress. End it with cli_progress_end. */
wf_progress cli_progress(bool quiet);
void cli_progress_end(void);

/* Prints a string as a JSON string literal with quotes. A byte that is not UTF-8 becomes \ufffd. */
void cli_json_string(FILE *out, const char *text);
/* Prints a number as printf does, or null for NaN and infinities, which JSON does not have. */
void cli_json_number(FILE *out, const char *format, double value)
    __attribute__((format(printf, 2, 0)));
/* The ending of a noun after a number: "%llu word%s". */
static inline const char *cli_s(uint64_t count) { return count == 1 ? "" : "s"; }
/* Seconds of a monotonic clock; peak resident memory of the process in bytes. */
double cli_now_s(void);
uint64_t cli_peak_bytes(void);

#endif
