/* commands.h - the list of subcommands: X(function suffix, "name", group, "summary"). */
#ifndef WARPFST_CLI_COMMANDS_H
#define WARPFST_CLI_COMMANDS_H

#define CLI_COMMANDS(X) \
  X(lm, "lm", "Language models", "n-gram language models: info, query, perplexity, convert")

#endif
