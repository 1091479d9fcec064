/* main.c - the program: finds the subcommand and runs it. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "suggest.h"

static const struct {
  const char *name, *group, *summary;
  int (*run)(int argc, char **argv);
} commands[] = {
#define CLI_ROW(function, name, group, summary) {name, group, summary, cmd_##function},
    CLI_COMMANDS(CLI_ROW){NULL, NULL, NULL, NULL}};

static void print_commands(FILE *out) {
  fprintf(out,
          "warpfst %s: weighted finite-state transducers and speech decoding\n\nusage: warpfst "
          "COMMAND [ARGUMENTS] [FLAGS]\n",
          wf_version());
  const char *group = "";
  for (size_t i = 0; commands[i].name != NULL; i++) {
    if (strcmp(group, commands[i].group) != 0) fprintf(out, "\n%s\n", group = commands[i].group);
    fprintf(out, "  %-18s%s\n", commands[i].name, commands[i].summary);
  }
  fprintf(out,
          "\nIn the Python package alone (pip install 'warpfst[audio]')\n"
          "  transcribe        recordings to words\n"
          "\n'warpfst COMMAND --help' lists the flags of a command. Files may be '-' (standard "
          "input or output); gzipped input is inflated."
          "\nExit codes: 0 done, 1 the answer is no, 2 wrong usage, 3 bad input or output, 4 out "
          "of memory or beyond a limit, 5 GPU.\n");
}

static void print_log(void *user, wf_log_level level, const char *message) {
  (void)user;
  if (level >= WF_LOG_WARNING) cli_note("warning: %s", message);
}

static int unknown_command(const char *name) {
  cli_suggestion near = {0};
  for (size_t i = 0; commands[i].name != NULL; i++)
    cli_suggest(&near, name, strlen(name), commands[i].name);
  if (strcmp(name, "transcribe") == 0)
    cli_note("'transcribe' is in the Python package alone: pip install 'warpfst[audio]'");
  else if (near.best != NULL)
    cli_note("unknown command '%s': did you mean '%s'? ('warpfst help' lists all)", name,
             near.best);
  else
    cli_note("unknown command '%s' ('warpfst help' lists all)", name);
  return CLI_USAGE;
}

static int run(int argc, char **argv) {
  if (argc < 2 || strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
      strcmp(argv[1], "-h") == 0) {
    print_commands(argc < 2 ? stderr : stdout);
    return argc < 2 ? CLI_USAGE : CLI_OK;
  }
  if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
    printf("warpfst %s\n", wf_version());
    return CLI_OK;
  }
  for (size_t i = 0; commands[i].name != NULL; i++)
    if (strcmp(commands[i].name, argv[1]) == 0) return commands[i].run(argc - 1, argv + 1);
  return unknown_command(argv[1]);
}

/* A file opened as number 0, 1 or 2 would get what is meant for a standard stream. What is closed
 * becomes /dev/null, opened such that reading or writing fails as before. */
static void fill_standard_streams(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0) (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv) {
  fill_standard_streams();
  wf_set_log(print_log, NULL);
  int code = run(argc, argv);
  cli_progress_end();
  if (fflush(stdout) != 0 && code == CLI_OK) {
    fprintf(stderr, "warpfst: cannot write to standard output\n");
    code = CLI_INPUT;
  }
  return code;
}
