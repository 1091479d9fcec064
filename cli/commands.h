/* commands.h - the list of subcommands, X(function suffix, "name", group, "summary"), and their prototypes: int cmd_SUFFIX(int, char **). */
#ifndef WARPFST_CLI_COMMANDS_H
#define WARPFST_CLI_COMMANDS_H

#define CLI_COMMANDS(X) \
  X(convert, "convert", "Files", "another file format, arc type or symbol tables") \
  X(shortestpath, "shortestpath", "Operations", "the best path, or the n best") \
  X(prune, "prune", "Operations", "drop what is far from the best path") \
  X(randgen, "randgen", "Operations", "random paths") \
  X(equal, "equal", "Comparison", "the same fst, arc by arc?") \
  X(equivalent, "equivalent", "Comparison", "deterministic acceptors: same strings, same costs?") \
  X(randequivalent, "randequivalent", "Comparison", "random paths: same costs in both?") \
  /* end of the list */

#define CLI_DECLARE(function, name, group, summary) int cmd_##function(int argc, char **argv);
CLI_COMMANDS(CLI_DECLARE)

#endif
