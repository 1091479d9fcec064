/* main.c - finds the subcommand and runs it. */
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "cli.h"
#include "commands.h"
#include "help.h"
#include "suggest.h"

static const struct {
  const char *name, *group, *summary;
  int (*run)(int argc, char **argv);
} commands[] = {
#define CLI_ROW(function, name, group, summary) {name, group, summary, cmd_##function},
    CLI_COMMANDS(CLI_ROW){NULL, NULL, NULL, NULL}};

static void print_commands(FILE *out) {
  char left[96];
  snprintf(left, sizeof left, "warpfst %s: weighted finite-state transducers and speech decoding\n",
           wf_version());
  cli_help_text(out, left);
  fprintf(out, "\n");
  cli_help_usage(out, "COMMAND", "[ARGUMENTS] [FLAGS]");
  const char *group = "";
  for (size_t i = 0; commands[i].name != NULL; i++) {
    if (strcmp(group, commands[i].group) != 0) fprintf(out, "\n%s\n", group = commands[i].group);
    snprintf(left, sizeof left, "  %s", commands[i].name);
    cli_help_row(out, 20, left, commands[i].summary);
  }
  fprintf(out, "\n");
  cli_help_text(
      out,
      "Only in the Python package (pip install '.[audio]' or '.[serve]' in the source folder)");
  cli_help_row(out, 20, "  transcribe", "transcribe recordings");
  cli_help_row(out, 20, "  serve", "serve models over HTTP and WebSocket, with a page of captions");
  fprintf(out, "\n");
  cli_help_text(
      out,
      "'warpfst help COMMAND' lists the flags of a command. Files may be '-' (standard input or "
      "output); gzipped input is decompressed, and an output NAME.gz is gzip. Sizes in bytes may "
      "end in K, M, G or T: 2G is 2 "
      "times 2^30 bytes.\n"
      "Exit codes: 0 done, 1 no (not equal, or some utterances failed), 2 wrong usage, 3 bad "
      "input or output, 4 out of memory or over a limit, 5 GPU error.");
}

static void print_log(void *user, wf_log_level level, const char *message) {
  (void)user;
  if (level >= WF_LOG_WARNING) cli_note("warning: %s", message);
}

static int unknown_command(const char *name) {
  cli_suggestion near = {0};
  for (size_t i = 0; commands[i].name != NULL; i++)
    cli_suggest(&near, name, strlen(name), commands[i].name);
  if (strcmp(name, "transcribe") == 0 || strcmp(name, "serve") == 0)
    cli_note("'%s' is only in the Python package: pip install '.[%s]' in the source folder", name,
             strcmp(name, "serve") == 0 ? "serve" : "audio");
  else if (near.best != NULL)
    cli_note("unknown command '%s': did you mean '%s'? ('warpfst help' lists all)", name,
             near.best);
  else
    cli_note("unknown command '%s' ('warpfst help' lists all)", name);
  return CLI_USAGE;
}

static int run_command(int argc, char **argv) {
  for (size_t i = 0; commands[i].name != NULL; i++)
    if (strcmp(commands[i].name, argv[0]) == 0) return commands[i].run(argc, argv);
  return unknown_command(argv[0]);
}

/* `warpfst help COMMAND [PART]`: as `warpfst COMMAND [PART] --help`. */
static int help(int argc, char **argv) {
  static char flag[] = "--help";
  char *words[4] = {NULL};
  int num_words = 0;
  while (num_words < argc && num_words < 2) {
    words[num_words] = argv[num_words];
    num_words++;
  }
  words[num_words++] = flag;
  return run_command(num_words, words);
}

static int run(int argc, char **argv) {
  const bool asks = argc > 1 && strcmp(argv[1], "help") == 0;
  if (asks && argc > 2 && argv[2][0] != '-') return help(argc - 2, argv + 2);
  if (argc < 2 || asks || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
    print_commands(argc < 2 ? stderr : stdout);
    return argc < 2 ? CLI_USAGE : CLI_OK;
  }
  if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
    printf("warpfst %s\n", wf_version());
    return CLI_OK;
  }
  return run_command(argc - 1, argv + 1);
}

int main(int argc, char **argv) {
  wf__program_start(&argc, &argv);
  /* removes unfinished output files */
  wf__program_at_signal(wf_remove_unfinished_outputs);
  wf_set_log(print_log, NULL);
  int code = run(argc, argv);
  cli_progress_end();
  if (fflush(stdout) != 0 && code == CLI_OK) {
    fprintf(stderr, "warpfst: cannot write to standard output\n");
    code = CLI_INPUT;
  }
  return code;
}
