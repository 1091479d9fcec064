/* commands.h - the list of subcommands, X(function suffix, "name", group, "summary"), and their prototypes: int cmd_SUFFIX(int, char **). */
#ifndef WARPFST_CLI_COMMANDS_H
#define WARPFST_CLI_COMMANDS_H

#define CLI_COMMANDS(X) \
  X(info, "info", "Files", "what is in an fst file") \
  X(print, "print", "Files", "an fst as text") \
  X(compile, "compile", "Files", "text to an fst") \
  X(convert, "convert", "Files", "another file format, arc type or symbol tables") \
  X(lm, "lm", "Language models", "n-gram models: info, query, perplexity, convert") \
  /* end of the list */

#define CLI_DECLARE(function, name, group, summary) int cmd_##function(int argc, char **argv);
CLI_COMMANDS(CLI_DECLARE)

#endif
